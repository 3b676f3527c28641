/*
 * graph/graph.c - building and destroying a graph.
 *
 * Nodes are kept in the order in which they are added. A node without a name gets one
 * from its op and its place among the nodes of that op, since random draws are keyed by
 * names. Parameters are checked when a node is added, so that a wrong one fails the call
 * that passed it; everything that needs other nodes is checked at freeze.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

static enum hr_err no_memory(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr__fail_at(struct hr_error *error, enum hr_err code, const char *file,
                        int line, int column, const char *format, ...)
{
    char message[sizeof error->message];
    va_list args;

    if (error == NULL)
        return code;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (file != NULL)
        snprintf(error->file, sizeof error->file, "%s", file);
    error->line = line;
    error->column = column;
    return hr__fail(error, code, "%s", message);
}

/* Sets the node's place in the graph file, unless the error has a data file or a more
 * precise place already. */
static void
set_place(const struct hr_graph *graph, int line, int column, struct hr_error *error)
{
    if (error == NULL || graph->file == NULL || line == 0 ||
        (error->file[0] != '\0' && strcmp(error->file, graph->file) != 0))
        return;
    snprintf(error->file, sizeof error->file, "%s", graph->file);
    if (error->line == 0) {
        error->line = line;
        error->column = column;
    }
}

void hr__graph_tell_place(const struct hr_graph *graph, struct hr_error *error)
{
    if (error != NULL && graph->file != NULL && error->line > 0 &&
        strcmp(error->file, graph->file) == 0)
        hr__error_prefix(error, "%.200s:%d:%d", graph->file, error->line, error->column);
}

static void blame(const struct hr_graph *graph, const char *name, const char *op,
                  int line, int column, struct hr_error *error)
{
    if (error == NULL)
        return;
    snprintf(error->node, sizeof error->node, "%s", name);
    snprintf(error->op, sizeof error->op, "%s", op);
    set_place(graph, line, column, error);
    hr__error_prefix(error, "node '%s' (%s)", name, op);
}

static const struct hr_doc *text_within(const struct hr_doc *value, const char *text)
{
    if (value->kind == HR_DOC_STRING && strcmp(value->as.string.text, text) == 0)
        return value;
    for (size_t i = 0; value->kind == HR_DOC_LIST && i < value->as.list.count; i++) {
        const struct hr_doc *item = value->as.list.items[i];

        if (item->kind == HR_DOC_STRING && strcmp(item->as.string.text, text) == 0)
            return item;
    }
    return NULL;
}

void hr__graph_point_at(const struct hr_graph_node *n, const char *text,
                        struct hr_error *error)
{
    const struct hr_doc *map = n->given;

    if (map == NULL || map->kind != HR_DOC_MAP)
        return;
    for (size_t i = 0; i < map->as.map.count && error->line == 0; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];
        const struct hr_doc *found = text_within(pair->value, text);

        if (found == NULL && strcmp(pair->key, text) == 0)
            found = pair->value;
        if (found == NULL)
            continue;
        error->line = found->line;
        error->column = found->column;
    }
}

static const struct hr_field *
field_named(const struct hr_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return &schema->fields[i];
    return NULL;
}

/* The value's number in the first input that has the field, after renumbering by a fork.
 */
static int
input_value(const struct hr_graph *graph, const struct hr_graph_node *n, const char *name)
{
    for (size_t i = 0; i < n->input_count; i++) {
        const struct hr_field *field =
            field_named(&graph->nodes[n->inputs[i]].schema, name);

        if (field == NULL)
            continue;
        for (size_t k = 0; k < n->alias_count; k++)
            if (n->aliases[k].from == field->slot && n->aliases[k].input == i)
                return n->aliases[k].to;
        return field->slot;
    }
    return -1;
}

int hr__graph_bound_value(const struct hr_graph *graph, const struct hr_graph_node *node,
                          size_t at)
{
    const char *name = node->field_names[at];
    const struct hr_field *made = field_named(&node->schema, name);

    assert(at < node->field_count);
    if (node->field_access[at] == HR_ACCESS_WRITE && made != NULL)
        return made->slot;
    return input_value(graph, node, name);
}

void hr__graph_blame(const struct hr_graph *graph, uint32_t node, struct hr_error *error)
{
    const struct hr_graph_node *n;

    if (node >= graph->count) /* a stage without a batch op, for example */
        return;
    n = &graph->nodes[node];
    blame(graph, n->name, n->op->name, n->line, n->column, error);
}

struct hr_graph *hr__graph_create(void)
{
    struct hr_graph *graph = hr__calloc(1, sizeof *graph);

