/*
 * fuzz/fuzz_plan.c - any text as a plan: refused with a message, or read and printed such
 * that it reads back as the same text. "@" in the text stands for the graph's
 * fingerprint, so that the checks after that one are reached; the first byte chooses the
 * graph.
 */
#include "fuzz/graph_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define HEAD                                                                             \
    "headrace: 1\npipeline:\n  - source.range: {n: 1000}\n  - order.shuffle: {}\n"
static const char *const texts[] = {
    HEAD "  - batch.stack: {size: 7}\n",
    HEAD "  - debug.identity: {}\n"
         "  - record.filter: {expr: \"value % 3 != 1\"}\n"
         "  - order.shuffle: {window: 16}\n"
         "  - batch.stack: {size: 5}\n"
         "  - batch.unbatch: {}\n"
         "  - batch.stack: {size: 8}\n",
};
#define GRAPHS (sizeof texts / sizeof texts[0])

static struct hr_graph *graphs[GRAPHS];

/* The plan as it is read; NULL when it is refused. */
static char *read_back(struct hr_graph *graph, const char *plan)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    char *text = NULL;

    hr_iter_options_init(&options);
    options.plan = plan;
    if (hr_graph_plan(graph, &options, HR_GRAPH_YAML, &text, &error) != HR_OK &&
        error.message[0] == '\0')
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *once, *twice;
    struct hr_graph *graph;
    struct hr_str text;

    if (bytes < 1)
        return 0;
    graph = fuzz_graph(&graphs[data[0] % GRAPHS], texts[data[0] % GRAPHS]);
    fuzz_text(&text, graph, data + 1, bytes - 1);
    once = read_back(graph, hr__str_text(&text));
    if (once != NULL) {
        twice = read_back(graph, once);
        if (twice == NULL || strcmp(once, twice) != 0)
            abort();
        hr_free(twice);
    }
    hr_free(once);
    hr__str_finish(&text);
    return 0;
}
