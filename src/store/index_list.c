/*
 * store/index_list.c - listed files: a table with a column of paths, and one of labels.
 *
 * Labels that are numbers stay as they are; texts are class names, and a label is the
 * rank of its name, or its place among the given classes. A table that was written by
 * hand is compared with the files that are there: the names of both are hashed, and a
 * path that no folder listed is looked up by itself.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"
#include "store/index_internal.h"
#include "store/store.h"
#include <stdio.h>
#include <string.h>

static enum hr_err no_memory(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* ---- labels ---- */

enum hr_err
hr__index_given_classes(const struct hr_index_options *options, struct hr_class_set *set,
                        struct hr_classes *ret_classes, struct hr_error *reterr)
{
    for (size_t i = 0; i < options->class_count; i++) {
        const char *name = options->classes[i];
        int64_t number = hr__class_add(set, name, strlen(name));

        if (number < 0)
            return no_memory(reterr);
        if ((size_t)number < i)
            return hr__fail(reterr, HR_ERR_ARGUMENT, "classes: \"%s\" is given twice",
                            name);
    }
    if (hr__class_close(set, NULL, ret_classes) != HR_OK)
        return no_memory(reterr);
    return HR_OK;
}

void hr__index_class_tail(const struct hr_classes *classes, const char *wrong,
                          struct hr_str *out)
{
    const char *near = hr__nearest(wrong, classes->names, classes->count);

    hr__str_addf(out, "\"%s\" is not among the %zu given classes", wrong, classes->count);
    if (near != NULL)
        hr__str_addf(out, "; did you mean \"%s\"?", near);
    hr__str_add(out, classes->count > 0 ? ": " : "");
    for (size_t i = 0; i < classes->count && i < 8; i++)
        hr__str_addf(out, "%s\"%s\"", i > 0 ? ", " : "", classes->names[i]);
    hr__str_add(out, classes->count > 8 ? ", ..." : "");
}

static enum hr_err
unknown_class(const struct hr_index_list *list, size_t row, const char *text,
              size_t bytes, const struct hr_classes *classes, struct hr_error *reterr)
{
    struct hr_str what;
    char name[128];

    hr__str_init(&what);
    snprintf(name, sizeof name, "%.*s", (int)(bytes < 127 ? bytes : 127), text);
    hr__index_class_tail(classes, name, &what);
    hr__fail_in(reterr, HR_ERR_ARGUMENT, list->table.path, list->table.lines[row], 0,
                "class %s", hr__str_text(&what));
    hr__str_finish(&what);
    return HR_ERR_ARGUMENT;
}

static enum hr_err
number_labels(struct hr_index_list *list, const struct hr_index_options *options,
              struct hr_class_set *set, struct hr_classes *classes,
              struct hr_error *reterr)
{
    const struct hr_table_column *column = &list->table.columns[list->label];
    bool given = options->class_count > 0;
    uint32_t *ranks;
    enum hr_err err;

    list->labels = hr__malloc(list->table.rows * sizeof *list->labels + 1);
    if (list->labels == NULL)
        return no_memory(reterr);
    for (size_t row = 0; row < list->table.rows; row++) {
        size_t bytes;
        const char *text = hr__table_text(column, row, &bytes);
        int64_t number =
            given ? hr__class_find(set, text, bytes) : hr__class_add(set, text, bytes);

        if (number < 0)
            return given ? unknown_class(list, row, text, bytes, classes, reterr)
                         : no_memory(reterr);
        list->labels[row] = number;
    }
    if (given)
        return HR_OK;
    ranks = hr__malloc(set->count * sizeof *ranks + 1);
    err = ranks != NULL ? hr__class_close(set, ranks, classes) : HR_ERR_MEMORY;
    for (size_t row = 0; err == HR_OK && row < list->table.rows; row++)
        list->labels[row] = ranks[list->labels[row]];
    hr__free(ranks);
    return err == HR_OK ? HR_OK : no_memory(reterr);
}

