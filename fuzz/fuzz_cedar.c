/*
 * fuzz/fuzz_cedar.c - any text as statistics and as a plan of cedar: refused with a
 * message, or printed and read back as the same text; and, where the plan fits these or
 * drawn statistics, optimized by both rules.
 */
#include "opt/cedar_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void need(bool condition)
{
    if (!condition)
        abort();
}

static void check_measures(const struct hr_cedar_measures *measures)
{
    struct hr_cedar_measures read;
    struct hr_str text, again;

    hr__str_init(&text);
    hr__str_init(&again);
    hr__cedar_measures_print(measures, &text);
    need(hr__cedar_measures_parse(hr__str_text(&text), text.length, "again.yml", &read,
                                  NULL) == HR_OK);
    hr__cedar_measures_print(&read, &again);
    need(strcmp(hr__str_text(&text), hr__str_text(&again)) == 0);
    hr__str_finish(&text);
    hr__str_finish(&again);
}

/* Statistics of all pipes that a plan names. */
static void measure(const struct hr_cedar_plan *plan, struct hr_cedar_measures *measures)
{
    const struct hr_cedar_section *section =
        plan->logical.entry_count > 0 ? &plan->logical : &plan->physical;

    *measures = (struct hr_cedar_measures){.rate = 40, .disk_read = 8e-9};
    for (size_t i = 0; i < section->entry_count; i++) {
        double bytes = 100 * (double)(i % 3 + 1);

        if (measures->pipe_count == HR_CEDAR_PIPES_MAX)
            return;
        measures->pipes[measures->pipe_count++] = (struct hr_cedar_measure){
            section->entries[i].id,
            (double)(i + 1),
            bytes,
            bytes * (i % 2 == 0 ? 3 : 0.5),
            {[HR_CEDAR_RAY] = 44, [HR_CEDAR_SMP] = 41}
        };
    }
}

static void optimize(const struct hr_cedar_plan *plan)
{
    struct hr_cedar_pipeline pipeline;
    struct hr_cedar_options options;
    struct hr_cedar_result cedars, ours;
    struct hr_cedar_measures measures;
    struct hr_cedar_plan made;
    struct hr_error error = {0};

    measure(plan, &measures);
    if (hr__cedar_join(&measures, "fuzz", plan, "fuzz.yml", &pipeline, &error) != HR_OK ||
        pipeline.stats.pipe_count > 12) {
        return;
    }
    hr__cedar_options_init(&options);
    options.cache_samples = 100;
    if (hr__cedar_optimize(&pipeline.stats, &options, &cedars, &error) != HR_OK) {
        need(error.message[0] != '\0');
        return;
    }
    options.joint = true;
    need(hr__cedar_optimize(&pipeline.stats, &options, &ours, NULL) == HR_OK);
    need(ours.cost_ms <= cedars.cost_ms * (1 + 1e-9));
    need(hr__cedar_plan_make(&pipeline, &ours, &made, NULL) == HR_OK);
    hr__cedar_plan_finish(&made);
}

static void check_plan(const struct hr_cedar_plan *plan)
{
    struct hr_cedar_plan read;
    struct hr_str text, again;

    hr__str_init(&text);
    hr__str_init(&again);
    hr__cedar_plan_print(plan, &text);
    need(hr__cedar_plan_parse(hr__str_text(&text), text.length, "again.yml", &read,
                              NULL) == HR_OK);
    hr__cedar_plan_print(&read, &again);
    need(strcmp(hr__str_text(&text), hr__str_text(&again)) == 0);
    optimize(plan);
    hr__cedar_plan_finish(&read);
    hr__str_finish(&text);
    hr__str_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_cedar_measures measures;
    struct hr_error error = {0};
    struct hr_cedar_plan plan;

    if (hr__cedar_measures_parse((const char *)data, bytes, "fuzz.yml", &measures,
                                 &error) == HR_OK)
        check_measures(&measures);
    else
        need(error.message[0] != '\0');
    error = (struct hr_error){0};
    if (hr__cedar_plan_parse((const char *)data, bytes, "fuzz.yml", &plan, &error) !=
        HR_OK) {
        need(error.message[0] != '\0');
        return 0;
    }
    check_plan(&plan);
    hr__cedar_plan_finish(&plan);
    return 0;
}
