/*
 * ops/columns.c - see columns.h.
 */
#include "ops/columns.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"

struct find {
    struct hr_columns *columns;
    const char *uri;
    const struct hr_arrow_leaf *leaves;
    size_t leaf_count;
    struct hr_error *error;
};

static enum hr_err unknown_column(const struct find *find, const char *name)
{
    const char **names = hr__calloc(find->leaf_count + 1, sizeof *names);
    const char *near = NULL;
    struct hr_str all;

    hr__str_init(&all);
    for (size_t i = 0; names != NULL && i < find->leaf_count; i++) {
        names[i] = find->leaves[i].column.name;
        hr__str_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    if (names != NULL)
        near = hr__nearest(name, names, find->leaf_count);
    memcpy(find->error->param, "columns", sizeof "columns");
    hr__fail(find->error, HR_ERR_ARGUMENT,
             "%s: no column is called \"%.80s\"%s%s%s; the columns are %.400s", find->uri,
             name, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
             near != NULL ? "\"?" : "",
             find->leaf_count > 0 ? hr__str_text(&all) : "none");
    hr__str_finish(&all);
    hr__free(names);
    return HR_ERR_ARGUMENT;
}

static size_t find_leaf(const struct find *find, const char *name)
{
    size_t i = 0;

    while (i < find->leaf_count && strcmp(find->leaves[i].column.name, name) != 0)
        i++;
    return i;
}

static bool is_twice(const struct find *find, const struct hr_arrow_leaf *leaf)
{
    for (size_t i = 0; i < find->leaf_count; i++)
        if (&find->leaves[i] != leaf &&
            strcmp(find->leaves[i].column.name, leaf->column.name) == 0)
            return true;
    return false;
}

static enum hr_err check_leaf(const struct find *find, const struct hr_arrow_leaf *leaf)
{
    const char *why = leaf->bad_name ? "has a name that is empty, too long or not UTF-8"
                      : leaf->reason != NULL ? leaf->reason
                      : is_twice(find, leaf) ? "there more than once"
                                             : NULL;

    if (why == NULL)
        return HR_OK;
    memcpy(find->error->param, "columns", sizeof "columns");
    return hr__fail(find->error, HR_ERR_UNSUPPORTED,
                    "%s: column \"%s\" %s%s, which cannot be a field: choose others "
                    "with columns",
                    find->uri, leaf->column.name, leaf->bad_name ? "" : "is ", why);
}

static enum hr_err add_column(const struct find *find, const struct hr_arrow_leaf *leaf)
{
    struct hr_columns *columns = find->columns;

    HR_TRY(check_leaf(find, leaf));
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->items[i].name, leaf->column.name) == 0)
            return HR_OK;
    if (columns->count == HR_SCHEMA_FIELDS_MAX)
        return hr__fail(find->error, HR_ERR_LIMIT,
                        "%s: more columns than a record can have fields (%d): choose "
                        "with columns",
                        find->uri, HR_SCHEMA_FIELDS_MAX);
    columns->items[columns->count++] = leaf->column;
    return HR_OK;
}

/* Of the first file. */
static enum hr_err choose(const struct find *find, const struct hr_names *names)
{
    for (int i = 0; i < names->count; i++) {
        const char *name = names->values[i];
        size_t bytes = strlen(name);
        bool all = strcmp(name, "*") == 0, found = all;

        for (size_t k = 0; k < find->leaf_count; k++) {
            const char *own = find->leaves[k].column.name;

            if (!all && strcmp(own, name) != 0 &&
                (strncmp(own, name, bytes) != 0 || own[bytes] != '.'))
                continue;
            HR_TRY(add_column(find, &find->leaves[k]));
            found = true;
        }
        if (!found)
            return unknown_column(find, name);
    }
    find->columns->uri = find->uri;
    return find->columns->count > 0
               ? HR_OK
               : hr__fail(find->error, HR_ERR_FORMAT, "%s: it has no columns", find->uri);
}

static bool is_same_type(const struct hr_arrow_column *a, const struct hr_arrow_column *b)
{
    return a->kind == b->kind && a->is_text == b->is_text && a->dtype == b->dtype &&
           a->size == b->size && a->unit == b->unit && a->is_large == b->is_large &&
           a->width == b->width && a->has_dictionary == b->has_dictionary &&
           a->index_width == b->index_width;
}

enum hr_err
hr__columns_find(struct hr_columns *columns, const struct hr_names *names,
                 const char *uri, const struct hr_arrow_leaf *leaves, size_t leaf_count,
                 size_t ret_leaves[HR_SCHEMA_FIELDS_MAX], struct hr_error *reterr)
{
    struct find find = {columns, uri, leaves, leaf_count, reterr};

    if (columns->count == 0)
        HR_TRY(choose(&find, names));
    for (size_t i = 0; i < columns->count; i++) {
        size_t at = find_leaf(&find, columns->items[i].name);

        if (at == leaf_count)
            return unknown_column(&find, columns->items[i].name);
        HR_TRY(check_leaf(&find, &leaves[at]));
        if (!is_same_type(&columns->items[i], &leaves[at].column))
            return hr__fail(reterr, HR_ERR_TYPE,
                            "%s: column \"%s\" has another type than in %s", uri,
                            columns->items[i].name, columns->uri);
        ret_leaves[i] = at;
    }
    return HR_OK;
}

#define MAPS_MAX 4096 /* files that are mapped */

enum hr_err
hr__columns_map(const struct hr_window *window, size_t at, struct hr_store_map *ret_map,
                bool *ret_mapped, struct hr_error *reterr)
{
    struct hr_store_map map = {0};
    const char *path;

    if (at >= MAPS_MAX || window->object->bytes == 0 ||
        hr__store_is_remote(window->uri, &path))
        return HR_OK;
    HR_TRY(hr__store_map(window->uri, &map, reterr));
    if (map.bytes != window->object->bytes) {
        hr__store_unmap(&map);
        return hr__fail(reterr, HR_ERR_STATE, "%s changed while it was opened",
                        window->uri);
    }
    *ret_map = map;
    *ret_mapped = true;
    return HR_OK;
}

enum hr_err
hr__columns_key(const struct hr_arrow_column *column, const struct hr_arrow_cell *cell,
                struct hr_str *out, struct hr_error *reterr)
{
    int64_t number; /* of any dtype */

    assert(hr__columns_is_key(column) && !cell->is_null);
    if (column->kind == HR_ARROW_NUMBER) {
        HR_TRY(hr__arrow_elements(column, cell, &number, reterr));
        hr__number_text(out, column->dtype, &number);
    } else if (cell->bytes > 0) {
        hr__str_add_bytes(out, cell->data, (size_t)cell->bytes);
    }
    return HR_OK;
}
