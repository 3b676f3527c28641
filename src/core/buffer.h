/*
 * core/buffer.h - what buffer.c and pool.c know of each other.
 */
#ifndef HR_CORE_BUFFER_H
#define HR_CORE_BUFFER_H

#include "headrace/buffer.h"
#include <stdatomic.h>

enum hr_buffer_kind {
    HR_BUFFER_OWN,    /* data behind the head, in one block */
    HR_BUFFER_PAGES,  /* data in pages of its own */
    HR_BUFFER_WRAP,   /* somebody else's data */
    HR_BUFFER_VIEW,   /* part of `parent`, which is never a view itself */
    HR_BUFFER_POOLED, /* head and data belong to `pool` */
};

struct hr_buffer {
    atomic_size_t refs;
    void *data;
    size_t bytes;
    struct hr_buffer *parent;
    void (*release)(void *user);
    void *user;
    struct hr_pool *pool;   /* POOLED, and a VIEW whose head is the pool's */
    struct hr_buffer *next; /* while idle in a pool */
    enum hr_buffer_kind kind;
    uint32_t size_class; /* POOLED */
};

/* Take a pooled buffer back after its last reference. */
void hr__pool_put(struct hr_buffer *buffer);

/* A head without data, and back, so that views of pooled buffers need no allocation. */
struct hr_buffer *hr__pool_head_get(struct hr_pool *pool);
void hr__pool_head_put(struct hr_pool *pool, struct hr_buffer *head);

#endif
