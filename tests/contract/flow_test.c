/*
 * tests/contract/flow_test.c - the library's ops that take turns between inputs and take
 * records apart, run in every way, and compared with loops that say the same.
 */
#include "tests/contract/contract.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/str.h"
#include "headrace/dataset.h"
#include "tests/support/check.h"

#define INPUTS_MAX 8
#define WORDS "  - text.split: {}\n"

/* ---- flow.interleave ---- */

struct turns {
    int64_t counts[INPUTS_MAX], block;
    size_t inputs;
};

static void draw_turns(struct turns *t, size_t inputs_max, struct hr_rng *rng)
{
    t->inputs = 2 + hr__rng_below(rng, inputs_max - 1);
    t->block = 1 + (int64_t)hr__rng_below(rng, 12);
    for (size_t i = 0; i < t->inputs; i++)
        t->counts[i] = (int64_t)hr__rng_below(rng, 40);
    t->counts[hr__rng_below(rng, t->inputs)] = 40; /* one has records */
}

/* Input i has the numbers 1000 i, 1000 i + 1, ... */
static const char *turns_text(const struct turns *t)
{
    static char text[4096];
    struct hr_str out;

    hr__str_init(&out);
    hr__str_add(&out, "headrace: 1\npipeline:\n");
    for (size_t i = 0; i < t->inputs; i++)
        hr__str_addf(&out,
                     "  - source.range: {n: %lld, start: %zu}\n    name: r%zu\n"
                     "    inputs: []\n",
                     (long long)t->counts[i], 1000 * i, i);
    hr__str_addf(&out, "  - flow.interleave: {block: %lld}\n    inputs: [r0",
                 (long long)t->block);
    for (size_t i = 1; i < t->inputs; i++)
        hr__str_addf(&out, ", r%zu", i);
    hr__str_add(&out, "]\n  - batch.stack: {size: 5}\n");
    CHECK(hr__str_ok(&out) && out.length < sizeof text);
    snprintf(text, sizeof text, "%s", hr__str_text(&out));
    hr__str_finish(&out);
    return text;
}

/* The next number by the definition; -1 at the end. */
struct walk {
    int64_t at[INPUTS_MAX], in_block;
    size_t input;
};

static int64_t next_number(const struct turns *t, struct walk *w)
{
    for (size_t passed = 0; passed <= t->inputs; passed++) {
        size_t input = w->input;

        if (w->in_block < t->block && w->at[input] < t->counts[input]) {
            w->in_block++;
            return 1000 * (int64_t)input + w->at[input]++;
        }
        w->in_block = 0;
        w->input = (input + 1) % t->inputs;
    }
    return -1;
}

TEST(inputs_take_turns_until_all_are_exhausted)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 1);
    for (int round = 0; round < 60; round++) {
        struct contract_batches batches;
        struct outcome_job job;
        struct walk walk = {0};
        struct turns turns;

        draw_turns(&turns, INPUTS_MAX, &rng);
        job = contract_job(turns_text(&turns));
        job.options.epochs = 1;
        contract_take(&job, &batches);
        for (size_t i = 0; i < batches.count; i++) {
            struct hr_field_view view = contract_field(batches.items[i], "value");

            for (int64_t k = 0; k < view.dims[0]; k++) {
                int64_t expected = next_number(&turns, &walk);

                if (((const int64_t *)view.data)[k] != expected)
                    check_failed(__FILE__, __LINE__, "%lld, not %lld, in\n%s",
                                 (long long)((const int64_t *)view.data)[k],
                                 (long long)expected, job.text);
            }
        }
        CHECK_EQ_INT(next_number(&turns, &walk), -1);
        contract_drop(&batches);
    }
}

TEST(turns_have_one_digest)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 2);
    for (int round = 0; round < 3; round++) {
        struct turns turns;

        draw_turns(&turns, 3, &rng); /* each runs in worker processes */
        outcome_free(contract_check(contract_job(turns_text(&turns))));
    }
}

/* ---- flow.window ---- */

struct windows {
    int64_t n, size, stride;
    bool drop_last;
};

