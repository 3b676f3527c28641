/*
 * opt/cedar_test.c - cedar's plans, against those of its own code for its own statistics.
 */
#include "tests/support/check.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/str.h"
#include "opt/cedar_passes.h"
#include "opt/cedar_test_cases.h"

static void add_stage(const struct hr_cedar_stats *stats,
                      const struct hr_cedar_stage *stage, struct hr_str *text)
{
    if (stage->kind != HR_CEDAR_PIPES) {
        hr__str_add(text, stage->kind == HR_CEDAR_CACHE ? "CACHE" : "PREFETCH");
        return;
    }
    for (size_t i = 0; i < stage->pipe_count; i++)
        hr__str_addf(text, "%s%s", i > 0 ? "+" : "", stats->pipes[stage->pipes[i]].name);
    if (stage->variant != HR_CEDAR_INPROCESS)
        hr__str_addf(text, " %s", hr__cedar_variants[stage->variant]);
    if (stage->workers > 0)
        hr__str_addf(text, " x%d", stage->workers);
    if (stage->submit_batch > 0)
        hr__str_addf(text, " of %d", stage->submit_batch);
    if (stage->in_flight > 0)
        hr__str_addf(text, " (%d)", stage->in_flight);
    if (stage->autotune)
        hr__str_add(text, " auto");
}

static void
check_plan(const struct hr_cedar_stats *stats, const struct hr_cedar_options *options,
           int drivers, const char *plan)
{
    struct hr_cedar_result result;
    struct hr_str text;

    optimize(stats, options, &result);
    hr__str_init(&text);
    for (size_t i = 0; i < result.stage_count; i++) {
        hr__str_add(&text, i > 0 ? ", " : "");
        add_stage(stats, &result.stages[i], &text);
    }
    CHECK_EQ_STR(hr__str_text(&text), plan);
    CHECK_EQ_INT(result.drivers, drivers);
    hr__str_finish(&text);
}

/* ---- orders ---- */

static void check_order(const struct hr_cedar_stats *stats, double orders,
                        double written_ms, double order_ms)
{
    double digit = written_ms < 50 ? 0.0005 : 0.005;
    struct hr_cedar_options options;
    struct hr_cedar_result result;

    hr__cedar_options_init(&options);
    for (int offload = 0; offload < 2; offload++) {
        options.offload = offload;
        optimize(stats, &options, &result);
        CHECK(result.orders == orders && result.best);
        CHECK_NEAR(result.written_ms, written_ms, digit);
        CHECK_NEAR(result.order_ms, order_ms, digit);
    }
}

TEST(orders_and_their_costs_are_those_of_cedar)
{
    check_order(&cv_torch, 1260, 24.815, 9.396);
    check_order(&cv_remote, 1260, 25.065, 9.808);
    check_order(&cv_tf, 1260, 15.212, 4.146);
    check_order(&nlp_torch, 2, 0.510, 0.510);
    check_order(&nlp_tf, 1, 1.100, 1.100);
    check_order(&ssd_torch, 30, 237.37, 85.15);
    check_order(&ssd_tf, 4, 78.28, 69.69);
    check_order(&toy, 6, 100, 30.25);
}

/* ---- plans ---- */

TEST(local_plans_are_those_of_cedar)
{
    struct hr_cedar_options options;

    hr__cedar_options_init(&options);
    options.offload = false;
    check_plan(&cv_torch, &options, 8,
               "source, imread, gray, crop, blur, flip, jitter, float, norm, batch, "
               "PREFETCH");
    check_plan(&cv_tf, &options, 1,
               "source, read_file+decode+gray+crop+blur+flip+jitter+float+norm TF auto, "
               "batch, PREFETCH");
    check_plan(&nlp_torch, &options, 1,
               "source, tok+trunc+vocab+bos+eos SMP x8 (50), ToTensor, emb, batch, "
               "PREFETCH");
    check_plan(&nlp_tf, &options, 1, "source+tok+trunc+emb TF auto, PREFETCH");
    check_plan(&ssd_torch, &options, 8,
               "source, distort, zoom, crop, sanitize, flip, to_tensor, PREFETCH");
    check_plan(&ssd_tf, &options, 1,
               "source, read+crop+distort+resize+flip+normalize TF auto, PREFETCH");
}

