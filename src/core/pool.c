/*
 * core/pool.c - a pool that reuses buffers.
 *
 * Size classes are 4, 5, 6, 7 times a power of two, so at most a fifth of a block is
 * wasted. One mutex: a get and a put take about 20 ns each, against microseconds of work
 * on the data. System calls are made outside the lock.
 *
 * Trimming: every WINDOW requests a class checks the largest number of blocks in use
 * since its last check and frees idle blocks beyond that. A class that misses soon after
 * was checked too often and doubles its interval, so that one big batch buffer per
 * thousand small ones is not unmapped and zeroed again each time.
 */
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/poison.h"
#include "core/thread.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#define BYTES_LARGEST ((size_t)1 << 46)
#define CLASS_COUNT ((46 - 8) * 4 + 1)
#define WINDOW 256
#define INTERVAL_MAX 4096
#define HEADS_MAX 256

struct size_class {
    struct hr_buffer *idle;
    size_t idle_count, used_count;
    size_t high; /* most in use since the last check */
    uint32_t age,
        interval; /* windows since the last check, and the interval between checks */
    bool freed_idle;
};

struct hr_pool {
    pthread_mutex_t lock; /* guards everything below */
    size_t bytes_max;
    size_t used_bytes, idle_bytes, peak_bytes;
    size_t keep_bytes; /* idle blocks are kept while there are fewer bytes; 0: always */
    size_t live;       /* buffers in use */
    size_t references; /* hr_pool_unref() drops one */
    uint64_t gets, misses;
    struct hr_buffer *heads;
    size_t head_count;
    uint32_t class_end; /* classes from this one on were never used */
    bool closed, shared;
    struct size_class classes[CLASS_COUNT];

    atomic_uint_fast64_t segments[HR_SEGMENTS_MAX]; /* ids of those there are */
    pthread_mutex_t slices_lock;                    /* guards the next, and slices */
    struct hr_memory_segment *sliced[HR_SEGMENTS_MAX];
};

static uint32_t class_of(size_t bytes)
{
    size_t last = bytes - 1;
    unsigned top, quarter;

    if (bytes <= 256)
        return 0;
    top = 63 - (unsigned)__builtin_clzll(last);
    quarter = (unsigned)(last >> (top - 2)) + 1; /* 5..8 */
    return (top - 8) * 4 + quarter - 4;
}

static size_t class_bytes(uint32_t size_class)
{
    return (size_t)(4 + size_class % 4) << (6 + size_class / 4);
}

/* ---- segments ---- */

/* A segment that has a place in the pool, or NULL. */
static struct hr_memory_segment *add_segment(struct hr_pool *pool, size_t bytes)
{
    struct hr_memory_segment *segment;
    uint_fast64_t none = 0;
    uint32_t at = 0;

    while (at < HR_SEGMENTS_MAX && atomic_load(&pool->segments[at]) != 0)
        at++;
    if (at == HR_SEGMENTS_MAX || (segment = hr__segment_create(bytes)) == NULL)
        return NULL;
    if (!atomic_compare_exchange_strong(&pool->segments[at], &none, segment->id)) {
        hr__segment_free(segment); /* another thread took the place */
        return NULL;
    }
    segment->index = at;
    return segment;
}

static void drop_segment(struct hr_pool *pool, struct hr_memory_segment *segment)
{
    atomic_store(&pool->segments[segment->index], 0);
    hr__segment_free(segment);
}

static uint64_t all_slices(size_t slice_bytes)
{
    size_t count = HR_SLICED_BYTES / slice_bytes;

    assert(count > 1 && count <= 64);
    return UINT64_MAX >> (64 - count);
}

/* A segment with a free slice of that size, or NULL. */
static struct hr_memory_segment *find_sliced(struct hr_pool *pool, size_t slice_bytes)
{
    struct hr_memory_segment *segment;

    hr__assert_locked(&pool->slices_lock);
    for (size_t i = 0; i < HR_SEGMENTS_MAX; i++) {
        segment = pool->sliced[i];
        if (segment != NULL && segment->slice_bytes == slice_bytes &&
            segment->taken != all_slices(slice_bytes))
            return segment;
    }
    segment = add_segment(pool, HR_SLICED_BYTES);
    if (segment != NULL) {
        segment->slice_bytes = slice_bytes;
        pool->sliced[segment->index] = segment;
    }
    return segment;
}

static void take_slice(struct hr_pool *pool, struct hr_buffer *block, size_t bytes)
{
    struct hr_memory_segment *segment;

    pthread_mutex_lock(&pool->slices_lock);
    segment = find_sliced(pool, bytes);
    if (segment != NULL) {
        unsigned slice = (unsigned)__builtin_ctzll(~segment->taken);

        segment->taken |= (uint64_t)1 << slice;
        block->data = segment->base + slice * bytes;
        block->user = segment;
    }
    pthread_mutex_unlock(&pool->slices_lock);
}

