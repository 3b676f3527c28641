/*
 * store/reader.c - the reader: taking, naming ahead, counts.
 *
 * A warm take touches no lock and writes to nothing that other threads write often: the
 * counters are striped. Requests named ahead live in a fixed table under one lock; each
 * is one read of a channel, which owns it while it is in flight. A request that fails
 * disappears: take then reads the range itself and reports the error.
 */
#include "store/reader.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/thread.h"
#include "store/store_internal.h"
#include <assert.h>
#include <string.h>

#define COLD_RUN                                                                         \
    256 /* reads in a row without waiting until the reader counts as warm                \
         */
#define AHEAD_BYTES ((size_t)64 << 20)
#define FILE_BYTES ((uint64_t)1 << 30)
#define DEPTH 64
#define DEPTH_MAX 4096
#define THREADS 8
#define THREADS_MAX 256
#define STRIPES 16
#define CHANNELS_MAX 8 /* stores in use at a time */
/* A range that was named this many depths ago will not be taken: its record was dropped.
 */
#define STALE_DEPTHS 4

enum state {
    FREE,
    IN_FLIGHT, /* the channel owns all but links */
    READY,     /* buffer is whole */
};

struct request {
    struct hr_store_read read; /* first: the channel gives it back */
    struct hr_reader *reader;
    struct hr_channel *channel;
    uint64_t key, serial; /* hash of the range; when it was named */
    enum state state;
    struct request *next; /* in its bucket; in the free list */
    struct hr_buffer *buffer;
    size_t held_bytes; /* counted in ahead_bytes */
    struct hr_range range;
};

/* Counters of the threads that share a stripe. */
struct stripe {
    _Alignas(64) atomic_uint_fast64_t files, bytes, cached, waited;
};

struct hr_reader {
    struct hr_pool *pool;
    uint64_t file_bytes_max;
    size_t ahead_bytes_max;
    uint32_t depth, thread_count;
    enum hr_reader_mode mode; /* as asked */

    atomic_int cold_left; /* reads until the reader counts as warm; > 0: cold */
    atomic_uint live;     /* requests not free */
    struct stripe stripes[STRIPES];

    pthread_mutex_t lock;
    pthread_cond_t done; /* a request ended */
    /* under lock */
    struct hr_channel *channels[CHANNELS_MAX]; /* the first reads files */
    uint32_t channel_count;
    struct request *requests, *free, **buckets;
    uint32_t bucket_mask;
    uint32_t waiters;
    size_t ahead_bytes;
    uint64_t named, started, dropped, ready, late, unused;
};

static struct stripe *stripe_of(struct hr_reader *reader)
{
    uint64_t self = (uint64_t)pthread_self() >> 6;

