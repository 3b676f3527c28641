/*
 * tests/contract/made_keys_test.c - flow.join by keys that steps make of what sources
 * know: the pairs are those of a join of the same numbers in files.
 */
#include "tests/contract/join_util.h"

/* Writes tables with a number, and with a text of it in some case between some spaces. */
static void write_rough(const struct tables *t, struct hr_rng *rng)
{
    for (int side = LEFT; side <= RIGHT; side++) {
        char path[600];
        struct hr_str text;

        hr__str_init(&text);
        hr__str_add(&text, side == LEFT ? "rough,a,n\n" : "");
        for (int i = 0; i < t->counts[side]; i++) {
            int key = t->keys[side][i];
            const char *before = hr__rng_below(rng, 2) == 0 ? " " : "";
            char letter = hr__rng_below(rng, 2) == 0 ? 'K' : 'k';

            hr__str_addf(&text,
                         side == LEFT ? "\"%s%c%d\",%d,%d\n"
                                      : "{\"text\": \"%s%c%d\", \"b\": %d, \"m\": %d}\n",
                         before, letter, key, i, key);
        }
        snprintf(path, sizeof path, "%s/%s", check_temp_dir(),
                 side == LEFT ? "rough.csv" : "rough.jsonl");
        CHECK(hr__str_ok(&text));
        CHECK_OK(hr__file_replace(path, hr__str_text(&text), text.length, NULL));
        hr__str_finish(&text);
    }
}

#define CSV "  - source.csv: {path: '@/rough.csv'}\n    inputs: []\n"
#define JSONL "  - source.jsonl: {path: '@/rough.jsonl'}\n    inputs: []\n"
#define CLEAN(field)                                                                     \
    "  - text.strip: {field: " field "}\n  - text.lower: {field: " field "}\n"
#define AS(name) "  - debug.identity: {}\n    name: " name "\n"
#define JOIN(left, right)                                                                \
    "  - flow.join: {left_on: " left ", right_on: " right "}\n"                          \
    "    inputs: [left, right]\n"
#define BY(left, right) JOIN(left, right) "  - record.select: {fields: [a, b]}\n"
#define NUMBER CSV AS("left") JSONL AS("right") BY("n", "m")

/* All give the pairs of NUMBER. */
static const char *const same[] = {
    /* Texts, with orders, draws and renames on the way. */
    CSV CLEAN("rough") AS("left") JSONL CLEAN("text") AS("right") BY("rough", "text"),
    CSV "  - record.rename: {fields: {rough: n, n: rough}}\n" CLEAN("n") AS("left") JSONL
    "  - record.select: {fields: [b, text]}\n" CLEAN(
        "text") "  - record.rename: {fields: {text: key}}\n" AS("right") BY("n", "key"),
    /* Numbers, by another name and type. */
    CSV "  - record.rename: {fields: {n: rough, rough: n}}\n"
        "  - tensor.cast: {field: rough, dtype: int32, scale: false}\n" AS("left") JSONL
    "  - tensor.cast: {field: m, dtype: float32, scale: false}\n"
    "  - tensor.cast: {field: m, dtype: int64, scale: false}\n" AS("right")
        BY("rough", "m"),
    /* Behind a fork, a zip of its branches and a merge of nothing but them. */
    CSV "    name: rows\n" CLEAN(
        "rough") "    name: clean\n"
                 "  - record.select: {fields: [a]}\n    inputs: [rows]\n    name: rest\n"
                 "  - record.select: {fields: [rough]}\n    inputs: [clean]\n    name: "
                 "part\n"
                 "  - flow.zip: {}\n    inputs: [rest, part]\n" AS("left") JSONL
    "  - order.take: {count: 5}\n" CLEAN("text") AS("first") JSONL
    "  - order.skip: {count: 5}\n" CLEAN("text")
        AS("second") "  - flow.concat: {}\n    inputs: [first, second]\n" AS("right")
            BY("rough", "text"),
    /* Of a join with a third table. */
    CSV CLEAN("rough") AS("some") "  - source.range: {n: 60}\n    inputs: []\n" AS(
        "range") "  - flow.join: {left_on: a, right_on: index}\n    inputs: [some, "
                 "range]\n" AS("left") JSONL CLEAN("text") AS("right")
                     BY("rough", "text"),
};

static struct outcome *run_of(const char *nodes, uint64_t *ret_records)
{
    char text[4000];
    struct outcome_job job;
    struct outcome *outcome;

    snprintf(text, sizeof text, "%s%s", nodes, BATCH);
    job = contract_job(filled(text));
    outcome = outcome_run(&job);
    CHECK_EQ_INT(outcome->code, HR_ERR_END);
    *ret_records = (uint64_t)outcome->records;
    return outcome;
}

