/*
 * tests/contract/left_join_test.c - flow.join with `how: left`: records without a match
 * come in their place, with the values that were asked for, in every way of running.
 */
#include "tests/contract/join_util.h"

struct row {
    int64_t a, b;
    bool found;
};

#define RECORDS_MAX (ROWS_MAX * ROWS_MAX)
#define LEFT_JOIN "on: key, how: left, fill: {b: -1}, matched: found"

/* Takes the run's records in order. */
static size_t take_rows(const struct outcome_job *job, struct row *rows)
{
    struct contract_batches batches;
    size_t count = 0;

    contract_take(job, &batches);
    for (size_t i = 0; i < batches.count; i++)
        for (int64_t k = 0; k < contract_field(batches.items[i], "a").dims[0]; k++) {
            struct hr_field_view found = contract_field(batches.items[i], "found");

            CHECK(count < RECORDS_MAX);
            CHECK_EQ_INT(found.dtype, HR_BOOL);
            rows[count++] = (struct row){number_at(batches.items[i], "a", k),
                                         number_at(batches.items[i], "b", k),
                                         ((const uint8_t *)found.data)[k] != 0};
        }
    contract_drop(&batches);
    return count;
}

/* Of `t`, of which the first rows are joined, those of the left several times, with
 * -1 for b where there is no match. */
static size_t
loop_rows(const struct tables *t, const int most[2], int passes, struct row *rows)
{
    size_t count = 0;

    for (int pass = 0; pass < passes; pass++)
        for (int a = 0; a < t->counts[LEFT] && a < most[LEFT]; a++) {
            size_t before = count;

            if (t->keys[LEFT][a] < 0)
                continue; /* a row that the source cannot read, for it has no default */
            for (int b = 0; b < t->counts[RIGHT] && b < most[RIGHT]; b++)
                if (t->keys[LEFT][a] >= 0 && t->keys[LEFT][a] == t->keys[RIGHT][b])
                    rows[count++] = (struct row){a, b, true};
            if (count == before)
                rows[count++] = (struct row){a, -1, false};
        }
    return count;
}

/* Returns how many records have no match. */
static size_t check_rows(int rounds, uint64_t stream, const int most[2], int passes,
                         const char *left, const char *right)
{
    static struct row rows[RECORDS_MAX], expected[RECORDS_MAX];
    struct hr_rng rng;
    size_t alone = 0;

    hr__rng_init(&rng, check_seed(), 0, stream);
    for (int round = 0; round < rounds; round++) {
        struct outcome_job job;
        struct tables t;
        size_t count;

        draw_tables(&t, &rng);
        write_tables(&t, check_temp_dir());
        job = contract_job(join_by(LEFT_JOIN, left, right, BATCH));
        job.options.epochs = 1;
        count = loop_rows(&t, most, passes, expected);
        CHECK_EQ_INT(take_rows(&job, rows), count);
        for (size_t i = 0; i < count; i++) {
            CHECK_EQ_INT(rows[i].a, expected[i].a);
            CHECK_EQ_INT(rows[i].b, expected[i].b);
            CHECK_EQ_INT(rows[i].found, expected[i].found);
            alone += !rows[i].found;
        }
    }
    return alone;
}

TEST(records_without_a_match_come_in_their_place)
{
    CHECK(check_rows(60, 3, (const int[]){ROWS_MAX, ROWS_MAX}, 1, "", "") > 0);
}

TEST(so_they_do_behind_other_orders)
{
    CHECK(check_rows(20, 4, (const int[]){20, 30}, 2,
                     "  - order.take: {count: 20}\n  - order.repeat: {count: 2}\n",
                     "  - order.take: {count: 30}\n") > 0);
}

/* The steps of the second input draw, fail, cache and keep lists; none of them may run
 * for records that it does not have. */
TEST(left_joins_have_one_digest)
{
    static const struct {
        const char *params, *left, *right, *after;
    } cases[] = {
        {LEFT_JOIN,                            "",                               "",                                  FAIL BATCH},
        {LEFT_JOIN,                            FAIL,                             "  - order.skip: {count: 1}\n" FAIL,
         "  - order.shuffle: {}\n" FAIL BATCH                                                                                   },
        {LEFT_JOIN,                            "  - order.repeat: {count: 2}\n",
         FAIL "  - flow.cache: {random: freeze}\n",
         "  - order.shuffle: {}\n  - order.take: {count: 20}\n"
         "  - order.repeat: {count: 2}\n" FAIL BATCH                                                                            },
        {"on: key, how: left, matched: found", "",
         "  - tensor.one_hot: {field: b, classes: 10}\n",                                                             "  - record.filter: {expr: \"a != 3\"}\n"
         "  - order.shuffle: {window: 4}\n" BATCH                      },
        {"on: key, how: left, fill: {b: 7}",   "  - order.take: {count: 7}\n",   FAIL,
         "  - flow.cache: {random: freeze}\n  - order.shuffle: {}\n" FAIL BATCH                                                 },
    };

    write_some();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome *outcome = contract_check(contract_job(
            join_by(cases[i].params, cases[i].left, cases[i].right, cases[i].after)));

        CHECK(outcome->records > 0);
        outcome_free(outcome);
    }
}

