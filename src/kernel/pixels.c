/*
 * kernel/pixels.c - stores a rectangle in another layout, type and range.
 *
 * Rows are processed in segments that stay in L1: to f32 planes (with the first step and
 * the mirroring), then the other steps, then to the destination's form. Planar f32
 * destinations are written directly, without segments. Plain copies are memcpy.
 */
#include "kernel/pixels.h"
#include "kernel/rows.h"

#include <assert.h>
#include <string.h>

#define PIECE 512

static void
copy_same_form(const struct hr_pixels *src, const struct hr_pixels *dst, bool flip_y)
{
    size_t size = hr_dtype_size(src->dtype);
    bool planar = hr__is_planar(src);
    int32_t runs = planar ? src->channels : 1;
    size_t bytes = size * (size_t)src->width * (size_t)(planar ? 1 : src->channels);

    for (int32_t c = 0; c < runs; c++)
        for (int32_t y = 0; y < src->height; y++)
            memcpy(hr__at(dst, 0, flip_y ? src->height - 1 - y : y, c),
                   hr__at(src, 0, y, c), bytes);
}

/* Copies u8 values unchanged between any two layouts. */
static void copy_u8(const struct hr_pixels *src, const struct hr_pixels *dst, bool flip_x,
                    bool flip_y)
{
    int64_t step = flip_x ? -dst->pixel_stride : dst->pixel_stride;

    for (int32_t y = 0; y < src->height; y++) {
        for (int32_t c = 0; c < src->channels; c++) {
            const char *from = hr__at(src, 0, y, c);
            char *to = hr__at(dst, flip_x ? src->width - 1 : 0,
                              flip_y ? src->height - 1 - y : y, c);

            for (int32_t x = 0; x < src->width; x++)
                to[x * step] = from[x * src->pixel_stride];
        }
    }
}

static bool same_form(const struct hr_pixels *src, const struct hr_pixels *dst)
{
    return src->dtype == dst->dtype &&
           ((hr__is_planar(src) && hr__is_planar(dst)) ||
            (hr__is_interleaved(src) && hr__is_interleaved(dst)));
}

static bool has_fast_form(const struct hr_pixels *p)
{
    return hr__is_planar(p) || (p->channels == 3 && hr__is_interleaved(p));
}

static void store_row(const struct hr_rows *rows, const struct hr_pixels *src,
                      const struct hr_pixels *dst, const struct hr_affine *steps,
                      int step_count, bool flip_x, int32_t y, int32_t to_y)
{
    const struct hr_affine *first = step_count > 0 ? steps : &hr__affine_keep;
    _Alignas(64) float piece[4][PIECE];
    float *plane[4] = {piece[0], piece[1], piece[2], piece[3]};
    bool direct = hr__rows_direct(dst, 0, to_y, plane);
    int32_t room = direct ? src->width : PIECE;

    for (int32_t x = 0; x < src->width; x += room) {
        int32_t n = src->width - x < room ? src->width - x : room;
        int32_t to_x = flip_x ? src->width - x - n : x;

        hr__rows_get(rows, src, x, y, n, plane, first->scale, first->bias, flip_x);
        hr__rows_affine(rows, plane, src->channels, n, steps, 1, step_count);
        if (!direct)
            hr__rows_put(rows, (const float *const *)plane, dst, to_x, to_y, n);
    }
}

void hr__pixels_store(const struct hr_pixels *src, const struct hr_pixels *dst,
                      const struct hr_affine *steps, int step_count, bool flip_x,
                      bool flip_y)
{
    const struct hr_rows *rows = hr__rows();

    assert(src->width == dst->width && src->height == dst->height &&
           src->channels == dst->channels);
    if (step_count == 0 && !flip_x && same_form(src, dst)) {
        copy_same_form(src, dst, flip_y);
        return;
    }
    if (step_count == 0 && src->dtype == HR_U8 && dst->dtype == HR_U8 &&
        (rows == &hr__rows_c || !has_fast_form(src) || !has_fast_form(dst))) {
        copy_u8(src, dst, flip_x, flip_y);
        return;
    }
    for (int32_t y = 0; y < src->height; y++)
        store_row(rows, src, dst, steps, step_count, flip_x, y,
                  flip_y ? src->height - 1 - y : y);
}
