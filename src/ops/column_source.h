/*
 * ops/column_source.h - what source.arrow and source.parquet share: fields, nulls, keys,
 * and the values of a row.
 */
#ifndef HR_OPS_COLUMN_SOURCE_H
#define HR_OPS_COLUMN_SOURCE_H

#include "core/str.h"
#include "op/expr_range.h"
#include "op/op.h"
#include "ops/arrow_files.h"
#include "ops/parquet_files.h"

struct hr_column_params { /* the parameters of such a source begin with them */
    const char *path;
    struct hr_names columns;
    struct hr_pairs fill;
};
#define HR_P_COLUMN_COLUMNS                                                              \
    HR_P_STRINGS(struct hr_column_params, columns, .fallback = "[\"*\"]",                \
                 .items_min = 1, .items_max = HR_LIST_MAX,                               \
                 .help = "the columns that become fields, by name; * stands for all, "   \
                         "the name of a struct for its columns, \"image.bytes\" for "    \
                         "one")
#define HR_P_COLUMN_FILL                                                                 \
    HR_P_MAP(struct hr_column_params, fill, .items_min = 0, .items_max = HR_LIST_MAX,    \
             .values = true, .fallback = "{}",                                           \
             .help = "column: what a null becomes, such as {label: -1, text: '='}; = "   \
                     "stands for the text after it, here an empty one; "                 \
                     "without, a row with a null is a bad record")

/* A row while its cells are read. */
struct hr_column_row {
    uint64_t index;
    struct hr_thread *thread; /* or NULL: for keys */
    /* begin sets what follows. */
    const char *uri;
    uint64_t first, count; /* records that lie in the same row group or batch */
    union {
        struct hr_arrow_row arrow;
        struct hr_parquet_row parquet;
    } as; /* the format's */
};

/* What differs between formats; `files` is what prepare gave. */
struct hr_column_format {
    /* Finds the row (< records), also on failure. HR_ERR_FORMAT if it is damaged. */
    enum hr_err (*begin)(void *files, struct hr_column_row *row, struct hr_error *reterr);
    /* Moves to record `index` of the same row group or batch. */
    void (*move)(struct hr_column_row *row, uint64_t index);
    /* A cell, and the buffer that it lies in, or NULL: it stays. Both are valid until the
     * next cell. */
    enum hr_err (*cell)(void *files, struct hr_column_row *row, size_t column,
                        struct hr_arrow_cell *ret_cell, struct hr_buffer **ret_owner,
                        struct hr_error *reterr);
    /* The numbers of the rows from this one on that lie side by side, none of which is
     * null, as one cell; *ret_rows of them, 0 if this one must be read by itself. Valid
     * as a cell is. */
    enum hr_err (*run)(void *files, struct hr_column_row *row, size_t column,
                       struct hr_arrow_cell *ret_cell, uint64_t *ret_rows,
                       struct hr_error *reterr);
    void (*end)(struct hr_column_row *row);
    /* Appends which row of the file it is: "row 5 of row group 2". */
    void (*where)(const struct hr_column_row *row, struct hr_str *out);
    void (*close)(void *files);
};

struct hr_column_source { /* the state */
    const struct hr_column_format *format;
    const struct hr_columns *columns;
    void *files;
    uint64_t records;
    struct hr_hash128 identity;
    struct hr_str note;
    bool has_fill[HR_SCHEMA_FIELDS_MAX];
    const char *fill[HR_SCHEMA_FIELDS_MAX]; /* the parameter's */
    int64_t number[HR_SCHEMA_FIELDS_MAX];   /* it as bytes of the field's dtype */
    struct hr_expr *where; /* rows for which it is false are dropped; or NULL: none are */
    size_t where_at[HR_EXPR_REFS_MAX]; /* the columns of its fields */
};

/* Takes over the files; on failure, too. For hr_op.prepare. */
HR_CHECK enum hr_err
hr__column_source_create(const struct hr_column_format *format, void *files,
                         const struct hr_columns *columns, uint64_t records,
                         struct hr_hash128 identity, void **ret_state,
                         struct hr_error *reterr);

/* Sets the condition; `schema` is the source's. For hr_op.open, after
 * hr__column_source_open(). */
HR_CHECK enum hr_err
hr__column_source_where(struct hr_column_source *state, const char *text,
                        const struct hr_schema *schema, struct hr_error *error);

/* hr_op hooks */
void hr__column_source_close(void *state);
HR_CHECK enum hr_err hr__column_source_open(const struct hr_open *open, void **ret_state);
HR_CHECK enum hr_err
hr__column_source_binds(const void *params, const void *state,
                        const struct hr_schema *input, struct hr_bindings *bindings,
                        struct hr_error *error);
HR_CHECK enum hr_err hr__column_source_infer(struct hr_infer *infer);
void hr__column_source_identity(const void *params, const void *state,
                                struct hr_hasher *hasher);
HR_CHECK enum hr_err hr__column_source_apply(struct hr_op_ctx *ctx);
uint32_t
hr__column_source_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows);
const char *hr__column_source_note(const void *state);
uint64_t hr__column_source_count(const void *params, const void *state);
const char *hr__column_source_key_name(const void *params, const void *state, size_t i);
HR_CHECK enum hr_err
hr__column_source_key(const void *params, const void *state, size_t i, uint64_t index,
                      struct hr_str *out, struct hr_error *error);
/* column_source.c, for column_rows.c: sets a value to the cell of a row. */
HR_CHECK enum hr_err
hr__column_source_value(struct hr_op_ctx *ctx, const struct hr_column_source *state,
                        struct hr_column_row *row, size_t at, struct hr_value *value);
/* For hr_op_source.locate. */
bool hr__column_source_place(const char *from, uint64_t at, char *uri, size_t room,
                             uint64_t *ret_offset);

#endif