    if (graph == NULL)
        return NULL;
    graph->private = hr__calloc(1, sizeof *graph->private);
    graph->codes = hr__code_table_create();
    if (graph->private == NULL || graph->codes == NULL) {
        hr__free(graph->private);
        hr__code_table_unref(graph->codes);
        hr__free(graph);
        return NULL;
    }
    atomic_init(&graph->private->refs, 1);
    return graph;
}

void hr__graph_ref(struct hr_graph *graph)
{
    unsigned before =
        atomic_fetch_add_explicit(&graph->private->refs, 1, memory_order_relaxed);

    assert(before > 0); /* the caller holds one */
    (void)before;
}

void hr__graph_unref(struct hr_graph *graph)
{
    if (graph == NULL)
        return;
    assert(atomic_load_explicit(&graph->private->refs, memory_order_relaxed) > 0);
    if (atomic_fetch_sub_explicit(&graph->private->refs, 1, memory_order_acq_rel) == 1)
        hr__graph_destroy(graph);
}

void hr__graph_rest(struct hr_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *node = &graph->nodes[i];

        if (node->state != NULL && node->op->learner.rest != NULL)
            node->op->learner.rest(node->state);
    }
}

void hr__graph_pause(struct hr_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *node = &graph->nodes[i];

        if (node->state != NULL && node->op->learner.pause != NULL)
            node->op->learner.pause(node->state);
    }
}

static void node_finish(struct hr_graph_node *node)
{
    if (node->state != NULL)
        node->op->close(node->state);
    hr__free(node->name);
    hr__doc_destroy(node->given);
    hr__doc_destroy(node->canonical);
    for (size_t i = 0; i < node->depends_count; i++)
        hr__free(node->depends_on[i]);
    hr__free(node->depends_on);
    hr__free(node->params);
    hr__free(node->field_names);
    hr__free(node->field_access);
    hr__free(node->bindings);
    hr__free(node->aliases);
    hr__free(node->made);
}

void hr__graph_destroy(struct hr_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++)
        node_finish(&graph->nodes[i]);
    hr__free(graph->nodes);
    hr__free(graph->rewrites);
    hr__graph_declared_finish(graph->private);
    hr__doc_destroy(graph->private->written);
    hr__doc_destroy(graph->private->about);
    hr__code_table_unref(graph->codes);
    hr__free(graph->private);
    hr__free(graph->file);
    hr__free(graph);
}

size_t hr__graph_consumers(const struct hr_graph *graph, uint32_t node)
{
    size_t consumers = 0;

    assert(node < graph->count);
    for (size_t i = 0; i < graph->count; i++) {
        for (size_t k = 0; k < graph->nodes[i].input_count; k++)
            consumers += graph->nodes[i].inputs[k] == node;
    }
    return consumers;
}

static bool taken(const struct hr_graph *graph, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(graph->nodes[i].name, name) == 0)
            return true;
    }
    return false;
}

char *hr__graph_auto_name(const struct hr_graph *graph, size_t at, const char *op)
{
    char name[HR_NODE_NAME_MAX + 1];
    unsigned place = 1;

    assert(at <= graph->count);
    for (size_t i = 0; i < at; i++)
        place += strcmp(graph->nodes[i].op->name, op) == 0;
    snprintf(name, sizeof name, place > 1 ? "%.50s%u" : "%.50s", op, place);
    while (taken(graph, at, name))
        snprintf(name, sizeof name, "%.50s%u", op, ++place);
    return hr__strdup(name);
}

enum hr_err hr__graph_find(const struct hr_graph *graph, const char *name,
                           uint32_t *ret_node, struct hr_error *reterr)
{
    const char *names[HR_GRAPH_NODES_MAX], *near;

    for (size_t i = 0; i < graph->count; i++) {
        names[i] = graph->nodes[i].name;
        if (strcmp(names[i], name) == 0) {
            *ret_node = (uint32_t)i;
            return HR_OK;
        }
    }
    near = hr__nearest(name, names, graph->count);
    return hr__fail(reterr, HR_ERR_GRAPH, "there is no node '%.63s'%s%s%s", name,
                    near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?" : "");
}

static enum hr_err
check_name(const struct hr_graph *graph, const char *name, struct hr_error *reterr)
{
    size_t length = strlen(name);

    if (length == 0 || length > HR_NODE_NAME_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a node's name has 1 to %d bytes, not %zu", HR_NODE_NAME_MAX,
                        length);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] < 0x20)
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "a node's name must not contain control characters");
    }
    if (taken(graph, graph->count, name))
        return hr__fail(reterr, HR_ERR_GRAPH,
                        "another node has the name '%s' already: choose another name",
                        name);
    return HR_OK;
}

