/*
 * store/shard_index.h - where the records of a data set lie that is packed into shards.
 *
 * An index is made once, by a format's scan of every shard, and then read by any thread.
 * It takes 8 bytes per record, and keeps up to HR_SHARDS_OPEN shards open.
 */
#ifndef HR_STORE_SHARD_INDEX_H
#define HR_STORE_SHARD_INDEX_H

#include "core/hash.h"
#include "store/window.h"

#define HR_SHARDS_OPEN 256

struct hr_shard_index;

/* What a format's scan of one shard works with. */
struct hr_shard_scan {
    struct hr_window window; /* the shard is open */
    struct hr_hasher
        *hasher;            /* of what identifies the records: names, sizes, checksums */
    struct hr_error *error; /* or NULL; messages name window.uri */
    struct hr_shard_index *index;
    void *user;
    uint64_t line; /* in a file of text: where the record begins that is added, from 1 */
};
typedef enum hr_err hr_shard_scan_fn(struct hr_shard_scan *scan);

/* Adds the next record: the bytes of the shard from `at` to `end`, which is larger. */
HR_CHECK enum hr_err hr__shard_add(struct hr_shard_scan *scan, uint64_t at, uint64_t end);

/* HR_ERR_UNSUPPORTED for a shard that is compressed, by gzip or zstd: for formats that
 * take any bytes. */
HR_CHECK enum hr_err hr__shard_check_text(struct hr_shard_scan *scan);

/* Fails for a shard without a record: HR_ERR_UNSUPPORTED if it is compressed, else
 * HR_ERR_FORMAT, "SHARD: no `what`: byte 0: `why`". */
HR_CHECK enum hr_err
hr__shard_fail(struct hr_shard_scan *scan, const char *what, const char *why);

/* Scans the shards that `pattern` means (store/shards.h); `user` is the scan's. The
 * scan's errors, those of hr__shards_find(), and HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__shard_index_open(const char *pattern, const char *ending, hr_shard_scan_fn *scan,
                     void *user, struct hr_shard_index **ret_index,
                     struct hr_error *reterr);
void hr__shard_index_close(struct hr_shard_index *index); /* NULL is fine */

uint64_t hr__shard_index_count(const struct hr_shard_index *index);

/* A hash of what the scans have hashed. */
struct hr_hash128 hr__shard_index_identity(const struct hr_shard_index *index);

struct hr_shard_place {
    const char *uri;            /* the index's */
    struct hr_hash128 identity; /* of the object; see hr_object */
    struct hr_object *object;   /* it, open; NULL: there are too many */
    uint64_t offset, bytes;
};
/* A byte at or before record `at`, and the number of the line that begins there: the
 * record's own is found by counting from it. Of formats that set hr_shard_scan.line. */
void hr__shard_index_line(const struct hr_shard_index *index, uint64_t at,
                          uint64_t *ret_offset, uint64_t *ret_line);

/* Where record `at` (< count) lies. */
void hr__shard_index_place(const struct hr_shard_index *index, uint64_t at,
                           struct hr_shard_place *ret_place);

#endif
