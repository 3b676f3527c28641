/*
 * image.gaussian_blur - blurs with a random strength.
 */
#include "kernel/blur.h"
#include "ops/image_job.h"
#include "ops/image_size.h"

struct blur {
    const char *field;
    struct hr_ints size;
    struct hr_floats sigma;
};

static const struct hr_param blur_params[] = {
    HR_P_INTS(struct blur, size, .required = true, .items_min = 1, .items_max = 2,
              HR_RANGE(1, 511), .unit = "pixels",
              .help = "[height, width] of the kernel, odd, or one number for both"),
    HR_P_FLOATS(struct blur, sigma, .fallback = "[0.1, 2]", .items_min = 1,
                .items_max = 2, HR_RANGE(0, 1000), .min_open = true, .unit = "pixels",
                .help = "standard deviation: [least, most], or one number"),
    HR_P_IMAGE(struct blur),
};

static enum hr_err blur_infer(struct hr_infer *infer)
{
    const struct blur *p = infer->params;

    HR_TRY(hr__infer_pixels(infer, 0));
    if (hr__size_width(&p->size) % 2 == 0 || hr__size_height(&p->size) % 2 == 0)
        return hr__infer_fail(infer, "size", HR_ERR_RANGE,
                              "the kernel's size must be odd, so that it has a centre");
    return hr__infer_order(infer, "sigma", &p->sigma);
}

static enum hr_err blur_apply(struct hr_op_ctx *ctx)
{
    const struct blur *p = ctx->params;
    enum hr_layout layout = hr__image_layout_of(ctx->fields[0]);
    struct hr_pixels in, out;
    struct hr_value made;
    struct hr_rng rng;
    float sigma;

    HR_TRY(hr__image_read(ctx, 0, &in));
    hr__op_rng(ctx, &rng);
    sigma = (float)hr__rng_uniform(&rng, p->sigma.values[0],
                                   p->sigma.values[p->sigma.count - 1]);
    HR_TRY(hr__image_make(ctx->thread, in.width, in.height, in.channels, in.dtype, layout,
                          &made, &out, ctx->error));
    if (hr__blur_run(&ctx->thread->arena, &in, &out, hr__size_width(&p->size),
                     hr__size_height(&p->size), sigma, sigma) != HR_OK)
        return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory to blur an image");
    hr__image_replace(ctx, 0, &made);
    return HR_OK;
}

const struct hr_op hr_op_image_gaussian_blur = {
    .name = "image.gaussian_blur",
    .summary = "blur the image with a random strength",
    .doc =
        "Like torchvision's GaussianBlur, with mirrored borders; but two sizes are "
        "[height, width], as in all ops here, taps whose total weight is below a quarter "
        "of a level are omitted, and the kernel may be larger than the image.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(blur_params, struct blur),
    .infer = blur_infer,
    .apply = blur_apply,
};
