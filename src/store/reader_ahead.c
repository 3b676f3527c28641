/*
 * store/reader_ahead.c - the reader: ranges that are read before they are taken.
 *
 * Requests live in a fixed table under one lock. A request waits in a queue until the
 * budget has room for what it is expected to hold; then it is one read of a channel,
 * which owns it while it is in flight. A request that fails disappears: take then reads
 * the range itself and reports the error.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/thread.h"
#include "store/reader_internal.h"
#include <assert.h>
#include <string.h>

/* A range that was named this many depths ago will not be taken: its record was dropped.
 */
#define STALE_DEPTHS 4
#define BLIND 8 /* in flight while nothing is known about sizes */

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

    hr__assert_locked(&reader->lock);
    while (request != NULL && !is_range(request, key, range))
        request = request->next;
    return request;
}

/* Frees the slot and its buffer. */
static void free_request(struct hr_reader *reader, struct hr_request *request)
{
    struct hr_request **link = bucket_of(reader, request->key);

    hr__assert_locked(&reader->lock);
    assert(request->state != HR_REQUEST_FREE);
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

/* It will not be taken. */
static void drop_request(struct hr_reader *reader, struct hr_request *request)
{
    reader->unused++;
    free_request(reader, request);
}

/* ---- the budget, lock held ---- */

/* What a range of unknown size is expected to hold: rather more than the last ones did.
 */
static uint64_t expected_bytes(const struct hr_reader *reader)
{
    return reader->mean_bytes == 0 ? reader->ahead_bytes_max / BLIND
                                   : reader->mean_bytes + reader->spread_bytes;
}

/* Moves the mean and the mean distance from it by an eighth. */
static void learn_size(struct hr_reader *reader, uint64_t bytes)
{
    uint64_t mean = reader->mean_bytes, far;

    if (mean == 0) {
        reader->mean_bytes = bytes;
        return;
    }
    far = bytes > mean ? bytes - mean : mean - bytes;
    reader->spread_bytes += far / 8;
    reader->spread_bytes -= reader->spread_bytes / 8;
    reader->mean_bytes += bytes / 8;
    reader->mean_bytes -= mean / 8;
}

static void give_up_reservation(struct hr_request *request)
{
    request->reader->reserved_bytes -= request->reserved_bytes;
    request->reserved_bytes = 0;
}

/* One request is always in flight, however large it may be. */
static bool reserve(struct hr_reader *reader, struct hr_request *request)
{
    uint64_t most = reader->ahead_bytes_max, bytes = request->known_bytes;
    uint64_t used = reader->ahead_bytes + reader->reserved_bytes;

    if (bytes == HR_BYTES_UNKNOWN)
        bytes = expected_bytes(reader);
    if (bytes > most)
        bytes = most;
    if (used > 0 && (used > most || bytes > most - used))
        return false;
    reader->reserved_bytes += bytes;
    request->reserved_bytes = bytes;
    return true;
}

static void start_queued(struct hr_reader *reader)
{
    struct hr_request *request;

    hr__assert_locked(&reader->lock);
    while (!reader->closing && (request = reader->queue) != NULL &&
           reserve(reader, request)) {
        reader->queue = request->behind;
        if (reader->queue == NULL)
            reader->queue_end = &reader->queue;
        request->state = HR_REQUEST_IN_FLIGHT;
        request->refused = false;
        reader->started++;
        hr__channel_submit(request->channel, &request->read);
    }
}

static void unqueue(struct hr_reader *reader, struct hr_request *request)
{
    struct hr_request **link = &reader->queue;

    while (*link != request)
        link = &(*link)->behind;
    *link = request->behind;
    if (*link == NULL)
        reader->queue_end = link;
}

/* In the order of naming. */
static void queue_again(struct hr_reader *reader, struct hr_request *request)
{
    struct hr_request **link = &reader->queue;

    while (*link != NULL && (*link)->serial < request->serial)
        link = &(*link)->behind;
    request->state = HR_REQUEST_QUEUED;
    request->behind = *link;
    *link = request;
    if (request->behind == NULL)
        reader->queue_end = &request->behind;
}

/* ---- requests in flight: called by threads of a channel, no lock held ---- */

/* Memory within the budget. A request that turns out larger than expected is queued
 * again, now that its size is known. */
static enum hr_err give_room(struct hr_store_read *read, void **ret_data)
{
    struct hr_request *request = (struct hr_request *)read;
    struct hr_reader *reader = request->reader;
    size_t bytes = read->bytes;
    bool allowed;

    if (bytes > reader->file_bytes_max)
        return HR_ERR_LIMIT;
    pthread_mutex_lock(&reader->lock);
    assert(reader->ahead_bytes <= reader->ahead_bytes_max);
    give_up_reservation(request);
    if (request->range.bytes == HR_RANGE_REST)
        learn_size(reader, bytes);
    allowed = bytes <= reader->ahead_bytes_max - reader->ahead_bytes;
    if (allowed) {
        reader->ahead_bytes += bytes;
        request->held_bytes = bytes;
    } else if (bytes <= reader->ahead_bytes_max) {
        request->known_bytes = bytes;
        request->refused = true;
    }
    start_queued(reader);
    pthread_mutex_unlock(&reader->lock);
    if (!allowed)
        return HR_ERR_LIMIT;
    HR_TRY(hr__reader_buffer(reader, bytes, &request->buffer));
    *ret_data = hr_buffer_data(request->buffer);
    return HR_OK;
}

static void complete(struct hr_store_read *read, enum hr_err err)
{
    struct hr_request *request = (struct hr_request *)read;
    struct hr_reader *reader = request->reader;

    pthread_mutex_lock(&reader->lock);
    assert(request->state == HR_REQUEST_IN_FLIGHT);
    give_up_reservation(request);
    request->state = HR_REQUEST_READY;
    if (err == HR_OK) {
        hr__reader_note(reader, read->waited);
    } else if (request->refused) {
        queue_again(reader, request);
    } else {
        drop_request(reader, request);
    }
    start_queued(reader);
    if (reader->waiters > 0)
        pthread_cond_broadcast(&reader->done);
    pthread_mutex_unlock(&reader->lock);
}

/* ---- taking ---- */

/* True if the request, which is not complete, had not begun. */
static bool withdraw(struct hr_reader *reader, struct hr_request *request)
{
    if (request->state == HR_REQUEST_QUEUED)
        unqueue(reader, request);
    else if (hr__channel_withdraw(request->channel, &request->read))
        give_up_reservation(request);
    else
        return false;
    return true;
}

struct hr_buffer *
hr__reader_take_ahead(struct hr_reader *reader, const struct hr_range *range)
{
    uint64_t key = key_of(range);
    struct hr_buffer *buffer = NULL;
    struct hr_request *request;
    bool late = false;

    pthread_mutex_lock(&reader->lock);
    while ((request = find_request(reader, key, range)) != NULL) {
        if (request->state == HR_REQUEST_READY) {
            buffer = request->buffer;
            request->buffer = NULL;
            free_request(reader, request);
            *(late ? &reader->late : &reader->ready) += 1;
            break;
        }
        if (withdraw(reader, request)) {
            drop_request(reader, request); /* not begun: reading it here is faster */
            break;
        }
        late = true;
        reader->waiters++;
        pthread_cond_wait(&reader->done, &reader->lock);
        reader->waiters--;
    }
    start_queued(reader);
    pthread_mutex_unlock(&reader->lock);
    return buffer;
}

bool hr__reader_drop_ready(struct hr_reader *reader)
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
    start_queued(reader);
    pthread_mutex_unlock(&reader->lock);
    return any;
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
    if (reader->channel_count == HR_READER_CHANNELS_MAX ||
        hr__channel_open(uri, &options, &channel, NULL) != HR_OK)
        return NULL;
    reader->channels[reader->channel_count++] = channel;
    return channel;
}

