/*
 * pipelines.c - the graphs of examples/ whose data is there, as JSON: a line each with
 * its name, graph, and parameters. For programs that run the command (python/plan.py).
 */
#include "inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"

static void add_member(struct hr_str *out, const char *key, const char *text)
{
    hr__str_add_json(out, key, strlen(key));
    hr__str_add(out, ": ");
    hr__str_add_json(out, text, strlen(text));
}

static void print_graph(const struct input_graph *graph)
{
    struct hr_graph_param params[INPUT_PARAMS_MAX];
    size_t count = input_params(graph->input, params);
    struct hr_str line;
    char path[4096];

    snprintf(path, sizeof(path), "%s/examples/%s.yaml", BENCH_SOURCE_ROOT, graph->graph);
    hr__str_init(&line);
    hr__str_add(&line, "{");
    add_member(&line, "name", graph->name);
    hr__str_add(&line, ", ");
    add_member(&line, "graph", path);
    hr__str_add(&line, ", \"params\": {");
    for (size_t i = 0; i < count; i++) {
        hr__str_add(&line, i > 0 ? ", " : "");
        add_member(&line, params[i].name, params[i].value);
    }
    hr__str_add(&line, "}}\n");
    fputs(hr__str_text(&line), stdout);
    hr__str_finish(&line);
}

int main(int argc, char **argv)
{
    static struct bench bench;

    if (argc != 2 || access(argv[1], R_OK) != 0)
        bench_die(
            "usage: pipelines FOLDER\n"
            "  of photos; sounds, digits and text are taken from the folders beside "
            "it");
    bench.dir = argv[1];
    inputs_find(&bench);
    for (size_t i = 0; i < input_graph_count; i++)
        if (input_is_there(input_graphs[i].input))
            print_graph(&input_graphs[i]);
    return 0;
}
