/*
 * tests/contract/join_util.h - tables to join, and graphs that join them, for the tests
 * of flow.join.
 */
#ifndef HR_TESTS_JOIN_UTIL_H
#define HR_TESTS_JOIN_UTIL_H

#include "tests/contract/contract.h"

#include <stdio.h>
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

static inline void draw_tables(struct tables *t, struct hr_rng *rng)
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

static inline void write_tables(const struct tables *t, const char *dir)
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

/* `params` are those of the join; `left` and `right` are steps of each input. */
static inline const char *
join_by(const char *params, const char *left, const char *right, const char *after)
{
    static char text[4096];
    const char *dir = check_temp_dir();

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n"
             "  - source.csv: {path: '%s/left.csv'}\n%s"
             "  - debug.identity: {}\n    name: left\n"
             "  - source.jsonl: {path: '%s/right.jsonl'}\n    inputs: []\n%s"
             "  - debug.identity: {}\n    name: right\n"
             "  - flow.join: {%s}\n    name: join\n    inputs: [left, right]\n"
             "  - record.drop: {fields: [key, rest]}\n%s",
             dir, left, dir, right, params, after);
    return text;
}

static inline int64_t
number_at(const struct hr_batch *batch, const char *field, int64_t at)
{
    struct hr_field_view view = contract_field(batch, field);

    CHECK(at < view.dims[0]);
    return ((const int64_t *)view.data)[at];
}

#define BATCH "  - batch.stack: {size: 3, drop_last: false}\n"

/* 25 pairs, four of left record 1. */
static inline void write_some(void)
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

/* The text with the temporary folder for each @, in static memory. */
static inline const char *filled(const char *nodes)
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

static inline void check_refused(const char *nodes, const char *message)
{
    struct outcome_job job = contract_job(filled(nodes));
    struct outcome *outcome = outcome_run(&job);

    CHECK(outcome->code != HR_ERR_END);
    CHECK_HAS(outcome->error.message, message);
    outcome_free(outcome);
}

#endif
