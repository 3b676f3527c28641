/*
 * kind_boxes.c - boxes and points, in pixels of the image that they belong to: x runs
 * from 0 at its left edge to its width, y from 0 at its top edge to its height.
 */
#include <math.h>

#include "ops/kinds.h"

static bool is_table(const struct hr_field *field, int64_t columns)
{
    return field->dtype == HR_F32 && field->ndim == 2 &&
           (field->dims[1].size == columns || field->dims[1].size == HR_DIM_UNKNOWN);
}

static bool boxes_accepts(const struct hr_field *field)
{
    return is_table(field, 4);
}

static bool points_accepts(const struct hr_field *field)
{
    return is_table(field, 2);
}

/* One axis of a move: result = (at + shift) * scale, mirrored at `size`. */
struct axis {
    double shift, scale, size;
    bool flip;
};

static void axes_of(const struct hr_move *move, struct axis *ret_x, struct axis *ret_y)
{
    *ret_x = (struct axis){(double)move->left - move->x,
                           (double)move->to_width / move->crop_width, move->to_width,
                           move->flip_x};
    *ret_y = (struct axis){(double)move->top - move->y,
                           (double)move->to_height / move->crop_height, move->to_height,
                           move->flip_y};
}

static double moved(const struct axis *axis, float at)
{
    double to = ((double)at + axis->shift) * axis->scale;

    return axis->flip ? axis->size - to : to;
}

static float clipped(double at, double size)
{
    return (float)(at < 0 ? 0 : at > size ? size : at);
}

/* Both ends of a side, in order and within the image. */
static void move_side(const struct axis *axis, float *low, float *high)
{
    double a = moved(axis, *low), b = moved(axis, *high);

    *low = clipped(axis->flip ? b : a, axis->size);
    *high = clipped(axis->flip ? a : b, axis->size);
}

static enum hr_err read_rows(struct hr_op_ctx *ctx, size_t field, int64_t columns,
                             float **ret_numbers, int64_t *ret_count)
{
    struct hr_value *value = ctx->fields[field];
    void *numbers;

    if (value->kind != HR_VALUE_TENSOR || value->dtype != HR_F32 || value->ndim != 2 ||
        value->dims[1] != columns)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "the field is no float32 [n, %d]",
                        (int)columns);
    HR_TRY(
        hr__op_alloc(ctx, (size_t)hr__value_count(value) * sizeof(float) + 1, &numbers));
    hr__value_copy(value, numbers);
    *ret_numbers = numbers;
    *ret_count = value->dims[0];
    return HR_OK;
}

enum hr_err
hr__boxes_copy(struct hr_op_ctx *ctx, size_t field, float **ret_boxes, int64_t *ret_count)
{
    return read_rows(ctx, field, 4, ret_boxes, ret_count);
}

/* A copy of the rows in the arena, which takes the value's place. */
static enum hr_err
copy_rows(struct hr_op_ctx *ctx, size_t field, int64_t columns, float **ret_numbers)
{
    struct hr_value *value = ctx->fields[field];
    int64_t dims[2] = {0, columns};

    HR_TRY(read_rows(ctx, field, columns, ret_numbers, &dims[0]));
    hr__value_clear(value);
    hr__value_set_tensor(value, HR_F32, 2, dims, *ret_numbers, NULL);
    return HR_OK;
}

static enum hr_err
boxes_move(struct hr_op_ctx *ctx, size_t field, const struct hr_move *move)
{
    struct axis x, y;
    float *box;

    HR_TRY(copy_rows(ctx, field, 4, &box));
    axes_of(move, &x, &y);
    for (int64_t i = 0; i < ctx->fields[field]->dims[0]; i++, box += 4) {
        move_side(&x, &box[0], &box[2]);
        move_side(&y, &box[1], &box[3]);
    }
    return HR_OK;
}

