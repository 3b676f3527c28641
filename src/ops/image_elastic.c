/*
 * image.elastic - moves each pixel by smooth random shifts.
 */
#include <string.h>

#include "kernel/blur.h"
#include "ops/image_levels.h"
#include "ops/image_padding.h"
#include "ops/image_turn.h"

struct elastic {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_floats alpha, sigma;
    int interpolation;
    struct hr_floats fill;
    int64_t mask_fill;
};

static const struct hr_param elastic_params[] = {
    HR_P_FLOATS(struct elastic, alpha, .fallback = "50", .items_min = 1, .items_max = 2,
                HR_RANGE(0, 1e6),
                .help =
                    "how far pixels move: [along x, along y], or one number for both"),
    HR_P_FLOATS(struct elastic, sigma, .fallback = "5", .items_min = 1, .items_max = 2,
                HR_RANGE(0, 100), .unit = "pixels",
                .help =
                    "how smooth the shifts are: the standard deviation of their blur, "
                    "[along x, along y], or one number for both; 0: not at all"),
    HR_P_ENUM(struct elastic, interpolation, .fallback = "bilinear",
              .names = hr__warp_interpolations,
              .help = "how values between pixels are computed"),
    HR_P_FILL(struct elastic),
    HR_P_MASK_FILL(struct elastic),
    HR_P_MOVED(struct elastic),
};

static enum hr_err elastic_infer(struct hr_infer *infer)
{
    const struct elastic *p = infer->params;

    HR_TRY(hr__infer_turned(infer));
    return hr__infer_fill(infer, &p->fill);
}

/* Blur kernels have 8 sigma + 1 taps, or one more where that is even. */
static int32_t taps_of(double sigma)
{
    return (int32_t)(8 * sigma + 1) | 1;
}

#define WORDS 1024

static void draw_noise(struct hr_rng *rng, float *noise, size_t count)
{
    uint32_t words[WORDS];

    for (size_t at = 0; at < count; at += WORDS) {
        size_t some = count - at < WORDS ? count - at : WORDS;

        hr__rng_words(rng, words, some);
        for (size_t i = 0; i < some; i++)
            noise[at + i] = (float)(words[i] >> 8) * 0x1p-23f - 1;
    }
}

/* Blurred noise of -1 to 1, times `scale`. The size of the kernel goes by the direction
 * of the shifts, as in torchvision. */
static enum hr_err
draw_shifts(struct hr_op_ctx *ctx, struct hr_rng *rng, const struct hr_warp *warp,
            int axis, double scale, float **ret_shifts)
{
    const struct elastic *p = ctx->params;
    const double *sigmas = p->sigma.values;
    float sigma[2] = {(float)sigmas[0], (float)sigmas[p->sigma.count - 1]};
    size_t count = (size_t)warp->width * (size_t)warp->height;
    struct hr_pixels noise = {.dtype = HR_F32,
                              .width = warp->width,
                              .height = warp->height,
                              .channels = 1,
                              .row_stride = (int64_t)warp->width * 4,
                              .pixel_stride = 4,
                              .channel_stride = 4},
                     shifts = noise;
    int32_t taps = taps_of((double)sigma[axis]);

    HR_TRY(hr__op_alloc(ctx, count * sizeof(float), &noise.data));
    draw_noise(rng, noise.data, count);
    shifts.data = noise.data;
    if (sigma[axis] > 0) {
        HR_TRY(hr__op_alloc(ctx, count * sizeof(float), &shifts.data));
        if (hr__blur_run(&ctx->thread->arena, &noise, &shifts, taps, taps, sigma[0],
                         sigma[1]) != HR_OK)
            return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory to move pixels");
    }
    *ret_shifts = shifts.data;
    for (size_t i = 0; i < count; i++)
        (*ret_shifts)[i] *= (float)scale;
    return HR_OK;
}

static enum hr_err elastic_apply(struct hr_op_ctx *ctx)
{
    const struct elastic *p = ctx->params;
    struct hr_warp warp = {.filter = p->interpolation,
                           .mask_fill = (int32_t)p->mask_fill};
    double width, height;
    int32_t channels;
    float *shifts[2];
    struct hr_rng rng;

    HR_TRY(hr__image_size(ctx, 0, &warp.width, &warp.height, &channels));
    warp.to_width = warp.width;
    warp.to_height = warp.height;
    width = warp.width;
    height = warp.height;
    hr__op_rng(ctx, &rng);
    /* torchvision's shifts are alpha / [height, width], in units of half a side. */
    HR_TRY(draw_shifts(ctx, &rng, &warp, 0, p->alpha.values[0] / height * width / 2,
                       &shifts[0]));
    HR_TRY(draw_shifts(ctx, &rng, &warp, 1,
                       p->alpha.values[p->alpha.count - 1] / width * height / 2,
                       &shifts[1]));
    warp.shift_x = shifts[0];
    warp.shift_y = shifts[1];
    hr__fill_levels(&p->fill, warp.fill);
    return hr__warp(ctx, &warp);
}

const struct hr_op hr_op_image_elastic = {
    .name = "image.elastic",
    .summary = "move each pixel by smooth random shifts",
    .doc =
        "Like torchvision's ElasticTransform: a random shift from -1 to 1 for each pixel "
        "and "
        "direction, blurred by `sigma` and multiplied by `alpha`, which is in pixels "
        "times "
        "two on a square image; on others, shifts along x are `alpha` * width / height / "
        "2 "
        "pixels and those along y `alpha` * height / width / 2. Taps of the blur whose "
        "total "
        "weight is below 0.1 % are omitted, and it may be larger than the image. Boxes "
        "become upright ones around their four corners, and corners and points move by "
        "the "
        "shift at their place, which is nearly the inverse where shifts are smooth.",
    .version = 1,
    .kind = HR_OP_MAP,
    /* No HR_TRAIT_WARPS: shifts are in pixels, and would be larger parts of the image
     * after a resize. */
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(elastic_params, struct elastic),
    HR_MOVE_STATE,
    .infer = elastic_infer,
    .apply = elastic_apply,
};
