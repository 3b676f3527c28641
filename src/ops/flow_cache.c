/*
 * flow.cache - remembers the records that pass it.
 *
 * A record is kept as a block of the record codec (wire/record.h) under a hash of its
 * identity, in a cache of store/cache.h that is named by the fingerprint of all that
 * makes it. What comes back shows the block's bytes in place.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "op/op.h"
#include "op/thread.h"
#include "store/cache.h"
#include "store/store.h"
#include "wire/record.h"

enum random { RANDOM_REFUSE, RANDOM_FREEZE };
static const char *const random_names[] = {"refuse", "freeze", NULL};

struct cache {
    const char *folder;
    int64_t budget;
    int random;
    int64_t refresh;
};

static const struct hr_param cache_params[] = {
    HR_P_PATH(struct cache, folder, .not_identity = true,
              .help = "where records are kept; null keeps them in memory"),
    HR_P_BYTES(struct cache, budget, .fallback = "0", .has_min = true, .min = 0,
               .not_identity = true,
               .help =
                   "bytes that it may take; 0: in memory up to half of the run's memory "
                   "budget, or a quarter of the machine's memory (or cgroup's) "
                   "without one; in a folder all but a twentieth of the disk"),
    HR_P_ENUM(struct cache, random, .names = random_names, .fallback = "refuse",
              .help = "what to do about ops before it that draw random numbers: refuse "
                      "them, or freeze their draws, the same in all epochs"),
    HR_P_INT(struct cache, refresh, .fallback = "0", .has_min = true, .min = 0,
             .has_max = true, .max = 1e9,
             .help = "freeze draws for this many epochs, then draw again; 0: as `random` "
                     "says"),
};

struct state {
    struct hr_schema schema;
    struct hr_wire_writer writer; /* its layout is a pattern for those of threads */
    struct hr_wire_reader reader;
    const struct cache *params;
    struct hr_cache_of of;
    pthread_mutex_t lock;           /* of opening */
    struct hr_cache *_Atomic cache; /* NULL until an iterator is opened */
};

static enum hr_err cache_check(const void *params, struct hr_error *error)
{
    const struct cache *p = params;

    if (p->random == RANDOM_REFUSE || p->refresh == 0)
        return HR_OK;
    snprintf(error->param, sizeof error->param, "refresh");
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "`random: freeze` keeps draws for ever and `refresh: %lld` for %lld "
                    "epochs: say one of them",
                    (long long)p->refresh, (long long)p->refresh);
}

static enum hr_err
cache_binds(const void *params, const void *state, const struct hr_schema *input,
            struct hr_bindings *bindings, struct hr_error *error)
{
    (void)params;
    (void)state;
    for (size_t i = 0; i < input->count; i++)
        HR_TRY(hr__bind(bindings, input->fields[i].name, HR_ACCESS_READ, error));
    return HR_OK;
}

static enum hr_err cache_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

/* ---- life ---- */

static void cache_close(void *state)
{
    struct state *s = state;

    hr__cache_close(s->cache);
    hr__wire_writer_finish(&s->writer);
    hr__wire_reader_finish(&s->reader);
    pthread_mutex_destroy(&s->lock);
    hr__free(s);
}

static enum hr_err cache_open(const struct hr_open *open, void **ret_state)
{
    struct state *s = hr__calloc(1, sizeof *s);
    enum hr_err code;

    if (s == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for a cache");
    pthread_mutex_init(&s->lock, NULL);
    s->schema = *open->output;
    s->params = open->params;
    code = hr__wire_writer_init(&s->writer, &s->schema, false, open->error);
    if (code == HR_OK)
        code = hr__wire_reader_init(&s->reader, &s->schema, open->error);
    if (code != HR_OK) {
        cache_close(s);
        return code;
    }
    *ret_state = s;
    return HR_OK;
}

static void cache_begin(void *state, const struct hr_cache_of *of)
{
    ((struct state *)state)->of = *of;
}

static bool cache_stamps(const void *params)
{
    return ((const struct cache *)params)->folder != NULL;
}

/* Of a cache in memory whose run has a budget. */
#define LEAST_BYTES ((uint64_t)1 << 20)

static void cache_kept(const void *params, const void *state, uint64_t budget,
                       struct hr_op_kept *ret_kept)
{
    const struct cache *p = params;

