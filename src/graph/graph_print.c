/*
 * graph/graph_print.c - prints a graph as text that reads back as the same graph.
 *
 * A loaded graph is printed from the file's own tree, with ${} and help texts; values set
 * by the caller become defaults, so that the text alone gives the same graph. A graph
 * built by calls is printed in short form if it is a chain, else with a name and inputs
 * at every node. Comments in a file are not kept.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

/* The functions below return NULL or false only if out of memory. */

static bool set(struct hr_doc *map, const char *key, struct hr_doc *value)
{
    return value != NULL && hr__doc_set(map, key, value) == HR_OK;
}

static bool append(struct hr_doc *list, struct hr_doc *value)
{
    return value != NULL && hr__doc_append(list, value) == HR_OK;
}

/* Strings passed by a program are not substituted: "${" is printed as "$${". */
static struct hr_doc *escape_text(const struct hr_doc *doc)
{
    const char *text = doc->as.string.text, *end = text + doc->as.string.length;
    struct hr_doc *made = NULL;
    struct hr_str out;

    hr__str_init(&out);
    for (; text < end; text++) {
        if (end - text >= 2 && text[0] == '$' && text[1] == '{')
            hr__str_add(&out, "$");
        hr__str_add_bytes(&out, text, 1);
    }
    if (hr__str_ok(&out))
        made = hr__doc_string_n(hr__str_text(&out), out.length);
    hr__str_finish(&out);
    return made;
}

static struct hr_doc *escape(const struct hr_doc *doc)
{
    struct hr_doc *made;
    bool ok = true;

    if (doc->kind == HR_DOC_STRING)
        return escape_text(doc);
    if (doc->kind != HR_DOC_LIST && doc->kind != HR_DOC_MAP)
        return hr__doc_copy(doc);
    made = hr__doc_new(doc->kind);
    if (made == NULL)
        return NULL;
    for (size_t i = 0; ok && doc->kind == HR_DOC_LIST && i < doc->as.list.count; i++)
        ok = append(made, escape(doc->as.list.items[i]));
    for (size_t i = 0; ok && doc->kind == HR_DOC_MAP && i < doc->as.map.count; i++)
        ok = set(made, doc->as.map.pairs[i].key, escape(doc->as.map.pairs[i].value));
    if (!ok) {
        hr__doc_destroy(made);
        return NULL;
    }
    return made;
}

static bool is_chain(const struct hr_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        bool linked = n->input_count == 1 && i > 0 && n->inputs[0] == i - 1;

        if (i == 0 ? n->input_count != 0 : !linked)
            return false;
    }
    return true;
}

static struct hr_doc *
input_list(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    struct hr_doc *list = hr__doc_new(HR_DOC_LIST);

    for (size_t i = 0; list != NULL && i < n->input_count; i++) {
        if (!append(list, hr__doc_string(graph->nodes[n->inputs[i]].name))) {
            hr__doc_destroy(list);
            return NULL;
        }
    }
    return list;
}

static bool has_params(const struct hr_graph_node *n)
{
    return n->given != NULL && n->given->kind == HR_DOC_MAP && n->given->as.map.count > 0;
}

/* The classes that a frozen source found and was not given. */
static const struct hr_field_classes *
found_classes(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    const char *param = n->op->source.classes_param;

    if (!graph->frozen || param == NULL ||
        (n->given != NULL && hr__doc_get(n->given, param) != NULL))
        return NULL;
    for (size_t i = 0; i < n->schema.count; i++) {
        if (n->schema.fields[i].classes != NULL)
            return n->schema.fields[i].classes;
    }
    return NULL;
}

/* Adds them to a node's parameters, so that the text gives these numbers anywhere. */
static bool add_classes(const struct hr_graph *graph, const struct hr_graph_node *n,
                        struct hr_doc *params)
{
    const struct hr_field_classes *found = found_classes(graph, n);
    struct hr_doc *list, *names;
    bool ok = true;

    if (found == NULL || params == NULL || params->kind != HR_DOC_MAP)
        return params != NULL;
    list = hr__doc_new(HR_DOC_LIST);
    for (size_t i = 0; ok && list != NULL && i < found->count; i++)
        ok = append(list, hr__doc_string(found->names[i]));
    names = list != NULL && ok ? escape(list) : NULL;
    hr__doc_destroy(list);
    return set(params, n->op->source.classes_param, names);
}

/* In the nodes that the file has, in its order. */
static bool add_written_classes(const struct hr_graph *graph, struct hr_doc *list)
{
    for (size_t i = 0; list->kind == HR_DOC_LIST && i < list->as.list.count &&
                       i < graph->private->written_nodes;
         i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        struct hr_doc *params = hr__doc_get(list->as.list.items[i], n->op->name);

        if (params != NULL && !add_classes(graph, n, params))
            return false;
    }
    return true;
}

static struct hr_doc *item_of(const struct hr_graph *graph, size_t at, bool short_form)
{
    const struct hr_graph_node *n = &graph->nodes[at];
    bool empty = !has_params(n);
    char *usual = hr__graph_auto_name(graph, at, n->op->name);
    struct hr_doc *item = NULL, *params;
    bool named, ok;

    assert(at < graph->count);
    if (usual == NULL)
        return NULL;
    named = !short_form || strcmp(usual, n->name) != 0;
    hr__free(usual);
    if (empty && !named)
        return hr__doc_string(n->op->name);
    item = hr__doc_new(HR_DOC_MAP);
    if (item == NULL)
        return NULL;
    params = empty ? hr__doc_new(HR_DOC_MAP) : escape(n->given);
    ok = add_classes(graph, n, params);
    ok = set(item, n->op->name, params) && ok;
    ok = ok && (!named || set(item, "name", hr__doc_string(n->name)));
    if (ok && !short_form && n->input_count > 0)
        ok = set(item, "inputs", input_list(graph, n));
    if (!ok) {
        hr__doc_destroy(item);
        return NULL;
    }
    return item;
}

