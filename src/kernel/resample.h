/*
 * kernel/resample.h - resize a window of an image, with everything that can ride along.
 *
 * Two separable passes, vertical then horizontal, on rows that stay in cache. u8 input is
 * resampled in fixed point (16-bit weights, at least 6 fraction bits carried between the
 * passes and out), so every instruction set gives the same bytes. f32 input is resampled
 * in f32 in a fixed order of summation.
 */
#ifndef HR_KERNEL_RESAMPLE_H
#define HR_KERNEL_RESAMPLE_H

#include "core/arena.h"
#include "kernel/pixels.h"

enum hr_filter {
    HR_FILTER_NEAREST, /* as Pillow's and torchvision's NEAREST_EXACT: the pixel under the
                          centre */
    HR_FILTER_BILINEAR, /* triangle */
    HR_FILTER_BICUBIC,  /* a = -0.5 with antialias (Pillow, torchvision), -0.75 without */
    HR_FILTER_BOX,
    HR_FILTER_LANCZOS, /* a = 3 */
};

/* How far the taps of an output reach to either side of its centre, in source pixels,
 * where an output stands for `scale` of them. */
double hr__resample_reach(enum hr_filter filter, bool antialias, double scale);

struct hr_resample {
    int32_t in_width,
        in_height; /* the source array; taps are clamped to it and weights renormalised */
    double box_x, box_y, box_width,
        box_height; /* what is shown, in source pixels, may be fractional */
    int32_t out_width, out_height;
    bool flip_x, flip_y; /* mirror the result */
    enum hr_filter filter;
    bool antialias; /* widen the filter by the shrink factor, as Pillow and torchvision do
                     */
};

/* Weights of both axes, made in `arena` and valid until it is reset. The work is
 * proportional to output size x taps. */
struct hr_resample_plan;
HR_CHECK enum hr_err
hr__resample_plan(struct hr_arena *arena, const struct hr_resample *spec,
                  struct hr_resample_plan **ret_plan);

/*
 * Run it: src (u8 or f32, interleaved or planar, size as in the plan) -> dst. With
 * `round_u8` the result of a u8 source is rounded to whole levels first (what torchvision
 * gives for u8 images); without it the fraction is kept for a float destination. Then the
 * affine steps and the conversion of hr__pixels_store. Scratch comes from `arena`.
 * HR_ERR_MEMORY only.
 */
HR_CHECK enum hr_err
hr__resample_run(const struct hr_resample_plan *plan, struct hr_arena *arena,
                 const struct hr_pixels *src, const struct hr_pixels *dst, bool round_u8,
                 const struct hr_affine *steps, int step_count);

#endif
