/*
 * engine/demand_test.c - runs with a demand: the same batches with fewer threads, and as
 * many as the cost of a record, which the run measures, calls for.
 */
#include "core/clock.h"
#include "engine/engine.h"
#include "engine/engine_test_util.h"

#include <math.h>
#include <unistd.h>

#define THREADS 8

/* Records that wait, so that the number of cores does not matter. 2400 of them take all
 * threads 3 s: decisions take 1 s, more on a busy machine. */
#define SLEEPY(n, ms) GRAPH(RANGE(n) SHUFFLE "  - debug.sleep: {ms: " #ms "}\n" BATCH(4))

/* Seconds of a thread that a record takes, as the run's statistics say. */
static double cost_of(const struct hr_node_stats *nodes, size_t count, uint64_t records)
{
    double seconds = 0;

    for (size_t i = 0; i < count; i++)
        seconds += nodes[i].seconds + nodes[i].wait_seconds;
    return seconds / (double)records;
}

/* A run at this share of what all threads make, less a part of a thread, so that the
 * optimum does not lie between two numbers; compared with `whole`. The rate of a thread
 * is that of the last decision: on a busy machine it is not the mean of the run. */
static void check_share(double share, double cost, const struct outcome *whole)
{
    struct hr_iter_options options;
    struct outcome *limited;
    double demand = 0, rate = 0, then = 0; /* then: with the new number of threads */
    int least, used, all;

    hr_iter_options_init(&options);
    options.demand = (share * THREADS - 0.4) / cost;
    limited = run(SLEEPY(2400, 10), THREADS, &options);
    outcome_check_same(whole, limited, 0, "with a demand");
    CHECK(limited->stats.thread_changes >= 1);
    CHECK_EQ_INT(
        5, sscanf(limited->stats.threads_reason,
                  "%d of %d threads: %lf records/s are wanted, and a thread makes %lf, "
                  "%lf with that many",
                  &used, &all, &demand, &rate, &then));
    CHECK_EQ_INT(limited->stats.threads_used, used);
    CHECK_EQ_INT(THREADS, all);
    CHECK(fabs(demand / options.demand - 1) < 1e-3);
    CHECK(rate < 1.02 / 0.010 && rate > 0.4 / cost);
    least = (int)ceil(demand / rate);
    least = least < THREADS ? least : THREADS;
    if ((used < THREADS && used * then < demand) || used > least + 1)
        check_failed(__FILE__, __LINE__, "%d threads, and not %d or one more: %s", used,
                     least, limited->stats.threads_reason);
    outcome_free(limited);
}

TEST(a_demand_changes_threads_and_nothing_else)
{
    struct outcome *whole = run(SLEEPY(2400, 10), THREADS, NULL);
    double cost = cost_of(whole->nodes, 4, (uint64_t)whole->records);

    CHECK_ERR(HR_ERR_END, whole->code);
    CHECK_EQ_INT(whole->stats.threads_used, THREADS);
    CHECK_EQ_INT(whole->stats.thread_changes, 0);
    check_share(0.25, cost, whole);
    check_share(0.5, cost, whole);
    check_share(0.75, cost, whole);
    outcome_free(whole);
}

/* Takes batches until the number of changes is `changes`; returns the threads then. */
static int threads_after(struct hr_iter *iter, uint32_t changes)
{
    struct hr_iter_stats stats;

    do {
        struct hr_batch *batch;

        CHECK_OK(hr_iter_next(iter, &batch, NULL));
        hr_batch_unref(batch);
        hr_iter_stats(iter, &stats);
    } while (stats.thread_changes < changes);
    CHECK_HAS(stats.threads_reason, "records/s are wanted");
    return stats.threads_used;
}

TEST(a_changed_demand_changes_the_threads)
{
    struct hr_graph *graph = load(SLEEPY(1000000, 5));
    struct hr_iter_options options;
    struct hr_iter_stats stats;
    struct hr_iter *iter;
    struct hr_error error;
    int few;

    hr_iter_options_init(&options);
    options.threads = THREADS;
    options.demand = 20;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    few = threads_after(iter, 1);
    CHECK(few < THREADS);
    CHECK_OK(hr_iter_demand(iter, 1e9, NULL));
    CHECK_EQ_INT(threads_after(iter, 2), THREADS);
    CHECK_OK(hr_iter_demand(iter, 20, NULL));
    CHECK(threads_after(iter, 3) < THREADS);
    CHECK_OK(hr_iter_demand(iter, 0, NULL));
    hr_iter_stats(iter, &stats);
    CHECK_EQ_INT(stats.threads_used, THREADS);
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_demand(iter, -2, &error));
    CHECK_HAS(error.message, "records per second");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_demand(iter, NAN, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_demand(NULL, 1, NULL));
    hr_iter_close(iter);
    options.demand = -3;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_open(graph, &options, &iter, NULL));
    hr_graph_unref(graph);
}

