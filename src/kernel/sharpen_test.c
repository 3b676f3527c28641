/*
 * kernel/sharpen_test.c - the blend against values worked out by hand, in every form of
 * an image.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/sharpen.h"

#include <math.h>

static void sharpen(const struct hr_pixels *image, double factor)
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__sharpen(&arena, image, factor));
    hr__arena_finish(&arena);
}

/* The middle is 100, its neighbours sum to 280: smooth is (280 + 500) / 13 = 60. */
TEST(the_middle_is_blended_and_the_border_kept)
{
    static const struct {
        double factor;
        uint8_t middle;
    } cases[] = {
        {0,    60 },
        {1,    100},
        {2,    140},
        {0.5,  80 },
        {1.26, 110},
        {9,    255}
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t levels[9] = {0, 10, 20, 30, 100, 40, 50, 60, 70};
        uint8_t wanted[9] = {0, 10, 20, 30, cases[i].middle, 40, 50, 60, 70};
        struct hr_pixels image = hr__pixels_u8(levels, 3, 3, 1);

        sharpen(&image, cases[i].factor);
        CHECK_BYTES(levels, wanted, 9);
    }
}

TEST(an_image_with_a_side_below_three_stays)
{
    uint8_t levels[8] = {1, 255, 3, 4, 90, 6, 70, 8}, wanted[8];
    struct hr_pixels image = hr__pixels_u8(levels, 4, 2, 1);

    memcpy(wanted, levels, 8);
    sharpen(&image, 2);
    CHECK_BYTES(levels, wanted, 8);
}

static double smooth(const struct hr_pixels *image, int32_t x, int32_t y, int32_t c)
{
    double sum = 4 * test_value(image, x, y, c);

    for (int32_t k = 0; k < 9; k++)
        sum += test_value(image, x - 1 + k % 3, y - 1 + k / 3, c);
    return sum / 13;
}

static void check_form(enum hr_dtype dtype, bool planar, struct test_rng *rng)
{
    int32_t w = 1 + test_below(rng, 40), h = 1 + test_below(rng, 30);
    int32_t channels = 1 + test_below(rng, 4);
    struct hr_pixels image = test_pixels(dtype, w, h, channels, planar);
    struct hr_pixels before = test_pixels(dtype, w, h, channels, planar);
    double factor = test_uniform(rng, 0, 2), white = dtype == HR_U8 ? 255 : 1;
    uint64_t seed = test_u32(rng);

    test_noise(&image, seed, 1);
    test_noise(&before, seed, 1);
    sharpen(&image, factor);
    for (int32_t i = 0; i < w * h * channels; i++) {
        int32_t c = i % channels, x = i / channels % w, y = i / channels / w;
        double old = test_value(&before, x, y, c), new = test_value(&image, x, y, c);

        if (w < 3 || h < 3 || x == 0 || y == 0 || x == w - 1 || y == h - 1) {
            CHECK(new == old);
        } else {
            double mean = smooth(&before, x, y, c);
            double blend = old + (1 - factor) * (mean - old);

            blend = fmin(fmax(blend, 0), white);
            CHECK_NEAR(new, blend, dtype == HR_U8 ? 1.5 + 1e-3 : 1e-5);
        }
    }
    hr__free(image.data);
    hr__free(before.data);
}

TEST(sharpening_matches_the_definition_in_every_form)
{
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 200; round++)
        check_form(round % 2 ? HR_U8 : HR_F32, round / 2 % 2, &rng);
}

TEST(every_instruction_set_sharpens_to_the_same_bytes)
{
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 100; round++) {
        int32_t w = 1 + test_below(&rng, 90), h = 1 + test_below(&rng, 6);
        struct hr_pixels wanted = test_pixels(HR_U8, w, h, 3, false);
        struct hr_pixels image = test_pixels(HR_U8, w, h, 3, false);
        double factor = test_below(&rng, 20) / 10.0;
        uint64_t seed = test_u32(&rng);

        test_noise(&wanted, seed, 1);
        hr__isa_limit(HR_ISA_C);
        sharpen(&wanted, factor);
        for (int32_t i = 0; i < TEST_ISAS; i++) {
            test_noise(&image, seed, 1);
            hr__isa_limit(test_isas[i]);
            sharpen(&image, factor);
            for (int32_t k = 0; k < w * h * 3; k++)
                CHECK(test_value(&image, k / 3 % w, k / 3 / w, k % 3) ==
                      test_value(&wanted, k / 3 % w, k / 3 / w, k % 3));
        }
        hr__isa_limit(TEST_BEST);
        hr__free(image.data);
        hr__free(wanted.data);
    }
}