enum hr_err
hr__index_list_labels(struct hr_index_list *list, const struct hr_index_options *options,
                      struct hr_class_set *set, struct hr_classes *classes,
                      struct hr_error *reterr)
{
    enum hr_err err = HR_OK;

    if (list->label < 0)
        return HR_OK;
    if (list->table.columns[list->label].type != HR_TABLE_TEXT) {
        if (options->class_count > 0)
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "classes are given, but the labels of %s are numbers",
                            list->table.path);
        return HR_OK;
    }
    if (options->class_count > 0)
        err = hr__index_given_classes(options, set, classes, reterr);
    if (err == HR_OK)
        err = number_labels(list, options, set, classes, reterr);
    return err;
}

/* ---- files that are there ---- */

struct match {
    const struct hr_index_options *options;
    struct hr_index_list *list;
    struct hr_error *error;
    uint64_t *slots; /* row + 1 by hash of the path; power of two */
    size_t slot_count;
    bool *found; /* by the first row with the path */
    bool *keep;  /* rows that stay */
    uint64_t unlisted, missing;
    char first_unlisted[256];
};

/* The path below root: "./a" is "a", and so is "/photos/a" below /photos. */
static const char *path_of(const struct match *m, size_t row, size_t *ret_bytes)
{
    const char *text = hr__index_list_path(m->list, row, ret_bytes);
    const char *root = m->options->root;
    size_t skip = text[0] == '/' ? strlen(root) : 0;

    if (skip > 0 && *ret_bytes > skip + 1 && memcmp(text, root, skip) == 0 &&
        (text[skip] == '/' || root[skip - 1] == '/')) {
        skip += text[skip] == '/';
        text += skip;
        *ret_bytes -= skip;
    }
    while (*ret_bytes > 2 && text[0] == '.' && text[1] == '/') {
        text += 2;
        *ret_bytes -= 2;
    }
    return text;
}

/* The slot of the path, or the free one where it belongs. */
static uint64_t *slot_of(const struct match *m, const char *path, size_t bytes)
{
    for (uint64_t at = hr__hash64(path, bytes, 0);; at++) {
        uint64_t *slot = &m->slots[at & (m->slot_count - 1)];
        const char *other;
        size_t other_bytes;

        if (*slot == 0)
            return slot;
        other = path_of(m, *slot - 1, &other_bytes);
        if (other_bytes == bytes && memcmp(other, path, bytes) == 0)
            return slot;
    }
}

static enum hr_err begin_match(struct match *m)
{
    size_t rows = m->list->table.rows;

    for (m->slot_count = 64; m->slot_count < rows * 2;)
        m->slot_count *= 2;
    m->slots = hr__calloc(m->slot_count, sizeof *m->slots);
    m->found = hr__calloc(rows + 1, sizeof *m->found);
    m->keep = hr__calloc(rows + 1, sizeof *m->keep);
    if (m->slots == NULL || m->found == NULL || m->keep == NULL)
        return no_memory(m->error);
    for (size_t row = 0; row < rows; row++) {
        size_t bytes;
        const char *path = path_of(m, row, &bytes);
        uint64_t *slot = slot_of(m, path, bytes);

        if (*slot == 0)
            *slot = row + 1;
    }
    return HR_OK;
}

static enum hr_err match_files(struct match *m)
{
    struct hr_index_options walk = *m->options;
    struct hr_index *index = NULL;
    char path[2 * HR_INDEX_PATH_MAX];
    size_t bytes;
    enum hr_err err;

    walk.table = NULL;
    walk.class_count = 0;
    err = hr__index_open(&walk, &index, m->error);
    if (err == HR_ERR_NOT_FOUND)
        return HR_OK;
    for (uint64_t i = 0; err == HR_OK && i < hr__index_count(index); i++) {
        uint64_t slot;

        err = hr__index_path(index, i, path, sizeof path, &bytes);
        if (err != HR_OK)
            break;
        slot = *slot_of(m, path + index->prefix_bytes, bytes - index->prefix_bytes);
        if (slot != 0)
            m->found[slot - 1] = true;
        else if (m->unlisted++ == 0)
            snprintf(m->first_unlisted, sizeof m->first_unlisted, "%s",
                     path + index->prefix_bytes);
    }
    hr__index_unref(index);
    return err;
}

