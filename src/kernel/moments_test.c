/*
 * kernel/moments_test.c - mean and deviation against sums in double, on every instruction
 * set.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/moments.h"

#include <math.h>

/* In double, over all levels. */
static void
reference(const struct hr_pixels *src, double *ret_mean, double *ret_deviation)
{
    double count = (double)src->width * src->height * src->channels, sum = 0, square = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int32_t y = 0; y < src->height; y++)
            for (int32_t x = 0; x < src->width; x++)
                for (int32_t c = 0; c < src->channels; c++) {
                    double level = test_value(src, x, y, c);

                    if (pass == 0)
                        sum += level;
                    else
                        square += (level - sum / count) * (level - sum / count);
                }
    *ret_mean = sum / count;
    *ret_deviation = sqrt(square / count);
}

TEST(moments_match_sums_in_double_and_are_the_same_on_every_instruction_set)
{
    struct test_rng rng = {check_seed()};

    for (int i = 0; i < 60; i++) {
        enum hr_dtype dtype = i % 2 == 0 ? HR_U8 : HR_F32;
        double max = i % 4 == 1 ? 1e-3 : 255, mean, deviation, first[2] = {0};
        struct hr_pixels src =
            test_pixels(dtype, 1 + test_below(&rng, 90), 1 + test_below(&rng, 40),
                        1 + i % 4, i % 3 == 0);

        test_noise(&src, test_u32(&rng), max);
        reference(&src, &mean, &deviation);
        for (int32_t k = 0; k < TEST_ISAS; k++) {
            double got[2];
            struct hr_arena arena;

            hr__isa_limit(test_isas[k]);
            hr__arena_init(&arena);
            CHECK_OK(hr__pixels_moments(&arena, &src, &got[0], &got[1]));
            hr__arena_finish(&arena);
            CHECK_NEAR(got[0], mean, 1e-5 * max);
            CHECK_NEAR(got[1], deviation, 1e-5 * max);
            if (k == 0)
                memcpy(first, got, sizeof got);
            CHECK_BYTES(got, first, sizeof got);
        }
        hr__isa_limit(TEST_BEST);
        hr__free(src.data);
    }
}
