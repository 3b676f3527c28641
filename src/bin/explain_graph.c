/*
 * explain_graph.c - copies a graph with some parameter values changed.
 *
 * What can be changed is found in the ops' own tables: a parameter called mode that
 * accepts exact, close and fast; the size of an op that makes batches; a list called std.
 * So new ops take part without a change here. Nodes are added in the order of the
 * original wherever inputs allow, because random numbers depend on a node's number.
 */
#include "explain.h"
#include "headrace/op.h"

#include <stdlib.h>
#include <string.h>

const char *const explain_modes[EXPLAIN_MODES] = {"exact", "close", "fast"};

/* ---- parameters of an op ---- */

/* Finds the parameter of this name and the words of its range; false if there is none. */
static bool find_param(const char *op, const char *name, struct hr_param_info *ret_param,
                       char *range, size_t room)
{
    size_t at;

    if (hr_op_find(op, &at, NULL) != HR_OK)
        return false;
    for (size_t i = 0; hr_op_param(at, i, ret_param) == HR_OK; i++)
        if (strcmp(ret_param->name, name) == 0) {
            hr_op_param_range(at, i, range, room);
            return true;
        }
    return false;
}

static bool op_has_modes(const char *op)
{
    struct hr_param_info param;
    char range[256] = "";
    bool all = find_param(op, "mode", &param, range, sizeof(range));

    for (int i = 0; i < EXPLAIN_MODES; i++)
        all = all && strstr(range, explain_modes[i]) != NULL;
    return all;
}

static bool op_takes(const char *op, const char *name, const char *type)
{
    struct hr_param_info param;
    char range[256] = "";

    return find_param(op, name, &param, range, sizeof(range)) &&
           strcmp(param.type, type) == 0;
}

static bool op_is(const char *op, const char *kind)
{
    struct hr_op_info info;
    size_t at;

    return hr_op_find(op, &at, NULL) == HR_OK && hr_op_info(at, &info) == HR_OK &&
           strcmp(info.kind, kind) == 0;
}

bool explain_has_modes(const struct hr_graph *graph, size_t at)
{
    struct hr_node_info node;

    return hr_graph_node_info(graph, at, &node) == HR_OK && op_has_modes(node.op);
}

/* ---- parameters as JSON ---- */

/* The end of the string that starts at `at`, just after its closing quote. */
static const char *skip_string(const char *at)
{
    for (at++; *at != '"' && *at != '\0'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return *at == '"' ? at + 1 : at;
}

/* The end of the value that starts at `at`: the comma or bracket after it. */
static const char *skip_value(const char *at)
{
    int depth = 0;

    while (*at != '\0' && (depth > 0 || (*at != ',' && *at != '}'))) {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
    }
    return at;
}

/* The value of `key` in the object `json`, in the library's format without spaces. NULL
 * if the key is absent. */
static const char *find_value(const char *json, const char *key)
{
    size_t length = strlen(key);
    const char *at = json + 1;

    while (*at == '"') {
        const char *name = at + 1;

        at = skip_string(at) + 1;
        if (strncmp(name, key, length) == 0 && name[length] == '"')
            return at;
        at = skip_value(at);
        at += *at == ',';
    }
    return NULL;
}

/* Sets `key` to `value` in *json. */
static bool set_value(char **json, const char *key, const char *value)
{
    const char *old = find_value(*json, key);
    const char *rest = old != NULL ? skip_value(old) : *json + strlen(*json) - 1;
    int head = (int)((old != NULL ? old : rest) - *json);
    size_t room = strlen(*json) + strlen(key) + strlen(value) + 8;
    char *made = malloc(room);

    if (made == NULL)
        return false;
    if (old != NULL)
        snprintf(made, room, "%.*s%s%s", head, *json, value, rest);
    else
        snprintf(made, room, "%.*s%s\"%s\":%s%s", head, *json, head > 1 ? "," : "", key,
                 value, rest);
    free(*json);
    *json = made;
    return true;
}

/* Node `at`'s parameters with the changes applied; prints the reason and returns NULL on
 * failure. */
static char *changed_params(const struct hr_graph *graph, size_t at, const char *op,
                            const char *mode, int batch)
{
    struct hr_error error = {0};
    char *given = NULL, *made, text[32];
    bool ok;

    if (hr_graph_node_params(graph, at, &given, &error) != HR_OK) {
        cli_library(&error);
        return NULL;
    }
    made = strdup(given);
    hr_free(given);
    ok = made != NULL;
    snprintf(text, sizeof(text), "\"%s\"", mode);
    if (ok && op_has_modes(op))
        ok = set_value(&made, "mode", text);
    snprintf(text, sizeof(text), "%d", batch);
    if (ok && op_is(op, "batch") && op_takes(op, "size", "int"))
        ok = set_value(&made, "size", text);
    if (ok && op_takes(op, "std", "list of floats"))
        ok = set_value(&made, "std", "[1]");
    if (ok)
        return made;
    cli_failed("out of memory");
    free(made);
    return NULL;
}

/* ---- the copy ---- */

struct copy {
    const struct hr_graph *from;
    struct hr_graph *to;
    struct hr_node *nodes; /* of `to`, indexed by number in `from` */
    bool *added;
    const char *mode;
    int batch;
};

static bool inputs_added(const struct copy *copy, const struct hr_node_info *node)
{
    for (size_t i = 0; i < node->input_count; i++)
        if (!copy->added[node->inputs[i].id])
            return false;
    return true;
}

static int add_node(struct copy *copy, size_t at, const struct hr_node_info *node)
{
    char *params = changed_params(copy->from, at, node->op, copy->mode, copy->batch);
    struct hr_error error = {0};
    struct hr_node inputs[8];
    enum hr_err code;

    if (params == NULL)
        return CLI_FAILED;
    for (size_t i = 0; i < node->input_count; i++)
        inputs[i] = copy->nodes[node->inputs[i].id];
    code = hr_graph_add(copy->to, node->op, node->name, inputs, node->input_count, params,
                        &copy->nodes[at], &error);
    free(params);
    copy->added[at] = true;
    return code == HR_OK ? CLI_OK : cli_library(&error);
}

/* A frozen graph has no cycles, so every pass adds a node. */
static int add_all(struct copy *copy, size_t count)
{
    struct hr_node_info node;
    int code = CLI_OK;

    for (size_t left = count; left > 0 && code == CLI_OK;)
        for (size_t i = 0; i < count && code == CLI_OK; i++) {
            if (copy->added[i] || hr_graph_node_info(copy->from, i, &node) != HR_OK ||
                !inputs_added(copy, &node))
                continue;
            code = add_node(copy, i, &node);
            left--;
        }
    return code;
}

int explain_graph_in(const struct hr_graph *graph, const char *mode, int batch,
                     struct hr_graph **ret_graph)
{
    size_t count = hr_graph_node_count(graph);
    struct copy copy = {.from = graph, .mode = mode, .batch = batch};
    int code = CLI_FAILED;

    copy.to = hr_graph_create();
    copy.nodes = calloc(count + 1, sizeof(*copy.nodes));
    copy.added = calloc(count + 1, sizeof(*copy.added));
    if (copy.to != NULL && copy.nodes != NULL && copy.added != NULL)
        code = add_all(&copy, count);
    else
        cli_failed("out of memory");
    free(copy.nodes);
    free(copy.added);
    if (code == CLI_OK)
        *ret_graph = copy.to;
    else
        hr_graph_unref(copy.to);
    return code;
}
