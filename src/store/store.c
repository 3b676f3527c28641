/*
 * store/store.c - the table of stores, and what all of them share: names, ranges, and
 * reads that are resumed.
 */
#include "store/store.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/store_internal.h"
#include <assert.h>
#include <string.h>

static const struct hr_store *const stores[] = {&hr_store_file, &hr_store_memory,
                                                &hr_store_http, &hr_store_https,
                                                &hr_store_s3,   &hr_store_gluster};

#define STORES (sizeof stores / sizeof stores[0])
#define CHUNK_BYTES ((size_t)8 << 20) /* between two looks at the stop flag */
#define TRIES 3                       /* of a read at one place */
#define SLOW_READ_NS 300000u          /* a cached photo takes a tenth of this */

/* ---- names ---- */

/* Bytes of the scheme of "scheme://"; 0: it is a path. */
static size_t scheme_bytes(const char *uri)
{
    size_t bytes = 0;

    if (uri[0] != '/') /* most paths by far: spares 20 ns */
        bytes = strspn(uri, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return bytes > 0 && strncmp(uri + bytes, "://", 3) == 0 ? bytes : 0;
}

static enum hr_err unknown_scheme(const char *uri, size_t bytes, struct hr_error *reterr)
{
    char known[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < STORES; i++) {
        size_t more = strlen(stores[i]->scheme);

        if (used + more + 6 > sizeof known)
            break;
        memcpy(known + used, i == 0 ? "" : ", ", i == 0 ? 0 : 2);
        used += i == 0 ? 0 : 2;
        memcpy(known + used, stores[i]->scheme, more + 1);
        used += more;
    }
    hr__store_note(reterr, uri);
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "%s: no store has the scheme %.*s (there are: %s); a file of that "
                    "name is ./%s",
                    uri, (int)bytes, uri, known, uri);
}

static enum hr_err find_store(const char *uri, const struct hr_store **ret_store,
                              const char **ret_name, struct hr_error *reterr)
{
    size_t bytes = scheme_bytes(uri);

    *ret_store = &hr_store_file;
    *ret_name = uri;
    if (bytes == 0)
        return HR_OK;
    for (size_t i = 0; i < STORES; i++) {
        if (strlen(stores[i]->scheme) != bytes ||
            memcmp(stores[i]->scheme, uri, bytes) != 0)
            continue;
        *ret_store = stores[i];
        *ret_name = uri + bytes + 3;
        if (i == 0 && **ret_name != '/')
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "%s: a path after file:// must begin with a slash", uri);
        return HR_OK;
    }
    return unknown_scheme(uri, bytes, reterr);
}

const char *hr__store_scheme(size_t at, const char **ret_gives)
{
    if (at >= STORES)
        return NULL;
    *ret_gives = stores[at]->gives;
    return stores[at]->scheme;
}

enum hr_err hr__store_check(size_t at, struct hr_error *reterr)
{
    return stores[at]->check != NULL ? stores[at]->check(reterr) : HR_OK;
}

bool hr__store_is_remote(const char *uri, const char **ret_path)
{
    const struct hr_store *store;

    return find_store(uri, &store, ret_path, NULL) != HR_OK || store != &hr_store_file;
}

void hr__store_note(struct hr_error *error, const char *uri)
{
    if (error == NULL)
        return;
    strncpy(error->file, uri, sizeof error->file - 1);
    error->file[sizeof error->file - 1] = '\0';
}

/* ---- objects ---- */

enum hr_err
hr__store_open(const char *uri, struct hr_object *ret_object, struct hr_error *reterr)
{
    struct hr_object object = {.uri = uri};
    const char *name;

    HR_TRY(find_store(uri, &object.store, &name, reterr));
    HR_TRY(object.store->open(name, &object, reterr));
    *ret_object = object;
    return HR_OK;
}

bool hr__store_is_young(int64_t mtime_ns)
{
    return mtime_ns > (int64_t)hr__wall_ns() - INT64_C(2000000000);
}

bool hr__store_is_same(const struct hr_object *object)
{
    return object->store->is_same == NULL || object->store->is_same(object);
}

uint64_t hr__store_stamp(const char *uri, uint64_t since)
{
    const struct hr_store *store;
    const char *name;

    if (find_store(uri, &store, &name, NULL) != HR_OK)
        return HR_STAMP_UNKNOWN;
    return store == &hr_store_file ? hr__store_file_stamp(name, since) : 0;
}