#define ALSO(name, inputs) "    name: " name "\n    inputs: [" inputs "]\n"

/* Each is a graph of the tables. */
static const char *const among[] = {
    /* The second input of one is another one, whose key is joined again. */
    ROWS("left") LINES("right") FAIL
    "    name: some\n"
    "  - flow.join: {" LEFT_JOIN "}\n" ALSO("two", "left, some") NUMBERS("numbers") FAIL
    "    name: others\n"
    "  - flow.join: {left_on: index, right_on: b, how: left, matched: both}\n"
    "    inputs: [others, two]\n" END,
    /* By a key of the second input, which some records lack. */
    ROWS("left") LINES("right") "  - flow.join: {" LEFT_JOIN
                                "}\n" ALSO("two", "left, right") NUMBERS("numbers") FAIL
    "    name: others\n"
    "  - flow.join: {left_on: b, right_on: index, how: left, fill: {value: "
    "-3}}\n" ALSO(
        "join",
        "two, others") "  - order.split: {by: b, fractions: [0.7, 0.3], part: 0}\n"
                       "  - flow.cache: {random: freeze}\n  - order.shuffle: "
                       "{}\n" FAIL "    name: last\n" END,
    /* Of a merge with a step in it, and in a merge. */
    ROWS("left") LINES("r1") FAIL
    "    name: some\n" LINES("r2") "  - flow.interleave: {}\n" ALSO("right", "some, r2")
        FAIL
    "    name: more\n"
    "  - flow.join: {" LEFT_JOIN "}\n" ALSO(
        "join",
        "left, more") "  - record.select: {fields: [b]}\n  - record.rename: {fields: "
                      "{b: value}}\n"
                      "    name: first\n" NUMBERS("numbers") "  - flow.concat: {}\n" ALSO(
                          "all", "numbers, first") FAIL
    "    name: end\n  - order.shuffle: {}\n" END,
    /* Of a zip of two branches of the second input. */
    ROWS("left") LINES("right") FAIL
    "    name: some\n"
    "  - debug.identity: {}\n" ALSO(
        "one", "some") "  - record.select: {fields: "
                       "[b]}\n" ALSO("other",
                                     "some") "  - flow.zip: {prefix: "
                                             "[p_, "
                                             "o_]}\n" ALSO("both", "one, other") "  - "
                                                                                 "flow."
                                                                                 "join: "
                                                                                 "{on: "
                                                                                 "key, "
                                                                                 "how: "
                                                                                 "left, "
                                                                                 "matched"
                                                                                 ": "
                                                                                 "found, "
                                                                                 "fill: "
                                                                                 "{o_b: "
                                                                                 "3}}\n"
                                                                                 "    "
                                                                                 "inputs:"
                                                                                 " [left,"
                                                                                 " both]"
                                                                                 "\n  - "
                                                                                 "order."
                                                                                 "shuffle"
                                                                                 ": "
                                                                                 "{}"
                                                                                 "\n" FAIL
                                                                                 "    "
                                                                                 "name: "
                                                                                 "end"
                                                                                 "\n" END,
};

TEST(left_joins_among_joins_zips_and_merges_have_one_digest)
{
    write_some();
    for (size_t i = 0; i < sizeof among / sizeof among[0]; i++) {
        struct outcome *outcome = contract_check(contract_job(filled(among[i])));

        CHECK(outcome->records > 0);
        outcome_free(outcome);
    }
}

static void check_same_row(const struct row *one, const struct row *other)
{
    CHECK_EQ_INT(one->a, other->a);
    CHECK_EQ_INT(one->b, other->b);
    CHECK_EQ_INT(one->found, other->found);
}

