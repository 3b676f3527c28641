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

#include <assert.h>

#include "core/alloc.h"
#include "op/thread.h"
#include "store/store.h"

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
    assert(p->cache_count == 0);
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

/* Adds the pair unless it is there. */
static void add_stamp(struct hr_program *p, uint16_t path, uint16_t source)
{
    for (size_t i = 0; i < p->stamp_count; i++)
        if (p->stamps[i].path == path && p->stamps[i].source == source)
            return;
    p->stamps[p->stamp_count++] = (struct hr_stamp){path, source};
}

bool hr__program_stamps(struct hr_program *p, const struct hr_graph *graph,
                        const uint16_t *path_of)
{
    bool sources[HR_GRAPH_NODES_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < graph->count; i++)
        count += hr__graph_stamped(graph, i, sources);
    p->stamps = hr__arena_zalloc(&p->arena, (count + 1) * sizeof *p->stamps);
    if (p->stamps == NULL)
        return false;
    for (uint32_t i = 0; i < graph->count; i++) {
        if (hr__graph_stamped(graph, i, sources) == 0)
            continue;
        for (uint32_t k = 0; k < graph->count; k++)
            if (sources[k] && path_of[k] > 0)
                /* In later stages a record has the identity of path 0. */
                add_stamp(p, (uint16_t)(path_of[i] > 0 ? path_of[i] - 1 : 0),
                          (uint16_t)(path_of[k] - 1));
    }
    return true;
}

void hr__program_uncache(struct hr_program *p)
{
    p->stamp_count = 0;
    for (size_t i = 0; i < p->step_count; i++)
        p->steps[i].cache_count = 0;
    p->cache_count = 0;
}

static uint64_t both(uint64_t stamp, uint64_t more)
{
    const uint64_t words[2] = {stamp, more};

    if (stamp == HR_STAMP_UNKNOWN || more == HR_STAMP_UNKNOWN)
        return HR_STAMP_UNKNOWN;
    return stamp == 0 || more == 0 ? stamp + more : hr__hash64(words, sizeof words, 0);
}

static uint64_t
stamp_of(const struct hr_graph *graph, const struct hr_graph_node *n, uint64_t index)
{
    const struct hr_op_source *source = &n->op->source;
    char uri[HR_URI_MAX];
    uint64_t offset, stamp;

    if (!source->locate(n->params, n->state, index, uri, sizeof uri, &offset))
        return 0;
    stamp = hr__store_stamp(uri, graph->opened_ns);
    for (int i = 0; source->beside != NULL &&
                    source->beside(n->params, n->state, index, i, uri, sizeof uri);
         i++)
        stamp = both(stamp, hr__store_stamp(uri, graph->opened_ns));
    return stamp;
}

void hr__stamps_set(const struct hr_program *p, const struct hr_graph *graph,
                    struct hr_thread *thread, struct hr_record_id *ids)
{
    for (size_t i = 0; i < p->stamp_count; i++)
        ids[p->stamps[i].path].stamp = 0;
    for (size_t i = 0; i < p->stamp_count; i++) {
        struct hr_record_id *id = &ids[p->stamps[i].path];
        const struct hr_record_id *from = &ids[p->stamps[i].source];
        uint32_t source = p->paths[p->stamps[i].source].source;

        if (from->index == HR_INDEX_NONE) /* of another input of a merge */
            continue;
        if (thread != NULL)
            hr__thread_charge(thread, source);
        id->stamp = both(id->stamp, stamp_of(graph, &graph->nodes[source], from->index));
    }
}

void hr__views_set(const struct hr_program *p, struct hr_record_id *ids)
{
    size_t paths = p->id_count - p->view_count;

    assert(p->view_count < p->id_count);
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
        assert(first->caches[i] > at);
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
