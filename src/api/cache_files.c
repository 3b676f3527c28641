/*
 * api/cache_files.c - see cache_files.h. The part of the graph up to a node is run with
 * an encoder and a decoder after it, each by itself.
 */
#include "api/cache_files.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "headrace/profile.h"

#define RECORDS 24 /* that are measured after a node */
#define SECONDS 1.0
#define ENCODE "image.encode"
#define DECODE "image.decode"

/* Parameters of an op that turns the image into a file, or back; quality 0: back. */
static struct hr_doc *params(const char *image, int quality)
{
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP);
    enum hr_err code = map != NULL ? HR_OK : HR_ERR_MEMORY;

    if (code == HR_OK)
        code = hr__doc_set(map, "field", hr__doc_string(image));
    if (code == HR_OK)
        code = hr__doc_set(map, "to", hr__doc_string(image));
    if (code == HR_OK && quality > 0)
        code = hr__doc_set(map, "quality", hr__doc_int(quality));
    if (code == HR_OK)
        return map;
    hr__doc_destroy(map);
    return NULL;
}

/* Inserts a node after `node`, in place of *graph. */
static enum hr_err add(struct hr_graph **graph, uint32_t node, const char *op,
                       struct hr_doc *given, struct hr_error *reterr)
{
    struct hr_graph *more;

    if (given == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__graph_insert(*graph, node, op, given, &more, reterr));
    hr__graph_unref(*graph);
    *graph = more;
    return HR_OK;
}

/* The encoder, the cache if it has parameters, and the decoder. Takes over `cache`. */
static enum hr_err add_all(struct hr_graph **graph, uint32_t node, const char *image,
                           int quality, struct hr_doc *cache, struct hr_error *reterr)
{
    enum hr_err code = add(graph, node++, ENCODE, params(image, quality), reterr);

    if (cache != NULL && code != HR_OK)
        hr__doc_destroy(cache);
    else if (cache != NULL)
        code = add(graph, node++, "flow.cache", cache, reterr);
    return code == HR_OK ? add(graph, node, DECODE, params(image, 0), reterr) : code;
}

enum hr_err hr__cache_insert_file(struct hr_graph *graph, uint32_t node, int quality,
                                  struct hr_doc *given, struct hr_graph **ret_graph,
                                  struct hr_error *reterr)
{
    const struct hr_field *image = hr__cache_image(&graph->nodes[node].schema);
    struct hr_graph *made = graph;
    enum hr_err code;

    assert(image != NULL && given != NULL);
    hr__graph_ref(graph);
    code = add_all(&made, node, image->name, quality, given, reterr);
    if (code != HR_OK) {
        hr__graph_unref(made);
        return code;
    }
    *ret_graph = made;
    return HR_OK;
}

/* ---- what it costs ---- */

static void read_costs(const struct hr_profile *profile, struct hr_cache_file *ret)
{
    struct hr_profile_info node;

    /* The last of each op is the one that was inserted. */
    for (size_t i = 0; hr_profile_node(profile, i, &node) == HR_OK; i++) {
        if (strcmp(node.op, ENCODE) == 0) {
            ret->bytes = node.bytes_out;
            ret->pixels = node.bytes_in;
            ret->encode_ns = node.cpu_ns;
        }
        if (strcmp(node.op, DECODE) == 0)
            ret->decode_ns = node.cpu_ns;
    }
}

static enum hr_err
run(struct hr_graph *graph, struct hr_cache_file *ret, struct hr_error *reterr)
{
    struct hr_profile_options options;
    struct hr_profile *profile;

    hr_profile_options_init(&options);
    options.records_max = RECORDS;
    options.seconds_max = SECONDS;
    HR_TRY(hr_graph_profile(graph, &options, &profile, reterr));
    read_costs(profile, ret);
    hr_profile_free(profile);
    return HR_OK;
}

static enum hr_err
measure(const struct hr_graph *graph, uint32_t node, const char *image, int quality,
        struct hr_cache_file *ret, struct hr_error *reterr)
{
    uint32_t places[HR_GRAPH_NODES_MAX];
    struct hr_graph *part;
    enum hr_err code;

    HR_TRY(hr__graph_prefix(graph, node, places, &part, reterr));
    code = add_all(&part, places[node], image, quality, NULL, reterr);
    if (code == HR_OK)
        code = run(part, ret, reterr);
    hr__graph_unref(part);
    return code;
}

/* Images that two nodes share cost the same. */
static bool
is_same(const struct hr_graph *graph, uint32_t node, const struct hr_field *image)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    const struct hr_field *before =
        n->input_count == 1 ? hr__cache_image(&graph->nodes[n->inputs[0]].schema) : NULL;

    if (before == NULL || n->op->kind == HR_OP_FILTER || before->slot != image->slot)
        return false;
    for (size_t i = 0; i < n->field_count; i++)
        if (strcmp(n->field_names[i], image->name) == 0)
            return false;
    return true;
}

enum hr_err hr__cache_files(const struct hr_graph *graph, int quality,
                            struct hr_cache_file *ret_files, struct hr_error *reterr)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        const struct hr_field *image =
            n->schema.batch_rank == 0 ? hr__cache_image(&n->schema) : NULL;

        struct hr_error error = {0};
        enum hr_err code = HR_OK;

        ret_files[i] = (struct hr_cache_file){0};
        if (image == NULL)
            continue;
        if (is_same(graph, i, image))
            ret_files[i] = ret_files[n->inputs[0]];
        else
            code = measure(graph, i, image->name, quality, &ret_files[i], &error);
        if (code == HR_ERR_MEMORY)
            return hr__fail(reterr, code, "%s", error.message);
    }
    return HR_OK;
}
