/*
 * graph/graph_permute_test.c - copies of a graph in other orders.
 */
#include "graph/graph_test_util.h"

#define CHAIN                                                                            \
    HEAD "- test.source: {n: 7}\n"                                                       \
         "- test.decode: {}\n"                                                           \
         "- test.flip: {}\n"                                                             \
         "- test.flip: {p: 0.25, keep_position: true}\n"                                 \
         "- test.flop: {}\n  name: last\n"

static struct hr_graph *permuted(const struct hr_graph *graph, const uint32_t *nodes)
{
    struct hr_graph *copy = NULL;
    struct hr_error error = {0};

    CHECK_OK(hr__graph_permute(graph, nodes, &copy, &error));
    return copy;
}

TEST(a_copy_in_the_written_order_is_the_graph)
{
    static const uint32_t written[] = {0, 1, 2, 3, 4};
    struct hr_graph *graph = parse(CHAIN);
    struct hr_graph *copy = permuted(graph, written);

    CHECK(copy->nodes[3].keep_position);
    CHECK(copy->codes == graph->codes);
    CHECK_EQ_STR(copy->file, graph->file);
    for (size_t i = 0; i < graph->count; i++)
        CHECK_EQ_INT(copy->nodes[i].line, graph->nodes[i].line);
    SAME(graph, copy);
    CHECK_EQ_INT(opened, closed);
}

TEST(nodes_keep_their_names_and_draws_in_other_places)
{
    static const uint32_t other[] = {0, 1, 4, 3, 2}, back[] = {0, 1, 4, 3, 2};
    struct hr_graph *graph = parse(CHAIN);
    struct hr_graph *copy = permuted(graph, other), *again;

    CHECK_EQ_STR(copy->nodes[2].name, "last");
    CHECK_EQ_STR(copy->nodes[3].name, "test.flip2");
    CHECK_EQ_STR(copy->nodes[4].name, "test.flip");
    for (size_t i = 0; i < graph->count; i++) {
        CHECK(copy->nodes[i].draw_id == graph->nodes[other[i]].draw_id);
        CHECK_EQ_INT(copy->nodes[i].input_count, i > 0);
        CHECK(i == 0 || copy->nodes[i].inputs[0] == i - 1);
    }
    again = permuted(copy, back);
    DIFFER(hr_graph_ref(graph), copy);
    SAME(graph, again);
}

TEST(a_prefix_has_the_nodes_before_one_and_their_draws)
{
    struct hr_graph *graph = parse(CHAIN), *copy = NULL;
    uint32_t places[5];

    CHECK_OK(hr__graph_prefix(graph, 2, places, &copy, NULL));
    CHECK_EQ_INT(copy->count, 3);
    CHECK_EQ_INT(places[2], 2);
    CHECK_EQ_INT(places[3], graph->count);
    CHECK(copy->nodes[2].draw_id == graph->nodes[2].draw_id);
    freeze(copy);
    freeze(graph);
    CHECK(hr__hash_equal(copy->nodes[1].fingerprint, graph->nodes[1].fingerprint));
    hr_graph_unref(copy);
    hr_graph_unref(graph);
}

TEST(a_node_where_it_does_not_fit_fails_the_freeze_with_its_line)
{
    static const uint32_t other[] = {0, 2, 1, 3, 4};
    struct hr_graph *graph = parse(CHAIN);
    struct hr_graph *copy = permuted(graph, other);
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_GRAPH, hr_graph_freeze(copy, &error));
    CHECK_EQ_STR(error.node, "test.flip");
    CHECK_EQ_INT(error.line, 5);
    hr_graph_unref(copy);
    freeze(graph);
    hr_graph_unref(graph);
}

TEST(rewrites_go_with_their_nodes)
{
    static const uint32_t other[] = {0, 1, 4, 3, 2};
    struct hr_graph *graph = parse(CHAIN), *copy;

    CHECK_OK(hr__graph_make_after(graph, 2));
    copy = permuted(graph, other);
    CHECK_EQ_INT(copy->rewrite_count, 1);
    CHECK_EQ_INT(copy->rewrites[0].node, 4);
    hr_graph_unref(copy);
    hr_graph_unref(graph);
}

static int released;

static void release(void *user)
{
    (void)user;
    released++;
}

static enum hr_err call(void *user, struct hr_code_call *unused, struct hr_error *error)
{
    (void)user, (void)unused, (void)error;
    return HR_OK;
}

TEST(code_lives_as_long_as_the_last_copy)
{
    static const uint32_t written[] = {0, 1, 2, 3, 4};
    struct hr_graph *graph = parse(CHAIN), *copy;
    struct hr_code code = {.call = call, .release = release, .identity = "c"};
    struct hr_error error = {0};

    CHECK_OK(hr__code_table_add(graph->codes, "c", &code, &error));
    copy = permuted(graph, written);
    hr_graph_unref(graph);
    CHECK_EQ_INT(released, 0);
    hr_graph_unref(copy);
    CHECK_EQ_INT(released, 1);
}

TEST(what_read_a_node_reads_the_one_inserted_after_it)
{
    struct hr_graph *graph = parse(CHAIN), *copy = NULL;
    struct hr_error error = {0};
    struct hr_doc *given = hr__doc_new(HR_DOC_MAP);

    CHECK(given != NULL);
    CHECK_OK(hr__doc_set(given, "p", hr__doc_double(0.75)));
    CHECK_OK(hr__graph_insert(graph, 1, "test.flip", given, &copy, &error));
    CHECK_EQ_INT(copy->count, graph->count + 1);
    CHECK_EQ_STR(copy->nodes[2].op->name, "test.flip");
    for (size_t i = 0; i < graph->count; i++) {
        size_t at = i + (i > 1);

        CHECK_EQ_STR(copy->nodes[at].name, graph->nodes[i].name);
        CHECK(copy->nodes[at].draw_id == graph->nodes[i].draw_id);
    }
    for (size_t i = 1; i < copy->count; i++)
        CHECK_EQ_INT(copy->nodes[i].inputs[0], i - 1);
    CHECK(strcmp(copy->nodes[2].name, "test.flip") != 0); /* that is another node's */
    CHECK_OK(hr__graph_freeze(copy, &error));
    hr__graph_unref(copy);
    CHECK_OK(hr__graph_insert(graph, (uint32_t)graph->count - 1, "test.flip", NULL, &copy,
                              &error));
    CHECK_OK(hr__graph_freeze(copy, &error));
    CHECK_EQ_INT(copy->output, graph->count);
    hr__graph_unref(copy);
    given = hr__doc_new(HR_DOC_MAP);
    CHECK(given != NULL);
    CHECK_OK(hr__doc_set(given, "nothing", hr__doc_int(1)));
    copy = NULL;
    if (hr__graph_insert(graph, 0, "test.flip", given, &copy, &error) == HR_OK)
        CHECK(hr__graph_freeze(copy, &error) != HR_OK);
    CHECK_HAS(error.message, "nothing");
    hr__graph_unref(copy);
    CHECK_ERR(HR_ERR_NOT_FOUND,
              hr__graph_insert(graph, 0, "test.unheard_of", NULL, &copy, &error));
    hr__graph_unref(graph);
}
