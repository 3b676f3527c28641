/*
 * ops/subset_test.c - samples without replacement: their chances, an order by definition,
 * threads, and the order that one seed has today.
 */
#include "ops/subset.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "tests/support/check.h"

#define N_MAX 300

static double *copy(const double *weights, uint64_t n)
{
    double *to = hr__calloc(n + 1, sizeof *to);

    CHECK(to != NULL);
    memcpy(to, weights, n * sizeof *to);
    return to;
}

static struct hr_subset *open_subset(const double *weights, uint64_t n, uint64_t count)
{
    struct hr_subset *s;

    CHECK_OK(hr__subset_open(weights != NULL ? copy(weights, n) : NULL, n, count, &s,
                             &(struct hr_error){0}));
    return s;
}

/* The chance that records are drawn in this order, one after another. */
static double chance(const double *weights, uint64_t n, const uint64_t *order, int draws)
{
    double left = 0, chance = 1;

    for (uint64_t i = 0; i < n; i++)
        left += weights[i];
    for (int k = 0; k < draws; k++) {
        chance *= weights[order[k]] / left;
        left -= weights[order[k]];
    }
    return chance;
}

/* All 12 first two draws of 5 records, one of which is never drawn. */
TEST(first_draws_have_the_chances_of_draws_one_by_one)
{
    static const double weights[] = {1, 0.25, 0, 4, 2.5};
    enum { EPOCHS = 40000, FREEDOM = 11 };
    struct hr_subset *s = open_subset(weights, 5, 2);
    unsigned seen[5][5] = {{0}};
    double distance = 0;

    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        seen[hr__subset_at(s, check_seed(), epoch, 0)]
            [hr__subset_at(s, check_seed(), epoch, 1)]++;
    for (uint64_t a = 0; a < 5; a++)
        for (uint64_t b = 0; b < 5; b++) {
            uint64_t order[] = {a, b};
            double mean = EPOCHS * chance(weights, 5, order, 2);

            if (a == b || a == 2 || b == 2)
                CHECK(seen[a][b] == 0);
            else
                distance += pow(seen[a][b] - mean, 2) / mean;
        }
    CHECK(distance < 52); /* exceeded once in 10^6 seeds */
    hr__subset_close(s);
}

TEST(equal_weights_give_each_record_the_same_chance)
{
    enum { N = 20, COUNT = 7, EPOCHS = 20000 };
    struct hr_subset *s = open_subset(NULL, N, COUNT);
    double mean = (double)EPOCHS * COUNT / N, distance = 0;
    unsigned seen[N] = {0};

    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint64_t at = 0; at < COUNT; at++)
            seen[hr__subset_at(s, check_seed(), epoch, at)]++;
    for (int i = 0; i < N; i++)
        distance += pow(seen[i] - mean, 2) / mean;
    CHECK(distance < 68);
    hr__subset_close(s);
}

struct drawn {
    double time;
    uint64_t record;
};

static int by_time(const void *one, const void *other)
{
    const struct drawn *a = one, *b = other;

    return (a->time > b->time) - (a->time < b->time);
}

/* Sorts all records by -log(u) / w with the C library's logarithm. */
static uint64_t by_definition(const double *weights, uint64_t n, uint64_t seed,
                              uint32_t epoch, struct drawn *drawn)
{
    uint64_t held = 0;

    for (uint64_t i = 0; i < n; i++) {
        struct hr_rng rng;
        double u;

        hr__rng_init(&rng, seed, epoch, i);
        u = ((double)(hr__rng_u64(&rng) >> 12) + 0.5) * 0x1p-52;
        if (weights[i] > 0)
            drawn[held++] = (struct drawn){-log(u) / weights[i], i};
    }
    qsort(drawn, held, sizeof *drawn, by_time);
    return held;
}

