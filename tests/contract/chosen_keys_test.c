/*
 * tests/contract/chosen_keys_test.c - order.split and order.sample by keys that steps
 * make of what sources know: they choose what they would by the same values in a file.
 */
#include "tests/contract/join_util.h"

/* Columns: a the row's number, `clean` a text, `rough` the same in some case between some
 * spaces, `n` its number, `half` half of it. `bare` has no column but a. */
static void write_rows(struct hr_rng *rng)
{
    struct hr_str csv, jsonl, bare;
    int rows = 20 + (int)hr__rng_below(rng, 40);

    hr__str_init(&csv);
    hr__str_init(&jsonl);
    hr__str_init(&bare);
    hr__str_add(&csv, "a,clean,rough,n,half\n");
    for (int i = 0; i < rows; i++) {
        int key = 1 + (int)hr__rng_below(rng, 15);
        const char *before = hr__rng_below(rng, 2) == 0 ? "  " : "";
        char letter = hr__rng_below(rng, 2) == 0 ? 'K' : 'k';

        hr__str_addf(&csv, "%d,k%d,\"%s%c%d\",%d,%g\n", i, key, before, letter, key, key,
                     key / 2.0);
        hr__str_addf(&jsonl,
                     "{\"a\": %d, \"clean\": \"k%d\", \"rough\": \"%s%c%d\", \"n\": %d, "
                     "\"half\": %g}\n",
                     i, key, before, letter, key, key, key / 2.0);
        hr__str_addf(&bare, "{\"a\": %d}\n", i);
    }
    CHECK(hr__str_ok(&csv) && hr__str_ok(&jsonl) && hr__str_ok(&bare));
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"rows.csv", "rows.jsonl", "bare.jsonl"};
        struct hr_str *text = i == 0 ? &csv : i == 1 ? &jsonl : &bare;
        char path[600];

        snprintf(path, sizeof path, "%s/%s", check_temp_dir(), names[i]);
        CHECK_OK(hr__file_replace(path, hr__str_text(text), text->length, NULL));
        hr__str_finish(text);
    }
}

#define CSV "  - source.csv: {path: '@/rows.csv'}\n    inputs: []\n"
#define JSONL "  - source.jsonl: {path: '@/rows.jsonl'}\n    inputs: []\n"
#define BARE "  - source.jsonl: {path: '@/bare.jsonl'}\n    inputs: []\n"
#define CLEAN(field)                                                                     \
    "  - text.strip: {field: " field "}\n  - text.lower: {field: " field "}\n"
#define CAST(field, dtype)                                                               \
    "  - tensor.cast: {field: " field ", dtype: " dtype ", scale: false}\n"
#define AS(name) "  - debug.identity: {}\n    name: " name "\n"
#define FROM(name) "    inputs: [" name "]\n"
#define SELECT(fields) "  - record.select: {fields: [" fields "]}\n"
#define SPLIT(by)                                                                        \
    "  - order.split: {fractions: [0.6, 0.4], part: 0, seed: 3, by: " by "}\n"           \
    "    name: part\n"
#define SAMPLE(params)                                                                   \
    "  - order.sample: {" params ", count: 40, seed: 5}\n    name: draw\n"
#define A SELECT("a")
#define CONCAT(one, other)                                                               \
    "  - flow.concat: {}\n    inputs: [" one ", " other "]\n    name: all\n"

