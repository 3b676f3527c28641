/*
 * image.random_area_crop - a random window of the image, as large as it comes.
 *
 * What lies between it and a resize (rotation, shear) sees the pixels of the photo.
 */
#include "ops/image_area.h"

static const struct hr_param area_crop_params[] = {
    HR_P_AREA,
    HR_P_AREA_MOVED,
};

static enum hr_err area_crop_infer(struct hr_infer *infer)
{
    HR_TRY(hr__infer_moved(infer));
    HR_TRY(hr__infer_area(infer, infer->params));
    hr__infer_moved_size(infer, -1, -1);
    return HR_OK;
}

static enum hr_err area_crop_apply(struct hr_op_ctx *ctx)
{
    struct hr_move move;
    struct hr_rng rng;

    HR_TRY(hr__move_begin(ctx, &move));
    hr__op_rng(ctx, &rng);
    hr__move_area(&move, ctx->params, &rng);
    return hr__move(ctx, &move);
}

const struct hr_op hr_op_image_random_area_crop = {
    .name = "image.random_area_crop",
    .summary = "crop a random window of a random size",
    .doc = "The window of image.random_resized_crop, without the resize: sizes differ "
           "between records until image.resize. TensorFlow's "
           "sample_distorted_bounding_box without boxes draws the aspect from its "
           "interval itself, here from that of its logarithm, as torchvision does.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GEOMETRIC | HR_TRAIT_CROPS | HR_TRAIT_DEFERS |
              HR_TRAIT_SHRINKS,
    HR_PARAMS(area_crop_params, struct hr_area),
    HR_MOVE_STATE,
    .infer = area_crop_infer,
    .apply = area_crop_apply,
};
