/*
 * kernel/resample_test.c - against Pillow's resize in double, on every instruction set.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/resample.h"

#include <math.h>

/* Pillow's resize, reimplemented in double, without its rounding between the passes. */
static double ref_filter(enum hr_filter filter, bool antialias, double x)
{
    double a = antialias ? -0.5 : -0.75;

    x = fabs(x);
    switch (filter) {
    case HR_FILTER_BOX:
        return x <= 0.5;
    case HR_FILTER_BICUBIC:
        return x < 1   ? ((a + 2) * x - (a + 3)) * x * x + 1
               : x < 2 ? (((x - 5) * x + 8) * x - 4) * a
                       : 0;
    case HR_FILTER_LANCZOS:
        return x == 0  ? 1
               : x < 3 ? sin(M_PI * x) / (M_PI * x) * sin(M_PI * x / 3) / (M_PI * x / 3)
                       : 0;
    default:
        return x < 1 ? 1 - x : 0;
    }
}

static int32_t
ref_weights(enum hr_filter filter, bool antialias, double box, double extent, int32_t out,
            int32_t in, int32_t i, double *weight, int32_t *ret_from)
{
    static const double radius[] = {0, 1, 2, 0.5, 3};
    double scale = extent / out, stretch = antialias && scale > 1 ? scale : 1;
    double support = radius[filter] * stretch, centre = box + (i + 0.5) * scale, sum = 0;
    int32_t from = (int32_t)fmax(centre - support + 0.5, 0);
    int32_t to = (int32_t)fmin(centre + support + 0.5, in);

    for (int32_t k = from; k < to; k++)
        sum += weight[k - from] =
            ref_filter(filter, antialias, (k - centre + 0.5) / stretch);
    /* Without antialias the border element is repeated beyond the ends. */
    for (int32_t k = (int32_t)floor(centre - support + 0.5);
         !antialias && filter == HR_FILTER_BICUBIC &&
         k < (int32_t)floor(centre + support + 0.5);
         k++) {
        double w =
            k < from || k >= to ? ref_filter(filter, antialias, k - centre + 0.5) : 0;

        weight[k < from ? 0 : to - 1 - from] += w;
        sum += w;
    }
    for (int32_t k = from; k < to; k++)
        weight[k - from] /= sum;
    *ret_from = from;
    return to - from;
}

static double reference(const struct hr_pixels *src, const struct hr_resample *s,
                        int32_t x, int32_t y, int32_t c)
{
    static double wx[4096], wy[4096];
    int32_t ix = s->flip_x ? s->out_width - 1 - x : x, fx;
    int32_t iy = s->flip_y ? s->out_height - 1 - y : y, fy;
    int32_t nx = ref_weights(s->filter, s->antialias, s->box_x, s->box_width,
                             s->out_width, s->in_width, ix, wx, &fx);
    int32_t ny = ref_weights(s->filter, s->antialias, s->box_y, s->box_height,
                             s->out_height, s->in_height, iy, wy, &fy);
    double sum = 0;

    for (int32_t j = 0; j < ny; j++)
        for (int32_t i = 0; i < nx; i++)
            sum += wy[j] * wx[i] * test_value(src, fx + i, fy + j, c);
    return sum;
}

static struct hr_resample
whole(const struct hr_pixels *src, int32_t width, int32_t height, enum hr_filter filter)
{
    return (struct hr_resample){.in_width = src->width,
                                .in_height = src->height,
                                .box_width = src->width,
                                .box_height = src->height,
                                .out_width = width,
                                .out_height = height,
                                .filter = filter,
                                .antialias = true};
}

static void resize(const struct hr_resample *spec, const struct hr_pixels *src,
                   const struct hr_pixels *dst, bool round_u8,
                   const struct hr_affine *steps, int count)
{
    struct hr_resample_plan *plan;
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__resample_plan(&arena, spec, &plan));
    CHECK_OK(hr__resample_run(plan, &arena, src, dst, round_u8, steps, count));
    hr__arena_finish(&arena);
}

