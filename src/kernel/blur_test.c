/*
 * kernel/blur_test.c - the blur against a simple reference, on every instruction set.
 */
#include "kernel/blur.h"
#include "kernel/kernel_test_util.h"

#include <math.h>

static int32_t mirror(int32_t i, int32_t n)
{
    while (n > 1 && (i < 0 || i >= n))
        i = i < 0 ? -i : 2 * (n - 1) - i;
    return n == 1 ? 0 : i;
}

static double tap(int32_t d, int32_t size, double sigma)
{
    double sum = 0;

    for (int32_t k = -(size / 2); k <= size / 2; k++)
        sum += exp(-k * k / (2 * sigma * sigma));
    return exp(-d * d / (2 * sigma * sigma)) / sum;
}

/* All taps, in two dimensions, in double. */
static double reference(const struct hr_pixels *src, int32_t x, int32_t y, int32_t c,
                        int32_t size_x, int32_t size_y, double sx, double sy)
{
    double sum = 0;

    for (int32_t j = -(size_y / 2); j <= size_y / 2; j++)
        for (int32_t i = -(size_x / 2); i <= size_x / 2; i++)
            sum +=
                tap(i, size_x, sx) * tap(j, size_y, sy) *
                test_value(src, mirror(x + i, src->width), mirror(y + j, src->height), c);
    return sum;
}

static void run(const struct hr_pixels *src, const struct hr_pixels *dst, int32_t size_x,
                int32_t size_y, double sx, double sy)
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__blur_run(&arena, src, dst, size_x, size_y, (float)sx, (float)sy));
    hr__arena_finish(&arena);
}

TEST(blur_matches_the_reference_in_every_form_and_on_tiny_images)
{
    static const int32_t shapes[][4] = {
        {23, 14, 11, 11},
        {1,  1,  11, 11},
        {2,  3,  11, 7 },
        {3,  40, 5,  23},
        {40, 5,  23, 3 },
        {9,  9,  1,  1 },
    };
    struct test_rng rng = {12};

    for (size_t s = 0; s < 4 * sizeof shapes / sizeof *shapes; s++) {
        const int32_t *shape = shapes[s / 4];
        bool u8 = s & 1, planar = s & 2;
        int32_t channels = 1 + test_below(&rng, 4);
        struct hr_pixels src =
            test_pixels(u8 ? HR_U8 : HR_F32, shape[0], shape[1], channels, planar);
        struct hr_pixels dst =
            test_pixels(u8 ? HR_U8 : HR_F32, shape[0], shape[1], channels, planar);
        double sx = test_uniform(&rng, .1, 4), sy = test_uniform(&rng, .1, 4);

        test_noise(&src, s, 255);
        run(&src, &dst, shape[2], shape[3], sx, sy);
        for (int32_t y = 0; y < shape[1]; y++)
            for (int32_t x = 0; x < shape[0]; x++)
                CHECK_NEAR(
                    test_value(&dst, x, y, channels - 1),
                    reference(&src, x, y, channels - 1, shape[2], shape[3], sx, sy),
                    0.5 + (u8 ? 0.5 : 0));
        hr__free(src.data);
        hr__free(dst.data);
    }
}

TEST(a_flat_image_stays_flat_and_no_sigma_means_no_blur)
{
    struct hr_pixels src = test_pixels(HR_U8, 20, 20, 3, false);
    struct hr_pixels dst = test_pixels(HR_U8, 20, 20, 3, false);

    for (int32_t y = 0; y < 20; y++)
        memset((uint8_t *)src.data + y * src.row_stride, 99, 60);
    run(&src, &dst, 11, 11, 2, 2);
    CHECK_BYTES(src.data, dst.data, test_bytes(&src));
    test_noise(&src, 1, 0);
    run(&src, &dst, 11, 11, 0, 0.01);
    CHECK_BYTES(src.data, dst.data, test_bytes(&src));
    hr__free(src.data);
    hr__free(dst.data);
}

TEST(even_sizes_are_refused)
{
    uint8_t pixel = 0;
    struct hr_pixels p = {&pixel, HR_U8, 1, 1, 1, 1, 1, 1};
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_ERR(HR_ERR_ARGUMENT, hr__blur_run(&arena, &p, &p, 4, 3, 1, 1));
    CHECK_ERR(HR_ERR_ARGUMENT, hr__blur_run(&arena, &p, &p, 3, 0, 1, 1));
    hr__arena_finish(&arena);
}

TEST(every_instruction_set_gives_the_same_blur)
{
    struct test_rng rng = {21};

    for (int round = 0; round < 100; round++) {
        enum hr_dtype dtype = round % 2 ? HR_U8 : HR_F32;
        int32_t w = 1 + test_below(&rng, 100), h = 1 + test_below(&rng, 30);
        int32_t channels = 1 + test_below(&rng, 4);
        bool planar = test_below(&rng, 2);
        struct hr_pixels src = test_pixels(dtype, w, h, channels, planar);
        struct hr_pixels plain = test_pixels(dtype, w, h, channels, planar);
        struct hr_pixels other = test_pixels(dtype, w, h, channels, planar);
        int32_t size = 1 + 2 * test_below(&rng, 9);
        double sigma = test_uniform(&rng, .2, 3);

        test_noise(&src, (uint64_t)round, 1);
        hr__isa_limit(HR_ISA_C);
        run(&src, &plain, size, size, sigma, 1);
        for (int i = 1; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            run(&src, &other, size, size, sigma, 1);
            CHECK_BYTES(plain.data, other.data, test_bytes(&plain));
        }
        hr__isa_limit(TEST_BEST);
        hr__free(src.data);
        hr__free(plain.data);
        hr__free(other.data);
    }
}

TEST(failed_allocations_are_reported)
{
    struct hr_pixels p = test_pixels(HR_U8, 5000, 5, 3, false);
    struct hr_pixels q = test_pixels(HR_U8, 5000, 5, 3, false);
    enum hr_err err = HR_ERR_MEMORY;

    test_noise(&p, 1, 0);
    for (uint64_t n = 1; err != HR_OK; n++) {
        struct hr_arena arena;

        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__blur_run(&arena, &p, &q, 11, 11, 2, 2);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(n < 50);
        hr__arena_finish(&arena);
    }
    hr__free(p.data);
    hr__free(q.data);
}
