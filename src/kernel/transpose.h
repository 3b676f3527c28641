/*
 * kernel/transpose.h - rows to columns, for VL lanes (kernel/vec.h).
 *
 * Blocks are as wide as a cache line where the registers allow, so that each line of the
 * result is written once: with narrower ones the lines of a wide result leave the cache
 * between two writes.
 */
#ifndef HR_KERNEL_TRANSPOSE_H
#define HR_KERNEL_TRANSPOSE_H

#include <string.h>

#include "kernel/vec.h"

#if VL == 16

#define LOW 0x88 /* the even quarters of both */
#define HIGH 0xdd

/* Up to 16 rows by up to 16 columns; what is outside is neither read nor written. */
static inline void transpose_block(const float *from, size_t from_stride, float *to,
                                   size_t to_stride, size_t rows, size_t columns)
{
    __mmask16 in = (__mmask16)((1u << columns) - 1), out = (__mmask16)((1u << rows) - 1);
    __m512 a[16], b[16];

    for (size_t i = 0; i < 16; i++)
        a[i] = i < rows ? _mm512_maskz_loadu_ps(in, from + i * from_stride)
                        : _mm512_setzero_ps();
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int k = 0; k < 2; k++) {
            __m512d x = _mm512_castps_pd(b[i + k]), y = _mm512_castps_pd(b[i + k + 2]);

            a[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
            a[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
        }
    /* Quarter q of a[4 * i + j] is column 4 * q + j of rows 4 * i to 4 * i + 3. */
    for (int j = 0; j < 4; j++) {
        b[j] = _mm512_shuffle_f32x4(a[j], a[4 + j], LOW);
        b[4 + j] = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], LOW);
        b[8 + j] = _mm512_shuffle_f32x4(a[j], a[4 + j], HIGH);
        b[12 + j] = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], HIGH);
    }
    for (int j = 0; j < 4; j++) {
        a[j] = _mm512_shuffle_f32x4(b[j], b[4 + j], LOW);
        a[4 + j] = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], LOW);
        a[8 + j] = _mm512_shuffle_f32x4(b[j], b[4 + j], HIGH);
        a[12 + j] = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], HIGH);
    }
    for (size_t i = 0; i < columns; i++)
        _mm512_mask_storeu_ps(to + i * to_stride, out, a[i]);
}

static void transpose_run(const float *from, size_t from_stride, float *to,
                          size_t to_stride, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r += 16)
        for (size_t c = 0; c < columns; c += 16) {
            const float *at = from + r * from_stride + c;
            float *result = to + c * to_stride + r;

            if (rows - r >= 16 && columns - c >= 16)
                transpose_block(at, from_stride, result, to_stride, 16, 16);
            else
                transpose_block(at, from_stride, result, to_stride,
                                rows - r < 16 ? rows - r : 16,
                                columns - c < 16 ? columns - c : 16);
        }
}

#else

typedef float quad __attribute__((vector_size(16)));

static inline quad load(const float *from)
{
    quad q;

    memcpy(&q, from, sizeof q);
    return q;
}

static inline void
transpose4(const float *from, size_t from_stride, float *to, size_t to_stride)
{
    quad a = load(from), b = load(from + from_stride), c = load(from + 2 * from_stride),
         d = load(from + 3 * from_stride);
    quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    quad ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    quad cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);

    a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    c = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    d = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
    memcpy(to, &a, sizeof a);
    memcpy(to + to_stride, &b, sizeof b);
    memcpy(to + 2 * to_stride, &c, sizeof c);
    memcpy(to + 3 * to_stride, &d, sizeof d);
}

static void transpose_part(const float *from, size_t from_stride, float *to,
                           size_t to_stride, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            to[c * to_stride + r] = from[r * from_stride + c];
}

static void transpose_rest(const float *from, size_t from_stride, float *to,
                           size_t to_stride, size_t rows, size_t columns)
{
    size_t r = 0, whole = columns & ~(size_t)3;

    for (; r + 4 <= rows; r += 4) {
        const float *at = from + r * from_stride;

        for (size_t c = 0; c < whole; c += 4)
            transpose4(at + c, from_stride, to + c * to_stride + r, to_stride);
        transpose_part(at + whole, from_stride, to + whole * to_stride + r, to_stride, 4,
                       columns - whole);
    }
    transpose_part(from + r * from_stride, from_stride, to + r, to_stride, rows - r,
                   columns);
}

/* Blocks of 16 by 16, which write whole lines though by quads. */
static void transpose_run(const float *from, size_t from_stride, float *to,
                          size_t to_stride, size_t rows, size_t columns)
{
    size_t r = 0;

    for (; r + 16 <= rows; r += 16) {
        size_t c = 0;

        for (; c + 16 <= columns; c += 16)
            transpose_rest(from + r * from_stride + c, from_stride,
                           to + c * to_stride + r, to_stride, 16, 16);
        transpose_rest(from + r * from_stride + c, from_stride, to + c * to_stride + r,
                       to_stride, 16, columns - c);
    }
    transpose_rest(from + r * from_stride, from_stride, to + r, to_stride, rows - r,
                   columns);
}

#endif

#endif
