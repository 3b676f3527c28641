/*
 * cmd_explain.c - headrace explain: the plan with its reasons; with --measure, what the
 * nodes cost, and how results and speed of the ops' modes differ; with --profile, how
 * fast it will run.
 */
#include "explain_predict.h"

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
    {"profile", 0, CLI_TEXT, AT(profile), "FILE",
     "instead of the plan: predict records/s, what limits them, and what each node takes, as "
     "written and in the cheapest order, by a profile from headrace profile --fuse -o"},
    {"what-if", 0, CLI_PARAM, AT(what_if), "NAME=VALUE",
     "with --profile: predict another machine, too: cores=16, disk=200MB/s (what sources can "
     "read), memory=64GiB, copy=5GB/s (to and from worker processes), price=1.20 (per hour); "
     "may be repeated, and more such words may follow"},
    {"strictness", 0, CLI_CHOICE, AT(strictness), "exact|close|relaxed",
     "with --profile: how far records of the cheapest order may differ, as in headrace "
     "optimize; default exact"},
    CACHE_ASK_OPTIONS(struct explain_options, cache),
    {"html", 0, CLI_TEXT, AT(html), "FILE",
     "with --profile: write a page with both graphs drawn, bars of time, and each decision"},
    {"accuracy", 0, CLI_FLAG, AT(accuracy), NULL,
     "print how far earlier predictions were from what was measured (headrace run --profile)"},
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print the plan, the measurements or the predictions as one JSON object"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output"},
};

static const struct cli_example explain_examples[] = {
    {"headrace explain examples/vision_rrc.yaml -p data=photos",
     "stages, what is composed, where pixels are decoded, and why"},
    {"headrace explain --measure examples/vision_rrc.yaml -p data=photos",
     "what each node costs; what modes close and fast change on your photos, in grey levels, and the time they save"},
    {"headrace explain train.yaml --profile profile.json --what-if cores=16 disk=200MB/s",
     "how fast it will run here and there, and what limits it"},
    {"headrace explain train.yaml --profile profile.json --strictness relaxed --html plan.html",
     "the graph before and after, drawn"},
    {"headrace explain --accuracy",
     "how well earlier predictions held"},
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

/* What the options of predictions need. */
static int check(const struct explain_options *o, const struct cli_rest *rest)
{
    if (o->accuracy && (rest->count > 0 || o->measure || o->profile != NULL))
        return cli_usage("--accuracy takes no graph and no other option but --json");
    if (!o->accuracy && rest->count == 0)
        return cli_usage("explain needs a graph");
    if (o->profile != NULL && o->measure)
        return cli_usage("--profile and --measure exclude each other");
    if (o->profile == NULL && o->html != NULL)
        return cli_usage("--html needs --profile FILE");
    if (o->profile == NULL && o->what_if.count > 0)
        return cli_usage("--what-if needs --profile FILE");
    if (o->profile == NULL && o->cache.epochs != 0)
        return cli_usage("--epochs needs --profile FILE");
    if (o->what_if.count == 0 && rest->count > 1)
        return cli_usage("explain takes one graph; '%s' is too much", rest->words[1]);
    return cache_ask_check(&o->cache);
}

static int explain_one(struct hr_graph *graph, const struct explain_options *options,
                       const struct cli_rest *rest)
{
    if (options->profile != NULL)
        return explain_predict(graph, options, rest);
    if (options->measure)
        return explain_measure(graph, options, rest->words[0]);
    return explain_graph(graph, options);
}

static int explain_run(void *values, const struct cli_rest *rest)
{
    const struct explain_options *options = values;
    bool opened = options->measure || options->profile != NULL;
    struct hr_graph *graph = NULL;
    int code = check(options, rest);

    if (code != CLI_OK)
        return code;
    if (options->accuracy)
        return explain_accuracy(options->json);
    if (options->html != NULL)
        code = out_probe(options->html);
    if (code == CLI_OK)
        code = graph_file_propose(rest->words[0], options->json);
    if (code == CLI_OK)
        code = opened ? graph_file_open(rest->words[0], &options->params, &graph)
                      : graph_file_load(rest->words[0], &options->params, &graph);
    if (code == CLI_OK)
        code = explain_one(graph, options, rest);
    hr_graph_unref(graph);
    return code;
}

static const struct explain_options explain_defaults = {
    .plan = PLAN_DEFAULTS, .records = 200, .cache = CACHE_ASK_DEFAULTS};

const struct cli_command cmd_explain = {
    .name = "explain",
    .summary = "show how a graph would run, and why",
    .args = "GRAPH|DATA",
    .args_min = 0,
    .args_max = 9,
    .text =
        "Prints the graph's plan: its stages, which nodes are composed into one "
        "kernel call, where pixels are decoded, and the reason for each. Opens the "
        "graph's sources but runs nothing. With --measure it runs the first records "
        "and shows what each node and each mode costs. With --profile it predicts how "
        "fast the graph will run here, in the cheapest order, and on other machines.",
    CLI_OPTIONS(explain_table, struct explain_options),
    CLI_EXAMPLES(explain_examples),
    .defaults = &explain_defaults,
    .run = explain_run,
};
