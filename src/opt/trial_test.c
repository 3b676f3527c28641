/*
 * opt/trial_test.c - decisions of hr__trial() on known and on drawn times.
 */
#include "opt/trial.h"

#include <math.h>
#include <stdio.h>

#include "core/rng.h"
#include "tests/support/check.h"

#define DRAWS 4000

TEST(three_rounds_that_gain_are_enough)
{
    CHECK(hr__trial((const double[]){0.9, 0.9}, 2, 0.9, 1) == HR_TRIAL_MORE);
    CHECK(hr__trial((const double[]){0.9, 0.9, 0.9}, 3, 0.9, 1) == HR_TRIAL_KEEP);
    CHECK(hr__trial((const double[]){0.9, 1.1, 1.0}, 3, 0.98, 1) == HR_TRIAL_MORE);
    CHECK(hr__trial(NULL, 0, 0.9, 1) == HR_TRIAL_MORE);
}

TEST(an_order_that_is_much_slower_is_dropped_soon)
{
    CHECK(hr__trial((const double[]){3, 3, 3}, 3, 0.9, 1) == HR_TRIAL_DROP);
    CHECK(hr__trial((const double[]){1.3, 1.3, 1.3}, 3, 0.9, 1) == HR_TRIAL_DROP);
}

TEST(one_disturbed_run_decides_nothing)
{
    CHECK(hr__trial((const double[]){0.98, 9, 0.98}, 3, 0.98, 1) == HR_TRIAL_MORE);
    CHECK(hr__trial((const double[]){0.95, 9, 0.95, 0.95, 0.95}, 5, 0.95, 1) ==
          HR_TRIAL_KEEP);
    CHECK(hr__trial((const double[]){1.1, 1.12, 0.1, 1.1, 1.1, 1.1}, 6, 0.98, 1) ==
          HR_TRIAL_DROP);
}

TEST(rounds_that_agree_outweigh_the_model)
{
    const double slow[] = {1.05, 1.05, 1.05, 1.05, 1.05, 1.05, 1.05};
    const double fast[] = {0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95};

    CHECK(hr__trial(slow, HR_TRIAL_ROUNDS_MAX, 0.9, 1) == HR_TRIAL_DROP);
    CHECK(hr__trial(fast, HR_TRIAL_ROUNDS_MAX, 1.1, 1) == HR_TRIAL_KEEP);
}

TEST(the_model_outweighs_rounds_that_do_not_agree)
{
    const double ratios[] = {0.7, 1.04, 1.4, 0.8, 1.3, 1.02, 1.03};

    CHECK(hr__trial(ratios, HR_TRIAL_ROUNDS_MAX, 0.8, 1) == HR_TRIAL_KEEP);
    CHECK(hr__trial(ratios, HR_TRIAL_ROUNDS_MAX, 1.0, 1) == HR_TRIAL_DROP);
}

TEST(what_has_to_gain_is_dropped_if_it_does_not)
{
    const double same[] = {1, 1, 1, 1, 1, 1, 1};
    const double less[] = {0.96, 0.96, 0.96, 0.96, 0.96, 0.96, 0.96};

    CHECK(hr__trial(same, HR_TRIAL_ROUNDS_MAX, 0.97, 1) == HR_TRIAL_KEEP);
    CHECK(hr__trial(same, HR_TRIAL_ROUNDS_MAX, 0.97, 0.98) == HR_TRIAL_DROP);
    CHECK(hr__trial(less, HR_TRIAL_ROUNDS_MAX, 0.97, 0.98) == HR_TRIAL_KEEP);
}

TEST(a_median_is_that_of_the_sorted_values)
{
    CHECK(hr__trial_median((const double[]){3}, 1) == 3);
    CHECK(hr__trial_median((const double[]){3, 1}, 2) == 2);
    CHECK(hr__trial_median((const double[]){5, 1, 4, 2, 3}, 5) == 3);
}

/* A time that noise disturbs; every tenth run takes up to twice as long. */
static double disturbed(struct hr_rng *rng, double time, double noise)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (double)hr__rng_below(rng, 1 << 20) / (1 << 20);
    time *= exp(noise * (sum - 6));
    if (hr__rng_below(rng, 10) == 0)
        time *= 1 + (double)hr__rng_below(rng, 1000) / 1000;
    return time;
}

/* What is drawn: a candidate that is expected to take `expected` times as long, takes
 * `time` times as long, and may take `most` times. */
struct drawn {
    double expected, time, noise, most;
};

/* The part of drawn trials that drop the candidate. */
static double part_dropped(struct hr_rng *rng, const struct drawn *d, double *ret_rounds)
{
    int dropped = 0;
    size_t rounds = 0;

    for (int i = 0; i < DRAWS; i++) {
        double ratios[HR_TRIAL_ROUNDS_MAX];
        enum hr_trial found = HR_TRIAL_MORE;
        size_t count = 0;

        while (found == HR_TRIAL_MORE) {
            CHECK(count < HR_TRIAL_ROUNDS_MAX);
            ratios[count++] =
                disturbed(rng, d->time, d->noise) / disturbed(rng, 1, d->noise);
            found = hr__trial(ratios, count, d->expected, d->most);
        }
        dropped += found == HR_TRIAL_DROP;
        rounds += count;
    }
    *ret_rounds = (double)rounds / DRAWS;
    return (double)dropped / DRAWS;
}

TEST(noise_drops_few_orders_that_gain_and_keeps_few_that_lose)
{
    const struct {
        struct drawn drawn;
        double least, most; /* part that is dropped */
    } cases[] = {
        {{0.8, 0.8, 0.1, 1},       0,    0.01},
        {{0.9, 0.9, 0.1, 1},       0,    0.09},
        {{0.9, 0.95, 0.1, 1},      0,    0.18},
        {{0.98, 1.15, 0.1, 1},     0.75, 1   },
        {{0.98, 1.3, 0.1, 1},      0.95, 1   },
        {{0.8, 1.3, 0.1, 1},       0.85, 1   },
        {{0.8, 1.3, 0.02, 1},      0.93, 1   },
        {{0.98, 0.98, 0.02, 1},    0,    0.2 },
        {{0.98, 1.05, 0.02, 1},    0.9,  1   },
        {{0.98, 1.15, 0.02, 1},    0.97, 1   },
        {{0.9, 0.9, 0.02, 1},      0,    0.02},
        {{0.98, 0.98, 0.02, 0.98}, 0.2,  0.8 },
        {{0.95, 0.95, 0.02, 0.98}, 0,    0.1 },
        {{0.97, 1, 0.02, 0.98},    0.8,  1   },
        {{0.97, 1, 0.1, 0.98},     0.4,  1   },
    };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct drawn *d = &cases[i].drawn;
        double rounds, dropped = part_dropped(&rng, d, &rounds);

        printf("# %.2f expected, %.2f times as long, noise %.2f, at most %.2f: %.1f %% "
               "dropped after %.1f rounds\n",
               d->expected, d->time, d->noise, d->most, 100 * dropped, rounds);
        CHECK(dropped >= cases[i].least && dropped <= cases[i].most);
    }
}
