/*
 * opt/trial.h - whether timed runs show that one way to run a graph is slower than
 * another. Pure.
 *
 * Both ways run in turns, and each round gives one ratio of their times. A busy machine
 * changes single times by more than what an order of nodes gains, so no order is dropped
 * because of a few runs: the rounds continue until they agree.
 */
#ifndef HR_OPT_TRIAL_H
#define HR_OPT_TRIAL_H

#include <stddef.h>

#define HR_TRIAL_ROUNDS_MIN 2
#define HR_TRIAL_ROUNDS_MAX 7
#define HR_TRIAL_SLOWER 1.02 /* less is not worth a decision */

enum hr_trial {
    HR_TRIAL_MORE, /* another round is needed */
    HR_TRIAL_KEEP, /* not shown to be slower */
    HR_TRIAL_DROP, /* slower: by more than HR_TRIAL_SLOWER, at a level of 5 % */
};

/* Judges the rounds so far: ratios[i] is the time of the candidate by that of the written
 * order in round i, > 0. Never HR_TRIAL_MORE for HR_TRIAL_ROUNDS_MAX rounds. */
enum hr_trial hr__trial(const double *ratios, size_t count);

/* The median of at most HR_TRIAL_ROUNDS_MAX values; count > 0. */
double hr__trial_median(const double *values, size_t count);

#endif