static void
drop_slice(struct hr_pool *pool, struct hr_memory_segment *segment, const void *data)
{
    size_t slice = (size_t)((const char *)data - segment->base) / segment->slice_bytes;

    pthread_mutex_lock(&pool->slices_lock);
    assert((segment->taken >> slice & 1) != 0);
    segment->taken &= ~((uint64_t)1 << slice);
    if (segment->taken == 0) {
        pool->sliced[segment->index] = NULL;
        drop_segment(pool, segment);
    }
    pthread_mutex_unlock(&pool->slices_lock);
}

/* Gives the block memory of a segment if there is a place. */
static void share_block(struct hr_pool *pool, struct hr_buffer *block, size_t bytes)
{
    struct hr_memory_segment *segment;

    if (bytes < HR_SEGMENT_MIN) {
        take_slice(pool, block, bytes);
        return;
    }
    segment = add_segment(pool, bytes);
    block->data = segment != NULL ? segment->base : NULL;
    block->user = segment;
}

static void drop_shared(struct hr_buffer *block)
{
    struct hr_memory_segment *segment = block->user;

    if (segment->slice_bytes > 0)
        drop_slice(block->pool, segment, block->data);
    else
        drop_segment(block->pool, segment);
}

/* ---- blocks ---- */

static void free_block(struct hr_buffer *block)
{
    size_t bytes = class_bytes(block->size_class);

    HR_UNPOISON(block->data, bytes);
    if (block->user != NULL)
        drop_shared(block);
    else if (bytes >= HR_PAGES_MIN)
        hr__pages_free(block->data, bytes);
    else
        hr__free(block->data);
    hr__free(block);
}

static void free_blocks(struct hr_buffer *blocks)
{
    while (blocks != NULL) {
        struct hr_buffer *block = blocks;

        blocks = block->next;
        free_block(block);
    }
}

static struct hr_buffer *make_block(struct hr_pool *pool, uint32_t size_class)
{
    size_t bytes = class_bytes(size_class);
    struct hr_buffer *block = hr__calloc(1, sizeof *block);

    if (block == NULL)
        return NULL;
    block->pool = pool;
    if (pool->shared && bytes >= HR_SLICE_MIN)
        share_block(pool, block, bytes);
    if (block->data == NULL)
        block->data = bytes >= HR_PAGES_MIN ? hr__pages_alloc(bytes)
                                            : hr__aligned_alloc(HR_BUFFER_ALIGN, bytes);
    if (block->data == NULL) {
        hr__free(block);
        return NULL;
    }
    block->kind = HR_BUFFER_POOLED;
    block->size_class = size_class;
    return block;
}

/* Locked. Takes an idle block out of the pool. */
static struct hr_buffer *pop(struct hr_pool *pool, uint32_t size_class)
{
    struct size_class *of = &pool->classes[size_class];
    struct hr_buffer *block = of->idle;

    hr__assert_locked(&pool->lock);
    assert(block != NULL && of->idle_count > 0);
    of->idle = block->next;
    of->idle_count--;
    pool->idle_bytes -= class_bytes(size_class);
    return block;
}

/* Locked. Moves idle blocks of a class to *drop until `keep` are left. */
static void
drop_idle(struct hr_pool *pool, uint32_t size_class, size_t keep, struct hr_buffer **drop)
{
    while (pool->classes[size_class].idle_count > keep) {
        struct hr_buffer *block = pop(pool, size_class);

        block->next = *drop;
        *drop = block;
    }
}

/* Locked. Every WINDOW requests: checks each class for surplus idle blocks. */
static void trim_classes(struct hr_pool *pool, struct hr_buffer **drop)
{
    hr__assert_locked(&pool->lock);
    for (uint32_t i = 0; i < pool->class_end; i++) {
        struct size_class *of = &pool->classes[i];
        size_t keep = of->high - of->used_count, before = of->idle_count;

        assert(of->high >= of->used_count);
        if (++of->age <= of->interval)
            continue;
        drop_idle(pool, i, keep, drop);
        of->freed_idle |= of->idle_count < before;
        of->high = of->used_count;
        of->age = 0;
    }
}

/* Locked. Moves idle blocks to *drop, largest first, until `bytes` more fit `limit` or
 * none is left. */
static void
drop_beyond(struct hr_pool *pool, size_t limit, size_t bytes, struct hr_buffer **drop)
{
    hr__assert_locked(&pool->lock);
    for (uint32_t i = pool->class_end; i-- > 0;) {
        while (pool->classes[i].idle_count > 0 &&
               pool->used_bytes + pool->idle_bytes + bytes > limit)
            drop_idle(pool, i, pool->classes[i].idle_count - 1, drop);
    }
}