/* Every record comes once, to one rank; a budget changes nothing. */
TEST(ranks_divide_records_and_a_budget_changes_none)
{
    enum { WORLD = 3 };
    static const struct tables t = {
        .counts = {9,                           6                 },
        .keys = {{3, 1, 8, 1, 2, 0, 5, 9, 8}, {1, 2, 3, 1, 7, 3}},
    };
    static struct row all[RECORDS_MAX], some[RECORDS_MAX];
    struct outcome_job job;
    size_t count, taken = 0;

    write_tables(&t, check_temp_dir());
    job = contract_job(join_by(LEFT_JOIN, "", "", BATCH));
    job.options.epochs = 1;
    count = take_rows(&job, all);
    CHECK_EQ_INT(count, 7 + 5);
    job.options.memory_bytes = 64 << 20;
    CHECK_EQ_INT(take_rows(&job, some), count);
    for (size_t i = 0; i < count; i++)
        check_same_row(&some[i], &all[i]);
    for (int r = 0; r < WORLD; r++) {
        char shard[200];
        size_t mine;

        snprintf(shard, sizeof shard,
                 "  - order.shard: {rank: %d, world: %d, even: none}\n" BATCH, r, WORLD);
        job = contract_job(join_by(LEFT_JOIN, "", "", shard));
        job.options.epochs = 1;
        mine = take_rows(&job, some);
        for (size_t i = 0; i < mine; i++)
            check_same_row(&some[i], &all[i * WORLD + (size_t)r]);
        taken += mine;
    }
    CHECK_EQ_INT(taken, count);
}

/* ---- values ---- */

static void write_values(void)
{
    static const char left
        [] = "key,a\n1,0\n2,1\n",
    right[] =
        "{\"key\": 1, \"number\": 3, \"real\": 0.5, \"yes\": true, \"text\": \"one\", "
        "\"words\": \"a bc\", \"b\": 4}\n";
    char path[600];

    snprintf(path, sizeof path, "%s/left.csv", check_temp_dir());
    CHECK_OK(hr__file_replace(path, left, strlen(left), NULL));
    snprintf(path, sizeof path, "%s/right.jsonl", check_temp_dir());
    CHECK_OK(hr__file_replace(path, right, strlen(right), NULL));
}

#define HOT                                                                              \
    "  - tensor.one_hot: {field: b, classes: 5}\n"                                       \
    "  - tensor.cast: {dtype: float16, field: b, scale: false}\n"                        \
    "  - text.split: {field: words}\n    name: hot\n"

static void check_values(const char *params, int64_t number, double real, bool yes,
                         const char *text, uint16_t hot)
{
    struct contract_batches batches;
    struct outcome_job job;
    struct hr_field_view view;
    char nodes[2000];

    snprintf(nodes, sizeof nodes,
             ROWS("l") LINES("r") HOT "  - flow.join: {on: key, how: left, %s}\n"
                                      "    inputs: [l, hot]\n"
                                      "  - batch.stack: {size: 2, ragged: true}\n",
             params);
    job = contract_job(filled(nodes));
    job.options.epochs = 1;
    contract_take(&job, &batches);
    CHECK_EQ_INT(batches.count, 1);
    CHECK_EQ_INT(number_at(batches.items[0], "number", 0), 3);
    CHECK_EQ_INT(number_at(batches.items[0], "number", 1), number);
    view = contract_field(batches.items[0], "real");
    CHECK(hr_dtype_size(view.dtype) == 8 ? ((const double *)view.data)[1] == real
                                         : ((const float *)view.data)[1] == (float)real);
    CHECK_EQ_INT(((const uint8_t *)contract_field(batches.items[0], "yes").data)[1], yes);
    view = contract_field(batches.items[0], "text");
    CHECK_EQ_INT(view.offsets[2] - view.offsets[1], strlen(text));
    CHECK(memcmp((const char *)view.data + view.offsets[1], text, strlen(text)) == 0);
    view = contract_field(batches.items[0], "words");
    CHECK_EQ_INT(view.offsets[1], 2);
    CHECK_EQ_INT(view.offsets[2], 2);
    view = contract_field(batches.items[0], "b");
    CHECK_EQ_INT(view.dtype, HR_F16);
    CHECK_EQ_INT(view.dims[1], 5);
    for (int i = 0; i < 5; i++)
        CHECK_EQ_INT(((const uint16_t *)view.data)[5 + i], hot);
    contract_drop(&batches);
}

TEST(fields_become_what_fill_says_else_zeros)
{
    write_values();
    check_values("fill: {number: -7, real: 1.5, yes: true, text: '= =none', words: '=', "
                 "b: 2}",
                 -7, 1.5, true, "=none", 0x4000);
    check_values("matched: found", 0, 0, false, "", 0);
    check_values("matched: found, fill: {number: '12', text: nothing, yes: 1}", 12, 0,
                 true, "nothing", 0);
}

