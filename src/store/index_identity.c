/*
 * store/index_identity.c - the identity of a data set: one hash of all that a pipeline
 * can see of it.
 *
 * Paths, labels, class names and columns are hashed in order, each followed by a zero
 * byte and a number, so that different sets give different bytes. A list and a walk with
 * the same files and labels have the same identity. 1.28 million files take 25 ms.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "store/index_internal.h"
#include <string.h>

/* Collects bytes for the hasher, because paths are short. */
struct gather {
    struct hr_hasher *hasher;
    size_t bytes;
    char data[32768];
};

static void gather_flush(struct gather *gather)
{
    hr__hasher_add(gather->hasher, gather->data, gather->bytes);
    gather->bytes = 0;
}

/* A path, a NUL, its label: the bytes can be read in one way only. */
static void
gather_item(struct gather *gather, const char *text, size_t bytes, int64_t label)
{
    if (sizeof gather->data - gather->bytes < bytes + 1 + sizeof label)
        gather_flush(gather);
    if (bytes + 1 + sizeof label > sizeof gather->data) {
        hr__hasher_add(gather->hasher, text, bytes);
    } else {
        memcpy(gather->data + gather->bytes, text, bytes);
        gather->bytes += bytes;
    }
    gather->data[gather->bytes++] = '\0';
    memcpy(gather->data + gather->bytes, &label, sizeof label);
    gather->bytes += sizeof label;
}

static void gather_tree(struct gather *gather, const struct hr_index *index)
{
    char path[2 * HR_INDEX_PATH_MAX];

    for (size_t r = 0; r < index->run_count; r++) {
        const struct hr_index_run *run = &index->runs[r];
        size_t folder = hr__index_folder_path(run->folder, path, HR_INDEX_PATH_MAX);
        uint64_t count = run[1].start - run->start;

        if (folder == SIZE_MAX) /* cannot happen: the walk refuses such folders */
            continue;
        if (folder > 0)
            path[folder++] = '/';
        for (uint64_t i = 0; i < count; i++) {
            size_t name = hr__index_name(&run->folder->names, run->first + (uint32_t)i,
                                         path + folder);

            gather_item(gather, path, folder + name,
                        index->labels_count ? run->label : -1);
        }
    }
}

static void gather_list(struct gather *gather, const struct hr_index *index)
{
    for (uint64_t i = 0; i < index->count; i++) {
        size_t bytes;
        const char *path = hr__index_list_path(&index->list, i, &bytes);

        gather_item(gather, path, bytes, hr__index_label(index, i));
    }
}

/* The columns that paths and labels do not cover. */
static void gather_columns(struct gather *gather, const struct hr_index_list *list)
{
    for (size_t i = 0; i < list->table.column_count; i++) {
        const struct hr_table_column *column = &list->table.columns[i];
        bool label = (int)i == list->label &&
                     (column->type == HR_TABLE_INT || column->type == HR_TABLE_TEXT);

        if (!column->used || (int)i == list->path || label)
            continue;
        gather_item(gather, "", 0, (int64_t)column->type);
        for (size_t row = 0; row < column->cells; row++) {
            size_t bytes = 0;
            const char *text = "";
            int64_t number = 0;

            if (column->type == HR_TABLE_TEXT)
                text = hr__table_text(column, row, &bytes);
            else if (column->type == HR_TABLE_BOOL)
                number = ((const bool *)column->numbers)[row];
            else
                memcpy(&number, (const int64_t *)column->numbers + row, sizeof number);
            gather_item(gather, text, bytes, number);
        }
    }
}

enum hr_err hr__index_identify(struct hr_index *index, struct hr_error *reterr)
{
    struct gather *gather = hr__malloc(sizeof *gather);
    enum hr_err err = HR_ERR_MEMORY;

    if (gather == NULL)
        return hr__fail(reterr, err, "out of memory");
    gather->bytes = 0;
    gather->hasher = hr__hasher_create();
    if (gather->hasher == NULL)
        goto out;
    if (index->is_list)
        gather_list(gather, index);
    else
        gather_tree(gather, index);
    gather_item(gather, "", 0, (int64_t)index->count);
    for (size_t i = 0;
         (index->is_list || index->labels_count) && i < index->classes.count; i++)
        gather_item(gather, index->classes.names[i], strlen(index->classes.names[i]),
                    (int64_t)i);
    if (index->is_list)
        gather_columns(gather, &index->list);
    gather_flush(gather);
    index->identity = hr__hasher_value(gather->hasher);
    err = HR_OK;
out:
    if (err != HR_OK)
        hr__fail(reterr, err, "out of memory");
    hr__hasher_destroy(gather->hasher);
    hr__free(gather);
    return err;
}
