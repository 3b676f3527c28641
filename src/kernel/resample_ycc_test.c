/*
 * kernel/resample_ycc_test.c - planes resized separately, against a reference in double,
 * on every instruction set.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/resample_ycc.h"

#include <math.h>

static double between(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static int32_t half_up(int32_t n, int shift)
{
    return (n + (1 << shift) - 1) >> shift;
}

/* The planes of a whole image: chroma covers luma. */
static struct hr_ycc_planes planes_of(int32_t width, int32_t height, int sx, int sy)
{
    struct hr_ycc_planes planes = {.shift_x = sx, .shift_y = sy};

    planes.plane[0] = test_pixels(HR_U8, width, height, 1, true);
    for (int p = 1; p < 3; p++)
        planes.plane[p] =
            test_pixels(HR_U8, half_up(width, sx), half_up(height, sy), 1, true);
    return planes;
}

static void noise(const struct hr_ycc_planes *planes, uint64_t seed)
{
    for (uint64_t p = 0; p < 3; p++)
        test_noise(&planes->plane[p], seed * 3 + p, 0);
}

static void drop(struct hr_ycc_planes *planes)
{
    for (int p = 0; p < 3; p++)
        hr__free(planes->plane[p].data);
}

static struct hr_resample
whole(const struct hr_ycc_planes *planes, int32_t width, int32_t height)
{
    return (struct hr_resample){.in_width = planes->plane[0].width,
                                .in_height = planes->plane[0].height,
                                .box_width = planes->plane[0].width,
                                .box_height = planes->plane[0].height,
                                .out_width = width,
                                .out_height = height,
                                .filter = HR_FILTER_BILINEAR,
                                .antialias = true};
}

static void window(struct test_rng *rng, struct hr_resample *spec)
{
    spec->box_x = test_uniform(rng, 0, 0.7 * spec->in_width);
    spec->box_width = test_uniform(rng, 0.05, 1) * (spec->in_width - spec->box_x);
    spec->box_y = test_uniform(rng, 0, 0.7 * spec->in_height);
    spec->box_height = test_uniform(rng, 0.05, 1) * (spec->in_height - spec->box_y);
}

static void resize(const struct hr_resample *spec, const struct hr_ycc_planes *planes,
                   const struct hr_pixels *dst, bool round_u8,
                   const struct hr_affine *steps, int count)
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__resample_ycc(&arena, spec, planes, dst, round_u8, steps, count));
    hr__arena_finish(&arena);
}

/* One axis in double: the window of output i and its weights. */
struct axis {
    double box, extent;
    int32_t out, in;
    bool flip, antialias, cubic;
};

static double filter(const struct axis *a, double x)
{
    x = fabs(x);
    if (!a->cubic)
        return x < 1 ? 1 - x : 0;
    return x < 1   ? (1.5 * x - 2.5) * x * x + 1
           : x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5
                   : 0;
}

static int32_t weights(const struct axis *a, int32_t i, double weight[], int32_t *from)
{
    double scale = a->extent / a->out, stretch = a->antialias && scale > 1 ? scale : 1;
    double support = (a->cubic ? 2 : 1) * stretch, sum = 0, centre;
    int32_t to;

    i = a->flip ? a->out - 1 - i : i;
    centre = between(a->box + (i + 0.5) * scale, 0, a->in);
    *from = (int32_t)between(centre - support + 0.5, 0, a->in - 1);
    to = (int32_t)between(centre + support + 0.5, *from + 1, a->in);
    for (int32_t k = *from; k < to; k++)
        sum += weight[k - *from] = filter(a, (k - centre + 0.5) / stretch);
    for (int32_t k = 0; k < to - *from; k++)
        weight[k] = fabs(sum) > 1e-6 ? weight[k] / sum : k == (to - *from) / 2;
    return to - *from;
}

