/*
 * codec/jpeg_idct.h - constants of the inverse transforms, and their plain C version.
 *
 * 8x8 is the algorithm of Loeffler, Ligtenberg and Moschytz (ICASSP 1989) with 13-bit
 * constants, as in libjpeg's "islow"; 4x4 and 2x2 keep only the lowest frequencies. The
 * vertical pass comes first. Inputs of the passes (`in`) are 16-bit values, sums are 32
 * bits.
 *
 * Each transform is exact to the bit or returns false. Where a sum leaves its 16 or 32
 * bits, libjpeg-turbo's plain C, its SSE2, AVX2 and Neon code and ours differ from each
 * other, so a block that comes near is declined. It is enough to check
 *
 *   the input     |coefficient * step| <= HR_JPEG_VALUE_MAX, during entropy decoding
 *                 (jpeg_scan.h; the mean has its own limit, dc_max),
 *   the result    before clamping: -512 to 511, which is also as far as plain C clamps
 *                 (its table has 1024 entries and is indexed modulo that),
 *   in between    the passes of 4x4 and 2x2 only: -BETWEEN_MAX - 1 to BETWEEN_MAX.
 *
 * Nothing overflows in the first pass: two inputs add up to at most 16382, four times an
 * input (libjpeg-turbo's shortcut for columns with only a mean) fits in 16 bits, and a
 * sum of all products in 30. The result may saturate, here and in their vector code.
 *
 * 8x8, second pass. Even 32767 in all eight places gives 32-bit sums below 2^31 (8192 *
 * 7.5 * 32767). The 16-bit sums may overflow; here they saturate, and so do the results
 * of the first pass. Both show in the result. The transform preserves lengths up to a
 * factor: the largest output of a row is at least the root of the sum of its squared
 * inputs over 32, hence 1023 if one of them saturated. If in[0] + in[4] saturates, the
 * mean of the four outputs that contain it is 32767 / 32; the same holds for in[0] -
 * in[4]. If in[7] + in[3] or in[5] + in[1] saturates, the largest odd part is at least
 * 836 (the minimum of a linear program over all 16-bit inputs), and one of the two
 * outputs even + odd and even - odd is at least as large. All of these are beyond 511, so
 * a result in range means that nothing saturated on the way, and then every
 * implementation computes the same integers.
 *
 * 4x4 and 2x2, second pass. They discard frequencies, so the result says too little about
 * the input; hence the check in between. 77,910 and 85,759 are the sums of the weights,
 * and 16384 * 85,759 < 2^31.
 */
#ifndef HR_CODEC_JPEG_IDCT_H
#define HR_CODEC_JPEG_IDCT_H

#include "codec/jpeg_priv.h"

#include <string.h>

/* round(x * 2^13) */
#define F_0_211 1730
#define F_0_298 2446
#define F_0_390 3196
#define F_0_509 4176
#define F_0_541 4433
#define F_0_601 4926
#define F_0_720 5906
#define F_0_765 6270
#define F_0_850 6967
#define F_0_899 7373
#define F_1_061 8697
#define F_1_175 9633
#define F_1_272 10426
#define F_1_451 11893
#define F_1_501 12299
#define F_1_847 15137
#define F_1_961 16069
#define F_2_053 16819
#define F_2_172 17799
#define F_2_562 20995
#define F_3_072 25172
#define F_3_624 29692

#define SHIFT_BETWEEN 11 /* of the 8-point transform: two fraction bits remain */
#define SHIFT_END 18
#define BETWEEN_MAX 16383
#define RESULT_MAX 511

static inline int16_t saturate16(int32_t v)
{
    return (int16_t)(v < INT16_MIN ? INT16_MIN : v > INT16_MAX ? INT16_MAX : v);
}

/* a * b + c * d; operands fit in 16 bits, the sum may wrap. */
static inline uint32_t madd(int32_t a, int32_t b, int32_t c, int32_t d)
{
    return (uint32_t)(a * b) + (uint32_t)(c * d);
}

