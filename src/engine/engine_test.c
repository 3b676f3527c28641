/*
 * engine/engine_test.c - the same bytes, whatever runs them: threads, order of
 * completion, restarts, filters, bad records.
 *
 * Graphs of numbers test order and counts; they use the same paths as photos, except for
 * the kernels. The tests of ops and tests/e2e cover those.
 */
#include "engine/engine_test_util.h"

#include <stdlib.h>
#include <sys/stat.h>

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

TEST(take_and_skip_after_a_filter_keep_their_counts_over_restarts)
{
    check_equivalent(GRAPH(RANGE(1000) DROP_THIRD
                           "  - order.skip: {count: 11}\n"
                           "  - order.take: {count: 500}\n" BATCH(10)),
                     NULL);
}

TEST(a_window_shuffle_after_a_filter_restarts_anywhere)
{
    check_equivalent(
        GRAPH(RANGE(700) DROP_THIRD "  - order.shuffle: {window: 64}\n" BATCH(10)), NULL);
    check_equivalent(GRAPH(RANGE(700) DROP_THIRD
                           "  - order.shuffle: {window: 64}\n"
                           "  - debug.identity: {}\n"
                           "  - order.take: {count: 200}\n" BATCH(10)),
                     NULL);
}

TEST(orders_after_one_to_one_ops_are_those_before_them)
{
    static const char before[] = GRAPH(
        RANGE(300) SHUFFLE "  - order.skip: {count: 20}\n"
                           "  - order.repeat: {count: 2}\n"
                           "  - order.take: {count: 400}\n"
                           "  - tensor.cast: {dtype: float32, field: value}\n" BATCH(10));
    static const char after[] = GRAPH(
        RANGE(300) "  - debug.identity: {}\n" SHUFFLE "  - order.skip: {count: 20}\n"
                   "  - tensor.cast: {dtype: float32, field: value}\n"
                   "  - order.repeat: {count: 2}\n"
                   "  - debug.identity: {}\n"
                   "  - order.take: {count: 400}\n" BATCH(10));
    struct outcome *one = run(before, 2, NULL), *other = run(after, 2, NULL);

    CHECK_EQ_INT(one->records, 400);
    CHECK_EQ_INT(other->batches, one->batches);
    for (size_t i = 0; i < one->batches; i++)
        CHECK(one->hashes[i] == other->hashes[i]);
    outcome_free(one);
    outcome_free(other);
    check_equivalent(after, NULL);
}

/* Two sources that a zip joins after work on each of them; `of_each` on both. */
#define PAIRS(of_each, then)                                                             \
    GRAPH(RANGE(90) "    name: images\n"                                                 \
                    "  - tensor.cast: {dtype: float32, field: value}\n" of_each          \
                    "    name: a\n" RANGE(90) of_each                                    \
          "    name: b\n"                                                                \
          "  - flow.zip: {prefix: [a_, b_]}\n    inputs: [a, b]\n" then BATCH(9))

TEST(pairs_stay_pairs_behind_shuffles_before_and_after_their_zip)
{
    static const char *const texts[] = {
        PAIRS("  - debug.identity: {}\n", SHUFFLE),
        PAIRS("  - order.shuffle:\n      seed: 3\n", ""),
        PAIRS("  - order.shuffle:\n      seed: 3\n",
              "  - order.skip: {count: 9}\n" SHUFFLE),
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hr_graph *graph = load(texts[i]);
        int64_t moved = 0, at = 0;
        struct hr_iter *iter;
        struct hr_batch *batch;

        CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
        while (hr_iter_next(iter, &batch, NULL) == HR_OK) {
            struct hr_field_view a, b;

            CHECK_OK(hr_batch_find(batch, "a_value", &a));
            CHECK_OK(hr_batch_find(batch, "b_value", &b));
            for (int k = 0; k < 9; k++, at++) {
                int64_t value = ((const int64_t *)b.data)[k];

                CHECK(((const float *)a.data)[k] == (float)value);
                moved += value != at;
            }
            hr_batch_unref(batch);
        }
        CHECK(moved > 60 && at >= 81);
        hr_iter_close(iter);
        hr_graph_unref(graph);
        check_equivalent(texts[i], NULL);
    }
}