static const char *
windows_text(const struct windows *w, const char *before, const char *after)
{
    static char text[1024];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.range: {n: %lld}\n%s"
             "  - flow.window: {size: %lld, stride: %lld, drop_last: %s}\n%s"
             "  - batch.stack: {size: 1}\n",
             (long long)w->n, before, (long long)w->size, (long long)w->stride,
             w->drop_last ? "true" : "false", after);
    return text;
}

static void draw_windows(struct windows *w, struct hr_rng *rng)
{
    w->n = 1 + (int64_t)hr__rng_below(rng, 60);
    w->size = 1 + (int64_t)hr__rng_below(rng, 9);
    w->stride = 1 + (int64_t)hr__rng_below(rng, 14);
    w->drop_last = hr__rng_below(rng, 2) == 0;
}

/* Numbers of the sequence 0, step, 2 step, ...; n of them. */
static void check_windows(const struct windows *w, int64_t step,
                          const struct contract_batches *batches)
{
    size_t found = 0;

    for (int64_t from = 0, seen = 0; from < w->n; from += w->stride) {
        int64_t left = w->n - from, size = left < w->size ? left : w->size;
        struct hr_field_view view;

        if (size < w->size && (w->drop_last || from + size <= seen))
            break;
        CHECK(found < batches->count);
        view = contract_field(batches->items[found++], "value");
        CHECK(view.ndim == 2 && view.dims[0] == 1);
        CHECK_EQ_INT(view.dims[1], size);
        for (int64_t k = 0; k < size; k++)
            CHECK_EQ_INT(((const int64_t *)view.data)[k], step * (from + k));
        seen = from + size;
    }
    CHECK_EQ_INT(batches->count, found);
}

TEST(windows_are_those_of_a_loop)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 3);
    for (int round = 0; round < 80; round++) {
        struct contract_batches batches;
        struct outcome_job job;
        struct windows w;

        draw_windows(&w, &rng);
        job = contract_job(windows_text(&w, "", ""));
        job.options.epochs = 1;
        contract_take(&job, &batches);
        check_windows(&w, 1, &batches);
        contract_drop(&batches);
        job = contract_job(
            windows_text(&w, "  - record.filter: {expr: \"value % 3 == 0\"}\n", ""));
        job.options.epochs = 1;
        contract_take(&job, &batches);
        w.n = (w.n + 2) / 3;
        check_windows(&w, 3, &batches);
        contract_drop(&batches);
    }
}

TEST(windows_have_one_digest)
{
    static const struct windows w[] = {
        {40, 4, 4, true },
        {40, 5, 2, false},
        {40, 3, 7, false},
        {14, 4, 1, true }
    };

    for (size_t i = 0; i < sizeof w / sizeof w[0]; i++) {
        outcome_free(contract_check(contract_job(
            windows_text(&w[i], "  - debug.fail: {probability: 0.1}\n", ""))));
        outcome_free(contract_check(contract_job(windows_text(
            &w[i], "  - order.shuffle: {}\n", "  - order.shuffle: {window: 5}\n"))));
    }
}

/* Byte strings and lists that differ in length. */
TEST(windows_of_lines_have_one_digest)
{
    outcome_free(contract_check(contract_lines(
        40, 6,
        WORDS "  - flow.window: {size: 4, stride: 3, drop_last: false, ragged: true}\n"
              "  - batch.stack: {size: 2, ragged: true}\n")));
}

/* Rank r of `world` has windows r, r + world, ... of all. */
static void check_ranks(struct contract_batches *ranks, size_t world,
                        const struct contract_batches *all)
{
    size_t count = 0;

    for (size_t i = 0; i < all->count; i++) {
        struct hr_field_view one = contract_field(all->items[i], "value"), other;

        CHECK(i / world < ranks[i % world].count);
        other = contract_field(ranks[i % world].items[i / world], "value");
        CHECK_EQ_INT(other.dims[1], one.dims[1]);
        CHECK(memcmp(one.data, other.data, (size_t)one.dims[1] * 8) == 0);
    }
    for (size_t r = 0; r < world; r++) {
        count += ranks[r].count;
        contract_drop(&ranks[r]);
    }
    CHECK_EQ_INT(count, all->count);
}