/* Level of plane p at pixel (x, y) of the result. */
static double level(const struct hr_ycc_planes *planes, const struct hr_resample *s,
                    int p, int32_t x, int32_t y)
{
    static double wx[2048], wy[2048];
    const struct hr_pixels *plane = &planes->plane[p];
    int sx = p == 0 ? 0 : planes->shift_x, sy = p == 0 ? 0 : planes->shift_y;
    double ox = p == 0 ? 0 : planes->chroma_x, oy = p == 0 ? 0 : planes->chroma_y;
    bool cubic = s->filter == HR_FILTER_BICUBIC;
    struct axis ax = {ldexp(s->box_x - ox, -sx),
                      ldexp(s->box_width, -sx),
                      s->out_width,
                      plane->width,
                      s->flip_x,
                      s->antialias,
                      cubic};
    struct axis ay = {ldexp(s->box_y - oy, -sy),
                      ldexp(s->box_height, -sy),
                      s->out_height,
                      plane->height,
                      s->flip_y,
                      s->antialias,
                      cubic};
    int32_t fx, fy, nx = weights(&ax, x, wx, &fx), ny = weights(&ay, y, wy, &fy);
    double sum = 0;

    for (int32_t j = 0; j < ny; j++)
        for (int32_t i = 0; i < nx; i++)
            sum += wy[j] * wx[i] * test_value(plane, fx + i, fy + j, 0);
    return sum;
}

static void matrix(double y, double cb, double cr, double rgb[3])
{
    cb -= 128;
    cr -= 128;
    rgb[0] = between(y + 1.402 * cr, 0, 255);
    rgb[1] = between(y - .344136 * cb - .714136 * cr, 0, 255);
    rgb[2] = between(y + 1.772 * cb, 0, 255);
}

/* The largest difference of the unrounded result from the reference. Noise of small
 * amplitude around gray, so that nothing is clamped. */
static double worst(const struct hr_resample *spec, const struct hr_ycc_planes *planes)
{
    struct hr_pixels dst =
        test_pixels(HR_F32, spec->out_width, spec->out_height, 3, true);
    double most = 0, rgb[3];

    resize(spec, planes, &dst, false, NULL, 0);
    for (int32_t y = 0; y<dst.height; y += dst.height> 40 ? 7 : 1)
        for (int32_t x = 0; x<dst.width; x += dst.width> 40 ? 5 : 1) {
            matrix(level(planes, spec, 0, x, y), level(planes, spec, 1, x, y),
                   level(planes, spec, 2, x, y), rgb);
            for (int c = 0; c < 3; c++)
                most = fmax(most, fabs(test_value(&dst, x, y, c) - rgb[c]));
        }
    hr__free(dst.data);
    return most;
}

/* Levels 64 to 191, so that most colours stay within 0..255. */
static void calm(const struct hr_ycc_planes *planes)
{
    for (int p = 0; p < 3; p++)
        for (int32_t y = 0; y < planes->plane[p].height; y++)
            for (int32_t x = 0; x < planes->plane[p].width; x++) {
                uint8_t *at = test_at(&planes->plane[p], x, y, 0);

                *at = (uint8_t)(p == 0 ? 64 + *at / 2 : 108 + *at / 6);
            }
}

TEST(planes_are_within_a_tenth_of_a_level_of_the_double_reference)
{
    static const int32_t shapes[][4] = {
        {35,  26,  22,  22 },
        {50,  37,  224, 200},
        {1,   1,   9,   7  },
        {2,   2,   2,   2  },
        {300, 200, 1,   1  },
        {350, 260, 224, 224},
        {640, 90,  224, 33 },
        {900, 40,  31,  4  },
    };

    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int sub = 0; sub < 4; sub++) {
            struct hr_ycc_planes planes =
                planes_of(shapes[s][0], shapes[s][1], sub & 1, sub >> 1);
            struct hr_resample spec = whole(&planes, shapes[s][2], shapes[s][3]);

            noise(&planes, s);
            CHECK_NEAR(worst(&spec, &planes), 0, 0.1);
            calm(&planes);
            CHECK_NEAR(worst(&spec, &planes), 0, 0.1);
            spec.antialias = false;
            CHECK_NEAR(worst(&spec, &planes), 0, 0.1);
            spec.antialias = true;
            spec.filter = HR_FILTER_BICUBIC;
            CHECK_NEAR(worst(&spec, &planes), 0, 0.1);
            drop(&planes);
        }
}

