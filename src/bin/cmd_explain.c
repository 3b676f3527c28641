/*
 * cmd_explain.c - headrace explain: the plan with its reasons; with --measure, what the
 * nodes cost, and how results and speed of the ops' modes differ.
 */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct explain_options, field)

/* clang-format off */
static const struct cli_option explain_table[] = {
    CLI_OPTION_PARAM,
    PLAN_OPTIONS,
    {"measure", 0, CLI_FLAG, AT(measure), NULL,
     "instead of the plan: run some records and show what each node costs; then run "
     "them in modes exact, close and fast, and show how far close and fast are from "
     "exact, and the time each takes"},
    {"records", 0, CLI_INT, AT(records), "N",
     "number of records to measure; default 200", 1, INT64_MAX},
    {"seed", 0, CLI_INT, AT(seed), "S",
     "seed for order and augmentation with --measure; default 0"},
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print the plan or the measurements as one JSON object"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output"},
};

static const struct cli_example explain_examples[] = {
    {"headrace explain examples/vision_rrc.yaml -p data=photos",
     "stages, what is composed, where pixels are decoded, and why"},
    {"headrace explain --measure examples/vision_rrc.yaml -p data=photos",
     "what each node costs; what modes close and fast change on your photos, in grey levels, and the time they save"},
};
/* clang-format on */

static int explain_graph(struct hr_graph *graph, const struct explain_options *o)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    char *text = NULL, *plan = NULL;
    size_t length;
    int code;

    hr_iter_options_init(&options);
    code = plan_options_set(&o->plan, &options, &plan);
    if (code == CLI_OK &&
        hr_graph_explain(graph, &options, o->json, &text, &error) != HR_OK)
        code = cli_library(&error);
    free(plan);
    if (code != CLI_OK)
        return code;
    length = strlen(text);
    fputs(text, stdout);
    if (length > 0 && text[length - 1] != '\n')
        putchar('\n');
    hr_free(text);
    return CLI_OK;
}

static int explain_run(void *values, const struct cli_rest *rest)
{
    const struct explain_options *options = values;
    struct hr_graph *graph = NULL;
    int code = options->measure
                   ? graph_file_open(rest->words[0], &options->params, &graph)
                   : graph_file_load(rest->words[0], &options->params, &graph);

    if (code == CLI_OK && options->measure)
        code = explain_measure(graph, options, rest->words[0]);
    else if (code == CLI_OK)
        code = explain_graph(graph, options);
    hr_graph_unref(graph);
    return code;
}

static const struct explain_options explain_defaults = {.plan = PLAN_DEFAULTS,
                                                        .records = 200};

const struct cli_command cmd_explain = {
    .name = "explain",
    .summary = "show how a graph would run, and why",
    .args = "GRAPH",
    .args_min = 1,
    .args_max = 1,
    .text = "Prints the graph's plan: its stages, which nodes are composed into one "
            "kernel call, where pixels are decoded, and the reason for each. Opens the "
            "graph's sources but runs nothing. With --measure it runs the first records "
            "and shows what each node and each mode costs.",
    CLI_OPTIONS(explain_table, struct explain_options),
    CLI_EXAMPLES(explain_examples),
    .defaults = &explain_defaults,
    .run = explain_run,
};
