/*
 * engine/engine_place_test.c - ranks that share an epoch, and runs that resume from a
 * state: every record once, wherever a run stopped and whichever rank resumes it.
 */
#include "engine/engine_test_util.h"

#include <stdlib.h>
#include <string.h>

#include "core/str.h"

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

TEST(ranks_divide_an_epoch_and_divide_the_rest_again)
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

/* Counts the records of a rank's first `batches` batches that are no padding. Returns the
 * number of batches. */
static int64_t
collect_valid(struct hr_graph *graph, const struct hr_iter_options *options,
              int64_t *seen, int64_t batches, char **ret_state)
{
    struct hr_iter *iter;
    struct hr_batch *batch;
    int64_t got = 0;

    CHECK_OK(hr_iter_open(graph, options, &iter, NULL));
    for (; batches != got && hr_iter_next(iter, &batch, NULL) == HR_OK; got++) {
        struct hr_field_view values, valid;
        int64_t padding = 0;

        CHECK_OK(hr_batch_find(batch, "value", &values));
        CHECK_OK(hr_batch_find(batch, HR_PAD_FIELD, &valid));
        CHECK(valid.dtype == HR_BOOL && valid.ndim == 1);
        CHECK_EQ_INT(valid.dims[0], values.dims[0]);
        for (int64_t i = 0; i < valid.dims[0]; i++) {
            bool good = ((const bool *)valid.data)[i];

            seen[((const int64_t *)values.data)[i]] += good;
            padding += !good;
        }
        CHECK(padding <= 1 && (options->world > 1 || padding == 0));
        hr_batch_unref(batch);
    }
    if (ret_state != NULL)
        CHECK_OK(hr_iter_save(iter, ret_state, NULL));
    hr_iter_close(iter);
    return got;
}

static void check_once(const int64_t *seen, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ_INT(seen[i], 1);
}

/* n records on `world` ranks; after `steps` of them the rest on `then`. */
static void
check_padded(int64_t n, int64_t world, int64_t then, int64_t steps, const char *end)
{
    struct hr_iter_options options;
    struct hr_graph *graph;
    char text[512], *state = NULL;
    int64_t seen[128] = {0}, all = -1;

    snprintf(text, sizeof text, "headrace: 1\npipeline:\n  - source.range: {n: %lld}\n%s",
             (long long)n, end);
    graph = load(text);
    hr_iter_options_init(&options);
    options.even = HR_EVEN_PAD;
    options.world = world;
    for (options.rank = 0; options.rank < world; options.rank++) {
        hr_free(state);
        collect_valid(graph, &options, seen, steps, &state);
    }
    options.world = then;
    options.state = state;
    for (options.rank = 0; options.rank < then; options.rank++) {
        int64_t batches = collect_valid(graph, &options, seen, -1, NULL);

        CHECK(all == -1 || batches == all);
        all = batches;
    }
    check_once(seen, n);
    hr_free(state);
    hr_graph_unref(graph);
}

TEST(padded_shares_cover_an_epoch_once_in_equal_steps)
{
    static const char *const ends[] = {
        "",
        BATCH(4),
        SHUFFLE BATCH(16),
        "  - debug.identity: {}\n" SHUFFLE BATCH(3),
        "  - batch.pad: {size: 5}\n",
    };
    uint64_t chance = check_seed();

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (int64_t n = 1; n < 100; n += 6)
            for (int64_t world = 1; world < 5; world++, chance++)
                check_padded(n, world, 1 + (int64_t)(chance % 5), (int64_t)(chance % 7),
                             ends[i]);
    check_padded(97, 2, 2, 0, BATCH(16));
}

