/*
 * tests/contract/join_test.c - flow.join: the pairs that a loop over all pairs finds, run
 * in every way, with orders and joins before it, and what it refuses.
 */
#include "tests/contract/contract.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/rng.h"
#include "core/str.h"
#include "tests/support/check.h"

#define ROWS_MAX 60

enum { LEFT, RIGHT };

/* Rows of two tables; the number of a row is its value. */
struct tables {
    bool texts;
    int counts[2];
    int keys[2][ROWS_MAX]; /* -1: none */
};

static void draw_tables(struct tables *t, struct hr_rng *rng)
{
    int different = 1 + (int)hr__rng_below(rng, 40);

    t->texts = hr__rng_below(rng, 2) == 0;
    for (int side = LEFT; side <= RIGHT; side++) {
        t->counts[side] = 2 + (int)hr__rng_below(rng, ROWS_MAX - 1);
        for (int i = 0; i < t->counts[side]; i++)
            t->keys[side][i] =
                hr__rng_below(rng, 9) == 0 ? -1 : (int)hr__rng_below(rng, different);
        t->keys[side][0] = 0; /* there is a pair, and a key */
    }
}

static void write_tables(const struct tables *t, const char *dir)
{
    for (int side = LEFT; side <= RIGHT; side++) {
        struct hr_str text;
        char path[600];

        hr__str_init(&text);
        hr__str_add(&text, side == LEFT ? "key,a,rest\n" : "");
        for (int i = 0; i < t->counts[side]; i++) {
            int key = t->keys[side][i];
            char word[32] = "";

            if (key >= 0)
                snprintf(word, sizeof word, t->texts ? "\"k,%d\"" : "%d", key);
            if (side == LEFT)
                hr__str_addf(&text, "%s,%d,x\n", word, i);
            else if (key >= 0)
                hr__str_addf(&text, "{\"b\": %d, \"key\": %s}\n", i, word);
            else
                hr__str_addf(&text, "{\"b\": %d%s}\n", i, i % 2 ? ", \"key\": null" : "");
        }
        snprintf(path, sizeof path, "%s/%s", dir,
                 side == LEFT ? "left.csv" : "right.jsonl");
        CHECK(hr__str_ok(&text));
        CHECK_OK(hr__file_replace(path, hr__str_text(&text), text.length, NULL));
        hr__str_finish(&text);
    }
}

/* `left` and `right` are steps of each input. */
static const char *join_text(const char *left, const char *right, const char *after)
{
    static char text[4096];
    const char *dir = check_temp_dir();

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n"
             "  - source.csv: {path: '%s/left.csv'}\n%s"
             "  - debug.identity: {}\n    name: left\n"
             "  - source.jsonl: {path: '%s/right.jsonl'}\n    inputs: []\n%s"
             "  - debug.identity: {}\n    name: right\n"
             "  - flow.join: {on: key}\n    name: join\n    inputs: [left, right]\n"
             "  - record.drop: {fields: [key, rest]}\n%s",
             dir, left, dir, right, after);
    return text;
}

static int64_t number_at(const struct hr_batch *batch, const char *field, int64_t at)
{
    struct hr_field_view view = contract_field(batch, field);

    CHECK(at < view.dims[0]);
    return ((const int64_t *)view.data)[at];
}

struct pair {
    int64_t a, b;
};

/* Takes the run's pairs in order. */
static size_t take_pairs(const char *text, struct pair *pairs, size_t room)
{
    struct contract_batches batches;
    struct outcome_job job = contract_job(text);
    size_t count = 0;

    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t i = 0; i < batches.count; i++)
        for (int64_t k = 0; k < contract_field(batches.items[i], "a").dims[0]; k++) {
            CHECK(count < room);
            pairs[count++] = (struct pair){number_at(batches.items[i], "a", k),
                                           number_at(batches.items[i], "b", k)};
        }
    contract_drop(&batches);
    return count;
}

#define PAIRS_MAX (ROWS_MAX * ROWS_MAX)
#define BATCH "  - batch.stack: {size: 3, drop_last: false}\n"

/* Of random tables, of which the first rows are joined, those of the left several times,
 * as the orders before the join say. */
