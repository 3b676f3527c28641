/*
 * cmd_cedar.c - headrace cedar: a plan for a pipeline that cedar measured, as cedar makes
 * it, or as our search does under cedar's model of cost.
 */
#include "cli.h"
#include "headrace/cedar.h"
#include "out.h"
#include "term.h"
#include "text_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cedar_command {
    const char *output;
    int rule; /* place in rule_names */
    int64_t cpus, demand, cache_samples, disk_free;
    bool no_offload, no_fusion, no_prefetch, no_drivers, json, quiet;
};

static const enum hr_rule rules[] = {HR_RULE_CEDAR, HR_RULE_HEADRACE, HR_RULE_WRITTEN};
static const char *const rule_names[] = {"cedar", "headrace", "written"};

#define AT(field) offsetof(struct cedar_command, field)

/* clang-format off */
static const struct cli_option cedar_table[] = {
    {"rule", 0, CLI_CHOICE, AT(rule), "cedar|headrace|written",
     "order, then cache, then placement, as cedar does (default); all together; or in the "
     "written order"},
    {"output", 'o', CLI_TEXT, AT(output), "FILE",
     "write the plan to FILE, as YAML that cedar loads"},
    {"cpus", 0, CLI_INT, AT(cpus), "N",
     "CPUs of the local machine; default 8", 1, 1 << 20},
    {"demand", 0, CLI_INT, AT(demand), "N",
     "samples per second that are wanted; default: as many as possible", 1, INT64_MAX},
    {"cache-samples", 0, CLI_INT, AT(cache_samples), "N",
     "samples of an epoch: consider a cache; default: no cache", 1, INT64_MAX},
    {"disk-free", 0, CLI_BYTES, AT(disk_free), "SIZE",
     "what the cache may take; default: no limit"},
    {"no-offload", 0, CLI_FLAG, AT(no_offload), NULL,
     "no actors: this machine only"},
    {"no-fusion", 0, CLI_FLAG, AT(no_fusion), NULL,
     "no pipes that share a call"},
    {"no-prefetch", 0, CLI_FLAG, AT(no_prefetch), NULL,
     "no prefetcher at the end"},
    {"no-drivers", 0, CLI_FLAG, AT(no_drivers), NULL,
     "no further processes that run the pipeline"},
    CLI_OPTION_JSON,
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no report"},
};

static const struct cli_example cedar_examples[] = {
    {"headrace cedar stats.yml plan.yml",
     "the plan that cedar makes of its statistics"},
    {"headrace cedar stats.yml plan.yml --rule headrace -o better.yml",
     "ours, for cedar to load"},
    {"headrace cedar stats.yml plan.yml --no-offload --cache-samples 9469 --json",
     "on this machine alone, with a cache if that pays, as JSON"},
};
/* clang-format on */

/* ---- the report ---- */

static void print_stage(const struct hr_cedar_stage_info *stage)
{
    printf("  ");
    if (stage->pipe_count == 0)
        printf("%s(%s)%s", term_dim(stdout), stage->kind, term_plain(stdout));
    for (size_t i = 0; i < stage->pipe_count; i++)
        printf("%s%s", i > 0 ? " + " : "", stage->names[i]);
    if (strcmp(stage->variant, "INPROCESS") != 0)
        printf("  %s%s%s", term_bold(stdout), stage->variant, term_plain(stdout));
    if (stage->workers > 0)
        printf(", %d workers, %d in flight", stage->workers, stage->in_flight);
    if (stage->submit_batch > 0)
        printf(", %d per request", stage->submit_batch);
    if (stage->autotune)
        printf(", parallel as TensorFlow sees fit");
    printf("\n");
}

static void print_report(const struct hr_cedar_outcome *plan, const char *path, int rule)
{
    struct hr_cedar_stage_info stage;
    struct hr_cedar_plan_info info;
    char orders[32] = "too many to count";

    hr_cedar_plan_info(plan, &info);
    if (info.orders <= 1e15)
        term_count(orders, sizeof(orders), (uint64_t)info.orders);
    else if (isfinite(info.orders))
        snprintf(orders, sizeof(orders), "%.3g", info.orders);
    printf("%s%s%s, rule %s\n", term_bold(stdout), path, term_plain(stdout),
           rule_names[rule]);
    printf("  legal orders  %s\n", orders);
    printf("  as written    %.6g ms per sample\n", info.written_ms);
    printf("  ordered       %.6g ms (%.2fx)\n", info.order_ms,
           info.written_ms / info.order_ms);
    printf("  placed        %.6g ms (%.2fx)\n", info.cost_ms,
           info.written_ms / info.cost_ms);
    printf("  drivers       %d\n\n", info.drivers);
    for (size_t i = 0; hr_cedar_plan_stage(plan, i, &stage) == HR_OK; i++)
        print_stage(&stage);
    if (!info.best)
        printf("\n  too many pipes may move to try all: there may be a cheaper plan\n");
}

