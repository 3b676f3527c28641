/*
 * image.trivial_augment_wide - one random step of a random magnitude, from wide ranges.
 */
#include "ops/augment.h"
#include "ops/image_turn.h"

struct trivial {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    int64_t num_magnitude_bins;
    struct hr_augment_how how;
};

static const struct hr_augment_space wide = {
    .shear = 0.99, .shift = 32, .turn = 135, .factor = 0.99, .bits = 8, .bits_less = 6};

static const struct hr_param trivial_params[] = {
    HR_P_BINS(struct trivial),
    HR_P_AUGMENT(struct trivial, "nearest"),
    HR_P_IN(HR_PARAM_INT, struct trivial, how, mask_fill, HR_P_MASK_FILL_SETTINGS),
    HR_P_MOVED(struct trivial),
};

static enum hr_err trivial_infer(struct hr_infer *infer)
{
    const struct trivial *p = infer->params;

    return hr__infer_augment(infer, &p->how);
}

static enum hr_err trivial_apply(struct hr_op_ctx *ctx)
{
    const struct trivial *p = ctx->params;
    struct hr_augment_step step;
    int32_t width, height, channels;
    enum hr_augment_kind kind;
    struct hr_rng rng;
    int64_t bin;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    kind = (enum hr_augment_kind)hr__rng_below(&rng, HR_AUGMENT_KINDS);
    bin = (int64_t)hr__rng_below(&rng, (uint64_t)p->num_magnitude_bins);
    step = hr__augment_draw(&wide, kind, bin, p->num_magnitude_bins, width, height, &rng);
    return hr__augment(ctx, &step, 1, &p->how);
}

const struct hr_op hr_op_image_trivial_augment_wide = {
    .name = "image.trivial_augment_wide",
    .summary = "one random change of a random strength",
    .doc =
        "Like torchvision's TrivialAugmentWide. The changes, and what is said of their "
        "levels and of other fields, are those of image.rand_augment; their ranges are "
        "wider.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(trivial_params, struct trivial),
    HR_MOVE_STATE,
    .infer = trivial_infer,
    .apply = trivial_apply,
};
