/*
 * ops/file_list.c - see file_list.h. Nothing is opened: a file that is not there is a bad
 * record, as one that is removed during a run.
 */
#include "ops/file_list.h"

#include <string.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"
#include "core/str.h"

static enum hr_err
wrong(struct hr_error *error, size_t at, const char *path, const char *what)
{
    return hr__fail(error, HR_ERR_ARGUMENT, "files: item %zu, \"%.200s\", %s", at + 1,
                    path, what);
}

static enum hr_err add_file(struct hr_table *table, size_t at, const char *path,
                            bool folder_labels, struct hr_error *error)
{
    const struct hr_table_place nowhere = {0};
    size_t bytes = strlen(path), folder = strcspn(path, "/");

    if (bytes == 0)
        return wrong(error, at, path, "is empty");
    if (path[0] == '/')
        return wrong(error, at, path, "begins with a slash: paths are relative to path");
    if (folder_labels && folder == bytes)
        return wrong(error, at, path,
                     "lies in no folder below path, and labels are folders");
    if (!hr__table_add_row(table, (int)(at < INT32_MAX ? at + 1 : 0)) ||
        !hr__table_put(table, HR_FILE_LIST_PATH, path, bytes, HR_SEEN_TEXT, nowhere) ||
        (folder_labels &&
         !hr__table_put(table, HR_FILE_LIST_LABEL, path, folder, HR_SEEN_TEXT, nowhere)))
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

enum hr_err hr__file_list_table(const struct hr_doc *list, bool folder_labels,
                                struct hr_table *ret_table, struct hr_error *error)
{
    const struct hr_table_place nowhere = {0};

    ret_table->path = hr__strdup("files");
    if (ret_table->path == NULL ||
        hr__table_add_column(ret_table, "path", 4, nowhere) < 0 ||
        (folder_labels && hr__table_add_column(ret_table, "label", 5, nowhere) < 0))
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < ret_table->column_count; i++)
        HR_TRY(hr__table_use_text(ret_table, (int)i, error));
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(add_file(ret_table, i, list->as.list.items[i]->as.string.text,
                        folder_labels, error));
    return HR_OK;
}
