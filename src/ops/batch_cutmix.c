/*
 * batch.cutmix - replaces a rectangle of each image of a batch by that of the image
 * before it, and mixes their labels by area.
 */
#include <math.h>
#include <string.h>

#include "ops/batch_mix.h"

static const struct hr_param cutmix_params[] = {HR_P_BATCH_MIX(struct hr_batch_mix)};

struct window {
    int32_t left, top, right, bottom;
};

/* In torchvision's order: share, middle across, middle down. */
static struct window draw(double alpha, int32_t width, int32_t height, struct hr_rng *rng)
{
    double side = 0.5 * sqrt(1 - hr__rng_beta(rng, alpha, alpha));
    int32_t x = (int32_t)hr__rng_below(rng, (uint64_t)width);
    int32_t y = (int32_t)hr__rng_below(rng, (uint64_t)height);
    int32_t across = (int32_t)(side * width), down = (int32_t)(side * height);

    return (struct window){
        .left = x - across > 0 ? x - across : 0,
        .top = y - down > 0 ? y - down : 0,
        .right = x + across < width ? x + across : width,
        .bottom = y + down < height ? y + down : height,
    };
}

/* Copies the window from one image to another, both contiguous. */
static void copy_window(const struct hr_batch_images *images, const struct window *w,
                        const char *from, char *to)
{
    bool chw = images->layout == HR_LAYOUT_CHW;
    int64_t pixel = (int64_t)hr_dtype_size(images->dtype) * (chw ? 1 : images->channels);
    int64_t row = pixel * images->width, plane = row * images->height;

    for (int32_t c = 0; c < (chw ? images->channels : 1); c++)
        for (int32_t y = w->top; y < w->bottom; y++) {
            int64_t at = c * plane + y * row + w->left * pixel;

            memcpy(to + at, from + at, (size_t)((w->right - w->left) * pixel));
        }
}

static enum hr_err cutmix_apply(struct hr_op_ctx *ctx)
{
    const struct hr_batch_mix *p = ctx->params;
    struct hr_batch_images images;
    struct window w = {0};
    struct hr_rng rng;
    double area;

    HR_TRY(hr__batch_images(ctx, &images));
    hr__op_rng(ctx, &rng);
    w = draw(p->alpha, images.width, images.height, &rng);
    for (int64_t i = 0; i < images.count; i++) {
        int64_t before = (i + images.count - 1) % images.count;
        char *to = images.to + (size_t)i * images.bytes;

        memcpy(to, images.from + (size_t)i * images.bytes, images.bytes);
        copy_window(&images, &w, images.from + (size_t)before * images.bytes, to);
    }
    area = (double)(w.right - w.left) * (w.bottom - w.top);
    return hr__batch_mixed(ctx, &images,
                           1 - area / ((double)images.width * images.height));
}

const struct hr_op hr_op_batch_cutmix = {
    .name = "batch.cutmix",
    .summary =
        "replace a rectangle of each image of a batch by another's, and mix labels",
    .doc = "Like torchvision's CutMix: one rectangle is drawn per batch, and each image "
           "gets that of the image before it in the batch (the last one for the first), "
           "so the records must be shuffled. Labels become float32 `[batch, classes]`, "
           "mixed by area. Images of any type.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_BATCHED | HR_TRAIT_DTYPE,
    HR_PARAMS(cutmix_params, struct hr_batch_mix),
    .infer = hr__infer_batch_mix,
    .apply = cutmix_apply,
};
