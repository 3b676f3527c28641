/*
 * kernel/resample.c - runs a resize: vertical pass, then horizontal, one output row at a
 * time.
 *
 * The vertical pass works on source rows in place (interleaved channels are just more
 * columns) and leaves one row of 16-bit or f32 values, which is split into planes and
 * resampled horizontally. All rows stay in L1. With the vertical pass first, each source
 * byte is read once per output row that needs it and widened only in registers.
 */
#include "kernel/resample.h"
#include "core/error.h"
#include "kernel/resample_plan.h"

#include <assert.h>
#include <string.h>

struct runner {
    const struct hr_resample_plan *plan;
    const struct hr_rows *rows;
    const struct hr_pixels *src, *dst;
    struct hr_finish finish[4];
    const float *scale, *bias; /* of the first step */
    int32_t columns;
    const void **source; /* row pointers for one output row */
    void *mixed;         /* one row after the vertical pass, interleaved */
    void *plane[4];      /* the same, split by channel */
    float *out[4];       /* one output row */
};

/* Channels stored side by side in a source row: all, one (planar), or 0 if there are
 * gaps. */
static int32_t lanes_of(const struct hr_pixels *src)
{
    if (src->channels > 1 && hr__is_interleaved(src))
        return src->channels;
    return hr__is_planar(src) ? 1 : 0;
}

static void split(const struct runner *run, size_t size)
{
    int32_t channels = run->src->channels;

    if (channels == 3 && size == sizeof(int16_t)) {
        int16_t *plane[3] = {run->plane[0], run->plane[1], run->plane[2]};

        run->rows->split3_i16(run->mixed, plane, (size_t)run->columns);
        return;
    }
    for (int32_t c = 0; c < channels; c++) {
        if (size == sizeof(int16_t)) {
            const int16_t *from = (const int16_t *)run->mixed + c;
            int16_t *to = run->plane[c];

            for (int32_t i = 0; i < run->columns; i++)
                to[i] = from[i * channels];
        } else {
            const float *from = (const float *)run->mixed + c;
            float *to = run->plane[c];

            for (int32_t i = 0; i < run->columns; i++)
                to[i] = from[i * channels];
        }
    }
}

static void point_at_rows(const struct runner *run, int32_t y, int32_t channel)
{
    const struct hr_axis *axis = &run->plan->y;

    for (int32_t k = 0; k < axis->length[y]; k++)
        run->source[k] =
            hr__at(run->src, run->plan->x.first, axis->start[y] + k, channel);
}

static void down(const struct runner *run, int32_t y, void *out, size_t n)
{
    const struct hr_axis *axis = &run->plan->y;
    size_t at = (size_t)y * (size_t)axis->stride;

    if (run->src->dtype == HR_U8)
        run->rows->down_u8((const uint8_t *const *)run->source, axis->coarse + at,
                           axis->length[y], out, n, axis->bits - run->plan->carry);
    else
        run->rows->down_f32((const float *const *)run->source, axis->fine + at,
                            axis->length[y], out, n);
}

/* For a source with gaps between its elements: one column at a time. */
static void down_strided(const struct runner *run, int32_t y, int32_t channel)
{
    char *to = run->plane[channel];
    size_t size = run->src->dtype == HR_U8 ? sizeof(int16_t) : sizeof(float);

    point_at_rows(run, y, channel);
    for (int32_t i = 0; i < run->columns; i++) {
        down(run, y, to + (size_t)i * size, 1);
        for (int32_t k = 0; k < run->plan->y.length[y]; k++)
            run->source[k] = (const char *)run->source[k] + run->src->pixel_stride;
    }
}

static void vertical(const struct runner *run, int32_t y)
{
    int32_t lanes = lanes_of(run->src);

    if (lanes > 1) {
        point_at_rows(run, y, 0);
        down(run, y, run->mixed, (size_t)run->columns * (size_t)lanes);
        split(run, run->src->dtype == HR_U8 ? sizeof(int16_t) : sizeof(float));
        return;
    }
    for (int32_t c = 0; c < run->src->channels; c++) {
        if (lanes == 0) {
            down_strided(run, y, c);
            continue;
        }
        point_at_rows(run, y, c);
        down(run, y, run->plane[c], (size_t)run->columns);
    }
}

static void horizontal(const struct runner *run, float *const out[])
{
    const struct hr_axis *x = &run->plan->x;

    const int16_t *row[4] = {run->plane[0], run->plane[1], run->plane[2], run->plane[3]};

    if (run->src->dtype == HR_U8) {
        run->rows->across_i16(x, row, out, run->finish, run->src->channels);
        return;
    }
    for (int32_t c = 0; c < run->src->channels; c++)
        run->rows->across_f32(x, run->plane[c], out[c], run->finish[c].scale,
                              run->finish[c].bias);
}

