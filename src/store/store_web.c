/*
 * store/store_web.c - objects, reads and channels over HTTP.
 *
 * An object is looked at with a GET of its first byte: some servers and signed names
 * refuse HEAD, and the answer shows whether ranges are served. Where they are not, the
 * object is read whole when it is opened and kept until it is closed, within a limit for
 * all such objects of the process. A read of a channel is one GET: its answer brings size
 * and identity with the first bytes.
 */
#include "store/store_web.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include <assert.h>
#include <string.h>

/* Bytes of objects that are kept whole. */
static atomic_uint_fast64_t held_bytes;

void hr__web_encode(struct hr_str *str, const char *bytes, size_t count, const char *keep)
{
    for (size_t i = 0; i < count; i++) {
        char c = bytes[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c != '\0' && strchr(keep, c) != NULL))
            hr__str_add_bytes(str, &c, 1);
        else
            hr__str_addf(str, "%%%02X", (unsigned char)c);
    }
}

/* ---- objects ---- */

struct into {
    const struct hr_object *object;
    void *data;
    size_t bytes;
};

/* The memory of a read, if the object is the one that was opened. */
static enum hr_err give_memory(struct hr_web_request *request, void **ret_data)
{
    const struct into *into = request->place;

    if (!hr__hash_equal(request->identity, into->object->identity))
        return hr__fail(request->error, HR_ERR_FORMAT, "%s changed while it was read",
                        request->uri);
    request->need = into->bytes;
    *ret_data = into->data;
    return HR_OK;
}

static enum hr_err
fetch(const struct hr_web_kind *kind, const struct hr_object *object, uint64_t offset,
      void *data, size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    struct into into = {object, data, bytes};
    struct hr_web_request request = {
        .kind = kind,
        .uri = object->uri,
        .want = HR_WEB_RANGE,
        .offset = offset,
        .bytes = offset == 0 && bytes == object->bytes ? HR_RANGE_REST : bytes,
        .error = reterr,
        .room = give_memory,
        .place = &into};
    enum hr_err err = hr__web_fetch(&request);

    *ret_got = request.got;
    return err;
}

static enum hr_err
hold(const struct hr_web_kind *kind, struct hr_object *object, struct hr_error *reterr)
{
    uint64_t most = hr__web_whole_bytes();
    enum hr_err err = HR_ERR_UNSUPPORTED;
    size_t got;

    if (object->bytes > most ||
        atomic_fetch_add(&held_bytes, object->bytes) > most - object->bytes) {
        hr__fail(reterr, err,
                 "cannot open %s: the server does not serve ranges, and with its %llu "
                 "bytes more than HEADRACE_HTTP_WHOLE_BYTES = %llu would be kept in "
                 "memory",
                 object->uri, (unsigned long long)object->bytes,
                 (unsigned long long)most);
    } else {
        object->as.own = hr__malloc((size_t)object->bytes);
        err = object->as.own != NULL
                  ? fetch(kind, object, 0, object->as.own, (size_t)object->bytes, &got,
                          reterr)
                  : hr__fail(reterr, HR_ERR_MEMORY, "no memory for the %llu bytes of %s",
                             (unsigned long long)object->bytes, object->uri);
    }
    if (err == HR_OK)
        return HR_OK;
    hr__store_note(reterr, object->uri);
    hr__free(object->as.own);
    if (object->bytes <= most)
        atomic_fetch_sub(&held_bytes, object->bytes);
    return err;
}

enum hr_err hr__web_open(const struct hr_web_kind *kind, struct hr_object *object,
                         struct hr_error *reterr)
{
    struct hr_web_request request = {
        .kind = kind, .uri = object->uri, .want = HR_WEB_LOOK, .error = reterr};

    HR_TRY(hr__web_fetch(&request));
    object->bytes = request.object_bytes;
    object->identity = request.identity;
    object->lasting = request.lasting;
    object->as.own = NULL;
    if (request.has_ranges || object->bytes == 0)
        return HR_OK;
    return hold(kind, object, reterr);
}

void hr__web_close(struct hr_object *object)
{
    if (object->as.own == NULL)
        return;
    hr__free(object->as.own);
    atomic_fetch_sub(&held_bytes, object->bytes);
}

enum hr_err
hr__web_read(const struct hr_web_kind *kind, struct hr_object *object, uint64_t offset,
             void *data, size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    if (object->as.own == NULL)
        return fetch(kind, object, offset, data, bytes, ret_got, reterr);
    memcpy(data, (const char *)object->as.own + offset, bytes);
    *ret_got = bytes;
    return HR_OK;
}

/* ---- reads of ranges ---- */

/* Size and identity are known: as when the object is opened. */
static enum hr_err begin_read(struct hr_web_request *request, void **ret_data)
{
    struct hr_store_read *read = request->place;
    struct hr_error *error = read->error;
    enum hr_err err;

    read->object.bytes = request->object_bytes;
    read->object.identity = request->identity;
    read->error = request->error;
    err = hr__store_begin(read);
    read->error = error;
    if (err != HR_OK)
        return err;
    request->need = read->bytes;
    *ret_data = read->data;
    return HR_OK;
}

