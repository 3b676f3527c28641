/*
 * headrace/buffer.h - reference-counted bytes.
 *
 * A buffer is a contiguous range of bytes with a reference count. It may own its bytes,
 * come from a pool, wrap foreign memory with a release callback, or be a view of another
 * buffer, which it keeps alive. Bytes may be written only while there is a single
 * reference; after that they are immutable, so any number of threads may read them. ref
 * and unref are thread-safe.
 */
#ifndef HR_BUFFER_H
#define HR_BUFFER_H

#include "headrace/base.h"

HR_BEGIN_DECLS

/* Alignment in bytes of everything the library allocates for data. */
#define HR_BUFFER_ALIGN 64

struct hr_buffer;

/* Allocates a buffer of `bytes` bytes with one reference, 64-byte aligned, contents
 * undefined. NULL when out of memory. */
HR_API HR_CHECK struct hr_buffer *hr_buffer_create(size_t bytes);

/* Wraps `bytes` bytes at `data`. `release(user)` is called once, by the thread that drops
 * the last reference; it may be NULL. Returns NULL when out of memory: the caller then
 * still owns `data` and `release` is not called. */
HR_API HR_CHECK struct hr_buffer *
hr_buffer_wrap(void *data, size_t bytes, void (*release)(void *user), void *user);

/* Creates a view of `bytes` bytes of `parent` at `offset`, without a copy; the view holds
 * a reference to `parent`. NULL when out of memory or if the range is not inside
 * `parent`. */
HR_API HR_CHECK struct hr_buffer *
hr_buffer_view(struct hr_buffer *parent, size_t offset, size_t bytes);

/* Adds a reference; returns `buffer`. */
HR_API struct hr_buffer *hr_buffer_ref(struct hr_buffer *buffer);

/* Drops a reference; the last one frees the buffer. NULL is allowed. */
HR_API void hr_buffer_unref(struct hr_buffer *buffer);

/* The bytes, and their number. */
HR_API void *hr_buffer_data(const struct hr_buffer *buffer);
HR_API size_t hr_buffer_bytes(const struct hr_buffer *buffer);

/* True if the caller holds the only reference to the buffer and to what it views. */
HR_API bool hr_buffer_is_writable(const struct hr_buffer *buffer);

/*
 * A pool of buffers. Freed buffers return to the pool and are reused. Sizes are rounded
 * up to classes (powers of two with three steps in between), and a request reuses only
 * buffers of its own class. Memory that was not needed for a while (beyond the high-water
 * mark of the last few hundred requests) is returned to the system. Thread-safe.
 */
struct hr_pool;

/* Creates a pool that never holds more than `bytes_max` bytes, in use and idle together
 * (0: no limit). NULL when out of memory. */
HR_API HR_CHECK struct hr_pool *hr_pool_create(size_t bytes_max);

/* Drops the caller's reference. Buffers in use stay valid and are freed with their last
 * reference. */
HR_API void hr_pool_unref(struct hr_pool *pool);

/* Returns a buffer of exactly `bytes` bytes, 64-byte aligned, contents undefined.
 * HR_ERR_LIMIT if the pool's limit does not allow it now (idle buffers are freed first),
 * HR_ERR_MEMORY if the system has no memory. */
HR_API HR_CHECK enum hr_err
hr_pool_get(struct hr_pool *pool, size_t bytes, struct hr_buffer **ret_buffer);

/* Bytes in use and idle, and the maximum of their sum. */
struct hr_pool_stats {
    size_t used_bytes, idle_bytes, peak_bytes;
    uint64_t gets, misses; /* requests, and those that allocated from the system */
};
HR_API void hr_pool_stats(const struct hr_pool *pool, struct hr_pool_stats *ret_stats);

/* Returns all idle memory to the system. */
HR_API void hr_pool_trim(struct hr_pool *pool);

HR_END_DECLS

#endif