    (void)state;
    if (p->folder != NULL)
        return;
    ret_kept->most = p->budget > 0 ? (uint64_t)p->budget : budget / 2;
    ret_kept->least = p->budget > 0 ? (uint64_t)p->budget : LEAST_BYTES;
}

/* Without a budget of its own. */
static uint64_t default_bytes(uint64_t given)
{
    uint64_t machine = hr__memory_bytes();

    if (given > 0)
        return given;
    return machine > 0 ? machine / 4 : (uint64_t)1 << 30;
}

/* The cache stays as the first iterator opened it, for all that follow. */
static enum hr_err cache_start(void *state, uint64_t bytes, struct hr_error *error)
{
    struct state *s = state;
    struct hr_cache_options options = {.folder = s->params->folder,
                                       .bytes_max = (uint64_t)s->params->budget,
                                       .of = s->of.fingerprint};
    struct hr_cache *cache = NULL;
    enum hr_err code = HR_OK;

    if (options.folder == NULL && options.bytes_max == 0)
        options.bytes_max = default_bytes(bytes);
    pthread_mutex_lock(&s->lock);
    if (s->cache == NULL) {
        code = hr__cache_open(&options, &cache, error);
        if (code == HR_OK)
            s->cache = cache;
    }
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* ---- records ---- */

/* Records have equal keys only if they are the same, but for collisions of 128 bits. */
static struct hr_hash128 key_of(const struct state *s, const struct hr_record_id *id)
{
    struct {
        uint64_t index, seed, stamp;
        uint32_t draw_epoch, depth, child[HR_CHILD_DEPTH_MAX];
    } key;

    memset(&key, 0, sizeof key);
    key.index = id->index;
    key.depth = id->depth;
    memcpy(key.child, id->child, id->depth * sizeof key.child[0]);
    if (s->of.drawn) {
        key.seed = id->seed;
        key.draw_epoch = id->draw_epoch;
    }
    if (s->of.stamped)
        key.stamp = id->stamp;
    return hr__hash128(&key, sizeof key);
}

/* Whether the record may be looked for and kept: not if its files cannot be looked at, or
 * have changed while they were in use. */
static bool is_known(const struct state *s, const struct hr_record_id *id)
{
    return s->cache != NULL && !(s->of.stamped && id->stamp == HR_STAMP_UNKNOWN);
}

/* A label that waits for its batch must not keep the memory of its image. */
#define SMALL_BYTES 512

/* Makes the value outlast the block: small ones are copied, others hold it. */
static enum hr_err
keep(struct hr_op_ctx *ctx, const struct hr_cache_value *block, struct hr_value *value)
{
    void *copy;

    value->shared = true;
    if (value->kind == HR_VALUE_RAGGED || value->bytes > SMALL_BYTES) {
        value->owner = hr_buffer_ref(block->owner);
        return HR_OK;
    }
    copy = hr__arena_alloc(&ctx->thread->arena, value->bytes + 1);
    if (copy == NULL)
        return HR_ERR_MEMORY;
    memcpy(copy, value->data, value->bytes);
    value->data = copy;
    value->shared = false;
    return HR_OK;
}

/* Sets the fields to the values of a block. */
static enum hr_err take_values(struct hr_op_ctx *ctx, const struct hr_cache_value *block)
{
    struct state *s = ctx->state;
    struct hr_value values[HR_SCHEMA_FIELDS_MAX];
    struct hr_wire_single single;
    struct hr_error error = {0};
    enum hr_err code = HR_OK;

