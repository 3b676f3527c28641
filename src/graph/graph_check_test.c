/*
 * graph/graph_check_test.c - what is refused: files, wirings, orders, arguments; and that
 * a failure leaves everything as it was.
 */
#include "graph/graph_test_util.h"

/* ---- wrong graphs ---- */

TEST(wrong_files_are_refused_where_they_are_wrong)
{
    refused("pipeline: []\n", HR_ERR_FORMAT, 1, 1, "the key \"headrace: 1\" is missing");
    refused("headrace: 2\npipeline: []\n", HR_ERR_UNSUPPORTED, 1, 11, "format version 2");
    refused("headrace: 1\npipelin: []\n", HR_ERR_GRAPH, 2, 1,
            "key \"pipelin\" is not known; did you mean \"pipeline\"?");
    refused("headrace: 1\n", HR_ERR_GRAPH, 1, 1, "\"pipeline\" is missing");
    refused("headrace: 1\npipeline: []\n", HR_ERR_GRAPH, 2, 11, "is empty");
    refused(HEAD "- test.sauce\n", HR_ERR_NOT_FOUND, 3, 3,
            "there is no op \"test.sauce\"; did you mean \"test.source\"?");
    refused(HEAD "- test.source\n  test.flip: {}\n", HR_ERR_FORMAT, 4, 12, "");
    refused(HEAD "- test.source: {}\n  test.flip: {}\n", HR_ERR_GRAPH, 4, 3,
            "has two ops");
    refused(HEAD "- test.source: {}\n  nam: x\n", HR_ERR_GRAPH, 4, 3,
            "did you mean \"name\"?");
    refused(HEAD "- name: x\n", HR_ERR_GRAPH, 3, 3, "has no op");
    refused(HEAD "- 3\n", HR_ERR_GRAPH, 3, 3, "not the int 3");
    refused(HEAD "- test.source: {m: 3}\n", HR_ERR_ARGUMENT, 3, 17,
            "node 'test.source' (test.source): parameter \"m\" is not known; ");
    refused(
        HEAD "- test.source\n- test.batch: {size: 0}\n", HR_ERR_RANGE, 4, 22,
        "node 'test.batch' (test.batch): parameter \"size\" must be at least 1, not 0");
    refused(HEAD "- test.source: {keep_position: 3}\n", HR_ERR_TYPE, 3, 32,
            "parameter \"keep_position\" wants a bool");
}

TEST(wrong_wiring_is_refused)
{
    refused(HEAD "- test.flip\n", HR_ERR_GRAPH, 3, 3, "a pipeline begins with a source");
    refused(HEAD "- test.source\n- test.flip:\n  inputs: surce\n", HR_ERR_GRAPH, 5, 11,
            "node 'test.flip' (test.flip): there is no node 'surce'");
    refused(HEAD "- test.source:\n  name: a\n- test.source:\n  name: a\n", HR_ERR_GRAPH,
            5, 3, "node 'a' (test.source): another node has the name 'a'");
    refused(HEAD "- test.source\n- test.source\n", HR_ERR_GRAPH, 3, 3,
            "neither it nor 'test.source2' is an input");
    refused(HEAD "- test.source\n- test.zip\n", HR_ERR_GRAPH, 4, 3,
            "it takes 2 to 3 inputs, and has 1");
    refused(HEAD "- test.source\n- test.source:\n  inputs: test.source\n", HR_ERR_GRAPH,
            4, 3, "a source has no inputs");
    refused(HEAD "- test.source\n- test.decode:\n  name: a\n  inputs: b\n- test.flip:\n"
                 "  name: b\n  inputs: a\n",
            HR_ERR_GRAPH, 4, 3, "lead back to itself");
    refused("headrace: 1\noutput: test.source\npipeline:\n- test.source\n- test.decode\n",
            HR_ERR_GRAPH, 4, 3, "the last one is 'test.decode'");
    refused(HEAD "- test.source\n- test.decode: {depends_on: test.surce}\n", HR_ERR_GRAPH,
            4, 3, "did you mean 'test.source'?");
    refused(HEAD "- test.source: {depends_on: test.decode}\n- test.decode\n",
            HR_ERR_GRAPH, 3, 3, "is not before it in the graph");
}

