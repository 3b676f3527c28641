/*
 * ops/row_source.h - what source.jsonl and source.csv share: which columns become fields,
 * their types, and the values of a row.
 *
 * Types that are not declared follow from all rows, which are read once when the graph is
 * checked. Rows that cannot be parsed, and values that are missing, do not count there:
 * they are bad records when they are read.
 */
#ifndef HR_OPS_ROW_SOURCE_H
#define HR_OPS_ROW_SOURCE_H

#include "ops/shard_source.h"
#include "store/table.h"

struct hr_row_params { /* the parameters of such a source begin with them */
    const char *path;
    struct hr_names columns;
    struct hr_pairs types;
    int64_t max_bytes;
    struct hr_shard_params shards;
};
#define HR_P_ROW_COLUMNS                                                                 \
    HR_P_STRINGS(                                                                        \
        struct hr_row_params, columns, .fallback = "[\"*\"]", .items_min = 1,            \
        .items_max = HR_LIST_MAX,                                                        \
        .help = "the columns that become fields, by name; * stands for all, of JSON "    \
                "for the keys of the first row, and those that types names")
#define HR_P_ROW_TYPES                                                                   \
    HR_P_MAP(struct hr_row_params, types, .items_min = 0, .items_max = HR_LIST_MAX,      \
             .fallback = "{}",                                                           \
             .help = "column: its type (int64, float64, bool, text, json), and perhaps " \
                     "what a missing value becomes: {label: int64, score: \"float64 = "  \
                     "0\", note: \"text =\"}; default: inferred from all rows")
#define HR_P_ROW_MAX_BYTES                                                               \
    HR_P_BYTES(struct hr_row_params, max_bytes, .fallback = "64MiB",                     \
               HR_RANGE(1, 1 << 30), .unit = "bytes",                                    \
               .help = "a longer record is bad, and is not read")

struct hr_row_column {
    char name[HR_FIELD_NAME_MAX + 1];
    enum hr_table_type type;
    bool declared, has_default;
    const char *text; /* the default; the parameter's */
    int64_t number;   /* as a value of the type; for bool its first byte */
};

/* A value of a row. `column` is the source's; `at` is its byte in the row, from 0. */
struct hr_row_cell {
    size_t column, at, bytes;
    const char *text; /* valid during the call */
    unsigned seen;
};
struct hr_row_source;
typedef enum hr_err hr_row_cell_fn(void *user, const struct hr_row_cell *cell);

/* What differs between formats. */
struct hr_row_format {
    bool json;
    /* Calls `each` for the cells of the source's columns. When the row is malformed,
     * HR_ERR_FORMAT: *ret_at is the byte, *reterr's message what is wrong there. `thread`
     * is NULL while types are inferred. */
    enum hr_err (*parse)(const struct hr_row_source *source, struct hr_thread *thread,
                         const char *row, size_t bytes, hr_row_cell_fn *each, void *user,
                         size_t *ret_at, struct hr_error *reterr);
};

struct hr_row_source { /* the state of such a source begins with it */
    struct hr_shard_source source;
    const struct hr_row_format *format;
    const char *path; /* the parameter's, for messages */
    size_t count;
    struct hr_row_column columns[HR_SCHEMA_FIELDS_MAX];
    struct hr_str note;
};

/* Chooses the columns. `names` are those that the files have, or NULL: then they are
 * found while the rows are read (JSON). The index is open; `table`, which is zeroed
 * before and finished by the caller, holds what is seen. */
HR_CHECK enum hr_err
hr__row_source_choose(struct hr_row_source *source, const struct hr_row_params *params,
                      char *const *names, size_t name_count, struct hr_table *table,
                      struct hr_error *error);
/* Settles the types that are not declared; `parse` knows the columns by now. */
HR_CHECK enum hr_err hr__row_source_types(struct hr_row_source *source,
                                          struct hr_table *table, struct hr_error *error);
void hr__row_source_finish(struct hr_row_source *source); /* does not free it */

/* The column of this name; -1. `probable` is tried first. */
int hr__row_source_column(const struct hr_row_source *source, const char *name,
                          size_t bytes, size_t probable);

/* hr_op hooks */
HR_CHECK enum hr_err
hr__row_source_binds(const void *params, const void *state, const struct hr_schema *input,
                     struct hr_bindings *bindings, struct hr_error *error);
HR_CHECK enum hr_err hr__row_source_infer(struct hr_infer *infer);
HR_CHECK enum hr_err hr__row_source_open(const struct hr_open *open, void **ret_state);
HR_CHECK enum hr_err hr__row_source_apply(struct hr_op_ctx *ctx);
const char *hr__row_source_note(const void *state);
const char *hr__row_source_key_name(const void *params, const void *state, size_t i);
HR_CHECK enum hr_err
hr__row_source_key(const void *params, const void *state, size_t i, uint64_t index,
                   struct hr_str *out, struct hr_error *error);
#define HR_ROW_SOURCE                                                                    \
    {                                                                                    \
        .note = hr__row_source_note, .count = hr__shard_source_count,                    \
        .locate = hr__shard_source_locate, .ahead = hr__shard_source_ahead,              \
        .size = hr__shard_source_size, .key_name = hr__row_source_key_name,              \
        .key = hr__row_source_key                                                        \
    }

#endif