static inline int16_t descale(uint32_t sum, int shift)
{
    return saturate16((int32_t)(sum + (1U << (shift - 1))) >> shift);
}

static inline uint8_t level(int16_t v)
{
    return (uint8_t)((v < -128 ? -128 : v > 127 ? 127 : v) + 128);
}

/* One 8-point transform; inputs are `step` apart. */
static inline void
c_idct8(const int16_t *in, ptrdiff_t step, int16_t *out, ptrdiff_t out_step, int shift)
{
    int32_t i1 = in[step], i2 = in[2 * step], i3 = in[3 * step], i5 = in[5 * step],
            i4 = in[4 * step], i6 = in[6 * step], i7 = in[7 * step];
    uint32_t low = (uint32_t)saturate16(in[0] + i4) << 13;
    uint32_t high = (uint32_t)saturate16(in[0] - i4) << 13;
    uint32_t t2 = madd(i2, F_0_541, i6, F_0_541 - F_1_847);
    uint32_t t3 = madd(i2, F_0_541 + F_0_765, i6, F_0_541);
    uint32_t even[4] = {low + t3, high + t2, high - t2, low - t3}, odd[4];
    int32_t z3 = saturate16(i7 + i3), z4 = saturate16(i5 + i1), k;
    int16_t flat;
    uint32_t s3 = madd(z3, F_1_175 - F_1_961, z4, F_1_175);
    uint32_t s4 = madd(z3, F_1_175, z4, F_1_175 - F_0_390);

    if ((i1 | i2 | i3 | i4 | i5 | i6 | i7) == 0) { /* common: many columns are flat */
        flat = descale(low, shift);
        for (k = 0; k < 8; k++)
            out[k * out_step] = flat;
        return;
    }
    odd[3] = madd(i7, F_0_298 - F_0_899, i1, -F_0_899) + s3;
    odd[2] = madd(i5, F_2_053 - F_2_562, i3, -F_2_562) + s4;
    odd[1] = madd(i5, -F_2_562, i3, F_3_072 - F_2_562) + s3;
    odd[0] = madd(i7, -F_0_899, i1, F_1_501 - F_0_899) + s4;
    for (k = 0; k < 4; k++) {
        out[k * out_step] = descale(even[k] + odd[k], shift);
        out[(7 - k) * out_step] = descale(even[k] - odd[k], shift);
    }
}

/* Eight inputs (the fifth is ignored) to four outputs. */
static inline void
c_idct4(const int16_t *in, ptrdiff_t step, int16_t *out, ptrdiff_t out_step, int shift)
{
    uint32_t t0 = (uint32_t)in[0] << 14;
    uint32_t t2 = madd(in[2 * step], F_1_847, in[6 * step], -F_0_765);
    uint32_t o0 = madd(in[7 * step], -F_0_211, in[5 * step], F_1_451) +
                  madd(in[3 * step], -F_2_172, in[step], F_1_061);
    uint32_t o2 = madd(in[7 * step], -F_0_509, in[5 * step], -F_0_601) +
                  madd(in[3 * step], F_0_899, in[step], F_2_562);

    out[0] = descale(t0 + t2 + o2, shift);
    out[3 * out_step] = descale(t0 + t2 - o2, shift);
    out[out_step] = descale(t0 - t2 + o0, shift);
    out[2 * out_step] = descale(t0 - t2 - o0, shift);
}

/* The first input and the odd ones to two outputs. */
static inline void
c_idct2(const int16_t *in, ptrdiff_t step, int16_t *out, ptrdiff_t out_step, int shift)
{
    uint32_t t0 = (uint32_t)in[0] << 15;
    uint32_t odd = madd(in[7 * step], -F_0_720, in[5 * step], F_0_850) +
                   madd(in[3 * step], -F_1_272, in[step], F_3_624);

    out[0] = descale(t0 + odd, shift);
    out[out_step] = descale(t0 - odd, shift);
}

