/*
 * engine/close_test.c - stopping and closing a run whose user code does not return.
 *
 * The code waits at a gate that the test opens. Times are compared only with each other:
 * a close that waited for the gate would never return, and the test would time out.
 */
#include "engine/code_test_util.h"

#include <pthread.h>

#include "core/clock.h"
#include "engine/engine.h"

#define GATED(variant)                                                                   \
    "  - code.map: {code: gated, fields: value, outputs: \"value: int64\", "             \
    "variant: " variant "}\n    name: slow\n"
#define HOUR_NS ((uint64_t)3600 * 1000000000u)

/* Code that waits at record 20 until the gate is open. */
struct gate {
    atomic_bool open;
    atomic_int waiting, passed, released;
    bool closes; /* the code closes `iter`, once that is set */
    struct hr_iter *_Atomic iter;
};

static enum hr_err call_gated(void *user, struct hr_code_call *call, struct hr_error *e)
{
    struct gate *gate = user;

    if (hr_code_index(call) == 20) {
        atomic_fetch_add(&gate->waiting, 1);
        while (gate->closes && atomic_load(&gate->iter) == NULL)
            usleep(1000);
        if (gate->closes)
            hr_iter_close(atomic_load(&gate->iter));
        while (!atomic_load(&gate->open))
            usleep(1000);
        atomic_fetch_add(&gate->passed, 1);
    }
    return put_int(call, 0, get_int(call, 0), e);
}

static void release_gate(void *user)
{
    struct gate *gate = user;

    CHECK_EQ_INT(gate->passed, gate->waiting); /* no call comes after it */
    atomic_fetch_add(&gate->released, 1);
}

static enum hr_err add_gate(void *user, struct hr_graph *graph)
{
    struct hr_code made = {"gated", user, call_gated, NULL, NULL, release_gate};

    return hr_graph_code(graph, "gated", &made, NULL);
}

static struct hr_iter *open_timed(const char *text, struct gate *gate, struct world *w,
                                  int threads, uint64_t timeout_ns)
{
    struct set_up up = {w, add_gate, gate};
    struct outcome_job job = code_job(text, &up, threads, NULL);
    struct hr_graph *graph = outcome_graph(&job, NULL);
    struct hr_iter_options options;
    struct hr_iter *iter = NULL;

    hr_iter_options_init(&options);
    options.threads = threads;
    options.variant = threads == 0 ? HR_VARIANT_INLINE : HR_VARIANT_THREADS;
    options.timeout_ns = timeout_ns;
    CHECK(graph != NULL);
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    hr_graph_unref(graph); /* the iterator keeps it */
    return iter;
}

static struct hr_iter *
open_gated(const char *text, struct gate *gate, struct world *w, int threads)
{
    return open_timed(text, gate, w, threads, 0);
}

static void wait_for(const atomic_int *count, int at_least)
{
    while (atomic_load(count) < at_least)
        usleep(1000);
}

TEST(closing_does_not_wait_for_a_thread_in_user_code)
{
    static const char *const texts[] = {
        GRAPH(RANGE(1000) GATED("threads") BATCH(10)),
        GRAPH(RANGE(1000) GATED("inline") BATCH(10)), /* others wait for its turn */
        GRAPH(RANGE(1000) DROP_THIRD GATED("threads") MAP BATCH(10)),
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int threads = 1; threads <= 4; threads += 3) {
            struct gate gate = {.open = false};
            struct world w = {.end = 1000};
            struct hr_iter *iter = open_gated(texts[i], &gate, &w, threads);

            wait_for(&gate.waiting, 1);
            hr_iter_close(iter);
            CHECK_EQ_INT(gate.passed, 0);
            CHECK_EQ_INT(gate.released, 0);
            atomic_store(&gate.open, true);
            wait_for(&gate.released, 1);
            wait_for(&w.released, (int)CODES);
        }
}

TEST(stopping_names_the_thread_the_node_the_code_and_the_record)
{
    struct gate gate = {.open = false};
    struct world w = {.end = 1000};
    struct hr_iter *iter =
        open_gated(GRAPH(RANGE(1000) GATED("threads") BATCH(10)), &gate, &w, 1);
    struct hr_error error = {0};

    wait_for(&gate.waiting, 1);
    CHECK_ERR(HR_ERR_LIMIT, hr_iter_stop(iter, 1000000, &error));
    CHECK_HAS(error.message, "'hr-thread-0'");
    CHECK_HAS(error.message, "'gated'");
    CHECK_HAS(error.message, "record 20");
    CHECK_EQ_STR(error.node, "slow");
    CHECK_EQ_STR(error.op, "code.map");
    CHECK_EQ_INT(error.record, 21);
    atomic_store(&gate.open, true);
    CHECK_OK(hr_iter_stop(iter, HOUR_NS, &error)); /* as soon as it has left */
    CHECK_OK(hr_iter_stop(iter, 0, &error));
    hr_iter_close(iter);
    CHECK_EQ_INT(gate.released, 1);
}

