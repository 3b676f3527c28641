/*
 * engine/done_test.c - sets of done positions against a bitmap.
 */
#include "engine/done.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/error.h"
#include "tests/support/check.h"

#define POSITIONS 4096
#define WORLDS 6

static uint64_t seed;

static uint64_t below(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static void check_ok(enum hr_err code, const struct hr_error *error)
{
    if (code != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error->message);
}

/* What a set must contain: whole records, and how many children of others. */
struct bitmap {
    bool done[POSITIONS];
    uint64_t children[POSITIONS];
};

static void
check_same(const struct hr_done *done, const struct bitmap *map, uint64_t base)
{
    for (uint64_t at = base; at < POSITIONS; at++) {
        uint64_t children;

        CHECK_EQ_INT(hr__done_has(done, at, &children), map->done[at]);
        if (!map->done[at])
            CHECK_EQ_INT(children, map->children[at]);
    }
}

/* Prints the set and replaces it by what is read back. */
static void reread(struct hr_done *done)
{
    struct hr_error error = {0};
    struct hr_done read;
    struct hr_doc *doc;
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add(&text, "{");
    hr__done_print(done, &text);
    hr__str_add(&text, "}");
    check_ok(hr__doc_parse(hr__str_text(&text), text.length, "done.json", &doc, &error),
             &error);
    check_ok(hr__done_parse(hr__doc_get(doc, "done"), hr__doc_get(doc, "parts"), &read,
                            &error),
             &error);
    CHECK(hr__done_is_empty(&read) == hr__done_is_empty(done));
    hr__doc_destroy(doc);
    hr__str_finish(&text);
    hr__done_finish(done);
    *done = read;
}

/* Every rank of a random world, or holder of a random interval, gets somewhere. */
static void add_progress(struct hr_done *done, struct bitmap *map, uint64_t base)
{
    uint64_t world = 1 + below(9), rest = (POSITIONS - base) / world, lag = 1 + below(60);
    struct hr_error error = {0};

    for (uint64_t r = 0; r < world && rest > 0; r++) {
        uint64_t start = base + r, step = world, count = below(lag < rest ? lag : rest);
        uint64_t children = below(3) == 0 ? 1 + below(5) : 0, next;

        if (below(3) == 0) { /* a lease */
            start = base + below(POSITIONS - base);
            step = 1;
            count = below(POSITIONS - start < 80 ? POSITIONS - start : 80);
        }
        next = start + count * step;
        check_ok(hr__done_add(done, start, count, step, &error), &error);
        for (uint64_t i = 0; i < count; i++)
            map->done[start + i * step] = true;
        if (next >= POSITIONS)
            continue;
        check_ok(hr__done_add_children(done, next, children, &error), &error);
        if (children > map->children[next])
            map->children[next] = children;
    }
    check_ok(hr__done_normalise(done, &error), &error);
}

TEST(merges_of_random_worlds_equal_a_bitmap)
{
    CHECK_EQ_INT(getrandom(&seed, sizeof seed, 0), sizeof seed);
    printf("# seed %llu\n", (unsigned long long)seed);
    for (int trial = 0; trial < 300; trial++) {
        struct bitmap map = {0};
        struct hr_done done = {0};
        uint64_t base = 0;

        for (int world = 0; world < WORLDS; world++) {
            uint64_t open = base;

            add_progress(&done, &map, base);
            check_same(&done, &map, base);
            while (open < POSITIONS && map.done[open])
                open++;
            base = hr__done_first_open(&done, base);
            CHECK_EQ_INT(base, open);
            hr__done_cut(&done, base);
            check_same(&done, &map, base);
            reread(&done);
            check_same(&done, &map, base);
        }
        hr__done_finish(&done);
    }
}

TEST(ranks_that_are_equally_far_leave_no_run_but_one)
{
    struct hr_error error = {0};
    struct hr_done done = {0};

    for (uint64_t r = 0; r < 7; r++)
        check_ok(hr__done_add(&done, 3 + r, 100, 7, &error), &error);
    check_ok(hr__done_normalise(&done, &error), &error);
    CHECK_EQ_INT(done.run_count, 1);
    CHECK_EQ_INT(done.runs[0].step, 1);
    CHECK_EQ_INT(done.runs[0].from, 3);
    CHECK_EQ_INT(done.runs[0].count, 700);
    hr__done_finish(&done);
}

TEST(eight_ranks_that_differ_by_1000_positions_take_little_text)
{
    struct hr_error error = {0};
    struct hr_done done = {0};
    struct hr_str text;

    for (uint64_t r = 0; r < 8; r++)
        check_ok(hr__done_add(&done, r, 5000000 + 1000 * r, 8, &error), &error);
    check_ok(hr__done_normalise(&done, &error), &error);
    hr__done_cut(&done, hr__done_first_open(&done, 0));
    hr__str_init(&text);
    hr__done_print(&done, &text);
    CHECK(text.length < 400);
    hr__str_finish(&text);
    hr__done_finish(&done);
}

TEST(sets_have_a_limit)
{
    struct hr_error error = {0};
    struct hr_done done = {0};

    for (uint64_t i = 0; i <= HR_DONE_MAX; i++)
        check_ok(hr__done_add(&done, 3 * i, 1, 1, &error), &error);
    CHECK_ERR(HR_ERR_LIMIT, hr__done_normalise(&done, &error));
    CHECK_HAS(error.message, "more than 65536 runs");
    CHECK_ERR(HR_ERR_LIMIT, hr__done_add(&done, 0, HR_STATE_NUMBER_MAX, 2, &error));
    CHECK_HAS(error.message, "beyond the end of any epoch");
    hr__done_finish(&done);
}