TEST(wrong_orders_are_refused_with_what_would_mend_them)
{
    refused(
        HEAD "- test.source\n- test.flip\n", HR_ERR_GRAPH, 4, 3,
        "node 'test.flip' (test.flip): there is no field \"image\"; fields here: data, "
        "label; put test.decode before it, which makes \"image\" from \"data\"");
    refused(HEAD "- test.source\n- test.decode\n- test.flip: {from: imgae}\n",
            HR_ERR_GRAPH, 5, 21,
            "there is no field \"imgae\"; did you mean \"image\"? Fields here: label, "
            "image");
    refused(HEAD "- test.source\n- test.flip: {from: data}\n", HR_ERR_TYPE, 4, 21,
            "is encoded bytes, not pixels: put image.decode before it");
    refused(HEAD "- test.source\n- test.batch: {size: 2}\n- test.shuffle\n", HR_ERR_GRAPH,
            5, 3, "'test.batch' has made batches of them: put it before 'test.batch'");
    refused(HEAD "- test.source\n- test.filter\n- test.shuffle\n", HR_ERR_GRAPH, 5, 3,
            "after 'test.filter' that is known only at the end: put it before "
            "'test.filter'");
    refused(HEAD "- test.source\n- test.shard\n- test.shuffle\n", HR_ERR_GRAPH, 5, 3,
            "put it before 'test.shard'");
    refused(HEAD "- test.source\n- test.batch: {size: 2}\n- test.decode\n", HR_ERR_GRAPH,
            5, 3,
            "it works on single records, and 'test.batch' has made batches of them: put "
            "it before 'test.batch'");
    refused(HEAD "- test.source\n- test.batch: {size: 2}\n- test.batch: {size: 2}\n",
            HR_ERR_GRAPH, 5, 3, "single records");
    refused(HEAD "- test.source: {n: 3}\n- test.source: {n: 4}\n- test.zip:\n  inputs: "
                 "[test.source, test.source2]\n",
            HR_ERR_GRAPH, 5, 3,
            "records would be mispaired: 'test.source' has 3, 'test.source2' has 4");
    refused(HEAD "- test.source\n- test.view: {more: [label], to: label}\n", HR_ERR_GRAPH,
            4, 22, "field \"label\" is named twice");
    refused(HEAD
            "- test.source\n- test.source: {broken: true, path: /none}\n- test.zip:\n"
            "  inputs: [test.source, test.source2]\n",
            HR_ERR_NOT_FOUND, 4, 3,
            "node 'test.source2' (test.source): no files under /none");
}

TEST(right_orders_pass_and_count)
{
    static const struct {
        const char *text;
        int64_t records;
    } right[] = {
        {"- test.source\n- test.shuffle\n- test.take: {size: 30}\n- test.shard\n", 30 },
        {"- test.source\n- test.filter\n- test.take: {size: 3}\n",                 -1 },
        {"- test.source\n- test.expand\n",                                         -1 },
        {"- test.source\n- test.batch: {size: 30}\n- test.mix\n",                  100},
        {"- test.source\n- test.batch: {size: 30, drop_last: true}\n",             90 },
        {"- test.source\n- test.batch: {size: 30}\n- test.unbatch\n- test.decode\n"
         "- test.batch: {size: 7}\n",                                     100},
        {"- test.source\n- test.decode\n- test.shuffle\n",                         100},
        {"- test.source\n- test.decode: {to: data}\n- test.flip: {from: data}\n",  100},
        {"- test.source:\n  name: a\n- test.source:\n  name: b\n- test.zip:\n  inputs: "
         "[a, "
         "b]\n- test.shuffle\n- test.view\n",                             100},
    };

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        char text[512];
        struct hr_graph *graph;

        snprintf(text, sizeof text, "%s%s", HEAD, right[i].text);
        graph = parse(text);
        freeze(graph);
        CHECK_EQ_INT(hr_graph_record_count(graph), right[i].records);
        hr_graph_unref(graph);
    }
}

TEST(what_reaches_a_node_at_most_is_known_after_filters_and_batches)
{
    static const struct {
        const char *text;
        int64_t reach;
    } right[] = {
        {"- test.filter\n",                                           100},
        {"- test.filter\n- test.take: {size: 30}\n",                  30 },
        {"- test.filter\n- test.batch: {size: 30}\n- test.unbatch\n", 100},
        {"- test.filter\n- test.batch: {size: 30, drop_last: true}\n"
         "- test.unbatch\n",                                 90 },
        {"- test.expand\n",                                           -1 },
        {"- test.expand\n- test.batch: {size: 30}\n- test.unbatch\n", -1 },
    };

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        char text[512];
        struct hr_graph *graph;

        snprintf(text, sizeof text, "%s- test.source\n%s- test.view\n", HEAD,
                 right[i].text);
        graph = parse(text);
        freeze(graph);
        CHECK_EQ_INT(graph->nodes[graph->output].reach, right[i].reach);
        hr_graph_unref(graph);
    }
}