TEST(a_timeout_names_the_user_code_and_the_record_that_a_thread_is_at)
{
    struct gate gate = {.open = false};
    struct world w = {.end = 1000};
    struct hr_iter *iter = open_timed(GRAPH(RANGE(1000) GATED("threads") BATCH(10)),
                                      &gate, &w, 2, 3000000000u);
    struct hr_error error = {0};
    struct hr_batch *batch;
    int batches = 0;

    while (hr_iter_next(iter, &batch, &error) == HR_OK) {
        batches++;
        hr_batch_unref(batch);
    }
    CHECK_EQ_INT(batches, 2);
    CHECK_EQ_INT(error.code, HR_ERR_TIMEOUT);
    CHECK_HAS(error.message, "no batch came within 3 s");
    CHECK_HAS(error.message, "'gated'");
    CHECK_EQ_STR(error.node, "slow");
    CHECK_EQ_INT(error.record, 21);
    CHECK_ERR(HR_ERR_TIMEOUT, hr_iter_next(iter, &batch, NULL)); /* it stays failed */
    atomic_store(&gate.open, true);
    hr_iter_close(iter);
}

TEST(after_a_stop_closing_does_not_wait)
{
    struct gate gate = {.open = false};
    struct world w = {.end = 1000};
    struct hr_iter *iter =
        open_gated(GRAPH(RANGE(1000) GATED("threads") BATCH(10)), &gate, &w, 2);
    uint64_t begin, stopped;

    wait_for(&gate.waiting, 1);
    begin = hr__now_ns();
    CHECK_ERR(HR_ERR_LIMIT, hr_iter_stop(iter, 1500000000, NULL));
    stopped = hr__now_ns();
    hr_iter_close(iter);
    CHECK(hr__now_ns() - stopped < stopped - begin);
    atomic_store(&gate.open, true);
    wait_for(&gate.released, 1);
}

struct consumer {
    struct hr_iter *iter;
    enum hr_err code;
};

static void *consume(void *user)
{
    struct consumer *consumer = user;
    struct hr_batch *batch;

    while ((consumer->code = hr_iter_next(consumer->iter, &batch, NULL)) == HR_OK)
        hr_batch_unref(batch);
    return NULL;
}

TEST(another_thread_may_stop_and_close_under_a_consumer_in_user_code)
{
    struct gate gate = {.open = false};
    struct world w = {.end = 1000};
    struct consumer consumer = {
        open_gated(GRAPH(RANGE(1000) GATED("threads") BATCH(10)), &gate, &w, 0), HR_OK};
    struct hr_error error = {0};
    pthread_t thread;

    CHECK_EQ_INT(pthread_create(&thread, NULL, consume, &consumer), 0);
    wait_for(&gate.waiting, 1);
    CHECK_ERR(HR_ERR_LIMIT, hr_iter_stop(consumer.iter, 1000000, &error));
    CHECK_EQ_INT(error.record, 21);
    hr_iter_close(consumer.iter);
    CHECK_EQ_INT(gate.released, 0);
    atomic_store(&gate.open, true);
    pthread_join(thread, NULL);
    CHECK_ERR(HR_ERR_CANCELLED, consumer.code);
    CHECK_EQ_INT(gate.released, 1); /* the consumer was the last one inside */
}

TEST(user_code_may_close_its_own_iterator)
{
    for (int threads = 0; threads <= 2; threads++) {
        struct gate gate = {.open = true, .closes = true};
        struct world w = {.end = 1000};
        struct consumer consumer = {
            open_gated(GRAPH(RANGE(1000) GATED("threads") BATCH(10)), &gate, &w, threads),
            HR_OK};

        atomic_store(&gate.iter, consumer.iter);
        if (threads == 0) {
            consume(&consumer);
            CHECK_ERR(HR_ERR_CANCELLED, consumer.code);
        }
        wait_for(&gate.released, 1);
    }
}

TEST(a_batch_outlives_an_iterator_that_could_not_stop)
{
    struct gate gate = {.open = false};
    struct world w = {.end = 1000};
    struct hr_iter *iter =
        open_gated(GRAPH(RANGE(1000) GATED("threads") BATCH(10)), &gate, &w, 1);
    struct hr_field_view view;
    struct hr_batch *batch = NULL;

    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    wait_for(&gate.waiting, 1);
    hr_iter_close(iter);
    CHECK_EQ_INT(gate.released, 0);
    atomic_store(&gate.open, true);
    wait_for(&gate.released, 1);
    CHECK_OK(hr_batch_field(batch, 0, &view));
    CHECK_EQ_INT(((const int64_t *)view.data)[9], 9);
    hr_batch_unref(batch);
}

TEST(an_engine_that_could_not_stop_keeps_its_pool)
{
    struct gate gate = {.open = false};
    struct world w = {.end = 1000};
    struct set_up up = {&w, add_gate, &gate};
    struct outcome_job job =
        code_job(GRAPH(RANGE(1000) GATED("threads") BATCH(10)), &up, 1, NULL);
    struct hr_graph *graph = outcome_graph(&job, NULL);
    const struct hr_engine_place place = {.pool = hr_pool_create(0)};
    struct hr_iter_options options;
    struct hr_engine *engine = NULL;

    hr_iter_options_init(&options);
    options.threads = 1;
    CHECK(graph != NULL && place.pool != NULL);
    CHECK_OK(hr__engine_open_in(graph, &options, &place, &engine, NULL));
    hr_graph_unref(graph); /* the engine keeps it */
    wait_for(&gate.waiting, 1);
    CHECK_ERR(HR_ERR_LIMIT, hr__engine_stop(engine, 0, NULL));
    hr__engine_close(engine);
    hr_pool_unref(place.pool);
    atomic_store(&gate.open, true);
    wait_for(&gate.released, 1);
}
