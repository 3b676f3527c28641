/*
 * kernel/warp_test.c - rotations against a simple reference, on every instruction set.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/warp.h"

#include <math.h>

static double
at(const struct hr_pixels *p, int64_t x, int64_t y, int32_t c, const float fill[4])
{
    if (x < 0 || y < 0 || x >= p->width || y >= p->height)
        return fill[c];
    return test_value(p, (int32_t)x, (int32_t)y, c);
}

static double reference(const struct hr_pixels *src, const double m[6], int32_t x,
                        int32_t y, int32_t c, bool nearest, const float fill[4])
{
    double sx = m[0] * (x + .5) + m[1] * (y + .5) + m[2] - .5;
    double sy = m[3] * (x + .5) + m[4] * (y + .5) + m[5] - .5, fx, fy;
    int64_t ix = (int64_t)floor(sx), iy = (int64_t)floor(sy);

    if (nearest)
        return at(src, (int64_t)floor(sx + .5), (int64_t)floor(sy + .5), c, fill);
    fx = sx - (double)ix;
    fy = sy - (double)iy;
    return (at(src, ix, iy, c, fill) * (1 - fx) + at(src, ix + 1, iy, c, fill) * fx) *
               (1 - fy) +
           (at(src, ix, iy + 1, c, fill) * (1 - fx) +
            at(src, ix + 1, iy + 1, c, fill) * fx) *
               fy;
}

static void run(const struct hr_pixels *src, const struct hr_pixels *dst,
                const double m[6], enum hr_filter filter, const float fill[4])
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__warp_run(&arena, src, dst, m, filter, fill));
    hr__arena_finish(&arena);
}

/* A rotation by `angle` about the centre, with a scale. */
static void turn(double m[6], const struct hr_pixels *src, const struct hr_pixels *dst,
                 double angle, double scale)
{
    double c = cos(angle) * scale, s = sin(angle) * scale;

    m[0] = c;
    m[1] = s;
    m[2] = src->width * .5 - c * dst->width * .5 - s * dst->height * .5;
    m[3] = -s;
    m[4] = c;
    m[5] = src->height * .5 + s * dst->width * .5 - c * dst->height * .5;
}

TEST(the_identity_changes_nothing)
{
    static const double identity[6] = {1, 0, 0, 0, 1, 0};
    static const float fill[4] = {7, 7, 7, 7};

    for (int form = 0; form < 16; form++) {
        enum hr_dtype dtype = form & 1 ? HR_U8 : HR_F32;
        struct hr_pixels src = test_pixels(dtype, 19, 11, form & 2 ? 3 : 1, form & 4);
        struct hr_pixels dst = test_pixels(dtype, 19, 11, form & 2 ? 3 : 1, form & 4);

        test_noise(&src, 3, 255);
        run(&src, &dst, identity, form & 8 ? HR_FILTER_BILINEAR : HR_FILTER_NEAREST,
            fill);
        CHECK_BYTES(src.data, dst.data, test_bytes(&src));
        hr__free(src.data);
        hr__free(dst.data);
    }
}

TEST(half_a_pixel_to_the_right_blends_neighbours_and_the_fill)
{
    static const double shift[6] = {1, 0, 0.5, 0, 1, 0};
    static const float fill[4] = {100};
    uint8_t in[3] = {10, 20, 40}, out[3];
    struct hr_pixels src = {in, HR_U8, 3, 1, 1, 3, 1, 1},
                     dst = {out, HR_U8, 3, 1, 1, 3, 1, 1};

    run(&src, &dst, shift, HR_FILTER_BILINEAR, fill);
    CHECK_EQ_INT(out[0], 15);
    CHECK_EQ_INT(out[1], 30);
    CHECK_EQ_INT(out[2], 70);
}

TEST(rotations_match_the_reference)
{
    static const float fill[4] = {0, 128, 255, 33};
    struct test_rng rng = {31};

    for (int round = 0; round < 80; round++) {
        enum hr_dtype dtype = round % 2 ? HR_U8 : HR_F32;
        int32_t channels = round % 3 ? 3 : 1 + test_below(&rng, 4);
        struct hr_pixels src = test_pixels(dtype, 1 + test_below(&rng, 60),
                                           1 + test_below(&rng, 60), channels, round & 4);
        struct hr_pixels dst = test_pixels(dtype, 1 + test_below(&rng, 60),
                                           1 + test_below(&rng, 60), channels, round & 8);
        bool nearest = round % 10 == 9;
        double m[6];
        int wrong = 0;

        turn(m, &src, &dst, test_uniform(&rng, -3, 3), test_uniform(&rng, .3, 2));
        m[2] += 0.001; /* avoids ties, which occur at the centre of a rotation */
        m[5] += 0.001;
        test_noise(&src, (uint64_t)round, 255);
        run(&src, &dst, m, nearest ? HR_FILTER_NEAREST : HR_FILTER_BILINEAR, fill);
        for (int32_t y = 0; y < dst.height; y++)
            for (int32_t x = 0; x < dst.width; x++)
                for (int32_t c = 0; c < channels; c++)
                    wrong += fabs(test_value(&dst, x, y, c) -
                                  reference(&src, m, x, y, c, nearest, fill)) >
                             (dtype == HR_U8 ? 0.8 : 0.01);
        CHECK_EQ_INT(wrong, 0);
        hr__free(src.data);
        hr__free(dst.data);
    }
}

