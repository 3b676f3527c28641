/*
 * kernel/stretch.h - makes a sound longer or shorter without changing its pitch, by a
 * phase vocoder.
 *
 * A plan has the tables for one size of frames; it is read-only once made, and shared
 * between threads.
 */
#ifndef HR_KERNEL_STRETCH_H
#define HR_KERNEL_STRETCH_H

#include "core/arena.h"
#include "headrace/base.h"

struct hr_stretch;

/* Frames of `size` samples (even), under a Hann window of `width` <= size samples in
 * their middle, `hop` <= width samples apart. HR_ERR_UNSUPPORTED if the size has a prime
 * factor above HR_RADIX_MAX, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__stretch_create(int32_t size, int32_t width, int32_t hop,
                   struct hr_stretch **ret_stretch, struct hr_error *reterr);
void hr__stretch_destroy(struct hr_stretch *stretch); /* NULL is allowed */

/* Samples that `count` samples become: count / rate, rounded to the nearest. */
int64_t hr__stretch_count(int64_t count, double rate);

/*
 * Writes hr__stretch_count() samples to `out`. `rate` above 1 is faster. The numbers are
 * those of librosa.effects.time_stretch in double precision. Scratch comes from the
 * arena. HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__stretch_run(const struct hr_stretch *stretch, struct hr_arena *arena,
                const float *sound, int64_t count, double rate, float *out);

#endif
