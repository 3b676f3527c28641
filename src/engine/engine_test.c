/*
 * engine/engine_test.c - the same bytes, whatever runs them: threads, order of
 * completion, restarts, filters, bad records.
 *
 * Graphs of numbers show order and counts; what they share with photos is everything but
 * the kernels. The tests of ops and tests/e2e cover those.
 */
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/str.h"

static struct hr_graph *load(const char *text)
{
    struct outcome_job job = outcome_job_text(text);
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(&job, &error);

    if (graph == NULL)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

static struct outcome *
run(const char *text, int threads, const struct hr_iter_options *options)
{
    struct outcome_job job = outcome_job_with(text, threads, options);

    return outcome_run(&job);
}

static void check_equivalent(const char *text, const struct hr_iter_options *options)
{
    outcome_check_threads_and_restarts(outcome_job_with(text, 0, options));
}

#define GRAPH(steps) "headrace: 1\npipeline:\n" steps
#define RANGE(n) "  - source.range: {n: " #n "}\n"
#define SHUFFLE "  - order.shuffle: {}\n"
#define BATCH(n) "  - batch.stack: {size: " #n "}\n"
#define DROP_THIRD "  - record.filter: {expr: \"value % 3 != 1\"}\n"

TEST(a_chain_gives_the_same_bytes_in_any_number_of_threads)
{
    check_equivalent(GRAPH(RANGE(1000) SHUFFLE "  - debug.identity: {}\n" BATCH(7)),
                     NULL);
}

TEST(several_epochs_differ_and_are_repeatable)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.epochs = 3;
    check_equivalent(GRAPH(RANGE(100) SHUFFLE BATCH(9)), &options);
    o = run(GRAPH(RANGE(100) SHUFFLE BATCH(100)), 2, &options);
    CHECK_EQ_INT(o->batches, 3);
    CHECK(o->hashes[0] != o->hashes[1]);
    CHECK(o->hashes[1] != o->hashes[2]);
    outcome_free(o);
}

TEST(another_seed_gives_another_order)
{
    struct hr_iter_options options;
    struct outcome *a = run(GRAPH(RANGE(100) SHUFFLE BATCH(100)), 1, NULL), *b;

    hr_iter_options_init(&options);
    options.seed = 1;
    b = run(GRAPH(RANGE(100) SHUFFLE BATCH(100)), 1, &options);
    CHECK(a->hashes[0] != b->hashes[0]);
    outcome_free(a);
    outcome_free(b);
}

TEST(a_filter_that_drops_a_third_changes_nothing_about_order)
{
    struct outcome *o = run(GRAPH(RANGE(1000) DROP_THIRD BATCH(10)), 2, NULL);

    CHECK_EQ_INT(o->records, 667);
    CHECK_EQ_INT(o->sizes[66], 7);
    outcome_free(o);
    check_equivalent(GRAPH(RANGE(1000) SHUFFLE DROP_THIRD BATCH(10)), NULL);
}

TEST(stream_ops_behind_a_filter_keep_their_counts_over_restarts)
{
    check_equivalent(GRAPH(RANGE(1000) DROP_THIRD
                           "  - order.skip: {count: 11}\n"
                           "  - order.take: {count: 500}\n" BATCH(10)),
                     NULL);
}

TEST(a_window_shuffle_behind_a_filter_restarts_anywhere)
{
    check_equivalent(
        GRAPH(RANGE(700) DROP_THIRD "  - order.shuffle: {window: 64}\n" BATCH(10)), NULL);
    check_equivalent(GRAPH(RANGE(700) DROP_THIRD
                           "  - order.shuffle: {window: 64}\n"
                           "  - debug.identity: {}\n"
                           "  - order.take: {count: 200}\n" BATCH(10)),
                     NULL);
}