TEST(windows_and_flips_follow_the_reference)
{
    struct test_rng rng = {.state = 5};

    for (int round = 0; round < 120; round++) {
        struct hr_ycc_planes planes =
            planes_of(1 + test_below(&rng, 90), 1 + test_below(&rng, 90),
                      test_below(&rng, 2), test_below(&rng, 2));
        struct hr_resample spec =
            whole(&planes, 1 + test_below(&rng, 50), 1 + test_below(&rng, 50));

        window(&rng, &spec);
        planes.chroma_x = test_below(&rng, 7) - 3;
        planes.chroma_y = test_below(&rng, 7) - 3;
        spec.flip_x = round & 1;
        spec.flip_y = round & 2;
        noise(&planes, (uint64_t)round);
        calm(&planes);
        CHECK_NEAR(worst(&spec, &planes), 0, 0.1);
        drop(&planes);
    }
}

/* A part of `from`, starting at (x, y), in its own allocation. */
static struct hr_pixels
part(const struct hr_pixels *from, int32_t x, int32_t y, int32_t width, int32_t height)
{
    struct hr_pixels to = test_pixels(HR_U8, width, height, 1, true);

    for (int32_t j = 0; j < height; j++)
        memcpy(test_at(&to, 0, j, 0), test_at(from, x, y + j, 0), (size_t)width);
    return to;
}

TEST(an_odd_window_of_the_planes_gives_the_same_pixels_as_the_whole)
{
    struct hr_ycc_planes all = planes_of(120, 90, 1, 1);
    struct hr_ycc_planes some = {.shift_x = 1, .shift_y = 1};
    struct hr_pixels a = test_pixels(HR_F32, 30, 20, 3, true);
    struct hr_pixels b = test_pixels(HR_F32, 30, 20, 3, true);
    struct hr_resample spec = whole(&all, 30, 20);

    noise(&all, 1);
    spec.box_x = 33.4;
    spec.box_y = 27.7;
    spec.box_width = 51.2;
    spec.box_height = 40.1;
    resize(&spec, &all, &a, false, NULL, 0);
    /* luma from (25, 20), chroma from pixel (14, 9), which covers luma (28, 18) */
    some.plane[0] = part(&all.plane[0], 25, 20, 70, 60);
    for (int p = 1; p < 3; p++)
        some.plane[p] = part(&all.plane[p], 14, 9, 34, 30);
    some.chroma_x = 3;
    some.chroma_y = -2;
    spec.in_width = 70;
    spec.in_height = 60;
    spec.box_x -= 25;
    spec.box_y -= 20;
    resize(&spec, &some, &b, false, NULL, 0);
    for (int32_t y = 0; y < 20; y++)
        for (int32_t x = 0; x < 30; x++)
            for (int c = 0; c < 3; c++)
                CHECK_NEAR(test_value(&a, x, y, c), test_value(&b, x, y, c), 0.05);
    drop(&all);
    drop(&some);
    hr__free(a.data);
    hr__free(b.data);
}

/* Chroma at luma pixel (x, y) by "fancy upsampling": 3/4 of the sample that covers the
 * pixel and 1/4 of the next nearest, along each subsampled axis. */
static double upsampled(const struct hr_ycc_planes *planes, int p, int32_t x, int32_t y)
{
    const struct hr_pixels *plane = &planes->plane[p];
    int32_t i = x >> planes->shift_x, j = y >> planes->shift_y;
    int32_t ni = planes->shift_x ? i + (x & 1 ? 1 : -1) : i;
    int32_t nj = planes->shift_y ? j + (y & 1 ? 1 : -1) : j;

    ni = ni < 0 ? 0 : ni < plane->width ? ni : plane->width - 1;
    nj = nj < 0 ? 0 : nj < plane->height ? nj : plane->height - 1;
    return (9 * test_value(plane, i, j, 0) + 3 * test_value(plane, ni, j, 0) +
            3 * test_value(plane, i, nj, 0) + test_value(plane, ni, nj, 0)) /
           16;
}

static struct hr_pixels to_rgb(const struct hr_ycc_planes *planes)
{
    const struct hr_pixels *luma = &planes->plane[0];
    struct hr_pixels rgb = test_pixels(HR_U8, luma->width, luma->height, 3, false);
    double v[3];

    for (int32_t y = 0; y < rgb.height; y++)
        for (int32_t x = 0; x < rgb.width; x++) {
            matrix(test_value(luma, x, y, 0), rint(upsampled(planes, 1, x, y)),
                   rint(upsampled(planes, 2, x, y)), v);
            for (int c = 0; c < 3; c++)
                test_set(&rgb, x, y, c, rint(v[c]));
        }
    return rgb;
}

