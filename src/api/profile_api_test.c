/*
 * api/profile_api_test.c - profiles of graphs whose nodes have known costs and sizes, and
 * of graphs that give nothing.
 */
#include "headrace/profile.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/str.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/pipeline.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static enum hr_err measure(const char *pipeline, const struct hr_profile_options *options,
                           struct hr_profile **ret_profile, struct hr_error *error)
{
    struct hr_graph *graph = pipeline_graph(pipeline);
    enum hr_err code = hr_graph_profile(graph, options, ret_profile, error);

    hr_graph_unref(graph);
    return code;
}

static struct hr_profile_info node_of(const struct hr_profile *profile, size_t at)
{
    struct hr_profile_info info;

    CHECK_OK(hr_profile_node(profile, at, &info));
    return info;
}

static struct hr_profile_options brief(void)
{
    struct hr_profile_options options;

    hr_profile_options_init(&options);
    options.seconds_max = 1;
    return options;
}

/* Spinning for twice the time costs about twice as much, on whatever machine, also while
 * others use it. */
TEST(costs_are_in_proportion)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;
    double ratio, source;

    CHECK_OK(measure("  - source.range: {n: 1000}\n  - debug.spin: {us: 100}\n"
                     "  - debug.spin: {us: 400}\n  - batch.stack: {size: 8}\n",
                     &options, &profile, NULL));
    ratio = node_of(profile, 2).cpu_ns / node_of(profile, 1).cpu_ns;
    source = node_of(profile, 0).cpu_ns / node_of(profile, 1).cpu_ns;
    CHECK(ratio > 3 && ratio < 5);
    CHECK(source < 0.5);
    CHECK(node_of(profile, 1).width >= 0 && hr_profile_seconds(profile) > 0);
    CHECK_ERR(HR_ERR_RANGE, hr_profile_node(profile, 4, &(struct hr_profile_info){0}));
    hr_profile_free(profile);
}

/* A process that grows while it is measured. */
struct growth {
    uint64_t until; /* hr__now_ns() */
    size_t blocks;
    char *memory[200];
};

#define GROWTH_BYTES ((size_t)2 << 20)

static bool grow(void *user, uint64_t done, uint64_t all)
{
    struct growth *g = user;

    (void)done, (void)all;
    if (hr__now_ns() < g->until && g->blocks < COUNT(g->memory)) {
        g->memory[g->blocks] = malloc(GROWTH_BYTES);
        CHECK(g->memory[g->blocks] != NULL);
        memset(g->memory[g->blocks++], 1, GROWTH_BYTES);
    }
    return true;
}

/* Profiles a process that grows for `seconds`; returns how long the profile took. */
static double measure_growing(double seconds, struct hr_profile_options *options)
{
    struct growth g = {.until = hr__now_ns() + (uint64_t)(seconds * 1e9)};
    struct hr_profile *profile = NULL;
    double taken;

    options->progress = grow;
    options->user = &g;
    CHECK_OK(measure("  - source.range: {n: 1000}\n  - debug.spin: {us: 100}\n", options,
                     &profile, NULL));
    CHECK(g.blocks > 3);
    for (size_t i = 0; i < g.blocks; i++)
        free(g.memory[i]);
    taken = hr_profile_seconds(profile);
    hr_profile_free(profile);
    return taken;
}

TEST(what_comes_while_the_process_grows_is_not_counted)
{
    struct hr_profile_options options = brief();

    options.variant = HR_VARIANT_THREADS; /* no second run on all cores */
    options.threads = 1;
    options.seconds_max = 20;
    CHECK(measure_growing(0.6, &options) >= 0.6);
    options.seconds_max = 0.4; /* who never stops is measured nevertheless */
    CHECK(measure_growing(60, &options) >= 0.4);
}

TEST(built_in_nodes_are_measured_on_all_cores_as_well)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;
    double crowd;

    CHECK_OK(measure("  - source.range: {n: 1000}\n  - debug.spin: {us: 100}\n", &options,
                     &profile, NULL));
    crowd = node_of(profile, 1).crowd;
    CHECK(hr__cpu_count() > 1 ? crowd > 0.2 && crowd < 5 : crowd == -1);
    hr_profile_free(profile);
    options.variant = HR_VARIANT_THREADS;
    CHECK_OK(measure("  - source.range: {n: 1000}\n  - debug.spin: {us: 100}\n", &options,
                     &profile, NULL));
    CHECK(node_of(profile, 1).crowd == -1);
    hr_profile_free(profile);
}

/* Windows take records in order; threads write numbers into batches by themselves. */
TEST(what_one_thread_at_a_time_does_is_known_of_nodes_that_see_records_in_order)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;

    CHECK_OK(measure("  - source.range: {n: 1000}\n  - debug.spin: {us: 10}\n"
                     "  - record.filter: {expr: \"value >= 0\"}\n"
                     "  - order.shuffle: {window: 50}\n  - batch.stack: {size: 10}\n",
                     &options, &profile, NULL));
    for (size_t i = 0; i < 3; i++)
        CHECK(node_of(profile, i).ordered == -1);
    for (size_t i = 3; i < 5; i++)
        CHECK(node_of(profile, i).ordered > 0 && node_of(profile, i).ordered <= 1);
    hr_profile_free(profile);
}

TEST(a_node_that_waits_is_seen_to_wait)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;

    options.records_max = 64;
    CHECK_OK(measure("  - source.range: {n: 100}\n  - debug.sleep: {ms: 2}\n"
                     "  - debug.identity: {}\n",
                     &options, &profile, NULL));
    CHECK(node_of(profile, 1).wait_ns > 10 * node_of(profile, 1).cpu_ns);
    CHECK(node_of(profile, 1).wait_ns > 10 * node_of(profile, 2).wait_ns);
    hr_profile_free(profile);
}

