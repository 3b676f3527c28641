/*
 * graph/graph_test.c - graphs read, built, frozen, identified and printed.
 */
#include "graph/graph_test_util.h"

/* ---- reading ---- */

static const char long_yaml[] =
    "headrace: 1\n"
    "title: a test\n"
    "params:\n"
    "  chance: {type: float, default: 0.25, help: how often}\n"
    "pipeline:\n"
    "  - test.source: {n: 10, id: 3}\n"
    "  - test.shuffle\n"
    "  - test.decode: {}\n"
    "  - test.flip: {p: \"${chance}\"}\n"
    "  - test.batch: {size: 4}\n";

TEST(a_chain_is_read_and_frozen)
{
    struct hr_graph *graph = parse(long_yaml);
    struct hr_node_info node;
    struct hr_field_info field;

    CHECK_EQ_INT(hr_graph_node_count(graph), 5);
    CHECK_EQ_INT(hr_graph_record_count(graph), -1);
    CHECK_ERR(HR_ERR_STATE, hr_graph_field_info(graph, 0, 0, &field));
    freeze(graph);
    freeze(graph); /* repeating it is fine */
    CHECK_OK(hr_graph_node_info(graph, 3, &node));
    CHECK_EQ_STR(node.name, "test.flip");
    CHECK_EQ_INT(node.inputs[0].id, 2);
    CHECK_EQ_INT(hr_graph_record_count(graph), 10);
    CHECK_EQ_INT(hr_graph_field_count(graph, 0), 2);
    CHECK_EQ_INT(hr_graph_field_count(graph, 2), 2);
    CHECK_OK(hr_graph_field_info(graph, 2, 1, &field));
    CHECK_EQ_STR(field.name, "image");
    CHECK_EQ_INT(field.dims[0], -1);
    CHECK_EQ_STR(field.dim_names[0], "height");
    CHECK_EQ_STR(field.dim_names[2], "");
    CHECK_ERR(HR_ERR_RANGE, hr_graph_field_info(graph, 2, 2, &field));
    CHECK_EQ_INT(((const struct fields *)graph->nodes[3].params)->p * 100, 25);
    CHECK_ERR(HR_ERR_STATE,
              hr_graph_add(graph, "test.mix", NULL, NULL, 0, NULL, NULL, NULL));
    CHECK_EQ_INT(opened, closed + 1);
    hr_graph_ref(graph);
    hr_graph_unref(graph);
    hr_graph_unref(graph);
    CHECK_EQ_INT(opened, closed);
}

TEST(all_ways_of_writing_a_graph_give_one_fingerprint)
{
    struct hr_graph *built = hr_graph_create();

    add(built, "test.source", "{\"id\": 3, \"n\": 10}");
    add(built, "test.shuffle", NULL);
    add(built, "test.decode", "from: data\nto: image");
    add(built, "test.flip", "{p: 0.25}");
    add(built, "test.batch", "size: 4.0");
    SAME(parse(long_yaml), built);
    SAME(
        parse(long_yaml),
        parse(
            "{\"headrace\": 1, \"pipeline\": [{\"test.source\": {\"id\": 3, \"n\": 10}}, "
            "\"test.shuffle\", \"test.decode\", {\"test.flip\": {\"p\": 0.25}}, "
            "{\"test.batch\": {\"size\": 4}}]}"));
    SAME(parse(long_yaml),
         parse(HEAD "- test.source: {n: 10, id: 3}\n"
                    "  name: a\n"
                    "- test.shuffle:\n"
                    "  inputs: [a]\n"
                    "- test.decode: {from: data, keep_position: true}\n"
                    "  inputs: test.shuffle\n"
                    "  name: c\n"
                    "- test.flip: {depends_on: c, from: image, p: 25e-2}\n"
                    "- test.batch: {drop_last: false, size: 4}\n"));
}

