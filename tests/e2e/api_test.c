/*
 * tests/e2e/api_test.c - the library from a C program: public headers and the shared
 * library only.
 */
#include "headrace/dataset.h"
#include "headrace/engine.h"
#include "headrace/op.h"
#include "tests/support/check.h"

#include <stdlib.h>

static const char three[] = "headrace: 1\n"
                            "pipeline:\n"
                            "  - source.range: {n: 10}\n"
                            "  - batch.stack: {size: 4}\n";

static struct hr_graph *parse(const char *text, const char *name)
{
    struct hr_graph *graph = NULL;

    CHECK_OK(hr_graph_parse(text, strlen(text), name, NULL, 0, &graph, NULL));
    CHECK_OK(hr_graph_freeze(graph, NULL));
    return graph;
}

static void check_same(const struct hr_graph *a, const struct hr_graph *b)
{
    char one[HR_FINGERPRINT_BYTES], two[HR_FINGERPRINT_BYTES];

    CHECK_OK(hr_graph_fingerprint(a, one));
    CHECK_OK(hr_graph_fingerprint(b, two));
    CHECK_EQ_STR(one, two);
}

TEST(calls_and_text_make_the_same_graph)
{
    struct hr_graph *text = parse(three, "three.yaml"), *calls = hr_graph_create();
    struct hr_node range, stack;

    CHECK(calls != NULL);
    CHECK_OK(hr_graph_add(calls, "source.range", NULL, NULL, 0, "{n: 10}", &range, NULL));
    CHECK_OK(hr_graph_add(calls, "batch.stack", "b", &range, 1, "{\"size\": 4}", &stack,
                          NULL));
    CHECK_OK(hr_graph_freeze(calls, NULL));
    check_same(text, calls);
    CHECK_EQ_INT(hr_graph_record_count(calls), 10);
    hr_graph_unref(text);
    hr_graph_unref(calls);
}

TEST(a_printed_graph_reads_back_the_same)
{
    static const char *const names[] = {"x.yaml", "x.json"};
    struct hr_graph *graph = parse(three, "three.yaml");

    for (int i = 0; i < 2; i++) {
        struct hr_graph *again;
        char *text = NULL;

        CHECK_OK(
            hr_graph_print(graph, i == 0 ? HR_GRAPH_YAML : HR_GRAPH_JSON, &text, NULL));
        again = parse(text, names[i]);
        check_same(graph, again);
        hr_free(text);
        hr_graph_unref(again);
    }
    hr_graph_unref(graph);
}

TEST(a_printed_graph_has_the_classes_that_it_found)
{
    const struct hr_synth_photos what = {
        .count = 4, .classes = 2, .width = 32, .height = 24};
    struct hr_field_info label;
    struct hr_graph *graph, *again;
    char folder[600], text[1200], *printed;

    snprintf(folder, sizeof folder, "%s/classes", check_temp_dir());
    CHECK_OK(hr_synth_photos(folder, &what, NULL, NULL, NULL));
    snprintf(text, sizeof text,
             "headrace: 1\nparams: {d: {type: path, default: %s}}\npipeline:\n"
             "  - source.files: {path: \"${d}\", labels: folder}\n"
             "  - batch.stack: {size: 4}\n",
             folder);
    graph = parse(text, "g.yaml");
    CHECK_OK(hr_graph_field_info(graph, 1, 1, &label));
    CHECK_EQ_INT(label.class_count, 2);
    CHECK_EQ_STR(label.classes[1], "boat");
    CHECK_OK(hr_graph_print(graph, HR_GRAPH_JSON, &printed, NULL));
    CHECK_HAS(printed, "\"${d}\"");
    CHECK_HAS(printed, "\"classes\"");
    CHECK_HAS(printed, "\"boat\"");
    again = parse(printed, "g.json");
    check_same(graph, again);
    hr_free(printed);
    hr_graph_unref(again);
    hr_graph_unref(graph);
}

TEST(batches_outlive_their_iterator)
{
    struct hr_graph *graph = hr_graph_ref(parse(three, "three.yaml"));
    struct hr_iter_options options;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL, *kept = NULL;
    struct hr_field_view view;
    int64_t records = 0;
    enum hr_err code;

    hr_graph_unref(graph); /* one reference remains */
    hr_iter_options_init(&options);
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    hr_graph_unref(graph);
    while ((code = hr_iter_next(iter, &batch, NULL)) == HR_OK) {
        if (kept == NULL)
            kept = hr_batch_ref(batch);
        records += hr_batch_records(batch);
        hr_batch_unref(batch);
    }
    CHECK_ERR(HR_ERR_END, code);
    CHECK_EQ_INT(records, 10);
    hr_iter_close(iter);
    CHECK_EQ_INT(hr_batch_records(kept), 4);
    CHECK_OK(hr_batch_field(kept, 0, &view));
    CHECK_OK(hr_batch_find(kept, view.name, &view));
    CHECK_EQ_INT(((const int64_t *)view.data)[3], 3);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_batch_find(kept, "absent", &view));
    hr_batch_unref(kept);
}

TEST(a_saved_position_is_resumed)
{
    struct hr_graph *graph = parse(three, "three.yaml");
    struct hr_iter_options options;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;
    struct hr_field_view view;
    char *state = NULL;

    hr_iter_options_init(&options);
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    hr_batch_unref(batch);
    CHECK_OK(hr_iter_save(iter, &state, NULL));
    hr_iter_close(iter);
    options.state = state;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    CHECK_OK(hr_batch_field(batch, 0, &view));
    CHECK_EQ_INT(((const int64_t *)view.data)[0], 4);
    hr_batch_unref(batch);
    hr_iter_close(iter);
    hr_free(state);
    hr_graph_unref(graph);
}

TEST(ops_are_listed_in_order_of_name)
{
    struct hr_op_info before = {0}, info;
    size_t at;

    CHECK(hr_op_count() > 20);
    for (size_t i = 0; i < hr_op_count(); i++) {
        CHECK_OK(hr_op_info(i, &info));
        CHECK(i == 0 || strcmp(before.name, info.name) < 0);
        CHECK_OK(hr_op_find(info.name, &at, NULL));
        CHECK_EQ_INT(at, i);
        before = info;
    }
    CHECK_ERR(HR_ERR_RANGE, hr_op_info(hr_op_count(), &info));
}
