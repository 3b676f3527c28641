/*
 * api/cache_split.c - see cache_split.h.
 */
#include "api/cache_split.h"

#include "api/prediction.h"
#include "core/alloc.h"
#include "core/error.h"

#define RECORDS 64 /* that are measured for a node, at least */
#define BATCHES 8  /* the same: the first ones go to new memory, which takes longer */
#define SECONDS 1.0

/* A copy of the graph, frozen, that makes the node's values. */
static enum hr_err make_after(const struct hr_graph *graph, uint32_t node,
                              struct hr_graph **ret_graph, struct hr_error *reterr)
{
    uint32_t places[HR_GRAPH_NODES_MAX];
    struct hr_graph *copy;
    enum hr_err code;

    for (uint32_t i = 0; i < graph->count; i++)
        places[i] = i;
    HR_TRY(hr__graph_permute(graph, places, &copy, reterr));
    code = hr__graph_make_after(copy, node);
    if (code == HR_OK)
        code = hr__graph_freeze(copy, reterr);
    else
        code = hr__fail(reterr, code, "out of memory");
    if (code != HR_OK) {
        hr__graph_unref(copy);
        return code;
    }
    *ret_graph = copy;
    return HR_OK;
}

/* How many records to measure; 0: up to the time. */
static int64_t records_for(struct hr_graph *graph)
{
    struct hr_epoch_size size;
    int64_t records;

    if (hr_graph_epoch_size(graph, NULL, &size, NULL) != HR_OK || size.batches < 1 ||
        size.records < 1)
        return 0;
    records = BATCHES * (size.records / size.batches + 1);
    return records < RECORDS ? RECORDS : records;
}

static enum hr_err
facts_of(struct hr_graph *graph, struct hr_cost_fact **ret_facts, struct hr_error *reterr)
{
    struct hr_profile_options options;
    struct hr_profile *profile;
    struct hr_graph *same = NULL;
    enum hr_err code;

    hr_profile_options_init(&options);
    options.records_max = records_for(graph);
    options.seconds_max = SECONDS;
    options.variant = HR_VARIANT_THREADS;
    options.fuse = true;
    HR_TRY(hr_graph_profile(graph, &options, &profile, reterr));
    code = hr__ordered_facts(graph, profile, NULL, &same, ret_facts, reterr);
    hr_profile_free(profile);
    hr__graph_unref(same);
    return code;
}

static enum hr_err measure(const struct hr_graph *graph, uint32_t node,
                           struct hr_cost_fact **ret_facts, struct hr_error *reterr)
{
    struct hr_graph *copy;
    enum hr_err code;

    HR_TRY(make_after(graph, node, &copy, reterr));
    code = facts_of(copy, ret_facts, reterr);
    hr__graph_unref(copy);
    return code;
}

/* Whether the node, or one before it, draws random numbers. */
static bool draws(const struct hr_graph *graph, uint32_t node)
{
    bool before[HR_GRAPH_NODES_MAX];

    hr__graph_before(graph, node, before);
    for (uint32_t i = 0; i < graph->count; i++)
        if (before[i] && hr__node_draws_values(&graph->nodes[i]))
            return true;
    return false;
}

enum hr_err hr__cache_split(const struct hr_graph *graph, bool random,
                            struct hr_cost_fact **ret_facts, struct hr_error *reterr)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        struct hr_error error = {0};
        enum hr_err code;

        ret_facts[i] = NULL;
        if (!n->describes || n->made_after || n->schema.batch_rank > 0 ||
            (!random && draws(graph, i)))
            continue;
        code = measure(graph, i, &ret_facts[i], &error);
        if (code == HR_ERR_MEMORY)
            return hr__fail(reterr, code, "%s", error.message);
    }
    return HR_OK;
}
