/*
 * kernel/resample_plan.c - computes the weights of a resize.
 *
 * The window and weights of each output are Pillow's: centre = box + (i + .5) * scale,
 * support = radius * max(1, scale), taps clipped to the array, weights normalised. The
 * fixed-point version rounds the running sum rather than each weight, so that the weights
 * sum to exactly one and flat areas stay flat, and uses as many fraction bits as 16-bit
 * weights allow. Positions are always computed here, in double, so a plan does not depend
 * on the instruction set. Everything is computed as for the full result, so that a window
 * of it has the same weights: the number of fraction bits depends on all of them, hence
 * the weights around a window are computed too, and not kept. Plans are not cached:
 * making one is cheaper than a look-up.
 */
#include "kernel/resample_plan.h"
#include "core/error.h"
#include "kernel/half.h"

#include <math.h>

#define BLOCK 32 /* outputs per block, so that inner loops run over outputs */

struct window {
    double scale, support, stretch; /* stretch: source elements per unit of the filter */
};

/* The windows of a block of outputs. */
struct block {
    int32_t count;
    int32_t start[BLOCK], length[BLOCK];
    double centre[BLOCK];
    float at[BLOCK]; /* position of the first tap in filter units */
    float factor[BLOCK];
};

static double stretch_of(bool antialias, double scale)
{
    return antialias && scale > 1 ? scale : 1;
}

double hr__resample_reach(enum hr_filter filter, bool antialias, double scale)
{
    static const double radius[] = {[HR_FILTER_NEAREST] = 0,
                                    [HR_FILTER_BILINEAR] = 1,
                                    [HR_FILTER_BICUBIC] = 2,
                                    [HR_FILTER_BOX] = 0.5,
                                    [HR_FILTER_LANCZOS] = 3};

    return radius[filter] * stretch_of(antialias, scale);
}

static inline float triangle(float x)
{
    float v = 1 - fabsf(x);

    return v > 0 ? v : 0;
}

static inline float cubic(float x, float a)
{
    float d = fabsf(x), near = ((a + 2) * d - (a + 3)) * d * d + 1;
    float far = (((d - 5) * d + 8) * d - 4) * a;

    far = d < 2 ? far : 0;
    return d < 1 ? near : far;
}

static inline float box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0f : 0.0f;
}

