/*
 * graph/graph_pairs.c - whether a zip joins records that belong together.
 *
 * A zip joins by number. Inputs stay paired if no random order is between them and the
 * zip, or if the same one is: one node that both share, or orders whose draws follow from
 * equal parameters and equal numbers of records. A choice by keys (order.by) counts as a
 * random order; two with equal parameters are the same if they choose the same positions.
 * A join by keys (zip.by) counts as one, too, and is the same only as itself. A rank's
 * share and a merge whose inputs alternate count as well: other ranks or blocks on the
 * other side are a mistake. What is before the first of these orders chooses which
 * records are pairs, and is the user's decision: `skip: 1` on one side pairs neighbours.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <string.h>

/* The nodes that order or choose records between a zip and the source of one input, from
 * the zip on, without those before the first random order. */
struct orders {
    uint32_t nodes[HR_GRAPH_NODES_MAX];
    size_t count;
};

/* What is known of nodes, so that each is asked once in however many ways it is reached.
 */
enum { ASKED = 1, RANDOM };
struct pairs {
    const struct hr_graph *graph;
    uint8_t random[HR_GRAPH_NODES_MAX]; /* whether it or one before it orders at random */
    /* Nodes of equal order: a larger number leads to a smaller one of them, 0 to none. */
    uint32_t same[HR_GRAPH_NODES_MAX];
    uint32_t merges[HR_GRAPH_NODES_MAX][2]; /* whose inputs are still to be compared */
    size_t merge_count;
};

/* Whether the inputs of a zip need the same node, or one that gives the same order. */
static bool is_random(const struct hr_graph_node *n)
{
    const struct hr_op *op = n->op;

    if (op->kind == HR_OP_ORDER)
        return (op->traits & (HR_TRAIT_RANDOM | HR_TRAIT_SHARDS)) || op->order.by != NULL;
    if (op->kind == HR_OP_MERGE)
        return (op->traits & HR_TRAIT_RANDOM) || op->merge.alternates;
    return op->zip.by != NULL;
}

static bool orders_at_random(struct pairs *p, uint32_t node)
{
    const struct hr_graph_node *n = &p->graph->nodes[node];
    bool random = is_random(n);

    if (p->random[node] != 0)
        return p->random[node] == RANDOM;
    for (size_t i = 0; !random && i < n->input_count; i++)
        random = orders_at_random(p, n->inputs[i]);
    p->random[node] = random ? RANDOM : ASKED;
    return random;
}

static void find_orders(struct pairs *p, uint32_t node, struct orders *ret)
{
    size_t count = 0;

    ret->count = 0;
    for (;;) {
        const struct hr_graph_node *n = &p->graph->nodes[node];

        if (n->op->kind == HR_OP_ORDER || n->op->kind == HR_OP_MERGE ||
            n->op->zip.by != NULL)
            ret->nodes[count++] = node;
        if (n->op->zip.by != NULL) {
            ret->count = count;
            return;
        }
        if (n->op->kind == HR_OP_MERGE && orders_at_random(p, node))
            ret->count = count;
        if (n->op->kind == HR_OP_MERGE)
            return; /* what is before it is compared with it */
        if (is_random(n))
            ret->count = count;
        if (n->input_count == 0)
            return;
        node = n->inputs[0]; /* a zip among them was checked itself */
    }
}

static uint32_t first_same(struct pairs *p, uint32_t node)
{
    while (p->same[node] != 0)
        node = p->same[node] - 1;
    return node;
}

/* Whether two nodes give equal orders, if the inputs of merges do, which are noted. Equal
 * orders are an equivalence, so no two nodes are compared twice. */
static bool same_node(struct pairs *p, uint32_t one, uint32_t other)
{
    const struct hr_graph_node *nodes = p->graph->nodes;
    const struct hr_graph_node *a = &nodes[one], *b = &nodes[other];
    uint32_t low = first_same(p, one), high = first_same(p, other);

    if (low == high)
        return true;
    if (a->op->zip.by != NULL || a->op != b->op ||
        !hr__doc_equal(a->canonical, b->canonical) || a->input_count != b->input_count ||
        nodes[a->inputs[0]].schema.records != nodes[b->inputs[0]].schema.records)
        return false;
    if (a->op->order.by != NULL && !a->op->order.same(a->state, b->state))
        return false;
    if (a->op->order.by == NULL && (a->op->traits & HR_TRAIT_RANDOM) &&
        !hr__node_draws_by_params(a))
        return false;
    p->same[low > high ? low : high] = (low > high ? high : low) + 1;
    if (a->op->kind == HR_OP_MERGE) {
        assert(p->merge_count < HR_GRAPH_NODES_MAX); /* each made two kinds one */
        p->merges[p->merge_count][0] = one;
        p->merges[p->merge_count++][1] = other;
    }
    return true;
}