/* Locked. Makes room for `bytes` more; false if the pool's limit does not allow them. */
static bool make_room(struct hr_pool *pool, size_t bytes, struct hr_buffer **drop)
{
    hr__assert_locked(&pool->lock);
    if (pool->keep_bytes > 0)
        drop_beyond(pool, pool->keep_bytes, bytes, drop);
    if (pool->bytes_max == 0)
        return true;
    if (pool->used_bytes > pool->bytes_max || bytes > pool->bytes_max - pool->used_bytes)
        return false;
    drop_beyond(pool, pool->bytes_max, bytes, drop);
    return true;
}

/* Locked. Count a block of the class in or out. */
static void count_in(struct hr_pool *pool, uint32_t size_class)
{
    struct size_class *of = &pool->classes[size_class];

    hr__assert_locked(&pool->lock);
    pool->live++;
    pool->used_bytes += class_bytes(size_class);
    if (pool->used_bytes + pool->idle_bytes > pool->peak_bytes)
        pool->peak_bytes = pool->used_bytes + pool->idle_bytes;
    if (++of->used_count > of->high)
        of->high = of->used_count;
    if (size_class >= pool->class_end)
        pool->class_end = size_class + 1;
}

static void count_out(struct hr_pool *pool, uint32_t size_class)
{
    hr__assert_locked(&pool->lock);
    assert(pool->live > 0 && pool->classes[size_class].used_count > 0);
    pool->live--;
    pool->used_bytes -= class_bytes(size_class);
    pool->classes[size_class].used_count--;
}

struct hr_pool *hr_pool_create(size_t bytes_max)
{
    struct hr_pool *pool = hr__calloc(1, sizeof *pool);

    if (pool == NULL)
        return NULL;
    if (pthread_mutex_init(&pool->lock, NULL) != 0) {
        hr__free(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->slices_lock, NULL);
    pool->bytes_max = bytes_max;
    pool->references = 1;
    return pool;
}

struct hr_pool *hr__pool_ref(struct hr_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    assert(pool->references > 0);
    pool->references++;
    pthread_mutex_unlock(&pool->lock);
    return pool;
}

struct hr_pool *hr__pool_create_shared(void)
{
    struct hr_pool *pool = hr_pool_create(0);

    if (pool != NULL)
        pool->shared = true;
    return pool;
}

uint64_t hr__pool_segment(struct hr_pool *pool, uint32_t index)
{
    return atomic_load(&pool->segments[index]);
}

/* Locked. Moves everything idle to one list, and the spare headers to another; those have
 * no data. */
static struct hr_buffer *take_all(struct hr_pool *pool, struct hr_buffer **ret_heads)
{
    struct hr_buffer *drop = NULL;

    hr__assert_locked(&pool->lock);
    for (uint32_t i = 0; i < pool->class_end; i++)
        drop_idle(pool, i, 0, &drop);
    *ret_heads = pool->heads;
    pool->heads = NULL;
    pool->head_count = 0;
    return drop;
}

static void free_heads(struct hr_buffer *heads)
{
    while (heads != NULL) {
        struct hr_buffer *head = heads;

        heads = head->next;
        hr__free(head);
    }
}

static void destroy(struct hr_pool *pool)
{
    assert(pool->live == 0 && pool->idle_bytes == 0);
    free_heads(pool->heads);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->slices_lock);
    hr__free(pool);
}

void hr_pool_trim(struct hr_pool *pool)
{
    struct hr_buffer *drop, *heads;

    pthread_mutex_lock(&pool->lock);
    drop = take_all(pool, &heads);
    pthread_mutex_unlock(&pool->lock);
    free_blocks(drop);
    free_heads(heads);
}

void hr_pool_unref(struct hr_pool *pool)
{
    struct hr_buffer *drop, *heads;
    bool last;

    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    assert(pool->references > 0);
    if (--pool->references > 0) {
        pthread_mutex_unlock(&pool->lock);
        return;
    }
    pool->closed = true;
    drop = take_all(pool, &heads);
    pool->live++; /* this call, until it needs the pool no longer */
    pthread_mutex_unlock(&pool->lock);
    free_blocks(drop);
    free_heads(heads);
    pthread_mutex_lock(&pool->lock);
    last = --pool->live == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        destroy(pool);
}

/* Allocates a block that is already counted. */
static struct hr_buffer *fetch(struct hr_pool *pool, uint32_t size_class)
{
    struct hr_buffer *block = make_block(pool, size_class);