/* Whether the file of a row is there, although no folder listed it. */
static enum hr_err look_up(struct match *m, size_t row, bool *ret_there)
{
    char path[2 * HR_INDEX_PATH_MAX];
    const char *root = m->options->root;
    size_t bytes, length = strlen(root);
    const char *text = hr__index_list_path(m->list, row, &bytes);
    struct hr_object object;
    enum hr_err err;

    snprintf(path, sizeof path, "%s%s%.*s", text[0] == '/' ? "" : root,
             text[0] == '/' || length == 0 || root[length - 1] == '/' ? "" : "/",
             (int)bytes, text);
    err = hr__store_open(path, &object, m->error);
    if (err == HR_OK)
        hr__store_close(&object);
    *ret_there = err == HR_OK;
    if (err != HR_ERR_NOT_FOUND)
        return err;
    if (m->options->skip_missing)
        return HR_OK;
    return hr__fail_in(m->error, HR_ERR_NOT_FOUND, m->list->table.path,
                       m->list->table.lines[row], 0,
                       "there is no file %s: correct the path, which is relative to %s, "
                       "or let such lines be skipped (skip: missing)",
                       path, root);
}

static enum hr_err match_rows(struct match *m)
{
    for (size_t row = 0; row < m->list->table.rows; row++) {
        size_t bytes;
        const char *path = path_of(m, row, &bytes);
        uint64_t first = *slot_of(m, path, bytes) - 1;

        if (!m->found[first])
            HR_TRY(look_up(m, row, &m->found[first]));
        m->keep[row] = m->found[first];
        m->missing += !m->keep[row];
    }
    if (m->unlisted > 0 && !m->options->skip_unlisted)
        return hr__fail(m->error, HR_ERR_NOT_FOUND,
                        "%s in %s has no line in %s (%llu such files): add it, or let "
                        "such files be skipped (skip: unlisted)",
                        m->first_unlisted, m->options->root, m->list->table.path,
                        (unsigned long long)m->unlisted);
    return HR_OK;
}

enum hr_err
hr__index_list_match(struct hr_index_list *list, const struct hr_index_options *options,
                     struct hr_index_stats *stats, struct hr_error *reterr)
{
    struct match m = {.options = options, .list = list, .error = reterr};
    enum hr_err err = begin_match(&m);

    if (err == HR_OK)
        err = match_files(&m);
    if (err == HR_OK)
        err = match_rows(&m);
    if (err == HR_OK && m.missing > 0)
        hr__table_keep(&list->table, m.keep);
    stats->unlisted = m.unlisted;
    stats->missing = m.missing;
    hr__free(m.slots);
    hr__free(m.found);
    hr__free(m.keep);
    return err;
}

/* ---- paths ---- */

enum hr_err
hr__index_list_check(const struct hr_index_list *list, struct hr_error *reterr)
{
    for (size_t row = 0; row < list->table.rows; row++) {
        size_t bytes;

        (void)hr__index_list_path(list, row, &bytes);
        if (bytes == 0 || bytes >= HR_INDEX_PATH_MAX)
            return hr__fail_in(reterr, HR_ERR_FORMAT, list->table.path,
                               list->table.lines[row], 0, "the path is %s",
                               bytes == 0 ? "empty" : "too long");
    }
    return HR_OK;
}

const char *
hr__index_list_path(const struct hr_index_list *list, uint64_t at, size_t *ret_bytes)
{
    return hr__table_text(&list->table.columns[list->path], at, ret_bytes);
}

void hr__index_list_finish(struct hr_index_list *list)
{
    hr__table_finish(&list->table);
    hr__free(list->labels);
    list->labels = NULL;
}