/* Shears along one axis with a shift: runs of pixels are copied at once. */
TEST(nearest_shears_and_shifts_match_the_reference)
{
    static const float fill[4] = {9, 128, 255, 33};
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 200; round++) {
        enum hr_dtype dtype = round % 2 ? HR_U8 : HR_F32;
        int32_t channels = 1 + test_below(&rng, 4);
        struct hr_pixels src = test_pixels(dtype, 1 + test_below(&rng, 30),
                                           1 + test_below(&rng, 30), channels, round & 4);
        struct hr_pixels dst = test_pixels(dtype, 1 + test_below(&rng, 30),
                                           1 + test_below(&rng, 30), channels, round & 8);
        double m[6] = {1, 0, test_uniform(&rng, -20, 20),
                       0, 1, test_uniform(&rng, -20, 20)};

        if (round & 16)
            m[round & 32 ? 1 : 3] = test_uniform(&rng, -2, 2);
        test_noise(&src, (uint64_t)round, 255);
        run(&src, &dst, m, HR_FILTER_NEAREST, fill);
        for (int32_t i = 0; i < dst.height * dst.width * channels; i++) {
            int32_t c = i % channels, x = i / channels % dst.width;
            int32_t y = i / channels / dst.width;

            CHECK(test_value(&dst, x, y, c) ==
                  (double)(float)reference(&src, m, x, y, c, true, fill));
        }
        hr__free(src.data);
        hr__free(dst.data);
    }
}

TEST(extreme_matrices_are_safe)
{
    static const double wild[][6] = {
        {1e300, 0,   0,     0,        1,         0   },
        {NAN,   NAN, NAN,   NAN,      NAN,       NAN },
        {0,     0,   3,     0,        0,         3   },
        {1,     0,   -1e18, 0,        1,         1e18},
        {-1e9,  1e9, 5,     INFINITY, -INFINITY, 2   },
    };
    static const float fill[4] = {300, -5, NAN, 0};

    for (int form = 0; form < 4; form++) {
        struct hr_pixels src = test_pixels(form & 1 ? HR_U8 : HR_F32, 9, 9, 3, false);
        struct hr_pixels dst = test_pixels(form & 1 ? HR_U8 : HR_F32, 50, 5, 3, false);

        test_noise(&src, 1, 255);
        for (size_t i = 0; i < sizeof wild / sizeof *wild; i++)
            run(&src, &dst, wild[i], form & 2 ? HR_FILTER_NEAREST : HR_FILTER_BILINEAR,
                fill);
        hr__free(src.data);
        hr__free(dst.data);
    }
}

TEST(every_instruction_set_gives_the_same_warp)
{
    static const float fill[4] = {0, 128, 255, 33};
    struct test_rng rng = {77};

    for (int round = 0; round < 120; round++) {
        enum hr_dtype dtype = round % 4 == 3 ? HR_F32 : HR_U8;
        int32_t channels = round % 3 ? 3 : 1 + test_below(&rng, 4);
        bool planar = test_below(&rng, 3) == 0;
        int32_t w = 1 + test_below(&rng, 120), h = 1 + test_below(&rng, 40);
        struct hr_pixels src = test_pixels(dtype, 1 + test_below(&rng, 90),
                                           1 + test_below(&rng, 90), channels, planar);
        struct hr_pixels plain = test_pixels(dtype, w, h, channels, planar);
        struct hr_pixels other = test_pixels(dtype, w, h, channels, planar);
        double m[6];

        turn(m, &src, &plain, test_uniform(&rng, -1, 1), test_uniform(&rng, .1, 1.2));
        test_noise(&src, (uint64_t)round, 255);
        hr__isa_limit(HR_ISA_C);
        run(&src, &plain, m, HR_FILTER_BILINEAR, fill);
        for (int i = 1; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            run(&src, &other, m, HR_FILTER_BILINEAR, fill);
            CHECK_BYTES(plain.data, other.data, test_bytes(&plain));
        }
        hr__isa_limit(TEST_BEST);
        hr__free(src.data);
        hr__free(plain.data);
        hr__free(other.data);
    }
}

