/*
 * ops/file_list.h - files that a parameter lists, as a table for their index.
 */
#ifndef HR_OPS_FILE_LIST_H
#define HR_OPS_FILE_LIST_H

#include "store/table.h"

struct hr_doc;

/* Columns of the table. */
enum { HR_FILE_LIST_PATH, HR_FILE_LIST_LABEL };

/* Fills an empty table with a row for each text of `list`, in order: its path, and with
 * `folder_labels` its first folder. HR_ERR_ARGUMENT names a path that is empty, absolute,
 * or in no folder. Free with hr__table_finish, also after failure. */
HR_CHECK enum hr_err
hr__file_list_table(const struct hr_doc *list, bool folder_labels,
                    struct hr_table *ret_table, struct hr_error *error);

#endif