    HR_TRY(hr__wire_reader_open(&s->reader, block->data, block->bytes,
                                &ctx->thread->arena, &single, &error));
    for (size_t i = 0; i < ctx->field_count; i++) {
        memset(&values[i], 0, sizeof values[i]);
        HR_TRY(hr__wire_single_get(&single, i, &values[i], &error));
    }
    for (size_t i = 0; code == HR_OK && i < ctx->field_count; i++)
        code = keep(ctx, block, &values[i]);
    for (size_t i = 0; i < ctx->field_count; i++) {
        struct hr_value *to = code == HR_OK ? ctx->fields[i] : &values[i];

        hr__value_clear(to);
        if (code == HR_OK)
            *to = values[i];
    }
    return code;
}

static enum hr_cached cache_find(struct hr_op_ctx *ctx)
{
    struct state *s = ctx->state;
    struct hr_hash128 key = key_of(s, ctx->id);
    struct hr_cache_value block;
    enum hr_err code;

    if (!is_known(s, ctx->id))
        return HR_CACHED_NO;
    switch (hr__cache_get(s->cache, key, ctx->thread->pool, &block)) {
    case HR_CACHE_MARK:
        return HR_CACHED_DROPPED;
    case HR_CACHE_NONE:
        return HR_CACHED_NO;
    default:
        break;
    }
    code = take_values(ctx, &block);
    hr_buffer_unref(block.owner);
    if (code == HR_OK)
        return HR_CACHED_YES;
    if (code == HR_ERR_FORMAT)
        hr__cache_forget(s->cache, key);
    return HR_CACHED_NO;
}

static bool cache_holds(void *state, const struct hr_record_id *id)
{
    struct state *s = state;

    return is_known(s, id) && hr__cache_holds(s->cache, key_of(s, id));
}

static void cache_dropped(struct hr_op_ctx *ctx)
{
    struct state *s = ctx->state;

    if (is_known(s, ctx->id))
        hr__cache_mark(s->cache, key_of(s, ctx->id));
}

/* A writer for this thread, in its arena; NULL without memory. */
static struct hr_wire_writer *writer_of(const struct state *s, struct hr_arena *arena)
{
    size_t lanes = s->writer.layout.count * sizeof *s->writer.layout.lanes;
    struct hr_wire_writer *writer = hr__arena_alloc(arena, sizeof *writer);

    if (writer == NULL)
        return NULL;
    *writer = s->writer;
    writer->layout.lanes = hr__arena_alloc(arena, lanes + 1);
    if (writer->layout.lanes == NULL)
        return NULL;
    memcpy(writer->layout.lanes, s->writer.layout.lanes, lanes);
    return writer;
}

/* Where there is no room, or no memory, the record is not kept. */
static enum hr_err cache_apply(struct hr_op_ctx *ctx)
{
    struct state *s = ctx->state;
    struct hr_value values[HR_SCHEMA_FIELDS_MAX];
    struct hr_wire_record record = {.id = *ctx->id, .values = values};
    struct hr_cache_value block;
    struct hr_wire_writer *writer;
    struct hr_hash128 key;

