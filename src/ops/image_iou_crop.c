/*
 * image.iou_crop - crops a random window that overlaps a box well enough, as SSD does.
 */
#include <string.h>

#include "ops/box_window.h"
#include "ops/move.h"

struct iou_crop {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_floats scale, ratio, overlaps;
    int64_t trials;
};

static const struct hr_param iou_crop_params[] = {
    HR_P_FLOATS(struct iou_crop, scale, .fallback = "[0.3, 1]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1), .min_open = true,
                .help = "smallest and largest side of the window, in sides of the image"),
    HR_P_FLOATS(struct iou_crop, ratio, .fallback = "[0.5, 2]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1000), .min_open = true,
                .help = "smallest and largest width / height of the window"),
    HR_P_FLOATS(struct iou_crop, overlaps, .fallback = "[0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]",
                HR_RANGE(0, 1000), .items_min = 1, .items_max = HR_LIST_MAX,
                .help = "least overlap of the window with a box (intersection over "
                        "union), of which one is drawn; 1 or more leaves the image as "
                        "it is"),
    HR_P_INT(struct iou_crop, trials, .fallback = "40", HR_RANGE(1, 100000),
             .help = "windows to try before another overlap is drawn"),
    HR_P_MOVED(struct iou_crop),
};

static enum hr_err iou_crop_infer(struct hr_infer *infer)
{
    const struct iou_crop *p = infer->params;

    return hr__box_window_infer(infer, &p->scale, &p->ratio);
}

/* Draws a window in torchvision's order; false if its aspect or size is not allowed. */
static bool draw_window(const struct iou_crop *p, const struct hr_move *move,
                        struct hr_rng *rng, struct hr_box_window *ret)
{
    double low = p->scale.values[0], high = p->scale.values[1], aspect;

    ret->width = (int32_t)(move->width * hr__rng_uniform(rng, low, high));
    ret->height = (int32_t)(move->height * hr__rng_uniform(rng, low, high));
    if (ret->width < 1 || ret->height < 1)
        return false;
    aspect = (double)ret->width / ret->height;
    if (aspect < p->ratio.values[0] || aspect > p->ratio.values[1])
        return false;
    ret->x = (int32_t)((move->width - ret->width) * hr__rng_double(rng));
    ret->y = (int32_t)((move->height - ret->height) * hr__rng_double(rng));
    return true;
}

static bool has_centre(const struct hr_box_window *w, const float box[4])
{
    double x = ((double)box[0] + box[2]) / 2, y = ((double)box[1] + box[3]) / 2;

    return x > w->x && x < w->x + w->width && y > w->y && y < w->y + w->height;
}

static double overlap(const struct hr_box_window *w, const float box[4])
{
    double both = hr__window_shared(w, box);
    double all = (double)w->width * w->height + hr__box_area(box) - both;

    return all > 0 ? both / all : 0;
}

/* Whether a box with its centre in the window overlaps it well enough. */
static bool
fits(const struct hr_box_window *w, const float *boxes, int64_t count, double overlap_min)
{
    for (int64_t i = 0; i < count; i++)
        if (has_centre(w, boxes + 4 * i) && overlap(w, boxes + 4 * i) >= overlap_min)
            return true;
    return false;
}

/* Overlaps that are drawn before the image is left as it is, so that a record without a
 * window that fits ends. */
#define ROUNDS 50

static bool
choose(const struct iou_crop *p, const struct hr_move *move, const float *boxes,
       int64_t count, struct hr_rng *rng, struct hr_box_window *ret)
{
    for (int round = 0; round < ROUNDS && count > 0; round++) {
        double least =
            p->overlaps.values[hr__rng_below(rng, (uint64_t)p->overlaps.count)];

        if (least >= 1)
            return false;
        for (int64_t trial = 0; trial < p->trials; trial++)
            if (draw_window(p, move, rng, ret) && fits(ret, boxes, count, least))
                return true;
    }
    return false;
}

static enum hr_err iou_crop_apply(struct hr_op_ctx *ctx)
{
    struct hr_box_window window;
    struct hr_move move;
    struct hr_rng rng;
    float *boxes, *moved;
    int64_t count;
    size_t field;

    HR_TRY(hr__move_begin(ctx, &move));
    HR_TRY(hr__move_boxes(ctx, &field, &boxes, &count));
    hr__op_rng(ctx, &rng);
    if (!choose(ctx->params, &move, boxes, count, &rng, &window))
        return HR_OK;
    hr__move_crop(&move, window.x, window.y, window.width, window.height);
    HR_TRY(hr__move(ctx, &move));
    moved = ctx->fields[field]->data;
    for (int64_t i = 0; i < count; i++)
        if (!has_centre(&window, boxes + 4 * i))
            memset(moved + 4 * i, 0, 4 * sizeof(float));
    return HR_OK;
}

const struct hr_op hr_op_image_iou_crop = {
    .name = "image.iou_crop",
    .summary = "crop a random window that overlaps a box well enough",
    .doc =
        "Like torchvision's RandomIoUCrop: draws the least overlap, then windows until "
        "the centre of a box with that overlap lies inside. `field` lists the image and "
        "its boxes: `field: [image, boxes]`. Boxes whose centre is outside become rows "
        "of zeros, so that rows still agree with labels; boxes.sanitize drops both. An "
        "image without boxes stays as it is, and so does one for which 50 overlaps gave "
        "no window, where torchvision tries for ever.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GEOMETRIC | HR_TRAIT_CROPS | HR_TRAIT_DEFERS |
              HR_TRAIT_SHRINKS,
    HR_PARAMS(iou_crop_params, struct iou_crop),
    HR_MOVE_STATE,
    .infer = iou_crop_infer,
    .largest = hr__box_window_largest,
    .apply = iou_crop_apply,
};
