/*
 * store/packed.h - a compressed file as an object of its unpacked bytes.
 *
 * Opening decodes the file once, checks its checksums, and cuts the unpacked bytes into
 * blocks of about 1 MiB. Reads decode the blocks that they touch, from the last place
 * before them where decoding can begin: a stream (gzip member, zstd frame), a mark inside
 * a deflate stream, or where a decoder stopped. Blocks are kept in a cache that all files
 * of a data set share; threads that read on decode different blocks at the same time.
 *
 * Damage costs the stream that it is in, since a checksum says that a byte is wrong but
 * not which. Decoding resumes at the next stream. What was decoded of a file that is cut
 * short is right. But a damaged stream may seem to run past the end of its file, so what
 * the last bytes of such a file decode to is not trusted.
 */
#ifndef HR_STORE_PACKED_H
#define HR_STORE_PACKED_H

#include "store/store.h"
#include "store/unpack.h"

struct hr_packed_limits {
    uint64_t bytes_max; /* unpacked bytes of a file */
    uint64_t
        ratio_max; /* unpacked bytes per byte, once HR_PACKED_RATIO_FROM are unpacked */
    uint64_t cache_bytes; /* of blocks, but at least four blocks */
    /* Records have checksums of their own: bytes of a damaged stream that can be decoded
     * are read. */
    bool checked;
    /* Whether a file that begins with these bytes is not compressed, whatever they look
     * like; files of zlib are looked for then. NULL: they are not. */
    bool (*is_plain)(const void *data, size_t bytes);
};
#define HR_PACKED_RATIO_FROM ((uint64_t)64 << 20)
/* What is kept in memory beside the cache: marks of all files. */
#define HR_PACKED_MARKS_MAX 1024

/* What the files of a data set share. Functions are thread-safe but for open and close.
 */
struct hr_packed_cache;
HR_CHECK enum hr_err
hr__packed_cache_create(const struct hr_packed_limits *limits,
                        struct hr_packed_cache **ret_cache, struct hr_error *reterr);
/* After all files are closed; NULL is fine. */
void hr__packed_cache_destroy(struct hr_packed_cache *cache);
/* From now on it keeps this much, or its least. */
void hr__packed_cache_limit(struct hr_packed_cache *cache, uint64_t bytes);
/* Bytes of blocks that it keeps at least, of decoders where they stopped, and that a
 * thread takes while it makes a block. */
#define HR_PACKED_LEAST ((uint64_t)5 << 20)
#define HR_PACKED_DECODERS ((uint64_t)4 << 20)
#define HR_PACKED_THREAD ((uint64_t)9 << 18)

struct hr_packed;

/* How a file that begins with these bytes is compressed. HR_ERR_FORMAT if its name says
 * that it is, and its beginning does not. */
HR_CHECK enum hr_err
hr__packed_look(const struct hr_packed_limits *limits, const char *uri, const void *data,
                size_t bytes, enum hr_packing *ret_packing, struct hr_error *reterr);
#define HR_PACKED_LOOK 16 /* bytes, or as many as the file has */

/* Decodes all of a file. HR_ERR_LIMIT if it unpacks to more than the limits; the errors
 * of hr__unpack_create and of reading. Damage is no error: reads report it. `uri`
 * outlives the object. */
HR_CHECK enum hr_err
hr__packed_open(struct hr_packed_cache *cache, const char *uri, enum hr_packing packing,
                struct hr_packed **ret_packed, struct hr_error *reterr);
void hr__packed_close(struct hr_packed *packed); /* NULL is fine */

/* What the opening has found, for hr__packed_restore(); a multiple of 8 bytes, which the
 * caller frees. NULL: the file is damaged, or out of memory. */
void *hr__packed_save(const struct hr_packed *packed, size_t *ret_bytes);
/* Opens a file that is known, `file` (open, unchanged since), without decoding. `uri`
 * outlives the object. HR_ERR_FORMAT: the bytes are not as saved, or the file exceeds the
 * limits; HR_ERR_UNSUPPORTED; HR_ERR_MEMORY. There are no messages: hr__packed_open()
 * gives them. */
HR_CHECK enum hr_err hr__packed_restore(struct hr_packed_cache *cache, const char *uri,
                                        const struct hr_object *file, const void *data,
                                        size_t bytes, struct hr_packed **ret_packed);
/* Whether some of its bytes are lost. */
bool hr__packed_is_damaged(const struct hr_packed *packed);

/* The unpacked bytes, with the identity of the file. Reads that touch damage are
 * HR_ERR_FORMAT and say where the damage is. */
struct hr_object *hr__packed_object(struct hr_packed *packed);
/* The same for a scan, which continues past damage: damaged bytes read as 255. */
struct hr_object *hr__packed_scanned(struct hr_packed *packed);
/* HR_ERR_FORMAT, as a read of these bytes would be, if they touch damage. */
HR_CHECK enum hr_err hr__packed_check(const struct hr_packed *packed, uint64_t offset,
                                      size_t bytes, struct hr_error *reterr);

/* Places where decoding can begin. */
size_t hr__packed_entries(const struct hr_packed *packed);

/* From now on reads find that the file has changed: `file` is it, open, and outlives the
 * object. */
void hr__packed_watch(struct hr_packed *packed, const struct hr_object *file);

#endif
