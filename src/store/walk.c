/*
 * store/walk.c - see walk.h. A folder's names are sorted with a slash behind those of
 * folders, so that whole paths come in the order of their bytes.
 */
#include "store/walk.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define DEPTH_MAX 64 /* of folders; deeper is a link into itself */

struct name {
    char *text; /* a folder's ends with a slash */
    bool is_folder;
};
struct hr_walk_names {
    struct name *items;
    size_t count, room;
};
struct walk {
    hr_walk_read_fn *read;
    void *own;
    hr_store_visit_fn *visit;
    void *user;
    struct hr_error *error;
    bool stopped;
    int depth;
    size_t base_bytes;     /* of the path, up to the names that are given out */
    char path[HR_URI_MAX]; /* of the folder that is being read */
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static void free_names(struct hr_walk_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        hr__free(names->items[i].text);
    hr__free(names->items);
}

enum hr_err hr__walk_add(struct hr_walk_names *names, const char *text, bool is_folder)
{
    size_t bytes = strlen(text);
    struct name *items = names->items;

    if (names->count == names->room) {
        size_t room = names->room > 0 ? 2 * names->room : 64;

        items = hr__realloc(items, room * sizeof *items);
        if (items == NULL)
            return HR_ERR_MEMORY;
        names->items = items;
        names->room = room;
    }
    items += names->count;
    items->text = hr__malloc(bytes + 2);
    if (items->text == NULL)
        return HR_ERR_MEMORY;
    memcpy(items->text, text, bytes);
    memcpy(items->text + bytes, is_folder ? "/" : "", is_folder ? 2 : 1);
    items->is_folder = is_folder;
    names->count++;
    return HR_OK;
}

static enum hr_err read_names(struct walk *walk, struct hr_walk_names *names)
{
    enum hr_err err = walk->read(walk->own, walk->path, names, walk->error);

    if (err == HR_ERR_MEMORY)
        return hr__fail(walk->error, err, "out of memory while listing %s", walk->path);
    if (err == HR_OK)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return err;
}

static enum hr_err walk_folder(struct walk *walk);

/* Appends the name to the path, and visits the file or reads the folder. */
static enum hr_err walk_name(struct walk *walk, const struct name *name)
{
    size_t at = strlen(walk->path), bytes = strlen(name->text);
    enum hr_err err = HR_OK;

    if (at + bytes + 2 > sizeof walk->path)
        return hr__fail(walk->error, HR_ERR_LIMIT, "a path in %s is too long",
                        walk->path);
    if (at > 0 && walk->path[at - 1] != '/')
        walk->path[at++] = '/';
    memcpy(walk->path + at, name->text, bytes + 1);
    if (name->is_folder)
        err = walk_folder(walk);
    else
        walk->stopped = !walk->visit(walk->user, walk->path + walk->base_bytes,
                                     at + bytes - walk->base_bytes, HR_BYTES_UNKNOWN);
    walk->path[at] = '\0';
    return err;
}

static enum hr_err walk_folder(struct walk *walk)
{
    struct hr_walk_names names = {NULL, 0, 0};
    enum hr_err err;

    if (++walk->depth > DEPTH_MAX)
        return hr__fail(walk->error, HR_ERR_LIMIT, "over %d folders inside %s", DEPTH_MAX,
                        walk->path);
    err = read_names(walk, &names);
    for (size_t i = 0; err == HR_OK && i < names.count && !walk->stopped; i++)
        err = walk_name(walk, &names.items[i]);
    free_names(&names);
    walk->depth--;
    return err;
}

enum hr_err hr__walk(const char *path, hr_walk_read_fn *read, void *own,
                     hr_store_visit_fn *visit, void *user, struct hr_error *reterr)
{
    size_t bytes = strlen(path);
    struct walk *walk;
    enum hr_err err;

    if (bytes + 1 >= HR_URI_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "the path of a folder is too long");
    walk = hr__calloc(1, sizeof *walk);
    if (walk == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    *walk = (struct walk){
        .read = read, .own = own, .visit = visit, .user = user, .error = reterr};
    memcpy(walk->path, path, bytes + 1);
    walk->base_bytes = bytes + (bytes > 0 && path[bytes - 1] != '/');
    err = walk_folder(walk);
    hr__free(walk);
    return err;
}
