/*
 * kernel/half.h - scalar conversion of f32 to and from u8, f16 and bf16, exactly as the
 * vector instructions do: round to nearest even; NaNs become quiet and keep the top of
 * their payload.
 */
#ifndef HR_KERNEL_HALF_H
#define HR_KERNEL_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hr__f32_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float hr__f32_from(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Clamps first (NaN becomes 0); adding 2^23 then rounds to nearest even. */
static inline uint8_t hr__round_u8(float value)
{
    float v = value > 0.0f ? value : 0.0f;

    v = v < 255.0f ? v : 255.0f;
    return (uint8_t)hr__f32_bits(v + 8388608.0f);
}

static inline uint16_t hr__half(float value)
{
    uint32_t bits = hr__f32_bits(value);
    uint32_t sign = bits >> 16 & 0x8000u, mag = bits & 0x7fffffffu;

    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (mag >> 13 & 0x3ffu));
    if (mag >= 0x47800000u) /* 65536 and above; values below that overflow when rounded */
        return (uint16_t)(sign | 0x7c00u);
    if (mag <
        0x38800000u) { /* subnormal: adding 0.5 aligns the units with the lowest bit */
        float v = hr__f32_from(mag) + 0.5f;

        return (uint16_t)(sign | (hr__f32_bits(v) - 0x3f000000u));
    }
    mag += 0xfffu + (mag >> 13 & 1u);
    return (uint16_t)(sign | ((mag - 0x38000000u) >> 13));
}

static inline uint16_t hr__bhalf(float value)
{
    uint32_t bits = hr__f32_bits(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float hr__unhalf(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, mag = half & 0x7fffu;

    if (mag > 0x7c00u)
        return hr__f32_from(sign | 0x7fc00000u | mag << 13);
    if (mag == 0x7c00u)
        return hr__f32_from(sign | 0x7f800000u);
    if (mag < 0x400u) /* exact: a multiple of 2^-24 */
        return hr__f32_from(sign | hr__f32_bits((float)mag * 0x1p-24f));
    return hr__f32_from(sign | ((mag << 13) + 0x38000000u));
}

static inline float hr__unbhalf(uint16_t half)
{
    return hr__f32_from((uint32_t)half << 16);
}

#endif
