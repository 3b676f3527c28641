/*
 * kernel/resample_ycc.c - resamples three planes vertically, then horizontally, and
 * converts each row to RGB.
 *
 * For each output row every plane is resampled into a row of f32 that stays in L1, and
 * the colour step writes the destination, so nothing larger than a row is stored in
 * between. Where chroma has the geometry of luma (4:4:4), one plan serves all three
 * planes and the horizontal pass handles them together. Other samplings use two plans
 * even if one axis is the same: 4:2:2 and 4:4:0 are rare.
 */
#include "kernel/resample_ycc.h"
#include "core/error.h"
#include "kernel/resample_plan.h"

#include <assert.h>

struct ycc_run {
    const struct hr_rows *rows;
    const struct hr_pixels *plane;          /* all three */
    const struct hr_resample_plan *plan[3]; /* equal pointers mean equal geometry */
    struct hr_finish finish[3];
    struct hr_ycc_end end;
    const uint8_t **source; /* row pointers into one plane */
    int16_t *wide[3];       /* a row after the vertical pass */
    float *level[3];        /* the row after the horizontal pass; see hr_ycc_end */
};

/* Gray: the same plane for every channel. */
static enum hr_err run_luma(struct hr_arena *arena, const struct hr_resample *spec,
                            const struct hr_pixels *luma, const struct hr_pixels *dst,
                            bool round_u8, const struct hr_affine *steps, int step_count)
{
    struct hr_pixels src = *luma;
    struct hr_resample_plan *plan;

    src.channels = dst->channels;
    src.channel_stride = 0;
    HR_TRY(hr__resample_plan(arena, spec, &plan));
    return hr__resample_run(plan, arena, &src, dst, round_u8, steps, step_count);
}

static bool same_geometry(const struct hr_ycc_planes *planes)
{
    return planes->shift_x == 0 && planes->shift_y == 0 && planes->chroma_x == 0 &&
           planes->chroma_y == 0 && planes->plane[1].width == planes->plane[0].width &&
           planes->plane[1].height == planes->plane[0].height;
}

static struct hr_resample
chroma_spec(const struct hr_resample *luma, const struct hr_ycc_planes *planes)
{
    struct hr_resample spec = *luma;
    double unit_x = 1.0 / (1 << planes->shift_x), unit_y = 1.0 / (1 << planes->shift_y);

    spec.in_width = planes->plane[1].width;
    spec.in_height = planes->plane[1].height;
    spec.box_x = (luma->box_x - planes->chroma_x) * unit_x;
    spec.box_y = (luma->box_y - planes->chroma_y) * unit_y;
    spec.box_width = luma->box_width * unit_x;
    spec.box_height = luma->box_height * unit_y;
    return spec;
}

static enum hr_err
make_plans(struct ycc_run *run, struct hr_arena *arena, const struct hr_resample *spec,
           const struct hr_ycc_planes *planes)
{
    struct hr_resample_plan *luma, *chroma;

    HR_TRY(hr__resample_plan(arena, spec, &luma));
    chroma = luma;
    if (!same_geometry(planes)) {
        struct hr_resample own = chroma_spec(spec, planes);

        HR_TRY(hr__resample_plan(arena, &own, &chroma));
    }
    run->rows = luma->rows;
    run->plan[0] = luma;
    run->plan[1] = run->plan[2] = chroma;
    return HR_OK;
}

static int shift_of(const struct hr_resample_plan *plan)
{
    return plan->nearest ? 0 : plan->carry + plan->x.bits;
}

/* Rows are in units of luma's sums, so those need no scaling. All units are powers of
 * two, so the bits equal those of arithmetic on levels. */
static void set_ends(struct ycc_run *run, const struct hr_affine *first, bool round_u8)
{
    float unit = 1.0f / (float)(1 << shift_of(run->plan[0]));
    float chroma = 1.0f / (float)(1 << shift_of(run->plan[1]));

    run->end = (struct hr_ycc_end){.unit = unit, .top = 255 / unit, .round = round_u8};
    for (int c = 0; c < 3; c++) {
        run->end.scale[c] = round_u8 ? first->scale[c] : first->scale[c] * unit;
        run->end.bias[c] = first->bias[c];
        run->finish[c] = (struct hr_finish){.scale = c == 0 ? 1 : chroma / unit,
                                            .bias = c == 0 ? -0.0f : -128 / unit,
                                            .shift = shift_of(run->plan[c])};
    }
}

static enum hr_err set_scratch(struct ycc_run *run, struct hr_arena *arena)
{
    size_t taps = 0;

