/*
 * opt/trial_test.c - decisions of hr__trial() on known and on drawn times.
 */
#include "opt/trial.h"

#include <math.h>
#include <stdio.h>

#include "core/rng.h"
#include "tests/support/check.h"

#define DRAWS 4000

TEST(two_rounds_that_gain_are_enough)
{
    CHECK(hr__trial((const double[]){0.9}, 1) == HR_TRIAL_MORE);
    CHECK(hr__trial((const double[]){0.9, 1.0}, 2) == HR_TRIAL_KEEP);
    CHECK(hr__trial((const double[]){0.9, 1.1}, 2) == HR_TRIAL_MORE);
    CHECK(hr__trial(NULL, 0) == HR_TRIAL_MORE);
}

TEST(no_order_is_dropped_before_the_fifth_round)
{
    const double slow[] = {3, 3, 3, 3, 3};

    for (size_t count = 0; count < 5; count++)
        CHECK(hr__trial(slow, count) == HR_TRIAL_MORE);
    CHECK(hr__trial(slow, 5) == HR_TRIAL_DROP);
}

TEST(one_disturbed_run_decides_nothing)
{
    CHECK(hr__trial((const double[]){0.98, 9, 0.98, 0.98, 0.98}, 5) == HR_TRIAL_KEEP);
    CHECK(hr__trial((const double[]){1.1, 1.1, 0.1, 1.1, 1.1}, 5) == HR_TRIAL_MORE);
    CHECK(hr__trial((const double[]){1.1, 1.12, 0.99, 1.1, 1.1, 1.1}, 6) ==
          HR_TRIAL_DROP);
}

TEST(what_is_slower_by_little_is_kept)
{
    const double ratios[] = {1.01, 1.012, 1.015, 1.01, 1.01, 1.01, 1.01};

    CHECK(hr__trial(ratios, 5) == HR_TRIAL_MORE);
    CHECK(hr__trial(ratios, HR_TRIAL_ROUNDS_MAX) == HR_TRIAL_KEEP);
}

TEST(a_median_is_that_of_the_sorted_values)
{
    CHECK(hr__trial_median((const double[]){3}, 1) == 3);
    CHECK(hr__trial_median((const double[]){3, 1}, 2) == 2);
    CHECK(hr__trial_median((const double[]){5, 1, 4, 2, 3}, 5) == 3);
}

/* A time that noise of 10 % disturbs; every tenth run takes up to twice as long. */
static double disturbed(struct hr_rng *rng, double time)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (double)hr__rng_below(rng, 1 << 20) / (1 << 20);
    time *= exp(0.1 * (sum - 6));
    if (hr__rng_below(rng, 10) == 0)
        time *= 1 + (double)hr__rng_below(rng, 1000) / 1000;
    return time;
}

/* The part of drawn trials that drop a candidate that takes `time` times as long. */
static double part_dropped(struct hr_rng *rng, double time, double *ret_rounds)
{
    int dropped = 0;
    size_t rounds = 0;

    for (int i = 0; i < DRAWS; i++) {
        double ratios[HR_TRIAL_ROUNDS_MAX];
        enum hr_trial found = HR_TRIAL_MORE;
        size_t count = 0;

        while (found == HR_TRIAL_MORE) {
            CHECK(count < HR_TRIAL_ROUNDS_MAX);
            ratios[count++] = disturbed(rng, time) / disturbed(rng, 1);
            found = hr__trial(ratios, count);
        }
        dropped += found == HR_TRIAL_DROP;
        rounds += count;
    }
    *ret_rounds = (double)rounds / DRAWS;
    return (double)dropped / DRAWS;
}

TEST(noise_drops_few_orders_that_gain_and_keeps_few_that_lose)
{
    const double times[] = {0.9, 0.98, 1.0, 1.3, 1.6};
    const double least[] = {0, 0, 0, 0.7, 0.97};
    const double most[] = {0.01, 0.06, 0.1, 1, 1};
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        double rounds, dropped = part_dropped(&rng, times[i], &rounds);

        printf("# %.2f times as long: %.1f %% dropped after %.1f rounds\n", times[i],
               100 * dropped, rounds);
        CHECK(dropped >= least[i] && dropped <= most[i]);
    }
}