static double worst(const struct hr_resample *spec, const struct hr_pixels *src)
{
    struct hr_pixels dst =
        test_pixels(HR_F32, spec->out_width, spec->out_height, src->channels, true);
    double most = 0;

    resize(spec, src, &dst, false, NULL, 0);
    for (int32_t y = 0; y<dst.height; y += dst.height> 40 ? 7 : 1)
        for (int32_t x = 0; x<dst.width; x += dst.width> 40 ? 5 : 1)
            for (int32_t c = 0; c < dst.channels; c++)
                most = fmax(most, fabs(test_value(&dst, x, y, c) -
                                       reference(src, spec, x, y, c)));
    hr__free(dst.data);
    return most;
}

static const int32_t shapes[][4] = {
    {35,  26,  22,  22 },
    {50,  37,  224, 200},
    {64,  48,  17,  5  },
    {1,   1,   1,   1  },
    {1,   1,   9,   7  },
    {300, 200, 1,   1  },
    {7,   3,   7,   3  },
    {640, 90,  224, 33 },
    {900, 40,  31,  4  },
};

TEST(every_filter_is_within_a_tenth_of_a_level_of_the_double_reference)
{
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct hr_pixels src = test_pixels(HR_U8, shapes[s][0], shapes[s][1], 3, false);

        test_noise(&src, s, 0);
        for (enum hr_filter f = HR_FILTER_BILINEAR; f <= HR_FILTER_LANCZOS; f++) {
            struct hr_resample spec = whole(&src, shapes[s][2], shapes[s][3], f);

            CHECK_NEAR(worst(&spec, &src), 0, 0.1);
            spec.antialias = false;
            CHECK_NEAR(worst(&spec, &src), 0, 0.1);
        }
        hr__free(src.data);
    }
}

TEST(fractional_boxes_flips_and_float_sources_follow_the_reference)
{
    struct test_rng rng;

    rng.state = 5;
    for (int round = 0; round < 60; round++) {
        bool u8 = round % 2 == 0;
        struct hr_pixels src = test_pixels(u8 ? HR_U8 : HR_F32, 1 + test_below(&rng, 90),
                                           1 + test_below(&rng, 90),
                                           1 + test_below(&rng, 4), round % 3 == 0);
        struct hr_resample spec =
            whole(&src, 1 + test_below(&rng, 50), 1 + test_below(&rng, 50),
                  HR_FILTER_BILINEAR + test_below(&rng, 4));

        spec.box_x = test_uniform(&rng, 0, 0.7 * src.width);
        spec.box_y = test_uniform(&rng, 0, 0.7 * src.height);
        spec.box_width = test_uniform(&rng, 0.05, 1) * (src.width - spec.box_x);
        spec.box_height = test_uniform(&rng, 0.05, 1) * (src.height - spec.box_y);
        spec.flip_x = round & 4;
        spec.flip_y = round & 8;
        test_noise(&src, (uint64_t)round, 255);
        CHECK_NEAR(worst(&spec, &src), 0, u8 ? 0.1 : 0.001);
        hr__free(src.data);
    }
}

TEST(halving_a_row_weighs_its_neighbours)
{
    uint8_t in[8] = {0, 0, 80, 80, 160, 160, 240, 240}, out[4];
    struct hr_pixels src = {in, HR_U8, 8, 1, 1, 8, 1, 1},
                     dst = {out, HR_U8, 4, 1, 1, 4, 1, 1};
    struct hr_resample spec = whole(&src, 4, 1, HR_FILTER_BILINEAR);

    /* weights 1 3 3 1 of 8; at the ends 3 3 1 of 7 */
    resize(&spec, &src, &dst, true, NULL, 0);
    CHECK_EQ_INT(out[0], 11);
    CHECK_EQ_INT(out[1], 80);
    CHECK_EQ_INT(out[2], 160);
    CHECK_EQ_INT(out[3], 229);
}

TEST(flat_images_stay_flat_to_the_last_bit)
{
    struct hr_pixels src = test_pixels(HR_U8, 101, 67, 3, false);
    struct hr_pixels dst = test_pixels(HR_F32, 40, 90, 3, true);

    for (int32_t i = 0; i < src.height; i++)
        memset((uint8_t *)src.data + i * src.row_stride, 211, 303);
    for (enum hr_filter f = HR_FILTER_NEAREST; f <= HR_FILTER_LANCZOS; f++) {
        struct hr_resample spec = whole(&src, 40, 90, f);

        resize(&spec, &src, &dst, false, NULL, 0);
        for (int32_t y = 0; y < 90; y++)
            for (int32_t x = 0; x < 40; x++)
                CHECK(test_value(&dst, x, y, 1) == 211);
    }
    hr__free(src.data);
    hr__free(dst.data);
}

