/*
 * opt/trial.c - Wilcoxon's signed-rank test on the logarithms of ratios. Unlike a mean,
 * it is not fooled by one run that was disturbed, and unlike a count of signs it can
 * decide after five rounds.
 */
#include "opt/trial.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define TEST_MIN 5

/* Ranks against the assumption may add up to this many, at a level of 5 % (one-sided),
 * for TEST_MIN to HR_TRIAL_ROUNDS_MAX rounds. */
static const double rank_limits[] = {0, 2, 3};

double hr__trial_median(const double *values, size_t count)
{
    double sorted[HR_TRIAL_ROUNDS_MAX];

    assert(count > 0 && count <= HR_TRIAL_ROUNDS_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;

        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* The sum of the ranks, by distance from 1, of the ratios that are at most 1. Equal
 * distances share their ranks. */
static double ranks_at_most_1(const double *ratios, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        double distance = fabs(log(ratios[i])), rank = 0.5;

        if (ratios[i] > 1)
            continue;
        for (size_t k = 0; k < count; k++) {
            double other = fabs(log(ratios[k]));

            rank += other < distance ? 1 : other > distance ? 0 : 0.5;
        }
        sum += rank;
    }
    return sum;
}

static size_t count_above_1(const double *ratios, size_t count)
{
    size_t above = 0;

    for (size_t i = 0; i < count; i++)
        above += ratios[i] > 1;
    return above;
}

enum hr_trial hr__trial(const double *ratios, size_t count)
{
    double middle;

    assert(count <= HR_TRIAL_ROUNDS_MAX);
    if (count < HR_TRIAL_ROUNDS_MIN)
        return HR_TRIAL_MORE;
    if (count < TEST_MIN)
        return count_above_1(ratios, count) == 0 ? HR_TRIAL_KEEP : HR_TRIAL_MORE;
    middle = hr__trial_median(ratios, count);
    if (middle > HR_TRIAL_SLOWER &&
        ranks_at_most_1(ratios, count) <= rank_limits[count - TEST_MIN])
        return HR_TRIAL_DROP;
    return middle <= 1 || count == HR_TRIAL_ROUNDS_MAX ? HR_TRIAL_KEEP : HR_TRIAL_MORE;
}
