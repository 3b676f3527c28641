/*
 * kernel/colour.c - applies a chain of colour steps to an image, row by row.
 *
 * A row is converted to f32 planes in L1, all steps are applied to 8 or 16 pixels in
 * registers, and the row is stored. A contrast step needs the mean of the image as it is
 * at that step, so each one costs a pass over the source through the earlier steps:
 * recomputing is cheaper than keeping f32 planes. Steps after a GRAY step run on one
 * channel.
 */
#include "kernel/colour.h"
#include "core/error.h"
#include "kernel/rows.h"

struct chain {
    const struct hr_rows *rows;
    const struct hr_pixels *src;
    struct hr_tone rgb[HR_COLOUR_MAX], gray[HR_COLOUR_MAX];
    int rgb_count, gray_count;
    bool is_gray; /* one channel after the steps so far */
    float max;
    float *plane[4];
};

static void run_row(const struct chain *chain, int32_t y)
{
    size_t n = (size_t)chain->src->width;

    hr__rows_get(chain->rows, chain->src, 0, y, chain->src->width, chain->plane,
                 hr__affine_keep.scale, hr__affine_keep.bias, false);
    if (chain->rgb_count > 0)
        chain->rows->colour_rgb(chain->rgb, chain->rgb_count, chain->max, chain->plane,
                                n);
    if (chain->gray_count > 0)
        chain->rows->colour_gray(chain->gray, chain->gray_count, chain->max,
                                 chain->plane[0], n);
}

/* The mean of the gray image after the steps so far. */
static float mean_gray(const struct chain *so_far)
{
    struct chain chain = *so_far;
    double sum = 0;

    if (!chain.is_gray)
        chain.rgb[chain.rgb_count++] = (struct hr_tone){.kind = HR_COLOUR_GRAY};
    for (int32_t y = 0; y < chain.src->height; y++) {
        run_row(&chain, y);
        sum += chain.rows->sum(chain.plane[0], (size_t)chain.src->width);
    }
    return (float)(sum / ((double)chain.src->width * chain.src->height));
}

static struct hr_tone
make_tone(const struct chain *chain, const struct hr_colour_step *step)
{
    struct hr_tone tone = {.kind = step->kind, .a = step->value, .b = step->value2};

    if (step->kind == HR_COLOUR_CONTRAST)
        tone.b = (1 - step->value) * mean_gray(chain);
    else if (step->kind == HR_COLOUR_SATURATION)
        tone.b = 1 - step->value;
    else if (step->kind == HR_COLOUR_HUE)
        tone.a = 6 * step->value;
    else if (step->kind == HR_COLOUR_ROUND)
        tone = (struct hr_tone){step->kind, 255 / chain->max, chain->max / 255};
    return tone;
}

static bool changes_gray(enum hr_colour_kind kind)
{
    return kind != HR_COLOUR_SATURATION && kind != HR_COLOUR_HUE &&
           kind != HR_COLOUR_GRAY;
}

static void add_step(struct chain *chain, const struct hr_colour_step *step)
{
    struct hr_tone tone;

    if (chain->is_gray && !changes_gray(step->kind))
        return;
    tone = make_tone(chain, step);
    if (chain->is_gray)
        chain->gray[chain->gray_count++] = tone;
    else
        chain->rgb[chain->rgb_count++] = tone;
    if (step->kind == HR_COLOUR_GRAY)
        chain->is_gray = true;
}

static const int orders[6][3] = {
    {0, 1, 2},
    {0, 2, 1},
    {1, 0, 2},
    {1, 2, 0},
    {2, 0, 1},
    {2, 1, 0}
};

enum hr_err hr__colour_run(struct hr_arena *arena, const struct hr_pixels *src,
                           const struct hr_pixels *dst,
                           const struct hr_colour_step *steps, int step_count, float max)
{
    struct chain chain = {
        .rows = hr__rows(), .src = src, .is_gray = src->channels == 1, .max = max};
    size_t room = (size_t)src->width + HR_ROW_PAD;
    const float *result[4];
    int order = 0;

    if (step_count > HR_COLOUR_MAX)
        return HR_ERR_LIMIT;
    for (int i = 0; i + 1 < step_count; i++)
        if (steps[i].kind == HR_COLOUR_PERMUTE)
            return HR_ERR_ARGUMENT;
    if (step_count > 0 && steps[step_count - 1].kind == HR_COLOUR_PERMUTE)
        order = (int)steps[--step_count].value;
    for (int32_t c = 0; c < src->channels; c++) {
        chain.plane[c] = hr__arena_zalloc(arena, room * sizeof(float));
        if (chain.plane[c] == NULL)
            return HR_ERR_MEMORY;
    }
    for (int i = 0; i < step_count; i++)
        add_step(&chain, &steps[i]);
    if (dst->channels == 1 && !chain.is_gray)
        return HR_ERR_SHAPE;
    for (int32_t c = 0; c < dst->channels; c++)
        result[c] = chain.plane[chain.is_gray ? 0 : c < 3 ? orders[order][c] : c];
    for (int32_t y = 0; y < src->height; y++) {
        run_row(&chain, y);
        hr__rows_put(chain.rows, result, dst, 0, y, src->width);
    }
    return HR_OK;
}