/* Of 2 ms, records compute one and sleep one, so that neither part can be taken for the
 * other, however long threads wait for cores. */
TEST(threads_measure_how_long_they_compute)
{
    struct hr_graph *graph =
        load(GRAPH(RANGE(100000) "  - debug.spin: {us: 1000}\n"
                                 "  - debug.sleep: {ms: 1}\n" BATCH(4)));
    struct hr_iter_options options;
    struct hr_engine *engine;
    struct hr_demand sums;
    double other_ns;

    if (access("/proc/thread-self/schedstat", R_OK) != 0)
        check_skip("the system does not say how long threads wait for cores");
    hr_iter_options_init(&options);
    options.threads = THREADS;
    options.demand = 1e9;
    CHECK_OK(hr__engine_open(graph, &options, &engine, NULL));
    for (int i = 0; i < 100; i++) {
        struct hr_batch *batch;

        CHECK_OK(hr__engine_next(engine, UINT64_MAX, &batch, NULL));
        hr_batch_unref(batch);
    }
    pthread_mutex_lock(&engine->lock);
    sums = engine->demand;
    pthread_mutex_unlock(&engine->lock);
    hr__engine_close(engine);
    hr_graph_unref(graph);
    /* Every second piece of work, since each follows the one before at once. */
    CHECK(sums.watched_ticks > sums.busy_ticks / 8);
    CHECK(sums.watched_ticks <= sums.busy_ticks);
    /* In a long wait for a core nothing is made, so ticks do not say how many records the
     * watched pieces had: their CPU time does. */
    CHECK((double)sums.cpu_ns > sums.made * 1e6 / 8);
    CHECK((double)sums.cpu_ns < sums.made * 1e6 * 1.5);
    other_ns = hr__ticks_to_ns(sums.watched_ticks) - (double)sums.delay_ns;
    CHECK(other_ns > 1.5 * (double)sums.cpu_ns);
}

/* A consumer that works between batches wants what it takes then. */
TEST(a_slow_consumer_needs_fewer_threads)
{
    struct hr_graph *graph = load(SLEEPY(1000000, 5));
    struct hr_iter_options options;
    struct hr_iter_stats stats = {0};
    struct hr_iter *iter;

    hr_iter_options_init(&options);
    options.threads = THREADS;
    options.demand = HR_DEMAND_CONSUMER;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    while (stats.thread_changes == 0) {
        struct hr_batch *batch;

        CHECK_OK(hr_iter_next(iter, &batch, NULL));
        hr_batch_unref(batch);
        usleep(20000); /* 4 records: a thread has time for as many */
        hr_iter_stats(iter, &stats);
    }
    CHECK(stats.threads_used < THREADS);
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

/* Filters and expansions, several stages, a budget and few records: the run ends, with
 * the same batches, wherever threads fall asleep. */
TEST(runs_with_a_demand_end_as_others_do)
{
    static const char *const texts[] = {
        SLEEPY(3, 1),
        GRAPH(RANGE(300) SHUFFLE DROP_THIRD "  - debug.sleep: {ms: 4}\n" BATCH(
            3) "  - batch.unbatch: {}\n"
               "  - debug.sleep: {ms: 2}\n"
               "  - order.shuffle: {window: 8}\n" BATCH(7)),
    };

    for (size_t i = 0; i < 2; i++) {
        struct hr_iter_options options;
        struct outcome *whole, *limited;

        hr_iter_options_init(&options);
        options.epochs = 3;
        whole = run(texts[i], 0, &options);
        options.demand = 1;
        limited = run(texts[i], THREADS, &options);
        outcome_check_same(whole, limited, 0, "with a demand");
        outcome_free(limited);
        options.memory_bytes = 64000000;
        limited = run(texts[i], THREADS, &options);
        outcome_check_same(whole, limited, 0, "with a demand and a budget");
        outcome_free(limited);
        outcome_free(whole);
    }
}