static void check_pairs(int rounds, uint64_t stream, const int most[2], int passes,
                        const char *left, const char *right)
{
    static struct pair pairs[PAIRS_MAX];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, stream);
    for (int round = 0; round < rounds; round++) {
        struct tables t;
        size_t count, at = 0;

        draw_tables(&t, &rng);
        write_tables(&t, check_temp_dir());
        count = take_pairs(join_text(left, right, BATCH), pairs, PAIRS_MAX);
        for (int pass = 0; pass < passes; pass++)
            for (int a = 0; a < t.counts[LEFT] && a < most[LEFT]; a++)
                for (int b = 0; b < t.counts[RIGHT] && b < most[RIGHT]; b++) {
                    if (t.keys[LEFT][a] < 0 || t.keys[LEFT][a] != t.keys[RIGHT][b])
                        continue;
                    CHECK(at < count);
                    CHECK_EQ_INT(pairs[at].a, a);
                    CHECK_EQ_INT(pairs[at++].b, b);
                }
        CHECK_EQ_INT(at, count);
    }
}

TEST(pairs_are_those_of_a_loop)
{
    check_pairs(60, 1, (const int[]){ROWS_MAX, ROWS_MAX}, 1, "", "");
}

/* Orders before a join choose and repeat the records that it joins. */
TEST(pairs_of_inputs_in_other_orders_are_those_of_a_loop)
{
    check_pairs(20, 2, (const int[]){20, 30}, 2,
                "  - order.take: {count: 20}\n  - order.repeat: {count: 2}\n",
                "  - order.take: {count: 30}\n");
}

/* 25 pairs, four of left record 1. */
static void write_some(void)
{
    static const struct tables t = {
        .texts = true,
        .counts = {14,                                          10},
        .keys = {{3, 1, -1, 1, 2, 0, 5, 2, 8, 3, 1, 7, 5, 2},
                   {1, 2, 3, 1, 1, 7, 1, 5, 2, 3}                 },
    };

    write_tables(&t, check_temp_dir());
}

#define FAIL "  - debug.fail: {probability: 0.1}\n"

TEST(joins_have_one_digest)
{
    static const struct {
        const char *left, *right, *after;
    } cases[] = {
        {"",                                                               "",                             FAIL BATCH                          },
        {FAIL,                                                             "  - order.skip: {count: 1}\n", "  - order.shuffle: {}\n" FAIL BATCH},
        {"  - order.repeat: {count: 2}\n" FAIL,                            FAIL,
         "  - order.shuffle: {}\n  - order.take: {count: 20}\n"
         "  - order.repeat: {count: 2}\n" FAIL BATCH                                                                                           },
        {"  - order.split: {fractions: [0.6, 0.4], part: 0, by: index}\n", "",
         "  - record.filter: {expr: \"b != 3\"}\n"
         "  - order.shuffle: {window: 4}\n" BATCH                                                                                              },
        {"  - order.take: {count: 7}\n",                                   FAIL,
         "  - flow.cache: {random: freeze}\n  - order.shuffle: {}\n" FAIL BATCH                                                                },
    };

    write_some();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome *outcome = contract_check(
            contract_job(join_text(cases[i].left, cases[i].right, cases[i].after)));

        CHECK(outcome->records > 0);
        outcome_free(outcome);
    }
}

/* The text with the temporary folder for each @, in static memory. */
static const char *filled(const char *nodes)
{
    static char text[4096];
    struct hr_str out;

    hr__str_init(&out);
    hr__str_add(&out, "headrace: 1\npipeline:\n");
    for (const char *at = nodes; *at != '\0'; at++)
        if (*at == '@')
            hr__str_add(&out, check_temp_dir());
        else
            hr__str_add_bytes(&out, at, 1);
    CHECK(hr__str_ok(&out) && out.length < sizeof text);
    snprintf(text, sizeof text, "%s", hr__str_text(&out));
    hr__str_finish(&out);
    return text;
}

#define NAMED(name) "    name: " name "\n    inputs: []\n"
#define ROWS(name) "  - source.csv: {path: '@/left.csv'}\n" NAMED(name)
#define LINES(name) "  - source.jsonl: {path: '@/right.jsonl'}\n" NAMED(name)
#define NUMBERS(name) "  - source.range: {n: 14}\n" NAMED(name)
#define END "  - batch.stack: {size: 4, ragged: true, drop_last: false}\n"