/* Every window comes once, to one rank, whether the run has ranks or the graph. */
TEST(ranks_divide_windows)
{
    enum { WORLD = 3 };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 4);
    for (int round = 0; round < 20; round++) {
        struct contract_batches ranks[WORLD], all;
        struct outcome_job job;
        struct windows w;
        const char *before =
            round % 2 > 0 ? "  - record.filter: {expr: \"value % 3 > 0\"}\n" : "";

        draw_windows(&w, &rng);
        job = contract_job(windows_text(&w, before, ""));
        job.options.epochs = 1;
        contract_take(&job, &all);
        for (int r = 0; r < WORLD; r++) {
            char shard[80];

            snprintf(shard, sizeof shard, "  - order.shard: {rank: %d, world: %d}\n", r,
                     WORLD);
            job = contract_job(windows_text(&w, before, shard));
            job.options.epochs = 1;
            contract_take(&job, &ranks[r]);
        }
        check_ranks(ranks, WORLD, &all);
        for (int r = 0; r < WORLD; r++) {
            job = contract_job(windows_text(&w, before, ""));
            job.options.epochs = 1;
            job.options.rank = r;
            job.options.world = WORLD;
            contract_take(&job, &ranks[r]);
        }
        check_ranks(ranks, WORLD, &all);
        contract_drop(&all);
    }
}

/* A rank's windows under every plan, and resumed between any two of them. */
TEST(windows_of_a_rank_have_one_digest)
{
    static const struct windows w[] = {
        {40, 4, 4, true },
        {41, 3, 5, false},
        {41, 5, 2, true },
    };

    for (size_t i = 0; i < sizeof w / sizeof *w; i++) {
        struct outcome_job job = contract_job(windows_text(
            &w[i], "  - order.shuffle: {}\n  - debug.fail: {probability: 0.1}\n", ""));

        job.options.rank = (int64_t)i % 2;
        job.options.world = 2;
        outcome_free(contract_check(job));
    }
}

/* Of windows of windows, ranks divide the last. */
TEST(ranks_divide_the_last_windows)
{
    static const struct windows w = {60, 3, 2, true};
    struct contract_batches ranks[2], all;
    struct outcome_job job =
        contract_job(windows_text(&w, "", "  - flow.window: {size: 2, stride: 1}\n"));

    job.options.epochs = 1;
    contract_take(&job, &all);
    for (int r = 0; r < 2; r++) {
        job.options.rank = r;
        job.options.world = 2;
        contract_take(&job, &ranks[r]);
    }
    check_ranks(ranks, 2, &all);
    contract_drop(&all);
}

static void check_refused(struct outcome_job job, const char *message)
{
    struct outcome *outcome = outcome_run(&job);

    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, message);
    outcome_free(outcome);
}

TEST(windows_that_would_be_cut_or_mixed_are_refused)
{
    static const struct windows w = {20, 4, 4, true};
    struct outcome_job job = contract_job(windows_text(&w, "", ""));

    job.options.rank = 1;
    job.options.world = 2;
    job.options.even = HR_EVEN_REPEAT;
    check_refused(job, "shares cannot be even");
    check_refused(
        contract_job(windows_text(&w, "  - order.shard: {rank: 0, world: 2}\n", "")),
        "splits them over ranks: put");
    check_refused(contract_job(windows_text(&w, "  - batch.stack: {size: 2}\n", "")),
                  "batch");
    check_refused(contract_job(windows_text(&(struct windows){20, 0, 4, true}, "", "")),
                  "size");
}

/* ---- record.flat ---- */

TEST(words_of_lines_have_one_digest)
{
    outcome_free(
        contract_check(contract_lines(50, 9,
                                      WORDS "  - record.flat: {fields: words}\n"
                                            "  - debug.fail: {probability: 0.1}\n"
                                            "  - batch.stack: {size: 7}\n")));
    outcome_free(contract_check(contract_lines(50, 9,
                                               "  - order.shuffle: {window: 11}\n" WORDS
                                               "  - record.flat: {fields: words}\n"
                                               "  - order.shuffle: {window: 16}\n"
                                               "  - batch.stack: {size: 7}\n")));
}

