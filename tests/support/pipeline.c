/*
 * tests/support/pipeline.c - see pipeline.h.
 */
#include "tests/support/pipeline.h"

#include "core/str.h"
#include "tests/support/check.h"

struct hr_graph *pipeline_graph(const char *pipeline)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    struct hr_str text;

    hr__str_init(&text);
    hr__str_addf(&text, "headrace: 1\npipeline:\n%s", pipeline);
    if (hr_graph_parse(hr__str_text(&text), text.length, "g.yaml", NULL, 0, &graph,
                       &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    hr__str_finish(&text);
    return graph;
}

struct hr_graph *pipeline_frozen(const char *pipeline)
{
    struct hr_graph *graph = pipeline_graph(pipeline);
    struct hr_error error = {0};

    if (hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

struct hr_profile *pipeline_profile(struct hr_graph *graph)
{
    struct hr_profile_options options;
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};

    hr_profile_options_init(&options);
    options.seconds_max = 0.5;
    if (hr_graph_profile(graph, &options, &profile, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return profile;
}