TEST(whatever_changes_records_changes_the_fingerprint)
{
#define CHAIN(source, flip) parse(HEAD "- " source "\n- test.decode\n- " flip "\n")
    const char *base = fingerprint(CHAIN("test.source", "test.flip"));

    CHECK_EQ_STR(base, fingerprint(CHAIN("test.source: {path: /else}", "test.flip")));
    CHECK_EQ_STR(base, fingerprint(CHAIN("test.source: {id: 0}", "test.flip: {p: 0.5}")));
    CHECK(strcmp(base, fingerprint(CHAIN("test.source: {id: 1}", "test.flip"))) != 0);
    CHECK(strcmp(base, fingerprint(CHAIN("test.source: {n: 5}", "test.flip"))) != 0);
    CHECK(strcmp(base, fingerprint(CHAIN("test.source", "test.flip: {p: 1}"))) != 0);
    CHECK(strcmp(base, fingerprint(CHAIN("test.source", "test.flop"))) != 0);
    CHECK(strcmp(base, fingerprint(parse(HEAD "- test.source\n- test.shuffle\n"
                                              "- test.decode\n- test.flip\n"))) != 0);
}

TEST(the_name_of_a_random_node_counts_and_that_of_a_pure_one_does_not)
{
    /* Two sources in either order under a zip: only the order of adding differs. */
#define TWO(first, second, op)                                                           \
    parse(HEAD "- " first "\n- " second "\n"                                             \
               "- test.decode:\n  name: d\n  inputs: x\n"                                \
               "- " op "\n  inputs: d\n  name: e\n"                                      \
               "- test.zip:\n  inputs: [e, y]\n")
    SAME(TWO("test.source: {id: 1}\n  name: x", "test.source: {id: 2}\n  name: y",
             "test.flop:"),
         TWO("test.source: {id: 2}\n  name: y", "test.source: {id: 1}\n  name: x",
             "test.flop:"));
    SAME(parse(HEAD "- test.source\n- test.decode\n- test.flip\n"),
         parse(HEAD
               "- test.source\n- test.flip:\n  inputs: d\n- test.decode:\n  name: d\n"
               "  inputs: test.source\n"));
    DIFFER(parse(HEAD "- test.source\n- test.decode\n- test.flip\n"),
           parse(HEAD "- test.source\n- test.decode\n- test.flip:\n  name: other\n"));
}

TEST(wiring_counts)
{
#define ZIP(inputs)                                                                      \
    parse(HEAD "- test.source: {id: 1}\n  name: x\n- test.source: {id: 2}\n  name: y\n"  \
               "- test.zip:\n  inputs: " inputs "\n")
    SAME(ZIP("[x, y]"), ZIP("[x, y]"));
    DIFFER(ZIP("[x, y]"), ZIP("[y, x]"));
}

TEST(inputs_may_point_forward_and_numbers_stay)
{
    struct hr_graph *graph = parse(HEAD "- test.decode:\n  inputs: late\n"
                                        "- test.source:\n  name: late\n");

    freeze(graph);
    CHECK_EQ_INT(graph->output, 0);
    CHECK_EQ_STR(graph->nodes[0].name, "test.decode");
    hr_graph_unref(graph);
}

TEST(names_are_made_and_numbered)
{
    struct hr_graph *graph = parse(HEAD "- test.source\n- test.decode\n- test.flip\n- "
                                        "test.flip\n- test.flip\n");

    CHECK_EQ_STR(graph->nodes[3].name, "test.flip2");
    CHECK_EQ_STR(graph->nodes[4].name, "test.flip3");
    hr_graph_unref(graph);
}

/* A node that gets a name, or loses it, changes the name of no other one. */
TEST(a_made_name_counts_the_named_nodes_too)
{
    struct hr_graph *graph = parse(HEAD "- test.source\n- test.decode\n- test.flip:\n"
                                        "  name: mine\n- test.flip\n- test.flip\n");

    CHECK_EQ_STR(graph->nodes[3].name, "test.flip2");
    CHECK_EQ_STR(graph->nodes[4].name, "test.flip3");
    hr_graph_unref(graph);
    graph = parse(HEAD "- test.source\n- test.decode\n- test.flop:\n"
                       "  name: test.flip2\n- test.flip\n- test.flip\n");
    CHECK_EQ_STR(graph->nodes[3].name, "test.flip");
    CHECK_EQ_STR(graph->nodes[4].name, "test.flip3");
    hr_graph_unref(graph);
}

