/*
 * tests/contract/join_test.c - flow.join: the pairs that a loop over all pairs finds, run
 * in every way, with orders and joins before it, and what it refuses.
 */
#include "tests/contract/join_util.h"

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
        count = take_pairs(join_by("on: key", left, right, BATCH), pairs, PAIRS_MAX);
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
        struct outcome *outcome = contract_check(contract_job(
            join_by("on: key", cases[i].left, cases[i].right, cases[i].after)));

        CHECK(outcome->records > 0);
        outcome_free(outcome);
    }
}

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
    count = take_pairs(join_by("on: key", "", "", "  - flow.cache: {}\n" BATCH), pairs,
                       PAIRS_MAX);
    CHECK_EQ_INT(count, take_pairs(join_by("on: key", "", "", BATCH), again, PAIRS_MAX));
    CHECK(memcmp(pairs, again, count * sizeof *pairs) == 0);
    for (int tries = 0; tries < 20; tries++) {
        bool differ = false;
        struct outcome_job job = contract_job(
            join_by("on: key", "", "", "  - debug.fail: {probability: 0.5}\n" BATCH));
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
    count = take_pairs(join_by("on: key", "", "", BATCH), all, PAIRS_MAX);
    for (int r = 0; r < WORLD; r++) {
        char shard[200];
        size_t mine;

        snprintf(shard, sizeof shard,
                 "  - order.shard: {rank: %d, world: %d, even: none}\n" BATCH, r, WORLD);
        mine = take_pairs(join_by("on: key", "", "", shard), some, PAIRS_MAX);
        for (size_t i = 0; i < mine; i++) {
            CHECK_EQ_INT(some[i].a, all[i * WORLD + (size_t)r].a);
            CHECK_EQ_INT(some[i].b, all[i * WORLD + (size_t)r].b);
        }
        taken += mine;
    }
    CHECK_EQ_INT(taken, count);
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