/* Frees the oldest request if it is stale. */
static bool drop_stale(struct hr_reader *reader)
{
    struct hr_request *oldest = NULL;

    for (uint32_t i = 0; i < reader->depth; i++) {
        struct hr_request *request = &reader->requests[i];

        if (request->state == HR_REQUEST_READY &&
            (oldest == NULL || request->serial < oldest->serial))
            oldest = request;
    }
    if (oldest == NULL ||
        reader->named - oldest->serial < (uint64_t)STALE_DEPTHS * reader->depth)
        return false;
    drop_request(reader, oldest);
    return true;
}

static void queue_request(struct hr_reader *reader, struct hr_channel *channel,
                          uint64_t key, const struct hr_range *range)
{
    struct hr_request *request = reader->free, **bucket = bucket_of(reader, key);
    size_t length = strlen(range->uri);

    assert(request != NULL && request->state == HR_REQUEST_FREE &&
           request->buffer == NULL && request->reserved_bytes == 0);
    reader->free = request->next;
    request->reader = reader;
    request->channel = channel;
    request->key = key;
    request->serial = reader->named;
    request->state = HR_REQUEST_QUEUED;
    request->known_bytes =
        range->bytes == HR_RANGE_REST ? HR_BYTES_UNKNOWN : range->bytes;
    request->range.offset = range->offset;
    request->range.bytes = range->bytes;
    request->range.identity = range->identity;
    memcpy(request->range.uri, range->uri, length + 1);
    request->read.range = &request->range;
    request->read.room = give_room;
    request->read.done = complete;
    request->next = *bucket;
    *bucket = request;
    request->behind = NULL;
    *reader->queue_end = request;
    reader->queue_end = &request->behind;
    atomic_fetch_add_explicit(&reader->live, 1, memory_order_relaxed);
}