/* Inputs a and b of a zip, with these steps each. */
#define PAIRS(a, b)                                                                      \
    HEAD "- test.source\n" a "  name: a\n- test.source\n" b                              \
         "  name: b\n- test.zip:\n  name: pairs\n  inputs: [a, b]\n"

#define TAKE "- test.take:\n    size: 5\n"
#define SHUFFLE(seed) "- test.shuffle:\n    seed: " #seed "\n"

static int line_of(const char *text, const char *part)
{
    int line = 1;

    for (const char *at = text; at < strstr(text, part); at++)
        line += *at == '\n';
    return line;
}

TEST(a_zip_of_records_that_may_not_belong_together_is_refused)
{
    static const char *const mispaired[] = {
        PAIRS(SHUFFLE(1), "- test.decode:\n"),
        PAIRS("- test.decode:\n", SHUFFLE(1)),
        PAIRS(SHUFFLE(1), SHUFFLE(2)),
        PAIRS("- test.shuffle:\n", "- test.shuffle:\n"),
        PAIRS(SHUFFLE(1), SHUFFLE(1) SHUFFLE(2)),
        PAIRS(SHUFFLE(1) TAKE, TAKE SHUFFLE(1)),
    };
    static const char *const unknown[] = {
        PAIRS("- test.filter:\n", "- test.filter:\n"),
        PAIRS("- test.decode:\n", "- test.expand:\n"),
        PAIRS("- test.batch:\n    size: 2\n", "- test.decode:\n"),
    };

    for (size_t i = 0; i < sizeof mispaired / sizeof mispaired[0]; i++)
        refused(
            mispaired[i], HR_ERR_GRAPH, line_of(mispaired[i], "- test.zip"), 3,
            "so records would be mispaired. Put one \"- test.shuffle: {}\" after "
            "'pairs' instead (in Python hr.zip(...).shuffle()), or give each input \"- "
            "test.shuffle: {seed: 1}\". To pair records at random, set \"paired: "
            "false\" on 'pairs'");
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        refused(unknown[i], HR_ERR_GRAPH, line_of(unknown[i], "- test.zip"), 3,
                "records would be mispaired. Put '");
}

TEST(a_zip_of_records_that_stay_paired_passes)
{
    static const char *const paired[] = {
        PAIRS(SHUFFLE(1), SHUFFLE(1)),
        PAIRS("- test.decode:\n" SHUFFLE(1), SHUFFLE(1) "- test.decode:\n"),
        PAIRS(SHUFFLE(1) TAKE, SHUFFLE(1) TAKE),
        /* chosen by the user, then shuffled alike */
        HEAD "- test.source: {n: 7}\n" TAKE SHUFFLE(1) "  name: a\n"
                                                       "- test.source: {n: 5}\n" SHUFFLE(
                                                           1) "  name: b\n- test.zip:\n"
                                                              "  inputs: [a, b]\n",
        HEAD "- test.source\n- test.shuffle:\n  name: both\n- test.view:\n  inputs: "
             "both\n  name: a\n- test.view:\n  inputs: both\n  name: b\n- test.zip:\n"
             "  inputs: [a, b]\n",
    };

    for (size_t i = 0; i < sizeof paired / sizeof paired[0]; i++) {
        struct hr_graph *graph = parse(paired[i]);

        freeze(graph);
        CHECK(hr_graph_record_count(graph) > 0);
        hr_graph_unref(graph);
    }
}

TEST(an_op_may_read_fields_that_no_parameter_names)
{
    struct hr_graph *graph = parse(HEAD "- test.source\n- test.view: {to: extra}\n"
                                        "- test.view: {more: [data]}\n");
    const struct hr_graph_node *node = &graph->nodes[2];

    freeze(graph);
    CHECK_EQ_INT(node->field_count, 2);
    CHECK_EQ_STR(node->field_names[1], "extra");
    CHECK_EQ_INT(node->field_access[1], HR_ACCESS_READ);
    hr_graph_unref(graph);
}

TEST(a_failed_freeze_leaves_the_graph_as_it_was)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node source = add(graph, "test.source", NULL), flip;
    struct hr_error error = {0};

    flip = add(graph, "test.view", NULL);
    CHECK_OK(hr_graph_add(graph, "test.mix", "side", &source, 1, NULL, NULL, NULL));
    CHECK_ERR(HR_ERR_GRAPH, hr_graph_freeze(graph, &error));
    CHECK(!graph->frozen);
    CHECK_OK(hr_graph_add(graph, "test.zip", NULL, (struct hr_node[]){flip, {2}}, 2, NULL,
                          NULL, &error));
    freeze(graph);
    CHECK_EQ_INT(hr_graph_record_count(graph), 100);
    hr_graph_unref(graph);
}

