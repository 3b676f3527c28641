/*
 * headrace/buffer.h - reference-counted bytes.
 *
 * A buffer is a run of bytes with a count of references. It may own its bytes, come from
 * a pool, wrap foreign memory with a release callback, or be a view of another buffer
 * (which it then keeps alive). Bytes may be written only while one reference exists;
 * after that they are immutable, so any number of threads may read them. ref and unref
 * are safe from any thread.
 */
#ifndef HR_BUFFER_H
#define HR_BUFFER_H

#include "headrace/base.h"

HR_BEGIN_DECLS

/* Alignment in bytes of everything the library allocates for data. */
#define HR_BUFFER_ALIGN 64

struct hr_buffer;

/* A new buffer of `bytes` bytes, 64-byte aligned, contents undefined, one reference. NULL
 * when out of memory. */
HR_API HR_CHECK struct hr_buffer *hr_buffer_create(size_t bytes);

/* Wrap `bytes` bytes at `data`. `release(user)` is called once, by the thread that drops
 * the last reference; NULL means nothing is to be done. NULL when out of memory: then the
 * caller still owns `data` and `release` is not called. */
HR_API HR_CHECK struct hr_buffer *
hr_buffer_wrap(void *data, size_t bytes, void (*release)(void *user), void *user);

/* A buffer that shows `bytes` bytes of `parent` from `offset`, without a copy; it holds a
 * reference to `parent`. NULL when out of memory or when the range is not inside. */
HR_API HR_CHECK struct hr_buffer *
hr_buffer_view(struct hr_buffer *parent, size_t offset, size_t bytes);

/* Add a reference; returns `buffer`. */
HR_API struct hr_buffer *hr_buffer_ref(struct hr_buffer *buffer);

/* Drop a reference; the last one frees. NULL is fine. */
HR_API void hr_buffer_unref(struct hr_buffer *buffer);

/* The bytes, and how many. */
HR_API void *hr_buffer_data(const struct hr_buffer *buffer);
HR_API size_t hr_buffer_bytes(const struct hr_buffer *buffer);

/* True while the caller's is the only reference to it and to what it views. */
HR_API bool hr_buffer_is_writable(const struct hr_buffer *buffer);

/*
 * A pool of buffers. Freed buffers go back to it and are given out again; sizes are
 * rounded up to classes (powers of two with three steps between), so a request may reuse
 * a buffer of its own class only. Memory that was not needed for a while (the high-water
 * mark of the last few hundred requests) is returned to the system. Thread-safe.
 */
struct hr_pool;

/* A pool that never holds more than `bytes_max` bytes, in use and idle together (0: no
 * limit). NULL when out of memory. */
HR_API HR_CHECK struct hr_pool *hr_pool_create(size_t bytes_max);

/* Drop the caller's hold. Buffers still in use stay valid and are freed when they end. */
HR_API void hr_pool_unref(struct hr_pool *pool);

/* A buffer of exactly `bytes` visible bytes, 64-byte aligned, contents undefined.
 * HR_ERR_LIMIT when the budget does not allow it now (idle buffers are given up first),
 * HR_ERR_MEMORY when the system does not. */
HR_API HR_CHECK enum hr_err
hr_pool_get(struct hr_pool *pool, size_t bytes, struct hr_buffer **ret_buffer);

/* Bytes in use and idle, and the highest their sum has been. */
struct hr_pool_stats {
    size_t used_bytes, idle_bytes, peak_bytes;
    uint64_t gets, misses; /* requests, and those that needed the system's allocator */
};
HR_API void hr_pool_stats(const struct hr_pool *pool, struct hr_pool_stats *ret_stats);

/* Give all idle memory back to the system. */
HR_API void hr_pool_trim(struct hr_pool *pool);

HR_END_DECLS

#endif
