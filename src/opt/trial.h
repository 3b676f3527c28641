/*
 * opt/trial.h - whether timed runs confirm that one way to run a graph is faster than
 * another, as the cost model expects. Pure.
 *
 * Both ways run in turns, and each round gives one ratio of their times. What the model
 * expects and what the rounds show are weighed by how sure each is (normal distributions
 * of the logarithm of the ratio), and rounds go on while a wrong decision could still
 * cost something: until the expected loss of the better decision is small (Raiffa and
 * Schlaifer, Applied Statistical Decision Theory, 1961, chapter 5).
 */
#ifndef HR_OPT_TRIAL_H
#define HR_OPT_TRIAL_H

#include <stddef.h>

#define HR_TRIAL_ROUNDS_MIN 3
#define HR_TRIAL_ROUNDS_MAX 7
#define HR_TRIAL_LOSS 0.003      /* of the time; less is not worth another round */
#define HR_TRIAL_MODEL_ERROR 0.1 /* standard deviation of the logarithm of `expected` */

enum hr_trial {
    HR_TRIAL_MORE, /* another round is needed */
    HR_TRIAL_KEEP, /* as fast as it has to be, as far as is known */
    HR_TRIAL_DROP, /* slower than that */
};

/* Judges the rounds so far: ratios[i] is the time of the candidate by that of the written
 * order in round i, `expected` the ratio that the cost model predicts, and `most` the one
 * that the candidate may have; all > 0. Never HR_TRIAL_MORE for HR_TRIAL_ROUNDS_MAX
 * rounds. */
enum hr_trial hr__trial(const double *ratios, size_t count, double expected, double most);

/* The median of at most HR_TRIAL_ROUNDS_MAX values; count > 0. */
double hr__trial_median(const double *values, size_t count);

#endif