static bool
add_items(const struct hr_graph *graph, struct hr_doc *list, size_t from, bool short_form)
{
    for (size_t i = from; i < graph->count; i++) {
        if (!append(list, item_of(graph, i, short_form)))
            return false;
    }
    return true;
}

/* {type: int, required: true} with value 3 -> {type: int, default: 3}. */
static struct hr_doc *
declaration(const struct hr_doc *written, const struct hr_doc *value)
{
    struct hr_doc *made;
    bool ok = true;

    if (written->kind != HR_DOC_MAP)
        return hr__doc_copy(value);
    made = hr__doc_new(HR_DOC_MAP);
    for (size_t i = 0; made != NULL && ok && i < written->as.map.count; i++) {
        const struct hr_doc_pair *pair = &written->as.map.pairs[i];

        if (strcmp(pair->key, "required") != 0 && strcmp(pair->key, "default") != 0)
            ok = set(made, pair->key, hr__doc_copy(pair->value));
    }
    if (made != NULL && !(ok && set(made, "default", hr__doc_copy(value)))) {
        hr__doc_destroy(made);
        return NULL;
    }
    return made;
}

static struct hr_doc *
declarations(const struct hr_graph_private *private, const struct hr_doc *written)
{
    struct hr_doc *made = hr__doc_new(HR_DOC_MAP);

    assert(written->kind == HR_DOC_MAP);
    for (size_t i = 0; made != NULL && i < private->declared_count; i++) {
        const struct hr_graph_declared *d = &private->declared[i];
        const struct hr_doc *old = hr__doc_get(written, d->name);

        if (!set(made, d->name,
                 d->overridden ? declaration(old, d->value) : hr__doc_copy(old))) {
            hr__doc_destroy(made);
            return NULL;
        }
    }
    return made;
}

static bool any_overridden(const struct hr_graph_private *private)
{
    for (size_t i = 0; i < private->declared_count; i++) {
        if (private->declared[i].overridden)
            return true;
    }
    return false;
}

/* The value of `key` in the file, updated. */
static struct hr_doc *
part_of(const struct hr_graph *graph, const char *key, const struct hr_doc *written)
{
    struct hr_doc *made;

    if (strcmp(key, "params") == 0 && any_overridden(graph->private))
        return declarations(graph->private, written);
    made = hr__doc_copy(written);
    if (made == NULL || strcmp(key, "pipeline") != 0)
        return made;
    if (!add_written_classes(graph, made) ||
        !add_items(graph, made, graph->private->written_nodes, false)) {
        hr__doc_destroy(made);
        return NULL;
    }
    return made;
}

static bool fill_written(const struct hr_graph *graph, struct hr_doc *root)
{
    const struct hr_doc *written = graph->private->written;
    bool longer = graph->count > graph->private->written_nodes;

    assert(written->kind == HR_DOC_MAP);
    for (size_t i = 0; i < written->as.map.count; i++) {
        const struct hr_doc_pair *pair = &written->as.map.pairs[i];

        if (longer && strcmp(pair->key, "output") == 0)
            continue; /* a later node is the output */
        if (!set(root, pair->key, part_of(graph, pair->key, pair->value)))
            return false;
    }
    return true;
}

static bool fill_built(const struct hr_graph *graph, struct hr_doc *root)
{
    const struct hr_doc *about = graph->private->about;
    struct hr_doc *list;

    if (!set(root, "headrace", hr__doc_int(1)))
        return false;
    for (size_t i = 0; about != NULL && i < about->as.map.count; i++)
        if (!set(root, about->as.map.pairs[i].key,
                 hr__doc_copy(about->as.map.pairs[i].value)))
            return false;
    list = hr__doc_new(HR_DOC_LIST);
    if (list != NULL && !add_items(graph, list, 0, is_chain(graph))) {
        hr__doc_destroy(list);
        return false;
    }
    return set(root, "pipeline", list);
}

enum hr_err hr__graph_print(const struct hr_graph *graph, enum hr_graph_format format,
                            char **ret_text, struct hr_error *reterr)
{
    struct hr_doc *root = hr__doc_new(HR_DOC_MAP);
    char *text = NULL;
    struct hr_str out;
    bool ok = root != NULL;

    hr__str_init(&out);
    if (ok)
        ok = graph->private->written != NULL ? fill_written(graph, root)
                                             : fill_built(graph, root);
    if (ok && format == HR_GRAPH_JSON)
        hr__doc_print_json(root, true, &out);
    else if (ok)
        hr__doc_print_yaml(root, &out);
    if (ok && out.length > 0 && hr__str_text(&out)[out.length - 1] != '\n')
        hr__str_add(&out, "\n");
    hr__doc_destroy(root);
    if (ok)
        text = hr__str_take(&out);
    hr__str_finish(&out);
    if (text == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    *ret_text = text;
    return HR_OK;
}

/* Not escaped: hr_graph_add does not substitute. */
enum hr_err hr__graph_node_params(const struct hr_graph *graph, size_t at,
                                  char **ret_json, struct hr_error *reterr)
{
    const struct hr_graph_node *n = &graph->nodes[at];
    struct hr_str out;
    char *text;

    hr__str_init(&out);
    if (has_params(n))
        hr__doc_print_json(n->given, false, &out);
    else
        hr__str_add(&out, "{}");
    text = hr__str_take(&out);
    hr__str_finish(&out);
    if (text == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    *ret_json = text;
    return HR_OK;
}