TEST(bytes_and_records_are_exact)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;
    struct hr_profile_info node;

    CHECK_OK(measure("  - source.range: {n: 300}\n  - order.shuffle: {}\n"
                     "  - record.filter: {expr: \"value % 3 == 0\"}\n"
                     "  - tensor.cast: {field: value, dtype: int32}\n"
                     "  - batch.stack: {size: 10}\n",
                     &options, &profile, NULL));
    node = node_of(profile, 0);
    CHECK_NEAR(node.bytes_out, 8, 1e-9);
    CHECK(node.records_in > 0 && node.records_in == node.records_out);
    node = node_of(profile, 1);
    CHECK(node.records_in == node.records_out && node.bytes_in == 0);
    node = node_of(profile, 2);
    CHECK_NEAR(node.bytes_in, 8, 1e-9);
    CHECK_NEAR((double)node.records_out / (double)node.records_in, 1.0 / 3, 0.05);
    node = node_of(profile, 3);
    CHECK_NEAR(node.bytes_in, 8, 1e-9);
    CHECK_NEAR(node.bytes_out, 4, 1e-9);
    CHECK(node.fixed == -1);
    hr_profile_free(profile);
}

/* Records of many nodes are rarely timed. A node of which too little is known is not one
 * whose interval is narrow. */
TEST(a_node_of_which_little_is_known_is_measured_longer)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;
    struct hr_str text;

    hr__str_init(&text);
    hr__str_addf(&text, "  - source.range: {n: 100000}\n  - debug.spin: {us: 1000}\n");
    for (int i = 0; i < 900; i++)
        hr__str_addf(&text, "  - debug.identity: {}\n");
    CHECK(hr__str_ok(&text));
    options.seconds_max = 20;
    options.width = 0.5;
    CHECK_OK(measure(hr__str_text(&text), &options, &profile, NULL));
    CHECK(node_of(profile, 1).width >= 0 && node_of(profile, 1).width <= 0.5);
    hr_profile_free(profile);
    hr__str_finish(&text);
}

TEST(a_profile_reads_back_from_its_text)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL, *read = NULL;
    struct hr_error error = {0};
    char *text = NULL, *again = NULL;

    options.seconds_max = 0.1;
    CHECK_OK(measure("  - source.range: {n: 300}\n", &options, &profile, NULL));
    CHECK_OK(hr_profile_print(profile, &text, NULL));
    CHECK_OK(hr_profile_parse(text, strlen(text), "p.json", &read, NULL));
    CHECK_OK(hr_profile_print(read, &again, NULL));
    CHECK_EQ_STR(text, again);
    text[0] = '[';
    CHECK_ERR(HR_ERR_FORMAT,
              hr_profile_parse(text, strlen(text), "p.json", &read, &error));
    hr_free(text);
    hr_free(again);
    hr_profile_free(profile);
    hr_profile_free(read);
    hr_profile_free(NULL);
}

static void check_nothing(const char *pipeline, enum hr_err wants, const char *part)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};

    options.seconds_max = 0.1;
    CHECK_ERR(wants, measure(pipeline, &options, &profile, &error));
    CHECK(profile == NULL);
    CHECK_HAS(error.message, part);
}

TEST(what_gives_nothing_says_why)
{
    check_nothing(
        "  - source.range: {n: 1000}\n  - record.filter: {expr: \"value < 0\"}\n"
        "  - batch.stack: {size: 4}\n",
        HR_ERR_STATE, "'record.filter' (record.filter): it let none of");
    check_nothing("  - source.range: {n: 0}\n  - debug.identity: {}\n", HR_ERR_STATE,
                  "gave no record");
    check_nothing("  - source.range: {n: 1000}\n  - debug.fail: {every: 1}\n",
                  HR_ERR_STATE, "(debug.fail): it failed for");
    check_nothing("  - source.range: {n: 100000}\n  - debug.sleep: {ms: 1}\n"
                  "  - batch.stack: {size: 100000}\n",
                  HR_ERR_TIMEOUT, "no batch was complete");
    check_nothing(
        "  - source.range: {n: 5}\n  - batch.stack: {size: 8, drop_last: true}\n",
        HR_ERR_STATE, "an epoch ends before its first batch is complete");
}

/* However often it reads the data. */
TEST(some_bad_records_do_not_end_it)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;

    options.seconds_max = 0.2;
    CHECK_OK(measure("  - source.range: {n: 100}\n  - debug.fail: {every: 5}\n", &options,
                     &profile, NULL));
    hr_profile_free(profile);
}

static bool refuse(void *user, uint64_t done, uint64_t all)
{
    CHECK(done <= all);
    return ++*(int *)user < 3;
}

TEST(progress_can_stop_it)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;
    int calls = 0;

    options.seconds_max = 60;
    options.progress = refuse;
    options.user = &calls;
    CHECK_ERR(HR_ERR_CANCELLED,
              measure("  - source.range: {n: 1000}\n  - debug.sleep: {ms: 1}\n", &options,
                      &profile, NULL));
    CHECK_EQ_INT(calls, 3);
}

TEST(wrong_options_are_refused)
{
    struct hr_profile_options options = brief();
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_profile(NULL, NULL, &profile, &error));
    options.seconds_max = -1;
    CHECK_ERR(HR_ERR_ARGUMENT,
              measure("  - source.range: {n: 1}\n", &options, &profile, &error));
    CHECK_HAS(error.message, "seconds_max");
    options = brief();
    options.width = NAN;
    CHECK_ERR(HR_ERR_ARGUMENT,
              measure("  - source.range: {n: 1}\n", &options, &profile, &error));
    CHECK_HAS(error.message, "width");
}
