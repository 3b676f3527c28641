/*
 * kernel/rows.c - chooses the table, and moves runs of pixels between any layout and f32
 * planes.
 *
 * The common layouts (planar, or three interleaved channels) use the table; others use a
 * strided loop, correct but slow.
 */
#include "kernel/rows.h"
#include "core/cpu.h"
#include "kernel/half.h"

#include <string.h>

#define PIECE 256

const struct hr_affine hr__affine_keep = {
    {1,     1,     1,     1    },
    {-0.0f, -0.0f, -0.0f, -0.0f}
};

const struct hr_rows *hr__rows(void)
{
#ifdef HR_KERNEL_X86
    enum hr_isa isa = hr__isa();

    if (isa >= HR_ISA_AVX512)
        return &hr__rows_avx512;
    if (isa >= HR_ISA_AVX2)
        return &hr__rows_avx2;
#elif defined(HR_KERNEL_NEON)
    if (hr__isa() >= HR_ISA_NEON)
        return &hr__rows_neon;
#endif
    return &hr__rows_c;
}

static float get_one(enum hr_dtype dtype, const char *at)
{
    float value;

    if (dtype == HR_U8)
        return (float)*(const uint8_t *)at;
    memcpy(&value, at, sizeof value);
    return value;
}

static void get_strided(const struct hr_pixels *src, const char *at, int32_t n,
                        float *out, float scale, float bias, bool flip)
{
    for (int32_t i = 0; i < n; i++)
        out[flip ? n - 1 - i : i] =
            get_one(src->dtype, at + i * src->pixel_stride) * scale + bias;
}

void hr__rows_get(const struct hr_rows *rows, const struct hr_pixels *src, int32_t x,
                  int32_t y, int32_t n, float *const plane[], const float scale[],
                  const float bias[], bool flip)
{
    if (src->dtype == HR_U8 && src->channels == 3 && hr__is_interleaved(src)) {
        rows->u8x3_to_f32((const uint8_t *)hr__at(src, x, y, 0), plane, (size_t)n, scale,
                          bias, flip);
        return;
    }
    if (src->dtype == HR_F32 && src->channels == 3 && hr__is_interleaved(src)) {
        rows->f32x3_to_f32((const float *)(void *)hr__at(src, x, y, 0), plane, (size_t)n,
                           scale, bias, flip);
        return;
    }
    for (int32_t c = 0; c < src->channels; c++) {
        const char *at = hr__at(src, x, y, c);

        if (!hr__is_planar(src))
            get_strided(src, at, n, plane[c], scale[c], bias[c], flip);
        else if (src->dtype == HR_U8)
            rows->u8_to_f32((const uint8_t *)at, plane[c], (size_t)n, scale[c], bias[c],
                            flip);
        else
            rows->f32_to_f32((const float *)(const void *)at, plane[c], (size_t)n,
                             scale[c], bias[c], flip);
    }
}

static void put_run(const struct hr_rows *rows, const float *in, enum hr_dtype dtype,
                    void *out, size_t n)
{
    if (dtype == HR_U8)
        rows->f32_to_u8(in, out, n);
    else if (dtype == HR_F16)
        rows->f32_to_f16(in, out, n);
    else if (dtype == HR_BF16)
        rows->f32_to_bf16(in, out, n);
    else
        memcpy(out, in, n * sizeof *in);
}

static void put_strided(const struct hr_rows *rows, const float *in,
                        const struct hr_pixels *dst, char *at, int32_t n)
{
    union {
        uint8_t bytes[PIECE * sizeof(float)];
        uint16_t words[PIECE];
        float floats[PIECE];
    } piece;

    for (int32_t from = 0; from < n; from += PIECE) {
        int32_t count = n - from < PIECE ? n - from : PIECE;

        put_run(rows, in + from, dst->dtype, &piece, (size_t)count);
        for (int32_t i = 0; i < count; i++, at += dst->pixel_stride) {
            if (dst->dtype == HR_U8)
                *(uint8_t *)at = piece.bytes[i];
            else if (dst->dtype == HR_F32)
                memcpy(at, &piece.floats[i], sizeof piece.floats[i]);
            else
                memcpy(at, &piece.words[i], sizeof piece.words[i]);
        }
    }
}

/* Three interleaved channels of 16 bits. */
static void put_words_x3(const struct hr_rows *rows, const float *const plane[],
                         enum hr_dtype dtype, uint16_t *out, int32_t n)
{
    uint16_t words[3][PIECE];
    const uint16_t *const in[3] = {words[0], words[1], words[2]};

    for (int32_t from = 0; from < n; from += PIECE) {
        size_t count = (size_t)(n - from < PIECE ? n - from : PIECE);

        for (int c = 0; c < 3; c++)
            put_run(rows, plane[c] + from, dtype, words[c], count);
        rows->join3_u16(in, out + 3 * (size_t)from, count);
    }
}

void hr__rows_put(const struct hr_rows *rows, const float *const plane[],
                  const struct hr_pixels *dst, int32_t x, int32_t y, int32_t n)
{
    if (dst->dtype == HR_U8 && dst->channels == 3 && hr__is_interleaved(dst)) {
        rows->f32_to_u8x3(plane, (uint8_t *)hr__at(dst, x, y, 0), (size_t)n);
        return;
    }
    if (dst->dtype == HR_F32 && dst->channels == 3 && hr__is_interleaved(dst)) {
        rows->f32_to_f32x3(plane, (float *)(void *)hr__at(dst, x, y, 0), (size_t)n);
        return;
    }
    if ((dst->dtype == HR_F16 || dst->dtype == HR_BF16) && dst->channels == 3 &&
        hr__is_interleaved(dst)) {
        put_words_x3(rows, plane, dst->dtype, (uint16_t *)(void *)hr__at(dst, x, y, 0),
                     n);
        return;
    }
    for (int32_t c = 0; c < dst->channels; c++) {
        char *at = hr__at(dst, x, y, c);

        if (hr__is_planar(dst))
            put_run(rows, plane[c], dst->dtype, at, (size_t)n);
        else
            put_strided(rows, plane[c], dst, at, n);
    }
}

void hr__rows_affine(const struct hr_rows *rows, float *const plane[], int32_t channels,
                     int32_t n, const struct hr_affine *steps, int from, int count)
{
    for (int s = from; s < count; s++)
        for (int32_t c = 0; c < channels; c++)
            rows->f32_to_f32(plane[c], plane[c], (size_t)n, steps[s].scale[c],
                             steps[s].bias[c], false);
}

bool hr__rows_direct(const struct hr_pixels *dst, int32_t x, int32_t y, float *plane[])
{
    if (dst->dtype != HR_F32 || !hr__is_planar(dst))
        return false;
    for (int32_t c = 0; c < dst->channels; c++)
        plane[c] = (float *)(void *)hr__at(dst, x, y, c);
    return true;
}

void hr__f32_to_f16(const float *in, uint16_t *out, size_t count)
{
    hr__rows()->f32_to_f16(in, out, count);
}

void hr__f32_to_bf16(const float *in, uint16_t *out, size_t count)
{
    hr__rows()->f32_to_bf16(in, out, count);
}

void hr__f16_to_f32(const uint16_t *in, float *out, size_t count)
{
    hr__rows()->f16_to_f32(in, out, count);
}

void hr__bf16_to_f32(const uint16_t *in, float *out, size_t count)
{
    hr__rows()->bf16_to_f32(in, out, count);
}