TEST(joins_among_joins_zips_and_merges_have_one_digest)
{
    static const char *const cases[] = {
        /* By a column of the second input of a join. */
        ROWS("left") LINES("right") FAIL
        "    name: some\n"
        "  - flow.join: {on: key}\n    name: two\n    inputs: [left, some]\n" NUMBERS(
            "numbers") FAIL
        "    name: others\n"
        "  - flow.join: {left_on: b, right_on: index}\n    inputs: [two, others]\n"
        "  - flow.cache: {random: freeze}\n  - order.shuffle: {}\n" FAIL
        "    name: last\n" END,
        /* Of a merge, and in one. */
        ROWS("left")
            ROWS("again") "  - flow.concat: {}\n    inputs: [left, again]\n" FAIL
                          "    name: some\n" LINES(
                              "right") "  - flow.join: {on: key}\n    name: join\n    "
                                       "inputs: [some, right]\n"
                                       "  - record.select: {fields: [b]}\n"
                                       "  - record.rename: {fields: {b: value}}\n    "
                                       "name: first\n" NUMBERS(
                                           "numbers") "  - flow.interleave: {block: 2}\n "
                                                      "   inputs: [numbers, first]\n" FAIL
                                                      "    name: more\n  - "
                                                      "order.shuffle: {}\n" END,
        /* Of a zip, and of two branches of one join, which stay pairs. */
        ROWS("left") NUMBERS(
            "numbers") "  - flow.zip: {}\n    name: zip\n    inputs: [left, "
                       "numbers]\n" LINES("right") "  - flow.join: {on: key}\n    name: "
                                                   "join\n    inputs: [zip, right]\n" FAIL
                                                   "    name: one\n    inputs: [join]\n"
                                                   "  - debug.identity: {}\n    name: "
                                                   "other\n    inputs: [join]\n"
                                                   "  - flow.zip: {prefix: [x_, y_]}\n   "
                                                   " inputs: [one, other]\n"
                                                   "  - order.shuffle: {}\n" END,
    };

    write_some();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome *outcome = contract_check(contract_job(filled(cases[i])));

        CHECK(outcome->records > 0);
        outcome_free(outcome);
    }
}

/* A left record that is joined twice gives two records, with draws of their own: each
 * fails by itself, and one is not the other in a cache. */
TEST(records_of_one_left_record_are_different_records)
{
    static struct pair pairs[PAIRS_MAX], again[PAIRS_MAX];
    size_t count, kept;

    write_some();
    count = take_pairs(join_text("", "", "  - flow.cache: {}\n" BATCH), pairs, PAIRS_MAX);
    CHECK_EQ_INT(count, take_pairs(join_text("", "", BATCH), again, PAIRS_MAX));
    CHECK(memcmp(pairs, again, count * sizeof *pairs) == 0);
    for (int tries = 0; tries < 20; tries++) {
        bool differ = false;
        struct outcome_job job =
            contract_job(join_text("", "", "  - debug.fail: {probability: 0.5}\n" BATCH));
        struct contract_batches batches;

        job.options.seed += (uint64_t)tries;
        job.options.epochs = 1;
        contract_take(&job, &batches);
        kept = 0;
        for (size_t i = 0; i < batches.count; i++)
            for (int64_t k = 0; k < contract_field(batches.items[i], "a").dims[0]; k++)
                kept += number_at(batches.items[i], "a", k) == 1;
        differ = kept > 0 && kept < 4; /* row 1 is joined four times */
        contract_drop(&batches);
        if (differ)
            return;
    }
    check_failed(__FILE__, __LINE__, "records of one left record fail together");
}

/* Every pair comes once, to one rank. */
TEST(ranks_divide_pairs)
{
    enum { WORLD = 3 };
    static struct pair all[PAIRS_MAX], some[PAIRS_MAX];
    size_t count, taken = 0;

    write_some();
    count = take_pairs(join_text("", "", BATCH), all, PAIRS_MAX);
    for (int r = 0; r < WORLD; r++) {
        char shard[200];
        size_t mine;

        snprintf(shard, sizeof shard,
                 "  - order.shard: {rank: %d, world: %d, even: none}\n" BATCH, r, WORLD);
        mine = take_pairs(join_text("", "", shard), some, PAIRS_MAX);
        for (size_t i = 0; i < mine; i++) {
            CHECK_EQ_INT(some[i].a, all[i * WORLD + (size_t)r].a);
            CHECK_EQ_INT(some[i].b, all[i * WORLD + (size_t)r].b);
        }
        taken += mine;
    }
    CHECK_EQ_INT(taken, count);
}

