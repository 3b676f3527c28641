/*
 * store/shards.c - the names of a data set's shards.
 */
#include "store/shards.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/index.h"
#include "store/store.h"
#include "store/window.h"

#define ENDINGS_MAX 5
#define SAMPLE_BYTES ((uint64_t)64 << 10)

struct find {
    const char *pattern;
    const char *endings[ENDINGS_MAX];
    size_t ending_count;
    struct hr_shards *shards;
    struct hr_error *error;
};

static enum hr_err add(struct find *find, const char *uri)
{
    struct hr_shards *shards = find->shards;
    size_t room = shards->room > 0 ? 2 * shards->room : 16;
    char **uris = shards->uris;

    if (shards->count == HR_SHARDS_MAX)
        return hr__fail(find->error, HR_ERR_LIMIT, "%s means more than %zu shards",
                        find->pattern, HR_SHARDS_MAX);
    if (shards->count == shards->room) {
        uris = hr__realloc(uris, room * sizeof *uris);
        if (uris == NULL)
            return hr__fail(find->error, HR_ERR_MEMORY, "out of memory");
        shards->uris = uris;
        shards->room = room;
    }
    uris[shards->count] = hr__strdup(uri);
    if (uris[shards->count] == NULL)
        return hr__fail(find->error, HR_ERR_MEMORY, "out of memory");
    shards->count++;
    return HR_OK;
}

/* The files of a folder that have the ending, or those of a pattern. */
static enum hr_err add_files(struct find *find, const char *root)
{
    struct hr_index_options options = {
        .root = root,
        .suffixes = find->endings,
        .suffix_count = strpbrk(root, "*?[") == NULL ? find->ending_count : 0,
        .recursive = true};
    char path[HR_URI_MAX];
    struct hr_index *index;
    enum hr_err code;

    HR_TRY(hr__index_open(&options, &index, find->error));
    code = HR_OK;
    for (uint64_t i = 0; i < hr__index_count(index) && code == HR_OK; i++) {
        code = hr__index_path(index, i, path, sizeof path, NULL);
        if (code == HR_OK)
            code = add(find, path);
        else
            hr__fail(find->error, code, "the path of a file below %s is too long", root);
    }
    hr__index_unref(index);
    return code;
}

static enum hr_err add_any(struct find *find, const char *name)
{
    struct hr_object object;
    struct hr_error error = {0};
    enum hr_err err = hr__store_open(name, &object, &error);

    if (err == HR_OK) {
        hr__store_close(&object);
        return add(find, name);
    }
    if (hr__store_has_lists(name)) /* a folder or a pattern */
        return add_files(find, name);
    if (find->error != NULL)
        *find->error = error;
    return err;
}

static enum hr_err expand(struct find *find, const char *text, int depth);

/* Goes on with `text` where its braces, from `open` to `close`, are replaced. */
static enum hr_err replace(struct find *find, const char *text, const char *open,
                           const char *close, const char *by, size_t by_bytes, int depth)
{
    char next[HR_URI_MAX];
    size_t head = (size_t)(open - text), tail = strlen(close + 1);

    if (head + by_bytes + tail >= sizeof next)
        return hr__fail(find->error, HR_ERR_LIMIT, "%s: a name is too long",
                        find->pattern);
    memcpy(next, text, head);
    memcpy(next + head, by, by_bytes);
    memcpy(next + head + by_bytes, close + 1, tail + 1);
    return expand(find, next, depth + 1);
}

/* Digits before `end`; *ret_bytes is 0 if there are none, or too many. */
static uint64_t read_digits(const char *at, const char *end, size_t *ret_bytes)
{
    uint64_t number = 0;
    size_t bytes = 0;

    for (; at + bytes < end && at[bytes] >= '0' && at[bytes] <= '9'; bytes++)
        number = number * 10 + (uint64_t)(at[bytes] - '0');
    *ret_bytes = bytes <= 18 ? bytes : 0;
    return number;
}

/* "000..099" between the braces. */
static bool is_range(const char *open, const char *close, uint64_t *ret_first,
                     uint64_t *ret_last, size_t *ret_width)
{
    size_t last;

    *ret_first = read_digits(open + 1, close, ret_width);
    if (*ret_width == 0 || strncmp(open + 1 + *ret_width, "..", 2) != 0)
        return false;
    *ret_last = read_digits(open + 3 + *ret_width, close, &last);
    return last > 0 && open + 3 + *ret_width + last == close;
}

static enum hr_err expand_range(struct find *find, const char *text, const char *open,
                                const char *close, int depth)
{
    uint64_t first, last;
    size_t width;
    char number[32];

    if (!is_range(open, close, &first, &last, &width) || first > last)
        return hr__fail(find->error, HR_ERR_ARGUMENT,
                        "%s: \"%.*s\" is neither a range such as {000..099} nor a list "
                        "such as {a,b}",
                        find->pattern, (int)(close + 1 - open), open);
    for (uint64_t i = first; i <= last; i++) {
        int bytes =
            snprintf(number, sizeof number, "%0*llu", (int)width, (unsigned long long)i);

        HR_TRY(replace(find, text, open, close, number, (size_t)bytes, depth));
    }
    return HR_OK;
}