TEST(two_windows_behind_a_filter_both_shuffle)
{
    static const char two[] =
        GRAPH(RANGE(300) DROP_THIRD "  - order.shuffle: {window: 16}\n"
                                    "  - order.shuffle: {window: 64}\n" BATCH(10));
    struct outcome *both = run(two, 2, NULL);
    struct outcome *second =
        run(GRAPH(RANGE(300) DROP_THIRD "  - order.shuffle: {window: 64}\n" BATCH(10)), 2,
            NULL);

    CHECK_EQ_INT(both->records, second->records);
    CHECK(both->hashes[0] != second->hashes[0]);
    outcome_free(both);
    outcome_free(second);
    check_equivalent(two, NULL);
}

TEST(batches_are_taken_apart_and_made_anew)
{
    struct outcome *o;

    check_equivalent(
        GRAPH(RANGE(500) SHUFFLE BATCH(32) "  - batch.unbatch: {}\n" BATCH(10)), NULL);
    check_equivalent(GRAPH(RANGE(500)
                               BATCH(32) "  - batch.unbatch: {}\n" DROP_THIRD
                                         "  - order.shuffle: {window: 16}\n" BATCH(7)),
                     NULL);
    o = run(GRAPH(RANGE(500) BATCH(32) "  - batch.unbatch: {}\n" BATCH(500)), 2, NULL);
    CHECK_EQ_INT(o->batches, 1);
    outcome_free(o);
}

TEST(strings_come_out_of_batches_as_they_went_in)
{
    char path[512], direct[1024], around[1024];
    struct outcome *a, *b;
    FILE *file;

    snprintf(path, sizeof path, "%s/lines.txt", check_temp_dir());
    file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 0; i < 100; i++)
        fprintf(file, "line %.*s %d\n", i % 7, "wordword", i);
    fclose(file);
    snprintf(direct, sizeof direct, GRAPH("  - source.list: {path: %s}\n" BATCH(10)),
             path);
    snprintf(around, sizeof around,
             GRAPH("  - source.list: {path: %s}\n" BATCH(
                 32) "  - batch.unbatch: {}\n" BATCH(10)),
             path);
    a = run(direct, 2, NULL);
    b = run(around, 2, NULL);
    CHECK_EQ_INT(a->batches, 10);
    outcome_check_same(a, b, 0, "batches made anew");
    outcome_free(a);
    outcome_free(b);
    check_equivalent(around, NULL);
}

TEST(a_graph_without_batches_gives_batches_of_one)
{
    struct outcome *o = run(GRAPH(RANGE(20)), 2, NULL);

    CHECK_EQ_INT(o->batches, 20);
    CHECK_EQ_INT(o->sizes[3], 1);
    outcome_free(o);
    check_equivalent(GRAPH(RANGE(50) SHUFFLE DROP_THIRD), NULL);
}

TEST(drop_last_drops_only_the_incomplete_batch)
{
    struct outcome *o =
        run(GRAPH(RANGE(25) "  - batch.stack: {size: 10, drop_last: true}\n"), 2, NULL);

    CHECK_EQ_INT(o->batches, 2);
    outcome_free(o);
    o = run(GRAPH(RANGE(25) DROP_THIRD "  - batch.stack: {size: 10, drop_last: true}\n"),
            2, NULL);
    CHECK_EQ_INT(o->batches, 1);
    outcome_free(o);
}

TEST(bad_records_are_skipped_with_the_same_bytes_for_all)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    check_equivalent(
        GRAPH(RANGE(1000) SHUFFLE "  - debug.fail: {every: 100}\n" BATCH(16)), &options);
    check_equivalent(
        GRAPH(RANGE(1000) SHUFFLE "  - debug.fail: {every: 100}\n" DROP_THIRD BATCH(16)),
        &options);
    o = run(GRAPH(RANGE(1000) "  - debug.fail: {every: 100}\n" BATCH(10)), 2, &options);
    CHECK_EQ_INT(o->records, 990);
    CHECK_EQ_INT(o->batches, 99);
    CHECK_EQ_INT(o->stats.errors, 10);
    outcome_free(o);
}

