/*
 * image.perspective - moves the corners of the image inwards at random, with a
 * probability.
 */
#include <math.h>
#include <string.h>

#include "ops/image_levels.h"
#include "ops/image_padding.h"
#include "ops/image_turn.h"

struct perspective {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    double distortion_scale, p;
    int interpolation;
    struct hr_floats fill;
    int64_t mask_fill;
};

static const struct hr_param perspective_params[] = {
    HR_P_FLOAT(struct perspective, distortion_scale, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "how far corners move at most, as a fraction of half a side"),
    HR_P_CHANCE(struct perspective, "probability that the image is changed"),
    HR_P_ENUM(struct perspective, interpolation, .fallback = "bilinear",
              .names = hr__warp_interpolations,
              .help = "how values between pixels are computed"),
    HR_P_FILL(struct perspective),
    HR_P_MASK_FILL(struct perspective),
    HR_P_MOVED(struct perspective),
};

static enum hr_err perspective_infer(struct hr_infer *infer)
{
    const struct perspective *p = infer->params;

    HR_TRY(hr__infer_turned(infer));
    return hr__infer_fill(infer, &p->fill);
}

/* Corners in the order of torchvision: top left, top right, bottom right, bottom left. */
struct corners {
    double x[4], y[4];
};

static struct corners
draw(const struct perspective *p, struct hr_rng *rng, int32_t width, int32_t height)
{
    uint64_t most_x = (uint64_t)(p->distortion_scale * (width / 2)) + 1;
    uint64_t most_y = (uint64_t)(p->distortion_scale * (height / 2)) + 1;
    struct corners to;

    for (int i = 0; i < 4; i++) {
        bool right = i == 1 || i == 2, bottom = i >= 2;
        double x = (double)hr__rng_below(rng, most_x);
        double y = (double)hr__rng_below(rng, most_y);

        to.x[i] = right ? (double)width - (double)most_x + x : x;
        to.y[i] = bottom ? (double)height - (double)most_y + y : y;
    }
    return to;
}

/* The largest of the rows from `at` on in column `at` comes first. */
static void choose_row(double rows[8][9], int at)
{
    double row[9];
    int best = at;

    for (int i = at + 1; i < 8; i++)
        if (fabs(rows[i][at]) > fabs(rows[best][at]))
            best = i;
    memcpy(row, rows[at], sizeof row);
    memcpy(rows[at], rows[best], sizeof row);
    memcpy(rows[best], row, sizeof row);
}

/* Solves eight equations, each with its right side last; false if they have no single
 * solution. */
static bool solve(double rows[8][9], double ret_found[8])
{
    for (int at = 0; at < 8; at++) {
        choose_row(rows, at);
        if (fabs(rows[at][at]) < 1e-9)
            return false;
        for (int i = at + 1; i < 8; i++) {
            double factor = rows[i][at] / rows[at][at];

            for (int k = at; k < 9; k++)
                rows[i][k] -= factor * rows[at][k];
        }
    }
    for (int at = 7; at >= 0; at--) {
        double sum = rows[at][8];

        for (int k = at + 1; k < 8; k++)
            sum -= rows[at][k] * ret_found[k];
        ret_found[at] = sum / rows[at][at];
    }
    return true;
}

/* The map from the result to the source that takes corners `to` to those of the image. */
static bool map_corners(const struct corners *to, struct hr_warp *warp)
{
    double right = warp->width - 1, bottom = warp->height - 1;
    struct corners from = {
        {0, right, right,  0     },
        {0, 0,     bottom, bottom}
    };
    double rows[8][9] = {0}, found[8];

    for (int i = 0; i < 4; i++) {
        double x = to->x[i], y = to->y[i];
        const double across[9] = {x,        y, 1, 0, 0, 0, -from.x[i] * x, -from.x[i] * y,
                                  from.x[i]};
        const double down[9] = {0,        0, 0, x, y, 1, -from.y[i] * x, -from.y[i] * y,
                                from.y[i]};

        memcpy(rows[2 * i], across, sizeof across);
        memcpy(rows[2 * i + 1], down, sizeof down);
    }
    if (!solve(rows, found))
        return false;
    memcpy(warp->m, found, sizeof warp->m);
    memcpy(warp->p, found + 6, sizeof warp->p);
    return true;
}

static enum hr_err perspective_apply(struct hr_op_ctx *ctx)
{
    const struct perspective *p = ctx->params;
    struct hr_warp warp = {.filter = p->interpolation,
                           .mask_fill = (int32_t)p->mask_fill};
    struct corners to;
    int32_t channels;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    HR_TRY(hr__image_size(ctx, 0, &warp.width, &warp.height, &channels));
    warp.to_width = warp.width;
    warp.to_height = warp.height;
    to = draw(p, &rng, warp.width, warp.height);
    if (!map_corners(&to, &warp))
        return HR_OK;
    hr__fill_levels(&p->fill, warp.fill);
    return hr__warp(ctx, &warp);
}

const struct hr_op hr_op_image_perspective = {
    .name = "image.perspective",
    .summary = "see the image from another side, with a probability",
    .doc =
        "Like torchvision's RandomPerspective: each corner moves inwards by up to "
        "`distortion_scale` of half a side. An image whose corners would lie on one line "
        "(of one pixel's width, or with a scale near 1) is unchanged. Boxes become "
        "upright ones around their four moved corners.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_WARPS,
    HR_PARAMS(perspective_params, struct perspective),
    HR_MOVE_STATE,
    .infer = perspective_infer,
    .apply = perspective_apply,
};
