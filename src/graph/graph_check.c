/*
 * graph/graph_check.c - what can be checked by a graph's wiring and the kinds of its ops,
 * before any schema is known.
 *
 * Where every op before them is one to one, order ops are functions of a record's number:
 * they map positions before any work is done, wherever they stand. After a filter, an
 * expansion or a source of unknown length they need a stream form. A zip joins records by
 * number, so nothing before it may drop, make or batch records.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

#define NO_NODE UINT32_MAX

struct fact {
    bool placed;
    unsigned depth; /* most expansions on a path from a source, including the node */
    uint32_t
        unsteady;   /* the node, or the nearest before it, that drops or makes records */
    uint32_t drops; /* the source before it that drops records */
    uint32_t batched;  /* the node, or the nearest before it, that makes batches */
    uint32_t sharded;  /* the node, or the one before it, with SHARDS */
    uint32_t rounds;   /* the node, or the one before it, with HR_RANKS_ROUNDS */
    uint32_t shuffled; /* the node, or the nearest before it, that orders at random */
};

struct check {
    struct hr_graph *graph;
    uint32_t *order;
    struct fact *facts;
    struct hr_error *error;
};

static const char *name_of(const struct check *c, uint32_t node)
{
    return c->graph->nodes[node].name;
}

static enum hr_err wrong(const struct check *c, uint32_t node, enum hr_err code)
{
    hr__graph_blame(c->graph, node, c->error);
    return code;
}

static enum hr_err check_inputs(const struct check *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    size_t low = n->op->inputs_min, high = n->op->inputs_max;

    if (low == 0 && high == 0 && n->op->kind != HR_OP_SOURCE)
        low = high = 1;
    if (n->input_count >= low && n->input_count <= high)
        return HR_OK;
    if (high == 0)
        hr__fail(c->error, HR_ERR_GRAPH, "a source has no inputs, and this has %zu",
                 n->input_count);
    else if (n->input_count == 0)
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it has no input; a pipeline begins with a source");
    else if (low == high)
        hr__fail(c->error, HR_ERR_GRAPH, "it takes %zu input%s, and has %zu", low,
                 low == 1 ? "" : "s", n->input_count);
    else
        hr__fail(c->error, HR_ERR_GRAPH, "it takes %zu to %zu inputs, and has %zu", low,
                 high, n->input_count);
    return wrong(c, node, HR_ERR_GRAPH);
}

static bool inputs_placed(const struct check *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];

    for (size_t i = 0; i < n->input_count; i++) {
        if (!c->facts[n->inputs[i]].placed)
            return false;
    }
    return true;
}

/* A node of a cycle: follows unplaced inputs back from an unplaced node until one
 * repeats.
 */
static uint32_t find_cycle(const struct check *c, uint32_t node)
{
    bool seen[HR_GRAPH_NODES_MAX] = {false};

    assert(!c->facts[node].placed);
    while (!seen[node]) {
        const struct hr_graph_node *n = &c->graph->nodes[node];
        size_t i = 0;

        seen[node] = true;
        while (c->facts[n->inputs[i]].placed)
            i++;
        node = n->inputs[i];
    }
    return node;
}

/* Topological order; independent nodes in the order in which they were added. */
static enum hr_err sort(struct check *c)
{
    size_t placed = 0, before;

    do {
        before = placed;
        for (uint32_t i = 0; i < c->graph->count; i++) {
            if (c->facts[i].placed || !inputs_placed(c, i))
                continue;
            assert(placed < c->graph->count);
            c->facts[i].placed = true;
            c->order[placed++] = i;
        }
    } while (placed > before);
    for (uint32_t i = 0; i < c->graph->count; i++) {
        if (c->facts[i].placed)
            continue;
        hr__fail(c->error, HR_ERR_GRAPH, "its inputs lead back to itself");
        return wrong(c, find_cycle(c, i), HR_ERR_GRAPH);
    }
    return HR_OK;
}

static bool has_stream_form(const struct hr_graph_node *n)
{
    const struct hr_op_sequence *op = &n->op->sequence;

    return op->add != NULL && (op->possible == NULL || op->possible(n->params));
}

bool hr__node_orders_kept(const struct hr_graph_node *n)
{
    return has_stream_form(n) && (n->op->traits & HR_TRAIT_SHARDS) == 0;
}

