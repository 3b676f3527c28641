/*
 * core/buffer.c - reference-counted bytes; the pool is in pool.c.
 *
 * A small buffer is one allocation, a header followed by the data. A view of a view
 * refers to the underlying buffer, so there are no chains and two counts tell whether a
 * view is writable.
 */
#include "core/buffer.h"
#include "core/alloc.h"

#include <assert.h>
#include <string.h>

#define OWN_HEAD_BYTES ((sizeof(struct hr_buffer) + 63) & ~(size_t)63)

static void
init(struct hr_buffer *buffer, enum hr_buffer_kind kind, void *data, size_t bytes)
{
    memset(buffer, 0, sizeof *buffer);
    atomic_init(&buffer->refs, 1);
    buffer->kind = kind;
    buffer->data = data;
    buffer->bytes = bytes;
}

static struct hr_buffer *create_pages(size_t bytes)
{
    struct hr_buffer *buffer = hr__malloc(sizeof *buffer);
    void *data;

    if (buffer == NULL)
        return NULL;
    data = hr__pages_alloc(bytes);
    if (data == NULL) {
        hr__free(buffer);
        return NULL;
    }
    init(buffer, HR_BUFFER_PAGES, data, bytes);
    return buffer;
}

struct hr_buffer *hr_buffer_create(size_t bytes)
{
    struct hr_buffer *buffer;

    if (bytes >= HR_PAGES_MIN)
        return create_pages(bytes);
    buffer = hr__aligned_alloc(HR_BUFFER_ALIGN, OWN_HEAD_BYTES + bytes);
    if (buffer == NULL)
        return NULL;
    init(buffer, HR_BUFFER_OWN, (char *)buffer + OWN_HEAD_BYTES, bytes);
    return buffer;
}

struct hr_buffer *
hr_buffer_wrap(void *data, size_t bytes, void (*release)(void *user), void *user)
{
    struct hr_buffer *buffer = hr__malloc(sizeof *buffer);

    if (buffer == NULL)
        return NULL;
    init(buffer, HR_BUFFER_WRAP, data, bytes);
    buffer->release = release;
    buffer->user = user;
    return buffer;
}

struct hr_buffer *hr_buffer_view(struct hr_buffer *parent, size_t offset, size_t bytes)
{
    struct hr_buffer *root = hr__buffer_root(parent);
    struct hr_pool *pool = root->kind == HR_BUFFER_POOLED ? root->pool : NULL;
    struct hr_buffer *view;

    assert(root->kind != HR_BUFFER_VIEW);
    if (offset > parent->bytes || bytes > parent->bytes - offset)
        return NULL;
    view = pool != NULL ? hr__pool_head_get(pool) : hr__malloc(sizeof *view);
    if (view == NULL)
        return NULL;
    init(view, HR_BUFFER_VIEW, (char *)parent->data + offset, bytes);
    view->parent = hr_buffer_ref(root);
    view->pool = pool;
    return view;
}

struct hr_buffer *hr_buffer_ref(struct hr_buffer *buffer)
{
    size_t before = atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
    return buffer;
}

static void free_view(struct hr_buffer *view)
{
    struct hr_buffer *parent = view->parent;

    /* Free the header first: the parent keeps the pool alive. */
    if (view->pool != NULL)
        hr__pool_head_put(view->pool, view);
    else
        hr__free(view);
    hr_buffer_unref(parent);
}

static void free_buffer(struct hr_buffer *buffer)
{
    switch (buffer->kind) {
    case HR_BUFFER_POOLED:
        hr__pool_put(buffer);
        return;
    case HR_BUFFER_VIEW:
        free_view(buffer);
        return;
    case HR_BUFFER_WRAP:
        if (buffer->release != NULL)
            buffer->release(buffer->user);
        break;
    case HR_BUFFER_PAGES:
        hr__pages_free(buffer->data, buffer->bytes);
        break;
    case HR_BUFFER_OWN:
        break;
    }
    hr__free(buffer);
}

void hr_buffer_unref(struct hr_buffer *buffer)
{
    size_t before;

    if (buffer == NULL)
        return;
    before = atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        free_buffer(buffer);
}

void *hr_buffer_data(const struct hr_buffer *buffer)
{
    return buffer->data;
}

size_t hr_buffer_bytes(const struct hr_buffer *buffer)
{
    return buffer->bytes;
}

bool hr__buffer_has_pages(const struct hr_buffer *buffer, const void *data, size_t bytes)
{
    const struct hr_buffer *root = hr__buffer_root(buffer);
    uintptr_t from = (uintptr_t)root->data, at = (uintptr_t)data;

    if (root->kind != HR_BUFFER_PAGES && !hr__pool_gave_pages(root))
        return false;
    return at >= from && at - from <= root->bytes && bytes <= root->bytes - (at - from);
}

void hr__buffer_retire(struct hr_buffer *buffer)
{
    atomic_store_explicit(&hr__buffer_root(buffer)->retired, true, memory_order_relaxed);
}

static bool is_sole(const struct hr_buffer *buffer)
{
    return atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1;
}

bool hr_buffer_is_writable(const struct hr_buffer *buffer)
{
    return is_sole(buffer) && (buffer->parent == NULL || is_sole(buffer->parent));
}