static void smooth(const struct hr_ycc_planes *planes)
{
    for (int p = 0; p < 3; p++)
        for (int32_t y = 0; y < planes->plane[p].height; y++)
            for (int32_t x = 0; x < planes->plane[p].width; x++) {
                int sx = p == 0 ? 0 : planes->shift_x, sy = p == 0 ? 0 : planes->shift_y;
                double u = (x + .5) * (1 << sx), v = (y + .5) * (1 << sy);

                test_set(&planes->plane[p], x, y, 0,
                         rint(128 + (p == 0 ? 70 : 30) * sin(u / (19 + 5 * p)) *
                                        cos(v / (23 - 4 * p))));
            }
}

TEST(smooth_planes_match_upsample_convert_and_resize)
{
    /* the means observed are .29, .18 and .07, mostly rounding in the upsampled image; a
     * chroma plane shifted by a quarter sample adds .1 to .25 */
    static const int32_t outs[][2] = {
        {224, 224},
        {90,  70 },
        {20,  31 }
    };
    static const double limits[] = {.35, .25, .1};

    for (int sub = 0; sub < 4; sub++) {
        struct hr_ycc_planes planes = planes_of(201, 150, sub & 1, sub >> 1);
        struct hr_pixels rgb;

        smooth(&planes);
        rgb = to_rgb(&planes);
        for (size_t o = 0; o < sizeof outs / sizeof *outs; o++) {
            struct hr_resample spec = whole(&planes, outs[o][0], outs[o][1]);
            struct hr_pixels a = test_pixels(HR_F32, outs[o][0], outs[o][1], 3, true);
            struct hr_pixels b = test_pixels(HR_F32, outs[o][0], outs[o][1], 3, true);
            struct hr_resample_plan *plan;
            struct hr_arena arena;
            double sum = 0;

            hr__arena_init(&arena);
            spec.flip_x = o == 1;
            resize(&spec, &planes, &a, false, NULL, 0);
            CHECK_OK(hr__resample_plan(&arena, &spec, &plan));
            CHECK_OK(hr__resample_run(plan, &arena, &rgb, &b, false, NULL, 0));
            for (int32_t y = 0; y < a.height; y++)
                for (int32_t x = 0; x < a.width; x++)
                    for (int c = 0; c < 3; c++)
                        sum += fabs(test_value(&a, x, y, c) - test_value(&b, x, y, c));
            CHECK_NEAR(sum / (3.0 * a.width * a.height), 0, limits[o]);
            hr__arena_finish(&arena);
            hr__free(a.data);
            hr__free(b.data);
        }
        hr__free(rgb.data);
        drop(&planes);
    }
}

TEST(a_flat_colour_is_the_matrix_to_the_last_bit)
{
    static const uint8_t flat[3] = {76, 85, 255}; /* red, slightly outside RGB */
    const float r = 76 + 1.402f * 127, g = 76 - .344136f * -43 - .714136f * 127;
    struct hr_affine steps[2] = {
        {{2, 2, 2},    {1, 1, 1}         },
        {{10, 10, 10}, {0.5f, 0.5f, 0.5f}}
    };

    for (enum hr_filter f = HR_FILTER_NEAREST; f <= HR_FILTER_LANCZOS; f++) {
        struct hr_ycc_planes planes = planes_of(61, 47, 1, 1);
        struct hr_pixels dst = test_pixels(HR_F32, 25, 60, 3, true);
        struct hr_resample spec = whole(&planes, 25, 60);

        for (int p = 0; p < 3; p++)
            for (int32_t y = 0; y < planes.plane[p].height; y++)
                memset(test_at(&planes.plane[p], 0, y, 0), flat[p],
                       (size_t)planes.plane[p].width);
        spec.filter = f;
        resize(&spec, &planes, &dst, false, NULL, 0);
        CHECK(test_value(&dst, 11, 30, 0) == (double)r);
        CHECK(test_value(&dst, 24, 59, 1) == (double)g);
        CHECK(test_value(&dst, 0, 0, 2) == 0);
        resize(&spec, &planes, &dst, true, steps, 2);
        CHECK(test_value(&dst, 11, 30, 0) == (254 * 2 + 1) * 10 + 0.5);
        CHECK(test_value(&dst, 11, 30, 1) == 10.5);
        drop(&planes);
        hr__free(dst.data);
    }
}

