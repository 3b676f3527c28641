/*
 * fuzz/fuzz_graph.c - any text as a graph file: load, freeze, print, load again.
 *
 * A graph that loads must print to text that loads to a graph that prints the same.
 * Graphs whose sources would open files are not frozen: the fuzzer must not walk the
 * disk.
 */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct hr_graph_param params[] = {
    {"size", "7"}
};

static bool opens_files(const struct hr_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i].op->traits & HR_TRAIT_COSTLY_STATE)
            return true;
    }
    return false;
}

static void round_trip(const struct hr_graph *graph, enum hr_graph_format format)
{
    const char *name = format == HR_GRAPH_JSON ? "back.json" : "back.yaml";
    struct hr_graph *back = NULL;
    char *text = NULL, *again = NULL;

    if (hr__graph_print(graph, format, &text, NULL) != HR_OK)
        abort();
    if (hr__graph_parse(text, strlen(text), name, NULL, 0, &back, NULL) != HR_OK)
        abort();
    if (hr__graph_print(back, format, &again, NULL) != HR_OK || strcmp(text, again) != 0)
        abort();
    hr__free(text);
    hr__free(again);
    hr__graph_unref(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    bool with_param = bytes > 0 && data[bytes - 1] % 2 != 0;
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    enum hr_err code = hr__graph_parse((const char *)data, bytes,
                                       bytes > 0 && data[0] == '{' ? "f.json" : "f",
                                       params, with_param, &graph, &error);

    if (code != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    round_trip(graph, HR_GRAPH_YAML);
    round_trip(graph, HR_GRAPH_JSON);
    if (!opens_files(graph) && hr__graph_freeze(graph, &error) != HR_OK &&
        error.message[0] == '\0')
        abort();
    hr__graph_unref(graph);
    return 0;
}