static enum hr_err wrong_hint(const struct hr_doc *value, const char *key,
                              const char *wants, struct hr_error *reterr)
{
    char text[128];

    if (reterr != NULL)
        snprintf(reterr->param, sizeof reterr->param, "%s", key);
    return hr__fail_at(reterr, HR_ERR_TYPE, NULL, value->line, value->column,
                       "parameter \"%s\" wants %s, not %s", key, wants,
                       hr__param_value_text(value, text, sizeof text));
}

static enum hr_err take_depends(struct hr_graph_node *node, const struct hr_doc *value,
                                struct hr_error *reterr)
{
    bool one = value->kind == HR_DOC_STRING;
    size_t count = one ? 1 : value->as.list.count;

    if (!one && value->kind != HR_DOC_LIST)
        return wrong_hint(value, "depends_on", "names of nodes", reterr);
    node->depends_on = hr__calloc(count > 0 ? count : 1, sizeof *node->depends_on);
    if (node->depends_on == NULL)
        return no_memory(reterr);
    for (size_t i = 0; i < count; i++) {
        const struct hr_doc *item = one ? value : value->as.list.items[i];

        if (item->kind != HR_DOC_STRING)
            return wrong_hint(item, "depends_on", "names of nodes", reterr);
        node->depends_on[i] = hr__strdup(item->as.string.text);
        if (node->depends_on[i] == NULL)
            return no_memory(reterr);
        node->depends_count++;
    }
    return HR_OK;
}

static enum hr_err
keep_pair(struct hr_doc *rest, const struct hr_doc_pair *pair, struct hr_error *reterr)
{
    struct hr_doc *value = hr__doc_copy(pair->value);
    struct hr_doc_pair *kept;

    if (value == NULL || hr__doc_set(rest, pair->key, value) != HR_OK)
        return no_memory(reterr);
    kept = &rest->as.map.pairs[rest->as.map.count - 1];
    kept->line = pair->line;
    kept->column = pair->column;
    return HR_OK;
}

static enum hr_err
take_bool(const struct hr_doc_pair *pair, bool *ret_value, struct hr_error *reterr)
{
    if (pair->value->kind != HR_DOC_BOOL)
        return wrong_hint(pair->value, pair->key, "a bool", reterr);
    *ret_value = pair->value->as.boolean;
    return HR_OK;
}

static enum hr_err take_or_keep(struct hr_graph_node *node, struct hr_doc *rest,
                                const struct hr_doc_pair *pair, struct hr_error *reterr)
{
    if (strcmp(pair->key, "depends_on") == 0)
        return take_depends(node, pair->value, reterr);
    if (strcmp(pair->key, "when") == 0)
        return hr__graph_read_when(node, pair->value, reterr);
    if (strcmp(pair->key, "keep_position") == 0)
        return take_bool(pair, &node->keep_position, reterr);
    if (strcmp(pair->key, "distribute") == 0)
        return take_bool(pair, &node->distribute, reterr);
    return keep_pair(rest, pair, reterr);
}

/* Moves `when` and the hints, which any node may have, out of the map; *ret_rest is a
 * copy without them, or NULL if nothing was given. */
static enum hr_err
take_hints(struct hr_graph_node *node, struct hr_doc **ret_rest, struct hr_error *reterr)
{
    const struct hr_doc *given = node->given;
    struct hr_doc *rest;
    enum hr_err code = HR_OK;

    *ret_rest = NULL;
    if (given == NULL)
        return HR_OK;
    rest = given->kind == HR_DOC_MAP ? hr__doc_new(HR_DOC_MAP) : hr__doc_copy(given);
    if (rest == NULL)
        return no_memory(reterr);
    rest->line = given->line;
    rest->column = given->column;
    for (size_t i = 0; given->kind == HR_DOC_MAP && i < given->as.map.count; i++) {
        code = take_or_keep(node, rest, &given->as.map.pairs[i], reterr);
        if (code != HR_OK) {
            hr__doc_destroy(rest);
            return code;
        }
    }
    *ret_rest = rest;
    return HR_OK;
}

/* What the table cannot check. */
static enum hr_err check_params(const struct hr_graph_node *node, struct hr_error *reterr)
{
    struct hr_error error = {0};
    enum hr_err code =
        node->op->check != NULL ? node->op->check(node->params, &error) : HR_OK;

    if (code == HR_OK)
        return HR_OK;
    hr__graph_point_at(node, error.param, &error);
    if (reterr != NULL)
        *reterr = error;
    return code;
}

static enum hr_err fill_params(struct hr_graph_node *node, struct hr_error *reterr)
{
    const struct hr_op *op = node->op;
    struct hr_doc *rest;
    enum hr_err code;

    HR_TRY(take_hints(node, &rest, reterr));
    node->params = hr__calloc(1, op->params_size > 0 ? op->params_size : 1);
    code = node->params != NULL
               ? hr__params_parse(op->params, op->param_count, rest, node->params,
                                  op->params_size, &node->canonical, reterr)
               : no_memory(reterr);
    hr__doc_destroy(rest);
    return code == HR_OK ? check_params(node, reterr) : code;
}

