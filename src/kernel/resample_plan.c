/*
 * kernel/resample_plan.c - the weights of a resize.
 *
 * Window and weights of each output are Pillow's: centre = box + (i + .5) * scale,
 * support = radius * max(1, scale), taps cut at the ends of the array, sum made one. The
 * fixed-point form rounds the running sum instead of each weight, so that it sums to
 * exactly one and flat areas stay flat, and takes as many fraction bits as 16-bit weights
 * allow. Positions are evaluated in double, always by this code, so a plan does not
 * depend on the instruction set. Nothing else is cached: a plan is cheaper than looking
 * one up.
 */
#include "kernel/resample_plan.h"
#include "core/error.h"

#include <math.h>

struct window {
    double scale, support, stretch; /* stretch: source elements per unit of the filter */
};

static double filter_radius(enum hr_filter filter)
{
    switch (filter) {
    case HR_FILTER_BOX:
        return 0.5;
    case HR_FILTER_BICUBIC:
        return 2;
    case HR_FILTER_LANCZOS:
        return 3;
    default:
        return 1;
    }
}

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x)
{
    return x == 0 ? 1 : sin(x * M_PI) / (x * M_PI);
}

static double filter_value(const struct hr_axis_spec *spec, double x)
{
    switch (spec->filter) {
    case HR_FILTER_BOX:
        return x > -0.5 && x <= 0.5 ? 1 : 0;
    case HR_FILTER_BICUBIC:
        return cubic(x, spec->antialias ? -0.5 : -0.75);
    case HR_FILTER_LANCZOS:
        return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
    default:
        return fabs(x) < 1 ? 1 - fabs(x) : 0;
    }
}

/* Raw weights of `length` taps, the first of which is at `at` filter units. */
static void fill_weights(const struct hr_axis_spec *spec, double at, double step,
                         int32_t length, float *weight)
{
    if (spec->filter == HR_FILTER_BILINEAR)
        for (int32_t k = 0; k < length; k++) {
            double v = 1 - fabs(at + k * step);

            weight[k] = (float)(v > 0 ? v : 0);
        }
    else
        for (int32_t k = 0; k < length; k++)
            weight[k] = (float)filter_value(spec, at + k * step);
}