static float lanczos(double x)
{
    double a = x * M_PI;

    if (x == 0)
        return 1;
    return fabs(x) < 3 ? (float)(sin(a) / a * sin(a / 3) / (a / 3)) : 0;
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* The output of the full result that is number `at` of the window as it is stored. */
static int32_t full_index(const struct hr_axis_spec *spec, int32_t at)
{
    return spec->at + (spec->flip ? spec->count - 1 - at : at);
}

static void find_windows(const struct hr_axis_spec *spec, const struct window *window,
                         int32_t first, struct block *block)
{
    double step = 1 / window->stretch;

    for (int32_t j = 0; j < BLOCK; j++) {
        int32_t i = full_index(spec, first + j);
        double centre = clamp(spec->box + (i + 0.5) * window->scale, 0, spec->in);
        int32_t from = (int32_t)clamp(centre - window->support + 0.5, 0, spec->in - 1);
        int32_t to = (int32_t)clamp(centre + window->support + 0.5, from + 1, spec->in);

        block->start[j] = from;
        block->length[j] = to - from;
        block->centre[j] = centre;
        block->at[j] = (float)((from - centre + 0.5) * step);
    }
}

/* One tap of all outputs in a block, zero beyond their lengths. f32 suffices for the
 * smooth filters, as positions are within a few units of the centre; a box has edges,
 * which must fall where Pillow's do. */
static void fill_tap(const struct hr_axis_spec *spec, struct block *block, int32_t k,
                     double step, float *tap)
{
    float a = spec->antialias ? -0.5f : -0.75f, shift = (float)(k * step);

    if (spec->filter == HR_FILTER_BILINEAR)
        for (int32_t j = 0; j < BLOCK; j++)
            tap[j] = triangle(block->at[j] + shift);
    else if (spec->filter == HR_FILTER_BICUBIC)
        for (int32_t j = 0; j < BLOCK; j++)
            tap[j] = cubic(block->at[j] + shift, a);
    else
        for (int32_t j = 0; j < BLOCK; j++) {
            double x = (k + block->start[j] - block->centre[j] + 0.5) * step;

            tap[j] = spec->filter == HR_FILTER_BOX ? box(x) : lanczos(x);
        }
    for (int32_t j = 0; j < BLOCK; j++) {
        tap[j] = k < block->length[j] ? tap[j] : 0;
        block->factor[j] += tap[j];
    }
}

/* Without antialias, taps beyond the ends repeat the border element, as in torchvision's
 * bicubic. For a triangle, clipping and normalising has the same effect. */
static void repeat_border(const struct hr_axis_spec *spec, const struct window *window,
                          struct block *block, float *taps)
{
    if (spec->antialias || spec->filter != HR_FILTER_BICUBIC)
        return;
    for (int32_t j = 0; j < block->count; j++) {
        double centre = block->centre[j];
        int32_t from = (int32_t)floor(centre - window->support + 0.5);
        int32_t to = (int32_t)floor(centre + window->support + 0.5);
        int32_t end = block->start[j] + block->length[j];

        for (int32_t at = from; at < to; at++) {
            float weight = cubic((float)(at - centre + 0.5), -0.75f);
            int32_t tap = at < block->start[j] ? 0 : block->length[j] - 1;

            if (at >= block->start[j] && at < end)
                continue;
            taps[(size_t)tap * BLOCK + (size_t)j] += weight;
            block->factor[j] += weight;
        }
    }
}

/* Factors that normalise each output's weights. An output whose weights are all zero
 * takes the middle element of its window. */
static void find_factors(struct block *block, float *taps)
{
    for (int32_t j = 0; j < BLOCK; j++) {
        if (!(fabsf(block->factor[j]) > 1e-6f)) {
            taps[(size_t)block->length[j] / 2 * BLOCK + (size_t)j] = 1;
            block->factor[j] = 1;
        }
        block->factor[j] = 1 / block->factor[j];
    }
}

static void keep_block(struct hr_axis *axis, const struct block *block, int32_t first,
                       const float *taps)
{
    size_t stride = (size_t)axis->stride;
    float *fine = axis->fine + (size_t)first * stride;

    for (size_t k = 0; k < stride; k++, taps += BLOCK)
        for (int32_t j = 0; j < block->count; j++)
            fine[(size_t)j * stride + k] = taps[j] * block->factor[j];
    for (int32_t j = 0; j < block->count; j++) {
        int32_t from = block->start[j], to = from + block->length[j];

        axis->start[first + j] = from;
        axis->length[first + j] = block->length[j];
        axis->first = from < axis->first ? from : axis->first;
        axis->last = to > axis->last ? to : axis->last;
    }
}

/* Computes windows and f32 weights of outputs [first, last), which are kept unless `axis`
 * is NULL; returns an upper bound of the weights: before normalisation no filter exceeds
 * 1. `taps` is scratch of stride x BLOCK. */
static float
make_fine(const struct hr_axis_spec *spec, const struct window *window, int32_t first,
          int32_t last, int32_t stride, float *taps, struct hr_axis *axis)
{
    double step = 1 / window->stretch;
    float top = 0;

    for (; first < last; first += BLOCK) {
        struct block block = {.count = last - first};

        block.count = block.count < BLOCK ? block.count : BLOCK;
        find_windows(spec, window, first, &block);
        for (int32_t k = 0; k < stride; k++)
            fill_tap(spec, &block, k, step, taps + (size_t)k * BLOCK);
        repeat_border(spec, window, &block, taps);
        find_factors(&block, taps);
        if (axis != NULL)
            keep_block(axis, &block, first, taps);
        for (int32_t j = 0; j < block.count; j++)
            top = fabsf(block.factor[j]) > top ? fabsf(block.factor[j]) : top;
    }
    return top;
}

/* The bound of all weights of the full result; those of the window are kept. */
static float make_all_fine(const struct hr_axis_spec *spec, const struct window *window,
                           struct hr_axis *axis, float *taps)
{
    int32_t before = spec->at, after = spec->full - spec->at - spec->count;
    int32_t low = spec->flip ? -after : -before;
    int32_t high = spec->count + (spec->flip ? before : after);
    int32_t stride = axis->stride;
    float top = make_fine(spec, window, 0, spec->count, stride, taps, axis);

    top = fmaxf(top, make_fine(spec, window, low, 0, stride, taps, NULL));
    return fmaxf(top, make_fine(spec, window, spec->count, high, stride, taps, NULL));
}

/* From places in the source to places in the pixels that are given. */
static void move_to_part(struct hr_axis *axis, int32_t origin)
{
    axis->first -= origin;
    axis->last -= origin;
    for (int32_t i = 0; i < axis->count && origin != 0; i++)
        axis->start[i] -= origin;
}

/* Rounds running sums rather than weights, so that errors do not accumulate. */
static void round_block(struct hr_axis *axis, int32_t first, int32_t count)
{
    const float round = 0x1.8p23f; /* adding it leaves the integer in the low bits */
    const uint32_t nought = hr__f32_bits(round);
    float sum[BLOCK] = {0}, unit = (float)(1 << axis->bits);
    uint32_t before[BLOCK];
    size_t stride = (size_t)axis->stride;
    const float *fine = axis->fine + (size_t)first * stride;
    int16_t *coarse = axis->coarse + (size_t)first * stride;

    for (int32_t j = 0; j < count; j++)
        before[j] = nought;
    for (size_t k = 0; k < stride; k++) {
        for (int32_t j = 0; j < count; j++) {
            uint32_t whole;

            sum[j] += fine[(size_t)j * stride + k];
            whole = hr__f32_bits(sum[j] * unit + round);
            coarse[(size_t)j * stride + k] = (int16_t)(whole - before[j]);
            before[j] = whole;
        }
    }
    for (int32_t j = 0; j < count; j++)
        coarse[(size_t)j * stride + (size_t)axis->length[first + j] - 1] +=
            (int16_t)((1u << axis->bits) - (before[j] - nought));
}

static void make_coarse(struct hr_axis *axis, float top, int bits_max)
{
    axis->bits = 14; /* weights below 2 */
    while (axis->bits < bits_max && top * (float)(1 << (axis->bits + 1)) < 32767.0f)
        axis->bits++;
    for (int32_t i = 0; i < axis->count; i += BLOCK)
        round_block(axis, i, axis->count - i < BLOCK ? axis->count - i : BLOCK);
}

static enum hr_err
make_pick(struct hr_arena *arena, const struct hr_axis_spec *spec, struct hr_axis *axis)
{
    axis->pick = hr__arena_alloc(arena, (size_t)spec->count * sizeof *axis->pick);
    if (axis->pick == NULL)
        return HR_ERR_MEMORY;
    for (int32_t i = 0; i < spec->count; i++) {
        int32_t at = full_index(spec, i);

        /* Multiply first, so that a centre exactly between two elements is computed
         * exactly. */
        axis->pick[i] = (int32_t)clamp(spec->box + (at + 0.5) * spec->extent / spec->full,
                                       0, spec->in - 1) -
                        spec->origin;
    }
    return HR_OK;
}

enum hr_err hr__axis_make(struct hr_arena *arena, const struct hr_axis_spec *spec,
                          struct hr_axis *ret_axis)
{
    struct hr_axis axis = {.count = spec->count, .first = spec->in};
    struct window window = {.scale = spec->extent / spec->full};
    size_t count = (size_t)spec->count, weights;
    float *scratch;
    double taps;

    if (spec->filter == HR_FILTER_NEAREST) {
        HR_TRY(make_pick(arena, spec, &axis));
        *ret_axis = axis;
        return HR_OK;
    }
    window.stretch = stretch_of(spec->antialias, window.scale);
    window.support = hr__resample_reach(spec->filter, spec->antialias, window.scale);
    taps = clamp(ceil(window.support) * 2 + 1, 1, spec->in);
    axis.stride = ((int32_t)taps + 1) & ~1;
    weights = count * (size_t)axis.stride;
    axis.start = hr__arena_alloc(arena, count * sizeof *axis.start);
    axis.length = hr__arena_alloc(arena, count * sizeof *axis.length);
    axis.fine = hr__arena_alloc(arena, weights * sizeof *axis.fine);
    axis.coarse = hr__arena_alloc(arena, weights * sizeof *axis.coarse);
    scratch = hr__arena_alloc(arena, (size_t)axis.stride * BLOCK * sizeof *scratch);
    if (scratch == NULL || axis.start == NULL || axis.length == NULL ||
        axis.fine == NULL || axis.coarse == NULL)
        return HR_ERR_MEMORY;
    make_coarse(&axis, make_all_fine(spec, &window, &axis, scratch), spec->bits_max);
    move_to_part(&axis, spec->origin);
    *ret_axis = axis;
    return HR_OK;
}

static bool window_is_sound(int32_t at, int32_t count, int32_t full)
{
    return count > 0 && at >= 0 && at <= full - count;
}

static bool spec_is_sound(const struct hr_resample *spec)
{
    return spec->in_width > 0 && spec->in_height > 0 && isfinite(spec->box_x) &&
           isfinite(spec->box_y) && isfinite(spec->box_width) &&
           isfinite(spec->box_height) && spec->box_width > 0 && spec->box_height > 0;
}

enum hr_err hr__resample_plan(struct hr_arena *arena, const struct hr_resample *spec,
                              struct hr_resample_plan **ret_plan)
{
    struct hr_axis_spec x = {.in = spec->in_width,
                             .origin = spec->in_x,
                             .count = spec->out_width,
                             .full =
                                 spec->full_width ? spec->full_width : spec->out_width,
                             .at = spec->out_x,
                             .box = spec->box_x,
                             .extent = spec->box_width,
                             .flip = spec->flip_x,
                             .antialias = spec->antialias,
                             .filter = spec->filter,
                             .bits_max = 15};
    struct hr_axis_spec y = {.in = spec->in_height,
                             .origin = spec->in_y,
                             .count = spec->out_height,
                             .full =
                                 spec->full_height ? spec->full_height : spec->out_height,
                             .at = spec->out_y,
                             .box = spec->box_y,
                             .extent = spec->box_height,
                             .flip = spec->flip_y,
                             .antialias = spec->antialias,
                             .filter = spec->filter,
                             .bits_max = 20};
    bool negative =
        spec->filter == HR_FILTER_BICUBIC || spec->filter == HR_FILTER_LANCZOS;
    struct hr_resample_plan *plan;
    size_t packed;

    if (!spec_is_sound(spec) || !window_is_sound(x.at, x.count, x.full) ||
        !window_is_sound(y.at, y.count, y.full))
        return HR_ERR_ARGUMENT;
    plan = hr__arena_zalloc(arena, sizeof *plan);
    if (plan == NULL)
        return HR_ERR_MEMORY;
    plan->rows = hr__rows();
    plan->nearest = spec->filter == HR_FILTER_NEAREST;
    plan->carry = negative ? 6 : 7; /* negative lobes need range beyond 0..255 */
    HR_TRY(hr__axis_make(arena, &x, &plan->x));
    HR_TRY(hr__axis_make(arena, &y, &plan->y));
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
