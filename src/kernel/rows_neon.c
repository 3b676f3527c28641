/*
 * kernel/rows_neon.c - the row functions for NEON, which every aarch64 has.
 *
 * Three interleaved channels use NEON's structure loads and stores. Ends of rows are done
 * as in rows_avx2.c. The horizontal f32 resize is plain C: it sums tap by tap, and NEON
 * has no gathers.
 */
#include "kernel/half.h"
#include "kernel/rows.h"
#include "kernel/warp_pixel.h"

#define VL 4
#include "kernel/rows_float.h"
#include "kernel/rows_pack.h"

#include <arm_neon.h>
#include <string.h>

static inline float32x4_t scaled(float32x4_t v, float scale, float bias)
{
    return vaddq_f32(vmulq_n_f32(v, scale), vdupq_n_f32(bias));
}

/* Stores v * scale + bias to elements [i, i + 4) of n, or to their mirrored positions. */
HR_INLINE void
finish4(float *out, size_t n, size_t i, float32x4_t v, float scale, float bias, bool flip)
{
    v = scaled(v, scale, bias);
    if (flip) {
        v = vrev64q_f32(v);
        vst1q_f32(out + (n - i - 4), vextq_f32(v, v, 2));
    } else {
        vst1q_f32(out + i, v);
    }
}

/* The same for the words [i, i + 8). */
HR_INLINE void
finish8(float *out, size_t n, size_t i, uint16x8_t v, float scale, float bias, bool flip)
{
    float32x4_t low = vcvtq_f32_u32(vmovl_u16(vget_low_u16(v)));
    float32x4_t high = vcvtq_f32_u32(vmovl_high_u16(v));

    finish4(out, n, i, low, scale, bias, flip);
    finish4(out, n, i + 4, high, scale, bias, flip);
}

static void
u8_to_f32(const uint8_t *in, float *out, size_t n, float scale, float bias, bool flip)
{
    if (n < 8) {
        hr__rows_c.u8_to_f32(in, out, n, scale, bias, flip);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;

        finish8(out, n, i, vmovl_u8(vld1_u8(in + i)), scale, bias, flip);
    }
}

/* May run in place, so the end must not be processed twice. */
static void
f32_to_f32(const float *in, float *out, size_t n, float scale, float bias, bool flip)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        finish4(out, n, i, vld1q_f32(in + i), scale, bias, flip);
    hr__rows_c.f32_to_f32(in + i, flip ? out : out + i, n - i, scale, bias, flip);
}

HR_INLINE void u8x3_loop(const uint8_t *in, float *const out[], size_t n,
                         const float scale[], const float bias[], bool flip)
{
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        uint8x8x3_t p = vld3_u8(in + 3 * i);

        for (int c = 0; c < 3; c++)
            finish8(out[c], n, i, vmovl_u8(p.val[c]), scale[c], bias[c], flip);
    }
}

static void u8x3_to_f32(const uint8_t *in, float *const out[], size_t n,
                        const float scale[], const float bias[], bool flip)
{
    if (n < 8)
        hr__rows_c.u8x3_to_f32(in, out, n, scale, bias, flip);
    else if (flip)
        u8x3_loop(in, out, n, scale, bias, true);
    else
        u8x3_loop(in, out, n, scale, bias, false);
}

static void f32x3_to_f32(const float *in, float *const out[], size_t n,
                         const float scale[], const float bias[], bool flip)
{
    if (n < 4) {
        hr__rows_c.f32x3_to_f32(in, out, n, scale, bias, flip);
        return;
    }
    for (size_t at = 0; at < n; at += 4) {
        size_t i = at + 4 <= n ? at : n - 4;
        float32x4x3_t p = vld3q_f32(in + 3 * i);

        for (int c = 0; c < 3; c++)
            finish4(out[c], n, i, p.val[c], scale[c], bias[c], flip);
    }
}

