/*
 * core/buffer.h - private interface between buffer.c and pool.c.
 */
#ifndef HR_CORE_BUFFER_H
#define HR_CORE_BUFFER_H

#include "headrace/buffer.h"
#include <stdatomic.h>

enum hr_buffer_kind {
    HR_BUFFER_OWN,    /* data after the header, in one allocation */
    HR_BUFFER_PAGES,  /* data in pages from hr__pages_alloc */
    HR_BUFFER_WRAP,   /* the caller's data, with a release callback */
    HR_BUFFER_VIEW,   /* part of `parent`, which is never a view itself */
    HR_BUFFER_POOLED, /* header and data belong to `pool` */
};

struct hr_buffer {
    atomic_size_t refs;
    void *data;
    size_t bytes;
    struct hr_buffer *parent;
    void (*release)(void *user);
    void *user;
    struct hr_pool *pool;   /* POOLED, and VIEW if its header comes from the pool */
    struct hr_buffer *next; /* while idle in a pool */
    enum hr_buffer_kind kind;
    uint32_t size_class; /* POOLED */
    atomic_bool retired;
};

/* The buffer whose bytes it has: the one that it views, or itself. */
static inline struct hr_buffer *hr__buffer_root(const struct hr_buffer *buffer)
{
    return buffer->kind == HR_BUFFER_VIEW ? buffer->parent : (struct hr_buffer *)buffer;
}

/* Whether bytes at `data` lie in pages that are the buffer's alone, or what it views. */
bool hr__buffer_has_pages(const struct hr_buffer *buffer, const void *data, size_t bytes);
/* From here on the memory of a buffer with pages of its own is not used again: with the
 * last reference they leave the process, and who reads them outside of it keeps what they
 * hold. The caller has a reference. */
void hr__buffer_retire(struct hr_buffer *buffer);

/*
 * Segments: memory of a pool that can be passed to another process as a descriptor. They
 * cannot shrink or grow, so that no process takes pages away from another.
 */
#define HR_SEGMENTS_MAX 64u               /* of a pool at a time */
#define HR_SEGMENT_MIN ((size_t)1 << 20)  /* bytes of a buffer with one of its own */
#define HR_SLICE_MIN ((size_t)64 << 10)   /* of one that shares a segment with others */
#define HR_SLICED_BYTES ((size_t)4 << 20) /* of such a segment */

struct hr_memory_segment {
    int fd;
    uint32_t index; /* below HR_SEGMENTS_MAX */
    uint64_t id;    /* unique in the process */
    size_t bytes;
    char *base;
    size_t slice_bytes; /* 0: it is one buffer's */
    uint64_t taken;     /* slices in use, a bit each; under the pool's lock of slices */
};

/* A pool whose buffers of HR_SLICE_MIN bytes and more are segments or in one, as far as
 * there are places and memory; the others are ordinary. NULL when out of memory. */
HR_CHECK struct hr_pool *hr__pool_create_shared(void);
/* A reference more. */
struct hr_pool *hr__pool_ref(struct hr_pool *pool);
/* The id of the segment at `index`; 0: none. */
uint64_t hr__pool_segment(struct hr_pool *pool, uint32_t index);
/* The segment in which a buffer lies, valid while the buffer is, and where; or NULL. */
const struct hr_memory_segment *
hr__buffer_segment(const struct hr_buffer *buffer, size_t *ret_offset);

/* segment.c. Makes and maps one; NULL if the system refuses. Frees it with its memory. */
struct hr_memory_segment *hr__segment_create(size_t bytes);
void hr__segment_free(struct hr_memory_segment *segment);

/* Whether the memory of a pooled buffer is pages or a segment of its own. */
bool hr__pool_gave_pages(const struct hr_buffer *buffer);
/* Returns a pooled buffer to its pool after the last unref. */
void hr__pool_put(struct hr_buffer *buffer);

/* From here on idle buffers are freed, not kept for reuse, while those in use and idle
 * are more than `bytes` together; 0: all are kept. Never fails a request. */
void hr__pool_keep(struct hr_pool *pool, size_t bytes);

/* Take and return a header without data, so that views of pooled buffers need no
 * allocation. */
struct hr_buffer *hr__pool_head_get(struct hr_pool *pool);
void hr__pool_head_put(struct hr_pool *pool, struct hr_buffer *head);

#endif
