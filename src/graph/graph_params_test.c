/*
 * graph/graph_params_test.c - parameters of a file, and parameters of a node as they are
 * given back.
 */
#include "graph/graph_test_util.h"

/* ---- parameters of the file ---- */

TEST(parameters_replace_typed_and_in_texts)
{
    const struct hr_graph_param params[] = {
        {"where", "2012"},
        {"n",     "7"   },
        {"n",     "8"   }
    };
    struct hr_graph *graph = parse_with(declared, "d.yaml", params, 3);
    const struct source *source = graph->nodes[0].params;
    struct hr_graph_param_info info;

    CHECK_EQ_INT(source->n, 8);
    CHECK_EQ_STR(source->path, "/x/2012/8${n}");
    CHECK_OK(hr_graph_param_info(graph, 0, &info));
    CHECK_EQ_STR(info.name, "n");
    CHECK_EQ_STR(info.type, "int");
    CHECK_EQ_STR(info.fallback, "10");
    CHECK_EQ_STR(info.help, "records");
    CHECK(!info.required);
    CHECK_OK(hr_graph_param_info(graph, 1, &info));
    CHECK(info.required && info.fallback == NULL && info.help == NULL);
    CHECK_OK(hr_graph_param_info(graph, 2, &info));
    CHECK_EQ_STR(info.type, "list");
    CHECK_OK(hr_graph_param_info(graph, 3, &info));
    CHECK_EQ_STR(info.type, "enum");
    CHECK_EQ_INT(info.choice_count, 2);
    CHECK_EQ_STR(info.choices[0], "a");
    CHECK_EQ_STR(info.choices[1], "b");
    CHECK_OK(hr_graph_param_info(graph, 0, &info));
    CHECK(info.choices == NULL && info.choice_count == 0);
    CHECK_ERR(HR_ERR_RANGE, hr_graph_param_info(graph, 4, &info));
    hr_graph_unref(graph);
}

TEST(lists_can_be_given)
{
    const struct hr_graph_param params[] = {
        {"where", "x"            },
        {"names", "[data, label]"}
    };
    struct hr_graph *graph = parse_with(declared, "d.yaml", params, 2);

    freeze(graph);
    CHECK_EQ_INT(graph->nodes[1].field_count, 2);
    CHECK_EQ_STR(graph->nodes[1].field_names[0], "data");
    hr_graph_unref(graph);
}

static void
refused_param(const char *name, const char *value, enum hr_err code, const char *words)
{
    const struct hr_graph_param params[] = {
        {"where", "x"  },
        {name,    value}
    };
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    CHECK_ERR(code, hr_graph_parse(declared, strlen(declared), "d.yaml", params, 2,
                                   &graph, &error));
    CHECK_HAS(error.message, words);
    CHECK_EQ_STR(error.param, name);
}

TEST(wrong_values_of_parameters_are_refused_before_any_op_sees_them)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    refused_param("wehre", "y", HR_ERR_ARGUMENT,
                  "parameter \"wehre\" is not known; did you mean \"where\"?");
    refused_param("n", "many", HR_ERR_TYPE,
                  "parameter \"n\" is declared as int, and this is the string \"many\"");
    refused_param("mode", "c", HR_ERR_RANGE,
                  "parameter \"mode\" must be one of a, b, not the string \"c\"");
    refused_param("names", "[1", HR_ERR_FORMAT, "parameter \"names\": ");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_parse(declared, strlen(declared), "d.yaml", NULL,
                                              0, &graph, &error));
    CHECK_EQ_STR(
        error.message,
        "d.yaml:4:3: parameter \"where\" needs a value: give it with -p where=...");
    CHECK_EQ_INT(error.line, 4);
}

