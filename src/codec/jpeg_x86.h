/*
 * codec/jpeg_x86.h - transforms, skip tables and colour conversion for AVX2 and AVX-512.
 *
 * The includer defines VEC, the register type; V(op), its intrinsic of that name; and
 * LANES, its number of 128-bit lanes. A lane holds a row of one block, so the same source
 * serves two or four blocks at once; only the last step, which stores the blocks' bytes
 * side by side, differs (put_bytes8, put_rows4).
 */
#include "codec/jpeg_idct.h"

#include <immintrin.h>

#define VEC_INLINE static inline __attribute__((always_inline))
#define MIDDLE 128 /* the level of 0 */

/* Pairs (a, b) of 16 bits for madd, in every lane. */
VEC_INLINE VEC pairs(int a, int b)
{
    return V(set1_epi32)((int)((uint32_t)(uint16_t)a | (uint32_t)b << 16));
}

/* The smallest and largest values so far, per lane. */
struct range {
    VEC min, max;
};

VEC_INLINE struct range no_range(void)
{
    return (struct range){V(setzero_si)(), V(setzero_si)()};
}

VEC_INLINE void widen_range(struct range *range, VEC v)
{
    range->min = V(min_epi16)(range->min, v);
    range->max = V(max_epi16)(range->max, v);
}

/* True if all values are from -max - 1 to max, plus `more`. */
VEC_INLINE bool is_within(const struct range *range, int max, int more)
{
    VEC low = V(subs_epi16)(V(set1_epi16)((short)(more - max - 1)), range->min);
    VEC high = V(subs_epi16)(range->max, V(set1_epi16)((short)(more + max)));

    return IS_ALL_UPTO_0(V(max_epi16)(low, high));
}

struct couples {
    VEC v[2]; /* a and b interleaved: the low half of each lane, then the high half */
};

struct sums {
    VEC v[2]; /* 32 bits */
};

VEC_INLINE struct couples interleave(VEC a, VEC b)
{
    return (struct couples){
        {V(unpacklo_epi16)(a, b), V(unpackhi_epi16)(a, b)}
    };
}

VEC_INLINE struct sums multiply(struct couples pair, int a, int b)
{
    VEC by = pairs(a, b);

    return (struct sums){
        {V(madd_epi16)(pair.v[0], by), V(madd_epi16)(pair.v[1], by)}
    };
}

VEC_INLINE struct sums plus(struct sums a, struct sums b)
{
    return (struct sums){
        {V(add_epi32)(a.v[0], b.v[0]), V(add_epi32)(a.v[1], b.v[1])}
    };
}

VEC_INLINE struct sums minus(struct sums a, struct sums b)
{
    return (struct sums){
        {V(sub_epi32)(a.v[0], b.v[0]), V(sub_epi32)(a.v[1], b.v[1])}
    };
}

/* Descales; `more` is added to the result. */
VEC_INLINE VEC narrow(struct sums a, int shift, int more)
{
    VEC round = V(set1_epi32)((1 << (shift - 1)) + (more << shift));

    return V(packs_epi32)(V(srai_epi32)(V(add_epi32)(a.v[0], round), shift),
                          V(srai_epi32)(V(add_epi32)(a.v[1], round), shift));
}

/* 16 bits widened to 32 and multiplied by 2^shift. */
VEC_INLINE struct sums shifted(VEC a, int shift)
{
    struct couples h = interleave(V(xor_si)(a, a), a);

    return (struct sums){
        {V(srai_epi32)(h.v[0], 16 - shift), V(srai_epi32)(h.v[1], 16 - shift)}
    };
}

VEC_INLINE VEC add_saturated(VEC a, VEC b)
{
    return V(adds_epi16)(a, b);
}

VEC_INLINE VEC subtract_saturated(VEC a, VEC b)
{
    return V(subs_epi16)(a, b);
}

