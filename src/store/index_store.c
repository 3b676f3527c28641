/*
 * store/index_store.c - the index of a folder that is no local one: what its store lists,
 * chosen by the same pattern and labelled by the same rule.
 *
 * Objects have names and no folders, so there is nothing to walk in parallel and nothing
 * whose time could spare a list: the index is an array of names, and is not saved. A data
 * set has the same order, labels and identity here as in local folders, but for classes
 * without any object, which only folders can have.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "store/index_internal.h"
#include "store/store.h"
#include <string.h>

#define PROGRESS_EVERY 65536

struct gathering {
    const struct hr_index_options *options;
    const struct hr_index_pattern *pattern;
    struct hr_table *table; /* path and label */
    struct hr_class_set *set;
    struct hr_error *error;
    uint64_t skipped, unlabelled;
    char first_unlabelled[256];
    enum hr_err err;
};

/* May the file be in the index by its folders? *ret_states is for its own name, which
 * begins at *ret_file. */
static bool enter_folders(const struct gathering *g, const char *name, size_t bytes,
                          uint64_t *ret_states, size_t *ret_file)
{
    uint64_t states = hr__index_pattern_start(g->pattern);
    size_t at = 0;

    for (size_t i = 0; i < bytes && states != 0; i++) {
        if (name[i] != '/')
            continue;
        states = hr__index_pattern_enter(g->pattern, states, name + at, i - at);
        at = i + 1;
    }
    *ret_states = states;
    *ret_file = at;
    return states != 0;
}

/* "/a", "a//b" and "a/" name no file that a path could name. */
static bool has_empty_part(const char *name, size_t bytes)
{
    return bytes == 0 || name[0] == '/' || name[bytes - 1] == '/' ||
           memmem(name, bytes, "//", 2) != NULL;
}

static void note_unlabelled(struct gathering *g, const char *name, size_t bytes)
{
    if (g->unlabelled++ > 0)
        return;
    bytes = bytes < sizeof g->first_unlabelled ? bytes : sizeof g->first_unlabelled - 1;
    memcpy(g->first_unlabelled, name, bytes);
    g->first_unlabelled[bytes] = '\0';
}

static enum hr_err
add_file(struct gathering *g, const char *name, size_t bytes, size_t class_bytes)
{
    struct hr_table_place nowhere = {0};

    if (!hr__table_add_row(g->table, 0) ||
        !hr__table_put(g->table, 0, name, bytes, HR_SEEN_TEXT, nowhere) ||
        (g->options->folder_labels &&
         !hr__table_put(g->table, 1, name, class_bytes, HR_SEEN_TEXT, nowhere)))
        return hr__fail(g->error, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static enum hr_err take_name(struct gathering *g, const char *name, size_t bytes)
{
    const char *slash = memchr(name, '/', bytes);
    size_t class_bytes = slash != NULL ? (size_t)(slash - name) : 0;
    bool labels = g->options->folder_labels;
    uint64_t states;
    size_t file;

    if (has_empty_part(name, bytes)) {
        g->skipped++;
        return HR_OK;
    }
    if (!enter_folders(g, name, bytes, &states, &file))
        return HR_OK;
    /* a folder is a class whatever files it has, unless the classes are given */
    if (labels && slash != NULL && g->options->class_count == 0 &&
        hr__class_add(g->set, name, class_bytes) < 0)
        return hr__fail(g->error, HR_ERR_MEMORY, "out of memory");
    if (!hr__index_pattern_accepts(g->pattern, states, name + file, bytes - file))
        return HR_OK;
    if (labels && slash == NULL) {
        note_unlabelled(g, name, bytes);
        return HR_OK;
    }
    return add_file(g, name, bytes, class_bytes);
}

static bool gather(void *user, const char *name, size_t bytes, uint64_t size)
{
    struct gathering *g = user;
    const struct hr_index_options *options = g->options;

    (void)size;
    if (options->cancel != NULL && atomic_load(options->cancel))
        g->err = hr__fail(g->error, HR_ERR_CANCELLED, "cancelled while listing %s",
                          options->root);
    else
        g->err = take_name(g, name, bytes);
    if (options->progress != NULL && g->table->rows % PROGRESS_EVERY == 1)
        options->progress(g->table->rows, options->progress_user);
    return g->err == HR_OK;
}

static enum hr_err begin(struct hr_index_list *list,
                         const struct hr_index_options *options, struct hr_error *error)
{
    struct hr_table *table = &list->table;
    struct hr_table_place nowhere = {0};

    list->label = options->folder_labels ? 1 : -1;
    table->path = hr__strdup(options->root);
    if (table->path == NULL || hr__table_add_column(table, "path", 4, nowhere) < 0 ||
        (options->folder_labels && hr__table_add_column(table, "label", 5, nowhere) < 0))
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < table->column_count; i++)
        HR_TRY(hr__table_use_text(table, (int)i, error));
    return HR_OK;
}

enum hr_err hr__index_list_store(const struct hr_index_options *options,
                                 const struct hr_index_pattern *pattern,
                                 struct hr_index_list *list, struct hr_class_set *set,
                                 uint64_t *ret_skipped, struct hr_error *reterr)
{
    struct gathering g = {
        .options = options,
        .pattern = pattern,
        .table = &list->table,
        .set = set,
        .error = reterr,
    };
    enum hr_err err = begin(list, options, reterr);

    if (err == HR_OK)
        err = hr__store_list(pattern->base, gather, &g, reterr);
    if (err == HR_OK)
        err = g.err;
    if (err == HR_OK && g.unlabelled > 0)
        err = hr__index_unlabelled(g.first_unlabelled, strlen(g.first_unlabelled),
                                   options->root, g.unlabelled, reterr);
    *ret_skipped = g.skipped;
    return err;
}
