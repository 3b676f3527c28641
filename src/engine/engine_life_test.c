/*
 * engine/engine_life_test.c - budgets, waiting, cancelling, closing, and failures of the
 * system: runs that end early.
 */
#include "engine/engine_test_util.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

TEST(a_budget_that_is_too_small_is_refused_with_the_least_that_works)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.memory_bytes = 1000;
    o = run(GRAPH(RANGE(100) BATCH(10)), 1, &options);
    CHECK_ERR(HR_ERR_LIMIT, o->code);
    CHECK_HAS(o->error.message, "need at least");
    outcome_free(o);
    options.memory_bytes = 64000000;
    o = run(GRAPH(RANGE(100) BATCH(10)), 1, &options);
    CHECK_ERR(HR_ERR_END, o->code);
    outcome_free(o);
}

/* Files of 64 bytes to 100 kB: their sizes grow from record to record. */
static void write_growing_files(const char *dir)
{
    static const char zeros[100000];
    size_t size = 64;
    char path[512];

    CHECK(mkdir(dir, 0777) == 0);
    snprintf(path, sizeof path, "%s/a", dir);
    CHECK(mkdir(path, 0777) == 0);
    for (int i = 0; i < 140; i++, size += size / 20 + 1) {
        FILE *file;

        snprintf(path, sizeof path, "%s/a/%03d.jpg", dir, i);
        file = fopen(path, "w");
        CHECK(file != NULL && size <= sizeof zeros);
        CHECK(fwrite(zeros, 1, size, file) == size && fclose(file) == 0);
    }
}

/* Most of what this checks shows under TSan: other threads run and sequence records while
 * one divides the plan. */
TEST(a_budget_is_divided_again_while_records_run)
{
    struct hr_iter_options options;
    struct outcome *whole, *limited;
    char dir[256], text[1024];

    snprintf(dir, sizeof dir, "%s/growing", check_temp_dir());
    write_growing_files(dir);
    snprintf(text, sizeof text,
             GRAPH("  - source.files: {path: '%s', labels: folder}\n"
                   "  - record.filter: {expr: \"label >= 0\"}\n" BATCH(
                       4) "  - batch.unbatch: {}\n"
                          "  - record.filter: {expr: \"label >= 0\"}\n" BATCH(4)),
             dir);
    hr_iter_options_init(&options);
    options.epochs = 2;
    whole = run(text, 0, &options);
    CHECK_ERR(HR_ERR_END, whole->code);
    options.memory_bytes = 64000000;
    limited = run(text, 4, &options);
    outcome_check_same(whole, limited, 0, "with a budget");
    outcome_free(whole);
    outcome_free(limited);
}

TEST(a_timed_wait_returns_no_batch_before_one_is_ready)
{
    struct hr_graph *graph =
        load(GRAPH(RANGE(20) "  - debug.sleep: {ms: 5}\n" BATCH(20)));
    struct hr_iter_options options;
    struct hr_iter *iter;
    struct hr_batch *batch = NULL;
    int empty = 0;

    hr_iter_options_init(&options);
    options.threads = 1;
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    for (; batch == NULL; empty++)
        CHECK_OK(hr_iter_next_for(iter, 2000000, &batch, NULL));
    CHECK(empty > 2);
    CHECK_EQ_INT(hr_batch_records(batch), 20);
    hr_batch_unref(batch);
    CHECK_ERR(HR_ERR_END, hr_iter_next_for(iter, UINT64_MAX, &batch, NULL));
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

static void *cancel_soon(void *iter)
{
    usleep(20000);
    hr_iter_cancel(iter);
    return NULL;
}

TEST(cancelling_ends_a_wait)
{
    struct hr_graph *graph =
        load(GRAPH(RANGE(1000) "  - debug.sleep: {ms: 5}\n" BATCH(1000)));
    struct hr_iter *iter;
    struct hr_batch *batch;
    pthread_t thread;

    CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
    CHECK_EQ_INT(pthread_create(&thread, NULL, cancel_soon, iter), 0);
    CHECK_ERR(HR_ERR_CANCELLED, hr_iter_next(iter, &batch, NULL));
    pthread_join(thread, NULL);
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

TEST(closing_in_the_middle_leaks_nothing)
{
    for (int i = 0; i < 20; i++) {
        struct hr_graph *graph = load(GRAPH(RANGE(100000) SHUFFLE DROP_THIRD BATCH(10)));
        struct hr_iter *iter;
        struct hr_batch *batch = NULL;

        CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
        if (i % 2 == 0)
            CHECK_OK(hr_iter_next(iter, &batch, NULL));
        hr_iter_close(iter);
        hr_graph_unref(graph);
        hr_batch_unref(batch); /* outlives its iterator */
    }
}

TEST(an_empty_source_gives_no_batches)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.epochs = 0;
    o = run(GRAPH(RANGE(0) BATCH(10)), 2, &options);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->batches, 0);
    outcome_free(o);
    options.epochs = 2;
    o = run(GRAPH(RANGE(10) "  - record.filter: {expr: \"value > 100\"}\n" BATCH(10)), 2,
            &options);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->batches, 0);
    outcome_free(o);
}

TEST(steady_state_allocates_by_the_batch_and_not_by_the_record)
{
    struct hr_graph *graph =
        load(GRAPH(RANGE(200000) SHUFFLE "  - debug.identity: {}\n" BATCH(500)));
    struct hr_iter *iter;
    struct hr_batch *batch;
    uint64_t before = 0;

    CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
    for (int i = 0; i < 400; i++) {
        if (i == 100)
            before = hr__alloc_count();
        CHECK_OK(hr_iter_next(iter, &batch, NULL));
        hr_batch_unref(batch);
    }
    CHECK(hr__alloc_count() - before <= 2 * 300 + 64);
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

/* Every allocation, open, read and thread start fails once; nothing may leak, hang or
 * crash. */
TEST(any_single_failure_ends_the_run_cleanly)
{
    static const char text[] =
        GRAPH(RANGE(60) SHUFFLE DROP_THIRD "  - order.shuffle: {window: 8}\n" BATCH(7));
    static const unsigned kinds[] = {HR_FAULT_ALLOC, HR_FAULT_THREAD};

    for (size_t k = 0; k < 2; k++) {
        for (uint64_t nth = 1; nth < 5000; nth++) {
            struct hr_graph *graph = NULL;
            struct hr_iter *iter = NULL;
            struct hr_batch *batch;
            struct hr_error error = {0};
            enum hr_err code;
            uint64_t calls;

            hr__fault_arm(kinds[k], nth);
            code = hr_graph_parse(text, strlen(text), "t.yaml", NULL, 0, &graph, &error);
            if (code == HR_OK)
                code = hr_iter_open(graph, NULL, &iter, &error);
            while (code == HR_OK && (code = hr_iter_next(iter, &batch, &error)) == HR_OK)
                hr_batch_unref(batch);
            hr_iter_close(iter);
            hr_graph_unref(graph);
            calls = hr__fault_calls();
            hr__fault_arm(0, 0);
            CHECK(code != HR_OK);
            if (calls < nth) {
                CHECK_ERR(HR_ERR_END, code);
                break;
            }
            if (code != HR_ERR_END)
                CHECK(error.message[0] != '\0');
        }
    }
}