VEC_INLINE void transpose8(VEC r[8])
{
    VEC a[8], b[8];

    for (int i = 0; i < 4; i++) {
        a[2 * i] = V(unpacklo_epi16)(r[2 * i], r[2 * i + 1]);
        a[2 * i + 1] = V(unpackhi_epi16)(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        b[4 * i] = V(unpacklo_epi32)(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = V(unpackhi_epi32)(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = V(unpacklo_epi32)(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = V(unpackhi_epi32)(a[4 * i + 1], a[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        r[2 * i] = V(unpacklo_epi64)(b[i], b[i + 4]);
        r[2 * i + 1] = V(unpackhi_epi64)(b[i], b[i + 4]);
    }
}

/* Row k of LANES blocks of a group, from block `b`, dequantised; clears the
 * coefficients. */
VEC_INLINE VEC take_row(int16_t *group, const int16_t *quant, int k, int b)
{
    int16_t *at = group + 32 * k + 8 * b;
    VEC steps = EVERY_LANE(_mm_loadu_si128((const void *)(quant + 8 * k)));
    VEC v = V(mullo_epi16)(LOAD(at), steps);

    STORE(at, V(xor_si)(v, v));
    return v;
}

/* Stores rows k and k + 1 of LANES blocks as bytes. */
VEC_INLINE void put_rows8(VEC even, VEC odd, uint8_t *out, ptrdiff_t stride)
{
    put_bytes8(V(packus_epi16)(even, odd), out, stride);
}

#include "codec/jpeg_passes.h"

/* The second pass on pairs of columns: c[i] has columns 2i and 2i + 1, four values each.
 * Uses only half of the registers. Outputs bytes by columns. */
VEC_INLINE VEC pass4_end(const VEC c[4], struct range *range)
{
    VEC zero = V(xor_si)(c[0], c[0]);
    VEC round = V(set1_epi32)((1 << SHIFT_END) + (MIDDLE << (SHIFT_END + 1)));
    VEC t0 = V(srai_epi32)(V(unpacklo_epi16)(zero, c[0]), 2);
    VEC t2 = V(madd_epi16)(V(unpacklo_epi16)(c[1], c[3]), pairs(F_1_847, -F_0_765));
    VEC p37 = V(unpackhi_epi16)(c[1], c[3]), p15 = V(unpackhi_epi16)(c[0], c[2]);
    VEC o0 = V(add_epi32)(V(madd_epi16)(p37, pairs(-F_2_172, -F_0_211)),
                          V(madd_epi16)(p15, pairs(F_1_061, F_1_451)));
    VEC o2 = V(add_epi32)(V(madd_epi16)(p37, pairs(F_0_899, -F_0_509)),
                          V(madd_epi16)(p15, pairs(F_2_562, -F_0_601)));
    VEC high = V(add_epi32)(V(add_epi32)(t0, t2), round);
    VEC low = V(add_epi32)(V(sub_epi32)(t0, t2), round);
    VEC v0 = V(srai_epi32)(V(add_epi32)(high, o2), SHIFT_END + 1);
    VEC v1 = V(srai_epi32)(V(add_epi32)(low, o0), SHIFT_END + 1);
    VEC v2 = V(srai_epi32)(V(sub_epi32)(low, o0), SHIFT_END + 1);
    VEC v3 = V(srai_epi32)(V(sub_epi32)(high, o2), SHIFT_END + 1);

    v0 = V(packs_epi32)(v0, v1);
    v2 = V(packs_epi32)(v2, v3);
    widen_range(range, v0);
    widen_range(range, v2);
    return V(packus_epi16)(v0, v2);
}

static bool idct_4(int16_t *groups, const int16_t *quant, int32_t count, uint8_t *out,
                   ptrdiff_t stride)
{
    const VEC upright =
        EVERY_LANE(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));

    struct range between = no_range(), range = between;

    for (; count > 0; count--, groups += HR_JPEG_GROUP, out += 16) {
        for (int b = 0; b < 4; b += LANES) {
            VEC r[8], m[4], p, q, c[4];

            for (int k = 0; k < 8; k++)
                r[k] = take_row(groups, quant, k, b);
            pass4(r, SHIFT_BETWEEN + 1, 0, m);
            for (int k = 0; k < 4; k++)
                widen_range(&between, m[k]);
            p = V(unpacklo_epi16)(m[0], m[1]);
            q = V(unpacklo_epi16)(m[2], m[3]);
            c[0] = V(unpacklo_epi32)(p, q);
            c[1] = V(unpackhi_epi32)(p, q);
            p = V(unpackhi_epi16)(m[0], m[1]);
            q = V(unpackhi_epi16)(m[2], m[3]);
            c[2] = V(unpacklo_epi32)(p, q);
            c[3] = V(unpackhi_epi32)(p, q);
            put_rows4(V(shuffle_epi8)(pass4_end(c, &range), upright), out + 4 * b,
                      stride);
        }
    }
    return is_within(&between, BETWEEN_MAX, 0) && is_within(&range, RESULT_MAX, MIDDLE);
}

/* The second pass of the 2x2 transform on two rows, m[0] and m[1]. The first four values
 * of a lane: the left ones of both rows, then the right ones. */
VEC_INLINE VEC pass2_end(const VEC m[2], struct range *range)
{
    const VEC weights =
        EVERY_LANE(_mm_setr_epi16(0, F_3_624, 0, -F_1_272, 0, F_0_850, 0, -F_0_720));
    VEC round = V(set1_epi32)((1 << (SHIFT_END + 1)) + (MIDDLE << (SHIFT_END + 2)));
    VEC even = V(add_epi32)(
        V(srai_epi32)(V(slli_epi32)(V(unpacklo_epi32)(m[0], m[1]), 16), 1), round);
    VEC top = V(madd_epi16)(m[0], weights), bottom = V(madd_epi16)(m[1], weights);
    VEC odd =
        V(add_epi32)(V(unpacklo_epi32)(top, bottom), V(unpackhi_epi32)(top, bottom));
    VEC v;

    odd = V(add_epi32)(odd, V(shuffle_epi32)(odd, 0x4E));
    v = V(unpacklo_epi64)(V(add_epi32)(even, odd), V(sub_epi32)(even, odd));
    v = V(srai_epi32)(v, SHIFT_END + 2);
    v = V(packs_epi32)(v, v);
    widen_range(range, v);
    return V(packus_epi16)(v, v);
}

static bool idct_2(int16_t *groups, const int16_t *quant, int32_t count, uint8_t *out,
                   ptrdiff_t stride)
{
    struct range between = no_range(), range = between;

    for (; count > 0; count--, groups += HR_JPEG_GROUP, out += 8) {
        for (int b = 0; b < 4; b += LANES) {
            VEC r[8], m[2];
            uint8_t bytes[LANES][16];

            for (int k = 0; k < 8; k++)
                r[k] = take_row(groups, quant, k, b);
            pass2(r, SHIFT_BETWEEN + 2, 0, m);
            widen_range(&between, m[0]);
            widen_range(&between, m[1]);
            STORE((void *)bytes, pass2_end(m, &range));
            for (int lane = 0; lane < LANES; lane++) {
                uint8_t *to = out + 2 * (b + lane);

                to[0] = bytes[lane][0];
                to[1] = bytes[lane][2];
                to[stride] = bytes[lane][1];
                to[stride + 1] = bytes[lane][3];
            }
        }
    }
    return is_within(&between, BETWEEN_MAX, 0) && is_within(&range, RESULT_MAX, MIDDLE);
}

/* Negative where an entry must not be chained: its code must lie in the known bits, the
 * total in 15, and nothing may follow the end of a block. */
VEC_INLINE VEC must_not_chain(VEC bits, VEC sum, VEC step, VEC more)
{
    VEC length = V(srli_epi32)(step, 16);
    VEC known = V(sub_epi32)(V(sub_epi32)(V(set1_epi32)(HR_JPEG_BITS), bits), length);
    VEC room = V(sub_epi32)(V(sub_epi32)(V(set1_epi32)(15), bits), more);
    VEC open = V(sub_epi32)(V(set1_epi32)(HR_JPEG_END - 1), sum);
    VEC some = V(sub_epi32)(more, V(set1_epi32)(1));

    return V(or_si)(V(or_si)(known, room), V(or_si)(open, some));
}

/* Like make_skip, with records_points: 2 us per table instead of 9. */
static void make_skip_gather(struct hr_jpeg_table *table)
{
    const VEC low = V(set1_epi32)(255), index = V(set1_epi32)(HR_JPEG_LOOKS - 1);

    for (int i = 0; i < HR_JPEG_LOOKS; i += 4 * LANES) {
        VEC at = V(add_epi32)(FIRST_INTEGERS, V(set1_epi32)(i));
        VEC step = LOAD(table->step + i), bits = V(setzero_si)(), sum = bits;

        for (int round = 0; round < 4; round++) {
            VEC more, bad;

            if (round > 0)
                step = GATHER(table->step, V(and_si)(V(sllv_epi32)(at, bits), index));
            more = V(and_si)(step, low);
            bad = V(srai_epi32)(must_not_chain(bits, sum, step, more), 31);
            bits = V(add_epi32)(bits, V(andnot_si)(bad, more));
            more = V(and_si)(V(srli_epi32)(step, 8), low);
            sum = V(add_epi32)(sum, V(andnot_si)(bad, more));
        }
        store_low_halves(table->skip + i, V(or_si)(V(slli_epi32)(sum, 8), bits));
    }
    table->skips = true;
}

/* The 16-bit terms of the colour conversion (see rgb_scalar): k * x rounded to a multiple
 * of 2^-16 is (floor(2 k x) + 1) / 2, which 16-bit multiplications compute once the
 * integer part of k is taken out. `pair` is (cb, cr) for green, whose sum needs 32
 * bits. */
VEC_INLINE VEC part_of(VEC x, int k)
{
    VEC twice = V(mulhi_epi16)(V(add_epi16)(x, x), V(set1_epi16)((short)k));

    return V(srai_epi16)(V(add_epi16)(twice, V(set1_epi16)(1)), 1);
}

struct colours {
    VEC r, g, b;
};

VEC_INLINE struct colours colours_of(VEC y, VEC cb, VEC cr)
{
    VEC middle = V(set1_epi16)(128), round = V(set1_epi32)(32768);
    VEC b = V(sub_epi16)(cb, middle), r = V(sub_epi16)(cr, middle);
    struct sums green = multiply(interleave(b, r), -22554, 65536 - 46802);
    VEC g = V(packs_epi32)(V(srai_epi32)(V(add_epi32)(green.v[0], round), 16),
                           V(srai_epi32)(V(add_epi32)(green.v[1], round), 16));

    return (struct colours){
        .r = V(add_epi16)(y, V(add_epi16)(r, part_of(r, 91881 - 65536))),
        .g = V(add_epi16)(y, V(sub_epi16)(g, r)),
        .b = V(add_epi16)(y,
                          V(add_epi16)(V(add_epi16)(b, b), part_of(b, 116130 - 131072))),
    };
}
