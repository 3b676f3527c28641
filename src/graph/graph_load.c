/*
 * graph/graph_load.c - reads a graph file: its keys, its list of nodes, its wiring.
 *
 * An item is "op.name" or {op.name: {parameters}}, with `name` and `inputs` beside the op
 * where a chain is not enough. The dot in its name distinguishes an op from those two
 * keys. Inputs are names and may refer to later nodes, so they are resolved after all
 * nodes are read. Groups of steps are opened first (graph_groups.c).
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

#define VERSION 1

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct load {
    struct hr_graph *graph;
    const struct hr_doc *root;
    struct hr_error *error;
};

static enum hr_err fail_doc(const struct load *load, const struct hr_doc *at,
                            enum hr_err code, const char *what, const char *wants)
{
    char text[128];

    return hr__fail_at(load->error, code, load->graph->file, at->line, at->column,
                       "%s must be %s, not %s", what, wants,
                       hr__param_value_text(at, text, sizeof text));
}

static enum hr_err wrong_key(const struct load *load, const struct hr_doc_pair *pair,
                             const char *const *names, size_t count)
{
    const char *near = hr__nearest(pair->key, names, count);

    return hr__fail_at(load->error, HR_ERR_GRAPH, load->graph->file, pair->line,
                       pair->column, "key \"%.63s\" is not known%s%s%s", pair->key,
                       near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                       near != NULL ? "\"?" : "");
}

static enum hr_err check_version(const struct load *load)
{
    const struct hr_doc *version = hr__doc_get(load->root, "headrace");

    if (version == NULL)
        return hr__fail_at(load->error, HR_ERR_FORMAT, load->graph->file, 1, 1,
                           "not a graph file: the key \"headrace: %d\" is missing",
                           VERSION);
    if (version->kind != HR_DOC_INT)
        return fail_doc(load, version, HR_ERR_TYPE, "\"headrace\"",
                        "the format's version");
    if (version->as.integer != VERSION)
        return hr__fail_at(load->error, HR_ERR_UNSUPPORTED, load->graph->file,
                           version->line, version->column,
                           "the file has format version %lld; this library reads %d",
                           (long long)version->as.integer, VERSION);
    return HR_OK;
}

static enum hr_err check_keys(const struct load *load)
{
    static const char *const names[] = {"headrace", "title",    "description",
                                        "params",   "pipeline", "output"};
    static const char *const texts[] = {"title", "description", "output"};
    const struct hr_doc *root = load->root;

    if (root->kind != HR_DOC_MAP)
        return fail_doc(load, root, HR_ERR_FORMAT, "a graph file", "a map");
    HR_TRY(check_version(load));
    for (size_t i = 0; i < root->as.map.count; i++) {
        const struct hr_doc_pair *pair = &root->as.map.pairs[i];
        size_t k = 0;

        while (k < COUNT(names) && strcmp(names[k], pair->key) != 0)
            k++;
        if (k == COUNT(names))
            return wrong_key(load, pair, names, COUNT(names));
    }
    for (size_t k = 0; k < COUNT(texts); k++) {
        const struct hr_doc *text = hr__doc_get(root, texts[k]);

        if (text != NULL && text->kind != HR_DOC_STRING)
            return fail_doc(load, text, HR_ERR_TYPE, texts[k], "a string");
    }
    return HR_OK;
}

/* The parts of an item that is a map. */
struct item {
    const struct hr_doc *name, *inputs, *params;
    const struct hr_doc_pair *op;
};

static enum hr_err
split_item(const struct load *load, const struct hr_doc *doc, struct item *item)
{
    static const char *const names[] = {"name", "inputs"};

    for (size_t i = 0; i < doc->as.map.count; i++) {
        const struct hr_doc_pair *pair = &doc->as.map.pairs[i];

        if (strcmp(pair->key, "name") == 0) {
            item->name = pair->value;
        } else if (strcmp(pair->key, "inputs") == 0) {
            item->inputs = pair->value;
        } else if (strchr(pair->key, '.') == NULL) {
            return wrong_key(load, pair, names, COUNT(names));
        } else if (item->op != NULL) {
            return hr__fail_at(load->error, HR_ERR_GRAPH, load->graph->file, pair->line,
                               pair->column,
                               "one item has two ops, \"%.63s\" and \"%.63s\"; start "
                               "each with \"- \"",
                               item->op->key, pair->key);
        } else {
            item->op = pair;
            item->params = pair->value;
        }
    }
    if (item->op == NULL)
        return hr__fail_at(load->error, HR_ERR_GRAPH, load->graph->file, doc->line,
                           doc->column, "the item has no op; write \"- op.name: {}\"");
    if (item->name != NULL && item->name->kind != HR_DOC_STRING)
        return fail_doc(load, item->name, HR_ERR_TYPE, "\"name\"", "a string");
    return HR_OK;
}

static enum hr_err add_item(struct load *load, const struct hr_doc *doc)
{
    struct item item = {0};
    struct hr_doc *given = NULL;
    const char *op, *name;
    int line = doc->line, column = doc->column;

