/*
 * ops/shard_source.c - what sources of records in shards share.
 */
#include "ops/shard_source.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "store/reader.h"

/* Records from this size on are read through the reader. */
#define LARGE_BYTES ((uint64_t)32 << 10)
/* Bytes from here on are read to where they are wanted: a copy costs more than a call. */
#define FILL_BYTES ((uint64_t)8 << 10)

enum hr_err
hr__shard_source_open(const char *pattern, const char *ending, hr_shard_scan_fn *scan,
                      void *user, const struct hr_packed_limits *packed,
                      const struct hr_shard_saving *saving, size_t bytes,
                      void **ret_state, struct hr_error *reterr)
{
    struct hr_shard_source *source = hr__calloc(1, bytes);
    enum hr_err code;

    assert(bytes >= sizeof *source);
    if (source == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    source->keys = hr__calloc(1, sizeof *source->keys);
    if (source->keys != NULL)
        code = hr__shard_index_open(pattern, ending, scan, user, packed, saving,
                                    &source->index, reterr);
    else
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    source->unpack_cache = packed != NULL ? packed->cache_bytes : 0;
    if (code == HR_OK)
        *ret_state = source;
    else
        hr__shard_source_close(source);
    return code;
}

struct hr_packed_limits hr__unpack_limits(const struct hr_shard_params *params)
{
    return (struct hr_packed_limits){.bytes_max = (uint64_t)params->unpacked_max,
                                     .ratio_max = (uint64_t)params->ratio_max,
                                     .cache_bytes = (uint64_t)params->unpack_cache};
}

/* A thread has a window for its records, one for lines, and two slabs: one that it fills,
 * and one whose last rows are in use (shard_rows.c). */
#define THREAD_BYTES (4 * (uint64_t)HR_WINDOW_MAX)

void hr__shard_source_kept(const void *params, const void *state, uint64_t budget,
                           struct hr_op_kept *ret_kept)
{
    const struct hr_shard_source *source = state;
    struct hr_shard_memory kept;

    (void)params;
    hr__shard_index_memory(source->index, &kept);
    ret_kept->fixed = kept.fixed;
    ret_kept->least = kept.least;
    if (kept.least > 0)
        ret_kept->most = hr__cache_worth(source->unpack_cache, budget);
    ret_kept->thread = THREAD_BYTES + kept.thread;
}

void hr__shard_source_limit(const void *params, void *state, uint64_t bytes)
{
    struct hr_shard_source *source = state;

    (void)params;
    hr__shard_index_limit(source->index, hr__cache_limit(source->unpack_cache, bytes));
}

void hr__shard_source_close(void *state)
{
    struct hr_shard_source *source = state;

    if (source->keys != NULL)
        hr__window_finish(source->keys);
    hr__free(source->keys);
    hr__shard_index_close(source->index);
    hr__free(source);
}

static const struct hr_shard_index *index_of(const void *state)
{
    return ((const struct hr_shard_source *)state)->index;
}

void hr__shard_source_identity(const void *params, const void *state,
                               struct hr_hasher *hasher)
{
    struct hr_hash128 hash = hr__shard_index_identity(index_of(state));

    (void)params;
    hr__hasher_add(hasher, &hash.low, sizeof hash.low);
    hr__hasher_add(hasher, &hash.high, sizeof hash.high);
}

uint64_t hr__shard_source_count(const void *params, const void *state)
{
    (void)params;
    return hr__shard_index_count(index_of(state));
}

bool hr__shard_source_locate(const void *params, const void *state, uint64_t index,
                             char *uri, size_t room, uint64_t *ret_offset)
{
    struct hr_shard_place place;
    size_t length;

    (void)params;
    if (index >= hr__shard_index_count(index_of(state)))
        return false;
    hr__shard_index_place(index_of(state), index, &place);
    length = strlen(place.uri);
    if (length >= room)
        return false;
    memcpy(uri, place.uri, length + 1);
    *ret_offset = place.offset;
    return true;
}

/* False if the shard's name is too long for a range. */
static bool range_of(const struct hr_shard_place *place, struct hr_range *ret_range)
{
    size_t length = strlen(place->uri);

    if (length >= sizeof ret_range->uri)
        return false;
    memcpy(ret_range->uri, place->uri, length + 1);
    ret_range->identity = place->identity;
    ret_range->offset = place->offset;
    ret_range->bytes = place->bytes;
    return true;
}

/* With its ending. */
static bool is_too_long(const struct hr_shard_source *source, uint64_t bytes)
{
    return source->bytes_max > 0 && bytes > source->bytes_max + source->ending_bytes;
}

enum hr_err hr__shard_source_check(const struct hr_shard_source *source,
                                   const struct hr_shard_place *place, uint64_t bytes,
                                   struct hr_error *error)
{
    if (source->bytes_max == 0 || bytes <= source->bytes_max)
        return HR_OK;
    return hr__fail(error, HR_ERR_LIMIT,
                    "%s: byte %llu: a record of %llu bytes is longer than max_bytes "
                    "(%llu)",
                    place->uri, (unsigned long long)place->offset,
                    (unsigned long long)bytes, (unsigned long long)source->bytes_max);
}

bool hr__shard_source_ahead(const void *params, const void *state, uint64_t index,
                            int part, struct hr_range *ret_range)
{
    struct hr_shard_place place;

    (void)params;
    if (part > 0 || index >= hr__shard_index_count(index_of(state)))
        return false;
    hr__shard_index_place(index_of(state), index, &place);
    return !is_too_long(state, place.bytes) && hr__shard_ahead(&place, ret_range);
}

/* Of a compressed shard, what the record unpacks to. */
uint64_t hr__shard_source_size(const void *params, const void *state, uint64_t index)
{
    struct hr_shard_place place;

    (void)params;
    if (index >= hr__shard_index_count(index_of(state)))
        return 0;
    hr__shard_index_place(index_of(state), index, &place);
    return is_too_long(state, place.bytes) ? 0 : place.bytes;
}

bool hr__shard_ahead(const struct hr_shard_place *place, struct hr_range *ret_range)
{
    return !place->packed && place->bytes >= LARGE_BYTES && range_of(place, ret_range);
}

bool hr__shard_is_large(const struct hr_shard_source *source,
                        const struct hr_shard_place *place)
{
    return place->bytes >= LARGE_BYTES || is_too_long(source, place->bytes);
}

static enum hr_err window_create(void **ret_object, struct hr_error *reterr)
{
    *ret_object = hr__calloc(1, sizeof(struct hr_window));
    return *ret_object != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void window_destroy(void *object)
{
    hr__window_finish(object);
    hr__free(object);
}

static const struct hr_thread_class window_class = {"shard window", window_create,
                                                    window_destroy};

static enum hr_err windows_create(void **ret_object, struct hr_error *reterr)
{
    *ret_object = hr__calloc(HR_SHARD_WINDOWS, sizeof(struct hr_window));
    return *ret_object != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void windows_destroy(void *object)
{
    struct hr_window *windows = object;

    for (size_t i = 0; i < HR_SHARD_WINDOWS; i++)
        hr__window_finish(&windows[i]);
    hr__free(windows);
}

static const struct hr_thread_class windows_class = {"field windows", windows_create,
                                                     windows_destroy};

enum hr_err hr__shard_windows(struct hr_thread *thread, struct hr_window **ret_windows,
                              struct hr_error *error)
{
    void *windows;

    HR_TRY(hr__thread_object(thread, &windows_class, &windows, error));
    *ret_windows = windows;
    return HR_OK;
}

enum hr_err hr__shard_window(struct hr_window *window, const struct hr_shard_place *place,
                             struct hr_error *reterr)
{
    bool same = true;

    if (place->object == NULL) {
        HR_TRY(hr__window_open(window, place->uri, reterr));
        same = hr__hash_equal(window->object->identity, place->identity);
    } else if (place->object != window->object) {
        same = hr__store_is_same(place->object);
        if (same)
            hr__window_use(window, place->object);
    }
    if (same)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_STATE, "%s changed since the graph was opened",
                    place->uri);
}

static enum hr_err read_small(struct hr_op_ctx *ctx, struct hr_window *window,
                              struct hr_shard_record *record)
{
    const struct hr_shard_place *place = &record->place;
    const void *data;
    void *object = window;

    if (window == NULL)
        HR_TRY(hr__thread_object(ctx->thread, &window_class, &object, ctx->error));
    window = object;
    HR_TRY(hr__shard_window(window, place, ctx->error));
    HR_TRY(
        hr__window_get(window, place->offset, (size_t)place->bytes, &data, ctx->error));
    record->data = data;
    return HR_OK;
}

static enum hr_err read_large(struct hr_op_ctx *ctx, struct hr_shard_record *record)
{
    struct hr_range range; /* 4 kB, not cleared */
    const struct hr_shard_place *place = &record->place;

    if (place->packed) {
        HR_TRY(hr__reader_read(ctx->thread->reader, place->object, place->offset,
                               (size_t)place->bytes, &record->owner, ctx->error));
        record->data = hr_buffer_data(record->owner);
        return HR_OK;
    }
    if (!range_of(&record->place, &range))
        return hr__fail(ctx->error, HR_ERR_LIMIT, "the path of a file is too long");
    HR_TRY(hr__reader_take(ctx->thread->reader, &range, &record->owner, ctx->error));
    record->data = hr_buffer_data(record->owner);
    return HR_OK;
}

enum hr_err
hr__shard_source_read(struct hr_op_ctx *ctx, struct hr_shard_record *ret_record)
{
    const struct hr_shard_index *index = index_of(ctx->state);

    if (ctx->id->index >= hr__shard_index_count(index))
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no record %llu",
                        (unsigned long long)ctx->id->index);
    hr__shard_index_place(index, ctx->id->index, &ret_record->place);
    if (is_too_long(ctx->state, ret_record->place.bytes))
        return hr__shard_source_check(ctx->state, &ret_record->place,
                                      ret_record->place.bytes, ctx->error);
    return hr__shard_read(ctx, NULL, ret_record);
}

enum hr_err hr__shard_read(struct hr_op_ctx *ctx, struct hr_window *window,
                           struct hr_shard_record *record)
{
    record->owner = NULL;
    return record->place.bytes >= LARGE_BYTES ? read_large(ctx, record)
                                              : read_small(ctx, window, record);
}

enum hr_err hr__shard_fill(struct hr_op_ctx *ctx, struct hr_window *window,
                           const struct hr_shard_place *place, void *to)
{
    struct hr_range range; /* 4 kB, not cleared */
    const void *data;
    bool waited;

    HR_TRY(hr__shard_window(window, place, ctx->error));
    if (place->bytes < FILL_BYTES) {
        HR_TRY(hr__window_get(window, place->offset, (size_t)place->bytes, &data,
                              ctx->error));
        memcpy(to, data, (size_t)place->bytes);
        return HR_OK;
    }
    if (hr__shard_ahead(place, &range))
        return hr__reader_fill(ctx->thread->reader, &range, window->object, to,
                               ctx->error);
    return hr__store_read(window->object, place->offset, to, (size_t)place->bytes, NULL,
                          &waited, ctx->error);
}

enum hr_err
hr__shard_source_look(const void *state, uint64_t at, struct hr_window *window,
                      struct hr_shard_place *ret_place, struct hr_error *reterr)
{
    hr__shard_index_place(index_of(state), at, ret_place);
    return hr__shard_window(window, ret_place, reterr);
}

enum hr_err hr__shard_source_key(enum hr_err code, uint64_t at, struct hr_str *out)
{
    if (code == HR_ERR_FORMAT) {
        hr__str_clear(out);
        hr__str_addf(out, "%llu", (unsigned long long)at);
    }
    return code;
}

enum hr_err
hr__shard_source_bytes(struct hr_op_ctx *ctx, const struct hr_shard_record *record,
                       const char *data, size_t bytes, struct hr_value *value)
{
    void *memory;

    if (record->owner != NULL) {
        hr__value_set_bytes(value, data, bytes, hr_buffer_ref(record->owner));
        value->shared = true;
        return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, data, bytes);
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}

/* The state is const, what its window shows is not part of it. */
enum hr_err
hr__shard_source_peek(const void *state, uint64_t index, const char **ret_data,
                      size_t *ret_bytes, struct hr_error *error)
{
    const struct hr_shard_source *source = state;
    struct hr_shard_place place;
    const void *data;

    hr__shard_index_place(source->index, index, &place);
    if (is_too_long(source, place.bytes))
        return hr__shard_source_check(source, &place, place.bytes, error);
    HR_TRY(hr__shard_window(source->keys, &place, error));
    HR_TRY(hr__window_get(source->keys, place.offset, (size_t)place.bytes, &data, error));
    *ret_data = data;
    *ret_bytes = (size_t)place.bytes;
    return HR_OK;
}

static enum hr_err count_lines(struct hr_window *window, uint64_t from, uint64_t end,
                               uint64_t *lines, struct hr_error *error)
{
    while (from < end) {
        size_t bytes = end - from < HR_WINDOW_MAX ? (size_t)(end - from) : HR_WINDOW_MAX;
        const void *data;
        const char *at;

        HR_TRY(hr__window_get(window, from, bytes, &data, error));
        from += bytes;
        for (at = data; (at = memchr(at, '\n', bytes)) != NULL; at++) {
            bytes -= (size_t)(at + 1 - (const char *)data);
            data = at + 1;
            ++*lines;
        }
    }
    return HR_OK;
}

enum hr_err
hr__shard_source_line(const void *state, struct hr_thread *thread, uint64_t index,
                      uint64_t *ret_line, struct hr_error *error)
{
    const struct hr_shard_source *source = state;
    struct hr_shard_place place;
    void *window = source->keys;
    uint64_t from;

    if (thread != NULL)
        HR_TRY(hr__thread_object(thread, &window_class, &window, error));
    hr__shard_index_place(source->index, index, &place);
    HR_TRY(hr__shard_window(window, &place, error));
    hr__shard_index_line(source->index, index, &from, ret_line);
    return count_lines(window, from, place.offset, ret_line, error);
}