/* ---- perspective ---- */

static struct hr_pixels test_image(enum hr_dtype dtype, int32_t width, int32_t height,
                                   int32_t channels, bool planar, uint64_t seed)
{
    struct hr_pixels made = test_pixels(dtype, width, height, channels, planar);

    test_noise(&made, seed, 255);
    return made;
}

static void run_perspective(const struct hr_pixels *src, const struct hr_pixels *dst,
                            const double m[6], const double p[2], enum hr_filter filter,
                            const float fill[4])
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__perspective_run(&arena, src, dst, m, p, filter, fill));
    hr__arena_finish(&arena);
}

/* The affine map that has the same position at a pixel. */
static void
map_at(const double m[6], const double p[2], int32_t x, int32_t y, double ret_m[6])
{
    double below = p[0] * (x + .5) + p[1] * (y + .5) + 1;

    for (int i = 0; i < 6; i++)
        ret_m[i] = m[i] / below;
}

static void check_perspective(const struct hr_pixels *src, const struct hr_pixels *dst,
                              const double m[6], const double p[2])
{
    const float fill[4] = {9, 200, 31, 77};
    double one[6];

    run_perspective(src, dst, m, p, HR_FILTER_BILINEAR, fill);
    for (int32_t y = 0; y < dst->height; y++)
        for (int32_t x = 0; x < dst->width; x++)
            for (int32_t c = 0; c < dst->channels; c++) {
                map_at(m, p, x, y, one);
                CHECK(fabs(test_value(dst, x, y, c) -
                           reference(src, one, x, y, c, false, fill)) <=
                      (src->dtype == HR_U8 ? 1.0 : 0.01));
            }
}

TEST(perspective_is_bilinear_where_each_pixel_lies)
{
    const double m[6] = {1.3, 0.1, -4.3, 0.05, 1.2, -3.1}, p[2] = {0.004, 0.002};

    for (int32_t channels = 1; channels <= 4; channels++) {
        struct hr_pixels src = test_image(HR_U8, 57, 43, channels, false, 7);
        struct hr_pixels dst = test_image(HR_U8, 57, 43, channels, false, 8);

        check_perspective(&src, &dst, m, p);
        hr__free(src.data);
        hr__free(dst.data);
        src = test_image(HR_F32, 31, 43, channels, true, 7);
        dst = test_image(HR_F32, 29, 40, channels, true, 8);
        check_perspective(&src, &dst, m, p);
        hr__free(src.data);
        hr__free(dst.data);
    }
}

TEST(a_perspective_without_depth_is_affine)
{
    const double m[6] = {0.9131, 0.2177, -1.1313, -0.1071, 1.0933, 0.7171},
                 none[2] = {0, 0};
    const float fill[4] = {1, 2, 3, 4};

    for (int filter = 0; filter < 2; filter++) {
        enum hr_filter kind = filter == 0 ? HR_FILTER_NEAREST : HR_FILTER_BILINEAR;
        struct hr_pixels src = test_image(HR_U8, 64, 48, 3, false, 3);
        struct hr_pixels a = test_image(HR_U8, 64, 48, 3, false, 4);
        struct hr_pixels b = test_image(HR_U8, 64, 48, 3, false, 5);

        run(&src, &a, m, kind, fill);
        run_perspective(&src, &b, m, none, kind, fill);
        for (int32_t y = 0; y < 48; y++)
            for (int32_t x = 0; x < 64; x++)
                for (int32_t c = 0; c < 3; c++)
                    CHECK(fabs(test_value(&a, x, y, c) - test_value(&b, x, y, c)) <=
                          (filter == 0 ? 0 : 1));
        hr__free(src.data);
        hr__free(a.data);
        hr__free(b.data);
    }
}

TEST(what_is_behind_the_viewer_is_filled)
{
    const double m[6] = {1, 0, 0, 0, 1, 0}, p[2] = {-0.1, 0}; /* a horizon at x = 10 */
    const float fill[4] = {77};
    struct hr_pixels src = test_image(HR_U8, 20, 5, 1, false, 3);
    struct hr_pixels dst = test_image(HR_U8, 20, 5, 1, false, 4);

    run_perspective(&src, &dst, m, p, HR_FILTER_BILINEAR, fill);
    for (int32_t x = 10; x < 20; x++)
        CHECK_EQ_INT(test_value(&dst, x, 2, 0), 77);
    hr__free(src.data);
    hr__free(dst.data);
}