/* Multiplies by the quantisation steps and stores a contiguous block. */
static inline void c_dequantise(int16_t *restrict group, const int16_t *restrict quant,
                                int16_t *restrict block)
{
    for (int row = 0; row < 8; row++, group += 32, block += 8, quant += 8) {
        for (int i = 0; i < 8; i++)
            block[i] = (int16_t)((uint32_t)group[i] * (uint32_t)quant[i]);
        memset(group, 0, 8 * sizeof *group);
    }
}

typedef void
c_pass(const int16_t *in, ptrdiff_t step, int16_t *out, ptrdiff_t out_step, int shift);

/* ORs together `n` values shifted by max + 1: at most 2 max + 1 if all are from -max - 1
 * to max, because max + 1 is a power of 2. */
static inline uint16_t spread(const int16_t *v, int n, int max)
{
    uint16_t bits = 0;

    for (int i = 0; i < n; i++)
        bits = (uint16_t)(bits | (uint16_t)(v[i] + max + 1));
    return bits;
}

/* Shared by the sizes; `pass` is a constant at each call, so this is inlined. */
static inline __attribute__((always_inline)) bool
c_idct(int16_t *groups, const int16_t *quant, int32_t count, uint8_t *out,
       ptrdiff_t stride, c_pass *pass, int size, int shift, int shift_end)
{
    uint16_t bits_between = 0, bits = 0;

    for (int32_t b = 0; b < 4 * count; b++) {
        int16_t block[64], between[64], pixels[64];
        int i, j;

        c_dequantise(groups + (ptrdiff_t)(b / 4) * HR_JPEG_GROUP + b % 4 * 8, quant,
                     block);
        for (i = 0; i < 8; i++)
            pass(block + i, 8, between + i, 8, shift);
        if (size < 8)
            bits_between |= spread(between, 8 * size, BETWEEN_MAX);
        for (i = 0; i < size; i++)
            pass(between + 8 * i, 1, pixels + size * i, 1, shift_end);
        bits |= spread(pixels, size * size, RESULT_MAX);
        for (i = 0; i < size; i++)
            for (j = 0; j < size; j++)
                out[i * stride + b * size + j] = level(pixels[size * i + j]);
    }
    return bits_between <= 2 * BETWEEN_MAX + 1 && bits <= 2 * RESULT_MAX + 1;
}

static inline bool c_idct_8(int16_t *groups, const int16_t *quant, int32_t count,
                            uint8_t *out, ptrdiff_t stride)
{
    return c_idct(groups, quant, count, out, stride, c_idct8, 8, SHIFT_BETWEEN,
                  SHIFT_END);
}

static inline bool c_idct_4(int16_t *groups, const int16_t *quant, int32_t count,
                            uint8_t *out, ptrdiff_t stride)
{
    return c_idct(groups, quant, count, out, stride, c_idct4, 4, SHIFT_BETWEEN + 1,
                  SHIFT_END + 1);
}

static inline bool c_idct_2(int16_t *groups, const int16_t *quant, int32_t count,
                            uint8_t *out, ptrdiff_t stride)
{
    return c_idct(groups, quant, count, out, stride, c_idct2, 2, SHIFT_BETWEEN + 2,
                  SHIFT_END + 2);
}

/* A mean is within dc_max, so its result is in range. */
static inline bool c_idct_1(int16_t *groups, const int16_t *quant, int32_t count,
                            uint8_t *out, ptrdiff_t stride)
{
    (void)stride;
    for (int32_t b = 0; b < 4 * count; b++) {
        int16_t *c = groups + (ptrdiff_t)(b / 4) * HR_JPEG_GROUP + b % 4 * 8;

        out[b] = level(descale((uint32_t)(*c * quant[0]), 3));
        *c = 0;
    }
    return true;
}

#endif