TEST(samples_are_the_first_arrivals)
{
    static double weights[N_MAX];
    static struct drawn drawn[N_MAX];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 60; round++) {
        uint64_t n = 1 + hr__rng_below(&rng, N_MAX), held, count;
        uint32_t epoch = hr__rng_u32(&rng) >> 1;
        struct hr_subset *s;

        for (uint64_t i = 0; i < n; i++)
            weights[i] = hr__rng_below(&rng, 5) == 0 && i > 0 ? 0 : hr__rng_double(&rng);
        weights[0] = 1;
        held = by_definition(weights, n, check_seed(), epoch, drawn);
        count = 1 + hr__rng_below(&rng, held);
        s = open_subset(weights, n, count);
        for (uint64_t at = 0; at < count; at++)
            CHECK(hr__subset_at(s, check_seed(), epoch, at) == drawn[at].record);
        hr__subset_close(s);
    }
}

/* Weights that no quotient holds are still drawn, each once. */
TEST(extreme_weights_are_drawn_once)
{
    static const double weights[] = {1e308, 5e-324, 1e-300, 0, 1.7e308};
    struct hr_subset *s = open_subset(weights, 5, 4);
    unsigned seen[5] = {0};

    for (uint64_t at = 0; at < 4; at++)
        seen[hr__subset_at(s, check_seed(), 1, at)]++;
    CHECK(seen[0] == 1 && seen[1] == 1 && seen[2] == 1 && seen[3] == 0 && seen[4] == 1);
    hr__subset_close(s);
}

TEST(more_draws_than_weights_are_refused)
{
    static const double weights[] = {0, 2, 0, 1};
    struct hr_error error = {0};
    struct hr_subset *s = NULL;

    CHECK(hr__subset_open(copy(weights, 4), 4, 3, &s, &error) == HR_ERR_ARGUMENT);
    CHECK(s == NULL && strstr(error.message, "count to at most 2") != NULL);
}

/* ---- threads ---- */

struct reader {
    struct hr_subset *subset;
    const uint64_t *expected; /* COUNT of each epoch */
    uint32_t seed;
    bool wrong;
};

enum { COUNT = 30, EPOCHS = 9 };

static void *read_all(void *context)
{
    struct reader *r = context;
    struct hr_rng rng;

    hr__rng_init(&rng, r->seed, 0, 0);
    for (int i = 0; i < 4000; i++) {
        uint64_t at = hr__rng_below(&rng, COUNT);
        uint32_t epoch = (uint32_t)hr__rng_below(&rng, EPOCHS);

        if (hr__subset_at(r->subset, 7, epoch, at) != r->expected[epoch * COUNT + at])
            r->wrong = true;
    }
    return NULL;
}

/* More epochs than are kept, so that samples are replaced under the readers. */
TEST(threads_get_the_same_samples)
{
    struct hr_subset *s = open_subset(NULL, 60, COUNT);
    uint64_t expected[EPOCHS * COUNT];
    struct reader readers[4];
    pthread_t threads[4];

    for (uint32_t i = 0; i < EPOCHS * COUNT; i++)
        expected[i] = hr__subset_at(s, 7, i / COUNT, i % COUNT);
    for (uint32_t i = 0; i < 4; i++) {
        readers[i] = (struct reader){s, expected, (uint32_t)check_seed() + i, false};
        CHECK(pthread_create(&threads[i], NULL, read_all, &readers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(!readers[i].wrong);
    }
    hr__subset_close(s);
}

/* The order is part of what equal fingerprints promise. */
TEST(a_sample_stays_what_it_is)
{
    static const double weights[] = {1, 2, 3, 4, 0, 0.5, 6, 0.125, 8, 9};
    static const uint64_t weighted[] = {2, 3, 6, 9, 8, 0}, equal[] = {8, 1, 4, 5, 9, 0};
    struct hr_subset *one = open_subset(weights, 10, 6),
                     *other = open_subset(NULL, 10, 6);

    for (uint64_t at = 0; at < 6; at++) {
        CHECK(hr__subset_at(one, 42, 3, at) == weighted[at]);
        CHECK(hr__subset_at(other, 42, 3, at) == equal[at]);
    }
    hr__subset_close(one);
    hr__subset_close(other);
}