TEST(nearest_takes_the_pixel_under_the_centre)
{
    uint8_t in[5] = {10, 20, 30, 40, 50}, out[2], wide[10];
    struct hr_pixels src = {in, HR_U8, 5, 1, 1, 5, 1, 1},
                     dst = {out, HR_U8, 2, 1, 1, 2, 1, 1};
    struct hr_pixels up = {wide, HR_U8, 10, 1, 1, 10, 1, 1};
    struct hr_resample spec = whole(&src, 2, 1, HR_FILTER_NEAREST);

    resize(&spec, &src, &dst, true, NULL, 0);
    CHECK_EQ_INT(out[0], 20);
    CHECK_EQ_INT(out[1], 40);
    spec = whole(&src, 10, 1, HR_FILTER_NEAREST);
    spec.flip_x = true;
    resize(&spec, &src, &up, true, NULL, 0);
    CHECK_EQ_INT(wide[0], 50);
    CHECK_EQ_INT(wide[1], 50);
    CHECK_EQ_INT(wide[9], 10);
}

TEST(steps_are_applied_in_order_after_rounding)
{
    uint8_t in[2] = {10, 15};
    float out[1];
    struct hr_pixels src = {in, HR_U8, 2, 1, 1, 2, 1, 1},
                     dst = {out, HR_F32, 1, 1, 1, 4, 4, 4};
    struct hr_resample spec = whole(&src, 1, 1, HR_FILTER_BOX);
    struct hr_affine steps[2] = {
        {{2},  {1}   },
        {{10}, {0.5f}}
    };

    resize(&spec, &src, &dst, false, steps, 2);
    CHECK(out[0] == (12.5f * 2 + 1) * 10 + 0.5f);
    resize(&spec, &src, &dst, true, steps, 2);
    CHECK(out[0] == (13 * 2 + 1) * 10 + 0.5f);
}

TEST(invalid_boxes_are_refused_and_far_boxes_are_safe)
{
    struct hr_pixels src = test_pixels(HR_U8, 9, 9, 3, false);
    struct hr_pixels dst = test_pixels(HR_U8, 5, 5, 3, false);
    struct hr_resample spec = whole(&src, 5, 5, HR_FILTER_LANCZOS), bad;
    struct hr_resample_plan *plan;
    struct hr_arena arena;

    hr__arena_init(&arena);
    test_noise(&src, 1, 0);
    bad = spec;
    bad.box_width = 0;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__resample_plan(&arena, &bad, &plan));
    bad.box_width = NAN;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__resample_plan(&arena, &bad, &plan));
    bad = spec;
    bad.out_width = 0;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__resample_plan(&arena, &bad, &plan));
    spec.box_x = -50;
    spec.box_y = 1e12;
    resize(&spec, &src, &dst, true, NULL, 0);
    hr__arena_finish(&arena);
    hr__free(src.data);
    hr__free(dst.data);
}

struct variant {
    enum hr_dtype in, out;
    int32_t channels;
    bool planar_in, planar_out, round;
};

static void same_bytes(const struct hr_resample *spec, const struct hr_pixels *src,
                       const struct variant *v, const struct hr_affine *steps, int count)
{
    struct hr_pixels plain, other;

    plain = test_pixels(v->out, spec->out_width, spec->out_height, v->channels,
                        v->planar_out);
    other = test_pixels(v->out, spec->out_width, spec->out_height, v->channels,
                        v->planar_out);
    hr__isa_limit(HR_ISA_C);
    resize(spec, src, &plain, v->round, steps, count);
    for (int i = 1; i < TEST_ISAS; i++) {
        hr__isa_limit(test_isas[i]);
        resize(spec, src, &other, v->round, steps, count);
        CHECK_BYTES(plain.data, other.data, test_bytes(&plain));
    }
    hr__isa_limit(TEST_BEST);
    hr__free(plain.data);
    hr__free(other.data);
}