TEST(nearest_takes_luma_and_the_chroma_that_covers_it)
{
    uint8_t luma[4] = {10, 20, 30, 40}, cb[2] = {128, 138}, cr[2] = {128, 128};
    float out[3][4];
    struct hr_ycc_planes planes = {
        .plane = {{luma, HR_U8, 4, 1, 1, 4, 1, 1},
                  {cb, HR_U8, 2, 1, 1, 2, 1, 1},
                  {cr, HR_U8, 2, 1, 1, 2, 1, 1}},
        .shift_x = 1
    };
    struct hr_pixels dst = {out, HR_F32, 4, 1, 3, 16, 4, 16};
    struct hr_resample spec = whole(&planes, 4, 1);

    spec.filter = HR_FILTER_NEAREST;
    spec.flip_x = true;
    resize(&spec, &planes, &dst, false, NULL, 0);
    CHECK(out[0][0] == 40 && out[0][1] == 30 && out[0][2] == 20 && out[0][3] == 10);
    CHECK(out[2][0] == 40 + 1.772f * 10 && out[2][1] == 30 + 1.772f * 10);
    CHECK(out[2][2] == 20 && out[2][3] == 10);
}

TEST(gray_is_what_resizing_its_plane_gives_in_every_channel)
{
    struct hr_ycc_planes planes = planes_of(77, 53, 1, 1);
    struct hr_pixels one = test_pixels(HR_F32, 40, 30, 1, true);
    struct hr_pixels luma = test_pixels(HR_F32, 40, 30, 1, true);
    struct hr_pixels three = test_pixels(HR_F32, 40, 30, 3, false);
    struct hr_affine step = {
        {1.5f, 1.5f, 1.5f},
        {-3,   -3,   -3  }
    };
    struct hr_resample spec = whole(&planes, 40, 30);
    struct hr_resample_plan *plan;
    struct hr_arena arena;

    noise(&planes, 3);
    hr__arena_init(&arena);
    CHECK_OK(hr__resample_plan(&arena, &spec, &plan));
    CHECK_OK(hr__resample_run(plan, &arena, &planes.plane[0], &one, false, &step, 1));
    resize(&spec, &planes, &luma, false, &step, 1);
    CHECK_BYTES(one.data, luma.data, test_bytes(&one));
    planes.gray = true;
    resize(&spec, &planes, &luma, false, &step, 1);
    CHECK_BYTES(one.data, luma.data, test_bytes(&one));
    resize(&spec, &planes, &three, false, &step, 1);
    for (int32_t y = 0; y < 30; y++)
        for (int32_t x = 0; x < 40; x++)
            for (int c = 0; c < 3; c++)
                CHECK(test_value(&three, x, y, c) == test_value(&one, x, y, 0));
    hr__arena_finish(&arena);
    drop(&planes);
    hr__free(one.data);
    hr__free(luma.data);
    hr__free(three.data);
}

TEST(a_single_chroma_sample_applies_everywhere)
{
    struct hr_ycc_planes planes = planes_of(2, 2, 1, 1);
    struct hr_pixels dst = test_pixels(HR_U8, 33, 70, 3, false);
    struct hr_resample spec = whole(&planes, 33, 70);

    CHECK_EQ_INT(planes.plane[1].width, 1);
    for (int32_t y = 0; y < 2; y++)
        memset(test_at(&planes.plane[0], 0, y, 0), 100, 2);
    *(uint8_t *)planes.plane[1].data = 138;
    *(uint8_t *)planes.plane[2].data = 118;
    resize(&spec, &planes, &dst, true, NULL, 0);
    for (int32_t y = 0; y < 70; y++)
        for (int32_t x = 0; x < 33; x++) {
            CHECK(test_value(&dst, x, y, 0) == 86);
            CHECK(test_value(&dst, x, y, 1) == 104);
            CHECK(test_value(&dst, x, y, 2) == 118);
        }
    drop(&planes);
    hr__free(dst.data);
}

