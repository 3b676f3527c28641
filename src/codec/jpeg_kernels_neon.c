/*
 * codec/jpeg_kernels_neon.c - the inner loops for NEON, one block per register.
 *
 * Entropy decoding and jpeg_rows.h are plain C, the latter vectorised by the compiler.
 * Skip tables are plain C too, because NEON has no records_points.
 */
#define VEC int16x8_t
#define VEC_INLINE static inline __attribute__((always_inline))
#define LANES 1
#define MIDDLE 128 /* the level of 0 */

#include "codec/jpeg_idct.h"
#include "codec/jpeg_rows.h"
#include "codec/jpeg_scan.h"

#include <arm_neon.h>

struct couples {
    VEC a, b;
};

struct sums {
    int32x4_t low, high;
};

/* NEON multiplies by a constant and accumulates, so the registers stay separate. */
VEC_INLINE struct couples interleave(VEC a, VEC b)
{
    return (struct couples){a, b};
}

VEC_INLINE struct sums multiply(struct couples v, int16_t by_a, int16_t by_b)
{
    int32x4_t low = vmull_n_s16(vget_low_s16(v.a), by_a);
    int32x4_t high = vmull_high_n_s16(v.a, by_a);

    return (struct sums){vmlal_n_s16(low, vget_low_s16(v.b), by_b),
                         vmlal_high_n_s16(high, v.b, by_b)};
}

