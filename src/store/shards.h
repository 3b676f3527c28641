/*
 * store/shards.h - the names of a data set's shards, and reading what tells them apart.
 */
#ifndef HR_STORE_SHARDS_H
#define HR_STORE_SHARDS_H

#include "core/error.h"
#include "core/hash.h"

#define HR_SHARDS_MAX ((size_t)1 << 20)

struct hr_shards {
    char **uris;
    size_t count, room;
};

/*
 * Finds the shards that `pattern` means, in order: braces first, "{000..099}" (as many
 * digits as the first bound has) and "{train,extra}"; what comes of each is a file, or
 * else a pattern as in store/index.h, or a folder, whose files with this ending (".tar")
 * are taken, and with `packed` those that have .gz or .zst after it (of ".tar" also .tgz
 * and .tzst). *ret_shards is zeroed by the caller, who ends with
 * hr__shards_finish(), also after a failure. HR_ERR_NOT_FOUND, HR_ERR_ARGUMENT for
 * malformed braces, HR_ERR_LIMIT, HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__shards_find(const char *pattern, const char *ending, bool packed,
                struct hr_shards *ret_shards, struct hr_error *reterr);
/* The same for a format whose files have one of two endings: those with the first one, or
 * else those with the second. They are not compressed. */
HR_CHECK enum hr_err
hr__shards_find_either(const char *pattern, const char *first, const char *second,
                       struct hr_shards *ret_shards, struct hr_error *reterr);
void hr__shards_finish(struct hr_shards *shards);

/* A zeroed item of `bytes` bytes for each shard. The first member of an item is
 * `const char *uri`, which is the shard's, and valid as long as that. The caller frees
 * the array; NULL: out of memory. */
void *
hr__shards_items(const struct hr_shards *shards, size_t bytes, struct hr_error *reterr);

/* Reads shard `at`, which the window has open, and hashes what a sample may not tell. */
struct hr_window;
typedef enum hr_err hr_shard_read_fn(void *user, size_t at, struct hr_window *window,
                                     struct hr_hasher *hasher, struct hr_error *reterr);

/* Reads all shards, one after the other. *ret_identity is of what was hashed and of the
 * first, middle and last 64 KiB of each, which stand for contents without a checksum. */
HR_CHECK enum hr_err
hr__shards_read(const struct hr_shards *shards, hr_shard_read_fn *read, void *user,
                struct hr_hash128 *ret_identity, struct hr_error *reterr);

#endif
