/*
 * graph/graph_when_test.c - nodes that run for some records, and groups of them in files.
 */
#include "graph/graph_test_util.h"

#define CHAIN HEAD "- test.source: {}\n- test.decode: {}\n"

static struct hr_graph *three(const char *first, const char *second, const char *third)
{
    struct hr_graph *graph = hr_graph_create();

    CHECK(graph != NULL);
    add(graph, "test.source", NULL);
    add(graph, "test.decode", NULL);
    add(graph, "test.flip", first);
    add(graph, "test.flip", second);
    add(graph, "test.flip", third);
    return graph;
}

/* ---- groups ---- */

TEST(a_group_is_its_steps_with_a_draw)
{
    SAME(parse(CHAIN "- apply: {p: 0.8, steps: [test.flip, test.flip: {p: 1}]}\n"
                     "- test.flip:\n"),
         three("{when: {apply: 0.8}}", "{p: 1, when: {apply: 0.8}}", NULL));
    SAME(parse(CHAIN "- apply: {steps: [test.flip]}\n"
                     "- apply:\n    steps: [test.flip: , test.flip: {p: 0.5}]\n"),
         three("{when: {apply: 0.5}}", "{when: {apply2: 0.5}}", "{when: {apply2: 0.5}}"));
}

TEST(a_choice_is_a_part_of_the_draw)
{
    SAME(
        parse(CHAIN "- one_of: {choices: [test.flip, [test.flip, test.flip: {}], []]}\n"),
        three("{when: {one_of: {choice: 0, of: 3}}}",
              "{when: {one_of: {choice: 1, of: 3}}}",
              "{when: {one_of: {choice: 1, of: [2, 2, 2]}}}"));
    SAME(parse(CHAIN "- one_of:\n    weights: [1, 2, 1]\n    choices:\n"
                     "    - test.flip\n    - test.flip\n    - test.flip\n"),
         three("{when: {one_of: 0.25}}", "{when: {one_of: {choice: 1, of: [1, 2, 1]}}}",
               "{when: {one_of: {choice: 2, of: [5, 10, 5]}}}"));
}

TEST(groups_within_groups_have_both_draws)
{
    SAME(parse(CHAIN "- apply:\n    p: 0.5\n    steps:\n"
                     "    - test.flip\n"
                     "    - one_of: {choices: [test.flip, test.flip: {p: 1}]}\n"),
         three("{when: {apply: 0.5}}", "{when: {apply: 0.5, one_of: {choice: 0, of: 2}}}",
               "{p: 1, when: {apply: 0.5, one_of: {choice: 1, of: 2}}}"));
}

TEST(a_named_group_keeps_its_draws_wherever_it_is)
{
    SAME(parse(CHAIN "- apply: {steps: [test.flip]}\n  name: mine\n"
                     "- apply: {steps: [test.flip]}\n"
                     "- test.flip: {when: {apply: 0.5}}\n"),
         three("{when: {mine: 0.5}}", "{when: {apply2: 0.5}}", "{when: {apply: 0.5}}"));
}

TEST(a_group_can_read_another_node_than_the_one_before)
{
    static const char text[] =
        HEAD "- test.source: {}\n- test.decode: {}\n  name: photo\n"
             "- test.flip:\n    p: 1\n  name: left\n"
             "- apply: {steps: [test.flip, test.flip]}\n"
             "  inputs: [photo]\n  name: right\n"
             "- test.zip:\n  inputs: [left, test.flip3]\n";
    struct hr_graph *graph = parse(text);

    CHECK_EQ_INT(graph->nodes[3].inputs[0], 1);
    CHECK_EQ_INT(graph->nodes[4].inputs[0], 3);
    hr_graph_unref(graph);
}

TEST(parameters_of_the_file_reach_a_group)
{
    SAME(parse("headrace: 1\nparams: {p: 0.25, w: [1, 3]}\npipeline:\n"
               "- test.source\n- test.decode\n"
               "- apply: {p: \"${p}\", steps: [test.flip]}\n"
               "- one_of: {weights: \"${w}\", choices: [test.flip, test.flip]}\n"),
         three("{when: {apply: 0.25}}", "{when: {one_of: 0.25}}",
               "{when: {one_of: {choice: 1, of: [1, 3]}}}"));
}

TEST(what_is_printed_reads_back_the_same)
{
    static const char text[] =
        CHAIN "- apply: {p: 0.8, steps: [test.flip]}\n"
              "- one_of: {choices: [[test.flip, test.flip], test.flip]}\n";
    struct hr_graph *graph = parse(text);
    char *printed = NULL;

    CHECK_OK(hr_graph_print(graph, HR_GRAPH_YAML, &printed, NULL));
    CHECK(strstr(printed, "apply: 0.8") != NULL);
    SAME(graph, parse(printed));
    hr_free(printed);
    graph = three("{when: {a: 0.8}}", NULL, "{when: {b: {choice: 0, of: 2}}}");
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_JSON, &printed, NULL));
    SAME(graph, parse(printed));
    hr_free(printed);
}

/* ---- meaning ---- */

TEST(draws_are_part_of_the_fingerprint)
{
    DIFFER(three("{when: {a: 0.8}}", NULL, NULL), three(NULL, NULL, NULL));
    DIFFER(three("{when: {a: 0.8}}", NULL, NULL), three("{when: {a: 0.7}}", NULL, NULL));
    DIFFER(three("{when: {a: 0.8}}", NULL, NULL), three("{when: {b: 0.8}}", NULL, NULL));
    SAME(three("{when: {}}", "{when: null}", NULL), three(NULL, NULL, NULL));
}

