/*
 * ops/image_padding.h - parameters of ops that pad images.
 */
#ifndef HR_OPS_IMAGE_PADDING_H
#define HR_OPS_IMAGE_PADDING_H

#include "ops/image_job.h"

struct hr_sides {
    int32_t left, top, right, bottom;
};

/* 1 number: all sides; 2: left and right, top and bottom; 4: left, top, right, bottom. */
struct hr_sides hr__sides(const struct hr_ints *padding);

/* Checks `fill`, of parameter `param`, against the image's range and channels. */
HR_CHECK enum hr_err hr__infer_fill_of(struct hr_infer *infer, const char *param,
                                       const struct hr_floats *fill);
HR_CHECK enum hr_err hr__infer_fill(struct hr_infer *infer, const struct hr_floats *fill);

/* The level of `fill` for each of 4 channels. */
void hr__fill_levels(const struct hr_floats *fill, float ret_levels[4]);

extern const char *const hr__pad_modes[]; /* in order of enum hr_pad_mode */

#define HR_P_FILL(struct_)                                                               \
    HR_P_FLOATS(struct_, fill, .fallback = "0", .items_min = 1, .items_max = 4,          \
                HR_RANGE(-1e6, 1e6), .unit = "levels",                                   \
                .help =                                                                  \
                    "what is outside, one number or one per channel, in the image's "    \
                    "own range (0..255 or 0..1)")
/* Of ops whose other fields may be masks. */
#define HR_P_MASK_FILL_SETTINGS                                                          \
    HR_RANGE(0, 255), .unit = "label",                                                   \
                      .help = "what is outside of masks that move with the image, such " \
                              "as 255 where a loss ignores it; default: 0"
#define HR_P_MASK_FILL(struct_) HR_P_INT(struct_, mask_fill, HR_P_MASK_FILL_SETTINGS)
#define HR_P_PAD_MODE(struct_)                                                           \
    HR_P_ENUM(struct_, mode, .fallback = "constant", .names = hr__pad_modes,             \
              .help = "constant: fill; edge: repeat the outermost pixels; reflect: "     \
                      "mirror at them")

#endif
