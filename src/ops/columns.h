/*
 * ops/columns.h - which columns of files become fields: what source.arrow and
 * source.parquet share before rows are read.
 */
#ifndef HR_OPS_COLUMNS_H
#define HR_OPS_COLUMNS_H

#include "codec/arrow.h"
#include "op/param.h"
#include "op/schema.h"
#include "op/value.h"
#include "store/window.h"

struct hr_columns {
    struct hr_arrow_column items[HR_SCHEMA_FIELDS_MAX];
    size_t count;
    const char *uri; /* of the file that they were chosen in */
};

/* Finds the columns among the leaves of a file; ret_leaves[i] is the leaf of column i.
 * The first file decides which they are: names, "struct.child", a struct's for all of its
 * children, or "*". `uri` outlives *columns. HR_ERR_ARGUMENT, HR_ERR_UNSUPPORTED,
 * HR_ERR_LIMIT, HR_ERR_FORMAT without columns, HR_ERR_TYPE if the types are not those of
 * the first file. */
HR_CHECK enum hr_err
hr__columns_find(struct hr_columns *columns, const struct hr_names *names,
                 const char *uri, const struct hr_arrow_leaf *leaves, size_t leaf_count,
                 size_t ret_leaves[HR_SCHEMA_FIELDS_MAX], struct hr_error *reterr);

/* Maps the object of the window, the file `at` of all, unless it is remote or empty, or
 * there are very many; sets both results if it does. */
HR_CHECK enum hr_err
hr__columns_map(const struct hr_window *window, size_t at, struct hr_store_map *ret_map,
                bool *ret_mapped, struct hr_error *reterr);

/* Whether the column's cells can be keys (struct hr_keys): numbers and texts. */
static inline bool hr__columns_is_key(const struct hr_arrow_column *column)
{
    return column->is_text ||
           (column->kind == HR_ARROW_NUMBER && hr__has_number_text(column->dtype));
}

/* Appends a cell that is not null as a key, of such a column. HR_ERR_RANGE as
 * hr__arrow_elements(). */
HR_CHECK enum hr_err
hr__columns_key(const struct hr_arrow_column *column, const struct hr_arrow_cell *cell,
                struct hr_str *out, struct hr_error *reterr);

#endif
