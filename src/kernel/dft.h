/*
 * kernel/dft.h - transforms of complex numbers in double precision.
 *
 * For work on phases and for long convolutions, where float32 is too coarse: the phase of
 * a soft bin decides how it sounds when it becomes loud. Spectra of which only the power
 * is wanted come from kernel/spectrum.h, many frames at a time.
 */
#ifndef HR_KERNEL_DFT_H
#define HR_KERNEL_DFT_H

#include "headrace/base.h"

#define HR_DFT_STAGES_MAX 32

/* One stage (Stockham's): `count` butterflies of `radix` points, each `stride` times. */
struct hr_dft_stage {
    size_t radix, count, stride;
    const double *twiddles; /* [count][radix - 1] pairs */
    const double *roots;    /* [radix] pairs */
};

/* Tables for one size; read-only once made, and shared between threads. */
struct hr_dft {
    size_t size;
    int stages;
    struct hr_dft_stage stage[HR_DFT_STAGES_MAX];
    double *tables;
};

/* HR_ERR_UNSUPPORTED if the size has a prime factor above HR_RADIX_MAX (kernel/sound.h),
 * HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__dft_create(int32_t size, struct hr_dft *ret_dft, struct hr_error *reterr);
void hr__dft_destroy(struct hr_dft *dft); /* of {0} is fine */

/* The loops are in the table of kernel/sound.h. */

#endif
