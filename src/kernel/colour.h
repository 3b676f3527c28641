/*
 * kernel/colour.h - a chain of colour operations on one image, done in registers.
 *
 * Each step is defined as in torchvision v2 for floats (image in [0, max], max = 1 or
 * 255): brightness: clamp(x * value); contrast: clamp(value * x + (1 - value) * mean of
 * gray), with the mean of the image as it is at that step; saturation: blend with gray;
 * hue: rotate H of HSV by value (in turns, -0.5..0.5), exactly rather than by the linear
 * YIQ form; gray = .2989 R + .587 G + .114 B. Arithmetic is f32. ROUND rounds to whole
 * levels (between ops on u8 images), CLIP clamps to [value, value2]. PERMUTE, which must
 * be the last step, orders the channels: 0 RGB, 1 RBG, 2 GRB, 3 GBR, 4 BRG, 5 BGR.
 */
#ifndef HR_KERNEL_COLOUR_H
#define HR_KERNEL_COLOUR_H

#include "core/arena.h"
#include "kernel/pixels.h"

enum hr_colour_kind {
    HR_COLOUR_BRIGHTNESS,
    HR_COLOUR_CONTRAST,
    HR_COLOUR_SATURATION,
    HR_COLOUR_HUE,
    HR_COLOUR_GRAY, /* later steps see one replicated channel; see hr__colour_run */
    HR_COLOUR_CLIP,
    HR_COLOUR_ROUND,
    HR_COLOUR_PERMUTE,
};

struct hr_colour_step {
    enum hr_colour_kind kind;
    float value, value2;
};

#define HR_COLOUR_MAX 16

/*
 * Applies the steps to src (u8 or f32; 1 or 3 channels; interleaved or planar; may equal
 * dst) and writes dst (u8 rounded and clamped, or f32; same size; 3 channels, or 1 if
 * there is a GRAY step or src has 1). `max` is 255 for u8 and 0..255 floats, 1 for 0..1
 * floats. Saturation, hue, GRAY and PERMUTE do not change gray input. HR_ERR_ARGUMENT
 * for steps after PERMUTE.
 */
HR_CHECK enum hr_err
hr__colour_run(struct hr_arena *arena, const struct hr_pixels *src,
               const struct hr_pixels *dst, const struct hr_colour_step *steps,
               int step_count, float max);

#endif
