/*
 * kernel/samples.c - conversion of samples, and blocks in columns.
 */
#include "kernel/samples.h"

#include <float.h>
#include <string.h>

#include "kernel/sound.h"

#include "kernel/sound.h"

typedef int16_t __attribute__((aligned(1), may_alias)) any_i16;
typedef int32_t __attribute__((aligned(1), may_alias)) any_i32;
typedef float __attribute__((aligned(1), may_alias)) any_f32;
typedef double __attribute__((aligned(1), may_alias)) any_f64;

size_t hr__sample_bytes(enum hr_sample_coding coding)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 4, 8};

    return bytes[coding];
}

static void from_u8(const uint8_t *from, size_t step, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)((int32_t)from[i * step] - 128) * 0x1p-7f;
}

static void from_s16(const any_i16 *from, size_t step, float *to, size_t count)
{
    if (step == 1)
        for (size_t i = 0; i < count; i++)
            to[i] = (float)from[i] * 0x1p-15f;
    else
        for (size_t i = 0; i < count; i++)
            to[i] = (float)from[i * step] * 0x1p-15f;
}

static void from_s24(const uint8_t *from, size_t step, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++, from += 3 * step) {
        uint32_t bits =
            (uint32_t)from[0] << 8 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 24;

        to[i] = (float)((int32_t)bits >> 8) * 0x1p-23f;
    }
}

static void from_s32(const any_i32 *from, size_t step, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)from[i * step] * 0x1p-31f;
}

static void from_f32(const any_f32 *from, size_t step, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i * step];
}

static void from_f64(const any_f64 *from, size_t step, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)from[i * step];
}

void hr__samples_to_f32(enum hr_sample_coding coding, const void *from, size_t step,
                        float *to, size_t count)
{
    switch (coding) {
    case HR_SAMPLE_U8:
        from_u8(from, step, to, count);
        break;
    case HR_SAMPLE_S16:
        from_s16(from, step, to, count);
        break;
    case HR_SAMPLE_S24:
        from_s24(from, step, to, count);
        break;
    case HR_SAMPLE_S32:
        from_s32(from, step, to, count);
        break;
    case HR_SAMPLE_F32:
        from_f32(from, step, to, count);
        break;
    case HR_SAMPLE_F64:
        from_f64(from, step, to, count);
        break;
    }
}

void hr__samples_mean(const float *from, size_t stride, size_t channels, float *out,
                      size_t count)
{
    float share = (float)channels;

    if (channels == 2) {
        for (size_t i = 0; i < count; i++)
            out[i] = (from[i] + from[stride + i]) * 0.5f;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        float sum = from[i];

        for (size_t c = 1; c < channels; c++)
            sum += from[c * stride + i];
        out[i] = sum / share;
    }
}

#define TOPS 16 /* maxima that are found side by side */

void hr__limit_range(float *data, size_t count, float range)
{
    float tops[TOPS], top = -FLT_MAX;
    size_t whole = count / TOPS * TOPS;

    for (size_t k = 0; k < TOPS; k++)
        tops[k] = top;
    for (size_t i = 0; i < whole; i += TOPS)
        for (size_t k = 0; k < TOPS; k++)
            tops[k] = data[i + k] > tops[k] ? data[i + k] : tops[k];
    for (size_t k = 0; k < TOPS; k++)
        top = tops[k] > top ? tops[k] : top;
    for (size_t i = whole; i < count; i++)
        top = data[i] > top ? data[i] : top;
    top -= range;
    for (size_t i = 0; i < count; i++)
        data[i] = data[i] > top ? data[i] : top;
}

/* ---- blocks in columns ---- */

/* A sample outside the sound; a sound that is shorter than what it is to mirror is
 * mirrored repeatedly. */
static float
beyond(const float *sound, int64_t count, enum hr_sound_edge edge, int64_t at)
{
    int64_t period = 2 * (count - 1);

    if (edge == HR_EDGE_ZERO || count == 0)
        return 0;
    if (count == 1)
        return sound[0];
    at %= period;
    if (at < 0)
        at += period;
    return sound[at < count ? at : period - at];
}

static void edge_column(const float *sound, int64_t count, enum hr_sound_edge edge,
                        int64_t from, size_t rows, float *to, size_t stride)
{
    for (size_t r = 0; r < rows; r++) {
        int64_t at = from + (int64_t)r;

        to[r * stride] =
            at >= 0 && at < count ? sound[at] : beyond(sound, count, edge, at);
    }
}

void hr__sound_columns(const float *sound, int64_t count, enum hr_sound_edge edge,
                       int64_t from, size_t block, size_t rows, float *to, size_t stride,
                       size_t columns)
{
    int64_t step = (int64_t)block;
    size_t first = 0, last = columns;

    while (first < columns && from + (int64_t)first * step < 0)
        first++;
    while (last > first && from + (int64_t)(last - 1) * step + (int64_t)rows > count)
        last--;
    for (size_t r = 0; r < rows; r++)
        memset(to + r * stride + columns, 0, (stride - columns) * sizeof *to);
    for (size_t c = 0; c < first; c++)
        edge_column(sound, count, edge, from + (int64_t)c * step, rows, to + c, stride);
    for (size_t c = last; c < columns; c++)
        edge_column(sound, count, edge, from + (int64_t)c * step, rows, to + c, stride);
    if (last > first && block == 1)
        memcpy(to + first, sound + from + (int64_t)first, (last - first) * sizeof *to);
    else if (last > first)
        hr__sound_table()->transpose(sound + from + (int64_t)first * step, block,
                                     to + first, stride, last - first, rows);
}
