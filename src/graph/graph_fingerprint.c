/*
 * graph/graph_fingerprint.c - 128 bits per node that identify the records it outputs.
 *
 * Hashed are the op's name and version, its canonical parameters but those that do not
 * change a record (ranks, paths whose content counts), the identity of a source's data,
 * the fingerprints of the inputs, where values are made as far as that decides bytes
 * (graph_compose.c), rewrites that change bytes, for random ops the node's draw_id,
 * which keys their draws, and the draws that decide whether the node runs. Absent
 * parameters are left out, so that a parameter added to an op later does not change old
 * fingerprints while it is not used.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

static void add_u32(struct hr_hasher *hasher, uint32_t value)
{
    uint8_t bytes[4];

    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    hr__hasher_add(hasher, bytes, sizeof bytes);
}

static void add_u64(struct hr_hasher *hasher, uint64_t value)
{
    add_u32(hasher, (uint32_t)value);
    add_u32(hasher, (uint32_t)(value >> 32));
}

static void add_text(struct hr_hasher *hasher, const char *text)
{
    hr__hasher_add(hasher, text, strlen(text) + 1);
}

static bool counts(const struct hr_op *op, const struct hr_doc_pair *pair)
{
    if (pair->value->kind == HR_DOC_NULL)
        return false;
    for (size_t i = 0; i < op->param_count; i++) {
        if (strcmp(op->params[i].name, pair->key) == 0)
            return !op->params[i].not_identity;
    }
    return true;
}

static enum hr_err add_params(const struct hr_graph_node *n, struct hr_hasher *hasher)
{
    struct hr_doc *kept = hr__doc_new(HR_DOC_MAP);
    enum hr_err code = kept != NULL ? HR_OK : HR_ERR_MEMORY;
    struct hr_str text;

    hr__str_init(&text);
    for (size_t i = 0; code == HR_OK && i < n->canonical->as.map.count; i++) {
        const struct hr_doc_pair *pair = &n->canonical->as.map.pairs[i];
        struct hr_doc *value;

        if (!counts(n->op, pair))
            continue;
        value = hr__doc_copy(pair->value);
        code = hr__doc_set(kept, pair->key, value);
    }
    if (code == HR_OK) {
        hr__doc_print_canonical(kept, &text);
        code = hr__str_ok(&text) ? HR_OK : HR_ERR_MEMORY;
        add_text(hasher, hr__str_text(&text));
    }
    hr__str_finish(&text);
    hr__doc_destroy(kept);
    return code;
}

/* In mode exact it does not matter where a value is made, and nothing is added. */
static void
add_composition(const struct hr_graph *graph, uint32_t node, struct hr_hasher *hasher)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (n->made_strictness > HR_STRICTNESS_EXACT) {
        add_text(hasher, "made before");
        add_u32(hasher, n->made_strictness);
        for (size_t i = 0; i < n->field_count; i++)
            if (n->made[i].strictness > HR_STRICTNESS_EXACT)
                add_u32(hasher, (uint32_t)i);
    }
    for (size_t i = 0; i < graph->rewrite_count; i++) {
        const struct hr_graph_rewrite *rewrite = &graph->rewrites[i];

        if (rewrite->node != node || rewrite->strictness == HR_STRICTNESS_EXACT)
            continue;
        add_text(hasher, "rewrite");
        add_text(hasher, rewrite->name);
        add_u32(hasher, rewrite->strictness);
    }
}

static void add_when(const struct hr_graph_node *n, struct hr_hasher *hasher)
{
    if (n->when_count > 0)
        add_text(hasher, "when");
    for (size_t i = 0; i < n->when_count; i++) {
        uint64_t bits[2];

        memcpy(&bits[0], &n->when[i].from, sizeof bits[0]);
        memcpy(&bits[1], &n->when[i].below, sizeof bits[1]);
        add_u64(hasher, n->when[i].draw_id);
        add_u64(hasher, bits[0]);
        add_u64(hasher, bits[1]);
    }
}

/* Of a node whose inputs have the hashes `all[input]`. */
static enum hr_err hash_node(const struct hr_graph *graph, uint32_t node,
                             const struct hr_hash128 *all, struct hr_hash128 *ret_hash)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    struct hr_hasher *hasher = hr__hasher_create();
    enum hr_err code;

    assert(n->canonical != NULL && n->made != NULL);
    if (hasher == NULL)
        return HR_ERR_MEMORY;
    add_text(hasher, "headrace graph 1");
    add_text(hasher, n->op->name);
    add_u32(hasher, n->op->version);
    code = add_params(n, hasher);
    add_u32(hasher, (uint32_t)n->input_count);
    for (size_t i = 0; i < n->input_count; i++) {
        add_u64(hasher, all[n->inputs[i]].low);
        add_u64(hasher, all[n->inputs[i]].high);
    }
    if ((n->op->traits & HR_TRAIT_RANDOM) && !hr__node_draws_by_params(n))
        add_u64(hasher, n->draw_id);
    add_when(n, hasher);
    add_composition(graph, node, hasher);
    if (n->op->identity != NULL)
        n->op->identity(n->params, n->state, hasher);
    if (code == HR_OK)
        *ret_hash = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    return code;
}

enum hr_err
hr__graph_identify(struct hr_graph *graph, const uint32_t *order, struct hr_error *reterr)
{
    struct hr_hash128 *all = hr__calloc(graph->count + 1, sizeof *all);
    enum hr_err code = all != NULL ? HR_OK : HR_ERR_MEMORY;

    for (size_t i = 0; code == HR_OK && i < graph->count; i++) {
        code = hash_node(graph, order[i], all, &all[order[i]]);
        graph->nodes[order[i]].fingerprint = all[order[i]];
    }
    hr__free(all);
    return code == HR_OK ? HR_OK : hr__fail(reterr, code, "out of memory");
}

static void mark_inputs(const struct hr_graph *graph, uint32_t node, bool *needed)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (needed[node])
        return;
    needed[node] = true;
    for (size_t i = 0; i < n->input_count; i++)
        mark_inputs(graph, n->inputs[i], needed);
}

/* Marks the nodes before joins by keys among the needed ones: how they order records
 * decides what number a record of a join has. */
static void mark_joined(const struct hr_graph *graph, const bool *needed, bool *joined)
{
    for (uint32_t i = 0; i < graph->count; i++)
        if (needed[i] && graph->nodes[i].op->zip.by != NULL)
            mark_inputs(graph, i, joined);
}

enum hr_err hr__graph_content(const struct hr_graph *graph, const uint32_t *order,
                              uint32_t node, struct hr_hash128 *ret_content)
{
    struct hr_hash128 *all = hr__calloc(graph->count + 1, sizeof *all);
    bool *needed = hr__calloc(graph->count + 1, sizeof *needed);
    bool *joined = hr__calloc(graph->count + 1, sizeof *joined);
    enum hr_err code =
        all != NULL && needed != NULL && joined != NULL ? HR_OK : HR_ERR_MEMORY;

    if (code == HR_OK) {
        mark_inputs(graph, node, needed);
        mark_joined(graph, needed, joined);
    }
    for (size_t i = 0; code == HR_OK && i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[order[i]];

        if (needed[order[i]] && !joined[order[i]] && n->op->kind == HR_OP_ORDER)
            all[order[i]] = all[n->inputs[0]];
        else if (needed[order[i]])
            code = hash_node(graph, order[i], all, &all[order[i]]);
    }
    if (code == HR_OK)
        *ret_content = all[node];
    hr__free(all);
    hr__free(needed);
    hr__free(joined);
    return code;
}