TEST(made_keys_join_as_stored_ones)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 5);
    for (int round = 0; round < 20; round++) {
        struct outcome *expected;
        struct tables t = {0};
        uint64_t count, records;

        draw_tables(&t, &rng);
        if (t.counts[RIGHT] < 10) /* for `first` and `second` */
            t.counts[RIGHT] = 10;
        write_rough(&t, &rng);
        expected = run_of(NUMBER, &count);
        CHECK(count > 0);
        for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
            struct outcome *outcome = run_of(same[i], &records);
            const char *difference = outcome_difference(expected, outcome, 0);

            if (difference != NULL)
                check_failed(__FILE__, __LINE__, "%s in\n%s", difference, same[i]);
            outcome_free(outcome);
        }
        outcome_free(expected);
    }
}

TEST(joins_by_made_keys_have_one_digest)
{
    static const struct tables t = {
        .counts = {9,                           6                 },
        .keys = {{3, 1, 8, 1, 2, 0, 5, 9, 8}, {1, 2, 3, 1, 7, 3}},
    };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 6);
    write_rough(&t, &rng);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        char text[4000];
        struct outcome *outcome;

        snprintf(text, sizeof text, "%s%s%s", same[i], "  - order.shuffle: {}\n" FAIL,
                 BATCH);
        outcome = contract_check(contract_job(filled(text)));
        CHECK(outcome->records > 0);
        outcome_free(outcome);
    }
}

#define PHOTOS                                                                           \
    "  - source.files: {path: '@', paths: true, suffixes: [.jsonl]}\n    inputs: []\n"

TEST(keys_that_need_records_are_refused_by_name)
{
    static const struct {
        const char *nodes, *message;
    } wrong[] = {
        {CSV "  - text.lower: {field: rough, when: {some: 0.5}}\n    name: maybe\n" AS(
             "left") JSONL AS("right") JOIN("rough",         "text"),
         "the \"rough\" of 'left' is made by 'maybe' (text.lower), which some records "
         "skip, and keys are found before records are read: join by"                },
        {CSV AS("left") PHOTOS "  - text.lower: {field: data}\n" AS("right")
             JOIN("rough",                                   "data"),
         "before a record of 'source.files' is read, its \"data\" is not known"     },
        {CSV AS("left") PHOTOS "  - text.lower: {field: path}\n" AS("right")
             JOIN("rough",                                   "path"),
         "which is known as one below its folder: join by \"path\", or by \"stem\"" },
        {CSV "  - tensor.one_hot: {field: n, classes: 100}\n" AS("left") JSONL AS("right")
             JOIN("n",                                       "m"),
         "the \"n\" of 'left' is neither an integer nor a text"                     },
        {CSV "  - tensor.one_hot: {field: n, classes: 2}\n" AS("left") JSONL AS("right")
             JOIN("nn",                                      "m"),
         "before a record of 'source.csv' is read, its \"nn\" is not known"         },
        {CSV "  - record.rename: {fields: {n: key}}\n"
             "  - tensor.cast: {field: key, dtype: uint8, scale: false}\n" AS("left")
                 JSONL CLEAN("text") AS("right") JOIN("key", "text"),
         "the \"key\" of 'left' is an integer and the \"text\" of 'right' is a text"},
    };
    static const struct tables t = {
        .counts = {2,      2     },
          .keys = {{1, 2}, {1, 2}}
    };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 7);
    write_rough(&t, &rng);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[4000];

        snprintf(text, sizeof text, "%s%s", wrong[i].nodes, BATCH);
        check_refused(text, wrong[i].message);
    }
}

#define IDS                                                                              \
    CLEAN("rough")                                                                       \
    "  - tokens.vocab_lookup: {path: '@/words.txt', field: rough, to: id}\n    name: "   \
    "ids\n"

/* A step that fails for a key names the record and the step; it may take a field. */
TEST(a_step_that_fails_for_a_key_is_an_error)
{
    static const struct tables known = {
        .counts = {3,         2     },
          .keys = {{1, 2, 0}, {1, 2}}
    };
    static const struct tables unknown = {
        .counts = {3,         2     },
          .keys = {{1, 2, 9}, {1, 2}}
    };
    static const char words[] = "k0\nk1\nk2\n";
    uint64_t count;
    struct hr_rng rng;
    char path[600];

    hr__rng_init(&rng, check_seed(), 0, 8);
    snprintf(path, sizeof path, "%s/words.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, words, strlen(words), NULL));
    write_rough(&known, &rng);
    outcome_free(run_of(CSV IDS AS("left") JSONL AS("right") BY("id", "m"), &count));
    CHECK_EQ_INT(count, 2 * 2); /* two epochs */
    write_rough(&unknown, &rng);
    check_refused(
        CSV IDS AS("left") JSONL AS("right") BY("id", "m") BATCH,
        "record 2 of 'left' is damaged, so that its \"id\" is not known: 'ids'");
}