TEST(bad_records_are_substituted_with_the_same_bytes_for_all)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    check_equivalent(
        GRAPH(RANGE(1000) SHUFFLE "  - debug.fail: {every: 100}\n" BATCH(16)), &options);
    check_equivalent(
        GRAPH(RANGE(1000) SHUFFLE "  - debug.fail: {every: 100}\n" DROP_THIRD BATCH(16)),
        &options);
    o = run(GRAPH(RANGE(1000) "  - debug.fail: {every: 100}\n" BATCH(10)), 2, &options);
    CHECK_EQ_INT(o->records, 1000);
    CHECK_EQ_INT(o->stats.substituted, 10);
    outcome_free(o);
}

TEST(a_bad_record_fails_the_run_behind_the_batches_before_it)
{
    struct outcome *o =
        run(GRAPH(RANGE(100) "  - debug.fail: {at: [57], message: broken}\n" BATCH(10)),
            2, NULL);

    CHECK(o->code != HR_ERR_END && o->code != HR_OK);
    CHECK_EQ_INT(o->batches, 5);
    CHECK_HAS(o->error.message, "broken");
    CHECK_HAS(o->error.message, "debug.fail");
    CHECK_EQ_INT(o->error.record, 58);
    outcome_free(o);
}

TEST(too_many_bad_records_end_the_run)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    options.errors_max = 3;
    o = run(GRAPH(RANGE(1000) "  - debug.fail: {every: 10}\n" BATCH(10)), 2, &options);
    CHECK_ERR(HR_ERR_LIMIT, o->code);
    CHECK_HAS(o->error.message, "4 bad records");
    outcome_free(o);
}

TEST(a_limit_cuts_the_last_batch)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.records_max = 25;
    o = run(GRAPH(RANGE(1000) BATCH(10)), 2, &options);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->records, 25);
    outcome_free(o);
    options.epochs = 0;
    options.records_max = 2500;
    o = run(GRAPH(RANGE(100) DROP_THIRD BATCH(10)), 2, &options);
    CHECK_EQ_INT(o->records, 2500);
    outcome_free(o);
}

TEST(a_limit_counts_what_came_before_a_restart)
{
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.records_max = 255;
    check_equivalent(GRAPH(RANGE(1000) SHUFFLE BATCH(10)), &options);
    check_equivalent(GRAPH(RANGE(1000) SHUFFLE DROP_THIRD BATCH(10)), &options);
}

TEST(an_error_in_an_early_stage_waits_for_the_batches_before_it)
{
    static const char text[] = GRAPH(RANGE(200) "  - debug.fail: {at: [150]}\n" BATCH(
        16) "  - batch.unbatch: {}\n" BATCH(7));
    struct outcome *first = run(text, 0, NULL);

    CHECK_EQ_INT(first->batches, 144 / 7);
    for (int i = 0; i < 20; i++) {
        struct outcome *other = run(text, 1 + i % 3, NULL);

        outcome_check_same(first, other, 0, "threads");
        outcome_free(other);
    }
    outcome_free(first);
}

TEST(an_unordered_run_gives_the_same_records)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.ordered = false;
    o = run(GRAPH(RANGE(1000) SHUFFLE BATCH(10)), 3, &options);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->records, 1000);
    outcome_free(o);
}

TEST(two_branches_of_one_source_are_joined_record_by_record)
{
    static const char text[] = "headrace: 1\n"
                               "pipeline:\n"
                               "  - source.range: {n: 300}\n"
                               "  - order.shuffle: {}\n"
                               "    name: order\n"
                               "  - debug.identity: {}\n"
                               "    name: a\n"
                               "    inputs: [order]\n"
                               "  - debug.identity: {}\n"
                               "    name: b\n"
                               "    inputs: [order]\n"
                               "  - flow.zip: {prefix: [left_, right_]}\n"
                               "    inputs: [a, b]\n"
                               "  - batch.stack: {size: 30}\n";
    struct hr_graph *graph = load(text);
    struct hr_iter *iter;
    struct hr_batch *batch;
    struct hr_field_view left, right;

    CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    CHECK_OK(hr_batch_find(batch, "left_value", &left));
    CHECK_OK(hr_batch_find(batch, "right_value", &right));
    CHECK_BYTES(left.data, right.data, left.bytes);
    hr_batch_unref(batch);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    check_equivalent(text, NULL);
}

/* ---- ranks ---- */