TEST(parts_of_one_draw_meet_exactly)
{
    struct hr_graph *graph = three("{when: {a: {choice: 0, of: [0.1, 0.2, 0.4]}}}",
                                   "{when: {a: {choice: 1, of: [0.1, 0.2, 0.4]}}}",
                                   "{when: {a: {choice: 2, of: [0.1, 0.2, 0.4]}}}");

    CHECK(graph->nodes[2].when[0].from == 0);
    CHECK(graph->nodes[2].when[0].below == graph->nodes[3].when[0].from);
    CHECK(graph->nodes[3].when[0].below == graph->nodes[4].when[0].from);
    CHECK(graph->nodes[4].when[0].below == 1);
    hr_graph_unref(graph);
}

/* ---- what is refused ---- */

TEST(wrong_groups_are_refused_where_they_are_wrong)
{
    refused(CHAIN "- apply: {p: 0.5, steps: []}\n", HR_ERR_GRAPH, 5, 26,
            "at least one step");
    refused(CHAIN "- apply: [test.flip]\n", HR_ERR_GRAPH, 5, 10,
            "\"apply\" is written as {steps: [ops], p: ...}");
    refused(CHAIN "- apply: {steps: [test.flip], q: 1}\n", HR_ERR_GRAPH, 5, 10,
            "is written as");
    refused(CHAIN "- one_of: {choices: [[], []]}\n", HR_ERR_GRAPH, 5, 3,
            "at least one step");
    refused(CHAIN "- one_of: {choices: [test.flip], weights: [1, 2]}\n", HR_ERR_GRAPH, 5,
            43, "as many weights as choices");
    refused(CHAIN "- one_of: {choices: [test.flip, test.flip], weights: [0, 0]}\n",
            HR_ERR_RANGE, 5, 54, "with a sum above 0");
    refused(CHAIN "- apply: {p: 1.5, steps: [test.flip]}\n", HR_ERR_RANGE, 5, 14,
            "a probability from 0 to 1, not the float 1.5");
    refused(CHAIN "- apply: {steps: [test.flip]}\n  test.flip: {}\n", HR_ERR_GRAPH, 6, 3,
            "has the keys name and inputs beside it");
    refused(CHAIN "- apply: {steps: [test.flip]}\n  name: a\n"
                  "- apply: {steps: [test.flip]}\n  name: a\n",
            HR_ERR_GRAPH, 8, 9, "another group has this name already");
    refused(CHAIN "- apply: {steps: [test.flip: {}, {test.flip: {}, inputs: [x]}]}\n",
            HR_ERR_GRAPH, 5, 58, "reads the step before it");
    refused(CHAIN "- apply: {steps: [3]}\n", HR_ERR_GRAPH, 5, 19, "a step of a group is");
    refused(CHAIN "- apply: {steps: [test.flop: {when: {a: x}}]}\n", HR_ERR_TYPE, 5, 41,
            "a probability or {choice: ..., of: ...}");
}

TEST(a_step_that_other_records_would_miss_is_refused)
{
    refused(HEAD "- test.source: {}\n- apply: {steps: [test.decode]}\n", HR_ERR_GRAPH, 4,
            19, "the others would");
    refused(CHAIN "- apply: {steps: [test.filter]}\n", HR_ERR_GRAPH, 5, 19,
            "it cannot run for some records only");
    refused(CHAIN "- apply: {steps: [test.shuffle]}\n", HR_ERR_GRAPH, 5, 19, "");
}

TEST(wrong_draws_are_refused)
{
    refused(CHAIN "- test.flip: {when: 0.5}\n", HR_ERR_TYPE, 5, 21,
            "a map from names of draws to probabilities");
    refused(CHAIN "- test.flip: {when: {a: {choice: 2, of: 2}}}\n", HR_ERR_RANGE, 5, 25,
            "{choice: number from 0");
    refused(CHAIN "- test.flip: {when: {a: {choice: 0}}}\n", HR_ERR_TYPE, 5, 25, "");
    refused(CHAIN "- test.flip: {when: {a: {choice: -1, of: [1]}}}\n", HR_ERR_RANGE, 5,
            25, "");
    refused(CHAIN "- test.flip: {when: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, "
                  "i: 1}}\n",
            HR_ERR_LIMIT, 5, 21, "at most 8 draws");
}

TEST(every_allocation_of_a_group_can_fail)
{
    static const char text[] =
        CHAIN "- one_of: {weights: [1, 2], choices: [[test.flip, test.flip], "
              "apply: {p: 0.5, steps: [test.flip: {when: {x: 1}}]}]}\n  inputs: "
              "test.decode\n";
    struct hr_graph *graph = NULL;
    int failed = 0;

    for (uint64_t at = 1; graph == NULL; at++) {
        hr__fault_arm(HR_FAULT_ALLOC, at);
        if (hr_graph_parse(text, strlen(text), "g.yaml", NULL, 0, &graph, NULL) != HR_OK)
            failed++;
        hr__fault_arm(0, 0);
        CHECK(at < 2000);
    }
    CHECK(failed > 50);
    hr_graph_unref(graph);
}
