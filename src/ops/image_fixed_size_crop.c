/*
 * image.fixed_size_crop - crops or pads the image to a size.
 */
#include "ops/image_padding.h"
#include "ops/image_size.h"
#include "ops/move.h"

struct fixed {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints size;
    struct hr_floats fill;
    int mode;
    int64_t mask_fill;
};

static const struct hr_param fixed_params[] = {
    HR_P_SIZE(struct fixed),     HR_P_FILL(struct fixed),  HR_P_MASK_FILL(struct fixed),
    HR_P_PAD_MODE(struct fixed), HR_P_MOVED(struct fixed),
};

static enum hr_err fixed_infer(struct hr_infer *infer)
{
    const struct fixed *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    HR_TRY(hr__infer_pixels(infer, 0));
    HR_TRY(hr__infer_fill(infer, &p->fill));
    hr__infer_moved_size(infer, hr__size_width(&p->size), hr__size_height(&p->size));
    return HR_OK;
}

static int32_t above(int32_t a, int32_t b)
{
    return a > b ? a - b : 0;
}

/* One number places the window along both axes, like torchvision. */
static enum hr_err crop(struct hr_op_ctx *ctx, int32_t width, int32_t height)
{
    struct hr_move move;
    struct hr_rng rng;
    double at;

    HR_TRY(hr__move_begin(ctx, &move));
    if (move.width <= width && move.height <= height)
        return HR_OK;
    hr__op_rng(ctx, &rng);
    at = hr__rng_double(&rng);
    hr__move_crop(&move, (int32_t)(above(move.width, width) * at),
                  (int32_t)(above(move.height, height) * at),
                  move.width - above(move.width, width),
                  move.height - above(move.height, height));
    return hr__move(ctx, &move);
}

static enum hr_err fixed_apply(struct hr_op_ctx *ctx)
{
    const struct fixed *p = ctx->params;
    int32_t width = hr__size_width(&p->size), height = hr__size_height(&p->size);
    struct hr_move move;

    HR_TRY(crop(ctx, width, height));
    HR_TRY(hr__move_begin(ctx, &move));
    if (move.width == width && move.height == height)
        return HR_OK;
    move.pad_mode = p->mode;
    hr__fill_levels(&p->fill, move.fill);
    move.mask_fill = (int32_t)p->mask_fill;
    hr__move_pad(&move, 0, 0, width - move.width, height - move.height);
    return hr__move(ctx, &move);
}

/* A padded image may be made. */
static uint64_t fixed_frames(const void *params, struct hr_field *field)
{
    const struct fixed *p = params;
    int64_t width = hr__field_width(field)->size, height = hr__field_height(field)->size;
    struct hr_field framed = *field;

    if (width < 0 || height < 0 ||
        (width >= hr__size_width(&p->size) && height >= hr__size_height(&p->size)))
        return 0;
    hr__infer_size(&framed, hr__size_width(&p->size), hr__size_height(&p->size));
    return hr__field_has_unknown_dims(&framed) ? 0 : (uint64_t)hr__field_bytes(&framed);
}

const struct hr_op hr_op_image_fixed_size_crop = {
    .name = "image.fixed_size_crop",
    .summary = "crop or pad the image to a size",
    .doc = "Like torchvision's FixedSizeCrop: a side that is too long is cropped at a "
           "random place, one that is too short is padded at its end. Boxes outside of "
           "the window stay as rows of no width or height: boxes.sanitize drops them.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(fixed_params, struct fixed),
    HR_MOVE_STATE,
    .infer = fixed_infer,
    .apply = fixed_apply,
    .frames = fixed_frames,
};
