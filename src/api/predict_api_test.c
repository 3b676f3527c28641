/*
 * api/predict_api_test.c - predictions of graphs whose nodes have known costs, and the
 * file of predictions and measurements.
 */
#include "headrace/predict.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/str.h"
#include "tests/support/check.h"
#include "tests/support/pipeline.h"

static struct hr_prediction *
predict(struct hr_graph *graph, const struct hr_profile *profile,
        struct hr_machine machine)
{
    struct hr_predict_options options;
    struct hr_prediction *prediction = NULL;
    struct hr_error error = {0};

    hr_predict_options_init(&options);
    options.machine = machine;
    if (hr_graph_predict(graph, profile, &options, &prediction, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return prediction;
}

static struct hr_prediction_info
info_of(struct hr_graph *graph, const struct hr_profile *profile,
        struct hr_machine machine)
{
    struct hr_prediction *prediction = predict(graph, profile, machine);
    struct hr_prediction_info info;

    hr_prediction_info(prediction, &info);
    hr_prediction_free(prediction);
    return info;
}

#define SPINS                                                                            \
    "  - source.range: {n: 100000}\n  - debug.spin: {us: 100}\n    name: a\n"            \
    "  - debug.spin: {us: 300}\n    name: b\n  - batch.stack: {size: 8}\n"

TEST(a_prediction_follows_from_the_profile)
{
    struct hr_graph *graph = pipeline_graph(SPINS);
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_prediction *prediction = predict(graph, profile, (struct hr_machine){0});
    struct hr_prediction_node node;
    struct hr_prediction_info info;
    double shares = 0, rate;
    const char *limit;
    size_t count = 0;

    hr_prediction_info(prediction, &info);
    CHECK(info.cpu_ns > 390e3 && info.cpu_ns < 800e3); /* crowded cores count */
    CHECK_EQ_STR(info.node, "b");
    CHECK_HAS(info.reason, "'b'");
    CHECK(info.fits && info.memory > 0 && info.price == 0);
    for (; hr_prediction_node(prediction, count, &node) == HR_OK; count++)
        shares += node.share;
    CHECK_EQ_INT(count, 4);
    CHECK_NEAR(shares, 1, 1e-9);
    CHECK_OK(hr_prediction_node(prediction, 2, &node));
    CHECK_EQ_STR(node.op, "debug.spin");
    CHECK(node.share > 0.6 && node.share < 0.9);
    for (count = 0; hr_prediction_limit(prediction, count, &limit, &rate) == HR_OK;
         count++)
        CHECK(rate >= info.rate && limit[0] != '\0');
    CHECK_EQ_INT(count, 5);
    hr_prediction_free(prediction);
    hr_prediction_free(NULL);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(another_machine_is_predicted)
{
    struct hr_graph *graph = pipeline_graph(SPINS);
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_prediction_info two =
        info_of(graph, profile, (struct hr_machine){.cores = 2, .price = 3.6});
    struct hr_prediction_info four =
        info_of(graph, profile, (struct hr_machine){.cores = 4, .memory = 1});
    struct hr_prediction_info slow =
        info_of(graph, profile, (struct hr_machine){.disk = 800});

    CHECK(two.threads == 2 && four.threads == 4);
    CHECK(two.rate > 0 && four.rate > 1.7 * two.rate && four.rate < 2.3 * two.rate);
    CHECK_NEAR(two.price, 0.001 / two.rate * 1e6, 1e-9);
    CHECK(two.fits && !four.fits);
    CHECK_EQ_STR(slow.limit, "disk");
    CHECK_NEAR(slow.rate, 100, 1e-9);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(a_cheaper_order_is_predicted_without_running_it)
{
    struct hr_graph *graph =
        pipeline_graph("  - source.range: {n: 1000}\n  - debug.spin: {us: 50}\n"
                       "  - record.filter: {expr: \"value % 4 == 0\"}\n"
                       "  - batch.stack: {size: 8}\n");
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_prediction *before = predict(graph, profile, (struct hr_machine){0});
    struct hr_prediction *after = NULL;
    struct hr_prediction_info was, is;
    struct hr_graph *other = NULL;
    struct hr_node_info node;

    CHECK_OK(hr_graph_predict_order(graph, profile, NULL, NULL, &other, &after, NULL));
    CHECK_OK(hr_graph_node_info(other, 1, &node));
    CHECK_EQ_STR(node.op, "record.filter");
    hr_prediction_info(before, &was);
    hr_prediction_info(after, &is);
    CHECK(is.cpu_ns < 0.5 * was.cpu_ns && is.rate > 2 * was.rate);
    hr_prediction_free(before);
    hr_prediction_free(after);
    hr_profile_free(profile);
    hr_graph_unref(graph);
    hr_graph_unref(other);
}

TEST(wrong_arguments_and_other_graphs_are_refused)
{
    struct hr_graph *graph = pipeline_graph(SPINS),
                    *other =
                        pipeline_graph("  - source.range: {n: 7}\n    name: seven\n");
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_predict_options options;
    struct hr_prediction *prediction = NULL;
    struct hr_error error = {0};
    struct hr_graph *made = NULL;

    hr_predict_options_init(&options);
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_predict(NULL, profile, NULL, &prediction, &error));
    CHECK_ERR(HR_ERR_STATE, hr_graph_predict(other, profile, NULL, &prediction, &error));
    CHECK_HAS(error.message, "'seven'");
    CHECK_ERR(HR_ERR_STATE, hr_graph_predict_order(other, profile, NULL, NULL, &made,
                                                   &prediction, &error));
    options.machine.cores = 0.5;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_predict(graph, profile, &options, &prediction, &error));
    CHECK_HAS(error.message, "cores must be 1 to");
    options.machine.cores = 0;
    options.machine.disk = -1;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_predict(graph, profile, &options, &prediction, &error));
    CHECK(prediction == NULL && made == NULL);
    hr_profile_free(profile);
    hr_graph_unref(graph);
    hr_graph_unref(other);
}

TEST(failed_allocations_leave_nothing)
{
    struct hr_graph *graph = pipeline_graph(SPINS);
    struct hr_profile *profile = pipeline_profile(graph);
    enum hr_err code = HR_ERR_MEMORY;

    for (uint64_t nth = 1; code != HR_OK; nth++) {
        struct hr_prediction *prediction = NULL;
        struct hr_graph *other = NULL;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code =
            hr_graph_predict_order(graph, profile, NULL, NULL, &other, &prediction, NULL);
        hr__fault_arm(0, 0);
        CHECK(code == HR_OK || (prediction == NULL && other == NULL));
        CHECK(nth < 2000);
        hr_prediction_free(prediction);
        hr_graph_unref(other);
    }
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

/* ---- pairs ---- */

static char cache[512];

static const char *path_of(const char *name)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%s", cache, name);
    return path;
}

static void begin_cache(const char *name)
{
    snprintf(cache, sizeof cache, "%s/%s", check_temp_dir(), name);
    setenv("HEADRACE_CACHE", cache, 1);
}

static struct hr_accuracy accuracy_at(size_t at)
{
    static struct hr_accuracies *kept;
    struct hr_accuracy accuracy;

