/*
 * ops/subset.h - the records that weighted draws without replacement choose.
 *
 * Record i has the arrival time -log(u_i) / w_i, an exponential variable with rate w_i;
 * the first `count` to arrive are the sample, in the order of arrival. This is the sample
 * that one draw after another gives (Efraimidis and Spirakis 2006, whose keys u^(1/w)
 * have the same order), and every epoch's can be found without those before it.
 *
 * A sample is found once per (seed, epoch), by the thread that asks first; others wait.
 * The last HR_SUBSET_SAMPLES samples are kept, 4 bytes per chosen record each. Readers
 * validate a sample with a sequence number around their read, because threads must not
 * write shared memory per record. Finding one of a million records takes 0.1 us per
 * record where a tenth is drawn, and 0.4 us where all are.
 */
#ifndef HR_OPS_SUBSET_H
#define HR_OPS_SUBSET_H

#include "core/error.h"

/* Two suffice at the end of an epoch; the others are for shuffles after order.repeat. */
#define HR_SUBSET_SAMPLES 4

struct hr_subset;

/* Draws `count` of n < 2^32 records. Takes over `weights` (n of them, finite, not
 * negative; from hr__calloc), also on failure; NULL: all are equal. HR_ERR_ARGUMENT if
 * fewer than `count` are above 0. Allocates all memory that it will need: for each record
 * 8 bytes with weights, for each chosen one 16 more and 4 * HR_SUBSET_SAMPLES. */
HR_CHECK enum hr_err
hr__subset_open(double *weights, uint64_t n, uint64_t count,
                struct hr_subset **ret_subset, struct hr_error *error);
void hr__subset_close(struct hr_subset *subset);

/* The record that is chosen `at`-th (< count). Thread-safe. */
uint64_t
hr__subset_at(struct hr_subset *subset, uint64_t seed, uint32_t epoch, uint64_t at);

/* Whether both choose the same records for the same seed and epoch. */
bool hr__subset_same(const struct hr_subset *subset, const struct hr_subset *other);

/* n weights, or NULL. */
const double *hr__subset_weights(const struct hr_subset *subset);

#endif
