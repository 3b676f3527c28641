/*
 * ops/box_window.h - windows of an image and boxes on it.
 */
#ifndef HR_OPS_BOX_WINDOW_H
#define HR_OPS_BOX_WINDOW_H

#include "op/op.h"

struct hr_box_window {
    int32_t x, y, width, height;
};

/* infer of an op that crops an image, and what moves with it, to a window drawn for its
 * boxes. */
HR_CHECK enum hr_err
hr__box_window_infer(struct hr_infer *infer, const struct hr_floats *scale,
                     const struct hr_floats *ratio);
/* hr_op.largest: the window is within the image. */
void hr__box_window_largest(const void *params, bool one, int64_t *height,
                            int64_t *width);

static inline double hr__span_shared(double a, double a_end, double b, double b_end)
{
    double begin = a > b ? a : b, end = a_end < b_end ? a_end : b_end;

    return end > begin ? end - begin : 0;
}

/* The area that a window and a box (x1, y1, x2, y2) share. */
static inline double hr__window_shared(const struct hr_box_window *w, const float box[4])
{
    return hr__span_shared(box[0], box[2], w->x, w->x + w->width) *
           hr__span_shared(box[1], box[3], w->y, w->y + w->height);
}

/* 0 or less for a box of no area. */
static inline double hr__box_area(const float box[4])
{
    double width = (double)box[2] - box[0], height = (double)box[3] - box[1];

    return width > 0 && height > 0 ? width * height : 0;
}

#endif
