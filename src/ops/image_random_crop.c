/*
 * image.random_crop - a window of fixed size at a random position.
 */
#include "ops/image_padding.h"
#include "ops/image_size.h"
#include "ops/move.h"

struct random_crop {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints size, padding;
    bool pad_if_needed;
    struct hr_floats fill;
    int mode;
    int64_t mask_fill;
};

static const struct hr_param random_crop_params[] = {
    HR_P_SIZE(struct random_crop),
    HR_P_INTS(struct random_crop, padding, .fallback = "0", .items_min = 1,
              .items_max = 4, HR_RANGE(0, HR_IMAGE_SIDE_MAX), .unit = "pixels",
              .help =
                  "padding added first: one number, [left and right, top and bottom], or "
                  "[left, top, right, bottom]"),
    HR_P_BOOL(struct random_crop, pad_if_needed, .fallback = "false",
              .help = "pad images that are smaller than size; else they are an error"),
    HR_P_FILL(struct random_crop),
    HR_P_MASK_FILL(struct random_crop),
    HR_P_PAD_MODE(struct random_crop),
    HR_P_MOVED(struct random_crop),
};

static enum hr_err random_crop_infer(struct hr_infer *infer)
{
    const struct random_crop *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    if (p->padding.count == 3)
        return hr__infer_fail(infer, "padding", HR_ERR_ARGUMENT,
                              "padding has 1, 2 or 4 numbers, not 3");
    HR_TRY(hr__infer_fill(infer, &p->fill));
    hr__infer_moved_size(infer, hr__size_width(&p->size), hr__size_height(&p->size));
    return HR_OK;
}

/* Missing pixels are added on both sides, like torchvision. */
static void pad_needed(int32_t size, int32_t wanted, int32_t *before, int32_t *after)
{
    int32_t missing = wanted - (size + *before + *after);

    if (missing > 0) {
        *before += missing;
        *after += missing;
    }
}

static struct hr_sides
sides_for(const struct random_crop *p, int32_t width, int32_t height)
{
    struct hr_sides sides = hr__sides(&p->padding);

    if (p->pad_if_needed) {
        pad_needed(width, hr__size_width(&p->size), &sides.left, &sides.right);
        pad_needed(height, hr__size_height(&p->size), &sides.top, &sides.bottom);
    }
    return sides;
}

/* Draws nothing if there is no choice. */
static int32_t draw(struct hr_rng *rng, int32_t room)
{
    return room > 0 ? (int32_t)hr__rng_below(rng, (uint64_t)room + 1) : 0;
}

static enum hr_err random_crop_apply(struct hr_op_ctx *ctx)
{
    const struct random_crop *p = ctx->params;
    int32_t to_width = hr__size_width(&p->size), to_height = hr__size_height(&p->size);
    struct hr_sides sides;
    int32_t width, height, x, y;
    struct hr_move move;
    struct hr_rng rng;

    HR_TRY(hr__move_begin(ctx, &move));
    width = move.width;
    height = move.height;
    sides = sides_for(p, width, height);
    width += sides.left + sides.right;
    height += sides.top + sides.bottom;
    if (width < to_width || height < to_height)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "cannot crop %dx%d from an image of %dx%d; pad_if_needed would "
                        "frame it",
                        (int)to_width, (int)to_height, (int)width, (int)height);
    move.pad_mode = p->mode;
    hr__fill_levels(&p->fill, move.fill);
    move.mask_fill = (int32_t)p->mask_fill;
    hr__move_pad(&move, sides.left, sides.top, sides.right, sides.bottom);
    hr__op_rng(ctx, &rng);
    y = draw(&rng, height - to_height);
    x = draw(&rng, width - to_width);
    hr__move_crop(&move, x, y, to_width, to_height);
    return hr__move(ctx, &move);
}

/* A padded image may be made before it is cropped. */
static uint64_t random_crop_frames(const void *params, struct hr_field *field)
{
    int64_t width = hr__field_width(field)->size, height = hr__field_height(field)->size;
    struct hr_field framed = *field;
    struct hr_sides sides;

    if (width < 0 || height < 0)
        return 0;
    sides = sides_for(params, (int32_t)width, (int32_t)height);
    width += sides.left + sides.right;
    height += sides.top + sides.bottom;
    if (width == hr__field_width(field)->size && height == hr__field_height(field)->size)
        return 0;
    hr__infer_size(&framed, width, height);
    if (framed.dtype != HR_U8)
        framed.dtype = HR_F32;
    return hr__field_has_unknown_dims(&framed) ? 0 : (uint64_t)hr__field_bytes(&framed);
}

const struct hr_op hr_op_image_random_crop = {
    .name = "image.random_crop",
    .summary = "crop a window of fixed size at a random position",
    .doc = "Like torchvision's RandomCrop, with draws in the same order (top, then left; "
           "none if there is no choice).",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(random_crop_params, struct random_crop),
    HR_MOVE_STATE,
    .infer = random_crop_infer,
    .apply = random_crop_apply,
    .frames = random_crop_frames,
};