TEST(every_instruction_set_gives_the_same_bytes)
{
    static const enum hr_dtype outs[] = {HR_F32, HR_U8, HR_F16, HR_BF16};
    struct hr_affine steps[2] = {
        {{.017f, .018f, .019f, .02f}, {-2, -1.9f, -1.8f, 0}},
        {{3, 3, 3, 3},                {.1f, .1f, .1f, .1f} }
    };
    struct test_rng rng;

    rng.state = 77;
    for (int round = 0; round < 300; round++) {
        struct variant v = {round % 5 == 4 ? HR_F32 : HR_U8,
                            outs[test_below(&rng, 4)],
                            round % 3 ? 3 : 1 + test_below(&rng, 4),
                            test_below(&rng, 3) == 0,
                            test_below(&rng, 2) == 0,
                            test_below(&rng, 2) == 0};
        int32_t top = round % 7 == 0 ? 900 : 130;
        struct hr_pixels src =
            test_pixels(v.in, 1 + test_below(&rng, top), 1 + test_below(&rng, top),
                        v.channels, v.planar_in);
        struct hr_resample spec =
            whole(&src, 1 + test_below(&rng, 150), 1 + test_below(&rng, 60),
                  HR_FILTER_NEAREST + test_below(&rng, 5));

        if (round % 2) {
            spec.box_x = test_uniform(&rng, 0, 0.7 * src.width);
            spec.box_width = test_uniform(&rng, 0.05, 1) * (src.width - spec.box_x);
            spec.box_y = test_uniform(&rng, 0, 0.7 * src.height);
            spec.box_height = test_uniform(&rng, 0.05, 1) * (src.height - spec.box_y);
        }
        spec.flip_x = test_below(&rng, 2);
        spec.flip_y = test_below(&rng, 2);
        spec.antialias = test_below(&rng, 4) != 0;
        test_noise(&src, (uint64_t)round, 255);
        same_bytes(&spec, &src, &v, steps, test_below(&rng, 3));
        hr__free(src.data);
    }
}

/* ---- windows ---- */

/* The part of the source that the taps of a window reach, with some pixels more. */
static void needed_part(int32_t in, double box, double scale, double reach, int32_t at,
                        int32_t count, int32_t *ret_from, int32_t *ret_size)
{
    double from = floor(box + at * scale - reach - 2);
    double to = ceil(box + (at + count) * scale + reach + 2);

    *ret_from = (int32_t)fmin(fmax(from, 0), in - 1);
    *ret_size = (int32_t)fmin(fmax(to, *ret_from + 1), in) - *ret_from;
}

/* The window of `spec`'s result, made from only the pixels that it needs. */
static struct hr_resample
window_of(const struct hr_resample *spec, const struct hr_pixels *src, int32_t x,
          int32_t y, int32_t width, int32_t height, struct hr_pixels *ret_part)
{
    struct hr_resample part = *spec;
    double scale_x = spec->box_width / spec->out_width;
    double scale_y = spec->box_height / spec->out_height;

    *ret_part = *src;
    needed_part(src->width, spec->box_x, scale_x,
                hr__resample_reach(spec->filter, spec->antialias, scale_x), x, width,
                &part.in_x, &ret_part->width);
    needed_part(src->height, spec->box_y, scale_y,
                hr__resample_reach(spec->filter, spec->antialias, scale_y), y, height,
                &part.in_y, &ret_part->height);
    ret_part->data = test_at(src, part.in_x, part.in_y, 0);
    part.full_width = spec->out_width;
    part.full_height = spec->out_height;
    part.out_x = x;
    part.out_y = y;
    part.out_width = width;
    part.out_height = height;
    return part;
}

/* A random window of `full`, the result of `spec`; coordinates are of the mirrored
 * result. */
static void check_window(struct test_rng *rng, const struct hr_resample *spec,
                         const struct hr_pixels *src, const struct hr_pixels *full,
                         bool planar, bool round)
{
    int32_t width = 1 + test_below(rng, full->width);
    int32_t height = 1 + test_below(rng, full->height);
    int32_t x = test_below(rng, full->width - width + 1);
    int32_t y = test_below(rng, full->height - height + 1);
    struct hr_pixels to = test_pixels(full->dtype, width, height, full->channels, planar);
    struct hr_pixels part;
    struct hr_resample window =
        window_of(spec, src, spec->flip_x ? full->width - x - width : x,
                  spec->flip_y ? full->height - y - height : y, width, height, &part);

    resize(&window, &part, &to, round, NULL, 0);
    for (int32_t j = 0; j < height; j++)
        for (int32_t i = 0; i < width; i++)
            for (int32_t c = 0; c < full->channels; c++)
                if (memcmp(test_at(&to, i, j, c), test_at(full, x + i, y + j, c),
                           hr_dtype_size(full->dtype)) != 0)
                    check_failed(__FILE__, __LINE__,
                                 "filter %d, antialias %d, %dx%d -> %dx%d, window %dx%d "
                                 "at (%d, %d): pixel (%d, %d) differs",
                                 spec->filter, spec->antialias, src->width, src->height,
                                 full->width, full->height, width, height, x, y, i, j);
    hr__free(to.data);
}

