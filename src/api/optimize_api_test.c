/*
 * api/optimize_api_test.c - orders that are taken, and those that are not.
 */
#include "headrace/optimize.h"

#include "api/compare.h"
#include "graph/profile.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/pipeline.h"

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
    struct hr_graph *graph = pipeline_frozen(RANGE SPIN FILTER STACK), *faster = NULL;
    struct hr_profile *profile = pipeline_profile(graph);
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

/* cedar's model does not know that a filter drops records: it moves nothing. */
TEST(cedars_rule_does_not_see_filters)
{
    struct hr_graph *graph = pipeline_frozen(RANGE SPIN FILTER STACK), *same = NULL;
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_optimize_options options;
    struct hr_optimize_result result;
    struct hr_error error = {0};

    hr_optimize_options_init(&options);
    options.rule = HR_RULE_CEDAR;
    CHECK_OK(hr_graph_optimize(graph, profile, &options, &same, &result, &error));
    CHECK(same == graph && result.moved == 0);
    CHECK(!result.best); /* the profile knows better */
    hr_graph_unref(same);
    /* It sees bytes. */
    for (size_t i = 0; i < profile->node_count; i++) {
        struct hr_profile_node *node = &profile->nodes[i];

        node->bytes_in = node->bytes_out = 800;
        if (strcmp(node->name, "filter") == 0)
            node->bytes_out = 8;
    }
    CHECK_OK(hr_graph_optimize(graph, profile, &options, &same, &result, &error));
    CHECK_EQ_STR(names(same), "filter spin stack");
    CHECK(result.best && result.moved == 2);
    hr_graph_unref(same);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(a_graph_in_its_best_order_is_returned_as_it_is)
{
    struct hr_graph *graph = pipeline_frozen(RANGE FILTER SPIN STACK), *same = NULL;
    struct hr_profile *profile = pipeline_profile(graph);
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
    struct hr_graph *graphs[] = {pipeline_frozen(pinned),
                                 pipeline_frozen(RANGE SPIN FILTER STACK)};

    for (size_t i = 0; i < 2; i++) {
        struct hr_profile *profile = pipeline_profile(graphs[i]);
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
    struct hr_graph *graph = pipeline_frozen(RANGE FILTER SPIN STACK), *same = NULL;
    struct hr_profile *profile = pipeline_profile(graph);
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
    struct hr_graph *graph = pipeline_frozen(RANGE SPIN FILTER STACK), *none = NULL;
    struct hr_graph *other = pipeline_frozen(RANGE FILTER SPIN STACK);
    struct hr_profile *profile = pipeline_profile(graph);
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
    struct hr_graph *graphs[2] = {pipeline_frozen(one), pipeline_frozen(two)};
    struct hr_optimize_options options;
    struct hr_comparison found;
    struct hr_error error = {0};

    hr_optimize_options_init(&options);
    CHECK_OK(hr__compare(graphs, &options, true, 1, 1, &found, &error));
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

/* Whole numbers that all types have, and 8 more; the last batch has a range of 3. */
TEST(levels_of_all_types_are_compared)
{
    static const char *const types[] = {"float16", "bfloat16", "float32", "float64"};
    char text[2][256];

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct hr_comparison found;

        for (int k = 0; k < 2; k++)
            snprintf(text[k], sizeof text[k],
                     "  - source.range: {n: 64, start: %d}\n"
                     "  - tensor.cast: {field: value, dtype: %s}\n" STACK,
                     150 + 8 * k, types[i]);
        found = compared(text[0], text[1]);
        CHECK_EQ_STR(found.wrong, "");
        CHECK_NEAR(found.difference, 8.0 / 3, 1e-9);
    }
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

/* ---- states ---- */

static struct hr_iter *open_iter(struct hr_graph *graph, const char *state, int threads)
{
    struct hr_iter_options options;
    struct hr_iter *iter = NULL;
    struct hr_error error = {0};

    hr_iter_options_init(&options);
    options.seed = check_seed();
    options.epochs = 3;
    options.variant = threads > 0 ? HR_VARIANT_THREADS : HR_VARIANT_INLINE;
    options.threads = threads;
    options.state = state;
    if (hr_iter_open(graph, &options, &iter, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return iter;
}

/* The hash of the next batch, and in *ret_state the state after it; 0 at the end. */
static uint64_t next_hash(struct hr_iter *iter, char **ret_state)
{
    struct hr_batch *batch = NULL;
    struct hr_error error = {0};
    enum hr_err code = hr_iter_next(iter, &batch, &error);
    uint64_t hash;

    if (code == HR_ERR_END)
        return 0;
    CHECK_OK(code);
    CHECK_OK(hr_iter_save(iter, ret_state, &error));
    hash = outcome_hash(batch);
    hr_batch_unref(batch);
    return hash;
}

/* After each batch the other graph takes over. */
static void check_turns(struct hr_graph *const graphs[2])
{
    struct hr_iter *whole = open_iter(graphs[0], NULL, 0);
    char *state = NULL, *expected = NULL;

    for (int turn = 0;; turn++) {
        struct hr_iter *iter = open_iter(graphs[turn % 2], state, turn % 3);
        char *before = state;
        uint64_t hash;

        state = NULL;
        hash = next_hash(iter, &state);
        hr_iter_close(iter);
        hr_free(before);
        CHECK(hash == next_hash(whole, &expected));
        if (hash == 0)
            break;
        CHECK_EQ_STR(state, expected);
        hr_free(expected);
        expected = NULL;
    }
    hr_free(state);
    hr_free(expected);
    hr_iter_close(whole);
}

TEST(either_order_resumes_the_other_at_any_batch)
{
    static const char *const pipelines[] = {
        RANGE SPIN FILTER STACK,
        "  - source.range: {n: 300}\n" SPIN FILTER
        "  - order.shuffle: {window: 16}\n" STACK,
        RANGE SPIN FILTER "  - order.take: {count: 57}\n  - batch.stack: {size: 7, "
                          "drop_last: true}\n",
    };

    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        struct hr_graph *graph = pipeline_frozen(pipelines[i]), *faster = NULL,
                        *again = NULL;
        struct hr_profile *profile = pipeline_profile(graph), *other;
        struct hr_optimize_options options;
        struct hr_optimize_result result;
        char written[HR_FINGERPRINT_BYTES];

        CHECK_OK(hr_graph_optimize(graph, profile, NULL, &faster, &result, NULL));
        CHECK_EQ_INT(result.moved, 2);
        CHECK_OK(hr_graph_fingerprint(graph, written));
        CHECK_EQ_STR(faster->states_of, written);
        check_turns((struct hr_graph *[2]){graph, faster});
        other = pipeline_profile(
            faster); /* an order of an order has the states of the first */
        hr_optimize_options_init(&options);
        options.rule = HR_RULE_PECAN;
        CHECK_OK(hr_graph_optimize(faster, other, &options, &again, &result, NULL));
        CHECK_EQ_STR(again->states_of, written);
        hr_graph_unref(again);
        hr_profile_free(other);
        hr_profile_free(profile);
        hr_graph_unref(faster);
        hr_graph_unref(graph);
    }
}

TEST(a_run_profiles_itself)
{
    struct hr_graph *graph = pipeline_frozen(RANGE SPIN FILTER STACK), *faster = NULL;
    struct hr_profile *profile = NULL;
    struct hr_optimize_result result;
    struct hr_iter *iter = open_iter(graph, NULL, 1);
    struct hr_profile_info node;
    char *state = NULL;

    CHECK_OK(hr_iter_profile(iter, &profile, NULL)); /* of nothing yet */
    hr_profile_free(profile);
    while (next_hash(iter, &state) != 0) {
        hr_free(state);
        state = NULL;
    }
    CHECK_OK(hr_iter_profile(iter, &profile, NULL));
    CHECK_OK(hr_profile_node(profile, 2, &node));
    CHECK_EQ_STR(node.node, "spin");
    CHECK_EQ_INT(node.records_in, 3 * 400);
    CHECK(node.cpu_ns > 15e3);
    CHECK_OK(hr_graph_optimize(graph, profile, NULL, &faster, &result, NULL));
    CHECK_EQ_STR(names(faster), "filter spin stack");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_profile(NULL, &profile, NULL));
    hr_iter_close(iter);
    hr_profile_free(profile);
    hr_graph_unref(faster);
    hr_graph_unref(graph);
}