TEST(remote_plans_are_those_of_cedar)
{
    struct hr_cedar_options options;

    hr__cedar_options_init(&options);
    check_plan(&cv_remote, &options, 8,
               "source, read+gray+crop+blur+flip+jitter RAY x4 of 33 (396), float, norm, "
               "batch, PREFETCH");
    check_plan(&cv_tf, &options, 8,
               "source, read_file+decode+gray+crop+blur+flip+jitter TF_RAY x4 of 33 "
               "(396), float+norm TF, batch, PREFETCH");
    check_plan(&nlp_torch, &options, 1,
               "source, tok+trunc+vocab+bos+eos RAY x32 of 500 (48000), ToTensor, emb, "
               "batch, PREFETCH");
    check_plan(&nlp_tf, &options, 1, "source+tok+trunc+emb TF auto, PREFETCH");
    check_plan(&ssd_tf, &options, 1,
               "source, read+crop+distort+resize+flip+normalize TF auto, PREFETCH");
}

TEST(caches_are_those_of_cedar)
{
    struct hr_cedar_options options;

    hr__cedar_options_init(&options);
    options.cache_samples = 9472;
    check_plan(&cv_remote, &options, 8,
               "source, read, gray, CACHE, crop, blur+flip+jitter RAY x4 of 16 (192), "
               "float, norm, batch, PREFETCH");
    options.offload = false;
    check_plan(&cv_torch, &options, 8,
               "source, imread, gray, CACHE, crop, blur, flip, jitter, float, norm, "
               "batch, PREFETCH");
    options.cache_samples = 1801408;
    options.offload = false;
    check_plan(&nlp_torch, &options, 1,
               "source, tok, trunc, vocab, bos, eos, ToTensor, CACHE, emb, batch, "
               "PREFETCH");
}

TEST(runs_of_pipes_cost_what_cedar_computes)
{
    static const uint8_t order[] = {0, 1, 6, 3, 7, 4, 5, 2, 8, 9};
    /* places of the order: read, gray, crop, blur, flip, jitter, float, norm */
    static const struct {
        size_t from, to;
        double ms;
    } cases[] = {
        {1, 2, 9.6811 },
        {2, 3, 13.4661},
        {3, 4, 11.2658},
        {4, 5, 8.3183 },
        {5, 6, 10.4395},
        {6, 7, 9.7119 },
        {7, 8, 12.0158},
        {8, 9, 12.4694},
        {1, 7, 5.4980 },
        {1, 5, 6.2715 },
        {1, 9, 6.1987 },
        {4, 7, 7.9763 },
        {3, 7, 8.5475 },
    };
    struct hr_cedar_options options;
    struct hr_cedar_model model;
    struct hr_cedar_path path;

    hr__cedar_options_init(&options);
    CHECK_OK(hr__cedar_model(&cv_remote, &options, &model, NULL));
    hr__cedar_path(&model, order, -1, &path);
    CHECK_NEAR(path.total_ms, 9.8076, 0.0001);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double ms = path.total_ms + hr__cedar_slice_ms(&model, &path, cases[i].from,
                                                       cases[i].to, HR_CEDAR_RAY);

        for (size_t k = cases[i].from; k < cases[i].to; k++)
            ms -= path.ms[k];
        CHECK_NEAR(ms, cases[i].ms, 0.0001);
    }
}

/* ---- passes that are off, and rules that the shipped statistics do not show ---- */

TEST(slices_are_single_pipes_without_fusion)
{
    struct hr_cedar_options options;

    hr__cedar_options_init(&options);
    options.fusion = false;
    check_plan(
        &cv_remote, &options, 8,
        "source, read RAY x2 of 3 (100), gray, crop, blur RAY x2 of 16 (100), flip, "
        "jitter RAY x2 of 16 (100), float, norm, batch, PREFETCH");
    options.reorder = options.prefetch = false;
    options.demand = 100;
    check_plan(&cv_remote, &options, 4,
               "source, read RAY x3 of 3 (100), float, crop, flip, jitter RAY x3 of 1 "
               "(100), gray, blur RAY x3 of 4 (100), norm, batch");
}

