/*
 * graph/graph_cache_test.c - where caches may be, what is said where they may not, and
 * which graphs share their records. The ops are the library's: the rules are about what
 * these declare.
 */
#include "graph/graph_private.h"

#include "core/file.h"
#include "core/str.h"
#include "tests/support/check.h"

#define HEAD "headrace: 1\npipeline:\n"
#define FILES "source.files: {path: ${folder}}\n"
#define RANGE "  - " FILES "  - image.decode: {}\n"
#define CROP "  - image.random_crop: {size: 8}\n    name: crop\n"
#define CACHE "  - flow.cache: {}\n    name: cache\n"

static const char *folder(void)
{
    static char root[400];
    char path[512];

    if (root[0] != '\0')
        return root;
    snprintf(root, sizeof root, "%s/photos", check_temp_dir());
    CHECK_OK(hr__file_make_folder(root, 0777, NULL));
    snprintf(path, sizeof path, "%s/1.jpg", root);
    CHECK_OK(hr__file_replace(path, "no photo", 8, NULL));
    return root;
}

/* ${folder} stands for the folder of photos. */
static enum hr_err
parse_text(const char *text, struct hr_graph **ret_graph, struct hr_error *error)
{
    const char *place;
    struct hr_str whole;
    enum hr_err code;

    hr__str_init(&whole);
    for (; (place = strstr(text, "${folder}")) != NULL; text = place + 9) {
        hr__str_add_bytes(&whole, text, (size_t)(place - text));
        hr__str_add(&whole, folder());
    }
    hr__str_add(&whole, text);
    code = hr_graph_parse(hr__str_text(&whole), whole.length, "test.yaml", NULL, 0,
                          ret_graph, error);
    hr__str_finish(&whole);
    return code;
}

static struct hr_graph *parse(const char *text)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    if (parse_text(text, &graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, text);
    return graph;
}

static struct hr_graph *frozen(const char *text)
{
    struct hr_graph *graph = parse(text);
    struct hr_error error = {0};

    if (hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, text);
    return graph;
}

/* The message with which freezing fails. */
static const char *refusal(const char *text)
{
    static struct hr_error error;
    struct hr_graph *graph = parse(text);

    error = (struct hr_error){0};
    CHECK_ERR(HR_ERR_GRAPH, hr_graph_freeze(graph, &error));
    hr_graph_unref(graph);
    return error.message;
}

static struct hr_hash128 content(const char *text, const char *name)
{
    struct hr_graph *graph = frozen(text);
    struct hr_hash128 hash = {0, 0};
    uint32_t order[64], node = 0;

    for (uint32_t i = 0; i < graph->count; i++) /* chains are in order */
        order[i] = i;
    while (strcmp(graph->nodes[node].name, name) != 0)
        node++;
    CHECK_OK(hr__graph_content(graph, order, node, &hash));
    hr_graph_unref(graph);
    return hash;
}

static uint32_t draws_for(const struct hr_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return graph->nodes[i].draws_for;
    CHECK(false);
    return 0;
}

TEST(random_ops_before_a_cache_are_refused_with_both_ways_out)
{
    const char *message = refusal(HEAD RANGE CROP CACHE);

    CHECK_HAS(message, "'cache'");
    CHECK_HAS(message, "'crop' (image.random_crop)");
    CHECK_HAS(message, "put 'cache' before 'crop'");
    CHECK_HAS(message, "`random: freeze`");
    hr_graph_unref(frozen(HEAD RANGE CACHE CROP));
    hr_graph_unref(frozen(HEAD RANGE "  - order.shuffle: {}\n" CACHE));
}