    for (int p = 0; p < 3; p++) {
        const struct hr_resample_plan *plan = run->plan[p];
        size_t columns = plan->nearest ? 0 : (size_t)(plan->x.last - plan->x.first);
        size_t width = (size_t)run->plan[0]->x.count;

        taps = (size_t)plan->y.stride > taps ? (size_t)plan->y.stride : taps;
        run->wide[p] =
            hr__arena_zalloc(arena, (columns + 2 * HR_ROW_PAD) * sizeof **run->wide);
        run->level[p] =
            hr__arena_zalloc(arena, (width + HR_ROW_PAD) * sizeof **run->level);
        if (run->wide[p] == NULL || run->level[p] == NULL)
            return HR_ERR_MEMORY;
    }
    run->source = hr__arena_alloc(arena, (taps + 1) * sizeof *run->source);
    return run->source == NULL ? HR_ERR_MEMORY : HR_OK;
}

static void down(const struct ycc_run *run, int p, int32_t y)
{
    const struct hr_resample_plan *plan = run->plan[p];
    const struct hr_axis *axis = &plan->y;
    const char *first = hr__at(&run->plane[p], plan->x.first, axis->start[y], 0);

    for (int32_t k = 0; k < axis->length[y]; k++)
        run->source[k] = (const uint8_t *)first + k * run->plane[p].row_stride;
    run->rows->down_u8(run->source, axis->coarse + (size_t)y * (size_t)axis->stride,
                       axis->length[y], run->wide[p],
                       (size_t)(plan->x.last - plan->x.first), axis->bits - plan->carry);
}

static void pick(const struct ycc_run *run, int p, int32_t y)
{
    const struct hr_resample_plan *plan = run->plan[p];
    const char *at = hr__at(&run->plane[p], 0, plan->y.pick[y], 0);
    const uint8_t *row = (const uint8_t *)at;

    for (int32_t i = 0; i < plan->x.count; i++)
        run->level[p][i] = (float)row[plan->x.pick[i]] + run->finish[p].bias;
}

static void across(const struct ycc_run *run, float *const out[])
{
    const int16_t *row[3] = {run->wide[0], run->wide[1], run->wide[2]};
    const struct hr_axis *luma = &run->plan[0]->x, *chroma = &run->plan[1]->x;
    const struct hr_rows *rows = run->rows;

    if (rows->across_ycc != NULL &&
        rows->across_ycc(luma, chroma, row, out, run->finish, &run->end))
        return;
    if (luma == chroma) {
        rows->across_i16(luma, row, run->level, run->finish, 3);
    } else {
        rows->across_i16(luma, row, run->level, run->finish, 1);
        rows->across_i16(chroma, row + 1, run->level + 1, run->finish + 1, 2);
    }
    rows->ycc_rgb((const float *const *)run->level, out, (size_t)luma->count, &run->end);
}

static void row_of_rgb(const struct ycc_run *run, int32_t y, float *const out[])
{
    if (run->plan[0]->nearest) {
        for (int p = 0; p < 3; p++)
            pick(run, p, y);
        run->rows->ycc_rgb((const float *const *)run->level, out,
                           (size_t)run->plan[0]->x.count, &run->end);
        return;
    }
    for (int p = 0; p < 3; p++)
        down(run, p, y);
    across(run, out);
}

static void check_planes(const struct hr_resample *spec,
                         const struct hr_ycc_planes *planes, const struct hr_pixels *dst)
{
    assert(dst->width == spec->out_width && dst->height == spec->out_height);
    assert(spec->full_width == 0 && spec->in_x == 0 && spec->in_y == 0);
    assert(dst->channels == 1 || dst->channels == 3);
    for (int p = 0; p < (planes->gray ? 1 : 3); p++) {
        const struct hr_pixels *plane = &planes->plane[p];

        assert(plane->dtype == HR_U8 && plane->channels == 1 && plane->pixel_stride == 1);
        assert(p > 0 || plane->width == spec->in_width);
        assert(p > 0 || plane->height == spec->in_height);
        assert(p < 2 || (plane->width == planes->plane[1].width &&
                         plane->height == planes->plane[1].height));
        (void)plane;
    }
    (void)spec;
    (void)dst;
}

enum hr_err
hr__resample_ycc(struct hr_arena *arena, const struct hr_resample *spec,
                 const struct hr_ycc_planes *planes, const struct hr_pixels *dst,
                 bool round_u8, const struct hr_affine *steps, int step_count)
{
    struct ycc_run run = {.plane = planes->plane};

    check_planes(spec, planes, dst);
    if (planes->gray || dst->channels == 1)
        return run_luma(arena, spec, &planes->plane[0], dst, round_u8, steps, step_count);
    HR_TRY(make_plans(&run, arena, spec, planes));
    HR_TRY(set_scratch(&run, arena));
    set_ends(&run, step_count > 0 ? steps : &hr__affine_keep, round_u8);
    for (int32_t y = 0; y < dst->height; y++) {
        float *out[3] = {run.level[0], run.level[1], run.level[2]};
        bool direct = hr__rows_direct(dst, 0, y, out);

        row_of_rgb(&run, y, out);
        hr__rows_affine(run.rows, out, 3, dst->width, steps, 1, step_count);
        if (!direct)
            hr__rows_put(run.rows, (const float *const *)out, dst, 0, y, dst->width);
    }
    return HR_OK;
}
