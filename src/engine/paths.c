/*
 * engine/paths.c - positions of an epoch to the indices that sources read, by the order
 * ops, merges and joins of a compiled stage.
 */
#include "engine/program.h"

#include <assert.h>

#include "op/thread.h"

uint64_t hr__path_share(const struct hr_path *path, uint64_t base, uint64_t position)
{
    const struct hr_path_order *order = &path->orders[0];
    struct hr_record_id id = {0};
    uint64_t at;

    assert(hr__path_shards(path));
    at = order->op->order.map(order->params, order->state,
                              base > 0 ? HR_COUNT_UNKNOWN : order->n, position, &id,
                              order->draw_id);
    return base > 0 ? (base + at) % order->n : at;
}

void hr__path_map(const struct hr_path *path, uint64_t position, struct hr_thread *thread,
                  struct hr_record_id *id)
{
    uint64_t at = position;

    for (size_t i = hr__path_shards(path); i < path->count; i++) {
        const struct hr_path_order *order = &path->orders[i];

        assert(!order->shards);
        if (thread != NULL)
            hr__thread_charge(thread, order->node);
        at = order->op->order.map(order->params, order->state, order->n, at, id,
                                  order->draw_id);
    }
    id->index = at;
}

/* Maps a path behind a merge or join from the position *id->index of its input. */
static void
follow(const struct hr_path *path, struct hr_thread *thread, struct hr_record_id *id)
{
    uint32_t mark = id->draw_epoch & HR_EPOCH_SUBSTITUTE;

    id->draw_epoch &= ~HR_EPOCH_SUBSTITUTE;
    hr__path_map(path, id->index, thread, id);
    id->draw_epoch |= mark;
}

/* Leaves the chosen input in `depth`, and the position there in `index`. */
static void choose(const struct hr_merge *merge, struct hr_record_id *id)
{
    uint32_t mark = id->draw_epoch & HR_EPOCH_SUBSTITUTE;

    id->draw_epoch &= ~HR_EPOCH_SUBSTITUTE;
    id->depth = (uint32_t)merge->op->merge.map(merge->params, &merge->inputs, merge->n,
                                               merge->passes, id->index, id,
                                               merge->draw_id, &id->index);
    id->draw_epoch |= mark;
}

void hr__paths_branch(const struct hr_program *p, struct hr_thread *thread,
                      struct hr_record_id *ids)
{
    for (size_t k = 0; k < p->path_count; k++) {
        const struct hr_path *path = &p->paths[k];

        if (path->parent != HR_NO_PATH) {
            const struct hr_record_id *from = &ids[path->parent];

            const struct hr_join *join = p->paths[path->parent].join;

            ids[k] = *from;
            if (join == NULL && from->depth != path->input)
                ids[k].index = HR_INDEX_NONE;
            else if (join != NULL && from->index != HR_INDEX_NONE)
                ids[k].index = join->op->zip.map(join->state, path->input, from->index);
            if (ids[k].index == HR_INDEX_NONE)
                continue;
            ids[k].depth = 0;
            follow(path, thread, &ids[k]);
        }
        if (path->merge != NULL)
            choose(path->merge, &ids[k]);
    }
    for (size_t k = p->path_count; k-- > 0;) {
        const struct hr_merge *merge = p->paths[k].merge;
        size_t input = ids[k].depth;

        if (merge == NULL || ids[k].index == HR_INDEX_NONE)
            continue;
        ids[k].index = merge->bases[input] + ids[merge->paths[input]].index;
        ids[k].draw_epoch = ids[merge->paths[input]].draw_epoch;
        ids[k].depth = 0;
    }
}

enum hr_err
hr__step_fill(const struct hr_step *step, struct hr_value *slots, struct hr_op_ctx *ctx)
{
    const struct hr_record_id *ids = hr__step_ids(step, ctx->id);

    for (size_t i = 0; i < step->fill_count; i++) {
        const struct hr_fill *fill = &step->fills[i];

        if (ids[fill->path].index == HR_INDEX_NONE)
            HR_TRY(step->op->zip.fill(ctx, fill->field, &slots[fill->slot]));
    }
    return HR_OK;
}

uint32_t hr__path_source(const struct hr_program *p, size_t path, uint64_t *index)
{
    while (p->paths[path].merge != NULL) {
        const struct hr_merge *merge = p->paths[path].merge;
        size_t input = merge->inputs.count - 1;

        while (input > 0 &&
               (merge->bases[input] > *index || p->paths[merge->paths[input]].span == 0))
            input--;
        *index -= merge->bases[input];
        path = merge->paths[input];
    }
    if (p->paths[path].join != NULL)
        return hr__graph_source(p->paths[path].join->graph, p->paths[path].source, index);
    return p->paths[path].source;
}

uint64_t hr__path_count(const struct hr_path *path, uint64_t base)
{
    if (base > 0 && hr__path_shards(path))
        return path->orders[0].op->order.count(
            path->orders[0].params, path->orders[0].state, path->orders[0].n - base);
    return path->n;
}