static void pick_u8(const struct hr_axis *x, const uint8_t *row, int64_t pixel_stride,
                    int64_t channel_stride, int32_t channels, uint8_t *to)
{
    for (int32_t i = 0; i < x->count; i++) {
        const uint8_t *at = row + x->pick[i] * pixel_stride;

        for (int32_t c = 0; c < channels; c++)
            *to++ = at[c * channel_stride];
    }
}

/* Nearest: gathers the pixels of a row unchanged, then converts the row. */
static void pick(const struct runner *run, int32_t y, float *const out[])
{
    const struct hr_axis *x = &run->plan->x;
    const struct hr_pixels *src = run->src;
    const char *row = hr__at(src, 0, run->plan->y.pick[y], 0);
    int64_t size = (int64_t)hr_dtype_size(src->dtype);
    struct hr_pixels picked = {.data = run->mixed,
                               .dtype = src->dtype,
                               .width = x->count,
                               .height = 1,
                               .channels = src->channels,
                               .row_stride = x->count * src->channels * size,
                               .pixel_stride = src->channels * size,
                               .channel_stride = size};
    char *to = run->mixed;

    if (size == 1 && src->channels == 3)
        pick_u8(x, (const uint8_t *)row, src->pixel_stride, src->channel_stride, 3,
                run->mixed);
    else
        for (int32_t i = 0; i < x->count; i++)
            for (int32_t c = 0; c < src->channels; c++, to += size)
                memcpy(to, row + x->pick[i] * src->pixel_stride + c * src->channel_stride,
                       (size_t)size);
    hr__rows_get(run->rows, &picked, 0, 0, x->count, out, run->scale, run->bias, false);
}

/* The first affine step is merged into the end of the horizontal pass: its scale is
 * multiplied by the power of two that converts a fixed-point sum to levels, which is
 * exact. */
static void set_finish(struct runner *run, bool round_u8, const struct hr_affine *first)
{
    int shift = run->plan->carry + run->plan->x.bits;
    bool fixed = run->src->dtype == HR_U8 && !run->plan->nearest;
    float unit = fixed && !round_u8 ? 1.0f / (float)(1 << shift) : 1.0f;

    run->scale = first->scale;
    run->bias = first->bias;
    for (int32_t c = 0; c < run->src->channels; c++)
        run->finish[c] = (struct hr_finish){.scale = first->scale[c] * unit,
                                            .bias = first->bias[c],
                                            .round = round_u8,
                                            .shift = shift};
}

static enum hr_err set_scratch(struct runner *run, struct hr_arena *arena)
{
    size_t channels = (size_t)run->src->channels;
    size_t size = run->src->dtype == HR_U8 ? sizeof(int16_t) : sizeof(float);
    int32_t columns = run->plan->nearest ? run->dst->width : run->columns;
    size_t room = (size_t)columns + 2 * HR_ROW_PAD;
    size_t out_room = (size_t)run->dst->width + HR_ROW_PAD;
    size_t rows = (size_t)run->plan->y.stride;

    run->source = hr__arena_alloc(arena, (rows + 1) * sizeof *run->source);
    run->mixed = hr__arena_zalloc(arena, room * channels * size);
    if (run->source == NULL || run->mixed == NULL)
        return HR_ERR_MEMORY;
    for (size_t c = 0; c < channels; c++) {
        run->plane[c] = hr__arena_zalloc(arena, room * size);
        run->out[c] = hr__arena_alloc(arena, out_room * sizeof(float));
        if (run->plane[c] == NULL || run->out[c] == NULL)
            return HR_ERR_MEMORY;
    }
    return HR_OK;
}

enum hr_err hr__resample_run(const struct hr_resample_plan *plan, struct hr_arena *arena,
                             const struct hr_pixels *src, const struct hr_pixels *dst,
                             bool round_u8, const struct hr_affine *steps, int step_count)
{
    struct runner run = {.plan = plan,
                         .rows = plan->rows,
                         .src = src,
                         .dst = dst,
                         .columns = plan->nearest ? 0 : plan->x.last - plan->x.first};

    assert(plan->nearest || (plan->x.first >= 0 && plan->x.last <= src->width));
    assert(plan->nearest || (plan->y.first >= 0 && plan->y.last <= src->height));
    assert(dst->width == plan->x.count && dst->height == plan->y.count);
    assert(src->channels == dst->channels && src->channels <= 4);
    HR_TRY(set_scratch(&run, arena));
    set_finish(&run, round_u8, step_count > 0 ? steps : &hr__affine_keep);
    for (int32_t y = 0; y < dst->height; y++) {
        float *out[4] = {run.out[0], run.out[1], run.out[2], run.out[3]};
        bool direct = hr__rows_direct(dst, 0, y, out);

        if (plan->nearest) {
            pick(&run, y, out);
        } else {
            vertical(&run, y);
            horizontal(&run, out);
        }
        hr__rows_affine(run.rows, out, src->channels, dst->width, steps, 1, step_count);
        if (!direct)
            hr__rows_put(run.rows, (const float *const *)out, dst, 0, y, dst->width);
    }
    return HR_OK;
}
