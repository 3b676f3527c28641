/*
 * store/shard_index.h - where the records of a data set lie that is packed into shards.
 *
 * An index is made once, by a format's scan of every shard, and then read by any thread.
 * It takes 8 bytes per record, and keeps up to HR_SHARDS_OPEN shards open. What the scans
 * found can be saved: shards that have not changed since are not scanned again.
 */
#ifndef HR_STORE_SHARD_INDEX_H
#define HR_STORE_SHARD_INDEX_H

#include "core/hash.h"
#include "store/packed.h"
#include "store/window.h"

#define HR_SHARDS_OPEN 256

struct hr_shard_index;

/* What a format's scan of one shard works with. */
struct hr_shard_scan {
    struct hr_window window; /* the shard is open */
    struct hr_hasher
        *hasher;            /* of what identifies the records: names, sizes, checksums */
    struct hr_error *error; /* or NULL; messages name window.object->uri */
    struct hr_shard_index *index;
    void *user;
    struct hr_packed *packed; /* the shard is compressed; or NULL */
    uint64_t line; /* in a file of text: where the record begins that is added, from 1 */
};
typedef enum hr_err hr_shard_scan_fn(struct hr_shard_scan *scan);

/* Adds the next record: the bytes of the shard from `at` to `end`, which is larger. */
HR_CHECK enum hr_err hr__shard_add(struct hr_shard_scan *scan, uint64_t at, uint64_t end);

/* HR_ERR_FORMAT if bytes of a compressed shard that a scan relies on are damaged. */
HR_CHECK enum hr_err
hr__shard_check(struct hr_shard_scan *scan, uint64_t at, size_t bytes);

/* For a shard whose only record is what could not be read: HR_ERR_FORMAT, "SHARD: no
 * `what`: byte 0: `why`". HR_OK if the shard is compressed and damaged: reading the
 * record reports that. */
HR_CHECK enum hr_err
hr__shard_fail(struct hr_shard_scan *scan, const char *what, const char *why);

/* How an index is saved, for shards whose identities last (struct hr_object). One that
 * cannot be written, or is damaged, costs a scan and is no error. */
struct hr_shard_saving {
    /* Names the scan and all that decides what it finds in a shard. */
    const char *format;
    /* The file; NULL: one in the cache folder, if the shards are remote or large. */
    const char *path;
    /* Called instead of the scan for a shard that has not changed. Of a format that has
     * it, what is found in a shard depends on those before it, too. Or NULL. */
    hr_shard_scan_fn *look;
};
#define HR_SHARDS_SAVED_FROM ((uint64_t)16 << 20) /* bytes scanned */
#define HR_SHARDS_FILES_MAX 4096                  /* in the cache folder */
#define HR_SHARDS_BYTES_MAX ((uint64_t)4 << 30)

/* Scans the shards that `pattern` means (store/shards.h); `user` is the scan's.
 * Compressed shards are read within `packed`; NULL: they are HR_ERR_UNSUPPORTED. Places
 * in them are those of what they unpack to. `saving` NULL: nothing is saved. The scan's
 * errors, those of hr__shards_find() and hr__packed_open(), and HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__shard_index_open(const char *pattern, const char *ending, hr_shard_scan_fn *scan,
                     void *user, const struct hr_packed_limits *packed,
                     const struct hr_shard_saving *saving,
                     struct hr_shard_index **ret_index, struct hr_error *reterr);
void hr__shard_index_close(struct hr_shard_index *index); /* NULL is fine */

/* What it keeps in memory, in bytes. */
struct hr_shard_memory {
    uint64_t fixed;  /* the index, and idle decoders */
    uint64_t least;  /* of compressed shards; 0: there are none */
    uint64_t thread; /* and while a thread unpacks */
};
void hr__shard_index_memory(const struct hr_shard_index *index,
                            struct hr_shard_memory *ret_memory);
/* From now on the cache of compressed shards keeps this much, or its least. Any thread.
 */
void hr__shard_index_limit(struct hr_shard_index *index, uint64_t cache_bytes);

uint64_t hr__shard_index_count(const struct hr_shard_index *index);

/* The first shard's, NULL if there are no shards; the index's. */
const char *hr__shard_index_first(const struct hr_shard_index *index);

/* Shards that were not scanned. */
uint64_t hr__shard_index_kept(const struct hr_shard_index *index);

/* A hash of what the scans have hashed: of all of it as one, or, with `saving`, of the
 * hash of each shard. */
struct hr_hash128 hr__shard_index_identity(const struct hr_shard_index *index);

struct hr_shard_place {
    const char *uri;            /* the index's */
    struct hr_hash128 identity; /* of the object; see hr_object */
    struct hr_object *object;   /* it, open; NULL: there are too many */
    bool packed;                /* it can only be read through `object` */
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