TEST(drivers_are_as_many_as_the_demand_needs)
{
    static const struct {
        double demand;
        int cpus, drivers;
    } cases[] = {
        {0,   3, 3},
        {1,   8, 1},
        {80,  8, 1}, /* one gives 101.96 */
        {82,  8, 2},
        {400, 8, 5},
        {9e9, 8, 8}
    };
    struct hr_cedar_options options;
    struct hr_cedar_result result;

    hr__cedar_options_init(&options);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        options.demand = cases[i].demand;
        options.cpus = cases[i].cpus;
        optimize(&cv_remote, &options, &result);
        CHECK_EQ_INT(result.drivers, cases[i].drivers);
    }
    options.drivers = false;
    optimize(&cv_remote, &options, &result);
    CHECK_EQ_INT(result.drivers, 1);
}

TEST(ray_data_takes_a_pipeline_that_can_be_fused_as_a_whole)
{
    struct hr_cedar_pipe pipes[4];
    struct hr_cedar_stats stats = STATS(pipes, 27.2, 0);
    struct hr_cedar_options options;

    memcpy(pipes, toy_pipes, sizeof pipes);
    pipes[0].variants |= 1U << HR_CEDAR_RAY_DS;
    for (size_t i = 1; i < 4; i++) {
        pipes[i].rates[HR_CEDAR_RAY] = 30;
        pipes[i].latency_ns = 10;
    }
    hr__cedar_options_init(&options);
    check_plan(&stats, &options, 1, "source+shrink+keep+grow RAY_DS");
    options.offload = false;
    check_plan(&stats, &options, 1, "source+shrink+keep+grow RAY_DS");
    pipes[2].fusable = false;
    check_plan(&stats, &options, 8, "source, shrink, keep, grow, PREFETCH");
}

TEST(a_run_at_the_end_is_not_seen_without_a_prefetcher)
{
    struct hr_cedar_pipe pipes[4];
    struct hr_cedar_stats stats = STATS(pipes, 27.2, 0);
    struct hr_cedar_options options;

    memcpy(pipes, toy_pipes, sizeof pipes);
    for (size_t i = 1; i < 4; i++)
        pipes[i].rates[HR_CEDAR_RAY] = 30;
    hr__cedar_options_init(&options);
    check_plan(&stats, &options, 8,
               "source, shrink+keep+grow RAY x4 of 500 (6000), PREFETCH");
    options.prefetch = false;
    check_plan(&stats, &options, 8, "source, shrink, keep, grow");
    options.joint = true;
    /* The model credits a slice with the bytes between its pipes, which favours orders
     * with many of them. */
    check_plan(&stats, &options, 8, "source, grow+keep+shrink RAY x4 of 500 (6000)");
}

TEST(a_plan_without_a_gain_has_no_slice)
{
    struct hr_cedar_pipe pipes[9];
    struct hr_cedar_stats stats = STATS(pipes, 1960.838, 0);
    struct hr_cedar_options options;

    memcpy(pipes, nlp_torch_pipes, sizeof pipes);
    for (size_t i = 0; i < 9; i++) /* cedar divides by zero */
        pipes[i].rates[HR_CEDAR_SMP] = 0;
    hr__cedar_options_init(&options);
    options.offload = false;
    check_plan(&stats, &options, 1,
               "source, tok, trunc, vocab, bos, eos, ToTensor, emb, batch, PREFETCH");
    pipes[1].latency_ns = 0;
    pipes[1].rates[HR_CEDAR_SMP] = 2000;
    check_plan(&stats, &options, 1,
               "source, tok, trunc, vocab, bos, eos, ToTensor, emb, batch, PREFETCH");
}

