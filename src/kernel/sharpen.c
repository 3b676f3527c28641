/*
 * kernel/sharpen.c - blends an image with a smoothed one, a row at a time.
 *
 * Two rows are kept as they were before, so that the image can change in place. The blend
 * of uint8 is that of a fused multiply and add in f32, as torch computes it where the
 * machine has one.
 */
#include "kernel/sharpen.h"

#include <string.h>

#include "core/error.h"
#include "kernel/rows.h"

struct sharpen {
    const struct hr_rows *rows;
    const struct hr_pixels *image;
    int32_t turn;          /* from a level to the next one of its channel */
    int32_t length;        /* levels in a row, or in one of a plane */
    float rest;            /* 1 - factor */
    void *before, *middle; /* the row above and the row itself, unchanged */
    void *columns;         /* sums of three levels */
};

static void blend_floats(const struct sharpen *s, const float *below, float *restrict out)
{
    const float *above = s->before, *middle = s->middle;
    float *restrict columns = s->columns;
    const float side = (float)(1.0 / 13), centre = (float)(4.0 / 13);
    int32_t n = s->length, turn = s->turn;
    float rest = s->rest;

    for (int32_t i = 0; i < n; i++)
        columns[i] = above[i] + middle[i] + below[i];
    for (int32_t i = turn; i < n - turn; i++) {
        float sum = columns[i - turn] + columns[i] + columns[i + turn];
        float value = middle[i] + rest * (sum * side + middle[i] * centre - middle[i]);

        out[i] = value > 0 ? value < 1 ? value : 1 : 0;
    }
}

static void run_plane(struct sharpen *s, int32_t channel)
{
    const struct hr_pixels *image = s->image;
    size_t bytes = (size_t)s->length * hr_dtype_size(image->dtype);

    memcpy(s->before, hr__at(image, 0, 0, channel), bytes);
    for (int32_t y = 1; y < image->height - 1; y++) {
        void *kept = s->before, *row = hr__at(image, 0, y, channel);
        const void *below = hr__at(image, 0, y + 1, channel);

        memcpy(s->middle, row, bytes);
        if (image->dtype == HR_U8)
            s->rows->sharpen_u8(s->before, s->middle, below, s->columns, row, s->length,
                                s->turn, s->rest);
        else
            blend_floats(s, below, row);
        s->before = s->middle;
        s->middle = kept;
    }
}

enum hr_err
hr__sharpen(struct hr_arena *arena, const struct hr_pixels *image, double factor)
{
    bool planar = hr__is_planar(image);
    struct sharpen s = {
        .rows = hr__rows(),
        .image = image,
        .turn = planar ? 1 : image->channels,
        .length = image->width * (planar ? 1 : image->channels),
        .rest = (float)(1 - factor),
    };
    size_t room = (size_t)s.length * sizeof(float);

    if (image->width < 3 || image->height < 3)
        return HR_OK;
    s.before = hr__arena_alloc(arena, room);
    s.middle = hr__arena_alloc(arena, room);
    s.columns = hr__arena_alloc(arena, room);
    if (s.before == NULL || s.middle == NULL || s.columns == NULL)
        return HR_ERR_MEMORY;
    for (int32_t c = 0; c < (planar ? image->channels : 1); c++)
        run_plane(&s, c);
    return HR_OK;
}
