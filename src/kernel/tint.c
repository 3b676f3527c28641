/*
 * kernel/tint.c - brightness, contrast and saturation of uint8 as torchvision has them.
 *
 * What mixes channels works a row at a time, in f32 planes that hold whole levels.
 */
#include "kernel/tint.h"

#include <math.h>

#include "core/error.h"
#include "kernel/rows.h"

static uint8_t truncated(float level)
{
    return (uint8_t)(level > 0 ? level < 255 ? level : 255 : 0);
}

void hr__tint_brightness(double factor, uint8_t ret_table[256])
{
    for (int i = 0; i < 256; i++)
        ret_table[i] = truncated((float)i * (float)factor);
}

void hr__tint_contrast(double factor, float mean, uint8_t ret_table[256])
{
    float rest = (float)(1 - factor);

    for (int i = 0; i < 256; i++)
        ret_table[i] = truncated(fmaf(mean, rest, (float)i * (float)factor));
}

struct tint {
    const struct hr_rows *rows;
    const struct hr_pixels *image;
    const struct hr_level_tables *tables;
    uint8_t *levels; /* a row after the tables */
    float *plane[3], *gray;
};

static enum hr_err make_rows(struct hr_arena *arena, struct tint *t)
{
    size_t room = (size_t)t->image->width + HR_ROW_PAD;

    t->levels = hr__arena_alloc(arena, room * 3);
    t->gray = hr__arena_zalloc(arena, room * sizeof(float));
    if (t->levels == NULL || t->gray == NULL)
        return HR_ERR_MEMORY;
    for (int c = 0; c < 3; c++) {
        t->plane[c] = hr__arena_zalloc(arena, room * sizeof(float));
        if (t->plane[c] == NULL)
            return HR_ERR_MEMORY;
    }
    return HR_OK;
}

/* Row `y` after the tables, in planes. */
static void get_row(const struct tint *t, int32_t y)
{
    struct hr_pixels row = *t->image, looked;

    row.data = hr__at(t->image, 0, y, 0);
    row.height = 1;
    if (t->tables != NULL) {
        looked = hr__pixels_u8(t->levels, row.width, 1, row.channels);
        if (!hr__is_interleaved(&row)) {
            looked.pixel_stride = 1;
            looked.channel_stride = row.width;
        }
        hr__levels_look_up(&row, t->tables, &looked);
        row = looked;
    }
    hr__rows_get(t->rows, &row, 0, 0, row.width, t->plane, hr__affine_keep.scale,
                 hr__affine_keep.bias, false);
}

enum hr_err hr__tint_mean(struct hr_arena *arena, const struct hr_pixels *image,
                          const struct hr_level_tables *tables, float *ret_mean)
{
    struct tint t = {.rows = hr__rows(), .image = image, .tables = tables};
    size_t n = (size_t)image->width;
    double sum = 0;

    HR_TRY(make_rows(arena, &t));
    for (int32_t y = 0; y < image->height; y++) {
        get_row(&t, y);
        if (image->channels == 3)
            t.rows->whole_gray(t.plane, t.gray, n);
        sum += t.rows->sum(image->channels == 3 ? t.gray : t.plane[0], n);
    }
    *ret_mean = (float)sum / ((float)image->width * (float)image->height);
    return HR_OK;
}

enum hr_err hr__tint_saturate(struct hr_arena *arena, const struct hr_pixels *in,
                              const struct hr_level_tables *tables, double factor,
                              const struct hr_pixels *out)
{
    struct tint t = {.rows = hr__rows(), .image = in, .tables = tables};
    const float *result[3];

    HR_TRY(make_rows(arena, &t));
    for (int c = 0; c < 3; c++)
        result[c] = t.plane[c];
    for (int32_t y = 0; y < in->height; y++) {
        get_row(&t, y);
        t.rows->whole_saturate(t.plane, (float)factor, (float)(1 - factor),
                               (size_t)in->width);
        hr__rows_put(t.rows, result, out, 0, y, in->width);
    }
    return HR_OK;
}