static void print_json_stage(struct json *json, const struct hr_cedar_stage_info *stage)
{
    json_open(json, NULL, '{');
    json_text(json, "kind", stage->kind);
    json_text(json, "variant", stage->variant);
    json_open(json, "pipes", '[');
    for (size_t i = 0; i < stage->pipe_count; i++)
        json_i64(json, NULL, stage->ids[i]);
    json_close(json, ']');
    json_open(json, "names", '[');
    for (size_t i = 0; i < stage->pipe_count; i++)
        json_text(json, NULL, stage->names[i]);
    json_close(json, ']');
    json_i64(json, "workers", stage->workers);
    json_i64(json, "in_flight", stage->in_flight);
    json_i64(json, "submit_batch", stage->submit_batch);
    json_bool(json, "autotune", stage->autotune);
    json_close(json, '}');
}

static void print_json(const struct hr_cedar_outcome *plan, int rule)
{
    struct json json = {stdout, false};
    struct hr_cedar_stage_info stage;
    struct hr_cedar_plan_info info;

    hr_cedar_plan_info(plan, &info);
    json_open(&json, NULL, '{');
    json_text(&json, "rule", rule_names[rule]);
    if (isfinite(info.orders))
        json_double(&json, "orders", info.orders);
    else
        json_text(&json, "orders", NULL);
    json_double(&json, "written_ms", info.written_ms);
    json_double(&json, "order_ms", info.order_ms);
    json_double(&json, "cost_ms", info.cost_ms);
    json_bool(&json, "best", info.best);
    json_i64(&json, "drivers", info.drivers);
    json_open(&json, "order", '[');
    for (size_t i = 0; i < info.pipe_count; i++)
        json_i64(&json, NULL, info.order[i]);
    json_close(&json, ']');
    if (info.cache_after >= 0)
        json_i64(&json, "cache_after", info.cache_after);
    else
        json_text(&json, "cache_after", NULL);
    json_open(&json, "stages", '[');
    for (size_t i = 0; hr_cedar_plan_stage(plan, i, &stage) == HR_OK; i++)
        print_json_stage(&json, &stage);
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}

/* ---- the command ---- */

static int find(const struct cedar_command *command, const struct hr_cedar_text *stats,
                const struct hr_cedar_text *pipes, struct hr_cedar_outcome **ret_plan)
{
    struct hr_cedar_plan_options options;
    struct hr_error error = {0};

    hr_cedar_plan_options_init(&options);
    options.rule = rules[command->rule];
    options.cpus = (int)command->cpus;
    options.demand = (double)command->demand;
    options.cache_samples = command->cache_samples;
    options.disk_free = (double)command->disk_free;
    options.no_offload = command->no_offload;
    options.no_fusion = command->no_fusion;
    options.no_prefetch = command->no_prefetch;
    options.no_drivers = command->no_drivers;
    if (hr_cedar_optimize(stats, pipes, &options, ret_plan, &error) != HR_OK)
        return cli_library(&error);
    return CLI_OK;
}

static int save(const struct hr_cedar_outcome *plan, const char *path)
{
    struct hr_error error = {0};
    char *text = NULL;
    int code;

    if (hr_cedar_plan_print(plan, &text, &error) != HR_OK)
        return cli_library(&error);
    code = out_replace(path, text);
    hr_free(text);
    return code;
}

static int cedar_run(void *values, const struct cli_rest *rest)
{
    const struct cedar_command *command = values;
    struct hr_cedar_text files[2] = {
        {NULL, 0, rest->words[0]},
        {NULL, 0, rest->words[1]}
    };
    struct hr_cedar_outcome *plan = NULL;
    char *texts[2] = {NULL, NULL};
    int code = text_file_read(files[0].name, "statistics of cedar", &texts[0]);

    if (code == CLI_OK)
        code = text_file_read(files[1].name, "a plan of cedar", &texts[1]);
    for (size_t i = 0; code == CLI_OK && i < 2; i++) {
        files[i].text = texts[i];
        files[i].bytes = strlen(texts[i]);
    }
    if (code == CLI_OK)
        code = find(command, &files[0], &files[1], &plan);
    if (code == CLI_OK && command->output != NULL)
        code = save(plan, command->output);
    if (code == CLI_OK && command->json)
        print_json(plan, command->rule);
    else if (code == CLI_OK && !command->quiet)
        print_report(plan, rest->words[0], command->rule);
    hr_cedar_plan_free(plan);
    free(texts[0]);
    free(texts[1]);
    return code;
}

static const struct cedar_command cedar_defaults = {.cpus = 8};

const struct cli_command cmd_cedar = {
    .name = "cedar",
    .summary = "plan a pipeline from cedar's statistics",
    .args = "STATS PIPES",
    .args_min = 2,
    .args_max = 2,
    .text = "Finds a plan for a pipeline that cedar (VLDB 2024) measured: STATS is its "
            "statistics file, PIPES its plan file with the names of the pipes, to which "
            "hints "
            "are added. Costs are cedar's: milliseconds of one process per sample. "
            "docs/formats/cedar.md describes the files and the hints.",
    CLI_OPTIONS(cedar_table, struct cedar_command),
    CLI_EXAMPLES(cedar_examples),
    .defaults = &cedar_defaults,
    .run = cedar_run,
};