    return &reader->stripes[self * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

static void add(atomic_uint_fast64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static void note(struct hr_reader *reader, bool waited)
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

static struct request **bucket_of(struct hr_reader *reader, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    return &reader->buckets[hash & reader->bucket_mask];
}

static uint64_t key_of(const struct hr_range *range)
{
    return hr__hash64(range->uri, strlen(range->uri), range->offset ^ range->bytes << 17);
}

static bool
is_range(const struct request *request, uint64_t key, const struct hr_range *range)
{
    return request->key == key && request->range.offset == range->offset &&
           request->range.bytes == range->bytes &&
           strcmp(request->range.uri, range->uri) == 0;
}

static struct request *
find_request(struct hr_reader *reader, uint64_t key, const struct hr_range *range)
{
    struct request *request = *bucket_of(reader, key);

    hr__assert_locked(&reader->lock);
    while (request != NULL && !is_range(request, key, range))
        request = request->next;
    return request;
}

/* Frees the slot and its buffer. */
static void free_request(struct hr_reader *reader, struct request *request)
{
    struct request **link = bucket_of(reader, request->key);

    hr__assert_locked(&reader->lock);
    assert(request->state != FREE);
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    reader->ahead_bytes -= request->held_bytes;
    hr_buffer_unref(request->buffer);
    request->buffer = NULL;
    request->held_bytes = 0;
    request->state = FREE;
    request->next = reader->free;
    reader->free = request;
    atomic_fetch_sub_explicit(&reader->live, 1, memory_order_relaxed);
}

/* It will not be taken. */
static void drop_request(struct hr_reader *reader, struct request *request)
{
    reader->unused++;
    free_request(reader, request);
}

/* ---- buffers ---- */

static enum hr_err
get_buffer(const struct hr_reader *reader, size_t bytes, struct hr_buffer **ret_buffer)
{
    struct hr_buffer *whole, *view;

    if (bytes > SIZE_MAX - HR_READER_SLACK_BYTES)
        return HR_ERR_MEMORY;
    HR_TRY(hr_pool_get(reader->pool, bytes + HR_READER_SLACK_BYTES, &whole));
    memset((char *)hr_buffer_data(whole) + bytes, 0, HR_READER_SLACK_BYTES);
    view = hr_buffer_view(whole, 0, bytes); /* the pool keeps heads of views: 40 ns */
    hr_buffer_unref(whole);
    if (view == NULL)
        return HR_ERR_MEMORY;
    *ret_buffer = view;
    return HR_OK;
}

/* ---- requests in flight: called by threads of a channel, no lock held ---- */

/* Memory within the budget; an error is no more than a reason to end the read. */
static enum hr_err give_room(struct hr_store_read *read, void **ret_data)
{
    struct request *request = (struct request *)read;
    struct hr_reader *reader = request->reader;
    size_t bytes = read->bytes;
    bool allowed;

    if (bytes > reader->file_bytes_max)
        return HR_ERR_LIMIT;
    pthread_mutex_lock(&reader->lock);
    assert(reader->ahead_bytes <= reader->ahead_bytes_max);
    allowed = bytes <= reader->ahead_bytes_max - reader->ahead_bytes;
    if (allowed) {
        reader->ahead_bytes += bytes;
        request->held_bytes = bytes;
    }
    pthread_mutex_unlock(&reader->lock);
    if (!allowed)
        return HR_ERR_LIMIT;
    HR_TRY(get_buffer(reader, bytes, &request->buffer));
    *ret_data = hr_buffer_data(request->buffer);
    return HR_OK;
}

static void complete(struct hr_store_read *read, enum hr_err err)
{
    struct request *request = (struct request *)read;
    struct hr_reader *reader = request->reader;

    pthread_mutex_lock(&reader->lock);
    assert(request->state == IN_FLIGHT);
    request->state = READY;
    if (err == HR_OK)
        note(reader, read->waited);
    else
        drop_request(reader, request);
    if (reader->waiters > 0)
        pthread_cond_broadcast(&reader->done);
    pthread_mutex_unlock(&reader->lock);
}

/* ---- taking ---- */

/* The buffer of the range that was read ahead, or NULL when there is none. */
static struct hr_buffer *
take_ahead(struct hr_reader *reader, const struct hr_range *range)
{
    uint64_t key = key_of(range);
    struct hr_buffer *buffer = NULL;
    struct request *request;
    bool late = false;

    pthread_mutex_lock(&reader->lock);
    while ((request = find_request(reader, key, range)) != NULL) {
        if (request->state == READY) {
            buffer = request->buffer;
            request->buffer = NULL;
            free_request(reader, request);
            *(late ? &reader->late : &reader->ready) += 1;
            break;
        }
        if (!late && hr__channel_withdraw(request->channel, &request->read)) {
            drop_request(reader, request); /* not begun: reading it here is faster */
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

/* Frees what is complete and not yet taken: the pool has no room for a range that is
 * wanted now. */
static bool drop_ready(struct hr_reader *reader)
{
    bool any = false;

    if (atomic_load_explicit(&reader->live, memory_order_relaxed) == 0)
        return false;
    pthread_mutex_lock(&reader->lock);
    for (uint32_t i = 0; i < reader->depth; i++) {
        if (reader->requests[i].state == READY) {
            drop_request(reader, &reader->requests[i]);
            any = true;
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return any;
}

static enum hr_err
room_failed(enum hr_err err, const char *uri, size_t bytes, struct hr_error *reterr)
{
    hr__store_note(reterr, uri);
    return hr__fail(reterr, err, "no room for the %zu bytes of %s: %s", bytes, uri,
                    err == HR_ERR_LIMIT ? "the pool's limit is reached"
                                        : hr_err_text(err));
}

static enum hr_err
read_object(struct hr_reader *reader, struct hr_object *object, uint64_t offset,
            size_t bytes, struct hr_buffer **ret_buffer, bool *ret_waited,
            struct hr_error *reterr)
{
    struct hr_buffer *buffer;
    enum hr_err err;

    if (bytes > reader->file_bytes_max) {
        hr__store_note(reterr, object->uri);
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%s has %zu bytes, more than the limit of %llu", object->uri,
                        bytes, (unsigned long long)reader->file_bytes_max);
    }
    err = get_buffer(reader, bytes, &buffer);
    if (err == HR_ERR_LIMIT && drop_ready(reader))
        err = get_buffer(reader, bytes, &buffer);
    if (err != HR_OK)
        return room_failed(err, object->uri, bytes, reterr);
    err = hr__store_read(object, offset, hr_buffer_data(buffer), bytes, NULL, ret_waited,
                         reterr);
    if (err == HR_OK)
        *ret_buffer = buffer;
    else
        hr_buffer_unref(buffer);
    return err;
}

static enum hr_err take_here(struct hr_reader *reader, const struct hr_range *range,
                             struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct stripe *stripe = stripe_of(reader);
    struct hr_object object;
    bool waited = false;
    size_t bytes;
    enum hr_err err;

    HR_TRY(hr__range_open(range, &object, &bytes, reterr));
    err = read_object(reader, &object, range->offset, bytes, ret_buffer, &waited, reterr);
    hr__store_close(&object);
    if (err != HR_OK)
        return err;
    note(reader, waited);
    add(waited ? &stripe->waited : &stripe->cached, 1);
    return HR_OK;
}

enum hr_err hr__reader_take(struct hr_reader *reader, const struct hr_range *range,
                            struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct stripe *stripe = stripe_of(reader);
    struct hr_buffer *buffer = NULL;

    if (atomic_load_explicit(&reader->live, memory_order_relaxed) != 0)
        buffer = take_ahead(reader, range);
    if (buffer == NULL)
        HR_TRY(take_here(reader, range, &buffer, reterr));
    add(&stripe->files, 1);
    add(&stripe->bytes, hr_buffer_bytes(buffer));
    *ret_buffer = buffer;
    return HR_OK;
}

enum hr_err
hr__reader_read(struct hr_reader *reader, struct hr_object *object, uint64_t offset,
                size_t bytes, struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct stripe *stripe = stripe_of(reader);
    bool waited;

    HR_TRY(read_object(reader, object, offset, bytes, ret_buffer, &waited, reterr));
    add(&stripe->files, 1);
    add(&stripe->bytes, bytes);
    return HR_OK;
}

enum hr_err hr__reader_fill(struct hr_reader *reader, const struct hr_range *range,
                            struct hr_object *object, void *to, struct hr_error *reterr)
{
    struct stripe *stripe = stripe_of(reader);
    struct hr_buffer *buffer = NULL;
    size_t bytes = (size_t)range->bytes;
    bool waited = false;

    if (atomic_load_explicit(&reader->live, memory_order_relaxed) != 0)
        buffer = take_ahead(reader, range);
    if (buffer != NULL) {
        memcpy(to, hr_buffer_data(buffer), bytes);
        hr_buffer_unref(buffer);
    } else {
        HR_TRY(hr__store_read(object, range->offset, to, bytes, NULL, &waited, reterr));
        note(reader, waited);
        add(waited ? &stripe->waited : &stripe->cached, 1);
    }
    add(&stripe->files, 1);
    add(&stripe->bytes, bytes);
    return HR_OK;
}

/* ---- naming ahead, lock held ---- */

/* NULL if it cannot be opened. */
static struct hr_channel *channel_of(struct hr_reader *reader, const char *uri)
{
    struct hr_channel_options options = {.depth = reader->depth,
                                         .threads = reader->thread_count};
    struct hr_channel *channel = NULL;

    for (uint32_t i = 0; i < reader->channel_count; i++)
        if (hr__channel_takes(reader->channels[i], uri))
            return reader->channels[i];
    if (reader->channel_count == CHANNELS_MAX ||
        hr__channel_open(uri, &options, &channel, NULL) != HR_OK)
        return NULL;
    reader->channels[reader->channel_count++] = channel;
    return channel;
}

/* Frees the oldest request if it is stale. */
static bool drop_stale(struct hr_reader *reader)
{
    struct request *oldest = NULL;

    for (uint32_t i = 0; i < reader->depth; i++) {
        struct request *request = &reader->requests[i];

        if (request->state == READY &&
            (oldest == NULL || request->serial < oldest->serial))
            oldest = request;
    }
    if (oldest == NULL ||
        reader->named - oldest->serial < (uint64_t)STALE_DEPTHS * reader->depth)
        return false;
    drop_request(reader, oldest);
    return true;
}

static bool has_room(struct hr_reader *reader)
{
    do
        if (reader->free != NULL && reader->ahead_bytes < reader->ahead_bytes_max)
            return true;
    while (drop_stale(reader));
    return false;
}

static void begin_request(struct hr_reader *reader, struct hr_channel *channel,
                          uint64_t key, const struct hr_range *range)
{
    struct request *request = reader->free, **bucket = bucket_of(reader, key);
    size_t length = strlen(range->uri);

    assert(request != NULL && request->state == FREE && request->buffer == NULL);
    reader->free = request->next;
    request->reader = reader;
    request->channel = channel;
    request->key = key;
    request->serial = reader->named;
    request->state = IN_FLIGHT;
    request->range.offset = range->offset;
    request->range.bytes = range->bytes;
    request->range.identity = range->identity;
    memcpy(request->range.uri, range->uri, length + 1);
    request->read.range = &request->range;
    request->read.room = give_room;
    request->read.done = complete;
    request->next = *bucket;
    *bucket = request;
    atomic_fetch_add_explicit(&reader->live, 1, memory_order_relaxed);
    reader->started++;
    hr__channel_submit(channel, &request->read);
}

void hr__reader_ahead(struct hr_reader *reader, const struct hr_range *range)
{
    uint64_t key = key_of(range);
    struct hr_channel *channel;

    if (reader->mode == HR_READER_NONE)
        return;
    pthread_mutex_lock(&reader->lock);
    reader->named++;
    if (find_request(reader, key, range) == NULL) {
        channel = channel_of(reader, range->uri);
        if (channel != NULL && has_room(reader))
            begin_request(reader, channel, key, range);
        else
            reader->dropped++;
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
    reader->buckets = hr__calloc(buckets, sizeof(struct request *));
    if (reader->requests == NULL || reader->buckets == NULL)
        return HR_ERR_MEMORY;
    for (uint32_t i = reader->depth; i-- > 0;) {
        reader->requests[i].next = reader->free;
        reader->free = &reader->requests[i];
    }
    return HR_OK;
}

/* A mode that was asked for is tried at once, so that one that is not available is known.
 * Else channels are opened when something is read ahead: most epochs are read from the
 * page cache. */
static enum hr_err
start_channel(struct hr_reader *reader, enum hr_reader_mode mode, struct hr_error *reterr)
{
    struct hr_channel_options options = {
        .mode = mode == HR_READER_URING ? HR_CHANNEL_URING : HR_CHANNEL_THREADS,
        .depth = reader->depth,
        .threads = reader->thread_count};

    reader->mode = mode;
    if (mode == HR_READER_NONE || mode == HR_READER_AUTO)
        return HR_OK;
    HR_TRY(hr__channel_open("/", &options, &reader->channels[0], reterr));
    reader->channel_count = 1;
    return HR_OK;
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
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->done, NULL);
    err = make_table(reader);
    if (err != HR_OK)
        hr__fail(reterr, err, "out of memory");
    else
        err = start_channel(reader, options->mode, reterr);
    if (err == HR_OK)
        *ret_reader = reader;
    else
        hr__reader_destroy(reader);
    return err;
}

void hr__reader_destroy(struct hr_reader *reader)
{
    if (reader == NULL)
        return;
    for (uint32_t i = 0; i < reader->channel_count; i++)
        hr__channel_close(reader->channels[i]);
    for (uint32_t i = 0; reader->requests != NULL && i < reader->depth; i++)
        hr_buffer_unref(reader->requests[i].buffer);
    pthread_cond_destroy(&reader->done);
    pthread_mutex_destroy(&reader->lock);
    hr__free(reader->buckets);
    hr__free(reader->requests);
    hr__free(reader);
}

/* How files are read ahead; lock held. */
static enum hr_reader_mode mode_of(const struct hr_reader *reader)
{
    for (uint32_t i = 0; i < reader->channel_count; i++) {
        enum hr_channel_mode mode = hr__channel_mode(reader->channels[i]);

        if (mode == HR_CHANNEL_URING)
            return HR_READER_URING;
        if (mode == HR_CHANNEL_THREADS)
            return HR_READER_THREADS;
    }
    return reader->mode;
}

void hr__reader_stats(struct hr_reader *reader, struct hr_reader_stats *ret_stats)
{
    struct hr_reader_stats stats = {0};

    for (int i = 0; i < STRIPES; i++) {
        stats.files += atomic_load(&reader->stripes[i].files);
        stats.bytes += atomic_load(&reader->stripes[i].bytes);
        stats.cached += atomic_load(&reader->stripes[i].cached);
        stats.waited += atomic_load(&reader->stripes[i].waited);
    }
    pthread_mutex_lock(&reader->lock);
    stats.mode = mode_of(reader);
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
