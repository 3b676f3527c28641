/*
 * engine/code_end_test.c - sources whose code decides where they end: at any place, with
 * any ops after them. And runs of user code in which any allocation fails.
 */
#include "engine/code_test_util.h"

TEST(a_source_that_ends_equals_one_of_that_length)
{
    for (int64_t end = 0; end < 40; end++) {
        char text[256];
        struct world w = {.end = end}, known = {.end = INT64_MAX};
        struct outcome *want;

        snprintf(text, sizeof text, GRAPH("  - source.range: {n: %d}\n" MAP BATCH(8)),
                 (int)end);
        want = run(text, &known, 1, NULL);
        for (int threads = 0; threads < 5; threads++) {
            struct outcome *o = run(GRAPH(ENDLESS MAP BATCH(8)), &w, threads, NULL);

            CHECK_EQ_INT(o->records, end);
            outcome_check_same(want, o, 0, "no count");
            CHECK_EQ_INT(o->stats.epoch_records, -1);
            outcome_free(o);
        }
        outcome_free(want);
    }
}

TEST(an_end_is_the_same_in_every_plan_with_sequencers_epochs_and_bad_records)
{
    static const char *const graphs[] = {
        GRAPH(ENDLESS BATCH(8)),
        GRAPH(ENDLESS THIRD BATCH(8)),
        GRAPH(ENDLESS "  - order.take: {count: 70}\n" MAP BATCH(8)),
        GRAPH(ENDLESS "  - order.skip: {count: 30}\n"
                      "  - order.shuffle: {window: 16}\n" BATCH(8)),
        GRAPH(ENDLESS "  - order.shuffle: {window: 64}\n" MAP EXPAND BATCH(8)),
        GRAPH(ENDLESS MAP),
    };
    struct hr_iter_options options;

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        struct world w = {.end = 103}, bad = {.end = 103, .every = 10};

        hr_iter_options_init(&options);
        options.epochs = 3;
        check_equivalent(graphs[i], &w, &options);
        options.epochs = 1;
        options.on_error = HR_ON_ERROR_SKIP;
        check_equivalent(graphs[i], &bad, &options);
        options.on_error = HR_ON_ERROR_SUBSTITUTE;
        check_equivalent(graphs[i], &bad, &options);
    }
}

TEST(batches_as_completed_hold_every_record_of_a_source_that_ends)
{
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.ordered = false;
    options.epochs = 3;
    for (int64_t end = 1; end < 200; end += 33) {
        struct world w = {.end = end};
        struct outcome *o = run(GRAPH(ENDLESS BATCH(8)), &w, 4, &options);

        CHECK_ERR(HR_ERR_END, o->code);
        CHECK_EQ_INT(o->records, 3 * end);
        outcome_free(o);
    }
}

TEST(a_source_without_records_ends_endless_epochs)
{
    struct world w = {.end = 0};
    struct hr_iter_options options;
    struct outcome *o;

    hr_iter_options_init(&options);
    options.epochs = 0;
    o = run(GRAPH(ENDLESS BATCH(8)), &w, 2, &options);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->batches, 0);
    outcome_free(o);
}

TEST(ranks_share_a_source_that_ends)
{
    int64_t records = 0;

    for (int rank = 0; rank < 3; rank++) {
        struct world w = {.end = 100};
        struct hr_iter_options options;
        struct outcome *o;

        hr_iter_options_init(&options);
        options.rank = rank;
        options.world = 3;
        o = run(GRAPH(ENDLESS BATCH(8)), &w, 2, &options);
        CHECK_ERR(HR_ERR_END, o->code);
        records += o->records;
        outcome_free(o);
    }
    CHECK_EQ_INT(records, 100);
}

/* ---- allocations that fail ---- */

static bool
survives(const char *text, int threads, enum hr_on_error on_error, uint64_t nth)
{
    struct world w = {.end = 40, .every = 9};
    struct hr_iter_options options;
    struct outcome *o;
    uint64_t calls;

    hr_iter_options_init(&options);
    options.on_error = on_error;
    options.ordered = false;
    hr__fault_arm(HR_FAULT_ALLOC, nth);
    o = run(text, &w, threads, &options);
    calls = hr__fault_calls();
    hr__fault_arm(0, 0);
    check_survived(o, calls, nth);
    outcome_free(o);
    return calls >= nth;
}

TEST(any_allocation_may_fail)
{
    static const char *const graphs[] = {
        GRAPH(ENDLESS MAP BATCH(8)),
        GRAPH(CODE_RANGE(40) THIRD EXPAND BATCH(8)),
        GRAPH(RANGE(40) TEXTS BATCH(8) MAP_BATCH),
    };

    for (size_t i = 0; i < 3; i++)
        for (int threads = 0; threads < 3; threads += 2)
            for (uint64_t nth = 1;
                 survives(graphs[i], threads,
                          i == 1 ? HR_ON_ERROR_SUBSTITUTE : HR_ON_ERROR_SKIP, nth);)
                nth += nth < 400 ? 1 : 37;
}