/* False if the table is full; lock held. */
static bool name_range(struct hr_reader *reader, const struct hr_range *range)
{
    uint64_t key = key_of(range);
    struct hr_channel *channel;

    reader->named++;
    if (find_request(reader, key, range) != NULL)
        return true;
    if (reader->free == NULL && !drop_stale(reader))
        return false;
    channel = channel_of(reader, range->uri);
    if (channel == NULL ||
        (range->bytes != HR_RANGE_REST && range->bytes > reader->ahead_bytes_max)) {
        reader->dropped++;
        return true;
    }
    queue_request(reader, channel, key, range);
    start_queued(reader);
    return true;
}

bool hr__reader_ahead(struct hr_reader *reader, const struct hr_range *range)
{
    bool known;

    if (reader->mode == HR_READER_NONE)
        return true;
    pthread_mutex_lock(&reader->lock);
    known = name_range(reader, range);
    pthread_mutex_unlock(&reader->lock);
    return known;
}

/* ---- life ---- */

enum hr_err hr__reader_make_table(struct hr_reader *reader)
{
    uint32_t buckets = 1;

    reader->queue_end = &reader->queue;
    while (buckets < reader->depth * 2)
        buckets *= 2;
    reader->bucket_mask = buckets - 1;
    reader->requests = hr__calloc(reader->depth, sizeof *reader->requests);
    reader->buckets = hr__calloc(buckets, sizeof(struct hr_request *));
    if (reader->requests == NULL || reader->buckets == NULL)
        return HR_ERR_MEMORY;
    for (uint32_t i = reader->depth; i-- > 0;) {
        reader->requests[i].next = reader->free;
        reader->free = &reader->requests[i];
    }
    return HR_OK;
}

void hr__reader_free_table(struct hr_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->closing = true;
    pthread_mutex_unlock(&reader->lock);
    for (uint32_t i = 0; i < reader->channel_count; i++)
        hr__channel_close(reader->channels[i]);
    for (uint32_t i = 0; reader->requests != NULL && i < reader->depth; i++)
        hr_buffer_unref(reader->requests[i].buffer);
    hr__free(reader->buckets);
    hr__free(reader->requests);
}
