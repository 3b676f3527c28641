/*
 * cmd_plan.c - headrace plan: writes the plan that run would use, to keep or edit.
 */
#include "graph_file.h"
#include "out.h"
#include "plan_options.h"

#include <stdlib.h>
#include <string.h>

struct plan_command {
    struct cli_params params;
    struct plan_options plan;
    const char *output;
    bool json;
};

#define AT(field) offsetof(struct plan_command, field)

/* clang-format off */
static const struct cli_option plan_table[] = {
    CLI_OPTION_PARAM,
    {"output", 'o', CLI_TEXT, AT(output), "FILE",
     "write the plan to FILE instead of stdout; JSON if its name ends in .json"},
    PLAN_OPTIONS,
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print JSON instead of YAML"},
};

static const struct cli_example plan_examples[] = {
    {"headrace plan train.yaml -o train.plan.yaml",
     "save every decision and its reason"},
    {"headrace run train.yaml --plan train.plan.yaml",
     "run it, as written or edited"},
    {"headrace plan train.yaml --plan train.plan.yaml",
     "check an edited plan without running it"},
};
/* clang-format on */

static int print_plan(struct hr_graph *graph, const struct plan_command *command,
                      const struct hr_iter_options *options)
{
    struct hr_error error = {0};
    enum hr_graph_format format =
        command->json ? HR_GRAPH_JSON : graph_file_format(command->output);
    char *text = NULL;
    int code = CLI_OK;

    if (hr_graph_plan(graph, options, format, &text, &error) != HR_OK)
        return cli_library(&error);
    if (command->output != NULL)
        code = out_replace(command->output, text);
    else
        printf("%s%s", text, format == HR_GRAPH_JSON ? "\n" : "");
    hr_free(text);
    return code;
}

static int plan_run(void *values, const struct cli_rest *rest)
{
    const struct plan_command *command = values;
    struct hr_iter_options options;
    struct hr_graph *graph = NULL;
    char *text = NULL;
    int code;

    hr_iter_options_init(&options);
    code = plan_options_set(&command->plan, &options, &text);
    if (code == CLI_OK)
        code = graph_file_propose(rest->words[0], command->output == NULL);
    if (code == CLI_OK)
        code = graph_file_load(rest->words[0], &command->params, &graph);
    if (code == CLI_OK)
        code = print_plan(graph, command, &options);
    hr_graph_unref(graph);
    free(text);
    return code;
}

static const struct plan_command plan_defaults = {.plan = PLAN_DEFAULTS};

const struct cli_command cmd_plan = {
    .name = "plan",
    .summary = "write the plan of a graph, to keep or edit",
    .args = "GRAPH|DATA",
    .args_min = 1,
    .args_max = 1,
    .text =
        "Writes the plan that `headrace run` would use with the same options: stages, "
        "where each step runs, how many threads, sizes of chunks, blocks and queues, "
        "and how memory is divided, each with its reason. `headrace run --plan` runs "
        "it, unchanged or edited, or reports the position of the first entry that "
        "the graph does not allow. Opens the graph's sources but runs nothing.",
    CLI_OPTIONS(plan_table, struct plan_command),
    CLI_EXAMPLES(plan_examples),
    .defaults = &plan_defaults,
    .run = plan_run,
};