    hr_accuracies_free(kept);
    CHECK_OK(hr_accuracies_read(&kept, NULL));
    CHECK_OK(hr_accuracies_get(kept, at, &accuracy));
    return accuracy;
}

TEST(a_run_is_kept_beside_its_prediction)
{
    struct hr_graph *graph = pipeline_graph(SPINS);
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_prediction *prediction = predict(graph, profile, (struct hr_machine){0});
    struct hr_iter_options options;
    struct hr_measured measured;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;
    int64_t records = 0;

    begin_cache("kept");
    CHECK_EQ_INT(accuracy_at(0).runs, 0);
    CHECK_ERR(HR_ERR_STATE, hr_prediction_keep(prediction, NULL, 1, "g", NULL, &error));
    hr_iter_options_init(&options);
    options.records_max = 1600;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    hr_prediction_start(prediction, iter);
    while (hr_iter_next(iter, &batch, NULL) == HR_OK) {
        records += hr_batch_records(batch);
        hr_batch_unref(batch);
    }
    CHECK_OK(
        hr_prediction_keep(prediction, iter, records, "g \"1\".yaml", &measured, &error));
    hr_iter_close(iter);
    CHECK_EQ_INT(measured.records, 1600);
    CHECK(measured.kept);
    CHECK(measured.cpu_ns > 390e3 && measured.rate >= 1600 / measured.seconds);
    CHECK_EQ_INT(accuracy_at(0).runs, 1);
    CHECK_EQ_STR(accuracy_at(1).name, "g \"1\".yaml");
    CHECK(accuracy_at(1).rate[0] == accuracy_at(1).rate[1]);
    hr_prediction_free(prediction);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

static void add_pair(struct hr_str *text, const char *graph, double predicted)
{
    hr__str_addf(text,
                 "{\"graph\": \"%s\", \"name\": \"%s.yaml\", \"rate\": 100, \"cpu_ns\": "
                 "50, \"predicted_rate\": %g, \"predicted_cpu_ns\": 50}\n",
                 graph, graph, predicted);
}

TEST(errors_are_summed_up_by_graph_and_damage_is_left_out)
{
    struct hr_str text;

    begin_cache("read");
    hr__str_init(&text);
    for (int i = 0; i <= 10; i++)
        add_pair(&text, "a", 100 + i);
    hr__str_add(&text, "{\"graph\": \"a\", \"rate\"\n[1, 2]\n\n{}\nnull\n");
    hr__str_add(&text, "{\"graph\": \"b\", \"name\": \"b\", \"rate\": -1, \"cpu_ns\": 1, "
                       "\"predicted_rate\": 1, \"predicted_cpu_ns\": 1}\n");
    add_pair(&text, "c", 50);
    hr__str_add(&text, "{\"graph\": \"c\"");
    CHECK_EQ_INT(accuracy_at(0).runs, 0); /* makes the folder */
    CHECK_OK(hr__file_replace(path_of("accuracy.jsonl"), hr__str_text(&text), text.length,
                              NULL));
    CHECK_EQ_INT(accuracy_at(0).runs, 12);
    CHECK_NEAR(accuracy_at(0).rate[0], (0.05 + 0.5) / 2, 1e-9);
    CHECK_EQ_INT(accuracy_at(1).runs, 11);
    CHECK_NEAR(accuracy_at(1).rate[0], 0.05, 1e-9);
    CHECK_NEAR(accuracy_at(1).rate[1], 0.09, 1e-9);
    CHECK_NEAR(accuracy_at(1).cpu[1], 0, 1e-9);
    CHECK_EQ_STR(accuracy_at(2).graph, "c");
    CHECK_NEAR(accuracy_at(2).rate[1], 0.5, 1e-9);
    hr__str_finish(&text);
}

TEST(a_full_file_is_put_aside)
{
    struct hr_graph *graph = pipeline_graph("  - source.range: {n: 9}\n");
    struct hr_profile *profile = pipeline_profile(graph);
    struct hr_prediction *prediction = predict(graph, profile, (struct hr_machine){0});
    struct hr_str text;
    uint64_t until;
    char *read = NULL;
    size_t bytes;

    begin_cache("full");
    CHECK_EQ_INT(accuracy_at(0).runs, 0);
    hr__str_init(&text);
    while (text.length < 1 << 20)
        add_pair(&text, "a", 110);
    CHECK_OK(hr__file_replace(path_of("accuracy.jsonl"), hr__str_text(&text), text.length,
                              NULL));
    until = hr__now_ns() + 250000000;
    hr_prediction_start(prediction, NULL);
    while (hr__now_ns() < until)
        continue;
    CHECK_OK(hr_prediction_keep(prediction, NULL, 9, "nine", NULL, NULL));
    CHECK_OK(hr__file_read(path_of("accuracy.jsonl"), 4096, &read, &bytes, NULL));
    CHECK_HAS(read, "\"nine\"");
    CHECK_EQ_STR(accuracy_at(1).name, "a.yaml");
    CHECK_EQ_STR(accuracy_at(2).name, "nine");
    hr__free(read);
    hr__str_finish(&text);
    hr_prediction_free(prediction);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}