/* Weights to sum one; the largest magnitude. Empty windows take their first element. */
static float normalise(float *weight, int32_t length)
{
    double sum = 0;
    float inverse, top = 0;

    for (int32_t k = 0; k < length; k++)
        sum += weight[k];
    if (!(fabs(sum) > 1e-6)) {
        for (int32_t k = 0; k < length; k++)
            weight[k] = 0;
        weight[length / 2] = 1;
        return 1;
    }
    inverse = (float)(1 / sum);
    for (int32_t k = 0; k < length; k++) {
        weight[k] *= inverse;
        top = fabsf(weight[k]) > top ? fabsf(weight[k]) : top;
    }
    return top;
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Windows and f32 weights of all outputs; returns the largest weight. */
static float make_fine(const struct hr_axis_spec *spec, const struct window *window,
                       struct hr_axis *axis)
{
    double step = 1 / window->stretch;
    float top = 0;

    for (int32_t i = 0; i < spec->count; i++) {
        int32_t o = spec->flip ? spec->count - 1 - i : i;
        double centre = clamp(spec->box + (i + 0.5) * window->scale, 0, spec->in);
        int32_t from = (int32_t)clamp(centre - window->support + 0.5, 0, spec->in - 1);
        int32_t to = (int32_t)clamp(centre + window->support + 0.5, from + 1, spec->in);
        float *weight = axis->fine + (size_t)o * (size_t)axis->stride, largest;

        fill_weights(spec, (from - centre + 0.5) * step, step, to - from, weight);
        for (int32_t k = to - from; k < axis->stride; k++)
            weight[k] = 0;
        largest = normalise(weight, to - from);
        top = largest > top ? largest : top;
        axis->start[o] = from;
        axis->length[o] = to - from;
        axis->first = from < axis->first ? from : axis->first;
        axis->last = to > axis->last ? to : axis->last;
    }
    return top;
}

static void make_coarse(struct hr_axis *axis, float top, int bits_max)
{
    const double round = 0x1.8p52; /* adding it leaves whole numbers */
    size_t at = 0;
    double unit;

    axis->bits = 14; /* weights below 2 */
    while (axis->bits < bits_max && top * (float)(1 << (axis->bits + 1)) < 32767.0f)
        axis->bits++;
    unit = 1 << axis->bits;
    for (int32_t i = 0; i < axis->count; i++, at += (size_t)axis->stride) {
        double sum = 0;
        int32_t before = 0;
        int32_t last = axis->length[i] - 1;

        for (int32_t k = 0; k < axis->stride; k++) {
            int32_t whole;

            sum += (double)axis->fine[at + (size_t)k];
            whole = k >= last ? 1 << axis->bits : (int32_t)((sum * unit + round) - round);
            axis->coarse[at + (size_t)k] = (int16_t)(whole - before);
            before = whole;
        }
    }
}

static enum hr_err
make_pick(struct hr_arena *arena, const struct hr_axis_spec *spec, struct hr_axis *axis)
{
    double scale = spec->extent / spec->count;

    axis->pick = hr__arena_alloc(arena, (size_t)spec->count * sizeof *axis->pick);
    if (axis->pick == NULL)
        return HR_ERR_MEMORY;
    for (int32_t i = 0; i < spec->count; i++) {
        int32_t o = spec->flip ? spec->count - 1 - i : i;

        axis->pick[o] = (int32_t)clamp(spec->box + (i + 0.5) * scale, 0, spec->in - 1);
    }
    return HR_OK;
}

enum hr_err hr__axis_make(struct hr_arena *arena, const struct hr_axis_spec *spec,
                          struct hr_axis *ret_axis)
{
    struct hr_axis axis = {.count = spec->count, .first = spec->in};
    struct window window = {.scale = spec->extent / spec->count};
    size_t count = (size_t)spec->count, weights;
    double taps;

    if (spec->filter == HR_FILTER_NEAREST) {
        HR_TRY(make_pick(arena, spec, &axis));
        *ret_axis = axis;
        return HR_OK;
    }
    window.stretch = spec->antialias && window.scale > 1 ? window.scale : 1;
    window.support = filter_radius(spec->filter) * window.stretch;
    taps = clamp(ceil(window.support) * 2 + 1, 1, spec->in);
    axis.stride = ((int32_t)taps + 1) & ~1;
    weights = count * (size_t)axis.stride;
    axis.start = hr__arena_alloc(arena, count * sizeof *axis.start);
    axis.length = hr__arena_alloc(arena, count * sizeof *axis.length);
    axis.fine = hr__arena_alloc(arena, weights * sizeof *axis.fine);
    axis.coarse = hr__arena_alloc(arena, weights * sizeof *axis.coarse);
    if (axis.start == NULL || axis.length == NULL || axis.fine == NULL ||
        axis.coarse == NULL)
        return HR_ERR_MEMORY;
    make_coarse(&axis, make_fine(spec, &window, &axis), spec->bits_max);
    *ret_axis = axis;
    return HR_OK;
}

static bool spec_is_sound(const struct hr_resample *spec)
{
    return spec->in_width > 0 && spec->in_height > 0 && spec->out_width > 0 &&
           spec->out_height > 0 && isfinite(spec->box_x) && isfinite(spec->box_y) &&
           isfinite(spec->box_width) && isfinite(spec->box_height) &&
           spec->box_width > 0 && spec->box_height > 0;
}

enum hr_err hr__resample_plan(struct hr_arena *arena, const struct hr_resample *spec,
                              struct hr_resample_plan **ret_plan)
{
    struct hr_axis_spec axis = {
        .filter = spec->filter, .antialias = spec->antialias, .bits_max = 15};
    bool negative =
        spec->filter == HR_FILTER_BICUBIC || spec->filter == HR_FILTER_LANCZOS;
    struct hr_resample_plan *plan;
    size_t packed;

    if (!spec_is_sound(spec))
        return HR_ERR_ARGUMENT;
    plan = hr__arena_zalloc(arena, sizeof *plan);
    if (plan == NULL)
        return HR_ERR_MEMORY;
    plan->rows = hr__rows();
    plan->in_width = spec->in_width;
    plan->in_height = spec->in_height;
    plan->nearest = spec->filter == HR_FILTER_NEAREST;
    plan->carry = negative ? 6 : 7; /* a negative lobe needs room beyond 0..255 */
    axis.in = spec->in_width;
    axis.count = spec->out_width;
    axis.box = spec->box_x;
    axis.extent = spec->box_width;
    axis.flip = spec->flip_x;
    HR_TRY(hr__axis_make(arena, &axis, &plan->x));
    axis.in = spec->in_height;
    axis.count = spec->out_height;
    axis.box = spec->box_y;
    axis.extent = spec->box_height;
    axis.flip = spec->flip_y;
    axis.bits_max = 20;
    HR_TRY(hr__axis_make(arena, &axis, &plan->y));
    packed = plan->nearest ? 0 : plan->rows->pack_bytes(&plan->x);
    if (packed > 0) {
        plan->x.packed = hr__arena_alloc(arena, packed);
        if (plan->x.packed == NULL)
            return HR_ERR_MEMORY;
        plan->rows->pack(&plan->x);
    }
    *ret_plan = plan;
    return HR_OK;
}