static enum hr_err grow(struct hr_graph *graph, struct hr_error *reterr)
{
    size_t room = graph->private->node_room * 2 + 8;
    struct hr_graph_node *nodes;

    if (graph->count == HR_GRAPH_NODES_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a graph has at most %d nodes",
                        HR_GRAPH_NODES_MAX);
    if (graph->count < graph->private->node_room)
        return HR_OK;
    nodes = hr__realloc(graph->nodes, room * sizeof *nodes);
    if (nodes == NULL)
        return no_memory(reterr);
    graph->nodes = nodes;
    graph->private->node_room = room;
    return HR_OK;
}

static enum hr_err node_init(const struct hr_graph *graph, struct hr_graph_node *node,
                             const char *name, struct hr_error *reterr)
{
    enum hr_err code = name != NULL ? check_name(graph, name, reterr) : HR_OK;

    if (code != HR_OK) {
        blame(graph, name, node->op->name, node->line, node->column, reterr);
        return code;
    }
    node->name = name != NULL ? hr__strdup(name)
                              : hr__graph_auto_name(graph, graph->count, node->op->name);
    if (node->name == NULL)
        return no_memory(reterr);
    node->draw_id = hr__hash64(node->name, strlen(node->name), 0);
    code = fill_params(node, reterr);
    if (code != HR_OK)
        blame(graph, node->name, node->op->name, node->line, node->column, reterr);
    return code;
}

enum hr_err
hr__graph_append(struct hr_graph *graph, const char *op, const char *name,
                 const uint32_t *inputs, size_t input_count, struct hr_doc *given,
                 int line, int column, struct hr_error *reterr)
{
    struct hr_graph_node *node =
        hr__calloc(1, sizeof *node); /* 20 kB: not on the stack */
    enum hr_err code = HR_ERR_MEMORY;

    if (node == NULL) {
        hr__doc_destroy(given);
        return no_memory(reterr);
    }
    assert(input_count <= HR_NODE_INPUTS_MAX && !graph->frozen);
    node->given = given;
    node->line = line;
    node->column = column;
    code = grow(graph, reterr);
    if (code == HR_OK)
        code = hr__op_get(op, &node->op, reterr);
    if (code == HR_OK)
        code = node_init(graph, node, name, reterr);
    if (code == HR_OK) {
        for (size_t i = 0; i < input_count; i++)
            node->inputs[i] = inputs[i];
        node->input_count = input_count;
        graph->nodes[graph->count++] = *node;
    } else {
        set_place(graph, line, column, reterr);
        node_finish(node);
    }
    hr__free(node);
    return code;
}

/* Parameters passed by a program: JSON, flow YAML or block YAML. A text that starts with
 * '{' may be either of the first two. */
static enum hr_err
parse_params(const char *text, struct hr_doc **ret_doc, struct hr_error *reterr)
{
    if (text[strspn(text, " \t\r\n")] != '{')
        return hr__doc_parse(text, strlen(text), "parameters", ret_doc, reterr);
    if (hr__doc_parse(text, strlen(text), "parameters.json", ret_doc, NULL) == HR_OK)
        return HR_OK;
    *ret_doc = hr__param_flow(text, reterr);
    if (*ret_doc != NULL)
        return HR_OK;
    return reterr != NULL ? reterr->code : HR_ERR_FORMAT;
}

enum hr_err
hr__graph_add(struct hr_graph *graph, const char *op, const char *name,
              const struct hr_node *inputs, size_t input_count, const char *params,
              struct hr_node *ret_node, struct hr_error *reterr)
{
    uint32_t ids[HR_NODE_INPUTS_MAX];
    struct hr_doc *given = NULL;

    if (graph->frozen)
        return hr__fail(reterr, HR_ERR_STATE, "the graph is frozen");
    if (input_count > HR_NODE_INPUTS_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a node has at most %d inputs, not %zu",
                        HR_NODE_INPUTS_MAX, input_count);
    for (size_t i = 0; i < input_count; i++) {
        if (inputs[i].id >= graph->count)
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "input %zu is not a node of this graph", i + 1);
        ids[i] = inputs[i].id;
    }
    if (params != NULL) {
        enum hr_err code = parse_params(params, &given, reterr);

        if (code != HR_OK) {
            hr__error_prefix(reterr, "parameters of op %s", op);
            return code;
        }
    }
    HR_TRY(hr__graph_append(graph, op, name, ids, input_count, given, 0, 0, reterr));
    if (ret_node != NULL)
        ret_node->id = (uint32_t)(graph->count - 1);
    return HR_OK;
}