/* Each chooses as the first of its row. */
static const char *const splits[][8] = {
    {CSV SPLIT("clean") A,                                                                CSV CLEAN("rough") SPLIT("rough") A,
     JSONL CLEAN("rough") SPLIT("rough") A,
     CSV "  - record.rename: {fields: {rough: clean, clean: rough}}\n" SPLIT("rough") A,
     CSV CLEAN("rough") "  - record.rename: {fields: {rough: key}}\n" SPLIT("key") A,
     /* Behind a fork and a zip of its branches. */
     CSV AS("rows") CLEAN("rough") SELECT("rough") AS("made") SELECT("a") FROM("rows")
         AS("rest") "  - flow.zip: {}\n    inputs: [rest, made]\n" SPLIT("rough") A,
     /* Behind a join. */
     CSV CLEAN("rough") AS("left") BARE AS(
         "right") "  - flow.join: {on: a}\n    inputs: [left, right]\n" SPLIT("rough") A},
    {CSV SPLIT("n") A,  CSV CAST("n",                                          "int32") SPLIT("n") A,
     JSONL CAST("n", "float32") SPLIT("n") A, CSV CAST("n", "float64") SPLIT("n") A},
 /* Of a merge, whose inputs make the key in ways of their own. */
    {CSV SELECT("a, clean") AS("one") JSONL SELECT("a, clean") AS("other")
         CONCAT("one", "other") SPLIT("clean") A,
     CSV CLEAN("rough") "  - record.rename: {fields: {rough: key}}\n" SELECT("a, key")
         AS("one") JSONL "  - record.rename: {fields: {clean: key}}\n" SELECT("a, key")
             AS("other") CONCAT("one", "other") SPLIT("key") A,
     CSV SELECT("a, clean") AS("one")
         JSONL CLEAN("rough") "  - record.rename: {fields: {clean: rough, rough: "
                              "clean}}\n" SELECT("a, clean") AS("other")
                                  CONCAT("one", "other") SPLIT("clean") A},
 /* `index` is a field. */
    {CSV SPLIT("n") A,                                                                      CSV "  - record.rename: {fields: {n: index}}\n" SPLIT("index") A                                          },
};

static const char *const samples[][8] = {
    {CSV SAMPLE("weight: n") A,                                                        CSV CAST("n", "float32") SAMPLE("weight: n") A,
     CSV "  - record.rename: {fields: {n: half, half: n}}\n" SAMPLE("weight: half") A},
    {CSV SAMPLE("weight: half") A, CSV CAST("half",             "float32") SAMPLE("weight: half") A,
     JSONL CAST("half", "float32") SAMPLE("weight: half, replacement: true") A},
    {CSV SAMPLE("balance: clean") A,                                                                 CSV CLEAN("rough") SAMPLE("balance: rough") A                             },
 /* No key is asked for. */
    {CSV SAMPLE("replacement: true") A,
     CSV "  - tensor.one_hot: {field: n, classes: 99}\n"
         "  - record.rename: {fields: {n: index}}\n" SAMPLE("replacement: true") A                                     },
};

static struct outcome *run_of(const char *nodes)
{
    char text[4000];
    struct outcome_job job;
    struct outcome *outcome;

    snprintf(text, sizeof text, "%s%s", nodes, BATCH);
    job = contract_job(filled(text));
    outcome = outcome_run(&job);
    if (outcome->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s in\n%s", outcome->error.message, nodes);
    return outcome;
}

static void check_same(const char *const (*rows)[8], size_t count)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 5);
    for (int round = 0; round < 10; round++) {
        write_rows(&rng);
        for (size_t row = 0; row < count; row++) {
            struct outcome *expected = run_of(rows[row][0]);

            CHECK(expected->records > 0);
            for (size_t i = 1; i < 8 && rows[row][i] != NULL; i++) {
                struct outcome *outcome = run_of(rows[row][i]);
                const char *difference = outcome_difference(expected, outcome, 0);

                if (difference != NULL)
                    check_failed(__FILE__, __LINE__, "%s in\n%s", difference,
                                 rows[row][i]);
                outcome_free(outcome);
            }
            outcome_free(expected);
        }
    }
}

TEST(made_keys_split_as_stored_ones)
{
    check_same(splits, sizeof splits / sizeof splits[0]);
}

TEST(made_keys_sample_as_stored_ones)
{
    check_same(samples, sizeof samples / sizeof samples[0]);
}