static struct hr_web_request
request_of(const struct hr_web_kind *kind, struct hr_store_read *read)
{
    const struct hr_range *range = read->range;

    return (struct hr_web_request){
        .kind = kind,
        .uri = range->uri,
        .want = range->bytes > 0 ? HR_WEB_RANGE : HR_WEB_LOOK,
        .offset = range->offset,
        .bytes = range->bytes,
        .error = read->error,
        .room = begin_read,
        .place = read,
    };
}

static void name_byte(struct hr_store_read *read, const struct hr_web_request *request)
{
    char message[sizeof read->error->message];

    memcpy(message, read->error->message, sizeof message);
    hr__fail(read->error, HR_ERR_IO, "%s (at byte %llu)", message,
             (unsigned long long)(read->range->offset + request->got));
}

/* Sets the results of the read, whose request ended with `err`. */
static enum hr_err end_read(struct hr_web_request *request, enum hr_err err)
{
    struct hr_store_read *read = request->place;

    if (err == HR_OK && request->want == HR_WEB_LOOK) { /* the range is empty */
        void *data;

        request->error = read->error;
        err = begin_read(request, &data);
    }
    read->got = request->got;
    read->waited = true;
    if (err == HR_ERR_IO && read->error != NULL)
        name_byte(read, request);
    return err;
}

enum hr_err
hr__web_fetch_range(const struct hr_web_kind *kind, struct hr_store_read *read)
{
    struct hr_web_request request = request_of(kind, read);

    return end_read(&request, hr__web_fetch(&request));
}

/* ---- channels ---- */

struct flight {
    struct hr_web_request web;
    struct hr_store_read *read; /* NULL: free */
    struct hr_channel *channel;
    struct flight *next; /* free */
};

/* Under the channel's lock. */
struct flights {
    const struct hr_web_kind *kind;
    struct flight *all, *free;
    uint32_t busy;
    pthread_cond_t idle; /* busy is 0 */
};

static void kick(struct hr_channel *channel);

static void land(struct hr_web_request *request, enum hr_err err)
{
    struct flight *flight = request->user;
    struct hr_store_read *read = flight->read;
    struct hr_channel *channel = flight->channel;
    struct flights *flights = channel->own;

    read->done(read, end_read(request, err));
    pthread_mutex_lock(&channel->lock);
    flight->read = NULL;
    flight->next = flights->free;
    flights->free = flight;
    flights->busy--;
    kick(channel);
    if (flights->busy == 0)
        pthread_cond_broadcast(&flights->idle);
    pthread_mutex_unlock(&channel->lock);
}

/* False: no thread or memory; the read stays queued, and is read by who takes it. */
static bool
submit(struct flights *flights, struct hr_channel *channel, struct hr_store_read *read)
{
    struct flight *flight = flights->free;

    read->object = (struct hr_object){.store = channel->store, .uri = read->range->uri};
    flight->web = request_of(flights->kind, read);
    flight->web.done = land;
    flight->web.user = flight;
    flight->channel = channel;
    flight->read = read;
    if (hr__web_submit(&flight->web, NULL) != HR_OK) {
        flight->read = NULL;
        return false;
    }
    flights->free = flight->next;
    flights->busy++;
    return true;
}

static void kick(struct hr_channel *channel)
{
    struct flights *flights = channel->own;
    struct hr_store_read *read;

    while (!atomic_load(&channel->stop) && flights->free != NULL &&
           (read = hr__channel_next(channel)) != NULL) {
        if (submit(flights, channel, read))
            continue;
        read->next = channel->first;
        channel->first = read;
        if (read->next == NULL)
            channel->last = read;
        return;
    }
}

static void stop(struct hr_channel *channel)
{
    struct flights *flights = channel->own;

    pthread_mutex_lock(&channel->lock);
    for (uint32_t i = 0; i < channel->depth; i++)
        if (flights->all[i].read != NULL)
            hr__web_cancel(&flights->all[i].web);
    while (flights->busy > 0)
        pthread_cond_wait(&flights->idle, &channel->lock);
    pthread_mutex_unlock(&channel->lock);
    pthread_cond_destroy(&flights->idle);
    hr__free(flights->all);
    hr__free(flights);
}

static const struct hr_channel_kind by_requests = {HR_CHANNEL_REQUESTS, kick, stop};

enum hr_err hr__web_start(const struct hr_web_kind *kind, struct hr_channel *channel,
                          struct hr_error *reterr)
{
    struct flights *flights = hr__calloc(1, sizeof *flights);

    if (flights != NULL)
        flights->all = hr__calloc(channel->depth, sizeof *flights->all);
    if (flights == NULL || flights->all == NULL) {
        hr__free(flights);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    for (uint32_t i = channel->depth; i-- > 0;) {
        flights->all[i].next = flights->free;
        flights->free = &flights->all[i];
    }
    flights->kind = kind;
    pthread_cond_init(&flights->idle, NULL);
    channel->kind = &by_requests;
    channel->own = flights;
    return HR_OK;
}