TEST(wrong_declarations_and_references_are_refused)
{
#define PARAMS(text) "headrace: 1\nparams: {" text "}\npipeline:\n- test.source\n"
    refused(PARAMS("a: {type: in, default: 1}"), HR_ERR_GRAPH, 2, 20,
            "type \"in\" is not known; did you mean \"int\"?");
    refused(PARAMS("a: {typ: int}"), HR_ERR_GRAPH, 2, 14,
            "key \"typ\" is not known; did you mean \"type\"?");
    refused(PARAMS("a: {type: int, default: x}"), HR_ERR_TYPE, 2, 34,
            "declared as int, and this is the string \"x\"");
    refused(PARAMS("a: {type: dtype, default: float33}"), HR_ERR_TYPE, 2, 36,
            "declared as dtype, and this is the string \"float33\"");
    refused(PARAMS("a: {type: bytes, default: 3XB}"), HR_ERR_TYPE, 2, 36,
            "declared as bytes, and this is the string \"3XB\"");
    refused(PARAMS("a: {type: bytes, default: -1}"), HR_ERR_TYPE, 2, 36,
            "declared as bytes, and this is the int -1");
    refused(PARAMS("a: {type: 3}"), HR_ERR_TYPE, 2, 14, "\"type\" of parameter \"a\"");
    refused(HEAD "- test.source: {path: \"${x}\"}\n", HR_ERR_GRAPH, 3, 23,
            "the file declares no parameters");
    refused(
        "headrace: 1\nparams: {size: 1}\npipeline:\n- test.source: {n: \"${sise}\"}\n",
        HR_ERR_GRAPH, 4, 20, "did you mean \"size\"?");
    refused("headrace: 1\nparams: {size: 1}\npipeline:\n- test.source: {n: \"${size\"}\n",
            HR_ERR_GRAPH, 4, 20, "\"${\" without \"}\"");
    refused(
        "headrace: 1\nparams: {l: [1]}\npipeline:\n- test.source: {path: \"/${l}\"}\n",
        HR_ERR_GRAPH, 4, 23, "cannot be part of a text");
}

/* ---- parameters of a node ---- */

static void check_node_params(const struct hr_graph *graph, size_t at, const char *json)
{
    struct hr_error error = {0};
    char *text = NULL;

    CHECK_OK(hr_graph_node_params(graph, at, &text, &error));
    CHECK_EQ_STR(text, json);
    hr_free(text);
}

TEST(parameters_of_a_node_are_those_given_with_references_replaced)
{
    const struct hr_graph_param params[] = {
        {"where", "here"},
    };
    struct hr_graph *graph = NULL, *again = hr_graph_create();
    struct hr_error error = {0};
    struct hr_node node;
    char *text = NULL;

    CHECK_OK(
        hr_graph_parse(declared, strlen(declared), "d.yaml", params, 1, &graph, &error));
    check_node_params(graph, 0, "{\"n\":10,\"path\":\"/x/here/10${n}\"}");
    check_node_params(graph, 1, "{\"more\":[\"label\"]}");
    CHECK_OK(hr_graph_node_params(graph, 0, &text, &error));
    CHECK_OK(hr_graph_add(again, "test.source", NULL, NULL, 0, text, &node, &error));
    check_node_params(again, 0, text);
    hr_free(text);
    hr_graph_unref(again);
    hr_graph_unref(graph);
}

TEST(parameters_of_a_node_hold_hints_and_no_defaults)
{
    struct hr_graph *graph =
        parse(HEAD "- test.source\n- test.decode: {keep_position: true}\n");
    struct hr_error error = {0};
    char *text = NULL;

    check_node_params(graph, 0, "{}");
    check_node_params(graph, 1, "{\"keep_position\":true}");
    freeze(graph);
    check_node_params(graph, 1, "{\"keep_position\":true}");
    CHECK_ERR(HR_ERR_RANGE, hr_graph_node_params(graph, 2, &text, &error));
    CHECK_EQ_STR(error.message, "there is no node 2; the graph has 2");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_node_params(NULL, 0, &text, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_graph_node_params(graph, 0, NULL, NULL));
    CHECK(text == NULL);
    hr_graph_unref(graph);
}