static enum hr_err expand(struct find *find, const char *text, int depth)
{
    const char *open = strchr(text, '{'), *close, *at, *comma;

    if (open == NULL)
        return add_any(find, text);
    close = strchr(open, '}');
    if (close == NULL || depth > 8)
        return hr__fail(find->error, HR_ERR_ARGUMENT,
                        close == NULL ? "%s: a brace is not closed"
                                      : "%s: more than eight pairs of braces",
                        find->pattern);
    if (memchr(open, ',', (size_t)(close - open)) == NULL)
        return expand_range(find, text, open, close, depth);
    for (at = open + 1;; at = comma + 1) {
        comma = memchr(at, ',', (size_t)(close - at));
        HR_TRY(replace(find, text, open, close, at,
                       (size_t)((comma != NULL ? comma : close) - at), depth));
        if (comma == NULL)
            return HR_OK;
    }
}

enum hr_err hr__shards_find(const char *pattern, const char *ending, bool packed,
                            struct hr_shards *ret_shards, struct hr_error *reterr)
{
    struct find find = {.pattern = pattern,
                        .endings = {ending},
                        .ending_count = 1,
                        .shards = ret_shards,
                        .error = reterr};
    char gz[32], zst[32];
    struct hr_object object;

    if (packed) {
        snprintf(gz, sizeof gz, "%s.gz", ending);
        snprintf(zst, sizeof zst, "%s.zst", ending);
        find.endings[find.ending_count++] = gz;
        find.endings[find.ending_count++] = zst;
    }
    if (packed && strcmp(ending, ".tar") == 0) {
        find.endings[find.ending_count++] = ".tgz";
        find.endings[find.ending_count++] = ".tzst";
    }

    if (strchr(pattern, '{') != NULL && /* a name may have braces */
        hr__store_open(pattern, &object, NULL) == HR_OK) {
        hr__store_close(&object);
        return add(&find, pattern);
    }
    return expand(&find, pattern, 0);
}

enum hr_err
hr__shards_find_either(const char *pattern, const char *first, const char *second,
                       struct hr_shards *ret_shards, struct hr_error *reterr)
{
    enum hr_err code = hr__shards_find(pattern, first, false, ret_shards, reterr);

    if (code == HR_ERR_NOT_FOUND &&
        hr__shards_find(pattern, second, false, ret_shards, NULL) == HR_OK)
        code = HR_OK;
    return code;
}

void hr__shards_finish(struct hr_shards *shards)
{
    for (size_t i = 0; i < shards->count; i++)
        hr__free(shards->uris[i]);
    hr__free(shards->uris);
    *shards = (struct hr_shards){0};
}

void *
hr__shards_items(const struct hr_shards *shards, size_t bytes, struct hr_error *reterr)
{
    char *items = hr__calloc(shards->count, bytes);

    if (items == NULL)
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory for %zu files", shards->count);
    for (size_t i = 0; items != NULL && i < shards->count; i++)
        memcpy(items + i * bytes, &shards->uris[i], sizeof shards->uris[i]);
    return items;
}

static enum hr_err
add_sample(struct hr_window *window, struct hr_hasher *hasher, struct hr_error *reterr)
{
    uint64_t size = window->object->bytes;
    uint64_t bytes = size < SAMPLE_BYTES ? size : SAMPLE_BYTES;
    uint64_t at[] = {0, (size - bytes) / 2, size - bytes};

    for (size_t i = 0; i < 3; i++) {
        const void *data;

        HR_TRY(hr__window_get(window, at[i], (size_t)bytes, &data, reterr));
        hr__hasher_add(hasher, data, (size_t)bytes);
    }
    return HR_OK;
}

enum hr_err
hr__shards_read(const struct hr_shards *shards, hr_shard_read_fn *read, void *user,
                struct hr_hash128 *ret_identity, struct hr_error *reterr)
{
    struct hr_window *window = hr__calloc(1, sizeof *window);
    struct hr_hasher *hasher = hr__hasher_create();
    enum hr_err code = HR_OK;

    if (window == NULL || hasher == NULL)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; code == HR_OK && i < shards->count; i++) {
        code = hr__window_open(window, shards->uris[i], reterr);
        if (code == HR_OK)
            code = read(user, i, window, hasher, reterr);
        if (code == HR_OK)
            code = add_sample(window, hasher, reterr);
    }
    if (code == HR_OK)
        *ret_identity = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    if (window != NULL)
        hr__window_finish(window);
    hr__free(window);
    return code;
}