/* A row of an image is no image, although it shows the image's bytes. */
TEST(rows_of_images_have_one_digest)
{
    static const struct hr_synth_photos what = {
        .seed = 5, .count = 6, .classes = 1, .width = 20, .height = 16, .vary = true};
    char dir[512], text[1024];
    struct outcome_job job;

    snprintf(dir, sizeof dir, "%s/photos", check_temp_dir());
    CHECK_OK(hr_synth_photos(dir, &what, NULL, NULL, NULL));
    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.files: {path: '%s'}\n"
             "  - image.decode: {mode: exact}\n  - record.flat: {fields: image}\n"
             "  - tensor.cast: {dtype: float32}\n  - batch.pad: {size: 5}\n",
             dir);
    job = contract_job(text);
    outcome_free(contract_check(job));
}

TEST(each_word_comes_once_in_order)
{
    const char *text, *at;
    struct contract_batches batches;
    struct outcome_job job;

    job = contract_lines(50, 9,
                         WORDS "  - record.flat: {fields: words}\n"
                               "  - batch.stack: {size: 7}\n");
    job.options.epochs = 1;
    contract_take(&job, &batches);
    (void)contract_text(50, 9, &text); /* the same as the job's */
    at = text;
    for (size_t i = 0; i < batches.count; i++) {
        struct hr_field_view view = contract_field(batches.items[i], "words");

        for (int64_t k = 0; k < view.dims[0]; k++) {
            size_t bytes = (size_t)(view.offsets[k + 1] - view.offsets[k]);

            at += strspn(at, " \n");
            CHECK(strncmp(at, (const char *)view.data + view.offsets[k], bytes) == 0);
            at += bytes;
        }
    }
    at += strspn(at, " \n");
    CHECK_EQ_STR(at, "");
    contract_drop(&batches);
}

/* Two lists in step, and a field that every record gets. Where two blanks follow each
 * other one list is longer, and the record bad. */
TEST(lists_in_step_and_other_fields_have_one_digest)
{
    const char *text, *path = contract_text(60, 6, &text);
    struct outcome *outcome;
    char graph[3000];

    snprintf(graph, sizeof graph,
             "headrace: 1\npipeline:\n"
             "  - source.list: {path: '%s'}\n    name: lines\n"
             "  - text.split: {}\n    name: a\n"
             "  - source.list: {path: '%s'}\n    name: again\n    inputs: []\n"
             "  - text.split: {separator: ' '}\n    name: b\n"
             "  - flow.zip: {prefix: [a_, b_, c_]}\n    inputs: [a, b, lines]\n"
             "  - record.flat: {fields: [b_words, a_words]}\n"
             "  - batch.stack: {size: 4}\n",
             path, path);
    outcome = contract_check(contract_job(graph));
    CHECK(outcome->records > 0);
    outcome_free(outcome);
}

TEST(what_is_no_list_is_refused_by_name)
{
    static const struct {
        const char *nodes, *message;
    } wrong[] = {
        {"  - record.flat: {fields: value}\n",                             "field \"value\" is a number, not a list"},
        {"  - record.flat: {fields: [value, value]}\n",                    "named twice"                            },
        {"  - record.flat: {fields: []}\n",                                "fields"                                 },
        {"  - batch.stack: {size: 3}\n  - record.flat: {fields: value}\n", "batch"                                  },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[400];
        struct outcome_job job;
        struct outcome *outcome;

        snprintf(text, sizeof text,
                 "headrace: 1\npipeline:\n  - source.range: {n: 9}\n%s"
                 "  - batch.stack: {size: 2}\n",
                 wrong[i].nodes);
        job = contract_job(text);
        outcome = outcome_run(&job);
        CHECK(outcome->code != HR_ERR_END);
        CHECK_HAS(outcome->error.message, wrong[i].message);
        outcome_free(outcome);
    }
}