/* Sums of blocks that will be declined may wrap; vaddq_s32 is a signed + to gcc. */
VEC_INLINE int32x4_t wrap_add(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_u32(
        vaddq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}

VEC_INLINE int32x4_t wrap_subtract(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_u32(
        vsubq_u32(vreinterpretq_u32_s32(a), vreinterpretq_u32_s32(b)));
}

VEC_INLINE struct sums plus(struct sums a, struct sums b)
{
    return (struct sums){wrap_add(a.low, b.low), wrap_add(a.high, b.high)};
}

VEC_INLINE struct sums minus(struct sums a, struct sums b)
{
    return (struct sums){wrap_subtract(a.low, b.low), wrap_subtract(a.high, b.high)};
}

/* 16 bits widened to 32 and multiplied by 2^shift, a constant. */
#define shifted(v, shift)                                                                \
    ((struct sums){vshll_n_s16(vget_low_s16(v), shift), vshll_high_n_s16(v, shift)})

/* Descales; `more` is added to the result. */
VEC_INLINE VEC narrow(struct sums a, int shift, int more)
{
    int32x4_t by = vdupq_n_s32(-shift); /* becomes an immediate */
    VEC v = vcombine_s16(vqmovn_s32(vrshlq_s32(a.low, by)),
                         vqmovn_s32(vrshlq_s32(a.high, by)));

    return more != 0 ? vqaddq_s16(v, vdupq_n_s16((int16_t)more)) : v;
}

VEC_INLINE VEC add_saturated(VEC a, VEC b)
{
    return vqaddq_s16(a, b);
}

VEC_INLINE VEC subtract_saturated(VEC a, VEC b)
{
    return vqsubq_s16(a, b);
}

/* The smallest and largest values so far, per lane. */
struct range {
    VEC min, max;
};

VEC_INLINE struct range no_range(void)
{
    return (struct range){vdupq_n_s16(0), vdupq_n_s16(0)};
}

VEC_INLINE void widen_range(struct range *range, VEC v)
{
    range->min = vminq_s16(range->min, v);
    range->max = vmaxq_s16(range->max, v);
}

/* True if all values are from -max - 1 to max, plus `more`. */
VEC_INLINE bool is_within(const struct range *range, int max, int more)
{
    return vminvq_s16(range->min) >= more - max - 1 &&
           vmaxvq_s16(range->max) <= more + max;
}

/* Exchange pairs of 32 or 64 bits between two registers. */
VEC_INLINE void swap32(VEC *a, VEC *b)
{
    int32x4_t x = vreinterpretq_s32_s16(*a), y = vreinterpretq_s32_s16(*b);

    *a = vreinterpretq_s16_s32(vtrn1q_s32(x, y));
    *b = vreinterpretq_s16_s32(vtrn2q_s32(x, y));
}

VEC_INLINE void swap64(VEC *a, VEC *b)
{
    int64x2_t x = vreinterpretq_s64_s16(*a), y = vreinterpretq_s64_s16(*b);

    *a = vreinterpretq_s16_s64(vtrn1q_s64(x, y));
    *b = vreinterpretq_s16_s64(vtrn2q_s64(x, y));
}

VEC_INLINE void transpose8(VEC r[8])
{
    for (int i = 0; i < 8; i += 2) {
        VEC odd = vtrn2q_s16(r[i], r[i + 1]);

        r[i] = vtrn1q_s16(r[i], r[i + 1]);
        r[i + 1] = odd;
    }
    for (int i = 0; i < 8; i += 4) {
        swap32(&r[i], &r[i + 2]);
        swap32(&r[i + 1], &r[i + 3]);
    }
    for (int i = 0; i < 4; i++)
        swap64(&r[i], &r[i + 4]);
}

/* Row k of block b of a group, dequantised; clears the coefficients. */
VEC_INLINE VEC take_row(int16_t *group, const int16_t *quant, int k, int b)
{
    int16_t *at = group + 32 * k + 8 * b;
    VEC v = vmulq_s16(vld1q_s16(at), vld1q_s16(quant + 8 * k));

    vst1q_s16(at, vdupq_n_s16(0));
    return v;
}

VEC_INLINE void put_rows8(VEC even, VEC odd, uint8_t *out, ptrdiff_t stride)
{
    vst1_u8(out, vqmovun_s16(even));
    vst1_u8(out + stride, vqmovun_s16(odd));
}

/* A bit for each 0xFF byte. */
static inline uint64_t copy_64(const uint8_t *from, uint8_t *to)
{
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                        1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t weight = vld1q_u8(weights), ff = vdupq_n_u8(0xFF), bit[4], sum;

    for (int i = 0; i < 4; i++) {
        uint8x16_t v = vld1q_u8(from + 16 * i);

        vst1q_u8(to + 16 * i, v);
        bit[i] = vandq_u8(vceqq_u8(v, ff), weight);
    }
    sum = vpaddq_u8(vpaddq_u8(bit[0], bit[1]), vpaddq_u8(bit[2], bit[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)), 0);
}

#include "codec/jpeg_passes.h"

/* Eight columns of four values from four rows, two columns per register. */
VEC_INLINE void columns_of(const VEC m[4], int64x2_t c[4])
{
    VEC low02 = vzip1q_s16(m[0], m[2]), high02 = vzip2q_s16(m[0], m[2]);
    VEC low13 = vzip1q_s16(m[1], m[3]), high13 = vzip2q_s16(m[1], m[3]);

    c[0] = vreinterpretq_s64_s16(vzip1q_s16(low02, low13));
    c[1] = vreinterpretq_s64_s16(vzip2q_s16(low02, low13));
    c[2] = vreinterpretq_s64_s16(vzip1q_s16(high02, high13));
    c[3] = vreinterpretq_s64_s16(vzip2q_s16(high02, high13));
}

/* Stores four columns of two blocks, four values each, as rows of bytes. */
VEC_INLINE void put_columns4(const VEC v[4], uint8_t *out, ptrdiff_t stride)
{
    static const uint8_t upright[32] = {0,  8,  16, 24, 4,  12, 20, 28, 1,  9, 17,
                                        25, 5,  13, 21, 29, 2,  10, 18, 26, 6, 14,
                                        22, 30, 3,  11, 19, 27, 7,  15, 23, 31};
    uint8x16x2_t bytes = {
        {vqmovun_high_s16(vqmovun_s16(v[0]), v[1]),
         vqmovun_high_s16(vqmovun_s16(v[2]), v[3])}
    };
    uint8x16_t rows01 = vqtbl2q_u8(bytes, vld1q_u8(upright));
    uint8x16_t rows23 = vqtbl2q_u8(bytes, vld1q_u8(upright + 16));

    vst1_u8(out, vget_low_u8(rows01));
    vst1_u8(out + stride, vget_high_u8(rows01));
    vst1_u8(out + 2 * stride, vget_low_u8(rows23));
    vst1_u8(out + 3 * stride, vget_high_u8(rows23));
}

/* The first pass one block at a time, the second on columns of two blocks. */
static bool idct_4(int16_t *groups, const int16_t *quant, int32_t count, uint8_t *out,
                   ptrdiff_t stride)
{
    struct range between = no_range(), range = between;

    for (int32_t b = 0; b < 4 * count; b += 2, out += 8) {
        int16_t *group = groups + (ptrdiff_t)(b / 4) * HR_JPEG_GROUP;
        VEC r[8], m[4];
        int64x2_t c[2][4];

        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < 8; k++)
                r[k] = take_row(group, quant, k, b % 4 + i);
            pass4(r, SHIFT_BETWEEN + 1, 0, m);
            for (int k = 0; k < 4; k++)
                widen_range(&between, m[k]);
            columns_of(m, c[i]);
        }
        for (int k = 0; k < 4; k++) {
            r[2 * k] = vreinterpretq_s16_s64(vtrn1q_s64(c[0][k], c[1][k]));
            r[2 * k + 1] = vreinterpretq_s16_s64(vtrn2q_s64(c[0][k], c[1][k]));
        }
        pass4(r, SHIFT_END + 1, MIDDLE, m);
        for (int k = 0; k < 4; k++)
            widen_range(&range, m[k]);
        put_columns4(m, out, stride);
    }
    return is_within(&between, BETWEEN_MAX, 0) && is_within(&range, RESULT_MAX, MIDDLE);
}

