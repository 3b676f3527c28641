/*
 * batch.mixup - blends each image of a batch with the one before it, and their labels.
 */
#include "kernel/mix.h"
#include "ops/batch_mix.h"

static const struct hr_param mixup_params[] = {HR_P_BATCH_MIX(struct hr_batch_mix)};

static enum hr_err mixup_infer(struct hr_infer *infer)
{
    const struct hr_field *image = infer->fields[0];

    HR_TRY(hr__infer_batch_mix(infer));
    if (image->dtype == HR_F32)
        return HR_OK;
    return hr__infer_fail(
        infer, "field", HR_ERR_TYPE,
        "field \"%s\" is %s, and blends are float32: put tensor.cast or "
        "image.normalize before the batch",
        image->name, hr_dtype_name(image->dtype));
}

static enum hr_err mixup_apply(struct hr_op_ctx *ctx)
{
    const struct hr_batch_mix *p = ctx->params;
    struct hr_batch_images images;
    struct hr_rng rng;
    double share;

    HR_TRY(hr__batch_images(ctx, &images));
    hr__op_rng(ctx, &rng);
    share = hr__rng_beta(&rng, p->alpha, p->alpha);
    for (int64_t i = 0; i < images.count; i++) {
        size_t at = (size_t)i * images.bytes;
        size_t before = (size_t)((i + images.count - 1) % images.count) * images.bytes;

        hr__mix_f32((const float *)(const void *)(images.from + before),
                    (float)(1 - share), (const float *)(const void *)(images.from + at),
                    (float)share, (float *)(void *)(images.to + at),
                    images.bytes / sizeof(float));
    }
    return hr__batch_mixed(ctx, &images, share);
}

const struct hr_op hr_op_batch_mixup = {
    .name = "batch.mixup",
    .summary = "blend the images of a batch, and their labels",
    .doc = "Like torchvision's MixUp: one share is drawn per batch from a beta "
           "distribution, and each image becomes share * image + (1 - share) * the image "
           "before it in the batch (the last one for the first), so the records must be "
           "shuffled. Labels become float32 `[batch, classes]`.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_BATCHED | HR_TRAIT_DTYPE,
    HR_PARAMS(mixup_params, struct hr_batch_mix),
    .infer = mixup_infer,
    .apply = mixup_apply,
};
