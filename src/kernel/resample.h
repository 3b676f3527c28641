/*
 * kernel/resample.h - resizes a window of an image, with mirroring and conversion
 * included.
 *
 * Two separable passes, vertical then horizontal, on rows that stay in cache. u8 input is
 * resampled in fixed point (16-bit weights, at least 6 fraction bits between the passes
 * and in the result), so every instruction set gives the same bytes. f32 input is
 * resampled in f32 with a fixed order of summation.
 */
#ifndef HR_KERNEL_RESAMPLE_H
#define HR_KERNEL_RESAMPLE_H

#include "core/arena.h"
#include "kernel/pixels.h"

enum hr_filter {
    HR_FILTER_NEAREST,  /* like NEAREST_EXACT of Pillow and torchvision: the pixel under
                           the centre */
    HR_FILTER_BILINEAR, /* triangle */
    HR_FILTER_BICUBIC,  /* a = -0.5 with antialias (Pillow, torchvision), -0.75 without */
    HR_FILTER_BOX,
    HR_FILTER_LANCZOS, /* a = 3 */
};

/* How far the taps of an output extend to either side of its centre, in source pixels, if
 * an output covers `scale` source pixels. */
double hr__resample_reach(enum hr_filter filter, bool antialias, double scale);

struct hr_resample {
    int32_t in_width, in_height; /* size of the source; taps are clamped to it and weights
                                    renormalised */
    int32_t in_x, in_y; /* where the pixels that are given begin in the source; they hold
                           every tap */
    double box_x, box_y, box_width,
        box_height; /* the part to show, in source pixels; may be fractional */
    int32_t out_width, out_height;
    int32_t full_width,
        full_height;      /* size that the box is resized to; 0: the result's */
    int32_t out_x, out_y; /* where the result begins in that, before mirroring. The result
                             is this window of the full one, to the bit */
    bool flip_x, flip_y;  /* mirror the result */
    enum hr_filter filter;
    bool antialias; /* widen the filter by the scale when shrinking, as Pillow and
                       torchvision do */
};

/* The weights of both axes, allocated in `arena` and valid until its reset. Takes time
 * proportional to output size x taps. */
struct hr_resample_plan;
HR_CHECK enum hr_err
hr__resample_plan(struct hr_arena *arena, const struct hr_resample *spec,
                  struct hr_resample_plan **ret_plan);

/*
 * Resizes src (u8 or f32, interleaved or planar, the pixels of the plan) into dst. With
 * `round_u8` the result of a u8 source is first rounded to whole levels (as torchvision
 * does for u8 images); without it a float destination keeps the fraction. Then applies
 * the affine steps and the conversion of hr__pixels_store. Scratch comes from `arena`.
 * Fails only with HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__resample_run(const struct hr_resample_plan *plan, struct hr_arena *arena,
                 const struct hr_pixels *src, const struct hr_pixels *dst, bool round_u8,
                 const struct hr_affine *steps, int step_count);

#endif
