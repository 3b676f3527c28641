/*
 * ops/image_size.h - parameters shared by the image ops, and their meaning.
 */
#ifndef HR_OPS_IMAGE_SIZE_H
#define HR_OPS_IMAGE_SIZE_H

#include "op/param.h"

#define HR_IMAGE_SIDE_MAX 65535

/* `field` */
#define HR_P_IMAGE(struct_)                                                              \
    HR_P_FIELD(struct_, field, .fallback = "image", .access = HR_ACCESS_UPDATE,          \
               .help = "the field with the image")

/* `size`: [height, width], or one number for a square. */
#define HR_P_SIZE(struct_)                                                               \
    HR_P_INTS(struct_, size, .required = true, .items_min = 1, .items_max = 2,           \
              HR_RANGE(1, HR_IMAGE_SIDE_MAX), .unit = "pixels",                          \
              .help = "[height, width], or one number for both")

/* `interpolation` (enum hr_filter) and `antialias`. */
extern const char *const hr__interpolations[];
#define HR_P_INTERPOLATION(struct_)                                                      \
    HR_P_ENUM(struct_, interpolation, .fallback = "bilinear",                            \
              .names = hr__interpolations,                                               \
              .help = "how values between pixels are computed"),                         \
        HR_P_BOOL(struct_, antialias, .fallback = "true",                                \
                  .help = "average over all pixels that a new pixel covers when "        \
                          "shrinking; nearest never does")

/* Of HR_P_SIZE. */
int32_t hr__size_width(const struct hr_ints *size);
int32_t hr__size_height(const struct hr_ints *size);

#endif
