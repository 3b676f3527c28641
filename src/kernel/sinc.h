/*
 * kernel/sinc.h - changes the rate of a sound by any ratio.
 *
 * The filter is tabulated at SINC_PHASES places between two samples, and interpolated
 * between these, so its size does not depend on the ratio's denominator. Ratios of small
 * numbers are faster, and exact, by kernel/polyphase.h.
 */
#ifndef HR_KERNEL_SINC_H
#define HR_KERNEL_SINC_H

#include "core/arena.h"
#include "headrace/base.h"

struct hr_sinc;

/* `step` input samples per output sample, 1 / 64 to 64. The filter is HR_RATE_HQ's; the
 * interpolation is within 1e-5 of it. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__sinc_create(double step, struct hr_sinc **ret_sinc, struct hr_error *reterr);
void hr__sinc_destroy(struct hr_sinc *sinc); /* NULL is allowed */

/* Output i < out_count is at the time of input i * step; outside the sound is silence,
 * and outputs from its end on are 0. Scratch comes from the arena. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__sinc_run(const struct hr_sinc *sinc, struct hr_arena *arena, const float *in,
             int64_t count, float *out, int64_t out_count);

#endif