TEST(a_py_function_keeps_tensorflow_from_fusing_all)
{
    struct hr_cedar_pipe pipes[4];
    struct hr_cedar_stats stats = STATS(pipes, 909.1796, 5118.622);
    struct hr_cedar_options options;

    memcpy(pipes, nlp_tf_pipes, sizeof pipes);
    pipes[1].py_function = true;
    hr__cedar_options_init(&options);
    check_plan(&stats, &options, 1,
               "source TF, tok+trunc TF_RAY x32 of 500 (48000), emb TF, PREFETCH");
    options.offload = false;
    check_plan(&stats, &options, 1, "source TF, tok+trunc+emb TF auto, PREFETCH");
}

/* ---- errors ---- */

struct toy {
    struct hr_cedar_pipe pipes[4];
    struct hr_cedar_stats stats;
    struct hr_cedar_options options;
};

static void check_refused(const struct toy *d, enum hr_err code, const char *part)
{
    struct hr_cedar_result result = {.drivers = 77};
    struct hr_error error = {0};

    CHECK_ERR(code, hr__cedar_optimize(&d->stats, &d->options, &result, &error));
    CHECK_HAS(error.message, part);
    CHECK_EQ_INT(result.drivers, 77);
}

TEST(statistics_that_make_no_sense_are_refused)
{
    static const double wrong[] = {-1, NAN, INFINITY, 1e19};
    struct toy *d = malloc(sizeof *d);
    struct hr_cedar_pipe *pipe = &d->pipes[2];

    memset(d, 0, sizeof *d);
    memcpy(d->pipes, toy_pipes, sizeof toy_pipes);
    d->stats = (struct hr_cedar_stats){d->pipes, 4, 10, 0, -1};
    hr__cedar_options_init(&d->options);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        double *of_pipe[] = {&pipe->latency_ns, &pipe->bytes_in, &pipe->bytes_out,
                             &pipe->rates[HR_CEDAR_SMP]};

        for (size_t k = 0; k < 4; k++) {
            double was = *of_pipe[k];

            *of_pipe[k] = wrong[i];
            check_refused(d, HR_ERR_RANGE, "'keep'");
            *of_pipe[k] = was;
        }
        d->stats.rate = wrong[i];
        check_refused(d, HR_ERR_RANGE, "throughput");
        d->stats.rate = 10;
        d->options.demand = wrong[i];
        check_refused(d, HR_ERR_ARGUMENT, "wanted");
        d->options.demand = 0;
    }
    pipe->bytes_in = 0;
    check_refused(d, HR_ERR_RANGE, "'keep' reads no bytes");
    pipe->bytes_in = 10;
    pipe->depends_on = 4;
    check_refused(d, HR_ERR_RANGE, "'keep' depends on itself");
    pipe->depends_on = 0;
    d->options.cache_samples = 1;
    check_refused(d, HR_ERR_STATE, "disk_info");
    d->options.cache_samples = 0;
    d->stats.rate = 0;
    check_refused(d, HR_ERR_RANGE, "throughput");
    d->stats.rate = 10;
    for (size_t i = 0; i < 4; i++)
        d->pipes[i].latency_ns = 0;
    check_refused(d, HR_ERR_RANGE, "all latencies");
    d->stats.pipe_count = 0;
    check_refused(d, HR_ERR_LIMIT, "0 pipes");
    d->stats.pipe_count = HR_CEDAR_PIPES_MAX + 1;
    check_refused(d, HR_ERR_LIMIT, "65 pipes");
    free(d);
}

TEST(a_plan_without_memory_is_an_error)
{
    struct hr_cedar_options options;
    struct hr_cedar_result result;

    hr__cedar_options_init(&options);
    options.joint = true;
    for (uint64_t nth = 1;; nth++) {
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr__cedar_optimize(&cv_remote, &options, &result, NULL);
        hr__fault_arm(0, 0);
        if (code == HR_OK) {
            CHECK(nth > 3);
            break;
        }
        CHECK_ERR(HR_ERR_MEMORY, code);
    }
}