    if (block != NULL)
        return block;
    hr_pool_trim(pool);
    block = make_block(pool, size_class);
    if (block != NULL)
        return block;
    pthread_mutex_lock(&pool->lock);
    count_out(pool, size_class);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void prepare_block(struct hr_pool *pool, struct hr_buffer *block, size_t bytes)
{
    atomic_store_explicit(&block->refs, 1, memory_order_relaxed);
    block->bytes = bytes;
    block->pool = pool;
    block->next = NULL;
    HR_POISON(block->data, class_bytes(block->size_class));
    HR_UNPOISON(block->data, bytes);
}

enum hr_err hr_pool_get(struct hr_pool *pool, size_t bytes, struct hr_buffer **ret_buffer)
{
    struct hr_buffer *block = NULL, *drop = NULL;
    struct size_class *of;
    uint32_t size_class;
    bool fits = true;

    if (bytes > BYTES_LARGEST)
        return HR_ERR_MEMORY;
    size_class = class_of(bytes);
    of = &pool->classes[size_class];
    pthread_mutex_lock(&pool->lock);
    if (++pool->gets % WINDOW == 0)
        trim_classes(pool, &drop);
    if (of->idle != NULL) {
        block = pop(pool, size_class);
    } else {
        pool->misses++;
        if (of->freed_idle && of->interval < INTERVAL_MAX)
            of->interval = of->interval * 2 + 1;
        of->freed_idle = false;
        fits = make_room(pool, class_bytes(size_class), &drop);
    }
    if (fits)
        count_in(pool, size_class);
    pthread_mutex_unlock(&pool->lock);
    free_blocks(drop);
    if (!fits)
        return HR_ERR_LIMIT;
    if (block == NULL)
        block = fetch(pool, size_class);
    if (block == NULL)
        return HR_ERR_MEMORY;
    prepare_block(pool, block, bytes);
    *ret_buffer = block;
    return HR_OK;
}

bool hr__pool_gave_pages(const struct hr_buffer *buffer)
{
    const struct hr_memory_segment *segment = buffer->user;

    if (buffer->kind != HR_BUFFER_POOLED)
        return false;
    return segment != NULL ? segment->slice_bytes == 0
                           : class_bytes(buffer->size_class) >= HR_PAGES_MIN;
}

void hr__pool_put(struct hr_buffer *buffer)
{
    struct hr_pool *pool = buffer->pool;
    uint32_t size_class = buffer->size_class;
    struct size_class *of = &pool->classes[size_class];
    bool last, keep;

    assert(buffer->kind == HR_BUFFER_POOLED);
    HR_POISON(buffer->data, class_bytes(size_class));
    pthread_mutex_lock(&pool->lock);
    keep = !pool->closed && !atomic_load_explicit(&buffer->retired, memory_order_relaxed);
    keep = keep && (pool->keep_bytes == 0 ||
                    pool->used_bytes + pool->idle_bytes <= pool->keep_bytes);
    if (keep) {
        count_out(pool, size_class);
        buffer->next = of->idle;
        of->idle = buffer;
        of->idle_count++;
        pool->idle_bytes += class_bytes(size_class);
    }
    pthread_mutex_unlock(&pool->lock);
    if (keep)
        return;
    free_block(buffer); /* before it is counted out, and the pool may go */
    pthread_mutex_lock(&pool->lock);
    count_out(pool, size_class);
    last = pool->closed && pool->live == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last)
        destroy(pool);
}

void hr__pool_keep(struct hr_pool *pool, size_t bytes)
{
    pthread_mutex_lock(&pool->lock);
    pool->keep_bytes = bytes;
    pthread_mutex_unlock(&pool->lock);
}

struct hr_buffer *hr__pool_head_get(struct hr_pool *pool)
{
    struct hr_buffer *head;

    pthread_mutex_lock(&pool->lock);
    head = pool->heads;
    if (head != NULL) {
        pool->heads = head->next;
        pool->head_count--;
    }
    pthread_mutex_unlock(&pool->lock);
    return head != NULL ? head : hr__malloc(sizeof *head);
}

void hr__pool_head_put(struct hr_pool *pool, struct hr_buffer *head)
{
    bool kept;

    pthread_mutex_lock(&pool->lock);
    kept = pool->head_count < HEADS_MAX;
    if (kept) {
        head->next = pool->heads;
        pool->heads = head;
        pool->head_count++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!kept)
        hr__free(head);
}

void hr_pool_stats(const struct hr_pool *pool, struct hr_pool_stats *ret_stats)
{
    struct hr_pool *own = (struct hr_pool *)pool; /* only for the lock */

    pthread_mutex_lock(&own->lock);
    *ret_stats = (struct hr_pool_stats){
        .used_bytes = pool->used_bytes,
        .idle_bytes = pool->idle_bytes,
        .peak_bytes = pool->peak_bytes,
        .gets = pool->gets,
        .misses = pool->misses,
    };
    pthread_mutex_unlock(&own->lock);
}
