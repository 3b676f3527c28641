/*
 * opt/trial.c - Bayes' rule with medians: a run that was disturbed changes neither the
 * middle of the rounds nor their spread.
 */
#include "opt/trial.h"

#include <assert.h>
#include <math.h>

#define NOISE 0.1           /* of a round's ratio, as long as no rounds show it */
#define NOISE_ROUNDS 2      /* what that counts, in rounds */
#define DEVIATION 1.4826    /* of a normal distribution, by its median distance */
#define MEDIAN_ERROR 1.2533 /* of a median by that of a mean: sqrt(pi / 2) */

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

/* The variance of one round's logarithm. */
static double variance(const double *logs, size_t count, double middle)
{
    double distances[HR_TRIAL_ROUNDS_MAX], deviation;

    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(logs[i] - middle);
    deviation = DEVIATION * hr__trial_median(distances, count);
    return (NOISE_ROUNDS * NOISE * NOISE + (double)count * deviation * deviation) /
           (NOISE_ROUNDS + (double)count);
}

/* The expected loss of deciding by the sign of a normal distribution's mean. */
static double expected_loss(double mean, double deviation)
{
    double z = fabs(mean) / deviation;
    double density = exp(-z * z / 2) / sqrt(2 * M_PI);

    return deviation * (density - z * erfc(z / M_SQRT2) / 2);
}

/* The variance of what the model expects. Where the rounds are further from it than twice
 * what both errors explain, it is the model that is wrong. */
static double model_variance(double distance, double rounds_variance)
{
    return fmax(HR_TRIAL_MODEL_ERROR * HR_TRIAL_MODEL_ERROR,
                distance * distance / 4 - rounds_variance);
}

enum hr_trial hr__trial(const double *ratios, size_t count, double expected, double most)
{
    double logs[HR_TRIAL_ROUNDS_MAX], middle, rounds, model, mean;

    assert(count <= HR_TRIAL_ROUNDS_MAX && expected > 0 && most > 0);
    if (count < HR_TRIAL_ROUNDS_MIN)
        return HR_TRIAL_MORE;
    for (size_t i = 0; i < count; i++)
        logs[i] = log(ratios[i]);
    middle = hr__trial_median(logs, count);
    rounds = MEDIAN_ERROR * MEDIAN_ERROR * variance(logs, count, middle) / (double)count;
    model = model_variance(middle - log(expected), rounds);
    mean = (log(expected) * rounds + middle * model) / (model + rounds) - log(most);
    if (count < HR_TRIAL_ROUNDS_MAX &&
        expected_loss(mean, sqrt(model * rounds / (model + rounds))) > HR_TRIAL_LOSS)
        return HR_TRIAL_MORE;
    return mean > 0 ? HR_TRIAL_DROP : HR_TRIAL_KEEP;
}
