/*
 * ops/image_crops.h - shared by image.five_crop and image.ten_crop: crops of an image as
 * records of their own.
 */
#ifndef HR_OPS_IMAGE_CROPS_H
#define HR_OPS_IMAGE_CROPS_H

#include "op/op.h"
#include "ops/image_size.h"

struct hr_crops {
    const char *field;
    struct hr_ints size;
    bool vertical; /* ten crops: those of the image upside down, not mirrored */
};

HR_CHECK enum hr_err hr__crops_infer(struct hr_infer *infer);
HR_CHECK enum hr_err hr__crops_open(const struct hr_open *open, void **ret_state);
void hr__crops_close(void *state);
/* Crops 0 to 4: top left, top right, bottom left, bottom right, centre; 5 to 9: those of
 * the flipped image. */
HR_CHECK enum hr_err
hr__crops_child(struct hr_op_ctx *ctx, uint64_t at, const struct hr_value *parents,
                struct hr_value *children, size_t count);

#endif
