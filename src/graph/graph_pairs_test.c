/*
 * graph/graph_pairs_test.c - whether zips join records that belong together is found in
 * time that does not grow with the number of ways through the graph: those here have
 * 2^40.
 */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "core/str.h"
#include "tests/support/check.h"

#define LEVELS 40

/* ---- ops ---- */

struct order {
    int64_t n, seed;
};

static int compared; /* questions whether an order draws by its parameters */

static const struct hr_param order_params[] = {
    HR_P_INT(struct order, n, .fallback = "5", HR_RANGE(0, 1e9), .help = "records"),
    HR_P_INT(struct order, seed, .fallback = "-1", .help = "decides the order"),
};

static uint64_t source_count(const void *params, const void *state)
{
    (void)state;
    return (uint64_t)((const struct order *)params)->n;
}

static uint64_t order_count(const void *params, const void *state, uint64_t n)
{
    (void)params, (void)state;
    return n;
}

static bool draws_by_params(const void *params)
{
    compared++;
    return ((const struct order *)params)->seed >= 0;
}

static enum hr_err concat_count(const void *params, const struct hr_merge_inputs *inputs,
                                uint64_t *ret_count, struct hr_error *error)
{
    (void)params, (void)error;
    *ret_count = 0;
    for (size_t i = 0; i < inputs->count; i++)
        *ret_count += inputs->counts[i];
    return HR_OK;
}

#define ORDER .version = 1, HR_PARAMS(order_params, struct order)
#define TWO .inputs_min = 2, .inputs_max = 2

static const struct hr_op op_source = {
    .name = "test.source", .kind = HR_OP_SOURCE, ORDER, .source.count = source_count};
static const struct hr_op op_shuffle = {
    .name = "test.shuffle",
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_RANDOM,
    ORDER,
    .order = {.count = order_count, .draws_by_params = draws_by_params}
};
static const struct hr_op op_concat = {
    .name = "test.concat", .kind = HR_OP_MERGE, ORDER, TWO, .merge.count = concat_count};
static const struct hr_op op_zip = {.name = "test.zip", .kind = HR_OP_ZIP, ORDER, TWO};

const struct hr_op *const *hr__op_list(size_t *ret_count)
{
    static const struct hr_op *const list[] = {&op_concat, &op_shuffle, &op_source,
                                               &op_zip};

    *ret_count = sizeof list / sizeof list[0];
    return list;
}

/* ---- graphs ---- */

static void add_two(struct hr_str *text, const char *op, const char *name,
                    const char *first, const char *second)
{
    hr__str_addf(text, "  - test.%s: {}\n    name: %s\n    inputs: [%s, %s]\n", op, name,
                 first, second);
}

/* A source, in an order if there is a seed, and LEVELS nodes that read the one before
 * them twice; the last one is `name`. */
static void add_levels(struct hr_str *text, const char *op, const char *name, int seed)
{
    char before[32], after[32];

    snprintf(before, sizeof before, "%s0", name);
    hr__str_add(text, "  - test.source: {}\n    inputs: []\n");
    if (seed != 0)
        hr__str_addf(text, "  - test.shuffle: {seed: %d}\n", seed);
    hr__str_addf(text, "    name: %s\n", before);
    for (int i = 1; i <= LEVELS; i++) {
        snprintf(after, sizeof after, i < LEVELS ? "%s%d" : "%s", name, i);
        add_two(text, op, after, before, before);
        memcpy(before, after, sizeof before);
    }
}

static enum hr_err freeze(struct hr_str *text, struct hr_error *error)
{
    struct hr_graph *graph = NULL;
    enum hr_err code;

    CHECK(hr__str_ok(text));
    CHECK_OK(hr_graph_parse(hr__str_text(text), text->length, "g.yaml", NULL, 0, &graph,
                            error));
    compared = 0;
    code = hr_graph_freeze(graph, error);
    hr_graph_unref(graph);
    hr__str_finish(text);
    return code;
}

static void begin(struct hr_str *text)
{
    hr__str_init(text);
    hr__str_add(text, "headrace: 1\npipeline:\n");
}

/* ---- tests ---- */

/* Two merges of zips, joined. */
static enum hr_err join_zips(int seed, int other, struct hr_error *error)
{
    struct hr_str text;

    begin(&text);
    for (int i = 0; i < 2; i++) {
        const char *names[] = {i == 0 ? "a" : "c", i == 0 ? "b" : "d"};

        for (int k = 0; k < 2; k++)
            add_levels(&text, "zip", names[k], i == 0 ? seed : other);
        add_two(&text, "concat", i == 0 ? "ab" : "cd", names[0], names[1]);
    }
    add_two(&text, "zip", "pairs", "ab", "cd");
    return freeze(&text, error);
}

TEST(zips_before_merges_are_asked_once)
{
    struct hr_error error = {0};

    CHECK_OK(join_zips(0, 0, &error));
    CHECK_OK(join_zips(1, 1, &error));
    CHECK_ERR(HR_ERR_GRAPH, join_zips(1, 2, &error));
    CHECK_HAS(error.message, "does not give its inputs the same order");
}

static enum hr_err join_merges(int seed, int other, struct hr_error *error)
{
    struct hr_str text;

    begin(&text);
    add_levels(&text, "concat", "a", seed);
    add_levels(&text, "concat", "b", other);
    add_two(&text, "zip", "pairs", "a", "b");
    return freeze(&text, error);
}

TEST(merges_of_merges_are_compared_once)
{
    struct hr_error error = {0};

    CHECK_OK(join_merges(0, 0, &error));
    CHECK_OK(join_merges(1, 1, &error));
    CHECK(compared > 0 && compared < LEVELS);
    CHECK_ERR(HR_ERR_GRAPH, join_merges(1, 2, &error));
    CHECK_ERR(HR_ERR_GRAPH, join_merges(-1, -1, &error));
}

/* Nodes that are the same in two ways are the same as each other. */
TEST(merges_of_nodes_that_were_compared_with_others_are_compared)
{
    static const struct {
        int seeds[4];
        enum hr_err code;
    } cases[] = {
        {{1, 1, 1, 1}, HR_OK       },
        {{1, 1, 2, 2}, HR_OK       },
        {{1, 2, 1, 2}, HR_ERR_GRAPH},
        {{1, 1, 1, 2}, HR_ERR_GRAPH},
        {{1, 2, 2, 2}, HR_ERR_GRAPH},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hr_error error = {0};
        struct hr_str text;

        begin(&text);
        for (int k = 0; k < 4; k++)
            hr__str_addf(&text,
                         "  - test.source: {}\n    inputs: []\n"
                         "  - test.shuffle: {seed: %d}\n    name: %c\n",
                         cases[i].seeds[k], 'a' + k);
        add_two(&text, "concat", "m", "a", "c");
        add_two(&text, "concat", "n", "b", "d");
        add_two(&text, "concat", "mm", "m", "n");
        add_two(&text, "concat", "nn", "n", "m");
        add_two(&text, "zip", "pairs", "mm", "nn");
        CHECK_ERR(cases[i].code, freeze(&text, &error));
    }
}
