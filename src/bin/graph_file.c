/*
 * graph_file.c - loads graphs for the commands.
 */
#include "graph_file.h"
#include "caret.h"
#include "propose.h"
#include "term.h"
#include "text_file.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>

/* A graph that is not in a file: of standard input, or proposed. Kept until the process
 * ends, for messages. */
static struct {
    const char *path; /* as it was given: "-", or the data's */
    const char *name; /* for messages */
    char *text;
} unfiled;

static void give(const char *path, const char *name, char *text)
{
    free(unfiled.text);
    unfiled.path = path;
    unfiled.name = name;
    unfiled.text = text;
    caret_keep(name, text);
}

int graph_file_propose(const char *path, bool quiet)
{
    char *text;
    int code;

    if (!propose_is_data(path))
        return CLI_OK;
    code = propose(path, &text);
    if (code != CLI_OK)
        return code;
    give(path, "proposed graph", text);
    if (!quiet)
        fprintf(stderr,
                "headrace: %s is data: this graph is used; headrace init %s -o FILE "
                "writes it\n\n%s%s%s\n",
                path, path, term_dim(stderr), text, term_plain(stderr));
    return CLI_OK;
}

/* Reads standard input if the path is "-"; once, as commands may load a graph twice. */
static int read_input(const char *path)
{
    char *text;
    int code;

    if (strcmp(path, "-") != 0 || unfiled.path != NULL)
        return CLI_OK;
    code = text_file_read("-", "a graph", &text);
    if (code == CLI_OK)
        give(path, "<stdin>", text);
    return code;
}

static enum hr_err load(const char *path, const struct hr_graph_param *params,
                        size_t count, struct hr_graph **ret_graph, struct hr_error *error)
{
    if (unfiled.path != NULL && strcmp(unfiled.path, path) == 0)
        return hr_graph_parse(unfiled.text, strlen(unfiled.text), unfiled.name, params,
                              count, ret_graph, error);
    return hr_graph_load(path, params, count, ret_graph, error);
}

int graph_file_load(const char *path, const struct cli_params *params,
                    struct hr_graph **ret_graph)
{
    struct hr_error error = {0};
    int code = read_input(path);

    if (code != CLI_OK)
        return code;
    if (load(path, params->items, params->count, ret_graph, &error) == HR_OK)
        return worker_host(*ret_graph);
    if (unfiled.path == NULL && propose_is_data(path))
        return cli_usage("%s is data, not a graph: headrace init %s -o FILE writes a "
                         "graph for it",
                         path, path);
    if (error.code == HR_ERR_IO) /* an unreadable graph file is a usage error */
        error.code = HR_ERR_NOT_FOUND;
    return cli_library(&error);
}

int graph_file_open(const char *path, const struct cli_params *params,
                    struct hr_graph **ret_graph)
{
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;
    int code = graph_file_load(path, params, &graph);

    if (code != CLI_OK)
        return code;
    if (hr_graph_freeze(graph, &error) != HR_OK) {
        hr_graph_unref(graph);
        return cli_library(&error);
    }
    *ret_graph = graph;
    return CLI_OK;
}

struct cut {
    const struct hr_graph *from;
    struct hr_graph *to;
    struct hr_node *nodes; /* of `to`, by number in `from` */
    bool *added;
    struct hr_error error;
};

/* Adds the node after all that it reads from. */
static enum hr_err add_node(struct cut *cut, size_t at)
{
    struct hr_node inputs[8];
    struct hr_node_info node;
    char *params = NULL;
    enum hr_err code = hr_graph_node_info(cut->from, at, &node);

    if (code != HR_OK || cut->added[at])
        return code;
    for (size_t i = 0; code == HR_OK && i < node.input_count; i++) {
        code = add_node(cut, node.inputs[i].id);
        inputs[i] = cut->nodes[node.inputs[i].id];
    }
    if (code == HR_OK)
        code = hr_graph_node_params(cut->from, at, &params, &cut->error);
    if (code == HR_OK)
        code = hr_graph_add(cut->to, node.op, node.name, inputs, node.input_count, params,
                            &cut->nodes[at], &cut->error);
    hr_free(params);
    cut->added[at] = true;
    return code;
}