TEST(padding_that_could_not_be_marked_is_refused_by_node)
{
    static const struct {
        const char *text, *words;
    } refused[] = {
        {GRAPH(RANGE(97) "  - batch.stack: {size: 16, drop_last: true}\n"),
         "(batch.stack): it drops the last records"                                 },
        {GRAPH(RANGE(97) DROP_THIRD BATCH(16)),
         "(batch.stack): after it the number of a rank's records is known only when"},
        {GRAPH(RANGE(97) BATCH(16) "  - batch.unbatch: {}\n"),
         "(batch.unbatch): after it the number"                                     },
        {GRAPH(RANGE(97) "  - record.rename: {fields: {value: valid}}\n" BATCH(16)),
         "have a field \"valid\""                                                   },
    };
    struct hr_iter_options options;
    struct hr_epoch_size size;

    hr_iter_options_init(&options);
    options.even = HR_EVEN_PAD;
    options.world = 2;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct hr_graph *graph = load(refused[i].text);
        struct hr_error error = {0};

        CHECK(hr_graph_epoch_size(graph, &options, &size, &error) != HR_OK);
        CHECK_HAS(error.message, refused[i].words);
        hr_graph_unref(graph);
    }
}

TEST(a_sharding_op_divides_the_rest_again)
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

TEST(an_op_that_shards_after_a_filter_divides_what_the_filter_keeps)
{
    static const char *const orders[] = {"", SHUFFLE};
    struct hr_iter_options options;
    char text[512];

    hr_iter_options_init(&options);
    for (int at = 0; at < 2; at++) {
        int64_t seen[100] = {0};

        for (int rank = 0; rank < 3; rank++) {
            snprintf(text, sizeof text,
                     GRAPH(RANGE(100) "%s%s"
                                      "  - order.shard: {rank: %d, world: 3}\n" BATCH(8)),
                     orders[at], DROP_THIRD, rank);
            collect(text, &options, seen, -1, NULL);
        }
        for (int i = 0; i < 100; i++)
            CHECK_EQ_INT(seen[i], i % 3 != 1);
    }
}

/* What the ranks of a world give together is what one consumer gets, each once. */
TEST(ranks_divide_the_first_records_that_a_filter_keeps)
{
    static const struct {
        const char *text;
        int first, last; /* of those that the filter keeps */
    } cases[] = {
        {GRAPH(RANGE(100) DROP_THIRD "  - order.take: {count: 20}\n" BATCH(4)), 0,  20},
        {GRAPH(RANGE(100) DROP_THIRD "  - order.skip: {count: 10}\n" BATCH(4)), 10, 67},
        {GRAPH(RANGE(100) DROP_THIRD "  - order.skip: {count: 10}\n"
                                     "  - order.take: {count: 20}\n"),
         10,                                                                        30},
        {GRAPH(RANGE(100) "  - order.take: {count: 90}\n" DROP_THIRD BATCH(4)), 0,  60},
    };
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.world = 3;
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        int64_t seen[100] = {0};
        int kept = 0;

        for (options.rank = 0; options.rank < 3; options.rank++)
            collect(cases[at].text, &options, seen, -1, NULL);
        for (int i = 0; i < 100; i++) {
            bool good = i % 3 != 1;

            CHECK_EQ_INT(seen[i],
                         good && kept >= cases[at].first && kept < cases[at].last);
            kept += good;
        }
    }
}

/* A consumer without a rank resumes the state of two ranks, and the reverse; also with a
 * path that is longer than its source. */
TEST(one_consumer_resumes_the_state_of_two_ranks)
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
TEST(even_shares_are_even_and_resume_with_other_ranks)
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

/* 128 records for three ranks: the last one makes record 0 again. */
TEST(what_fills_up_even_shares_is_the_same_after_a_restart)
{
    static const char *const texts[] = {
        GRAPH(RANGE(128) BATCH(3)),
        GRAPH(RANGE(128) "  - order.shard: {rank: 2, world: 3, even: repeat}\n" BATCH(3)),
    };

    for (int at = 0; at < 2; at++) {
        struct hr_iter_options options;
        int64_t whole[128] = {0}, parts[128] = {0};
        char *state = NULL;

        hr_iter_options_init(&options);
        if (at == 0) {
            options.even = HR_EVEN_REPEAT;
            options.rank = 2;
            options.world = 3;
        }
        collect(texts[at], &options, whole, -1, NULL);
        collect(texts[at], &options, parts, 10, &state);
        options.state = state;
        collect(texts[at], &options, parts, -1, NULL);
        hr_free(state);
        CHECK_EQ_INT(whole[0], 1);
        CHECK(memcmp(whole, parts, sizeof whole) == 0);
    }
}