static enum hr_err
points_move(struct hr_op_ctx *ctx, size_t field, const struct hr_move *move)
{
    struct axis x, y;
    float *point;

    HR_TRY(copy_rows(ctx, field, 2, &point));
    axes_of(move, &x, &y);
    for (int64_t i = 0; i < ctx->fields[field]->dims[0]; i++, point += 2) {
        point[0] = (float)moved(&x, point[0]);
        point[1] = (float)moved(&y, point[1]);
    }
    return HR_OK;
}

/* The pixel, of n, at the upper end of the one that a position is in. */
static int32_t pixel_at(double position, int32_t n)
{
    double at = ceil(position);

    return at > 0 ? at < n ? (int32_t)at : n - 1 : 0;
}

/* Elastic shifts have no formula for their inverse: near a pixel it is minus its shift.
 */
static void
unshifted(const struct hr_warp *warp, double x, double y, double *ret_x, double *ret_y)
{
    size_t at = (size_t)pixel_at(y, warp->height) * (size_t)warp->width +
                (size_t)pixel_at(x, warp->width);

    *ret_x = x - (double)warp->shift_x[at];
    *ret_y = y - (double)warp->shift_y[at];
}

/* Where a position of the image before lies in the result. */
static void
warped(const struct hr_warp *warp, double x, double y, double *ret_x, double *ret_y)
{
    double a = warp->m[0] - x * warp->p[0], b = warp->m[1] - x * warp->p[1];
    double c = warp->m[3] - y * warp->p[0], d = warp->m[4] - y * warp->p[1];
    double det = a * d - b * c, from_x = x - warp->m[2], from_y = y - warp->m[5];

    if (warp->shift_x != NULL) {
        unshifted(warp, x, y, ret_x, ret_y);
        return;
    }
    *ret_x = (d * from_x - b * from_y) / det;
    *ret_y = (a * from_y - c * from_x) / det;
}

/* Upright around the four warped corners, and within the image. */
static void warp_box(const struct hr_warp *warp, float box[4])
{
    double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;

    for (int corner = 0; corner < 4; corner++) {
        double x, y;

        warped(warp, box[corner % 2 * 2], box[corner / 2 * 2 + 1], &x, &y);
        low_x = fmin(low_x, x);
        low_y = fmin(low_y, y);
        high_x = fmax(high_x, x);
        high_y = fmax(high_y, y);
    }
    box[0] = clipped(low_x, warp->to_width);
    box[1] = clipped(low_y, warp->to_height);
    box[2] = clipped(high_x, warp->to_width);
    box[3] = clipped(high_y, warp->to_height);
}

static enum hr_err
boxes_warp(struct hr_op_ctx *ctx, size_t field, const struct hr_warp *warp)
{
    float *box;

    HR_TRY(copy_rows(ctx, field, 4, &box));
    for (int64_t i = 0; i < ctx->fields[field]->dims[0]; i++, box += 4)
        warp_box(warp, box);
    return HR_OK;
}

static enum hr_err
points_warp(struct hr_op_ctx *ctx, size_t field, const struct hr_warp *warp)
{
    float *point;

    HR_TRY(copy_rows(ctx, field, 2, &point));
    for (int64_t i = 0; i < ctx->fields[field]->dims[0]; i++, point += 2) {
        double x, y;

        warped(warp, point[0], point[1], &x, &y);
        point[0] = (float)x;
        point[1] = (float)y;
    }
    return HR_OK;
}

const struct hr_kind hr__kind_boxes = {
    .name = "boxes",
    .wants = "float32 [n, 4]",
    .meaning = HR_MEANING_BOXES,
    .meaning_last = HR_MEANING_BOXES,
    .accepts = boxes_accepts,
    .move = boxes_move,
    .warp = boxes_warp,
};

const struct hr_kind hr__kind_points = {
    .name = "points",
    .wants = "float32 [n, 2]",
    .meaning = HR_MEANING_POINTS,
    .meaning_last = HR_MEANING_POINTS,
    .accepts = points_accepts,
    .move = points_move,
    .warp = points_warp,
};