static void check_refused(const char *nodes, const char *message)
{
    struct outcome_job job = contract_job(filled(nodes));
    struct outcome *outcome = outcome_run(&job);

    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, message);
    outcome_free(outcome);
}

#define JOIN(params) "  - flow.join: {" params "}\n    name: join\n    inputs: [l, r]\n"
#define BOTH ROWS("l") LINES("r")

TEST(what_cannot_be_joined_is_refused_by_name)
{
    static const struct {
        const char *nodes, *message;
    } wrong[] = {
        {BOTH JOIN(""),                                                                      "it has no key for its inputs: give `on`"                               },
        {BOTH JOIN("left_on: key"),                                                          "it has no key for the second input"                                    },
        {BOTH JOIN("right_on: key"),                                                         "it has no key for the first input"                                     },
        {BOTH JOIN("on: key, right_on: key"),                                                "it has `on` and `right_on`"                                            },
        {BOTH JOIN("on: kee, prefix: [l_, r_]"),
         "a record of 'l' is read, its \"kee\" is not known; did "
         "you mean \"key\"?"                                                                                                                                         },
        {BOTH JOIN("left_on: key, right_on: c, prefix: [l_, r_]"),
         "a record of 'r' is read, its \"c\" is not known"                                                                                                           },
        {BOTH JOIN("left_on: key, right_on: key"),
         "two inputs have a field \"key\": give each input a prefix"                                                                                                 },
        {BOTH JOIN("on: key, prefix: [l_]"),                                                 "1 prefixes for 2 inputs"                                               },
        {BOTH JOIN("left_on: key, right_on: b, prefix: [l_, r_]"),
         "the \"key\" of 'l' is a text and the \"b\" of 'r' is an integer"                                                                                           },
        {BOTH JOIN("left_on: key, right_on: b, prefix: [l_, r_], integers: true"),
         "record 0 of 'l' has the \"key\" \"k,3\", which is no decimal integer"                                                                                      },
        {BOTH JOIN("left_on: rest, right_on: key, prefix: [l_, r_]"),
         "no \"rest\" of 'l', such as \"x\", is a \"key\" of 'r', such as \"k,1\""                                                                                   },
        {ROWS("l") LINES("r1") "  - record.filter: {expr: \"b > 1\"}\n    name: r\n" JOIN(
             "on: key"),
         "put 'r' after 'join'"                                                                                                                                      },
        {ROWS("l1") "  - order.shuffle: {}\n    name: l\n" LINES("r") JOIN("on: key"),
         "'l' orders those of one input otherwise in every epoch: put 'l' after 'join'"                                                                              },
        {ROWS("l1") "  - order.shard: {rank: 0, world: 2}\n    name: l\n" LINES("r")
             JOIN("on: key"),
         "splits the records over ranks"                                                                                                                             },
        {ROWS("l1") "  - batch.stack: {size: 2}\n    name: l\n" LINES(
             "r1") "  - batch.stack: {size: 2}\n    name: r\n" JOIN("on: key"),
         "batch"                                                                                                                                                     },
        {ROWS("l") JOIN("on: key"),                                                          "r"                                                                     },
        {BOTH JOIN("on: key")
             ROWS("b") "  - order.repeat: {count: 2}\n  - order.take: {count: 25}\n    "
                       "name: c\n"
                       "  - flow.zip: {prefix: [j_, c_]}\n    inputs: [join, c]\n", "'join' joins by keys, so its records are not those of the other inputs"},
    };

    write_some();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        check_refused(wrong[i].nodes, wrong[i].message);
}

/* A row that is no JSON, before the join. */
TEST(a_damaged_row_without_a_key_is_an_error)
{
    char path[600];
    const char *text = "{\"b\": 1, \"key\": \"k,1\"}\n{\"b\": 2, \"key\n";

    write_some();
    snprintf(path, sizeof path, "%s/right.jsonl", check_temp_dir());
    CHECK_OK(hr__file_replace(path, text, strlen(text), NULL));
    check_refused(BOTH JOIN("on: key"), "record 1 of 'r' is damaged");
}