/* Two ranks take over from one; three begin. */
TEST(the_substitute_of_a_bad_record_is_the_same_for_all_worlds)
{
    static const char text[] = GRAPH(
        RANGE(101) SHUFFLE "  - debug.fail: {every: 5, message: broken}\n" BATCH(8));
    struct hr_iter_options options;
    int64_t one[101] = {0}, two[101] = {0}, three[101] = {0};
    char *state = NULL;

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    collect(text, &options, one, -1, NULL);
    collect(text, &options, two, 3, &state);
    options.world = 3;
    for (options.rank = 0; options.rank < 3; options.rank++)
        collect(text, &options, three, -1, NULL);
    options.world = 2;
    options.state = state;
    for (options.rank = 0; options.rank < 2; options.rank++)
        collect(text, &options, two, -1, NULL);
    hr_free(state);
    for (int i = 0; i < 101; i++) {
        CHECK_EQ_INT(two[i], one[i]);
        CHECK_EQ_INT(three[i], one[i]);
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
    CHECK_EQ_STR(error.message, "even shares need a rank: give rank and world, too");
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

/* ---- every place of every rank ---- */

#define SKIP_TWO "  - order.skip: {count: 2}\n"
#define TAKE "  - order.take: {count: 41}\n"
#define REPEAT "  - order.repeat: {count: 4}\n"
#define FAIL "  - debug.fail: {at: [0, 2, 4, 6, 50, 51], message: broken}\n"

/* Runs one rank, sharded by the options or by the graph, and resumes it after each of its
 * batches. */
static struct outcome *
run_rank(const char *steps, const char *tail, int rank, int world, bool by_options)
{
    struct hr_iter_options options;
    struct outcome_job job;
    struct outcome *whole;
    char text[512], words[64], shard[64] = "";

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    options.errors_max = 1000000;
    if (by_options) {
        options.rank = rank;
        options.world = world;
    } else {
        snprintf(shard, sizeof shard, "  - order.shard: {rank: %d, world: %d}\n", rank,
                 world);
    }
    snprintf(text, sizeof text, GRAPH("%s%s%s"), steps, shard, tail);
    job = outcome_job_with(text, 0, &options);
    whole = outcome_run(&job);
    if (whole->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s: %s", text, whole->error.message);
    for (size_t i = 0; i < whole->batches; i++) {
        struct outcome *rest;

        job.options.state = whole->states[i];
        rest = outcome_run(&job);
        snprintf(words, sizeof words, "rank %d of %d after batch %zu", rank, world, i);
        outcome_check_same(whole, rest, i + 1, words);
        outcome_free(rest);
    }
    return whole;
}

TEST(every_rank_resumes_after_each_batch_however_it_is_sharded)
{
    static const char *const steps[] = {
        RANGE(52),
        RANGE(52) SKIP_TWO,
        RANGE(52) REPEAT,
        RANGE(52) SKIP_TWO REPEAT,
        RANGE(52) SHUFFLE TAKE REPEAT SKIP_TWO,
    };
    static const char *const tails[] = {BATCH(9), FAIL BATCH(9)};
    static const int worlds[] = {1, 5, 18};

    for (size_t i = 0; i < 5 * 2 * 3; i++) {
        int world = worlds[i % 3];

        for (int rank = 0; rank < world; rank++) {
            const char *tail = tails[i / 3 % 2];
            struct outcome *by_graph = run_rank(steps[i / 6], tail, rank, world, false);
            struct outcome *by_options = run_rank(steps[i / 6], tail, rank, world, true);

            outcome_check_same(by_graph, by_options, 0, "sharded by the options");
            outcome_free(by_graph);
            outcome_free(by_options);
        }
    }
}