TEST(two_windows_after_a_filter_both_shuffle)
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

/* Whether take is in the stage of the bad record or a later one. */
TEST(a_bad_record_after_the_last_one_taken_does_not_matter)
{
    static const char *const texts[] = {
        GRAPH(RANGE(300) DROP_THIRD "  - debug.fail: {at: [30]}\n"
                                    "  - order.take: {count: 20}\n" BATCH(5)),
        GRAPH(RANGE(300) "  - debug.fail: {at: [20]}\n" BATCH(
            4) "  - batch.unbatch: {}\n"
               "  - order.take: {count: 20}\n" BATCH(5)),
    };

    for (int i = 0; i < 8; i++) {
        struct outcome *o = run(texts[i % 2], i / 2, NULL);

        CHECK_EQ_INT(o->code, HR_ERR_END);
        CHECK_EQ_INT(o->records, 20);
        CHECK_EQ_INT(o->stats.errors, 0);
        outcome_free(o);
    }
}

/* Photo 30 has another size than its batch, which no record that is taken belongs to. */
TEST(a_batch_that_fails_after_the_last_record_taken_does_not_matter)
{
    char folder[512], text[1024], path[600];

    snprintf(folder, sizeof folder, "%s/photos", check_temp_dir());
    CHECK_EQ_INT(mkdir(folder, 0777), 0);
    for (int i = 0; i < 40; i++) {
        static const uint8_t pixels[18] = {0};
        FILE *file;

        snprintf(path, sizeof path, "%s/%02d.ppm", folder, i);
        file = fopen(path, "w");
        CHECK(file != NULL);
        fprintf(file, "P6 %d 2 255\n", i == 30 ? 3 : 2);
        fwrite(pixels, 1, i == 30 ? 18 : 12, file);
        fclose(file);
    }
    for (int i = 0; i < 40; i++) {
        struct hr_iter_options options;
        struct outcome *o;

        hr_iter_options_init(&options);
        options.epochs = 2;
        snprintf(text, sizeof text,
                 GRAPH("  - source.files: {path: %s}\n"
                       "  - image.decode: {}\n" BATCH(
                           4) "  - batch.unbatch: {}\n"
                              "  - debug.spin: {us: %d}\n"
                              "  - order.take: {count: %d}\n" BATCH(5)),
                 folder, i % 2 * 20, i % 4 < 2 ? 20 : 35);
        o = run(text, i / 4 % 3, &options);
        CHECK_EQ_INT(o->code, i % 4 < 2 ? HR_ERR_END : HR_ERR_SHAPE);
        CHECK_EQ_INT(o->records, i % 4 < 2 ? 40 : 25);
        outcome_free(o);
    }
}

TEST(a_window_after_a_filter_shuffles_by_epoch_seed_and_node)
{
    static const char text[] =
        GRAPH(RANGE(60) DROP_THIRD "  - order.shuffle: {window: 64}\n" BATCH(64));
    static const char named[] =
        GRAPH(RANGE(60) DROP_THIRD "  - order.shuffle: {window: 64}\n"
                                   "    name: mine\n" BATCH(64));
    struct hr_iter_options options;
    struct outcome *epochs, *node;

    hr_iter_options_init(&options);
    options.epochs = 2;
    epochs = run(text, 2, &options);
    node = run(named, 2, &options);
    CHECK_EQ_INT(epochs->batches, 2);
    CHECK(epochs->hashes[0] != epochs->hashes[1]);
    CHECK(epochs->hashes[0] != node->hashes[0]);
    outcome_free(epochs);
    outcome_free(node);
}