static enum hr_err check_order(const struct check *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    const struct fact *fact = &c->facts[node];

    assert(n->op->kind == HR_OP_ORDER && n->input_count == 1);
    if (fact->sharded != NO_NODE) {
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it comes after '%s', which splits the records over ranks and must be "
                 "the last op that orders or selects them: put it before '%s'",
                 name_of(c, fact->sharded), name_of(c, fact->sharded));
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (fact->shuffled != NO_NODE && n->op->order.by != NULL) {
        hr__fail(
            c->error, HR_ERR_GRAPH,
            "it lists the records that it chooses, and '%s' orders them otherwise in "
            "every epoch: put it before '%s'",
            name_of(c, fact->shuffled), name_of(c, fact->shuffled));
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (fact->unsteady != NO_NODE && fact->unsteady == fact->drops &&
        !has_stream_form(n)) {
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it must know the number of records, which '%s' drops some of: put it "
                 "directly after '%s'%s",
                 name_of(c, fact->drops), name_of(c, fact->drops),
                 n->op->sequence.possible != NULL ? ", or set a window here" : "");
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (fact->unsteady != NO_NODE && !has_stream_form(n) &&
        c->graph->nodes[fact->unsteady].op->kind == HR_OP_SOURCE) {
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it must know the number of records, and '%s' knows it only at the end: "
                 "give '%s' a count%s",
                 name_of(c, fact->unsteady), name_of(c, fact->unsteady),
                 n->op->sequence.possible != NULL ? ", or set a window here" : "");
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (fact->unsteady != NO_NODE && !has_stream_form(n)) {
        const char *blocks =
            n->op->sequence.possible != NULL ? ", or set a window here" : "";

        hr__fail(c->error, HR_ERR_GRAPH,
                 "it must know the number of records, and after '%s' that is known only "
                 "at the end: put it before '%s'%s",
                 name_of(c, fact->unsteady), name_of(c, fact->unsteady), blocks);
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (fact->unsteady == NO_NODE && fact->batched != NO_NODE) {
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it selects records by number, and '%s' has made batches of them: put "
                 "it before '%s'",
                 name_of(c, fact->batched), name_of(c, fact->batched));
        return wrong(c, node, HR_ERR_GRAPH);
    }
    return HR_OK;
}

/* Of a node that takes the records of its inputs by number: a MERGE or a join by keys. */
static enum hr_err check_merge(const struct check *c, uint32_t node)
{
    const struct fact *fact = &c->facts[node];
    uint32_t by = fact->unsteady != NO_NODE ? fact->unsteady
                  : fact->drops != NO_NODE  ? fact->drops
                                            : fact->batched;

    if (fact->sharded != NO_NODE)
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it comes after '%s', which splits the records over ranks and must be "
                 "the last op that orders or selects them: put '%s' after '%s'",
                 name_of(c, fact->sharded), name_of(c, fact->sharded), name_of(c, node));
    else if (by == NO_NODE)
        return HR_OK;
    else if (by == fact->drops)
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it takes the records of its inputs by number, and '%s' drops some of "
                 "one: put record.filter after '%s' instead",
                 name_of(c, by), name_of(c, node));
    else if (c->graph->nodes[by].op->kind == HR_OP_SOURCE)
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it takes the records of its inputs by number, and '%s' knows only at "
                 "the end how many it has: give '%s' a count",
                 name_of(c, by), name_of(c, by));
    else
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it takes the records of its inputs by number, and '%s' drops, makes or "
                 "batches those of one: put '%s' after '%s'",
                 name_of(c, by), name_of(c, by), name_of(c, node));
    return wrong(c, node, HR_ERR_GRAPH);
}

static enum hr_err check_zip(const struct check *c, uint32_t node)
{
    const struct fact *fact = &c->facts[node];
    uint32_t by = fact->unsteady != NO_NODE ? fact->unsteady
                  : fact->drops != NO_NODE  ? fact->drops
                                            : fact->batched;

    if (by == NO_NODE)
        return HR_OK;
    if (by == fact->drops)
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it joins its inputs record by record, and '%s' drops some of one: "
                 "records would be mispaired. Put record.filter after '%s' instead",
                 name_of(c, by), name_of(c, node));
    else if (c->graph->nodes[by].op->kind == HR_OP_SOURCE)
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it joins record by record, and '%s' knows only at the end how many it "
                 "has: give '%s' a count",
                 name_of(c, by), name_of(c, by));
    else
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it joins its inputs record by record, and '%s' drops, makes or batches "
                 "the records of one: records would be mispaired. Put '%s' after '%s'",
                 name_of(c, by), name_of(c, by), name_of(c, node));
    return wrong(c, node, HR_ERR_GRAPH);
}

static enum hr_err check_join(const struct check *c, uint32_t node)
{
    uint32_t shuffled = c->facts[node].shuffled;

    HR_TRY(check_merge(c, node));
    if (shuffled == NO_NODE)
        return HR_OK;
    hr__fail(
        c->error, HR_ERR_GRAPH,
        "it lists the pairs of records with equal keys, and '%s' orders those of one "
        "input otherwise in every epoch: put '%s' after '%s'",
        name_of(c, shuffled), name_of(c, shuffled), name_of(c, node));
    return wrong(c, node, HR_ERR_GRAPH);
}

