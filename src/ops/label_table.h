/*
 * ops/label_table.h - the labels file of a source: which columns are what, their fields,
 * and the values of a record.
 */
#ifndef HR_OPS_LABEL_TABLE_H
#define HR_OPS_LABEL_TABLE_H

#include "op/op.h"
#include "store/table.h"

struct hr_label_names {
    const char *path, *label; /* columns; label "": none */
    const char *const *more;  /* columns that become fields; "*": all */
    size_t more_count;
    const char *taken[3]; /* fields that the source makes itself */
    bool classes;         /* the names of the classes are given */
};

struct hr_label_table {
    struct hr_table table;          /* empty once an index has taken it over */
    int path, label;                /* columns; label -1: none */
    int more[HR_SCHEMA_FIELDS_MAX]; /* columns that become fields */
    size_t more_count;
};

/* Reads the file, chooses its columns and settles their types. Errors name file, line and
 * column. */
HR_CHECK enum hr_err
hr__label_table_read(const char *uri, const struct hr_label_names *names,
                     struct hr_label_table *ret_table, struct hr_error *error);
void hr__label_table_finish(struct hr_label_table *table);

/* While the table is there: column `i` of those that become fields. */
const struct hr_table_column *
hr__label_table_more(const struct hr_label_table *table, size_t i);

/* Whether the labels are names of classes. */
bool hr__label_table_has_classes(const struct hr_label_table *table);

/* Set the type of a field: of the labels, of a column. */
void hr__label_table_label(const struct hr_label_table *table, struct hr_field *field);
void hr__label_table_field(const struct hr_table_column *column, struct hr_field *field);

/* Sets a field's value from the record's row. */
HR_CHECK enum hr_err
hr__label_table_set(struct hr_op_ctx *ctx, const struct hr_table_column *column,
                    struct hr_value *value);
HR_CHECK enum hr_err
hr__label_table_set_text(struct hr_op_ctx *ctx, struct hr_value *value, const char *text,
                         size_t bytes);

/* Appends the cell of a record as text. */
void hr__label_table_text(const struct hr_table_column *column, uint64_t row,
                          struct hr_str *out);

/* Appends what was found, for people; `content` is the table, wherever it is now. */
void hr__label_table_note(const struct hr_label_table *table,
                          const struct hr_table *content, struct hr_str *out);

#endif