TEST(batches_are_taken_apart_and_stacked_again)
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
    outcome_check_same(a, b, 0, "batches stacked again");
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

/* Record 25 is bad but in no batch: neither of the two plans runs it. */
TEST(a_bad_record_that_no_batch_takes_is_ignored_by_every_plan)
{
#define BAD_TAIL                                                                         \
    RANGE(26)                                                                            \
    "  - order.skip: {count: 1}\n  - debug.fail: {every: 25}\n"                          \
    "  - batch.stack: {size: 10, drop_last: true}\n"
    static const char *const graphs[] = {
        GRAPH(BAD_TAIL), GRAPH(BAD_TAIL "  - batch.unbatch: {}\n" BATCH(4))};

    for (int at = 0; at < 2; at++) {
        struct outcome *o = run(graphs[at], 2, NULL);

        CHECK_ERR(HR_ERR_END, o->code);
        CHECK_EQ_INT(o->records, 20);
        CHECK_EQ_INT(o->stats.errors, 0);
        outcome_free(o);
    }
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

TEST(a_bad_record_fails_the_run_after_the_batches_before_it)
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

/* Threads begin no records beyond the limit, and the run ends all the same. */
TEST(a_limit_ends_runs_whose_records_are_all_needed)
{
    static const struct {
        const char *text;
        int64_t epochs, limit, records; /* records delivered */
    } cases[] = {
        {GRAPH(RANGE(7)),                                                    0, 25,  25 },
        {GRAPH(RANGE(7) SHUFFLE BATCH(10)),                                  0, 25,  25 },
        {GRAPH(RANGE(7) BATCH(3)),                                           2, 25,  14 },
        {GRAPH(RANGE(25) "  - batch.stack: {size: 10, drop_last: true}\n"),  0, 35,  35 },
        {GRAPH(RANGE(25) "  - batch.stack: {size: 10, drop_last: true}\n"),  1, 30,  20 },
        {GRAPH(RANGE(25) BATCH(10) "  - batch.unbatch: {}\n" BATCH(4)),      0, 53,  53 },
        {GRAPH(RANGE(100) DROP_THIRD BATCH(10)),                             0, 333, 333},
        {GRAPH(RANGE(100) "  - debug.fail: {probability: 0.2}\n" BATCH(10)), 0, 333, 333},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int threads = 0; threads < 4; threads++) {
            struct hr_iter_options options;
            struct outcome *o;

            hr_iter_options_init(&options);
            options.epochs = cases[i].epochs;
            options.records_max = cases[i].limit;
            options.on_error =
                threads % 2 == 0 ? HR_ON_ERROR_SKIP : HR_ON_ERROR_SUBSTITUTE;
            options.errors_max = 1000;
            o = run(cases[i].text, threads, &options);
            CHECK_ERR(HR_ERR_END, o->code);
            CHECK_EQ_INT(o->records, cases[i].records);
            outcome_free(o);
        }
    }
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

/* The passes of a repeat are epochs to random draws, and these have 31 bits. */
TEST(an_epoch_without_a_number_for_its_draws_ends_the_run)
{
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.epoch_first = 2146;
    options.epochs = 0;
    o = run(GRAPH(RANGE(1) "  - order.repeat: {count: 1000000}\n" BATCH(10000)), 2,
            &options);
    CHECK_EQ_INT(o->code, HR_ERR_LIMIT);
    CHECK_HAS(o->error.message, "epoch 2146 is the last that");
    CHECK_EQ_INT(o->records, 1000000);
    outcome_free(o);
    options.epoch_first = 2147;
    o = run(GRAPH(RANGE(1) "  - order.repeat: {count: 1000000}\n" BATCH(10000)), 2,
            &options);
    CHECK_EQ_INT(o->code, HR_ERR_LIMIT);
    CHECK_EQ_INT(o->records, 0);
    outcome_free(o);
}