/* A record's identity has room for this many child numbers. */
static enum hr_err check_depth(const struct check *c, uint32_t node)
{
    if (c->facts[node].depth <= HR_CHILD_DEPTH_MAX)
        return HR_OK;
    hr__fail(c->error, HR_ERR_LIMIT,
             "at most %d expansions can follow one another, and this is number %u",
             HR_CHILD_DEPTH_MAX, c->facts[node].depth);
    return wrong(c, node, HR_ERR_LIMIT);
}

/* Of nodes whose inputs ranks cannot divide, and of those that divide. An order op may
 * follow rounds: it counts those of its rank. */
static enum hr_err check_ranks(const struct check *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    struct fact *fact = &c->facts[node];
    enum hr_sequence_ranks ranks = hr__sequence_ranks(&n->op->sequence, n->params);
    bool shards = (n->op->traits & HR_TRAIT_SHARDS) != 0;

    if (ranks == HR_RANKS_OUTPUTS && n->op->kind == HR_OP_ORDER)
        return HR_OK;
    if (fact->rounds != NO_NODE && (shards || ranks != HR_RANKS_INPUTS)) {
        hr__fail(c->error, HR_ERR_GRAPH, "it would divide what '%s' gives each rank: %s",
                 name_of(c, fact->rounds),
                 shards ? "leave it out, and give rank and world to the run"
                        : "leave out `coordinated` there");
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (ranks == HR_RANKS_ROUNDS && fact->sharded != NO_NODE) {
        hr__fail(c->error, HR_ERR_GRAPH,
                 "it gives each rank batches of all records, and '%s' splits these over "
                 "ranks: leave '%s' out, and give rank and world to the run",
                 name_of(c, fact->sharded), name_of(c, fact->sharded));
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (ranks == HR_RANKS_OUTPUTS && fact->sharded != NO_NODE) {
        hr__fail(
            c->error, HR_ERR_GRAPH,
            "it joins neighbouring records, and '%s' splits them over ranks: put '%s' "
            "after it",
            name_of(c, fact->sharded), name_of(c, fact->sharded));
        return wrong(c, node, HR_ERR_GRAPH);
    }
    if (ranks == HR_RANKS_ROUNDS)
        fact->rounds = node;
    return HR_OK;
}

static enum hr_err check_kind(const struct check *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    struct fact *fact = &c->facts[node];
    enum hr_op_kind kind = n->op->kind;

    assert(fact->placed);
    fact->unsteady = fact->batched = fact->sharded = fact->rounds = fact->shuffled =
        fact->drops = NO_NODE;
    for (size_t i = 0; i < n->input_count; i++) {
        const struct fact *input = &c->facts[n->inputs[i]];

        fact->depth = fact->depth > input->depth ? fact->depth : input->depth;
        if (fact->unsteady == NO_NODE)
            fact->unsteady = input->unsteady;
        if (fact->drops == NO_NODE)
            fact->drops = input->drops;
        if (fact->batched == NO_NODE)
            fact->batched = input->batched;
        if (fact->sharded == NO_NODE)
            fact->sharded = input->sharded;
        if (fact->rounds == NO_NODE)
            fact->rounds = input->rounds;
        if (fact->shuffled == NO_NODE)
            fact->shuffled = input->shuffled;
    }
    if (kind == HR_OP_EXPAND || n->op->sequence.numbers) {
        fact->depth++;
        HR_TRY(check_depth(c, node));
    }
    if (kind == HR_OP_ORDER && fact->unsteady == NO_NODE && hr__node_orders_kept(n))
        fact->unsteady = fact->drops;
    if (kind == HR_OP_ORDER)
        HR_TRY(check_order(c, node));
    if (kind == HR_OP_ZIP)
        HR_TRY(n->op->zip.by != NULL ? check_join(c, node) : check_zip(c, node));
    if (kind == HR_OP_SOURCE && hr__op_drops(n->op, n->params))
        fact->drops = node;
    if (kind == HR_OP_MERGE)
        HR_TRY(check_merge(c, node));
    HR_TRY(check_ranks(c, node));
    if (n->op->source.open_ended != NULL && n->op->source.open_ended(n->params))
        fact->unsteady = node;
    if (kind == HR_OP_FILTER || kind == HR_OP_EXPAND ||
        (kind == HR_OP_SEQUENCE && n->op->sequence.count == NULL))
        fact->unsteady = node;
    if (kind == HR_OP_SEQUENCE)
        fact->batched = node;
    if (n->op->traits & HR_TRAIT_SHARDS)
        fact->sharded = node;
    if ((kind == HR_OP_ORDER || kind == HR_OP_MERGE) && (n->op->traits & HR_TRAIT_RANDOM))
        fact->shuffled = node;
    return HR_OK;
}

static bool precedes(const struct check *c, uint32_t first, uint32_t node)
{
    bool reaches[HR_GRAPH_NODES_MAX] = {false};

    reaches[first] = true;
    for (size_t i = 0; i < c->graph->count; i++) {
        const struct hr_graph_node *n = &c->graph->nodes[c->order[i]];

        for (size_t k = 0; k < n->input_count; k++) {
            if (reaches[n->inputs[k]])
                reaches[c->order[i]] = true;
        }
    }
    return first != node && reaches[node];
}

static enum hr_err check_depends(const struct check *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];

    for (size_t i = 0; i < n->depends_count; i++) {
        uint32_t other;
        enum hr_err code = hr__graph_find(c->graph, n->depends_on[i], &other, c->error);

        if (code != HR_OK) {
            hr__error_prefix(c->error, "depends_on");
            return wrong(c, node, code);
        }
        if (precedes(c, other, node))
            continue;
        hr__fail(c->error, HR_ERR_GRAPH,
                 "depends_on: node '%s' is not before it in the graph", n->depends_on[i]);
        return wrong(c, node, HR_ERR_GRAPH);
    }
    return HR_OK;
}

static bool draws_by(const struct hr_graph_node *n, uint64_t draw_id)
{
    bool found = false;

    for (size_t i = 0; i < n->when_count; i++)
        found = found || n->when[i].draw_id == draw_id;
    return found;
}

/* Random draws are keyed by names. No output would show that two nodes draw alike. */
static enum hr_err check_draw_ids(const struct check *c, uint32_t node)
{
    const struct hr_graph_node *nodes = c->graph->nodes;

    for (uint32_t i = 0; i < node; i++) {
        if (nodes[i].draw_id != nodes[node].draw_id &&
            !draws_by(&nodes[i], nodes[node].draw_id) &&
            !draws_by(&nodes[node], nodes[i].draw_id))
            continue;
        hr__fail(c->error, HR_ERR_GRAPH,
                 "its name has the same hash as '%s', and random draws are keyed by "
                 "names: give one of the two another name",
                 name_of(c, i));
        return wrong(c, node, HR_ERR_GRAPH);
    }
    return HR_OK;
}

static enum hr_err find_output(const struct check *c, uint32_t *ret_output)
{
    uint32_t found = NO_NODE, named;
    const char *output = c->graph->private->output;

    for (uint32_t i = 0; i < c->graph->count; i++) {
        if (hr__graph_consumers(c->graph, i) > 0)
            continue;
        if (found != NO_NODE) {
            hr__fail(
                c->error, HR_ERR_GRAPH,
                "neither it nor '%s' is an input of another node, and a graph has one "
                "output: connect or remove one of them",
                name_of(c, i));
            return wrong(c, found, HR_ERR_GRAPH);
        }
        found = i;
    }
    if (output != NULL && c->graph->count == c->graph->private->written_nodes) {
        enum hr_err code = hr__graph_find(c->graph, output, &named, c->error);

        if (code != HR_OK) {
            hr__error_prefix(c->error, "output");
            return code;
        }
        if (named != found) {
            hr__fail(
                c->error, HR_ERR_GRAPH,
                "it is named as the output, but other nodes follow it; the last one is "
                "'%s'",
                name_of(c, found));
            return wrong(c, named, HR_ERR_GRAPH);
        }
    }
    assert(found != NO_NODE); /* a graph without cycles has an end */
    *ret_output = found;
    return HR_OK;
}

enum hr_err hr__graph_check(struct hr_graph *graph, uint32_t *order, uint32_t *ret_output,
                            struct hr_error *reterr)
{
    struct check c = {.graph = graph, .order = order, .error = reterr};
    uint32_t output = 0;
    enum hr_err code = HR_OK;

    if (graph->count == 0)
        return hr__fail(reterr, HR_ERR_GRAPH, "the graph has no nodes");
    c.facts = hr__calloc(graph->count, sizeof *c.facts);
    if (c.facts == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; code == HR_OK && i < graph->count; i++)
        code = check_inputs(&c, i);
    for (uint32_t i = 0; code == HR_OK && i < graph->count; i++)
        code = check_draw_ids(&c, i);
    if (code == HR_OK)
        code = sort(&c);
    if (code == HR_OK)
        code = find_output(&c, &output);
    for (size_t i = 0; code == HR_OK && i < graph->count; i++)
        code = check_kind(&c, order[i]);
    for (uint32_t i = 0; code == HR_OK && i < graph->count; i++)
        code = check_depends(&c, i);
    hr__free(c.facts);
    if (code == HR_OK)
        *ret_output = output;
    return code;
}