static void make_skip(struct hr_jpeg_table *table)
{
    hr__jpeg_kernels_c.make_skip(table);
}

static inline VEC load_8(const uint8_t *at)
{
    return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(at)));
}

/* k * x rounded to a multiple of 2^-16 (see rgb_scalar) is (floor(2 k x) + 1) / 2. */
static inline VEC part_of(VEC x, int k)
{
    return vrshrq_n_s16(vqdmulhq_n_s16(x, (int16_t)k), 1);
}

static void
rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, int32_t n)
{
    const VEC middle = vdupq_n_s16(128);
    int32_t i = 0;

    for (; i + 8 <= n; i += 8, out += 24) {
        VEC level = load_8(y + i), b = vsubq_s16(load_8(cb + i), middle);
        VEC r = vsubq_s16(load_8(cr + i), middle);
        struct sums g = multiply(interleave(b, r), -22554, 65536 - 46802);
        VEC green = vcombine_s16(vrshrn_n_s32(g.low, 16), vrshrn_n_s32(g.high, 16));
        VEC red = vaddq_s16(r, part_of(r, 91881 - 65536));
        VEC blue = vaddq_s16(vaddq_s16(b, b), part_of(b, 116130 - 131072));
        uint8x8x3_t p = {
            {vqmovun_s16(vaddq_s16(level, red)),
             vqmovun_s16(vaddq_s16(level, vsubq_s16(green, r))),
             vqmovun_s16(vaddq_s16(level, blue))}
        };

        vst3_u8(out, p);
    }
    rgb_scalar(y + i, cb + i, cr + i, out, n - i);
}

const struct hr_jpeg_kernels hr__jpeg_kernels_neon = {
    .unstuff = unstuff,
    .make_skip = make_skip,
    .skip = skip_mcus,
    .decode = decode_mcus,
    .idct = {c_idct_1, c_idct_2, idct_4, idct_8},
    .wider = wider,
    .wider_between = wider_between,
    .between = between,
    .rgb = rgb,
};