static void f32_to_f32x3(const float *const in[], float *out, size_t n)
{
    if (n < 4) {
        hr__rows_c.f32_to_f32x3(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 4) {
        size_t i = at + 4 <= n ? at : n - 4;
        float32x4x3_t p = {
            {vld1q_f32(in[0] + i), vld1q_f32(in[1] + i), vld1q_f32(in[2] + i)}
        };

        vst3q_f32(out + 3 * i, p);
    }
}

/* Rounds to nearest even; NaN and values below 0 become 0, values above 65535 become
 * 65535. */
static inline uint16x4_t levels4(const float *in)
{
    return vqmovn_u32(vcvtnq_u32_f32(vld1q_f32(in)));
}

static inline uint8x8_t levels8(const float *in)
{
    return vqmovn_u16(vcombine_u16(levels4(in), levels4(in + 4)));
}

static void f32_to_u8(const float *in, uint8_t *out, size_t n)
{
    if (n < 8) {
        hr__rows_c.f32_to_u8(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;

        vst1_u8(out + i, levels8(in + i));
    }
}

static void f32_to_u8x3(const float *const in[], uint8_t *out, size_t n)
{
    if (n < 8) {
        hr__rows_c.f32_to_u8x3(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        uint8x8x3_t p = {
            {levels8(in[0] + i), levels8(in[1] + i), levels8(in[2] + i)}
        };

        vst3_u8(out + 3 * i, p);
    }
}

static void f32_to_f16(const float *in, uint16_t *out, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(in + i))));
    hr__rows_c.f32_to_f16(in + i, out + i, n - i);
}

static inline uint16x4_t bhalf4(const float *in)
{
    float32x4_t v = vld1q_f32(in);
    uint32x4_t bits = vreinterpretq_u32_f32(v);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t up = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));

    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), up, quiet), 16);
}

static void f32_to_bf16(const float *in, uint16_t *out, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1_u16(out + i, bhalf4(in + i));
    hr__rows_c.f32_to_bf16(in + i, out + i, n - i);
}

static void f16_to_f32(const uint16_t *in, float *out, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(in + i))));
    hr__rows_c.f16_to_f32(in + i, out + i, n - i);
}

static void bf16_to_f32(const uint16_t *in, float *out, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        uint32x4_t bits = vshll_n_u16(vld1_u16(in + i), 16);

        vst1q_f32(out + i, vreinterpretq_f32_u32(bits));
    }
    hr__rows_c.bf16_to_f32(in + i, out + i, n - i);
}

static void join3_u16(const uint16_t *const in[], uint16_t *out, size_t n)
{
    if (n < 8) {
        hr__rows_c.join3_u16(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        uint16x8x3_t p = {
            {vld1q_u16(in[0] + i), vld1q_u16(in[1] + i), vld1q_u16(in[2] + i)}
        };

        vst3q_u16(out + 3 * i, p);
    }
}

/* 16 columns, widened to 16 bits and accumulated in 32 bits. */
HR_INLINE void down_16(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                       int16_t *out, size_t i, int shift)
{
    int32x4_t sum0 = vdupq_n_s32(shift > 0 ? 1 << (shift - 1) : 0);
    int32x4_t sum1 = sum0, sum2 = sum0, sum3 = sum0, by = vdupq_n_s32(-shift);

    for (int32_t k = 0; k < taps; k++) {
        uint8x16_t v = vld1q_u8(row[k] + i);
        int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(v)));
        int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(v));
        int16_t w = weight[k];

        sum0 = vmlal_n_s16(sum0, vget_low_s16(low), w);
        sum1 = vmlal_high_n_s16(sum1, low, w);
        sum2 = vmlal_n_s16(sum2, vget_low_s16(high), w);
        sum3 = vmlal_high_n_s16(sum3, high, w);
    }
    vst1q_s16(out + i, vcombine_s16(vqmovn_s32(vshlq_s32(sum0, by)),
                                    vqmovn_s32(vshlq_s32(sum1, by))));
    vst1q_s16(out + i + 8, vcombine_s16(vqmovn_s32(vshlq_s32(sum2, by)),
                                        vqmovn_s32(vshlq_s32(sum3, by))));
}

static void down_u8(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                    int16_t *out, size_t n, int shift)
{
    if (n < 16) {
        hr__rows_c.down_u8(row, weight, taps, out, n, shift);
        return;
    }
    for (size_t at = 0; at < n; at += 16)
        down_16(row, weight, taps, out, at + 16 <= n ? at : n - 16, shift);
}

static void split3_i16(const int16_t *in, int16_t *const out[], size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        int16x8x3_t p = vld3q_s16(in + 3 * i);

        for (int c = 0; c < 3; c++)
            vst1q_s16(out[c] + i, p.val[c]);
    }
}

