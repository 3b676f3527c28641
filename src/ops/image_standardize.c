/*
 * image.standardize - brings each image to mean 0 and deviation 1 by its own levels.
 */
#include <math.h>

#include "kernel/moments.h"
#include "ops/image_job.h"
#include "ops/image_size.h"

struct standardize {
    const char *field;
};

static const struct hr_param standardize_params[] = {
    HR_P_IMAGE(struct standardize),
};

static enum hr_err standardize_infer(struct hr_infer *infer)
{
    struct hr_field *field = infer->fields[0];

    HR_TRY(hr__infer_levels(infer, 0));
    HR_TRY(hr__infer_pixels(infer, 0));
    field->dtype = HR_F32;
    field->meaning = HR_MEANING_IMAGE_NORMAL;
    return HR_OK;
}

/* The step that does it; `unit` is the level of white. */
static struct hr_affine
step_for(const struct hr_pixels *in, double mean, double deviation, double unit)
{
    double least = unit / sqrt((double)in->width * in->height * in->channels);
    double scale = 1 / (deviation > least ? deviation : least);
    struct hr_affine step;

    for (int c = 0; c < 4; c++) {
        step.scale[c] = (float)scale;
        step.bias[c] = (float)(-mean * scale);
    }
    return step;
}

static enum hr_err standardize_apply(struct hr_op_ctx *ctx)
{
    enum hr_layout layout = hr__image_layout_of(ctx->fields[0]);
    struct hr_pixels in, out;
    struct hr_affine step;
    struct hr_value made;
    double mean, deviation;

    HR_TRY(hr__image_read(ctx, 0, &in));
    if (hr__pixels_moments(&ctx->thread->arena, &in, &mean, &deviation) != HR_OK)
        return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory for an image");
    step = step_for(&in, mean, deviation, in.dtype == HR_U8 ? 255 : 1);
    HR_TRY(hr__image_make(ctx->thread, in.width, in.height, in.channels, HR_F32, layout,
                          &made, &out, ctx->error));
    hr__pixels_store(&in, &out, &step, 1, false, false);
    hr__image_replace(ctx, 0, &made);
    return HR_OK;
}

const struct hr_op hr_op_image_standardize = {
    .name = "image.standardize",
    .summary = "bring each image to mean 0 and deviation 1",
    .doc = "As tf.image.per_image_standardization on levels 0..1: mean and deviation are "
           "those of all pixels and channels of the image, and a deviation below 1 / "
           "sqrt(number of levels) counts as that, so that images of one colour become "
           "0. The result is float32. To subtract the same numbers from all images, use "
           "image.normalize.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DTYPE | HR_TRAIT_GROWS,
    HR_PARAMS(standardize_params, struct standardize),
    .infer = standardize_infer,
    .apply = standardize_apply,
};