TEST(choices_by_made_keys_have_one_digest)
{
    static const char *const some[] = {
        CSV CLEAN("rough") SPLIT("rough") A,
        JSONL CAST("half", "float32") SAMPLE("weight: half") A,
    };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 6);
    write_rows(&rng);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        char text[4000];
        struct outcome *outcome;

        snprintf(text, sizeof text, "%s%s%s", some[i], FAIL, BATCH);
        outcome = contract_check(contract_job(filled(text)));
        CHECK(outcome->records > 0);
        outcome_free(outcome);
    }
}

/* If one source of a merge does not know the "index", all records have their number. */
TEST(sources_without_an_index_give_all_records_numbers)
{
    static const char csv[] = "a,index\n0,9\n1,9\n2,9\n3,9\n4,9\n5,9\n6,9\n7,9\n";
    static const char *const sources[] = {
        "  - source.csv: {path: '@/some.csv'}\n    inputs: []\n", BARE};
    static const char *const plain[] = {
        "  - source.csv: {path: '@/some.csv', columns: [a]}\n    inputs: []\n", BARE};
    struct hr_rng rng;
    char path[600];

    hr__rng_init(&rng, check_seed(), 0, 7);
    write_rows(&rng);
    snprintf(path, sizeof path, "%s/some.csv", check_temp_dir());
    CHECK_OK(hr__file_replace(path, csv, strlen(csv), NULL));
    for (int first = 0; first < 2; first++) {
        struct outcome *outcomes[2];
        const char *difference;

        for (int i = 0; i < 2; i++) {
            const char *const *some = i == 0 ? plain : sources;
            char text[2000];

            snprintf(text, sizeof text,
                     "%s" A AS("one") "%s" A AS("other") CONCAT("one", "other")
                         SPLIT("index"),
                     some[first], some[1 - first]);
            outcomes[i] = run_of(text);
        }
        difference = outcome_difference(outcomes[0], outcomes[1], 0);
        if (difference != NULL)
            check_failed(__FILE__, __LINE__, "%s", difference);
        for (int i = 0; i < 2; i++)
            outcome_free(outcomes[i]);
    }
}

#define PHOTOS                                                                           \
    "  - source.files: {path: '@', paths: true, suffixes: [.jsonl]}\n"                   \
    "    inputs: []\n"

TEST(keys_that_need_records_are_refused_by_name)
{
    static const struct {
        const char *nodes, *message;
    } wrong[] = {
        {CSV "  - text.lower: {field: rough, when: {some: 0.5}}\n    name: maybe\n" SPLIT(
             "rough"),
         "the \"rough\" of 'maybe' is made by 'maybe' (text.lower), which some records "
         "skip, and "
         "keys are found before records are read: put 'part' before 'maybe', choose by "
         "another field, or store this one in the data"                        },
        {CSV
         "  - text.lower: {field: rough, when: {some: 0.5}}\n    name: maybe\n" SAMPLE(
             "balance: rough"),
         "put 'draw' before 'maybe'"                                           },
        {CSV "  - tensor.one_hot: {field: n, classes: 100}\n    name: hot\n" SPLIT("n"),
         "the \"n\" of 'hot' is neither a number nor a text: put 'part' before"},
        {PHOTOS "  - text.lower: {field: path}\n    name: low\n" SPLIT("path"),
         "the \"path\" of 'low' is made of the \"path\" of 'source.files', which is "
         "known "
         "as one below its folder: choose by \"path\" before it is "
         "changed, or by \"stem\""                                             },
        {PHOTOS "  - text.lower: {field: data}\n    name: low\n" SPLIT("data"),
         "before a record of 'source.files' is read, its \"data\" is not known"},
    };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 8);
    write_rows(&rng);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[4000];

        snprintf(text, sizeof text, "%s%s", wrong[i].nodes, BATCH);
        check_refused(text, wrong[i].message);
    }
}
