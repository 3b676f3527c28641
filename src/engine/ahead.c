/*
 * engine/ahead.c - read-ahead: names to the reader what the source will read next.
 */
#include "engine/run.h"

#include <assert.h>

/* Names the ranges of the next positions to the reader while reads miss the page cache.
 */
void hr__run_ahead(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_engine *engine = runner->engine;
    const struct hr_program *p = &claim->stage->program;
    const struct hr_graph_node *n;
    uint64_t from, to, next;
    struct hr_range range;

    assert(claim->count > 0); /* else the block is not the runner's to read */
    if (claim->stage->number > 0 || p->path_count != 1)
        return;
    from = claim->block->first + claim->at + claim->count;
    to = from + (uint64_t)engine->ahead_depth;
    n = &engine->graph->nodes[p->paths[0].source];
    if (n->op->source.ahead == NULL || !hr__reader_is_cold(engine->reader))
        return;
    to = to < p->paths[0].n ? to : p->paths[0].n;
    to = to < engine->positions_max ? to : engine->positions_max;
    next = __atomic_load_n(&engine->ahead_next, __ATOMIC_RELAXED);
    for (uint64_t at = next > from && next <= to ? next : from; at < to; at++) {
        struct hr_record_id id;

        hr__engine_map(engine, &p->paths[0], claim->block->epoch, at, 0, NULL, &id);
        for (int part = 0;
             n->op->source.ahead(n->params, n->state, id.index, part, &range); part++)
            hr__reader_ahead(engine->reader, &range);
        __atomic_store_n(&engine->ahead_next, at + 1, __ATOMIC_RELAXED);
    }
}