TEST(hints_are_kept_and_are_no_parameters)
{
    struct hr_graph *graph =
        parse(HEAD "- test.source\n- test.decode: {keep_position: true}"
                   "\n- test.flip: {depends_on: [test.source, "
                   "test.decode]}\n");

    freeze(graph);
    CHECK(graph->nodes[1].keep_position);
    CHECK_EQ_INT(graph->nodes[2].depends_count, 2);
    CHECK(hr__doc_get(graph->nodes[1].canonical, "keep_position") == NULL);
    hr_graph_unref(graph);
}

/* ---- printing ---- */

/* Prints the graph in both formats and reads it back; the texts must stand still. */
static void check_round_trip(struct hr_graph *graph)
{
    char expected[HR_FINGERPRINT_BYTES];
    char *yaml, *again, *json;
    struct hr_graph *back;

    freeze(graph);
    CHECK_OK(hr_graph_fingerprint(graph, expected));
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &yaml, NULL));
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_JSON, &json, NULL));
    back = parse_with(yaml, "back.yaml", NULL, 0);
    CHECK_OK(hr_graph_print(back, HR_GRAPH_YAML, &again, NULL));
    CHECK_EQ_STR(again, yaml);
    CHECK_EQ_STR(fingerprint(back), expected);
    CHECK_EQ_STR(fingerprint(parse_with(json, "back.json", NULL, 0)), expected);
    hr_free(yaml);
    hr_free(again);
    hr_free(json);
}

TEST(a_loaded_file_prints_as_written_with_what_was_set)
{
    const struct hr_graph_param params[] = {
        {"where", "here"},
        {"n",     "8"   }
    };
    struct hr_graph *graph = parse_with(declared, "d.yaml", params, 2);
    char *text;

    check_round_trip(graph);
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &text, NULL));
    CHECK_HAS(text, "${n}");
    CHECK_HAS(text, "default: here");
    CHECK_HAS(text, "default: 8");
    CHECK_HAS(text, "help: records");
    hr_free(text);
    hr_graph_unref(graph);
}

TEST(a_built_chain_prints_short_and_reads_back)
{
    struct hr_graph *graph = hr_graph_create();
    char *text;

    add(graph, "test.source", "{path: '/a/${b}/$${c}', n: 5}");
    add(graph, "test.decode", NULL);
    add(graph, "test.flip", "{p: 0.125, keep_position: true}");
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &text, NULL));
    CHECK_HAS(text, "- test.decode\n");
    CHECK(strstr(text, "inputs") == NULL && strstr(text, "name") == NULL);
    hr_free(text);
    check_round_trip(graph);
    hr_graph_unref(graph);
}

TEST(a_built_net_prints_long_and_reads_back)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node a, b;
    char *text;

    CHECK_OK(hr_graph_add(graph, "test.source", "left", NULL, 0, NULL, &a, NULL));
    CHECK_OK(hr_graph_add(graph, "test.source", "right", NULL, 0, "id: 3", &b, NULL));
    CHECK_OK(hr_graph_add(graph, "test.zip", NULL, (struct hr_node[]){b, a}, 2, NULL,
                          NULL, NULL));
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &text, NULL));
    CHECK_HAS(text, "name: left\n");
    CHECK_HAS(text, "inputs:");
    hr_free(text);
    check_round_trip(graph);
    hr_graph_unref(graph);
}

TEST(nodes_added_to_a_loaded_graph_are_printed_too)
{
    struct hr_graph *graph = parse("headrace: 1\noutput: test.decode\npipeline:\n"
                                   "- test.source\n- test.decode\n");

    add(graph, "test.flip", NULL);
    check_round_trip(graph);
    hr_graph_unref(graph);
}
