/*
 * ops/shard_rows.c - see shard_rows.h.
 *
 * A thread reads into a slab: one range after the other until it is full, then a new one
 * is taken from the pool. Each value holds a reference to its slab. While records follow
 * each other a read takes as much as the slab has room for; a record that does not is
 * read by itself. Bytes lie in the slab as they are aligned in their file.
 */
#include "ops/shard_rows.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"

#define SLAB_BYTES ((size_t)256 << 10)
#define AHEAD_MIN ((size_t)16 << 10)
/* Up to this far after the last read counts as going forward. */
#define FORWARD_MAX ((uint64_t)64 << 10)
/* How long a file that was found unchanged is not looked at again: a look is a system
 * call, as long as reading a small record takes. */
#define TRUST_NS ((uint64_t)10 * 1000 * 1000)
#define TRUSTED 256 /* objects, a power of two */
/* Scratch of records made in one call; what they leave in the arena waits there. */
#define SCRATCH_MAX ((size_t)1 << 20)

struct slab {
    struct hr_buffer *buffer; /* NULL: none yet */
    char *memory;
    size_t used;
    /* The last read: `bytes` bytes of `object` from `at` on are at `data`. */
    const struct hr_object *object;
    const char *data;
    uint64_t at;
    size_t bytes, ahead;
    struct hr_window opener; /* opens shards that are too many to be kept open */
    struct trusted {
        const struct hr_object *object;
        uint64_t since;
    } trusted[TRUSTED];
};

static enum hr_err slab_create(void **ret_object, struct hr_error *reterr)
{
    *ret_object = hr__calloc(1, sizeof(struct slab));
    return *ret_object != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void slab_destroy(void *object)
{
    struct slab *slab = object;

    hr_buffer_unref(slab->buffer);
    hr__window_finish(&slab->opener);
    hr__free(slab);
}

static const struct hr_thread_class slab_class = {"shard slab", slab_create,
                                                  slab_destroy};

/* ---- objects ---- */

/* Whether the object has not changed, as far as was looked at a moment ago. */
static bool is_same(struct slab *slab, const struct hr_object *object, uint64_t now)
{
    uint64_t hash = (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);
    struct trusted *trusted = &slab->trusted[hash >> 56];

    _Static_assert(TRUSTED == 256, "the upper 8 bits of the hash choose");
    if (trusted->object == object && now - trusted->since < TRUST_NS)
        return true;
    if (!hr__store_is_same(object))
        return false;
    *trusted = (struct trusted){object, now};
    return true;
}

/* The object that the place is in, open and unchanged; NULL: there is none. */
static struct hr_object *
open_object(struct slab *slab, const struct hr_shard_place *place, uint64_t now)
{
    struct hr_object *object = place->object;

    if (object != NULL)
        return object == slab->object || is_same(slab, object, now) ? object : NULL;
    if (strcmp(slab->opener.uri, place->uri) != 0)
        slab->object = NULL; /* what was read may be of the same window's last object */
    if (hr__window_open(&slab->opener, place->uri, NULL) != HR_OK)
        return NULL;
    object = slab->opener.object;
    return hr__hash_equal(object->identity, place->identity) ? object : NULL;
}

/* ---- reading ---- */

/* Bytes to read: more with each read that goes on where the last one ended, and no more
 * than wanted after one that did not. */
static size_t
choose(struct slab *slab, const struct hr_object *object, uint64_t offset, size_t bytes)
{
    bool forward = object == slab->object && offset >= slab->at &&
                   offset - slab->at <= slab->bytes + FORWARD_MAX;
    uint64_t left = object->bytes - offset;

    if (!forward)
        slab->ahead = 0;
    else
        slab->ahead = slab->ahead > 0 ? 2 * slab->ahead : AHEAD_MIN;
    if (slab->ahead > SLAB_BYTES)
        slab->ahead = SLAB_BYTES;
    if (bytes < slab->ahead)
        bytes = slab->ahead;
    return bytes < left ? bytes : (size_t)left;
}

/* Where the next read goes, `skew` bytes after a multiple of HR_BUFFER_ALIGN. */
static size_t place_in(const struct slab *slab, size_t skew)
{
    return ((slab->used + HR_BUFFER_ALIGN - 1) & ~(size_t)(HR_BUFFER_ALIGN - 1)) + skew;
}

/* Makes room for `bytes` bytes, and better for `wanted`. */
static bool make_room(struct slab *slab, struct hr_pool *pool, size_t skew, size_t bytes,
                      size_t wanted)
{
    size_t at = place_in(slab, skew);
    struct hr_buffer *buffer;

    if (slab->buffer != NULL && at + bytes <= SLAB_BYTES &&
        (at + wanted <= SLAB_BYTES || SLAB_BYTES - at >= SLAB_BYTES / 4))
        return true;
    if (hr_pool_get(pool, SLAB_BYTES, &buffer) != HR_OK)
        return false;
    hr_buffer_unref(slab->buffer);
    slab->buffer = buffer;
    slab->memory = hr_buffer_data(buffer);
    slab->used = 0;
    return true;
}

static bool read_more(struct slab *slab, struct hr_pool *pool, struct hr_object *object,
                      uint64_t offset, size_t bytes)
{
    size_t skew = offset % HR_BUFFER_ALIGN;
    size_t wanted = choose(slab, object, offset, bytes), at;
    enum hr_err code;
    bool waited;

    slab->object = NULL;
    if (!make_room(slab, pool, skew, bytes, wanted))
        return false;
    at = place_in(slab, skew);
    if (wanted > SLAB_BYTES - at)
        wanted = SLAB_BYTES - at;
    code = hr__store_read(object, offset, slab->memory + at, wanted, NULL, &waited, NULL);
    if (code == HR_ERR_FORMAT && wanted > bytes) { /* perhaps damage after it */
        wanted = bytes;
        code = hr__store_read(object, offset, slab->memory + at, wanted, NULL, &waited,
                              NULL);
    }
    if (code != HR_OK)
        return false;
    slab->used = at + wanted;
    slab->object = object;
    slab->data = slab->memory + at;
    slab->at = offset;
    slab->bytes = wanted;
    return true;
}

/* Reads the place's bytes, which are at record->data then, in record->owner: the slab,
 * without a reference. */
static bool read_record(struct slab *slab, const struct hr_op_ctx *ctx,
                        struct hr_shard_record *record, uint64_t now)
{
    const struct hr_shard_place *place = &record->place;
    struct hr_object *object = open_object(slab, place, now);
    size_t bytes = (size_t)place->bytes;
    uint64_t skip = place->offset - slab->at;

