/*
 * image.cover_crop - crops a random window that covers part of a box, as TensorFlow's
 * sample_distorted_bounding_box does.
 */
#include <math.h>
#include <string.h>

#include "ops/box_window.h"
#include "ops/move.h"

struct cover_crop {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    double cover, keep;
    struct hr_floats scale, ratio;
    int64_t trials;
};

static const struct hr_param cover_crop_params[] = {
    HR_P_FLOAT(struct cover_crop, cover, .fallback = "0.1", HR_RANGE(0, 1),
               .help = "least part of a box's area that the window covers, for one box "
                       "at least"),
    HR_P_FLOATS(struct cover_crop, ratio, .fallback = "[0.75, 1.33]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1000), .min_open = true,
                .help = "smallest and largest width / height of the window"),
    HR_P_FLOATS(struct cover_crop, scale, .fallback = "[0.05, 1]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1), .min_open = true,
                .help = "smallest and largest area of the window, in areas of the image"),
    HR_P_INT(struct cover_crop, trials, .fallback = "100", HR_RANGE(1, 100000),
             .help = "windows to try before the image is left as it is"),
    HR_P_FLOAT(struct cover_crop, keep, .fallback = "0", HR_RANGE(0, 1),
               .help = "boxes of which the window covers this part or less become rows "
                       "of zeros"),
    HR_P_MOVED(struct cover_crop),
};

static enum hr_err cover_crop_infer(struct hr_infer *infer)
{
    const struct cover_crop *p = infer->params;

    return hr__box_window_infer(infer, &p->scale, &p->ratio);
}

/* The largest height whose width is within the image. */
static double height_within(double height, double aspect, int32_t width)
{
    if (rint(height * aspect) > width) {
        height = floor((width + 0.5 - 1e-7) / aspect);
        if (rint(height * aspect) > width)
            height--;
    }
    return height;
}

/* Draws a window as TensorFlow does; false if the image has none of this aspect. */
static bool draw_window(const struct cover_crop *p, const struct hr_move *move,
                        struct hr_rng *rng, struct hr_box_window *ret)
{
    double all = (double)move->width * move->height;
    double least = p->scale.values[0] * all, most = p->scale.values[1] * all;
    double aspect = hr__rng_uniform(rng, p->ratio.values[0], p->ratio.values[1]);
    double low = rint(sqrt(least / aspect)), high = rint(sqrt(most / aspect));
    double height, width;

    high = fmin(height_within(high, aspect, move->width), move->height);
    height = fmin(low, high);
    if (height < high)
        height += (double)hr__rng_below(rng, (uint64_t)(high - height) + 1);
    width = rint(height * aspect);
    if (width * height < least)
        width = rint(++height * aspect);
    if (width * height > most)
        width = rint(--height * aspect);
    if (width * height < least || width * height > most || width > move->width ||
        height > move->height || width < 1 || height < 1)
        return false;
    ret->width = (int32_t)width;
    ret->height = (int32_t)height;
    ret->y = (int32_t)hr__rng_below(rng, (uint64_t)(move->height - ret->height) + 1);
    ret->x = (int32_t)hr__rng_below(rng, (uint64_t)(move->width - ret->width) + 1);
    return true;
}

/* The part of a box's area that the window covers; 0 for a box of no area. */
static double covered(const struct hr_box_window *w, const float box[4])
{
    double area = hr__box_area(box);

    return area > 0 ? hr__window_shared(w, box) / area : 0;
}

static bool
fits(const struct hr_box_window *w, const float *boxes, int64_t count, double min)
{
    for (int64_t i = 0; i < count; i++)
        if (hr__box_area(boxes + 4 * i) > 0 && covered(w, boxes + 4 * i) >= min)
            return true;
    return false;
}

static enum hr_err cover_crop_apply(struct hr_op_ctx *ctx)
{
    const struct cover_crop *p = ctx->params;
    struct hr_box_window window = {0};
    float *boxes, *moved;
    struct hr_move move;
    struct hr_rng rng;
    bool found = false;
    int64_t count;
    size_t field;

    HR_TRY(hr__move_begin(ctx, &move));
    HR_TRY(hr__move_boxes(ctx, &field, &boxes, &count));
    hr__op_rng(ctx, &rng);
    for (int64_t trial = 0; trial < p->trials && !found; trial++)
        found = draw_window(p, &move, &rng, &window) &&
                (count == 0 || fits(&window, boxes, count, p->cover));
    if (!found)
        return HR_OK;
    hr__move_crop(&move, window.x, window.y, window.width, window.height);
    HR_TRY(hr__move(ctx, &move));
    moved = ctx->fields[field]->data;
    for (int64_t i = 0; i < count; i++)
        if (covered(&window, boxes + 4 * i) <= p->keep)
            memset(moved + 4 * i, 0, 4 * sizeof(float));
    return HR_OK;
}

const struct hr_op hr_op_image_cover_crop = {
    .name = "image.cover_crop",
    .summary = "crop a random window that covers part of a box",
    .doc =
        "Like TensorFlow's sample_distorted_bounding_box: draws aspect, height and place "
        "of a window until it covers enough of one box. `field` lists the image and its "
        "boxes: `field: [image, boxes]`. Boxes that are not kept become rows of zeros, "
        "so that rows still agree with labels; boxes.sanitize drops both. Any window "
        "will do for an image without boxes.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GEOMETRIC | HR_TRAIT_CROPS | HR_TRAIT_DEFERS |
              HR_TRAIT_SHRINKS,
    HR_PARAMS(cover_crop_params, struct cover_crop),
    HR_MOVE_STATE,
    .infer = cover_crop_infer,
    .largest = hr__box_window_largest,
    .apply = cover_crop_apply,
};
