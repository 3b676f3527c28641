/*
 * store/index_store.c - the index of a folder that is no local one: what its store lists,
 * chosen by the same pattern and labelled by the same rule.
 *
 * Objects have names and no folders, so there is nothing to walk in parallel and nothing
 * whose time could spare a list: the index is an array of names, and is not saved. A data
 * set has the same order, labels and identity here as in local folders, but for classes
 * without any object, which only folders can have.
 */
#include "core/error.h"
#include "store/index_list.h"
#include "store/store.h"
#include <string.h>

#define PROGRESS_EVERY 65536

struct gathering {
    const struct hr_index_options *options;
    const struct hr_index_pattern *pattern;
    struct hr_list_reading list;
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

static enum hr_err take_name(struct gathering *g, const char *name, size_t bytes)
{
    const char *slash = memchr(name, '/', bytes);
    struct hr_span class = {name, slash != NULL ? (size_t)(slash - name) : 0};
    bool labels = g->options->folder_labels;
    uint64_t states;
    size_t file;

    if (has_empty_part(name, bytes)) {
        g->skipped++;
        return HR_OK;
    }
    if (!enter_folders(g, name, bytes, &states, &file))
        return HR_OK;
    if (labels && slash != NULL) /* a folder is a class whatever files it has */
        HR_TRY(hr__list_add_class(&g->list, class));
    if (!hr__index_pattern_accepts(g->pattern, states, name + file, bytes - file))
        return HR_OK;
    if (labels && slash == NULL) {
        note_unlabelled(g, name, bytes);
        return HR_OK;
    }
    return hr__list_add_record(&g->list, (struct hr_span){name, bytes}, class, labels);
}

static bool gather(void *user, const char *name, size_t bytes, uint64_t size)
{
    struct gathering *g = user;
    const struct hr_index_options *options = g->options;

    (void)size;
    if (options->cancel != NULL && atomic_load(options->cancel))
        g->err = hr__fail(g->list.error, HR_ERR_CANCELLED, "cancelled while listing %s",
                          options->root);
    else
        g->err = take_name(g, name, bytes);
    if (options->progress != NULL && g->list.count % PROGRESS_EVERY == 1)
        options->progress(g->list.count, options->progress_user);
    return g->err == HR_OK;
}

enum hr_err hr__index_list_store(const struct hr_index_options *options,
                                 const struct hr_index_pattern *pattern,
                                 struct hr_index_list *ret_list, uint64_t *ret_skipped,
                                 struct hr_error *reterr)
{
    struct gathering g = {
        .options = options,
        .pattern = pattern,
        .list = {.path = options->root, .error = reterr, .texts = true},
    };
    enum hr_err err = hr__store_list(pattern->base, gather, &g, reterr);

    if (err == HR_OK)
        err = g.err;
    if (err == HR_OK && g.unlabelled > 0)
        err = hr__index_unlabelled(g.first_unlabelled, strlen(g.first_unlabelled),
                                   options->root, g.unlabelled, reterr);
    if (err == HR_OK)
        err = hr__list_hand_over(&g.list, ret_list);
    if (err == HR_OK)
        *ret_skipped = g.skipped;
    hr__list_free(&g.list);
    return err;
}
