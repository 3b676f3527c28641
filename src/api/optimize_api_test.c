/*
 * api/optimize_api_test.c - orders that are taken, and those that are not.
 */
#include "headrace/optimize.h"

#include "api/compare.h"
#include "core/str.h"
#include "graph/profile.h"
#include "tests/support/check.h"

static struct hr_graph *graph_of(const char *pipeline)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    struct hr_str text;

    hr__str_init(&text);
    hr__str_addf(&text, "headrace: 1\npipeline:\n%s", pipeline);
    if (hr_graph_parse(hr__str_text(&text), text.length, "g.yaml", NULL, 0, &graph,
                       &error) != HR_OK ||
        hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    hr__str_finish(&text);
    return graph;
}

static struct hr_profile *profile_of(struct hr_graph *graph)
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

/* Nodes from the third on, by name. */
static const char *names(const struct hr_graph *graph)
{
    static char text[512];
    struct hr_node_info node;
    size_t at = 0;

    for (size_t i = 2; hr_graph_node_info(graph, i, &node) == HR_OK; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 2 ? " " : "",
                               node.name);
    return text;
}

#define RANGE "  - source.range: {n: 400}\n  - order.shuffle: {}\n"
#define SPIN "  - debug.spin: {us: 20}\n    name: spin\n"
#define FILTER "  - record.filter: {expr: \"value < 100\"}\n    name: filter\n"
#define STACK "  - batch.stack: {size: 10}\n    name: stack\n"