TEST(a_window_has_the_bytes_of_the_whole)
{
    static const enum hr_dtype outs[] = {HR_F32, HR_U8, HR_F16, HR_BF16};
    struct test_rng rng;

    rng.state = check_seed();
    for (int round = 0; round < 400; round++) {
        bool u8 = test_below(&rng, 3) != 0, planar = test_below(&rng, 2);
        int32_t channels = 1 + test_below(&rng, 4), top = round % 9 == 0 ? 700 : 90;
        struct hr_pixels src =
            test_pixels(u8 ? HR_U8 : HR_F32, 1 + test_below(&rng, top),
                        1 + test_below(&rng, top), channels, test_below(&rng, 2));
        struct hr_pixels full =
            test_pixels(outs[test_below(&rng, 4)], 1 + test_below(&rng, 150),
                        1 + test_below(&rng, 90), channels, planar);
        struct hr_resample spec =
            whole(&src, full.width, full.height, HR_FILTER_NEAREST + test_below(&rng, 5));

        if (test_below(&rng, 2)) {
            spec.box_x = test_uniform(&rng, 0, 0.7 * src.width);
            spec.box_width = test_uniform(&rng, 0.05, 1) * (src.width - spec.box_x);
            spec.box_y = test_uniform(&rng, 0, 0.7 * src.height);
            spec.box_height = test_uniform(&rng, 0.05, 1) * (src.height - spec.box_y);
        }
        spec.flip_x = test_below(&rng, 2);
        spec.flip_y = test_below(&rng, 2);
        spec.antialias = test_below(&rng, 4) != 0;
        test_noise(&src, (uint64_t)round, 255);
        hr__isa_limit(TEST_BEST);
        resize(&spec, &src, &full, u8 && planar, NULL, 0);
        for (int i = 0; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            check_window(&rng, &spec, &src, &full, planar, u8 && planar);
        }
        hr__isa_limit(TEST_BEST);
        hr__free(src.data);
        hr__free(full.data);
    }
}

TEST(windows_that_are_not_inside_the_whole_are_refused)
{
    struct hr_pixels src = test_pixels(HR_U8, 9, 9, 3, false);
    struct hr_resample spec = whole(&src, 5, 5, HR_FILTER_BILINEAR), bad;
    struct hr_resample_plan *plan;
    struct hr_arena arena;

    hr__arena_init(&arena);
    spec.full_width = spec.full_height = 8;
    spec.out_x = spec.out_y = 3;
    CHECK_OK(hr__resample_plan(&arena, &spec, &plan));
    bad = spec;
    bad.out_x = 4;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__resample_plan(&arena, &bad, &plan));
    bad = spec;
    bad.out_y = -1;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__resample_plan(&arena, &bad, &plan));
    bad = spec;
    bad.full_height = 4;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__resample_plan(&arena, &bad, &plan));
    hr__arena_finish(&arena);
    hr__free(src.data);
}

TEST(every_failed_allocation_is_reported)
{
    struct hr_pixels src = test_pixels(HR_U8, 90, 70, 3, false);
    struct hr_pixels dst = test_pixels(HR_F32, 50, 20, 3, true);
    struct hr_resample spec = whole(&src, 50, 20, HR_FILTER_BILINEAR);
    enum hr_err err = HR_ERR_MEMORY;

    test_noise(&src, 1, 0);
    for (uint64_t n = 1; err != HR_OK; n++) {
        struct hr_resample_plan *plan;
        struct hr_arena arena;

        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__resample_plan(&arena, &spec, &plan);
        if (err == HR_OK)
            err = hr__resample_run(plan, &arena, &src, &dst, false, NULL, 0);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        hr__arena_finish(&arena);
        CHECK(n < 100);
    }
    hr__free(src.data);
    hr__free(dst.data);
}
