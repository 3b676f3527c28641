/*
 * kernel/resample_ycc.h - resizes the Y, Cb and Cr planes of a JPEG directly to RGB.
 *
 * Each plane is resampled at its own resolution by the fixed-point passes of
 * kernel/resample.h; colour conversion follows, on the pixels of the result, in f32 in a
 * fixed order without contraction, so every instruction set gives the same bytes. Chroma
 * is never upsampled to the size of luma, and nothing is rounded or clamped before the
 * end.
 */
#ifndef HR_KERNEL_RESAMPLE_YCC_H
#define HR_KERNEL_RESAMPLE_YCC_H

#include "kernel/resample.h"

struct hr_ycc_planes {
    struct hr_pixels plane[3]; /* u8, one channel each; [1], [2] unused if gray */
    bool gray;
    int32_t shift_x, shift_y; /* chroma subsampling: 0 or 1 */
    /* Chroma pixel (i, j) covers the luma pixels from ((i << shift_x) + chroma_x, (j <<
     * shift_y) + chroma_y): the offset of the chroma plane from the luma plane, in luma
     * pixels. May be negative or odd. */
    int32_t chroma_x, chroma_y;
};

/*
 * `spec` is in pixels of plane[0], as for hr__resample_plan. A chroma sample is centred
 * on the luma pixels that it covers (JFIF), its filter is widened by its own scale, and
 * each plane's taps are clipped at its own edges: chroma needs as wide a margin around
 * the box as luma. dst has 3 channels, or 1 for luma only; u8, f16, bf16 or f32,
 * interleaved or planar.
 *
 * Results are clamped to 0..255 (rounded to whole levels with `round_u8`); the rest is as
 * in hr__resample_run. Luma alone, and gray as three channels, is exactly what
 * hr__resample_run gives for plane[0] in each channel, including unrounded overshoot of a
 * filter. Plans and scratch come from `arena`. HR_ERR_MEMORY, or HR_ERR_ARGUMENT for an
 * invalid spec; dst is then unchanged.
 */
HR_CHECK enum hr_err
hr__resample_ycc(struct hr_arena *arena, const struct hr_resample *spec,
                 const struct hr_ycc_planes *planes, const struct hr_pixels *dst,
                 bool round_u8, const struct hr_affine *steps, int step_count);

#endif
