/*
 * store/reader.c - the reader: taking, counts, life.
 *
 * A warm take touches no lock and writes to nothing that other threads write often: the
 * counters are striped. What was read ahead comes from reader_ahead.c.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/reader_internal.h"
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

/* ---- buffers ---- */

enum hr_err hr__reader_buffer(const struct hr_reader *reader, size_t bytes,
                              struct hr_buffer **ret_buffer)
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

/* ---- taking ---- */

static enum hr_err
room_failed(enum hr_err err, const char *uri, size_t bytes, struct hr_error *reterr)
{
    hr__store_note(reterr, uri);
    return hr__fail(reterr, err, "no room for the %zu bytes of %s: %s", bytes, uri,
                    err == HR_ERR_LIMIT ? "the pool's limit is reached"
                                        : hr_err_text(err));
}

/* Within the limits; what was read ahead and not taken gives way. */
static enum hr_err buffer_for(struct hr_reader *reader, const char *uri, size_t bytes,
                              struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    enum hr_err err;

    if (bytes > reader->file_bytes_max) {
        hr__store_note(reterr, uri);
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%s has %zu bytes, more than the limit of %llu", uri, bytes,
                        (unsigned long long)reader->file_bytes_max);
    }
    err = hr__reader_buffer(reader, bytes, ret_buffer);
    if (err == HR_ERR_LIMIT && hr__reader_drop_ready(reader))
        err = hr__reader_buffer(reader, bytes, ret_buffer);
    return err == HR_OK ? HR_OK : room_failed(err, uri, bytes, reterr);
}

struct here {
    struct hr_store_read read; /* first */
    struct hr_reader *reader;
    struct hr_buffer *buffer;
};

static enum hr_err give_buffer(struct hr_store_read *read, void **ret_data)
{
    struct here *here = (struct here *)read;

    HR_TRY(buffer_for(here->reader, read->range->uri, read->bytes, &here->buffer,
                      read->error));
    *ret_data = hr_buffer_data(here->buffer);
    return HR_OK;
}

static enum hr_err take_here(struct hr_reader *reader, const struct hr_range *range,
                             struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct hr_reader_stripe *stripe = stripe_of(reader);
    struct here here = {
        .read = {.range = range, .error = reterr, .room = give_buffer},
          .reader = reader
    };
    enum hr_err err = hr__store_fetch(&here.read, NULL);

    if (err != HR_OK) {
        hr_buffer_unref(here.buffer);
        return err;
    }
    hr__reader_note(reader, here.read.waited);
    add(here.read.waited ? &stripe->waited : &stripe->cached, 1);
    *ret_buffer = here.buffer;
    return HR_OK;
}

enum hr_err hr__reader_take(struct hr_reader *reader, const struct hr_range *range,
                            struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct hr_reader_stripe *stripe = stripe_of(reader);
    struct hr_buffer *buffer = NULL;

    if (atomic_load_explicit(&reader->live, memory_order_relaxed) != 0)
        buffer = hr__reader_take_ahead(reader, range);
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
    struct hr_reader_stripe *stripe = stripe_of(reader);
    struct hr_buffer *buffer = NULL;
    enum hr_err err;
    bool waited;

    HR_TRY(buffer_for(reader, object->uri, bytes, &buffer, reterr));
    err = hr__store_read(object, offset, hr_buffer_data(buffer), bytes, NULL, &waited,
                         reterr);
    if (err != HR_OK) {
        hr_buffer_unref(buffer);
        return err;
    }
    add(&stripe->files, 1);
    add(&stripe->bytes, bytes);
    *ret_buffer = buffer;
    return HR_OK;
}

enum hr_err hr__reader_fill(struct hr_reader *reader, const struct hr_range *range,
                            struct hr_object *object, void *to, struct hr_error *reterr)
{
    struct hr_reader_stripe *stripe = stripe_of(reader);
    struct hr_buffer *buffer = NULL;
    size_t bytes = (size_t)range->bytes;
    bool waited = false;

    if (atomic_load_explicit(&reader->live, memory_order_relaxed) != 0)
        buffer = hr__reader_take_ahead(reader, range);
    if (buffer != NULL) {
        memcpy(to, hr_buffer_data(buffer), bytes);
        hr_buffer_unref(buffer);
    } else {
        HR_TRY(hr__store_read(object, range->offset, to, bytes, NULL, &waited, reterr));
        hr__reader_note(reader, waited);
        add(waited ? &stripe->waited : &stripe->cached, 1);
    }
    add(&stripe->files, 1);
    add(&stripe->bytes, bytes);
    return HR_OK;
}

/* ---- life ---- */

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
    err = hr__reader_make_table(reader);
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
    hr__reader_free_table(reader);
    pthread_cond_destroy(&reader->done);
    pthread_mutex_destroy(&reader->lock);
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

    for (int i = 0; i < HR_READER_STRIPES; i++) {
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
