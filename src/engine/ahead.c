/*
 * engine/ahead.c - read-ahead: names to the reader what the source will read next.
 */
#include "engine/run.h"

#include <assert.h>

/* Names what the sources of a record read; false if the reader takes no more now. */
static bool name_ranges(struct hr_engine *engine, const struct hr_program *p,
                        const struct hr_record_id *ids)
{
    struct hr_range range;

    for (size_t k = 0; k < p->path_count; k++) {
        const struct hr_graph_node *n = &engine->graph->nodes[p->paths[k].source];

        if (p->paths[k].merge != NULL || n->op->source.ahead == NULL ||
            ids[k].index == HR_INDEX_NONE || /* of another input of a merge */
            (p->cache_count > 0 && hr__cached_holds(p, p->paths[k].source, ids)))
            continue;
        for (int part = 0;
             n->op->source.ahead(n->params, n->state, ids[k].index, part, &range); part++)
            if (!hr__reader_ahead(engine->reader, &range))
                return false;
    }
    return true;
}

/* Where the source's first record lies. */
static bool source_is_remote(const struct hr_graph_node *n)
{
    const struct hr_op_source *source = &n->op->source;
    char uri[HR_URI_MAX];
    struct hr_range range;
    const char *path;
    uint64_t offset;

    if (source->ahead != NULL && source->ahead(n->params, n->state, 0, 0, &range))
        return hr__store_is_remote(range.uri, &path);
    return source->locate != NULL &&
           source->locate(n->params, n->state, 0, uri, sizeof uri, &offset) &&
           hr__store_is_remote(uri, &path);
}

bool hr__ahead_is_remote(const struct hr_engine *engine)
{
    const struct hr_program *p = &engine->stages[0].program;

    for (size_t k = 0; k < p->path_count; k++)
        if (p->paths[k].merge == NULL && p->paths[k].n > 0 &&
            source_is_remote(&engine->graph->nodes[p->paths[k].source]))
            return true;
    return false;
}

/* The first position that is not named, from `from` on, with the epoch above it. Threads
 * are less than a depth apart; a position further away is of a run that was placed
 * elsewhere. */
static uint64_t tag_of(uint64_t epoch, uint64_t at)
{
    return epoch << 48 | at;
}

static uint64_t first_unnamed(struct hr_engine *engine, uint64_t epoch, uint64_t from)
{
    uint64_t next = __atomic_load_n(&engine->ahead_next, __ATOMIC_RELAXED);
    uint64_t at = next & (((uint64_t)1 << 48) - 1);
    bool same = next == tag_of(epoch, at);

    return same && at > from && at <= from + 2 * (uint64_t)engine->ahead_depth ? at
                                                                               : from;
}

/* Names the ranges of the next positions to the reader while reads miss the page cache,
 * or have to wait in any case: then those of the claim as well. */
void hr__run_ahead(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_engine *engine = runner->engine;
    const struct hr_program *p = &claim->stage->program;
    uint64_t from, to, epoch = claim->block->epoch;

    assert(claim->count > 0); /* else the block is not the runner's to read */
    if (claim->stage->number > 0 || p->path_count == 0 || engine->feed != NULL ||
        (!engine->remote && !hr__reader_is_cold(engine->reader)))
        return;
    from = claim->block->first + claim->at + (engine->remote ? 0 : claim->count);
    to = from + (uint64_t)engine->ahead_depth;
    to = to < p->paths[0].n ? to : p->paths[0].n;
    if (to > engine->positions_first &&
        to - engine->positions_first > engine->positions_max)
        to = engine->positions_first + engine->positions_max;
    for (uint64_t at = first_unnamed(engine, epoch, from); at < to; at++) {
        for (size_t k = 0; k < p->path_count; k++)
            if (p->paths[k].parent == HR_NO_PATH)
                hr__engine_map(engine, &p->paths[k], epoch, at, 0, NULL,
                               &runner->ahead_ids[k]);
        if (p->merges)
            hr__paths_branch(p, NULL, runner->ahead_ids);
        if (p->cache_count > 0)
            hr__stamps_set(p, engine->graph, NULL, runner->ahead_ids);
        hr__views_set(p, runner->ahead_ids);
        if (!name_ranges(engine, p, runner->ahead_ids))
            return;
        __atomic_store_n(&engine->ahead_next, tag_of(epoch, at + 1), __ATOMIC_RELAXED);
    }
}