void hr__store_close(struct hr_object *object)
{
    object->store->close(object);
}

enum hr_err hr__store_ended_early(const struct hr_object *object, uint64_t at,
                                  struct hr_error *reterr)
{
    hr__store_note(reterr, object->uri);
    return hr__fail(
        reterr, HR_ERR_FORMAT, "%s became shorter while it was read: %llu of %llu bytes",
        object->uri, (unsigned long long)at, (unsigned long long)object->bytes);
}

static enum hr_err
read_failed(const struct hr_object *object, uint64_t at, enum hr_err err,
            const struct hr_error *why, struct hr_error *reterr)
{
    hr__store_note(reterr, object->uri);
    return hr__fail(reterr, err, "%s (at byte %llu of %llu)", why->message,
                    (unsigned long long)at, (unsigned long long)object->bytes);
}

static enum hr_err read_some(struct hr_object *object, uint64_t offset, void *data,
                             size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    *ret_got = 0;
    if (!object->store->retries && hr__fault(HR_FAULT_READ))
        return hr__fail(reterr, HR_ERR_IO, "cannot read %s", object->uri);
    return object->store->read(object, offset, data, bytes, ret_got, reterr);
}

/* The rest, from `at` of the range, waiting where need be. */
static enum hr_err
read_rest(struct hr_object *object, uint64_t offset, char *data, size_t bytes, size_t at,
          const atomic_bool *stop, struct hr_error *reterr)
{
    int tries = 0, most_tries = object->store->retries ? 1 : TRIES;
    struct hr_error why;

    while (at < bytes) {
        size_t most = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES, got;
        enum hr_err err;

        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed))
            return hr__fail(reterr, HR_ERR_CANCELLED, "reading %s was cancelled",
                            object->uri);
        err = read_some(object, offset + at, data + at, most, &got, &why);
        if (err == HR_OK && got == 0)
            return hr__store_ended_early(object, offset + at, reterr);
        if (err != HR_OK && (err != HR_ERR_IO || ++tries == most_tries))
            return read_failed(object, offset + at + got, err, &why, reterr);
        assert(got <= most);
        if (got > 0)
            tries = 0;
        at += got;
    }
    if (!hr__store_is_same(object)) {
        hr__store_note(reterr, object->uri);
        return hr__fail(reterr, HR_ERR_FORMAT, "%s changed while it was read",
                        object->uri);
    }
    return HR_OK;
}

enum hr_err
hr__store_read(struct hr_object *object, uint64_t offset, void *data, size_t bytes,
               const atomic_bool *stop, bool *ret_waited, struct hr_error *reterr)
{
    int64_t ready = 0;
    uint64_t begin;
    enum hr_err err;

    *ret_waited = false;
    if (offset > object->bytes || bytes > object->bytes - offset) {
        hr__store_note(reterr, object->uri);
        return hr__fail(reterr, HR_ERR_RANGE,
                        "%s has %llu bytes; %zu from byte %llu are not inside",
                        object->uri, (unsigned long long)object->bytes, bytes,
                        (unsigned long long)offset);
    }
    if (bytes == 0)
        return HR_OK;
    if (object->store->read_ready != NULL)
        ready = object->store->read_ready(object, offset, data, bytes);
    if (ready >= 0 && (uint64_t)ready == bytes)
        return HR_OK;
    *ret_waited = ready >= 0;
    begin = ready < 0 ? hr__now_ns() : 0;
    err = read_rest(object, offset, data, bytes, ready < 0 ? 0 : (size_t)ready, stop,
                    reterr);
    if (ready < 0)
        *ret_waited = hr__now_ns() - begin > SLOW_READ_NS + bytes;
    return err;
}

/* ---- ranges ---- */

enum hr_err hr__range_check(const struct hr_range *range, const struct hr_object *object,
                            size_t *ret_bytes, struct hr_error *reterr)
{
    bool any = range->identity.low == 0 && range->identity.high == 0;
    uint64_t rest = object->bytes - range->offset;

    if (!any && !hr__hash_equal(range->identity, object->identity)) {
        hr__store_note(reterr, object->uri);
        return hr__fail(reterr, HR_ERR_STATE,
                        "%s has changed since the data set was opened: open it again",
                        object->uri);
    }
    if (range->offset > object->bytes ||
        (range->bytes != HR_RANGE_REST && range->bytes > rest) || rest > SIZE_MAX) {
        hr__store_note(reterr, object->uri);
        return hr__fail(reterr, HR_ERR_RANGE,
                        "%s has %llu bytes; the range from byte %llu is not inside",
                        object->uri, (unsigned long long)object->bytes,
                        (unsigned long long)range->offset);
    }
    *ret_bytes = (size_t)(range->bytes == HR_RANGE_REST ? rest : range->bytes);
    return HR_OK;
}