int graph_file_cut(const struct hr_graph *graph, size_t node, struct hr_graph **ret_graph)
{
    size_t count = hr_graph_node_count(graph);
    struct cut cut = {.from = graph,
                      .to = hr_graph_create(),
                      .nodes = calloc(count + 1, sizeof(struct hr_node)),
                      .added = calloc(count + 1, sizeof(bool))};
    int code = CLI_OK;

    if (cut.to == NULL || cut.nodes == NULL || cut.added == NULL)
        code = cli_failed("out of memory");
    else if (add_node(&cut, node) != HR_OK)
        code = cli_library(&cut.error);
    else
        code = worker_host(cut.to);
    free(cut.nodes);
    free(cut.added);
    if (code == CLI_OK)
        *ret_graph = cut.to;
    else
        hr_graph_unref(cut.to);
    return code;
}

static void print_choices(const struct hr_graph_param_info *info)
{
    for (size_t i = 0; i < info->choice_count; i++)
        printf("%s%s", i > 0 ? ", " : "; one of ", info->choices[i]);
}

void graph_file_print_params(const struct hr_graph *graph)
{
    struct hr_graph_param_info info;

    if (hr_graph_param_info(graph, 0, &info) != HR_OK)
        return;
    printf("%sParameters%s (-p name=value)\n", term_bold(stdout), term_plain(stdout));
    for (size_t i = 0; hr_graph_param_info(graph, i, &info) == HR_OK; i++) {
        char name[96];

        snprintf(name, sizeof(name), "%s (%s)", info.name, info.type);
        printf("  %-24s %s", name, info.help ? info.help : "");
        print_choices(&info);
        printf("%s",
               (info.help || info.choice_count > 0) && (info.required || info.fallback)
                   ? "; "
                   : "");
        if (info.required)
            printf("required");
        else if (info.fallback != NULL)
            printf("default %s", info.fallback[0] ? info.fallback : "\"\"");
        printf("\n");
    }
}

/* Loads a graph for its declarations only: fills in missing required parameters with "0",
 * which reads as a number, a path and a word. */
static enum hr_err load_declared(const char *path, const struct cli_params *params,
                                 struct hr_graph **ret_graph, struct hr_error *error)
{
    struct hr_graph_param all[64];
    size_t count = params->count < 32 ? params->count : 32;

    if (count > 0)
        memcpy(all, params->items, count * sizeof(all[0]));
    for (size_t first = count; count < 64; count++) {
        static char names[64][64];

        *error = (struct hr_error){0};
        if (load(path, all, count, ret_graph, error) == HR_OK)
            return HR_OK;
        if (error->param[0] == '\0' ||
            (count > first && strcmp(names[count - 1], error->param) == 0))
            break;
        memcpy(names[count], error->param, sizeof(names[count]));
        all[count] = (struct hr_graph_param){names[count], "0"};
    }
    return error->code;
}

int graph_file_help(const char *path, const struct cli_params *params)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    int code = read_input(path);

    if (code != CLI_OK)
        return code;
    if (load_declared(path, params, &graph, &error) != HR_OK)
        return cli_library(&error);
    graph_file_print_params(graph);
    hr_graph_unref(graph);
    return CLI_OK;
}

/* The values that a parameter is one of, as "name=value". */
static void list_values(const struct hr_graph_param_info *info)
{
    for (size_t i = 0; i < info->choice_count; i++)
        printf("%s=%s\n", info->name, info->choices[i]);
    if (info->choice_count > 0)
        return;
    if (strcmp(info->type, "bool") == 0)
        printf("%s=true\n%s=false\n", info->name, info->name);
    for (int i = HR_U8; strcmp(info->type, "dtype") == 0 && i <= HR_U16; i++)
        printf("%s=%s\n", info->name, hr_dtype_name((enum hr_dtype)i));
    if (strcmp(info->type, "bool") != 0 && strcmp(info->type, "dtype") != 0)
        printf("%s=\n", info->name);
}

int graph_file_complete(const char *path)
{
    const struct cli_params none = {.count = 0};
    struct hr_graph_param_info info;
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    int code = graph_file_propose(path, true);

    if (code != CLI_OK)
        return code;
    if (load_declared(path, &none, &graph, &error) != HR_OK)
        return cli_library(&error);
    for (size_t i = 0; hr_graph_param_info(graph, i, &info) == HR_OK; i++)
        list_values(&info);
    hr_graph_unref(graph);
    return CLI_OK;
}

enum hr_graph_format graph_file_format(const char *path)
{
    size_t length = path != NULL ? strlen(path) : 0;

    return length >= 5 && strcmp(path + length - 5, ".json") == 0 ? HR_GRAPH_JSON
                                                                  : HR_GRAPH_YAML;
}
