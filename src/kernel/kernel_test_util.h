/*
 * kernel/kernel_test_util.h - shared by the kernel tests: random images.
 */
#ifndef HR_KERNEL_KERNEL_TEST_UTIL_H
#define HR_KERNEL_KERNEL_TEST_UTIL_H

#include "core/alloc.h"
#include "core/arena.h"
#include "kernel/pixels.h"
#include "tests/support/check.h"
#include "tests/support/isas.h"

#define TEST_BEST HR_ISA_AVX512

/* SplitMix64: core/rng streams are too short for this. */
struct test_rng {
    uint64_t state;
};

static inline uint32_t test_u32(struct test_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

static inline double test_double(struct test_rng *rng)
{
    return test_u32(rng) * 0x1p-32;
}

static inline double test_uniform(struct test_rng *rng, double low, double high)
{
    return low + test_double(rng) * (high - low);
}

/* An image in its own allocation, with 8 bytes of 0xa5 after each row but the last, so
 * that ASan detects overruns. */
static inline struct hr_pixels test_pixels(enum hr_dtype dtype, int32_t width,
                                           int32_t height, int32_t channels, bool planar)
{
    int64_t size = (int64_t)hr_dtype_size(dtype);
    int64_t row = size * width * (planar ? 1 : channels) + 8;
    struct hr_pixels p = {.dtype = dtype,
                          .width = width,
                          .height = height,
                          .channels = channels,
                          .row_stride = row,
                          .pixel_stride = planar ? size : size * channels,
                          .channel_stride = planar ? row * height : size};
    size_t bytes = (size_t)(row * height * (planar ? channels : 1)) - 8;

    p.data = hr__malloc(bytes);
    CHECK(p.data != NULL);
    memset(p.data, 0xa5, bytes);
    return p;
}

static inline size_t test_bytes(const struct hr_pixels *p)
{
    bool planar = p->pixel_stride == (int64_t)hr_dtype_size(p->dtype) &&
                  p->channels > 1 && p->channel_stride > p->row_stride;

    return (size_t)(p->row_stride * p->height * (planar ? p->channels : 1)) - 8;
}

static inline void *test_at(const struct hr_pixels *p, int32_t x, int32_t y, int32_t c)
{
    return (char *)p->data + y * p->row_stride + x * p->pixel_stride +
           c * p->channel_stride;
}

static inline double
test_value(const struct hr_pixels *p, int32_t x, int32_t y, int32_t c)
{
    const void *at = test_at(p, x, y, c);
    uint16_t half;
    float value;

    if (p->dtype == HR_U8)
        return *(const uint8_t *)at;
    if (p->dtype == HR_F32)
        return *(const float *)at;
    memcpy(&half, at, sizeof half);
    if (p->dtype == HR_F16)
        hr__f16_to_f32(&half, &value, 1);
    else
        hr__bf16_to_f32(&half, &value, 1);
    return value;
}

static inline void
test_set(const struct hr_pixels *p, int32_t x, int32_t y, int32_t c, double value)
{
    void *at = test_at(p, x, y, c);

    if (p->dtype == HR_U8)
        *(uint8_t *)at = (uint8_t)value;
    else
        *(float *)at = (float)value;
}

/* Noise over all levels; f32 in [0, max). */
static inline void test_noise(const struct hr_pixels *p, uint64_t seed, double max)
{
    struct test_rng rng;

    rng.state = seed;
    for (int32_t y = 0; y < p->height; y++)
        for (int32_t x = 0; x < p->width; x++)
            for (int32_t c = 0; c < p->channels; c++)
                test_set(p, x, y, c, test_double(&rng) * (p->dtype == HR_U8 ? 256 : max));
}

static inline int32_t test_below(struct test_rng *rng, int32_t n)
{
    return (int32_t)(test_u32(rng) % (uint32_t)n);
}

#endif
