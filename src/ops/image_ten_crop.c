/*
 * image.ten_crop - the four corners and the centre of an image and of its mirror image,
 * each as a record.
 */
#include "ops/image_crops.h"

static const struct hr_param crop_params[] = {
    HR_P_SIZE(struct hr_crops),
    HR_P_BOOL(struct hr_crops, vertical, .fallback = "false",
              .help = "the last five are of the image upside down, not mirrored"),
    HR_P_IMAGE(struct hr_crops),
};

static enum hr_err count(struct hr_op_ctx *ctx, uint64_t *ret_count)
{
    (void)ctx;
    *ret_count = 10;
    return HR_OK;
}

const struct hr_op hr_op_image_ten_crop = {
    .name = "image.ten_crop",
    .summary = "the four corners and the centre of an image and of its mirror image, "
               "each as a record",
    .doc = "Like torchvision's TenCrop, in its order: top left, top right, bottom left, "
           "bottom right, centre; then those of the mirrored image. A record becomes ten "
           "that follow each other, "
           "with the other fields of the image, so a batch of a multiple of 10 has all "
           "crops of its images: `model(x).view(-1, 10, classes).mean(1)` is the mean "
           "over them. A smaller image is a bad record.",
    .version = 1,
    .kind = HR_OP_EXPAND,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(crop_params, struct hr_crops),
    .open = hr__crops_open,
    .close = hr__crops_close,
    .infer = hr__crops_infer,
    .expand.count = count,
    .expand.child = hr__crops_child,
};