TEST(draws_may_be_frozen_for_some_epochs_or_for_ever)
{
    struct hr_graph *graph =
        frozen(HEAD RANGE CROP "  - flow.cache: {random: freeze}\n    name: cache\n"
                               "  - image.flip: {p: 0.5}\n    name: flip\n");

    CHECK_EQ_INT(draws_for(graph, "crop"), HR_DRAWS_ONCE);
    CHECK_EQ_INT(draws_for(graph, "cache"), HR_DRAWS_ONCE);
    CHECK_EQ_INT(draws_for(graph, "flip"), 0);
    hr_graph_unref(graph);
    graph = frozen(HEAD RANGE CROP "  - flow.cache: {refresh: 3}\n    name: cache\n");
    CHECK_EQ_INT(draws_for(graph, "crop"), 3);
    hr_graph_unref(graph);
    graph = frozen(HEAD RANGE CROP "  - flow.cache: {random: freeze}\n"
                                   "  - flow.cache: {}\n    name: second\n");
    CHECK_EQ_INT(draws_for(graph, "second"), HR_DRAWS_ONCE);
    hr_graph_unref(graph);
    CHECK_HAS(refusal(HEAD RANGE CROP "  - flow.cache: {refresh: 2}\n"
                                      "  - flow.cache: {refresh: 3}\n"),
              "every 2 epochs: remove one of the two caches");
}

TEST(both_kinds_of_freezing_at_once_are_refused)
{
    static const char text[] =
        HEAD RANGE "  - flow.cache: {random: freeze, refresh: 2}\n";
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_ARGUMENT, parse_text(text, &graph, &error));
    CHECK_EQ_STR(error.param, "refresh");
}

TEST(draws_that_another_branch_shares_cannot_be_frozen)
{
    CHECK_HAS(refusal("headrace: 1\npipeline:\n"
                      "  - " FILES "    name: files\n"
                      "  - image.decode: {}\n    name: range\n    inputs: [files]\n"
                      "  - image.random_crop: {size: 8}\n"
                      "    name: crop\n    inputs: [range]\n"
                      "  - flow.cache: {random: freeze}\n"
                      "    name: cache\n    inputs: [crop]\n"
                      "  - image.invert: {p: 1}\n"
                      "    name: other\n    inputs: [crop]\n"
                      "  - flow.zip: {prefix: [a_, b_]}\n"
                      "    name: both\n    inputs: [cache, other]\n"),
              "for another branch");
}

TEST(what_joins_records_cannot_be_cached)
{
    const char *message = refusal(HEAD RANGE "  - batch.stack: {size: 8}\n    name: b\n"
                                             "  - batch.unbatch: {}\n" CACHE);

    CHECK_HAS(message, "put 'cache' before 'b'");
}

TEST(zips_of_inputs_in_orders_of_their_own_cannot_be_cached)
{
#define TWO(order)                                                                       \
    "headrace: 1\npipeline:\n"                                                           \
    "  - source.range: {n: 64}\n    name: one\n"                                         \
    "  - source.range: {n: 64, start: 5}\n    name: two\n" order                         \
    "  - flow.zip: {prefix: [a_, b_]}\n    name: zip\n    inputs: [one, last]\n"         \
    "  - flow.cache: {}\n    name: cache\n    inputs: [zip]\n"
    CHECK_HAS(refusal(TWO("  - order.take: {count: 64}\n    name: last\n"
                          "    inputs: [two]\n")),
              "put 'last' after 'zip'");
    hr_graph_unref(frozen(TWO("  - debug.identity: {}\n    name: last\n"
                              "    inputs: [two]\n")));
}

TEST(orders_do_not_count_in_what_records_are_of_and_all_else_does)
{
    struct hr_hash128 first = content(HEAD RANGE CACHE, "cache");

#define SAME(text) hr__hash_equal(first, content(text, "cache"))
    CHECK(SAME(HEAD RANGE
               "  - order.shuffle: {seed: 3}\n  - order.take: {count: 5}\n" CACHE));
    CHECK(SAME(HEAD RANGE CACHE CROP));
    CHECK(SAME(HEAD RANGE
               "  - flow.cache: {folder: /tmp/x, budget: 3GB}\n    name: cache\n"));
    CHECK(!SAME(HEAD RANGE "  - image.resize: {size: 8}\n" CACHE));
    CHECK(!SAME(HEAD RANGE "  - debug.identity: {}\n" CACHE));
    CHECK(!SAME(HEAD "  - " FILES "  - image.decode: {mode: exact}\n" CACHE));
}