/* A filter that drops most records goes before what is dear. */
TEST(a_cheaper_order_is_taken_and_gives_the_same_bytes)
{
    struct hr_graph *graph = graph_of(RANGE SPIN FILTER STACK), *faster = NULL;
    struct hr_profile *profile = profile_of(graph);
    struct hr_optimize_result result;
    struct hr_error error = {0};

    CHECK_OK(hr_graph_optimize(graph, profile, NULL, &faster, &result, &error));
    CHECK_EQ_STR(names(faster), "filter spin stack");
    CHECK_EQ_INT(result.moved, 2);
    CHECK(result.best && result.dropped[0] == '\0');
    CHECK_EQ_INT(result.records, 64); /* of the 100 that are left */
    CHECK(result.difference == 0);
    CHECK(result.predicted_ns < 0.5 * result.written_ns);
    CHECK(result.run_ns < 0.7 * result.written_run_ns);
    hr_graph_unref(faster);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(a_graph_in_its_best_order_is_returned_as_it_is)
{
    struct hr_graph *graph = graph_of(RANGE FILTER SPIN STACK), *same = NULL;
    struct hr_profile *profile = profile_of(graph);
    struct hr_optimize_result result;
    struct hr_error error = {0};

    CHECK_OK(hr_graph_optimize(graph, profile, NULL, &same, &result, &error));
    CHECK(same == graph && result.moved == 0 && result.records == 0);
    CHECK(result.predicted_ns == result.written_ns);
    hr_graph_unref(same);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(what_a_user_pins_or_asks_for_is_kept)
{
    static const char pinned[] = RANGE SPIN
        "  - record.filter: {expr: \"value < 100\", keep_position: true}\n" STACK;
    struct hr_graph *graphs[] = {graph_of(pinned), graph_of(RANGE SPIN FILTER STACK)};

    for (size_t i = 0; i < 2; i++) {
        struct hr_profile *profile = profile_of(graphs[i]);
        struct hr_optimize_options options;
        struct hr_graph *same = NULL;
        struct hr_error error = {0};

        hr_optimize_options_init(&options);
        options.rule = i == 0 ? HR_RULE_HEADRACE : HR_RULE_WRITTEN;
        options.strictness = HR_STRICTNESS_RELAXED;
        CHECK_OK(hr_graph_optimize(graphs[i], profile, &options, &same, NULL, &error));
        CHECK(same == graphs[i]);
        hr_graph_unref(same);
        hr_profile_free(profile);
        hr_graph_unref(graphs[i]);
    }
}

/* A profile that is wrong: "spin" is cheap and drops most, the filter is dear. */
TEST(an_order_that_is_slower_than_predicted_is_dropped)
{
    struct hr_graph *graph = graph_of(RANGE FILTER SPIN STACK), *same = NULL;
    struct hr_profile *profile = profile_of(graph);
    struct hr_optimize_options options;
    struct hr_optimize_result result;
    struct hr_error error = {0};

    for (size_t i = 0; i < profile->node_count; i++) {
        struct hr_profile_node *node = &profile->nodes[i];
        bool spins = strcmp(node->name, "spin") == 0;

        node->cpu_ns = spins ? 1 : 1e6;
        node->records_out = spins ? node->records_in / 10 : node->records_in;
    }
    hr_optimize_options_init(&options);
    CHECK_OK(hr_graph_optimize(graph, profile, &options, &same, &result, &error));
    CHECK(same == graph && result.moved == 0 && result.records == 64);
    CHECK(strstr(result.dropped, "times the CPU time of the written order") != NULL);
    CHECK(result.run_ns > result.written_run_ns);
    hr_graph_unref(same);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

static bool refuse(void *user, uint64_t done, uint64_t all)
{
    (void)user, (void)done, (void)all;
    return false;
}

TEST(wrong_arguments_and_cancelling_are_errors)
{
    struct hr_graph *graph = graph_of(RANGE SPIN FILTER STACK), *none = NULL;
    struct hr_graph *other = graph_of(RANGE FILTER SPIN STACK);
    struct hr_profile *profile = profile_of(graph);
    struct hr_optimize_options options;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_optimize(graph, NULL, NULL, &none, NULL, &error));
    CHECK_ERR(HR_ERR_STATE, hr_graph_optimize(other, profile, NULL, &none, NULL, &error));
    CHECK(strstr(error.message, "profile it again") != NULL);
    hr_optimize_options_init(&options);
    options.records_max = -1;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_optimize(graph, profile, &options, &none, NULL, &error));
    options.records_max = 20;
    options.progress = refuse;
    CHECK_ERR(HR_ERR_CANCELLED,
              hr_graph_optimize(graph, profile, &options, &none, NULL, &error));
    CHECK(none == NULL);
    hr_profile_free(profile);
    hr_graph_unref(graph);
    hr_graph_unref(other);
}

/* ---- what is compared ---- */

static struct hr_comparison compared(const char *one, const char *two)
{
    struct hr_graph *graphs[2] = {graph_of(one), graph_of(two)};
    struct hr_optimize_options options;
    struct hr_comparison found;
    struct hr_error error = {0};

    hr_optimize_options_init(&options);
    CHECK_OK(hr__compare(graphs, &options, true, &found, &error));
    hr_graph_unref(graphs[0]);
    hr_graph_unref(graphs[1]);
    return found;
}

TEST(records_that_differ_are_told_apart)
{
    struct hr_comparison found = compared(RANGE FILTER STACK, RANGE FILTER STACK);

    CHECK(found.wrong[0] == '\0' && found.difference == 0 && found.records == 64);
    found = compared(RANGE FILTER STACK,
                     RANGE "  - record.filter: {expr: \"value < 20\"}\n" STACK);
    CHECK_EQ_STR(found.wrong, "field \"value\" would have other values");
    found = compared("  - source.range: {n: 20}\n" STACK,
                     "  - source.range: {n: 30}\n" STACK);
    CHECK_EQ_STR(found.wrong, "there would be more records");
    found = compared(RANGE STACK,
                     RANGE "  - record.rename: {fields: {value: number}}\n" STACK);
    CHECK_EQ_STR(found.wrong, "field \"value\" would have another shape or dtype");
}

/* The words of a line: the same bytes in all, and as many words. */
static const char *words_of(const char *name, const char *line)
{
    static char pipelines[2][800];
    static int at;
    char *pipeline = pipelines[at++ % 2], path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(line, file);
    fclose(file);
    snprintf(pipeline, sizeof pipelines[0],
             "  - source.lines: {path: '%s'}\n  - text.split: {}\n"
             "  - batch.pad: {size: 1}\n",
             path);
    return pipeline;
}

TEST(lists_that_are_divided_elsewhere_differ)
{
    struct hr_comparison found =
        compared(words_of("one.txt", "ab c\n"), words_of("same.txt", "ab c\n"));

    CHECK_EQ_STR(found.wrong, "");
    found = compared(words_of("one.txt", "ab c\n"), words_of("other.txt", "a bc\n"));
    CHECK_EQ_STR(found.wrong, "field \"words\" would have other values");
}
