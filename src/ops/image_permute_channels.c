/*
 * image.permute_channels - orders the channels at random.
 */
#include "ops/image_levels.h"

struct permute {
    const char *field;
};

static const struct hr_param permute_params[] = {
    HR_P_IMAGE(struct permute),
};

static enum hr_err permute_infer(struct hr_infer *infer)
{
    return hr__infer_pixels(infer, 0);
}

static enum hr_err permute_apply(struct hr_op_ctx *ctx)
{
    int32_t width, height, channels;
    int order[4] = {0, 1, 2, 3};
    struct hr_pixels pixels;
    struct hr_rng rng;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    for (int i = channels - 1; i > 0; i--) {
        int k = (int)hr__rng_below(&rng, (uint64_t)i + 1), kept = order[i];

        order[i] = order[k];
        order[k] = kept;
    }
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    hr__levels_permute(&pixels, order);
    return HR_OK;
}

const struct hr_op hr_op_image_permute_channels = {
    .name = "image.permute_channels",
    .summary = "order the channels at random",
    .doc =
        "Like torchvision's RandomChannelPermutation: all orders, the image's own among "
        "them, are equally likely.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_POINTWISE,
    HR_PARAMS(permute_params, struct permute),
    .infer = permute_infer,
    .apply = permute_apply,
};
