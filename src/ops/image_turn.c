/*
 * image_turn.c - computes the matrix of an affine map by torchvision's formulas, and
 * warps.
 */
#include "ops/image_turn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernel/warp.h"
#include "ops/image_job.h"

const char *const hr__warp_interpolations[] = {"nearest", "bilinear", NULL};

enum hr_err hr__infer_interval(struct hr_infer *infer, const char *param,
                               const struct hr_floats *range)
{
    if (range->count == 1 && range->values[0] < 0)
        return hr__infer_fail(infer, param, HR_ERR_RANGE,
                              "%s must be a number >= 0, for both directions, or [least, "
                              "most]",
                              param);
    return hr__infer_order(infer, param, range);
}

void hr__interval(const struct hr_floats *range, double *ret_low, double *ret_high)
{
    *ret_low = range->count == 1 ? -range->values[0] : range->values[0];
    *ret_high = range->values[range->count - 1];
}

enum hr_err hr__infer_center(struct hr_infer *infer, const struct hr_floats *center)
{
    if (center->count == 1)
        return hr__infer_fail(infer, "center", HR_ERR_ARGUMENT,
                              "center has two numbers, [x, y]");
    return HR_OK;
}

const double *hr__center(const struct hr_floats *center)
{
    return center->count > 0 ? center->values : NULL;
}

/* Maps positions in the result to positions in the source, both relative to the centre:
 * the inverse of translate * rotate * shear * scale. */
static void inverse(const struct hr_turn *turn, double m[6])
{
    double unit = acos(-1.0) / 180, rot = turn->degrees * unit;
    double sx = turn->shear_x * unit, sy = turn->shear_y * unit;
    double a = cos(rot - sy) / cos(sy);
    double b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
    double c = sin(rot - sy) / cos(sy);
    double d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);

    m[0] = d / turn->scale;
    m[1] = -b / turn->scale;
    m[3] = -c / turn->scale;
    m[4] = a / turn->scale;
    m[2] = -m[0] * turn->shift_x - m[1] * turn->shift_y;
    m[5] = -m[3] * turn->shift_x - m[4] * turn->shift_y;
}

/* The smallest width or height that shows all of the rotated image; a ten-thousandth of a
 * pixel is tolerated, so that a right angle swaps the sides. */
static int32_t extent(double along_x, double along_y, int32_t width, int32_t height)
{
    double size = ceil(fabs(along_x) * width + fabs(along_y) * height - 1e-4);

    return size < 1 ? 1 : (int32_t)size;
}

enum hr_err hr__infer_turned(struct hr_infer *infer)
{
    HR_TRY(hr__infer_moved(infer));
    for (size_t i = 0; i < infer->field_count; i++)
        if (hr__field_has_pixels(infer->fields[i]))
            HR_TRY(hr__infer_pixel_dtype(infer, i));
    return HR_OK;
}

enum hr_err
hr__turn(struct hr_op_ctx *ctx, const struct hr_turn *turn, int filter, bool expand)
{
    struct hr_warp warp = {.filter = filter, .mask_fill = turn->mask_fill};
    double *m = warp.m, middle[2], to_middle[2];
    const double *from, *to;
    int32_t channels;

    assert(turn->center == NULL || !expand);
    HR_TRY(hr__image_size(ctx, 0, &warp.width, &warp.height, &channels));
    inverse(turn, m);
    warp.to_width = expand ? extent(m[0], m[3], warp.width, warp.height) : warp.width;
    warp.to_height = expand ? extent(m[1], m[4], warp.width, warp.height) : warp.height;
    middle[0] = warp.width / 2.0;
    middle[1] = warp.height / 2.0;
    to_middle[0] = warp.to_width / 2.0;
    to_middle[1] = warp.to_height / 2.0;
    from = turn->center != NULL ? turn->center : middle;
    to = turn->center != NULL ? turn->center : to_middle;
    m[2] += from[0] - m[0] * to[0] - m[1] * to[1];
    m[5] += from[1] - m[3] * to[0] - m[4] * to[1];
    memcpy(warp.fill, turn->fill, sizeof warp.fill);
    return hr__warp(ctx, &warp);
}

enum hr_err
hr__image_warp(struct hr_op_ctx *ctx, size_t field, const struct hr_warp *warp)
{
    enum hr_layout layout = hr__image_layout_of(ctx->fields[field]);
    struct hr_pixels in, out;
    struct hr_arena *arena = &ctx->thread->arena;
    enum hr_filter filter = (enum hr_filter)warp->filter;
    struct hr_value made;
    enum hr_err code;

    HR_TRY(hr__image_read(ctx, field, &in));
    HR_TRY(hr__image_make(ctx->thread, warp->to_width, warp->to_height, in.channels,
                          in.dtype, layout, &made, &out, ctx->error));
    if (warp->shift_x != NULL)
        code = hr__elastic_run(arena, &in, &out, warp->shift_x, warp->shift_y, filter,
                               warp->fill);
    else if (warp->p[0] == 0 && warp->p[1] == 0)
        code = hr__warp_run(arena, &in, &out, warp->m, filter, warp->fill);
    else
        code =
            hr__perspective_run(arena, &in, &out, warp->m, warp->p, filter, warp->fill);
    if (code != HR_OK)
        return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory to warp an image");
    hr__image_replace(ctx, field, &made);
    return HR_OK;
}
