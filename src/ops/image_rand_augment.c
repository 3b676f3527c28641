/*
 * image.rand_augment - a number of random steps, all of one magnitude.
 */
#include "ops/augment.h"
#include "ops/image_turn.h"

#define STEPS_MAX 64

struct rand_augment {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    int64_t num_ops, magnitude, num_magnitude_bins;
    struct hr_augment_how how;
};

static const struct hr_param rand_augment_params[] = {
    HR_P_INT(struct rand_augment, num_ops, .fallback = "2", HR_RANGE(0, STEPS_MAX),
             .help = "number of steps, one after the other"),
    HR_P_INT(struct rand_augment, magnitude, .fallback = "9", HR_RANGE(0, (1 << 20) - 1),
             .help = "of every step, from 0 to num_magnitude_bins - 1"),
    HR_P_BINS(struct rand_augment),
    HR_P_AUGMENT(struct rand_augment, "nearest"),
    HR_P_IN(HR_PARAM_INT, struct rand_augment, how, mask_fill, HR_P_MASK_FILL_SETTINGS),
    HR_P_MOVED(struct rand_augment),
};

static enum hr_err rand_augment_infer(struct hr_infer *infer)
{
    const struct rand_augment *p = infer->params;

    if (p->magnitude >= p->num_magnitude_bins)
        return hr__infer_fail(infer, "magnitude", HR_ERR_RANGE,
                              "magnitude is below num_magnitude_bins (%lld), not %lld",
                              (long long)p->num_magnitude_bins, (long long)p->magnitude);
    return hr__infer_augment(infer, &p->how);
}

static enum hr_err rand_augment_apply(struct hr_op_ctx *ctx)
{
    const struct rand_augment *p = ctx->params;
    struct hr_augment_step steps[STEPS_MAX];
    int32_t width, height, channels;
    struct hr_rng rng;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    for (int64_t i = 0; i < p->num_ops; i++) {
        uint64_t kind = hr__rng_below(&rng, HR_AUGMENT_KINDS);

        steps[i] =
            hr__augment_draw(&hr__augment_space, (enum hr_augment_kind)kind, p->magnitude,
                             p->num_magnitude_bins, width, height, &rng);
    }
    return hr__augment(ctx, steps, p->num_ops, &p->how);
}

const struct hr_op hr_op_image_rand_augment = {
    .name = "image.rand_augment",
    .summary = "a number of random changes, all of one strength",
    .doc =
        "Like torchvision's RandAugment: each step is one of identity, shear, shift and "
        "rotation, brightness, color, contrast, sharpness, posterize, solarize, "
        "autocontrast and equalize, and half of those that have a direction or a factor "
        "get a negative magnitude. uint8 images get the levels that torchvision "
        "computes; "
        "shears and rotations may take the neighbouring pixel where a position lies "
        "between two. Masks, boxes and points that are listed follow shears, shifts and "
        "rotations; torchvision refuses them.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(rand_augment_params, struct rand_augment),
    HR_MOVE_STATE,
    .infer = rand_augment_infer,
    .apply = rand_augment_apply,
};