/* Whether two merges take equally many records in equal orders of their inputs. */
static bool same_inputs(struct pairs *p, uint32_t one, uint32_t other)
{
    const struct hr_graph_node *nodes = p->graph->nodes;
    const struct hr_graph_node *a = &nodes[one], *b = &nodes[other];

    for (size_t i = 0; i < a->input_count; i++) {
        struct orders first, second;

        if (nodes[a->inputs[i]].schema.records != nodes[b->inputs[i]].schema.records)
            return false;
        find_orders(p, a->inputs[i], &first);
        find_orders(p, b->inputs[i], &second);
        if (first.count != second.count)
            return false;
        for (size_t k = 0; k < first.count; k++)
            if (!same_node(p, first.nodes[k], second.nodes[k]))
                return false;
    }
    return true;
}

static bool same_order(struct pairs *p, uint32_t one, uint32_t other)
{
    if (!same_node(p, one, other))
        return false;
    while (p->merge_count > 0) {
        const uint32_t *merges = p->merges[--p->merge_count];
        uint32_t a = merges[0], b = merges[1];

        if (!same_inputs(p, a, b))
            return false;
    }
    return true;
}

static enum hr_err refuse_orders(const struct hr_graph *graph, uint32_t zip_node,
                                 uint32_t order, struct hr_error *error)
{
    const struct hr_graph_node *node = &graph->nodes[order];
    const char *op = node->op->name, *dot = strrchr(op, '.');
    const char *zip = graph->nodes[zip_node].name;
    bool random = (node->op->traits & HR_TRAIT_RANDOM) != 0;

    if (node->op->zip.by != NULL)
        return hr__fail(error, HR_ERR_GRAPH,
                        "'%s' joins by keys, so its records are not those of the other "
                        "inputs, position by position. Join these by a key, too, or, if "
                        "they are, set \"paired: false\" on '%s'",
                        node->name, zip);
    if (node->op->order.by != NULL || (node->op->traits & HR_TRAIT_SHARDS)) {
        bool method = (node->op->traits & (HR_TRAIT_RANDOM | HR_TRAIT_SHARDS)) != 0;

        return hr__fail(
            error, HR_ERR_GRAPH,
            "'%s' chooses other records in one of its inputs than in another, "
            "so records would be mispaired. Put one \"- %s\" after '%s' "
            "instead (in Python hr.%s%s(%s...)). To pair records at "
            "random, set \"paired: false\" on '%s'",
            node->name, op, zip, method ? "zip(...)." : "", dot != NULL ? dot + 1 : op,
            method ? "" : "hr.zip(...), ", zip);
    }
    if (node->op->kind == HR_OP_MERGE)
        return hr__fail(
            error, HR_ERR_GRAPH,
            "'%s' does not give its inputs the same order, so records would be "
            "mispaired. Give each input a \"- %s\" of the same parameters over inputs of "
            "the same sizes%s, or join before it: one \"- %s\" of inputs that are each a "
            "\"- %s\". To pair records as they come, set \"paired: false\" on '%s'",
            node->name, op, (node->op->traits & HR_TRAIT_RANDOM) ? ", with a seed" : "",
            op, graph->nodes[zip_node].op->name, zip);
    return hr__fail(error, HR_ERR_GRAPH,
                    "'%s' does not give its inputs the same order, so records would be "
                    "mispaired. Put one \"- %s%s\" after '%s' instead (in Python "
                    "hr.zip(...).%s(%s)), or give each input %s%s%s. To pair "
                    "records at random, set \"paired: false\" on '%s'",
                    node->name, op, random ? ": {}" : "", zip, dot != NULL ? dot + 1 : op,
                    random ? "" : "...",
                    random ? "\"- " : "the same nodes in the same order",
                    random ? op : "", random ? ": {seed: 1}\"" : "", zip);
}

static enum hr_err check_count(const struct hr_graph *graph, uint32_t zip, size_t input,
                               struct hr_error *error)
{
    const struct hr_graph_node *nodes = graph->nodes;
    uint32_t first = nodes[zip].inputs[0], other = nodes[zip].inputs[input];

    if (nodes[first].schema.records == nodes[other].schema.records)
        return HR_OK;
    return hr__fail(error, HR_ERR_GRAPH,
                    "its inputs have different numbers of records, so records would be "
                    "mispaired: '%s' has %lld, '%s' has %lld. Each record needs one in "
                    "every input",
                    nodes[first].name, (long long)nodes[first].schema.records,
                    nodes[other].name, (long long)nodes[other].schema.records);
}

enum hr_err
hr__graph_check_pairs(const struct hr_graph *graph, uint32_t zip, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[zip];
    struct pairs pairs = {.graph = graph};
    struct orders first, other;

    assert(n->op->kind == HR_OP_ZIP && n->input_count > 0);
    find_orders(&pairs, n->inputs[0], &first);
    for (size_t i = 1; i < n->input_count; i++) {
        HR_TRY(check_count(graph, zip, i, error));
        if (n->op->zip.unpaired != NULL && n->op->zip.unpaired(n->params))
            continue;
        find_orders(&pairs, n->inputs[i], &other);
        for (size_t k = 0; k < first.count || k < other.count; k++) {
            if (k < first.count && k < other.count &&
                same_order(&pairs, first.nodes[k], other.nodes[k]))
                continue;
            return refuse_orders(
                graph, zip, k < other.count ? other.nodes[k] : first.nodes[k], error);
        }
        HR_TRY(hr__graph_check_names(graph, zip, i, error));
    }
    return HR_OK;
}