TEST(perspectives_are_the_same_on_all_instruction_sets)
{
    const float fill[4] = {9, 200, 31, 77};
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 40; round++) {
        int32_t width = 1 + test_below(&rng, 90), height = 1 + test_below(&rng, 30);
        struct hr_pixels src = test_image(HR_U8, width, height, 3, false, 3);
        struct hr_pixels plain = test_image(HR_U8, 90, 20, 3, false, 4);
        struct hr_pixels dst = test_image(HR_U8, 90, 20, 3, false, 5);
        const double m[6] = {test_uniform(&rng, 0.2, 1.5), test_uniform(&rng, -0.2, 0.2),
                             test_uniform(&rng, -9, 9),    test_uniform(&rng, -0.2, 0.2),
                             test_uniform(&rng, 0.2, 1.5), test_uniform(&rng, -9, 9)};
        const double p[2] = {test_uniform(&rng, -0.02, 0.02),
                             test_uniform(&rng, -0.02, 0.02)};

        hr__isa_limit(HR_ISA_C);
        run_perspective(&src, &plain, m, p, HR_FILTER_BILINEAR, fill);
        for (int32_t i = 0; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            run_perspective(&src, &dst, m, p, HR_FILTER_BILINEAR, fill);
            CHECK_BYTES(plain.data, dst.data, test_bytes(&plain));
        }
        hr__isa_limit(TEST_BEST);
        hr__free(src.data);
        hr__free(plain.data);
        hr__free(dst.data);
    }
}

/* ---- elastic ---- */

static void run_elastic(const struct hr_pixels *src, const struct hr_pixels *dst,
                        const float *shift_x, const float *shift_y, enum hr_filter filter)
{
    const float fill[4] = {9, 200, 31, 77};
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__elastic_run(&arena, src, dst, shift_x, shift_y, filter, fill));
    hr__arena_finish(&arena);
}

/* Shifts of up to `most` pixels, which put some pixels outside of the image. */
static float *draw_shifts(struct test_rng *rng, int32_t count, double most)
{
    float *shifts = hr__calloc((size_t)count, sizeof *shifts);

    CHECK(shifts != NULL);
    for (int32_t i = 0; i < count; i++)
        shifts[i] = (float)test_uniform(rng, -most, most);
    return shifts;
}

static void
check_elastic(enum hr_dtype dtype, int32_t channels, bool planar, struct test_rng *rng)
{
    enum { W = 41, H = 23 };
    const float fill[4] = {9, 200, 31, 77};
    struct hr_pixels src = test_image(dtype, W, H, channels, planar, check_seed());
    struct hr_pixels dst = test_image(dtype, W, H, channels, planar, 8);
    float *shift_x = draw_shifts(rng, W * H, 9), *shift_y = draw_shifts(rng, W * H, 9);

    run_elastic(&src, &dst, shift_x, shift_y, HR_FILTER_BILINEAR);
    for (int32_t y = 0; y < H; y++)
        for (int32_t x = 0; x < W; x++)
            for (int32_t c = 0; c < channels; c++) {
                const double m[6] = {1, 0, (double)shift_x[y * W + x],
                                     0, 1, (double)shift_y[y * W + x]};

                CHECK(fabs(test_value(&dst, x, y, c) -
                           reference(&src, m, x, y, c, false, fill)) <=
                      (dtype == HR_U8 ? 1.0 : 0.01));
            }
    hr__free(src.data);
    hr__free(dst.data);
    hr__free(shift_x);
    hr__free(shift_y);
}

TEST(elastic_is_bilinear_where_each_pixel_lies)
{
    struct test_rng rng = {check_seed()};

    for (int32_t channels = 1; channels <= 4; channels++) {
        check_elastic(HR_U8, channels, false, &rng);
        check_elastic(HR_F32, channels, true, &rng);
    }
}

TEST(elastic_shifts_are_the_same_on_all_instruction_sets)
{
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 30; round++) {
        int32_t width = 1 + test_below(&rng, 90), height = 1 + test_below(&rng, 30);
        struct hr_pixels src = test_image(HR_U8, width, height, 3, false, 3);
        struct hr_pixels plain = test_image(HR_U8, width, height, 3, false, 4);
        struct hr_pixels dst = test_image(HR_U8, width, height, 3, false, 5);
        double most = test_uniform(&rng, 0, 4);
        float *shift_x = draw_shifts(&rng, width * height, most);
        float *shift_y = draw_shifts(&rng, width * height, most);

        hr__isa_limit(HR_ISA_C);
        run_elastic(&src, &plain, shift_x, shift_y, HR_FILTER_BILINEAR);
        for (int32_t i = 0; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            run_elastic(&src, &dst, shift_x, shift_y, HR_FILTER_BILINEAR);
            CHECK_BYTES(plain.data, dst.data, test_bytes(&plain));
        }
        hr__isa_limit(TEST_BEST);
        hr__free(src.data);
        hr__free(plain.data);
        hr__free(dst.data);
        hr__free(shift_x);
        hr__free(shift_y);
    }
}
