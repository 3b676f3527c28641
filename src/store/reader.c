/*
 * store/reader.c - the reader as its users see it: taking, naming ahead, counts.
 *
 * A warm take touches no lock and writes to nothing that other threads write often: the
 * counters are striped. Requests named ahead live in a fixed table under one lock; a
 * request belongs to the table, except that its backend owns it while it runs. A request
 * that fails just disappears: take then reads the file itself and tells what is wrong.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/hash.h"
#include "store/reader_internal.h"
#include <string.h>

#define COLD_RUN 256 /* cached files in a row after which the reader counts as warm */
#define AHEAD_BYTES ((size_t)64 << 20)
#define FILE_BYTES ((uint64_t)1 << 30)
#define DEPTH 64
#define DEPTH_MAX 4096
#define THREADS 8
#define THREADS_MAX 256

static struct hr_reader_stripe *stripe_of(struct hr_reader *reader)
{
    uint64_t self = (uint64_t)pthread_self() >> 6;

    return &reader->stripes[self * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

static void add(atomic_uint_fast64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

void hr__reader_note(struct hr_reader *reader, bool waited)
{
    atomic_int *left = &reader->cold_left;

    if (waited)
        atomic_store_explicit(left, COLD_RUN, memory_order_relaxed);
    else if (atomic_load_explicit(left, memory_order_relaxed) > 0)
        atomic_fetch_sub_explicit(left, 1, memory_order_relaxed);
}

bool hr__reader_is_cold(const struct hr_reader *reader)
{
    return atomic_load_explicit(&reader->cold_left, memory_order_relaxed) > 0;
}

/* ---- the table, lock held ---- */

static struct hr_request **bucket_of(struct hr_reader *reader, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    return &reader->buckets[hash & reader->bucket_mask];
}

static uint64_t key_of(const struct hr_range *range)
{
    return hr__hash64(range->uri, strlen(range->uri), range->offset ^ range->bytes << 17);
}

static bool
is_range(const struct hr_request *request, uint64_t key, const struct hr_range *range)
{
    return request->key == key && request->range.offset == range->offset &&
           request->range.bytes == range->bytes &&
           strcmp(request->range.uri, range->uri) == 0;
}

static struct hr_request *
find_request(struct hr_reader *reader, uint64_t key, const struct hr_range *range)
{
    struct hr_request *request = *bucket_of(reader, key);

    while (request != NULL && (request->unwanted || !is_range(request, key, range)))
        request = request->next;
    return request;
}

/* Give the slot back, with what it holds. */
static void free_request(struct hr_reader *reader, struct hr_request *request)
{
    struct hr_request **link = bucket_of(reader, request->key);

    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    reader->ahead_bytes -= request->held_bytes;
    hr_buffer_unref(request->buffer);
    request->buffer = NULL;
    request->held_bytes = 0;
    request->state = HR_REQUEST_FREE;
    request->next = reader->free;
    reader->free = request;
    atomic_fetch_sub_explicit(&reader->live, 1, memory_order_relaxed);
}

static void unqueue(struct hr_reader *reader, struct hr_request *request)
{
    struct hr_request *before = NULL, *at = reader->queue_first;

    while (at != request) {
        before = at;
        at = at->queue_next;
    }
    if (before == NULL)
        reader->queue_first = request->queue_next;
    else
        before->queue_next = request->queue_next;
    if (reader->queue_last == request)
        reader->queue_last = before;
}

/* Nobody wants it any more. */
static void drop_request(struct hr_reader *reader, struct hr_request *request)
{
    reader->unused++;
    if (request->state == HR_REQUEST_RUNNING) {
        request->unwanted = true; /* its backend will end it */
        return;
    }
    if (request->state == HR_REQUEST_QUEUED)
        unqueue(reader, request);
    free_request(reader, request);
}

struct hr_request *hr__reader_next_queued(struct hr_reader *reader)
{
    struct hr_request *request = reader->queue_first;

    if (request == NULL)
        return NULL;
    unqueue(reader, request);
    request->state = HR_REQUEST_RUNNING;
    return request;
}

bool hr__reader_reserve(struct hr_reader *reader, struct hr_request *request,
                        size_t bytes)
{
    if (request->unwanted || bytes > reader->ahead_bytes_max - reader->ahead_bytes)
        return false;
    reader->ahead_bytes += bytes;
    request->held_bytes = bytes;
    return true;
}

void hr__reader_complete(struct hr_reader *reader, struct hr_request *request,
                         struct hr_buffer *buffer, bool waited)
{
    request->buffer = buffer;
    request->waited = waited;
    request->state = HR_REQUEST_READY;
    if (buffer != NULL)
        hr__reader_note(reader, waited);
    if (buffer == NULL || request->unwanted) {
        reader->unused += !request->unwanted;
        free_request(reader, request);
    }
    if (reader->waiters > 0)
        pthread_cond_broadcast(&reader->done);
}

/* ---- taking ---- */

/* The buffer of the range that was read ahead, or NULL when there is none. */
static struct hr_buffer *
take_ahead(struct hr_reader *reader, const struct hr_range *range)
{
    uint64_t key = key_of(range);
    struct hr_buffer *buffer = NULL;
    struct hr_request *request;
    bool late = false;

    pthread_mutex_lock(&reader->lock);
    while ((request = find_request(reader, key, range)) != NULL) {
        if (request->state == HR_REQUEST_QUEUED) {
            drop_request(reader, request); /* to read it here is sooner done */
            break;
        }
        if (request->state == HR_REQUEST_READY) {
            buffer = request->buffer;
            request->buffer = NULL;
            free_request(reader, request);
            *(late ? &reader->late : &reader->ready) += 1;
            break;
        }
        late = true;
        reader->waiters++;
        pthread_cond_wait(&reader->done, &reader->lock);
        reader->waiters--;
    }
    pthread_mutex_unlock(&reader->lock);
    return buffer;
}

/* Give up what is complete and not yet taken: the pool has no room for a file that is
 * wanted at once. */
static bool drop_ready(struct hr_reader *reader)
{
    bool any = false;

    if (atomic_load_explicit(&reader->live, memory_order_relaxed) == 0)
        return false;
    pthread_mutex_lock(&reader->lock);
    for (uint32_t i = 0; i < reader->depth; i++) {
        if (reader->requests[i].state == HR_REQUEST_READY) {
            drop_request(reader, &reader->requests[i]);
            any = true;
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return any;
}

static enum hr_err take_here(struct hr_reader *reader, const char *path,
                             struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct hr_reader_stripe *stripe = stripe_of(reader);
    struct hr_buffer *buffer;
    bool waited;
    enum hr_err err = hr__reader_read_file(reader, path, NULL, &buffer, &waited, reterr);

    if (err == HR_ERR_LIMIT && drop_ready(reader))
        err = hr__reader_read_file(reader, path, NULL, &buffer, &waited, reterr);
    if (err != HR_OK)
        return err;
    hr__reader_note(reader, waited);
    add(waited ? &stripe->waited : &stripe->cached, 1);
    *ret_buffer = buffer;
    return HR_OK;
}

enum hr_err hr__reader_take(struct hr_reader *reader, const struct hr_range *range,
                            struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct hr_reader_stripe *stripe = stripe_of(reader);
    struct hr_buffer *buffer = NULL;

    if (atomic_load_explicit(&reader->live, memory_order_relaxed) != 0)
        buffer = take_ahead(reader, range);
    if (buffer == NULL)
        HR_TRY(take_here(reader, range->uri, &buffer, reterr));
    add(&stripe->files, 1);
    add(&stripe->bytes, hr_buffer_bytes(buffer));
    *ret_buffer = buffer;
    return HR_OK;
}

/* ---- naming ahead ---- */

static void enqueue(struct hr_reader *reader, uint64_t key, const struct hr_range *range)
{
    struct hr_request *request = reader->free, **bucket = bucket_of(reader, key);

    reader->free = request->next;
    request->key = key;
    request->state = HR_REQUEST_QUEUED;
    request->unwanted = request->waited = false;
    request->done_bytes = 0;
    request->queue_next = NULL;
    request->range.offset = range->offset;
    request->range.bytes = range->bytes;
    memcpy(request->range.uri, range->uri, strlen(range->uri) + 1);
    request->next = *bucket;
    *bucket = request;
    if (reader->queue_first == NULL)
        reader->queue_first = request;
    else
        reader->queue_last->queue_next = request;
    reader->queue_last = request;
    atomic_fetch_add_explicit(&reader->live, 1, memory_order_relaxed);
    reader->started++;
}

void hr__reader_ahead(struct hr_reader *reader, const struct hr_range *range)
{
    uint64_t key = key_of(range);

    if (reader->mode == HR_READER_NONE)
        return;
    pthread_mutex_lock(&reader->lock);
    if (find_request(reader, key, range) == NULL) {
        if (reader->free == NULL || reader->ahead_bytes >= reader->ahead_bytes_max) {
            reader->dropped++;
        } else {
            enqueue(reader, key, range);
            if (reader->mode == HR_READER_URING)
                hr__reader_ring_kick(reader);
            else
                pthread_cond_signal(&reader->work);
        }
    }
    pthread_mutex_unlock(&reader->lock);
}

/* ---- life ---- */

static enum hr_err make_table(struct hr_reader *reader)
{
    uint32_t buckets = 1;

    while (buckets < reader->depth * 2)
        buckets *= 2;
    reader->bucket_mask = buckets - 1;
    reader->requests = hr__calloc(reader->depth, sizeof *reader->requests);
    reader->buckets = hr__calloc(buckets, sizeof(struct hr_request *));
    if (reader->requests == NULL || reader->buckets == NULL)
        return HR_ERR_MEMORY;
    for (uint32_t i = reader->depth; i-- > 0;) {
        reader->requests[i].fd = -1;
        reader->requests[i].next = reader->free;
        reader->free = &reader->requests[i];
    }
    return HR_OK;
}

static enum hr_err
start_backend(struct hr_reader *reader, enum hr_reader_mode mode, struct hr_error *reterr)
{
    enum hr_err err;

    if (mode == HR_READER_NONE)
        return HR_OK;
    if (mode != HR_READER_THREADS) {
        reader->mode = HR_READER_URING;
        err = hr__reader_ring_start(reader, mode == HR_READER_URING ? reterr : NULL);
        if (err == HR_OK || mode == HR_READER_URING)
            return err;
    }
    reader->mode = HR_READER_THREADS;
    return hr__reader_threads_start(reader, reterr);
}

static uint32_t bounded(int value, uint32_t usual, uint32_t most)
{
    return value <= 0 ? usual : (uint32_t)value < most ? (uint32_t)value : most;
}

enum hr_err hr__reader_create(const struct hr_reader_options *options,
                              struct hr_reader **ret_reader, struct hr_error *reterr)
{
    struct hr_reader *reader = hr__aligned_alloc(64, sizeof *reader);
    enum hr_err err;

    if (reader == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    memset(reader, 0, sizeof *reader);
    reader->pool = options->pool;
    reader->file_bytes_max =
        options->file_bytes_max > 0 ? options->file_bytes_max : FILE_BYTES;
    reader->ahead_bytes_max =
        options->ahead_bytes_max > 0 ? options->ahead_bytes_max : AHEAD_BYTES;
    reader->depth = bounded(options->depth, DEPTH, DEPTH_MAX);
    reader->thread_count = bounded(options->threads, THREADS, THREADS_MAX);
    reader->mode = HR_READER_NONE;
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->work, NULL);
    pthread_cond_init(&reader->done, NULL);
    err = make_table(reader);
    if (err != HR_OK)
        hr__fail(reterr, err, "out of memory");
    else
        err = start_backend(reader, options->mode, reterr);
    if (err != HR_OK) {
        reader->mode = HR_READER_NONE;
        hr__reader_destroy(reader);
        return err;
    }
    *ret_reader = reader;
    return HR_OK;
}

void hr__reader_destroy(struct hr_reader *reader)
{
    if (reader == NULL)
        return;
    pthread_mutex_lock(&reader->lock);
    atomic_store(&reader->stop, true);
    pthread_cond_broadcast(&reader->work);
    if (reader->mode == HR_READER_URING)
        hr__reader_ring_kick(reader);
    pthread_mutex_unlock(&reader->lock);
    if (reader->mode == HR_READER_THREADS)
        hr__reader_threads_stop(reader);
    if (reader->mode == HR_READER_URING)
        hr__reader_ring_stop(reader);
    for (uint32_t i = 0; reader->requests != NULL && i < reader->depth; i++)
        hr_buffer_unref(reader->requests[i].buffer);
    pthread_cond_destroy(&reader->done);
    pthread_cond_destroy(&reader->work);
    pthread_mutex_destroy(&reader->lock);
    hr__free(reader->buckets);
    hr__free(reader->requests);
    hr__free(reader);
}

void hr__reader_stats(struct hr_reader *reader, struct hr_reader_stats *ret_stats)
{
    struct hr_reader_stats stats = {.mode = reader->mode};

    for (int i = 0; i < HR_READER_STRIPES; i++) {
        stats.files += atomic_load(&reader->stripes[i].files);
        stats.bytes += atomic_load(&reader->stripes[i].bytes);
        stats.cached += atomic_load(&reader->stripes[i].cached);
        stats.waited += atomic_load(&reader->stripes[i].waited);
    }
    pthread_mutex_lock(&reader->lock);
    stats.ahead_started = reader->started;
    stats.ahead_dropped = reader->dropped;
    stats.ahead_ready = reader->ready;
    stats.ahead_late = reader->late;
    stats.ahead_unused = reader->unused;
    stats.ahead_bytes = reader->ahead_bytes;
    stats.ahead_files = atomic_load(&reader->live);
    pthread_mutex_unlock(&reader->lock);
    *ret_stats = stats;
}
