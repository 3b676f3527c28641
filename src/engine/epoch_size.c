/*
 * engine/epoch_size.c - checks ranks and worlds against the graph, and computes the size
 * of an epoch without running it.
 */
#include "engine/engine.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "op/share.h"

enum hr_err
hr__engine_check_options(const struct hr_iter_options *o, struct hr_error *reterr)
{
    if ((unsigned)o->variant > HR_VARIANT_PROCESSES ||
        (unsigned)o->on_error > HR_ON_ERROR_SUBSTITUTE || (unsigned)o->even > HR_EVEN_PAD)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "variant, on_error or even is no value of its enum: initialise "
                        "the options with hr_iter_options_init");
    if (o->threads < 0 || o->threads > 4096)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "threads must be 0 to 4096, not %d",
                        o->threads);
    if (o->epochs < 0 || o->epoch_first < 0 || o->records_max < 0 || o->errors_max < 0)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "epochs, first epoch, record and error limits must not be negative");
    if (o->seed > INT64_MAX) /* states hold it as JSON */
        return hr__fail(reterr, HR_ERR_ARGUMENT, "seed must be below 2^63, not %llu",
                        (unsigned long long)o->seed);
    if (o->world < 0 || (o->world > 0 && (o->rank < 0 || o->rank >= o->world)))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "rank must be 0 to world - 1, not %lld of %lld",
                        (long long)o->rank, (long long)o->world);
    if (o->even != HR_EVEN_NONE && o->world == 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "even shares need a rank: give rank and world, too");
    return hr__demand_check(o->demand, reterr);
}

static bool graph_shards(const struct hr_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].op->traits & HR_TRAIT_SHARDS)
            return true;
    return false;
}

/* What sees records in order is one chain: no flow has two of them as inputs. Where an
 * order op follows rounds, these are divided. */
uint32_t hr__engine_divider(const struct hr_graph *graph)
{
    const struct hr_graph_node *n = &graph->nodes[graph->output];
    uint32_t found = HR_NO_NODE;

    while (!n->by_number && n->input_count > 0) {
        enum hr_sequence_ranks ranks = hr__sequence_ranks(&n->op->sequence, n->params);

        if (ranks == HR_RANKS_ROUNDS ||
            (ranks == HR_RANKS_OUTPUTS && found == HR_NO_NODE))
            found = (uint32_t)(n - graph->nodes);
        n = &graph->nodes[n->inputs[0]];
    }
    return found;
}

static bool gives_rounds(const struct hr_graph *graph, uint32_t at)
{
    const struct hr_graph_node *n = &graph->nodes[at];

    return hr__sequence_ranks(&n->op->sequence, n->params) == HR_RANKS_ROUNDS;
}

uint32_t hr__engine_last_not_mapped(const struct hr_graph *graph)
{
    uint32_t at = graph->output;

    while (!graph->nodes[at].by_number && graph->nodes[at].op->kind == HR_OP_MAP)
        at = graph->nodes[at].inputs[0];
    return at;
}

/* The number of outputs is known only at the end, after any filter. */
static enum hr_err check_divider(const struct hr_graph *graph,
                                 const struct hr_iter_options *o, struct hr_error *reterr)
{
    uint32_t divider = hr__engine_divider(graph);

    if (divider == HR_NO_NODE || o->even == HR_EVEN_NONE || gives_rounds(graph, divider))
        return HR_OK;
    hr__fail(reterr, HR_ERR_UNSUPPORTED,
             "ranks divide what it gives, and how many records that are is known only at "
             "the end of an epoch, so shares cannot be even: leave "
             "`even` out (in Python even='steps' ends the epoch of all ranks with the "
             "first)");
    hr__graph_blame(graph, divider, reterr);
    return HR_ERR_UNSUPPORTED;
}

/* HR_EVEN_PAD: batches must be runs of the rank's consecutive records, all of them. */
static enum hr_err check_padding(const struct hr_graph *graph,
                                 const struct hr_iter_options *o, struct hr_error *reterr)
{
    const struct hr_schema *schema = &graph->nodes[graph->output].schema;
    uint32_t at = hr__engine_last_not_mapped(graph);
    const struct hr_graph_node *n = &graph->nodes[at];
    struct hr_sequence_runs runs = {0};

    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, HR_PAD_FIELD) == 0)
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "the records have a field \"" HR_PAD_FIELD
                            "\", which marks padding: rename it");
    if (!n->by_number && n->op->sequence.runs != NULL &&
        graph->nodes[n->inputs[0]].by_number &&
        !hr__node_drops(&graph->nodes[n->inputs[0]]))
        n->op->sequence.runs(n->params, &runs);
    if (runs.drop_last) {
        hr__fail(reterr, HR_ERR_UNSUPPORTED,
                 "it drops the last records, and padded shares are to deliver every "
                 "record: set drop_last: false");
        hr__graph_blame(graph, at, reterr);
        return HR_ERR_UNSUPPORTED;
    }
    if (o->world > 1 && (!n->by_number || hr__node_drops(n)) && runs.size == 0) {
        hr__fail(reterr, HR_ERR_UNSUPPORTED,
                 "after it the number of a rank's records is known only when they are "
                 "made, so shares cannot be padded: let every rank run all records "
                 "(rank 0 of 1; in Python shard=None)");
        hr__graph_blame(graph, at, reterr);
        return HR_ERR_UNSUPPORTED;
    }
    if (o->world > 1 && o->on_error == HR_ON_ERROR_SKIP)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "skipping bad records makes shares unequal, which were padded to "
                        "be equal: fail or substitute");
    return HR_OK;
}