static inline float32x4_t finish_sums(int32x4_t sum, const struct hr_finish *finish)
{
    if (finish->round) {
        sum = vaddq_s32(sum, vdupq_n_s32(1 << (finish->shift - 1)));
        sum = vshlq_s32(sum, vdupq_n_s32(-finish->shift));
        sum = vminq_s32(vmaxq_s32(sum, vdupq_n_s32(0)), vdupq_n_s32(255));
    }
    return scaled(vcvtq_f32_s32(sum), finish->scale, finish->bias);
}

static inline void across_store(float *out, int32_t count, const int32x4_t sum[2],
                                const struct hr_finish *finish)
{
    float32x4_t low = finish_sums(sum[0], finish), high = finish_sums(sum[1], finish);

    if (count >= 8) {
        vst1q_f32(out, low);
        vst1q_f32(out + 4, high);
    } else {
        float some[8];

        vst1q_f32(some, low);
        vst1q_f32(some + 4, high);
        memcpy(out, some, (size_t)count * sizeof *out);
    }
}

/* The eight products of a lane, not yet summed per output. */
struct across_sum {
    int32x4_t low, high;
};

/* Four outputs: adds neighbouring products until one per output is left. */
HR_INLINE int32x4_t add_up(const struct across_sum sum[], int l, int form)
{
    int32x4_t part[4];

    for (int r = 0; r < 1 << form; r++)
        part[r] = vpaddq_s32(sum[2 * r + l].low, sum[2 * r + l].high);
    if (form == ACROSS_4X2)
        return part[0];
    part[0] = vpaddq_s32(part[0], part[1]);
    if (form == ACROSS_2X4)
        return part[0];
    return vpaddq_s32(part[0], vpaddq_s32(part[2], part[3]));
}

/* One step of a group: 16 words of each row. `form` and `channels` are constants. */
HR_INLINE void
across_step(const struct across_group *group, const int16_t *const row[], int32_t from,
            const int16_t *weights, int form, int channels, struct across_sum sum[][8])
{
#pragma GCC unroll 8
    for (int lane = 0; lane < 2 << form; lane++) { /* lane l of register r is 2 r + l */
        int r = lane / 2, l = lane % 2;
        int16x8_t weight = vld1q_s16(weights + 8 * lane);

#pragma GCC unroll 3
        for (int c = 0; c < channels; c++) {
            int16x8_t v = vld1q_s16(row[c] + from + group->base[r][l]);
            struct across_sum *s = &sum[c][lane];

            if (form != ACROSS_1X8)
                v = vreinterpretq_s16_u8(vqtbl1q_u8(
                    vreinterpretq_u8_s16(v), vld1q_u8(group->shuffle[r] + 16 * l)));
            s->low = vmlal_s16(s->low, vget_low_s16(v), vget_low_s16(weight));
            s->high = vmlal_high_s16(s->high, v, weight);
        }
    }
}

/* `form` and `channels` are constants at each call. */
HR_INLINE void
across_loop(const struct hr_axis *x, const int16_t *const row[], float *const out[],
            const struct hr_finish finish[], int form, int channels)
{
    const char *at = (const char *)x->packed + sizeof(struct across);
    const int taps = across_taps(form), step_bytes = 32 * across_registers(form);

    for (int32_t i = 0; i < x->count; i += 8) {
        const struct across_group *group = (const void *)at;
        struct across_sum sum[3][8];

#pragma GCC unroll 3
        for (int c = 0; c < channels; c++)
#pragma GCC unroll 8
            for (int lane = 0; lane < 2 << form; lane++)
                sum[c][lane] = (struct across_sum){vdupq_n_s32(0), vdupq_n_s32(0)};
        at += sizeof *group;
        for (int32_t k = 0; k < group->steps; k++, at += step_bytes)
            across_step(group, row, k * taps, (const void *)at, form, channels, sum);
#pragma GCC unroll 3
        for (int c = 0; c < channels; c++) {
            int32x4_t both[2] = {add_up(sum[c], 0, form), add_up(sum[c], 1, form)};

            across_store(out[c] + i, x->count - i, both, &finish[c]);
        }
    }
}

static void pack(struct hr_axis *x)
{
    across_pack(x, across_form(x));
}

/* Two (chroma) or three channels share weights and shuffles if the sums fit in
 * registers. */