static void same_bytes(const struct hr_resample *spec, const struct hr_ycc_planes *planes,
                       const struct hr_pixels *like, bool round,
                       const struct hr_affine *steps, int count)
{
    bool planar = like->pixel_stride == (int64_t)hr_dtype_size(like->dtype);
    struct hr_pixels plain =
        test_pixels(like->dtype, like->width, like->height, like->channels, planar);

    hr__isa_limit(HR_ISA_C);
    resize(spec, planes, &plain, round, steps, count);
    for (int i = 1; i < TEST_ISAS; i++) {
        hr__isa_limit(test_isas[i]);
        memset(like->data, 0xa5, test_bytes(like));
        resize(spec, planes, like, round, steps, count);
        CHECK_BYTES(plain.data, like->data, test_bytes(&plain));
    }
    hr__isa_limit(TEST_BEST);
    hr__free(plain.data);
}

TEST(every_instruction_set_gives_the_same_bytes)
{
    static const enum hr_dtype outs[] = {HR_F32, HR_U8, HR_F16, HR_BF16};
    struct hr_affine steps[2] = {
        {{.017f, .018f, .019f}, {-2, -1.9f, -1.8f}},
        {{3, 3, 3},             {.1f, .1f, .1f}   }
    };
    struct test_rng rng = {.state = 77};

    for (int round = 0; round < 400; round++) {
        int32_t top = round % 7 == 0 ? 900 : round % 3 == 0 ? 350 : 130;
        struct hr_ycc_planes planes =
            planes_of(1 + test_below(&rng, top), 1 + test_below(&rng, top),
                      test_below(&rng, 2), test_below(&rng, 2));
        struct hr_resample spec =
            whole(&planes, 1 + test_below(&rng, 150), 1 + test_below(&rng, 60));
        int32_t channels = round % 16 == 5 ? 1 : 3;
        struct hr_pixels dst =
            test_pixels(outs[test_below(&rng, 4)], spec.out_width, spec.out_height,
                        channels, test_below(&rng, 2));

        if (round % 2)
            window(&rng, &spec);
        if (test_below(&rng, 3) == 0) {
            planes.chroma_x = test_below(&rng, 9) - 4;
            planes.chroma_y = test_below(&rng, 9) - 4;
        }
        planes.gray = round % 16 == 7;
        spec.flip_x = test_below(&rng, 2);
        spec.flip_y = test_below(&rng, 2);
        spec.antialias = test_below(&rng, 4) != 0;
        if (round % 3 == 0)
            spec.filter = HR_FILTER_NEAREST + test_below(&rng, 5);
        noise(&planes, (uint64_t)round);
        if (round & 4)
            calm(&planes);
        same_bytes(&spec, &planes, &dst, test_below(&rng, 2), steps, test_below(&rng, 3));
        hr__free(dst.data);
        drop(&planes);
    }
}

TEST(invalid_specs_are_refused_and_far_windows_and_planes_are_safe)
{
    struct hr_ycc_planes planes = planes_of(9, 9, 1, 1);
    struct hr_pixels dst = test_pixels(HR_U8, 40, 5, 3, false);
    struct hr_resample spec = whole(&planes, 40, 5), bad = spec;
    struct hr_arena arena;

    hr__arena_init(&arena);
    noise(&planes, 1);
    bad.box_height = NAN;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr__resample_ycc(&arena, &bad, &planes, &dst, true, NULL, 0));
    CHECK_EQ_INT(*(uint8_t *)dst.data, 0xa5);
    planes.chroma_x = INT32_MAX;
    planes.chroma_y = INT32_MIN;
    resize(&spec, &planes, &dst, true, NULL, 0);
    spec.box_x = 1e12;
    spec.box_y = -1e12;
    spec.filter = HR_FILTER_LANCZOS;
    resize(&spec, &planes, &dst, true, NULL, 0);
    hr__arena_finish(&arena);
    drop(&planes);
    hr__free(dst.data);
}

TEST(every_failed_allocation_is_reported)
{
    struct hr_ycc_planes planes = planes_of(90, 70, 1, 1);
    struct hr_pixels dst = test_pixels(HR_F32, 500, 20, 3, true);
    struct hr_resample spec = whole(&planes, 500, 20);
    enum hr_err err = HR_ERR_MEMORY;
    uint64_t n;

    noise(&planes, 1);
    for (n = 1; err != HR_OK; n++) {
        struct hr_arena arena;

        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__resample_ycc(&arena, &spec, &planes, &dst, false, NULL, 0);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(err == HR_OK || *(uint8_t *)dst.data == 0xa5);
        hr__arena_finish(&arena);
        CHECK(n < 100);
    }
    CHECK(n > 2);
    drop(&planes);
    hr__free(dst.data);
}