TEST(a_failed_add_leaves_the_graph_as_it_was)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node node = {77}, wrong = {5};
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_NOT_FOUND,
              hr_graph_add(graph, "no.op", NULL, NULL, 0, NULL, &node, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, "test.source", NULL, NULL, 0, "{m: 1}", &node, &error));
    CHECK_EQ_STR(error.node, "test.source");
    CHECK_EQ_STR(error.op, "test.source");
    CHECK_EQ_STR(error.param, "m");
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, "test.source", NULL, &wrong, 1, NULL, &node, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, "test.source", "", NULL, 0, NULL, &node, &error));
    CHECK_ERR(HR_ERR_FORMAT,
              hr_graph_add(graph, "test.source", NULL, NULL, 0, "{n: [", &node, &error));
    CHECK_EQ_INT(node.id, 77);
    CHECK_EQ_INT(hr_graph_node_count(graph), 0);
    CHECK_ERR(HR_ERR_GRAPH, hr_graph_freeze(graph, &error));
    CHECK_EQ_STR(error.message, "the graph has no nodes");
    hr_graph_unref(graph);
}

/* ---- the public edge ---- */

TEST(wrong_arguments_are_refused)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    char text[HR_FINGERPRINT_BYTES];

    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_load(NULL, NULL, 0, &graph, &error));
    CHECK_EQ_STR(error.message, "path must not be NULL");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_freeze(NULL, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_parse("", 0, "x", NULL, 1, &graph, NULL));
    graph = hr_graph_create();
    CHECK_ERR(HR_ERR_STATE, hr_graph_fingerprint(graph, text));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_add(graph, NULL, NULL, NULL, 0, NULL, NULL, NULL));
    hr_graph_unref(graph);
    hr_graph_unref(NULL);
    CHECK(hr_graph_load("/no/such/file.yaml", NULL, 0, &graph, &error) != HR_OK);
}

TEST(files_are_loaded_and_named_in_errors)
{
    char path[512];
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    FILE *file;

    snprintf(path, sizeof path, "%s/g.yaml", check_temp_dir());
    file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(HEAD "- test.source: {n: x}\n", file);
    fclose(file);
    CHECK_ERR(HR_ERR_TYPE, hr_graph_load(path, NULL, 0, &graph, &error));
    CHECK_EQ_STR(error.file, path);
    CHECK_EQ_INT(error.line, 3);
    CHECK_EQ_INT(error.column, 20);
}

TEST(a_failed_allocation_anywhere_leaks_nothing)
{
    const struct hr_graph_param params[] = {
        {"where", "here"  },
        {"names", "[data]"}
    };
    bool done = false;
    uint64_t n;

    for (n = 1; !done; n++) {
        struct hr_graph *graph = NULL;
        struct hr_error error = {0};
        char *text = NULL, *json = NULL;
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, n);
        code = hr_graph_parse(declared, strlen(declared), "d.yaml", params, 2, &graph,
                              &error);
        if (code == HR_OK)
            code = hr_graph_add(graph, "test.decode", NULL, (struct hr_node[]){{1}}, 1,
                                "{to: x, keep_position: true, depends_on: [test.view]}",
                                NULL, &error);
        if (code == HR_OK)
            code = hr_graph_freeze(graph, &error);
        if (code == HR_OK)
            code = hr_graph_print(graph, HR_GRAPH_YAML, &text, &error);
        if (code == HR_OK)
            code = hr_graph_node_params(graph, 0, &json, &error);
        hr__fault_arm(0, 0);
        done = code == HR_OK;
        if (!done && (code != HR_ERR_MEMORY || error.code != HR_ERR_MEMORY))
            check_failed(__FILE__, __LINE__, "allocation %d: %s: %s", (int)n,
                         hr_err_name(code), error.message);
        hr_free(json);
        hr_free(text);
        hr_graph_unref(graph);
        CHECK_EQ_INT(opened, closed);
    }
    CHECK(n > 50);
}

TEST(expansions_one_after_the_other_are_limited)
{
#define EXPAND_4 "- test.expand\n- test.expand\n- test.expand\n- test.expand\n"
    struct hr_graph *graph = parse(HEAD "- test.source\n" EXPAND_4 EXPAND_4);

    freeze(graph);
    hr_graph_unref(graph);
    refused(HEAD "- test.source\n" EXPAND_4 EXPAND_4 "- test.expand\n", HR_ERR_LIMIT, 12,
            3, "node 'test.expand9' (test.expand): at most 8 expansions can follow one");
}