    if (object == NULL || place->offset > object->bytes ||
        bytes > object->bytes - place->offset)
        return false;
    if (object != slab->object || place->offset < slab->at || skip > slab->bytes ||
        bytes > slab->bytes - skip) {
        if (!read_more(slab, ctx->thread->pool, object, place->offset, bytes))
            return false;
        skip = 0;
    }
    record->data = slab->data + skip;
    record->owner = slab->buffer;
    return true;
}

/* ---- rows ---- */

enum hr_err hr__shard_source_make(struct hr_op_ctx *ctx, hr_shard_make_fn *make)
{
    struct hr_shard_record record;
    enum hr_err code;

    HR_TRY(hr__shard_source_read(ctx, &record));
    code = make(ctx, &record);
    hr_buffer_unref(record.owner);
    return code;
}

struct maker {
    struct hr_op_ctx ctx; /* with fields */
    const struct hr_source_rows *rows;
    hr_shard_make_fn *make;
    struct slab *slab;
    uint64_t now, count;
    struct hr_value *fields[HR_BINDINGS_MAX];
    struct hr_value own[HR_BINDINGS_MAX]; /* of fields that have no values in the rows */
};

static bool is_own(const struct hr_source_rows *rows, size_t f)
{
    return rows->columns[f] != NULL || rows->values[f] == NULL;
}

/* Moves the value of a field to its column, if it has one. */
static bool move_own(struct maker *m, size_t f, uint32_t row)
{
    struct hr_value *value = m->fields[f];
    char *column = m->rows->columns[f];
    bool good =
        column == NULL || (value->kind == HR_VALUE_TENSOR && hr__value_contiguous(value));

    if (good && column != NULL)
        memcpy(column + row * value->bytes, value->data, value->bytes);
    hr__value_clear(value);
    return good;
}

static bool make_row(struct maker *m, uint32_t row)
{
    const struct hr_source_rows *rows = m->rows;
    uint64_t index = rows->indices[row];
    struct hr_shard_record record;
    bool good;

    if (index >= m->count)
        return false;
    hr__shard_index_place(((const struct hr_shard_source *)m->ctx.state)->index, index,
                          &record.place);
    if (hr__shard_is_large(m->ctx.state, &record.place) ||
        !read_record(m->slab, &m->ctx, &record, m->now))
        return false;
    for (size_t f = 0; f < m->ctx.field_count; f++)
        if (!is_own(rows, f))
            m->fields[f] = &rows->values[f][row * rows->stride];
    good = m->make(&m->ctx, &record) == HR_OK;
    for (size_t f = 0; f < m->ctx.field_count; f++)
        if (is_own(rows, f))
            good = move_own(m, f, row) && good;
    return good;
}

static void init_own(struct maker *m)
{
    for (size_t f = 0; f < m->ctx.field_count; f++) {
        if (!is_own(m->rows, f))
            continue;
        memset(&m->own[f], 0, sizeof m->own[f]);
        m->fields[f] = &m->own[f];
    }
}

uint32_t hr__shard_source_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows,
                               hr_shard_make_fn *make)
{
    struct maker m; /* 40 kB, of which little is used */
    void *slab;
    uint32_t done = 0;

    assert(ctx->field_count <= HR_BINDINGS_MAX);
    if (hr__thread_object(ctx->thread, &slab_class, &slab, ctx->error) != HR_OK)
        return 0;
    m.ctx = *ctx;
    m.ctx.fields = m.fields;
    m.ctx.id = NULL;
    m.rows = rows;
    m.make = make;
    m.slab = slab;
    m.now = hr__now_ns();
    m.count = hr__shard_source_count(NULL, ctx->state);
    init_own(&m);
    while (done < rows->count && ctx->thread->arena.used_bytes < SCRATCH_MAX &&
           make_row(&m, done))
        done++;
    return done;
}
