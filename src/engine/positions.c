/*
 * engine/positions.c - a consumer's positions and the epoch's order over all ranks.
 */
#include "engine/positions.h"

#include <assert.h>

#include "engine/engine.h"
#include "op/share.h"

static uint64_t base_of(const struct hr_engine *engine, uint64_t epoch)
{
    return epoch == engine->base_epoch ? engine->base : 0;
}

uint64_t hr__engine_global(const struct hr_engine *engine, const struct hr_path *path,
                           uint64_t epoch, uint64_t position)
{
    uint64_t base = base_of(engine, epoch);

    if (engine->source_world == 0 && !hr__path_shards(path))
        return position; /* an order.shard in stream form: each rank visits all */
    if (engine->source_world == 0)
        return hr__path_share(path, base, position);
    return base + position * engine->source_world + engine->source_rank;
}

static uint64_t wrapped(const struct hr_path *path, uint64_t at)
{
    uint64_t n = hr__path_global_count(path);

    return at < n || n == 0 ? at : at % n;
}

void hr__engine_map(const struct hr_engine *engine, const struct hr_path *path,
                    uint64_t epoch, uint64_t position, uint64_t attempt,
                    struct hr_thread *thread, struct hr_record_id *ret_id)
{
    uint64_t n = hr__path_global_count(path), at;

    assert(epoch < HR_DRAW_EPOCHS_MAX);
    ret_id->seed = engine->options.seed;
    ret_id->depth = 0;
    if (thread != NULL && hr__path_shards(path))
        hr__thread_charge(thread, path->orders[0].node);
    if (engine->one_record)
        epoch = position = attempt = 0;
    ret_id->epoch = ret_id->draw_epoch = (uint32_t)epoch;
    ret_id->position =
        engine->one_record ? 0 : hr__engine_global(engine, path, epoch, position);
    at = wrapped(path, ret_id->position);
    if (attempt > 0)
        at = (at + attempt) % (n > 0 ? n : 1);
    if (path->count == 0)
        ret_id->index = at; /* no order op: the most common cheap graph */
    else
        hr__path_map(path, at, thread, ret_id);
    if (attempt > 0)
        ret_id->draw_epoch |= HR_EPOCH_SUBSTITUTE;
}

int64_t
hr__engine_padding(const struct hr_engine *engine, uint64_t position, int64_t records)
{
    uint64_t n = engine->stages[0].program.paths[0].n;
    uint64_t world = engine->source_world, good;

    assert(world > 0 && records >= 0);
    if (world == 1) /* also where a record gives many, which have its position */
        return 0;
    good = position < n ? (n - position - 1) / world + 1 : 0;
    return good < (uint64_t)records ? records - (int64_t)good : 0;
}

uint64_t hr__engine_positions(const struct hr_engine *engine, uint64_t epoch)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];
    uint64_t base = base_of(engine, epoch);

    if (engine->source_world == 0)
        return hr__path_count(path, base);
    return hr__share_count(path->n > base ? path->n - base : 0, engine->source_rank,
                           engine->source_world, engine->options.even);
}

/* The product, or any number above HR_DRAW_EPOCHS_MAX. */
static uint64_t times(uint64_t passes, uint64_t more)
{
    return passes > HR_DRAW_EPOCHS_MAX || more > HR_DRAW_EPOCHS_MAX
               ? HR_DRAW_EPOCHS_MAX + 1
               : passes * more;
}

/* By how much the path multiplies draw_epoch. */
static uint64_t passes_of(const struct hr_path *path)
{
    uint64_t passes = path->merge != NULL ? path->merge->passes : 1;

    for (size_t k = 0; k < path->count; k++) {
        const struct hr_path_order *order = &path->orders[k];

        if (order->op->order.passes != NULL)
            passes = times(passes, order->op->order.passes(order->params));
    }
    return passes;
}

uint64_t hr__engine_epochs_max(const struct hr_engine *engine)
{
    const struct hr_program *p = &engine->stages[0].program;
    uint64_t most = 1;

    for (size_t i = 0; i < p->path_count; i++) {
        uint64_t passes = 1;

        for (size_t k = i; k != HR_NO_PATH; k = p->paths[k].parent)
            passes = times(passes, passes_of(&p->paths[k]));
        most = passes > most ? passes : most;
    }
    return HR_DRAW_EPOCHS_MAX / most;
}

bool hr__engine_is_done(const struct hr_engine *engine, uint64_t epoch, uint64_t position,
                        uint64_t *ret_children)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];

    *ret_children = 0;
    return !hr__done_is_empty(&engine->done) && epoch == engine->base_epoch &&
           hr__done_has(&engine->done,
                        wrapped(path, hr__engine_global(engine, path, epoch, position)),
                        ret_children);
}