static void
across_i16(const struct hr_axis *x, const int16_t *const row[], float *const out[],
           const struct hr_finish finish[], int32_t channels)
{
    int form = ((const struct across *)x->packed)->form;

    if (channels == 3 && form == ACROSS_4X2) {
        across_loop(x, row, out, finish, ACROSS_4X2, 3);
        return;
    }
    if (channels == 2 && form == ACROSS_4X2) {
        across_loop(x, row, out, finish, ACROSS_4X2, 2);
        return;
    }
    for (int32_t c = 0; c < channels; c++) {
        if (form == ACROSS_4X2)
            across_loop(x, row + c, out + c, finish + c, ACROSS_4X2, 1);
        else if (form == ACROSS_2X4)
            across_loop(x, row + c, out + c, finish + c, ACROSS_2X4, 1);
        else
            across_loop(x, row + c, out + c, finish + c, ACROSS_1X8, 1);
    }
}

static void
across_f32(const struct hr_axis *x, const float *row, float *out, float scale, float bias)
{
    hr__rows_c.across_f32(x, row, out, scale, bias);
}

/* Words 0 to 2 are the left neighbour, 3 to 5 the right one; blends them by fx. */
static inline uint16x4_t blend_across(const uint8_t *at, uint16_t fx)
{
    uint16x8_t v = vmovl_u8(vld1_u8(at));
    uint16x4_t right = vget_low_u16(vextq_u16(v, v, 3));
    uint32x4_t sum = vmull_n_u16(vget_low_u16(v), (uint16_t)((1 << HR_WARP_PART) - fx));

    return vrshrn_n_u32(vmlal_n_u16(sum, right, fx), 4);
}

/* One pixel in the low three bytes. */
static inline uint32_t
warp_pixel(const uint8_t *data, int64_t row_stride, int64_t x, int64_t y)
{
    const uint8_t *at = data + (y >> HR_WARP_BITS) * row_stride + 3 * (x >> HR_WARP_BITS);
    uint16_t fx = (uint16_t)hr__warp_part(x), fy = (uint16_t)hr__warp_part(y);
    uint16x4_t above = blend_across(at, fx);
    uint16x4_t below = blend_across(at + row_stride, fx);
    uint32x4_t sum = vmull_n_u16(above, (uint16_t)((1 << HR_WARP_PART) - fy));
    uint16x4_t v = vmovn_u32(vrshrq_n_u32(vmlal_n_u16(sum, below, fy), 18));

    return vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(v, v))), 0);
}

/* Writes four bytes for each pixel but the last. */
static void warp_rgb(const struct hr_warp_run *run, uint8_t *out, int32_t n)
{
    int64_t x = run->x, y = run->y;

    for (int32_t i = 0; i < n; i++, x += run->dx, y += run->dy, out += 3) {
        uint32_t pixel = warp_pixel(run->data, run->row_stride, x, y);

        memcpy(out, &pixel, i + 1 < n ? 4 : 3);
    }
}

static void places_rgb(const struct hr_warp_places *places, uint8_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++, out += 3) {
        uint32_t pixel =
            warp_pixel(places->data, places->row_stride, places->x[i], places->y[i]);

        memcpy(out, &pixel, i + 1 < n ? 4 : 3);
    }
}

const struct hr_rows hr__rows_neon = {
    .u8_to_f32 = u8_to_f32,
    .f32_to_f32 = f32_to_f32,
    .u8x3_to_f32 = u8x3_to_f32,
    .f32x3_to_f32 = f32x3_to_f32,
    .f32_to_f32x3 = f32_to_f32x3,
    .f32_to_u8 = f32_to_u8,
    .f32_to_u8x3 = f32_to_u8x3,
    .f32_to_f16 = f32_to_f16,
    .f32_to_bf16 = f32_to_bf16,
    .f16_to_f32 = f16_to_f32,
    .bf16_to_f32 = bf16_to_f32,
    .join3_u16 = join3_u16,
    .down_u8 = down_u8,
    .split3_i16 = split3_i16,
    .across_i16 = across_i16,
    .pack_bytes = across_bytes,
    .pack = pack,
    .across_f32 = across_f32,
    .warp_rgb = warp_rgb,
    .places_rgb = places_rgb,
    HR_ROWS_FLOAT,
};