enum hr_err hr__engine_set_world(const struct hr_graph *graph, struct hr_iter_options *o,
                                 struct hr_error *reterr)
{
    bool shards = graph_shards(graph);

    if (o->world > 0 && shards)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "the graph shards already (order.shard); give rank and world in one place");
    if (o->world == 0 && !shards)
        o->world = 1;
    if (o->world > 1)
        HR_TRY(check_divider(graph, o, reterr));
    return o->even == HR_EVEN_PAD ? check_padding(graph, o, reterr) : HR_OK;
}

/* ---- the size of an epoch ---- */

/* Outputs of a node: records, and items, which are batches after a batch op. -1: unknown
 * before the run. */
struct amount {
    int64_t records, items;
};

static const struct amount unknown = {-1, -1};

/* Whether ranks divide the node's records by number: only order ops and one-to-one ops
 * precede it. */
static bool is_shared(const struct hr_graph *graph, const struct hr_graph_node *node)
{
    if (node->op->kind == HR_OP_SEQUENCE || node->op->kind == HR_OP_EXPAND ||
        hr__op_drops(node->op, node->params))
        return false;
    for (size_t i = 0; i < node->input_count; i++)
        if (!is_shared(graph, &graph->nodes[node->inputs[i]]))
            return false;
    return true;
}

static struct amount batched(const struct hr_graph_node *node, struct amount in)
{
    struct hr_sequence_runs runs = {.size = 1};
    int64_t rest;

    node->op->sequence.runs(node->params, &runs);
    assert(runs.size > 0);
    if (in.items < 0)
        return unknown;
    rest = in.items % runs.size;
    if (!runs.drop_last)
        return (struct amount){in.records, in.items / runs.size + (rest > 0)};
    if (rest > 0 && in.records != in.items) /* of batches, the last one may be smaller */
        in.records = -1;
    return (struct amount){in.records < 0 ? -1 : in.records - rest, in.items / runs.size};
}

static struct amount
amount_of(const struct hr_graph *graph, uint32_t at, const struct hr_iter_options *o)
{
    const struct hr_graph_node *node = &graph->nodes[at];
    const struct hr_schema *from =
        node->input_count > 0 ? &graph->nodes[node->inputs[0]].schema : NULL;
    struct amount in;

    if (is_shared(graph, node)) {
        int64_t n = node->schema.records;

        if (n >= 0 && o->world > 0)
            n = (int64_t)hr__share_count((uint64_t)n, (uint64_t)o->rank,
                                         (uint64_t)o->world, o->even);
        return (struct amount){n, n};
    }
    if (node->input_count == 0)
        return unknown;
    in = amount_of(graph, node->inputs[0], o);
    switch (node->op->kind) {
    case HR_OP_MAP:
    case HR_OP_ZIP:
        return in;
    case HR_OP_SEQUENCE:
        return node->op->sequence.runs != NULL ? batched(node, in) : unknown;
    case HR_OP_EXPAND: /* takes batches of records apart */
        if (from->batch_rank == 1 && node->schema.batch_rank == 0)
            return (struct amount){in.records, in.records};
        return unknown;
    default:
        return unknown;
    }
}

enum hr_err
hr__engine_epoch_size(const struct hr_graph *graph, const struct hr_iter_options *options,
                      struct hr_epoch_size *ret_size, struct hr_error *reterr)
{
    struct hr_iter_options o = *options;
    struct amount own, least;

    assert(graph->frozen);
    HR_TRY(hr__engine_check_options(&o, reterr));
    HR_TRY(hr__engine_set_world(graph, &o, reterr));
    own = amount_of(graph, graph->output, &o);
    o.rank = o.world > 0 ? o.world - 1 : 0; /* no rank has fewer */
    least = amount_of(graph, graph->output, &o);
    assert(least.items <= own.items);
    *ret_size = (struct hr_epoch_size){
        .records = own.records,
        .batches = own.items,
        .batches_least = least.items,
        .shards = o.world == 0,
        .ranks_differ =
            o.world != 1 &&
            ((own.items < 0 && !gives_rounds(graph, hr__engine_last_not_mapped(graph))) ||
             options->on_error == HR_ON_ERROR_SKIP),
    };
    return HR_OK;
}