    if (doc->kind == HR_DOC_STRING) {
        op = doc->as.string.text;
    } else if (doc->kind == HR_DOC_MAP) {
        HR_TRY(split_item(load, doc, &item));
        op = item.op->key;
        line = item.op->line;
        column = item.op->column;
    } else {
        return fail_doc(load, doc, HR_ERR_GRAPH, "an item of \"pipeline\"",
                        "op.name or {op.name: {parameters}}");
    }
    name = item.name != NULL ? item.name->as.string.text : NULL;
    if (item.params != NULL && item.params->kind != HR_DOC_NULL) {
        enum hr_err code =
            hr__graph_substitute(load->graph, item.params, &given, load->error);

        if (code != HR_OK) {
            hr__error_prefix(load->error, "op %.63s", op);
            return code;
        }
    }
    return hr__graph_append(load->graph, op, name, NULL, 0, given, line, column,
                            load->error);
}

static enum hr_err
wire_one(struct load *load, struct hr_graph_node *node, const struct hr_doc *doc)
{
    enum hr_err code;

    if (doc->kind != HR_DOC_STRING)
        return fail_doc(load, doc, HR_ERR_TYPE, "an input", "the name of a node");
    if (node->input_count == HR_NODE_INPUTS_MAX)
        return hr__fail_at(load->error, HR_ERR_LIMIT, load->graph->file, doc->line,
                           doc->column, "a node has at most %d inputs",
                           HR_NODE_INPUTS_MAX);
    code = hr__graph_find(load->graph, doc->as.string.text,
                          &node->inputs[node->input_count], load->error);
    if (code != HR_OK && load->error != NULL) {
        load->error->line = doc->line;
        load->error->column = doc->column;
        hr__graph_blame(load->graph, (uint32_t)(node - load->graph->nodes), load->error);
    }
    if (code == HR_OK)
        node->input_count++;
    assert(node->input_count <= HR_NODE_INPUTS_MAX);
    return code;
}

/* The default input is the previous item; sources have none. */
static enum hr_err wire(struct load *load, size_t at, const struct hr_doc *inputs)
{
    struct hr_graph_node *node = &load->graph->nodes[at];

    assert(at < load->graph->count && node->input_count == 0);
    if (inputs != NULL && inputs->kind == HR_DOC_LIST) {
        for (size_t i = 0; i < inputs->as.list.count; i++)
            HR_TRY(wire_one(load, node, inputs->as.list.items[i]));
        return HR_OK;
    }
    if (inputs != NULL && inputs->kind != HR_DOC_NULL)
        return wire_one(load, node, inputs);
    if (node->op->kind != HR_OP_SOURCE && at > 0)
        node->inputs[node->input_count++] = (uint32_t)(at - 1);
    return HR_OK;
}

static enum hr_err read_pipeline(struct load *load)
{
    struct hr_doc *list = hr__doc_get(load->root, "pipeline");

    if (list == NULL)
        return hr__fail_at(load->error, HR_ERR_GRAPH, load->graph->file, load->root->line,
                           load->root->column, "the key \"pipeline\" is missing");
    if (list->kind != HR_DOC_LIST)
        return fail_doc(load, list, HR_ERR_TYPE, "\"pipeline\"", "a list of ops");
    HR_TRY(hr__graph_open_groups(list, load->graph->file, load->error));
    if (list->as.list.count == 0)
        return hr__fail_at(load->error, HR_ERR_GRAPH, load->graph->file, list->line,
                           list->column, "\"pipeline\" is empty");
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(add_item(load, list->as.list.items[i]));
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(wire(load, i, hr__doc_get(list->as.list.items[i], "inputs")));
    return HR_OK;
}

static enum hr_err
read_root(struct load *load, const struct hr_graph_param *params, size_t param_count)
{
    HR_TRY(check_keys(load));
    HR_TRY(hr__graph_declare(load->graph, hr__doc_get(load->root, "params"), params,
                             param_count, load->error));
    HR_TRY(read_pipeline(load));
    load->graph->private->output = hr__doc_get_string(load->root, "output");
    load->graph->private->written_nodes = load->graph->count;
    return HR_OK;
}

/* Takes ownership of `root`. */
static enum hr_err
load_doc(struct hr_doc *root, const char *name, const struct hr_graph_param *params,
         size_t param_count, struct hr_graph **ret_graph, struct hr_error *reterr)
{
    struct hr_error unread = {0}; /* the code below reads the error */
    struct load load = {.root = root, .error = reterr != NULL ? reterr : &unread};
    enum hr_err code = HR_ERR_MEMORY;

    load.graph = hr__graph_create();
    if (load.graph == NULL) {
        hr__doc_destroy(root);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    load.graph->private->written = root;
    load.graph->file = hr__strdup(name);
    if (load.graph->file == NULL)
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    else
        code = read_root(&load, params, param_count);
    if (code != HR_OK) {
        hr__graph_tell_place(load.graph, reterr);
        hr__graph_unref(load.graph);
        return code;
    }
    *ret_graph = load.graph;
    return HR_OK;
}

enum hr_err hr__graph_parse(const char *text, size_t bytes, const char *name,
                            const struct hr_graph_param *params, size_t param_count,
                            struct hr_graph **ret_graph, struct hr_error *reterr)
{
    struct hr_doc *root;

    HR_TRY(hr__doc_parse(text, bytes, name, &root, reterr));
    return load_doc(root, name, params, param_count, ret_graph, reterr);
}

enum hr_err
hr__graph_load(const char *path, const struct hr_graph_param *params, size_t param_count,
               struct hr_graph **ret_graph, struct hr_error *reterr)
{
    struct hr_doc *root;

    HR_TRY(hr__doc_parse_file(path, &root, reterr));
    return load_doc(root, path, params, param_count, ret_graph, reterr);
}
