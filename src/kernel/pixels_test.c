/*
 * kernel/pixels_test.c - stores and conversions in every form, on every instruction set.
 */
#include "kernel/half.h"
#include "kernel/kernel_test_util.h"
#include "kernel/pixels.h"

#include <math.h>

static double expected(const struct hr_pixels *src, const struct hr_affine *steps,
                       int count, int32_t x, int32_t y, int32_t c)
{
    float v = (float)test_value(src, x, y, c);

    for (int s = 0; s < count; s++) {
        float product = v * steps[s].scale[c];

        v = product + steps[s].bias[c];
    }
    return v;
}

static double as_dtype(double value, enum hr_dtype dtype)
{
    if (dtype == HR_U8)
        return fmin(fmax(nearbyint(value), 0), 255);
    if (dtype == HR_F16)
        return hr__unhalf(hr__half((float)value));
    if (dtype == HR_BF16)
        return hr__unbhalf(hr__bhalf((float)value));
    return value;
}

TEST(any_form_is_stored_as_any_other_on_every_instruction_set)
{
    static const enum hr_dtype ins[] = {HR_U8, HR_F32};
    static const enum hr_dtype outs[] = {HR_U8, HR_F32, HR_F16, HR_BF16};
    struct hr_affine steps[3] = {
        {{.5f, .7f, 1.1f, 1}, {3, 2, -5, 0}       },
        {{1.3f, 1.2f, 1, 1},  {.1f, .2f, .3f, .4f}},
        {{2, 2, 2, 2},        {-9, -9, -9, -9}    }
    };
    struct test_rng rng;

    rng.state = 3;
    for (int round = 0; round < 800; round++) {
        int32_t w = 1 + test_below(&rng, round % 9 ? 80 : 1300),
                h = 1 + test_below(&rng, 3);
        int32_t channels = round % 2 ? 3 : 1 + test_below(&rng, 4);
        struct hr_pixels src =
            test_pixels(ins[test_below(&rng, 2)], w, h, channels, test_below(&rng, 2));
        struct hr_pixels dst =
            test_pixels(outs[test_below(&rng, 4)], w, h, channels, test_below(&rng, 2));
        bool flip_x = test_below(&rng, 2), flip_y = test_below(&rng, 2);
        int count = test_below(&rng, 4);

        test_noise(&src, (uint64_t)round, 300);
        hr__isa_limit(test_isas[test_below(&rng, TEST_ISAS)]);
        hr__pixels_store(&src, &dst, steps, count, flip_x, flip_y);
        for (int32_t y = 0; y < h; y++) {
            if (y + 1 < h)
                CHECK_EQ_INT(*((uint8_t *)test_at(&dst, w, y, 0)), 0xa5);
            for (int32_t x = 0; x < w; x++)
                for (int32_t c = 0; c < channels; c++) {
                    double want = expected(&src, steps, count, flip_x ? w - 1 - x : x,
                                           flip_y ? h - 1 - y : y, c);

                    CHECK(test_value(&dst, x, y, c) == as_dtype(want, dst.dtype));
                }
        }
        hr__free(src.data);
        hr__free(dst.data);
    }
    hr__isa_limit(TEST_BEST);
}

TEST(levels_round_to_even_and_clamp)
{
    float in[8] = {-3, 0.5f, 1.5f, 2.5f, 254.5f, 255.5f, 1e30f, NAN};
    uint8_t out[8], want[8] = {0, 0, 2, 2, 254, 255, 255, 0};
    struct hr_pixels src = {in, HR_F32, 8, 1, 1, 32, 4, 4},
                     dst = {out, HR_U8, 8, 1, 1, 8, 1, 1};

    for (int i = 0; i < TEST_ISAS; i++) {
        hr__isa_limit(test_isas[i]);
        hr__pixels_store(&src, &dst, NULL, 0, false, false);
        CHECK_BYTES(out, want, 8);
    }
}

TEST(halves_round_to_even_and_keep_nan_infinity_and_subnormals)
{
    static const struct {
        float value;
        uint16_t half;
    } known[] = {
        {0,              0     },
        {-0.0f,          0x8000},
        {1,              0x3c00},
        {-2,             0xc000},
        {65504,          0x7bff},
        {65519.996f,     0x7bff},
        {65520,          0x7c00},
        {1e10f,          0x7c00},
        {-1e10f,         0xfc00},
        {0x1p-24f,       1     },
        {0x1p-25f,       0     },
        {0x1.8p-24f,     2     },
        {0x1p-14f,       0x400 },
        {0x1.ff8p-15f,   0x3ff },
        {0x1.ffcp-15f,   0x400 },
        {1.00048828125f, 0x3c00},
        {1.00146484375f, 0x3c02},
        {INFINITY,       0x7c00},
        {0x1p-149f,      0     },
    };

    for (int i = 0; i < TEST_ISAS; i++) {
        hr__isa_limit(test_isas[i]);
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            uint16_t half;

            hr__f32_to_f16(&known[k].value, &half, 1);
            CHECK_EQ_INT(half, known[k].half);
        }
    }
}

TEST(conversions_of_every_pattern_agree_between_instruction_sets)
{
    enum { N = 1 << 16 };
    static float floats[N], back[2][N];
    static uint16_t halves[N], a[N], b[N];
    struct test_rng rng;

    rng.state = 9;
    for (int i = 1; i < TEST_ISAS; i++) {
        for (int k = 0; k < N; k++)
            halves[k] = (uint16_t)k;
        for (int round = 0; round < 8; round++) {
            for (int k = 0; k < N; k++) /* every exponent, random low bits */
                floats[k] = hr__f32_from((uint32_t)k << 16 |
                                         (round == 0   ? 0
                                          : round == 1 ? 0x8000u
                                          : round == 2 ? 0x1000u
                                                       : test_u32(&rng) >> 16));
            hr__isa_limit(HR_ISA_C);
            hr__f32_to_f16(floats, a, N);
            hr__isa_limit(test_isas[i]);
            hr__f32_to_f16(floats, b, N);
            CHECK_BYTES(a, b, sizeof a);
            hr__isa_limit(HR_ISA_C);
            hr__f32_to_bf16(floats, a, N - 1);
            hr__isa_limit(test_isas[i]);
            hr__f32_to_bf16(floats, b, N - 1);
            CHECK_BYTES(a, b, sizeof a - 2);
        }
        hr__isa_limit(HR_ISA_C);
        hr__f16_to_f32(halves, back[0], N);
        hr__isa_limit(test_isas[i]);
        hr__f16_to_f32(halves, back[1], N);
        CHECK_BYTES(back[0], back[1], sizeof back[0]);
        hr__f32_to_f16(back[1], a, N);
        for (int k = 0; k < N; k++)
            CHECK(a[k] == k || (a[k] == (k | 0x200) && (k & 0x7fff) > 0x7c00));
        hr__bf16_to_f32(halves, back[0], N);
        hr__f32_to_bf16(back[0], a, N);
        for (int k = 0; k < N; k++)
            CHECK(a[k] == k || (a[k] == (k | 0x40) && (k & 0x7fff) > 0x7f80));
    }
    hr__isa_limit(TEST_BEST);
}