enum hr_err hr__range_open(const struct hr_range *range, struct hr_object *ret_object,
                           size_t *ret_bytes, struct hr_error *reterr)
{
    struct hr_object object;
    enum hr_err err;

    HR_TRY(hr__store_open(range->uri, &object, reterr));
    err = hr__range_check(range, &object, ret_bytes, reterr);
    if (err == HR_OK)
        *ret_object = object;
    else
        hr__store_close(&object);
    return err;
}

enum hr_err hr__store_begin(struct hr_store_read *read)
{
    void *data = NULL;

    assert(read->object.store != NULL && read->object.uri == read->range->uri);
    HR_TRY(hr__range_check(read->range, &read->object, &read->bytes, read->error));
    HR_TRY(read->room(read, &data));
    read->data = data;
    return HR_OK;
}

enum hr_err hr__store_fetch(struct hr_store_read *read, const atomic_bool *stop)
{
    const char *uri = read->range->uri, *name;
    const struct hr_store *store;
    enum hr_err err;

    HR_TRY(find_store(uri, &store, &name, read->error));
    if (store->fetch != NULL) {
        read->object = (struct hr_object){.store = store, .uri = uri};
        return store->fetch(read);
    }
    HR_TRY(hr__store_open(uri, &read->object, read->error));
    err = hr__store_begin(read);
    if (err == HR_OK)
        err = hr__store_read(&read->object, read->range->offset, read->data, read->bytes,
                             stop, &read->waited, read->error);
    hr__store_close(&read->object);
    return err;
}

/* ---- whole objects ---- */

static enum hr_err load_object(struct hr_object *object, size_t bytes_max,
                               char **ret_data, struct hr_error *reterr)
{
    enum hr_err err;
    bool waited;
    char *data;

    if (object->bytes > bytes_max)
        return hr__fail(reterr, HR_ERR_LIMIT, "%s is larger than %zu bytes", object->uri,
                        bytes_max);
    data = hr__malloc((size_t)object->bytes + 1);
    if (data == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for the %llu bytes of %s",
                        (unsigned long long)object->bytes, object->uri);
    err = hr__store_read(object, 0, data, (size_t)object->bytes, NULL, &waited, reterr);
    if (err == HR_OK) {
        data[object->bytes] = '\0';
        *ret_data = data;
    } else {
        hr__free(data);
    }
    return err;
}

enum hr_err hr__store_load(const char *uri, size_t bytes_max, char **ret_data,
                           size_t *ret_bytes, struct hr_error *reterr)
{
    const struct hr_store *store;
    struct hr_object object;
    const char *name;
    enum hr_err err;

    HR_TRY(find_store(uri, &store, &name, reterr));
    if (store->load != NULL)
        return store->load(name, bytes_max, ret_data, ret_bytes, reterr);
    HR_TRY(hr__store_open(uri, &object, reterr));
    err = load_object(&object, bytes_max, ret_data, reterr);
    if (err == HR_OK)
        *ret_bytes = (size_t)object.bytes;
    hr__store_close(&object);
    return err;
}

enum hr_err
hr__store_map(const char *uri, struct hr_store_map *ret_map, struct hr_error *reterr)
{
    struct hr_store_map map = {.data = NULL};
    struct hr_object object;
    char *data = NULL;
    enum hr_err err;

    HR_TRY(hr__store_open(uri, &object, reterr));
    map.bytes = (size_t)object.bytes;
    if (object.store->map != NULL) {
        map.store = object.store;
        err = object.store->map(&object, &map, reterr);
    } else {
        err = load_object(&object, SIZE_MAX - 1, &data, reterr);
        map.data = data;
    }
    hr__store_close(&object);
    if (err == HR_OK)
        *ret_map = map;
    return err;
}

void hr__store_unmap(struct hr_store_map *map)
{
    if (map->store != NULL)
        map->store->unmap(map);
    else
        hr__free((void *)(uintptr_t)map->data);
    *map = (struct hr_store_map){.data = NULL};
}