TEST(all_records_come_if_none_has_a_match)
{
    static const char *const params[] = {"matched: found", "fill: {number: -1, b: -1}"};

    write_values();
    for (int i = 0; i < 2; i++) {
        struct contract_batches batches;
        struct outcome_job job;
        char nodes[1000];

        snprintf(
            nodes, sizeof nodes,
            ROWS("l") "  - source.jsonl: {path: '@/right.jsonl', columns: [number, "
                      "b]}\n    name: r\n"
                      "  - flow.join: {left_on: a, right_on: number, how: left, %s}\n"
                      "    inputs: [l, r]\n  - batch.stack: {size: 2}\n",
            params[i]);
        job = contract_job(filled(nodes));
        job.options.epochs = 1;
        contract_take(&job, &batches);
        CHECK_EQ_INT(batches.count, 1);
        for (int k = 0; k < 2; k++) {
            CHECK_EQ_INT(number_at(batches.items[0], "a", k), k);
            CHECK_EQ_INT(number_at(batches.items[0], "b", k), -i);
        }
        if (i == 0)
            CHECK(!((const bool *)contract_field(batches.items[0], "found").data)[0]);
        contract_drop(&batches);
    }
}

/* ---- what is refused ---- */

#define JOIN(params) "  - flow.join: {" params "}\n    name: join\n    inputs: [l, r]\n"
#define BOTH ROWS("l") LINES("r")
#define PHOTOS "  - source.files: {path: '@'}\n" NAMED("r")

TEST(what_cannot_be_filled_is_refused_by_name)
{
    static const struct {
        const char *nodes, *message;
    } wrong[] = {
        {BOTH JOIN("on: key, how: left"),
         "a record without a match has no \"number\": say what it becomes, such as "
         "\"fill: {number: -1}\", or name a new field"                                                                           },
        {BOTH JOIN("on: key, how: left, fill: {number: 1, real: 1, yes: 0, b: 1}"),
         "has no \"text\": say what it becomes, such as \"fill: {text: '='}\""                                                   },
        {BOTH JOIN("on: key, how: left, fill: {numbr: 1}, matched: found"),
         "no field of the second input is called \"numbr\"; did you mean \"number\"?"                                            },
        {BOTH JOIN("on: key, how: left, fill: {a: 1}, matched: found"),
         "no field of the second input is called \"a\""                                                                          },
        {BOTH JOIN("on: key, how: left, fill: {number: x}, matched: found"),
         "\"x\" is no value of \"number\", which is int64"                                                                       },
        {BOTH JOIN("on: key, how: left, fill: {number: 1.5}, matched: found"),
         "\"1.5\" is no value of \"number\""                                                                                     },
        {BOTH JOIN("on: key, how: left, fill: {number: 9223372036854775808}, matched: f"),
         "is no value of \"number\""                                                                                             },
        {BOTH JOIN("on: key, how: left, fill: {real: '1e400'}, matched: found"),
         "\"1e400\" is no value of \"real\""                                                                                     },
        {ROWS("l")
             LINES("r1") "  - tensor.cast: {dtype: float16, field: real, scale: "
                         "false}\n    name: r\n" JOIN(
                             "on: key, how: left, fill: {real: 7e4}, matched: found"),
         "is no value of \"real\", which is float16"                                                                             },
        {BOTH JOIN("on: key, how: left, fill: {yes: 2}, matched: found"),
         "\"2\" is no value of \"yes\""                                                                                          },
        {ROWS("l") LINES("r1") "  - text.split: {field: words}\n    name: r\n" JOIN(
             "on: key, how: left, fill: {words: 3}, matched: found"),
         ": it can only be empty, \"=\""                                                                                         },
        {BOTH JOIN("on: key, how: left, fill: {number: [1]}, matched: found"),
         "wants a number, a bool or a text for \"number\", not a list"                                                           },
        {BOTH JOIN("on: key, how: left, matched: a"),                                           "an input has a field \"a\""     },
        {BOTH JOIN("on: key, how: right"),                                                      "must be one of inner, left, not"},
        {BOTH JOIN("on: key, fill: {b: 1}"),
         "`fill` is for records without a match, which an inner join leaves out"                                                 },
        {BOTH JOIN("on: key, matched: found"),                                                  "say \"how: left\" to have them" },
        {ROWS("l") PHOTOS JOIN("left_on: a, right_on: index, how: left, matched: found"),
         "\"data\" is the bytes of a file, which cannot be made up"                                                              },
        {ROWS("l") "  - source.files: {path: '@'}\n    inputs: []\n"
                   "  - image.decode: {}\n    name: r\n" JOIN(
                       "left_on: a, right_on: index, how: left, matched: found"),
         "\"image\" is a picture of any size, which cannot be made up"                                                           },
    };

    write_values();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        check_refused(wrong[i].nodes, wrong[i].message);
}
