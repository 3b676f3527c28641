/*
 * engine/cached.c - records that a cache of the stage knows: the steps before it do not
 * run for them.
 *
 * When a stage is compiled, each step gets the caches that it is the first step for: the
 * first of those, up to the cache, that no other node needs. Before that step the cache
 * is asked. If it knows the record, the row continues after the cache; a row of a pass
 * with segments then waits until the others have got there (hr_chunk.resume).
 */
#include "engine/run.h"

#include "core/alloc.h"
#include "op/thread.h"

/* ---- compiling ---- */

/* The first step of those before step `at` that run for it alone; `at` if there is none.
 */
static size_t
first_for(const struct hr_program *p, const struct hr_graph *graph, size_t at)
{
    size_t from = at;

    while (from > 0 &&
           hr__graph_feeds_only(graph, p->steps[from - 1].node, p->steps[at].node))
        from--;
    return from;
}

bool hr__program_caches(struct hr_program *p, const struct hr_graph *graph)
{
    for (size_t i = 0; i < p->step_count; i++) {
        struct hr_step *first;
        uint16_t *grown;
        size_t from;

        if (p->steps[i].op->cache.find == NULL)
            continue;
        from = first_for(p, graph, i);
        if (from == i)
            continue;
        first = &p->steps[from];
        grown = hr__arena_zalloc(&p->arena, (first->cache_count + 1u) * sizeof *grown);
        if (grown == NULL)
            return false;
        grown[0] = (uint16_t)i; /* the later one spares more, and is asked first */
        for (size_t k = 0; k < first->cache_count; k++)
            grown[k + 1] = first->caches[k];
        first->caches = grown;
        first->cache_count++;
        p->cache_count++;
    }
    return true;
}

void hr__program_uncache(struct hr_program *p)
{
    for (size_t i = 0; i < p->step_count; i++)
        p->steps[i].cache_count = 0;
    p->cache_count = 0;
}

void hr__views_set(const struct hr_program *p, struct hr_record_id *ids)
{
    size_t paths = p->id_count - p->view_count;

    for (size_t i = 0; i < p->view_count; i++) {
        const struct hr_view *view = &p->views[i];
        struct hr_record_id *id = &ids[paths + i];
        uint32_t mark;

        *id = ids[view->path];
        mark = id->draw_epoch & HR_EPOCH_SUBSTITUTE;
        id->draw_epoch &= ~HR_EPOCH_SUBSTITUTE;
        id->draw_epoch -= view->draws_for == HR_DRAWS_ONCE
                              ? id->draw_epoch
                              : id->draw_epoch % view->draws_for;
        id->draw_epoch |= mark;
    }
}

/* ---- running ---- */

static struct hr_op_ctx *bound(const struct hr_pass *pass, size_t at, uint32_t row)
{
    if (pass->stage->program.segment_count > 0)
        hr__pass_bind(pass, at, row);
    return &pass->runner->ctxs[pass->stage->number][at];
}

static void count_skipped(const struct hr_pass *pass, size_t from, size_t to)
{
    const struct hr_program *p = &pass->stage->program;

    for (size_t i = from; i < to; i++)
        hr__meter_node(pass->runner, p->steps[i].node)->skipped++;
}

size_t hr__cached_next(struct hr_pass *pass, uint32_t row, size_t at)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    const struct hr_step *first = &p->steps[at];

    for (size_t i = 0; i < first->cache_count; i++) {
        const struct hr_step *step = &p->steps[first->caches[i]];
        struct hr_op_ctx *ctx = bound(pass, first->caches[i], row);
        enum hr_cached found;

        if (ctx->id->index == HR_INDEX_NONE) /* of another input of a merge */
            continue;
        hr__thread_charge(&runner->thread, step->node);
        found = step->op->cache.find(ctx);
        if (found == HR_CACHED_NO)
            continue;
        (void)hr__run_charge(runner, step->node);
        count_skipped(pass, at, first->caches[i]);
        if (found == HR_CACHED_DROPPED)
            hr__pass_ended(pass, row, step->node, HR_RECORD_DROPPED);
        return first->caches[i] + 1u;
    }
    return at;
}

void hr__cached_dropped(struct hr_pass *pass, uint32_t row, uint32_t node)
{
    const struct hr_program *p = &pass->stage->program;
    size_t at = 0;

    while (at < p->step_count && p->steps[at].node != node)
        at++;
    for (size_t i = 0; i < p->step_count && i <= at; i++)
        for (size_t k = 0; k < p->steps[i].cache_count; k++) {
            size_t cache = p->steps[i].caches[k];

            if (at < cache)
                p->steps[cache].op->cache.dropped(bound(pass, cache, row));
        }
}

bool hr__cached_holds(const struct hr_program *p, uint32_t source,
                      const struct hr_record_id *ids)
{
    size_t at = 0;

    while (at < p->step_count && p->steps[at].node != source)
        at++;
    for (size_t i = 0; i < p->step_count && i <= at; i++)
        for (size_t k = 0; k < p->steps[i].cache_count; k++) {
            const struct hr_step *cache = &p->steps[p->steps[i].caches[k]];

            if (at < p->steps[i].caches[k] && ids[cache->path].index != HR_INDEX_NONE &&
                cache->op->cache.holds(cache->state, &ids[cache->path]))
                return true;
        }
    return false;
}

void hr__cached_gather(struct hr_pass *pass, const struct hr_segment *segment)
{
    struct hr_chunk *chunk = pass->chunk;

    chunk->live_count = 0;
    for (uint32_t row = 0; row < pass->count; row++) {
        if (*hr__pass_status(pass, row) != HR_RECORD_OPEN ||
            (segment != NULL && chunk->resume[row] >= segment->to))
            continue;
        if (segment != NULL && segment->kind != HR_SEGMENT_LOCAL &&
            chunk->resume[row] <= segment->from &&
            hr__program_step(&pass->stage->program, segment->from)->cache_count > 0) {
            size_t next;

            hr__pass_time_begin(pass, row, pass->stage->program.nodes[0]);
            next = hr__cached_next(pass, row, segment->from);
            hr__pass_time_end(pass);
            if (next != segment->from) {
                chunk->resume[row] = (uint16_t)next;
                continue;
            }
        }
        chunk->live[chunk->live_count++] = row;
    }
}