enum hr_err hr__store_list(const char *uri, hr_store_visit_fn *visit, void *user,
                           struct hr_error *reterr)
{
    const struct hr_store *store;
    const char *name;

    HR_TRY(find_store(uri, &store, &name, reterr));
    if (store->list == NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "%s: %s:// has no lists of files: name the files, by braces such "
                        "as {000..099} or in a list",
                        uri, store->scheme);
    return store->list(name, visit, user, reterr);
}

bool hr__store_has_lists(const char *uri)
{
    const struct hr_store *store;
    const char *name;

    return find_store(uri, &store, &name, NULL) == HR_OK && store->list != NULL;
}

/* ---- channels ---- */

static void destroy_channel(struct hr_channel *channel)
{
    pthread_cond_destroy(&channel->work);
    pthread_mutex_destroy(&channel->lock);
    hr__free(channel);
}

static enum hr_err
start(struct hr_channel *channel, enum hr_channel_mode mode, struct hr_error *reterr)
{
    bool must = mode == HR_CHANNEL_URING;

    if (mode != HR_CHANNEL_THREADS && channel->store->start != NULL) {
        enum hr_err err = channel->store->start(channel, must ? reterr : NULL);

        if (err == HR_OK || must)
            return err;
    } else if (must) {
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "%s:// is not read with io_uring",
                        channel->store->scheme);
    }
    return hr__channel_start_threads(channel, reterr);
}

enum hr_err hr__channel_open(const char *uri, const struct hr_channel_options *options,
                             struct hr_channel **ret_channel, struct hr_error *reterr)
{
    struct hr_channel *channel;
    const struct hr_store *store;
    const char *name;
    enum hr_err err;

    HR_TRY(find_store(uri, &store, &name, reterr));
    channel = hr__calloc(1, sizeof *channel);
    if (channel == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    channel->store = store;
    channel->depth = options->depth > 0 ? options->depth : 1;
    channel->thread_count = options->threads > 0 ? options->threads : 1;
    pthread_mutex_init(&channel->lock, NULL);
    pthread_cond_init(&channel->work, NULL);
    err = start(channel, options->mode, reterr);
    if (err == HR_OK)
        *ret_channel = channel;
    else
        destroy_channel(channel);
    return err;
}

bool hr__channel_takes(const struct hr_channel *channel, const char *uri)
{
    const struct hr_store *store;
    const char *name;

    return find_store(uri, &store, &name, NULL) == HR_OK && store == channel->store;
}

enum hr_channel_mode hr__channel_mode(const struct hr_channel *channel)
{
    return channel->kind->mode;
}

void hr__channel_submit(struct hr_channel *channel, struct hr_store_read *read)
{
    assert(hr__channel_takes(channel, read->range->uri) && !channel->stop);
    assert(read->room != NULL && read->done != NULL);
    read->next = NULL;
    read->waited = false;
    read->bytes = read->got = 0;
    pthread_mutex_lock(&channel->lock);
    if (channel->first == NULL)
        channel->first = read;
    else
        channel->last->next = read;
    channel->last = read;
    channel->kind->kick(channel);
    pthread_mutex_unlock(&channel->lock);
}

bool hr__channel_withdraw(struct hr_channel *channel, struct hr_store_read *read)
{
    struct hr_store_read **link = &channel->first, *before = NULL;
    bool found;

    pthread_mutex_lock(&channel->lock);
    while (*link != NULL && *link != read) {
        before = *link;
        link = &before->next;
    }
    found = *link == read;
    if (found) {
        *link = read->next;
        if (channel->last == read)
            channel->last = before;
    }
    pthread_mutex_unlock(&channel->lock);
    return found;
}

struct hr_store_read *hr__channel_next(struct hr_channel *channel)
{
    struct hr_store_read *read = channel->first;

    hr__assert_locked(&channel->lock);
    if (read != NULL)
        channel->first = read->next;
    return read;
}

void hr__channel_close(struct hr_channel *channel)
{
    struct hr_store_read *read;

    if (channel == NULL)
        return;
    pthread_mutex_lock(&channel->lock);
    atomic_store(&channel->stop, true);
    pthread_cond_broadcast(&channel->work);
    channel->kind->kick(channel);
    pthread_mutex_unlock(&channel->lock);
    channel->kind->stop(channel);
    while ((read = channel->first) != NULL) { /* the lock is no longer needed */
        channel->first = read->next;
        read->done(read, HR_ERR_CANCELLED);
    }
    destroy_channel(channel);
}
