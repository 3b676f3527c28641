/*
 * ops/augment.h - the steps that RandAugment, TrivialAugment, AutoAugment and AugMix draw
 * from, and running a chain of them on a record.
 *
 * A step is a kind and a magnitude, as in torchvision, and gives the bytes of its uint8
 * function. Steps that change each level by itself are joined into one table per channel,
 * so that a chain passes over the pixels once for each step that mixes pixels or
 * channels, and once for the rest.
 */
#ifndef HR_OPS_AUGMENT_H
#define HR_OPS_AUGMENT_H

#include "ops/image_padding.h"
#include "ops/image_size.h"
#include "ops/move.h"

/* In torchvision's order. */
enum hr_augment_kind {
    HR_AUGMENT_IDENTITY,
    HR_AUGMENT_SHEAR_X, /* magnitude: columns per row */
    HR_AUGMENT_SHEAR_Y,
    HR_AUGMENT_TRANSLATE_X, /* pixels; the fraction is dropped */
    HR_AUGMENT_TRANSLATE_Y,
    HR_AUGMENT_ROTATE,     /* degrees, counter-clockwise */
    HR_AUGMENT_BRIGHTNESS, /* of this and the next three: the factor - 1 */
    HR_AUGMENT_COLOR,
    HR_AUGMENT_CONTRAST,
    HR_AUGMENT_SHARPNESS,
    HR_AUGMENT_POSTERIZE, /* bits that are kept */
    HR_AUGMENT_SOLARIZE,  /* threshold as a fraction of white */
    HR_AUGMENT_AUTO_CONTRAST,
    HR_AUGMENT_EQUALIZE,
    HR_AUGMENT_KINDS, /* of RandAugment and TrivialAugment */
    HR_AUGMENT_INVERT = HR_AUGMENT_KINDS,
};

struct hr_augment_step {
    enum hr_augment_kind kind;
    float magnitude;
};

/* The greatest magnitudes of a method. */
struct hr_augment_space {
    double shear, shift;
    bool shift_of_side; /* `shift` is a fraction of the side, not pixels */
    double turn, factor;
    int bits, bits_less; /* posterize keeps from `bits` down to that many fewer */
};
extern const struct hr_augment_space hr__augment_space; /* RandAugment and AutoAugment */

/* The step of this kind with magnitude `bin` of `bins` (at least 2). Draws the sign where
 * there is one. */
struct hr_augment_step
hr__augment_draw(const struct hr_augment_space *space, enum hr_augment_kind kind,
                 int64_t bin, int64_t bins, int32_t width, int32_t height,
                 struct hr_rng *rng);

/* What the ops have in common. */
struct hr_augment_how {
    int interpolation;
    int64_t mask_fill;
    struct hr_floats fill;
};
#define HR_P_AUGMENT(struct_, interpolation_)                                            \
    HR_P_IN(HR_PARAM_ENUM, struct_, how, interpolation, .fallback = (interpolation_),    \
            .names = hr__warp_interpolations,                                            \
            .help = "how values between pixels are computed when the image is sheared, " \
                    "shifted or rotated"),                                               \
        HR_P_IN(HR_PARAM_FLOATS, struct_, how, fill, .fallback = "0", .items_min = 1,    \
                .items_max = 4, HR_RANGE(0, 255), .unit = "levels",                      \
                .help = "what is outside then: one level or one per channel")
#define HR_P_BINS(struct_)                                                               \
    HR_P_INT(struct_, num_magnitude_bins, .fallback = "31", HR_RANGE(2, 1 << 20),        \
             .help = "number of magnitudes from none to the greatest")

/* infer: an image of uint8 levels; what follows it can be turned. */
HR_CHECK enum hr_err
hr__infer_augment(struct hr_infer *infer, const struct hr_augment_how *how);

/* Runs the steps on the image in bound field 0, and moves the other bound fields along.
 */
HR_CHECK enum hr_err
hr__augment(struct hr_op_ctx *ctx, const struct hr_augment_step *steps, int64_t count,
            const struct hr_augment_how *how);

#endif