    if (ctx->thread->describes || !is_known(s, ctx->id))
        return HR_OK;
    key = key_of(s, ctx->id);
    if (hr__cache_holds(s->cache, key)) /* another thread was faster */
        return HR_OK;
    for (size_t i = 0; i < ctx->field_count; i++)
        values[i] = *ctx->fields[i];
    writer = writer_of(s, &ctx->thread->arena);
    if (writer == NULL ||
        !hr__cache_room(s->cache, hr__wire_block_bytes(writer, &record, 1),
                        ctx->thread->pool, &block))
        return HR_OK;
    if (hr__wire_block_write(writer, &record, 1, block.data, ctx->error) != HR_OK) {
        hr_buffer_unref(block.owner);
        return ctx->error->code;
    }
    hr__cache_put(s->cache, key, &block);
    return HR_OK;
}

static uint32_t cache_draws_for(const void *params)
{
    const struct cache *p = params;

    return p->refresh > 0               ? (uint32_t)p->refresh
           : p->random == RANDOM_FREEZE ? HR_DRAWS_ONCE
                                        : 0;
}

/* ---- what it holds ---- */

static void cache_keeps(const void *state, struct hr_kept *ret_kept)
{
    const struct state *s = state;
    struct hr_cache_stats stats;

    if (s->cache == NULL)
        return;
    hr__cache_stats(s->cache, &stats);
    *ret_kept = (struct hr_kept){stats.entries, stats.bytes, stats.hits, stats.misses};
}

static void cache_tell(const void *state, struct hr_str *out)
{
    const struct state *s = state;
    struct hr_cache_stats stats;

    if (s->cache == NULL)
        return;
    hr__cache_stats(s->cache, &stats);
    hr__str_addf(out, "keeps %llu records in %.1f MB", (unsigned long long)stats.entries,
                 (double)stats.bytes / 1e6);
}

static void cache_warn(const void *state, struct hr_str *out)
{
    const struct state *s = state;
    struct hr_cache_stats stats;
    const char *comma = "";

    if (s->cache == NULL)
        return;
    hr__cache_stats(s->cache, &stats);
    if (stats.full) {
        hr__str_addf(out,
                     "it keeps %llu records and no more, because %s: the others are "
                     "made in every epoch",
                     (unsigned long long)stats.entries, stats.reason);
        comma = "; ";
    }
    if (stats.damaged > 0) {
        hr__str_addf(out, "%s%llu damaged records were made again", comma,
                     (unsigned long long)stats.damaged);
        comma = "; ";
    }
    if (stats.evicted > 0)
        hr__str_addf(out, "%s%llu older caches were removed from its folder", comma,
                     (unsigned long long)stats.evicted);
}

const struct hr_op hr_op_flow_cache = {
    .name = "flow.cache",
    .summary =
        "keep records in memory or in a folder, so that later epochs skip the work",
    .doc =
        "The first epoch makes each record and keeps it. From then on nothing before the "
        "cache runs for that record: no read, no decoding, no filter. Whole pipelines "
        "give "
        "the same records with and without it, in every order and with any number of "
        "threads, ranks and resumes.\n\n"
        "Records are known by what makes them: all nodes before the cache with their "
        "parameters, and the names that the source lists. A change of any of these uses "
        "another cache; orders (shuffle, take, shard) may change freely. In a "
        "folder, records of local files are also known by size, modification time and "
        "inode of their files, so that a file which was overwritten is read again; one "
        "that is gone or cannot be read is the error that it is without a cache. Not "
        "noticed are a change that keeps all three (in place, of the same length, within "
        "one tick of the file system's clock) and changes of objects on servers: delete "
        "the folder then. What a file held before it was overwritten stays in the "
        "folder, "
        "and counts against its budget, until the folder is deleted. A file that changes "
        "while a run uses its data set is kept only from the next run on. A cache in "
        "memory does not look at files: it lasts as long as its loader. "
        "Records that a filter before the cache drops are kept as dropped.\n\n"
        "Put it after the expensive work and before random augmentation. Random ops "
        "before "
        "it are refused, because every epoch would repeat the first: see `random` and "
        "`refresh`. Batches are not cached: put it before `batch.stack`. Images are made "
        "before they are kept, so in modes `close` and `fast` a cache between "
        "`image.decode` and a resize changes pixels as any op that needs them does; "
        "after "
        "the whole group it changes none. As uint8 an image takes a quarter of what it "
        "takes "
        "normalised.\n\n"
        "When the budget is used up, what is there stays and the rest is made in every "
        "epoch: in an epoch each record is wanted once, so replacing one by another "
        "would "
        "gain nothing. `headrace run` shows how full it is, and why.\n\n"
        "A folder may be shared by any number of processes of a machine, also while they "
        "fill it, and outlives them. Each record has a checksum; a damaged one is made "
        "again. With a budget, caches of other pipelines in the same folder are removed "
        "when room is needed, the least recently used first, and none that is in use.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(cache_params, struct cache),
    .check = cache_check,
    .infer = cache_infer,
    .binds = cache_binds,
    .open = cache_open,
    .close = cache_close,
    .apply = cache_apply,
    .learner.keeps = cache_keeps,
    .learner.tell = cache_tell,
    .learner.warn = cache_warn,
    .cache.begin = cache_begin,
    .cache.start = cache_start,
    .cache.stamps = cache_stamps,
    .cache.find = cache_find,
    .cache.holds = cache_holds,
    .cache.dropped = cache_dropped,
    .cache.draws_for = cache_draws_for,
    .memory.kept = cache_kept,
};