static void collect(const char *text, const struct hr_iter_options *options,
                    int64_t *seen, int64_t batches, char **ret_state)
{
    struct hr_graph *graph = load(text);
    struct hr_iter *iter;
    struct hr_batch *batch;
    struct hr_field_view view;
    struct hr_error error = {0};

    if (hr_iter_open(graph, options, &iter, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    while (batches-- != 0 && hr_iter_next(iter, &batch, NULL) == HR_OK) {
        CHECK_OK(hr_batch_field(batch, 0, &view));
        for (int64_t i = 0; i < view.dims[0]; i++)
            seen[((const int64_t *)view.data)[i]]++;
        hr_batch_unref(batch);
    }
    if (ret_state != NULL)
        CHECK_OK(hr_iter_save(iter, ret_state, NULL));
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

TEST(ranks_divide_an_epoch_and_divide_the_rest_anew)
{
    static const char text[] = GRAPH(RANGE(1003) SHUFFLE BATCH(8));
    struct hr_iter_options options;
    int64_t seen[1003] = {0};
    char *state = NULL;

    hr_iter_options_init(&options);
    options.world = 4;
    for (options.rank = 0; options.rank < 4; options.rank++) {
        hr_free(state);
        collect(text, &options, seen, 10, &state);
    }
    options.world = 3;
    options.state = state;
    for (options.rank = 0; options.rank < 3; options.rank++)
        collect(text, &options, seen, -1, NULL);
    hr_free(state);
    for (int i = 0; i < 1003; i++)
        CHECK_EQ_INT(seen[i], 1);
}

TEST(a_sharding_op_divides_the_rest_anew)
{
    char text[512], *state = NULL;
    struct hr_iter_options options;
    int64_t seen[1003] = {0};

    hr_iter_options_init(&options);
    for (int rank = 0; rank < 4; rank++) {
        hr_free(state);
        snprintf(
            text, sizeof text,
            GRAPH(RANGE(1003) SHUFFLE "  - order.shard: {rank: %d, world: 4}\n" BATCH(8)),
            rank);
        collect(text, &options, seen, 10, &state);
    }
    options.state = state;
    for (int rank = 0; rank < 5; rank++) {
        snprintf(
            text, sizeof text,
            GRAPH(RANGE(1003) SHUFFLE "  - order.shard: {rank: %d, world: 5}\n" BATCH(8)),
            rank);
        collect(text, &options, seen, -1, NULL);
    }
    hr_free(state);
    for (int i = 0; i < 1003; i++)
        CHECK_EQ_INT(seen[i], 1);
}

/* The state of two ranks, taken over by a consumer that names none, and the reverse; a
 * path that is longer than its source. */
TEST(one_consumer_takes_over_from_two_ranks)
{
    static const char *const texts[] = {
        GRAPH(RANGE(60) BATCH(4)),
        GRAPH(RANGE(60) SHUFFLE BATCH(4)),
        GRAPH(RANGE(60) "  - order.repeat: {count: 3}\n" BATCH(4)),
    };

    for (int at = 0; at < 3; at++) {
        struct hr_iter_options options;
        int64_t seen[60] = {0};
        char *one = NULL, *two = NULL;

        hr_iter_options_init(&options);
        collect(texts[at], &options, seen, 2, &one);
        options.state = one;
        options.world = 2;
        for (options.rank = 0; options.rank < 2; options.rank++) {
            hr_free(two);
            collect(texts[at], &options, seen, 4, &two);
        }
        options.state = two;
        options.rank = options.world = 0;
        collect(texts[at], &options, seen, -1, NULL);
        hr_free(one);
        hr_free(two);
        for (int i = 0; i < 60; i++)
            CHECK_EQ_INT(seen[i], at == 2 ? 3 : 1);
    }
}

static int64_t sum(const int64_t *numbers, int count)
{
    int64_t all = 0;

    for (int i = 0; i < count; i++)
        all += numbers[i];
    return all;
}

/* Five ranks do 400 of 1003 records; four share the rest: 150 and 3 over, or 151 less 1.
 */
TEST(even_shares_are_even_and_go_on_with_other_ranks)
{
    static const char text[] = GRAPH(RANGE(1003) SHUFFLE BATCH(8));
    static const enum hr_even evens[] = {HR_EVEN_DROP, HR_EVEN_REPEAT};

    for (int at = 0; at < 2; at++) {
        struct hr_iter_options options;
        int64_t seen[1003] = {0}, distinct = 0;
        char *state = NULL;

        hr_iter_options_init(&options);
        options.even = evens[at];
        options.world = 5;
        for (options.rank = 0; options.rank < 5; options.rank++) {
            hr_free(state);
            collect(text, &options, seen, 10, &state);
        }
        options.world = 4;
        options.state = state;
        for (options.rank = 0; options.rank < 4; options.rank++) {
            int64_t before = sum(seen, 1003);

            collect(text, &options, seen, -1, NULL);
            CHECK_EQ_INT(sum(seen, 1003) - before, 150 + at);
        }
        hr_free(state);
        for (int i = 0; i < 1003; i++)
            distinct += seen[i] > 0;
        CHECK_EQ_INT(distinct, at == 0 ? 1000 : 1003);
    }
}

TEST(even_without_a_rank_is_refused)
{
    struct hr_graph *graph = load(GRAPH(RANGE(10) BATCH(4)));
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;

    hr_iter_options_init(&options);
    options.even = HR_EVEN_DROP;
    CHECK_ERR(HR_ERR_ARGUMENT, hr_iter_open(graph, &options, &iter, &error));
    CHECK_EQ_STR(error.message,
                 "even shares are those of a rank: give rank and world, too");
    hr_graph_unref(graph);
}

/* ---- states ---- */

TEST(a_state_of_another_graph_seed_or_shape_is_refused)
{
    struct hr_iter_options options;
    struct outcome *o = run(GRAPH(RANGE(100) BATCH(10)), 1, NULL), *other;

    hr_iter_options_init(&options);
    options.state = o->states[2];
    other = run(GRAPH(RANGE(101) BATCH(10)), 1, &options);
    CHECK_ERR(HR_ERR_STATE, other->code);
    CHECK_HAS(other->error.message, "another graph");
    outcome_free(other);
    options.seed = 5;
    other = run(GRAPH(RANGE(100) BATCH(10)), 1, &options);
    CHECK_ERR(HR_ERR_STATE, other->code);
    outcome_free(other);
    options.seed = 0;
    options.state = "{\"headrace_state\": 2";
    other = run(GRAPH(RANGE(100) BATCH(10)), 1, &options);
    CHECK_ERR(HR_ERR_FORMAT, other->code);
    CHECK_HAS(other->error.message, "damaged");
    outcome_free(other);
    outcome_free(o);
}

TEST(a_place_far_into_a_huge_epoch_is_found_at_once)
{
    static const char text[] = GRAPH(RANGE(1000000000000) SHUFFLE BATCH(10));
    struct hr_iter_options options;
    struct outcome *o, *rest;
    struct hr_str far;
    const char *at;

    hr_iter_options_init(&options);
    options.records_max = 10;
    o = run(text, 0, &options);
    CHECK_EQ_INT(o->batches, 1);
    at = strstr(o->states[0], "\"position\":10");
    CHECK(at != NULL);
    hr__str_init(&far);
    hr__str_add_bytes(&far, o->states[0], (size_t)(at - o->states[0]));
    hr__str_add(&far, "\"position\":987654321010");
    hr__str_add(&far, at + strlen("\"position\":10"));
    options.state = hr__str_text(&far);
    options.records_max = 20; /* the ten before it count */
    rest = run(text, 0, &options);
    CHECK_EQ_INT(rest->batches, 1);
    hr__str_finish(&far);
    outcome_free(o);
    outcome_free(rest);
}

/* ---- limits, failures ---- */

TEST(a_budget_that_is_too_small_is_refused_with_the_least_that_would_do)
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

TEST(waiting_for_a_time_gives_nothing_until_a_batch_is_there)
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

TEST(closing_in_the_middle_leaves_nothing_behind)
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

TEST(nothing_is_to_be_had_of_an_empty_source)
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
