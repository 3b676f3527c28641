/*
 * kernel/colour_test.c - against torchvision's formulas in double, on every instruction
 * set.
 */
#include "kernel/colour.h"
#include "kernel/kernel_test_util.h"

#include <math.h>

/* torchvision.transforms.v2.functional for floats, in double, reimplemented from its
 * documentation and source: adjust_brightness, adjust_contrast, adjust_saturation,
 * adjust_hue (rgb -> hsv, (h + f) % 1, hsv -> rgb), rgb_to_grayscale. */
static double ref_clamp(double v, double max)
{
    return fmin(fmax(v, 0), max);
}

static double ref_gray(const double p[3])
{
    return 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

static void ref_hue(double p[3], double factor)
{
    double high = fmax(p[0], fmax(p[1], p[2])), low = fmin(p[0], fmin(p[1], p[2]));
    double range = high - low, s = high > 0 ? range / high : 0, h = 0, f, a, b, c;
    double d = range == 0 ? 1 : range;
    double rc = (high - p[0]) / d, gc = (high - p[1]) / d, bc = (high - p[2]) / d;
    int sector;

    if (high == p[0])
        h = bc - gc;
    else if (high == p[1])
        h = 2 + rc - bc;
    else
        h = 4 + gc - rc;
    h = fmod(h / 6 + 1, 1);
    h = fmod(h + factor + 1, 1);
    sector = (int)floor(h * 6);
    f = h * 6 - sector;
    a = high * (1 - s);
    b = high * (1 - s * f);
    c = high * (1 - s * (1 - f));
    memcpy(p,
           (double[6][3]){
               {high, c,    a   },
               {b,    high, a   },
               {a,    high, c   },
               {a,    b,    high},
               {c,    a,    high},
               {high, a,    b   }
    }[sector % 6],
           3 * sizeof *p);
}

static void
ref_step(double *image, size_t count, const struct hr_colour_step *step, double max)
{
    double mean = 0, gray;

    for (size_t i = 0; i < count; i++)
        mean += ref_gray(image + 3 * i) / (double)count;
    for (size_t i = 0; i < count; i++) {
        double *p = image + 3 * i;

        gray = ref_gray(p);
        if (step->kind == HR_COLOUR_HUE)
            ref_hue(p, step->value);
        for (int c = 0; c < 3; c++) {
            if (step->kind == HR_COLOUR_BRIGHTNESS)
                p[c] = ref_clamp(p[c] * step->value, max);
            else if (step->kind == HR_COLOUR_CONTRAST)
                p[c] = ref_clamp(step->value * p[c] + (1 - step->value) * mean, max);
            else if (step->kind == HR_COLOUR_SATURATION)
                p[c] = ref_clamp(step->value * p[c] + (1 - step->value) * gray, max);
            else if (step->kind == HR_COLOUR_GRAY)
                p[c] = gray;
            else if (step->kind == HR_COLOUR_CLIP)
                p[c] = fmin(fmax(p[c], step->value), step->value2);
            else if (step->kind == HR_COLOUR_ROUND)
                p[c] = nearbyint(p[c] * 255 / max) * max / 255;
        }
    }
}

static void run(const struct hr_pixels *src, const struct hr_pixels *dst,
                const struct hr_colour_step *steps, int count, float max)
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__colour_run(&arena, src, dst, steps, count, max));
    hr__arena_finish(&arena);
}

/* Flat runs and gradients, where the sector of the hue changes, and noise. */
static void paint(const struct hr_pixels *p, double max)
{
    test_noise(p, 4, max);
    for (int32_t y = 0; y < p->height; y += 2)
        for (int32_t x = 0; x < p->width; x++)
            for (int32_t c = 0; c < p->channels; c++)
                test_set(p, x, y, c, (double)((x * (c + 1) * 4 + y) % 256) / 255 * max);
}

static double worst(enum hr_dtype dtype, bool planar, double max,
                    const struct hr_colour_step *steps, int count)
{
    struct hr_pixels src = test_pixels(dtype, 61, 30, 3, planar);
    struct hr_pixels dst = test_pixels(HR_F32, 61, 30, 3, true);
    double *image = hr__malloc(61 * 30 * 3 * sizeof *image), most = 0;

    paint(&src, max);
    for (int32_t i = 0; i < 61 * 30 * 3; i++)
        image[i] = test_value(&src, i / 3 % 61, i / 183, i % 3);
    for (int s = 0; s < count; s++)
        ref_step(image, 61 * 30, &steps[s], max);
    run(&src, &dst, steps, count, (float)max);
    for (int32_t i = 0; i < 61 * 30 * 3; i++)
        most = fmax(most, fabs(test_value(&dst, i / 3 % 61, i / 183, i % 3) - image[i]) /
                              max * 255);
    hr__free(image);
    hr__free(src.data);
    hr__free(dst.data);
    return most;
}

TEST(each_step_follows_torchvision)
{
    static const struct hr_colour_step steps[] = {
        {HR_COLOUR_BRIGHTNESS, 1.4f,   0},
        {HR_COLOUR_BRIGHTNESS, 0.3f,   0},
        {HR_COLOUR_CONTRAST,   1.7f,   0},
        {HR_COLOUR_CONTRAST,   0.2f,   0},
        {HR_COLOUR_SATURATION, 2,      0},
        {HR_COLOUR_SATURATION, 0,      0},
        {HR_COLOUR_HUE,        0.5f,   0},
        {HR_COLOUR_HUE,        -0.5f,  0},
        {HR_COLOUR_HUE,        0.07f,  0},
        {HR_COLOUR_HUE,        -0.31f, 0},
        {HR_COLOUR_GRAY,       0,      0},
    };

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        CHECK_NEAR(worst(HR_U8, false, 255, &steps[i], 1), 0, 0.01);
        CHECK_NEAR(worst(HR_F32, true, 1, &steps[i], 1), 0, 0.01);
    }
}

TEST(channels_are_permuted_last)
{
    static const int orders[6][3] = {
        {0, 1, 2},
        {0, 2, 1},
        {1, 0, 2},
        {1, 2, 0},
        {2, 0, 1},
        {2, 1, 0}
    };
    struct hr_pixels src = test_pixels(HR_U8, 61, 30, 3, false);
    struct hr_pixels dst = test_pixels(HR_U8, 61, 30, 3, false);
    struct hr_arena arena;

    paint(&src, 255);
    for (int i = 0; i < 6; i++) {
        struct hr_colour_step step = {.kind = HR_COLOUR_PERMUTE, .value = (float)i};

        run(&src, &dst, &step, 1, 255);
        for (int32_t at = 0; at < 61 * 30 * 3; at++)
            CHECK_EQ_INT(test_value(&dst, at / 3 % 61, at / 183, at % 3),
                         test_value(&src, at / 3 % 61, at / 183, orders[i][at % 3]));
    }
    hr__arena_init(&arena);
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr__colour_run(&arena, &src, &dst,
                             (struct hr_colour_step[]){
                                 {HR_COLOUR_PERMUTE,    1, 0},
                                 {HR_COLOUR_BRIGHTNESS, 1, 0}
    },
                             2, 255));
    hr__arena_finish(&arena);
    hr__free(src.data);
    hr__free(dst.data);
}

TEST(a_chain_follows_torchvision_and_contrast_sees_the_steps_before_it)
{
    static const struct hr_colour_step steps[] = {
        {HR_COLOUR_BRIGHTNESS, 1.3f, 0  },
        {HR_COLOUR_HUE,        0.1f, 0  },
        {HR_COLOUR_CONTRAST,   0.6f, 0  },
        {HR_COLOUR_SATURATION, 1.5f, 0  },
        {HR_COLOUR_CONTRAST,   1.4f, 0  },
        {HR_COLOUR_CLIP,       20,   240},
    };

    CHECK_NEAR(worst(HR_U8, true, 255, steps, 6), 0, 0.1);
    CHECK_NEAR(worst(HR_F32, false, 1, steps, 5), 0, 0.1);
}

TEST(round_goes_to_whole_levels_of_either_range)
{
    float in[3] = {0.1f, 0.5f, 0.7f}, out[3];
    struct hr_pixels src = {in, HR_F32, 3, 1, 1, 12, 4, 4}, dst = src;
    struct hr_colour_step step = {HR_COLOUR_ROUND, 0, 0};

    dst.data = out;
    run(&src, &dst, &step, 1, 1);
    CHECK_NEAR(out[0], 26 / 255.0, 1e-7); /* 25.5 rounds to even */
    CHECK_NEAR(out[1], 128 / 255.0, 1e-7);
    CHECK_NEAR(out[2], 178 / 255.0, 1e-6);
}

TEST(gray_gives_one_channel_or_three_equal_ones)
{
    uint8_t in[6] = {255, 0, 0, 10, 20, 30}, one[2], three[6];
    struct hr_pixels src = {in, HR_U8, 2, 1, 3, 6, 3, 1};
    struct hr_pixels gray = {one, HR_U8, 2, 1, 1, 2, 1, 1},
                     rgb = {three, HR_U8, 2, 1, 3, 6, 3, 1};
    struct hr_colour_step steps[2] = {
        {HR_COLOUR_GRAY,       0, 0},
        {HR_COLOUR_SATURATION, 3, 0}
    };
    struct hr_arena arena;

    run(&src, &gray, steps, 2, 255);
    run(&src, &rgb, steps, 2, 255);
    CHECK_EQ_INT(one[0], 76);
    CHECK_EQ_INT(one[1], 18);
    CHECK_EQ_INT(three[0], 76);
    CHECK_EQ_INT(three[2], 76);
    CHECK_EQ_INT(three[4], 18);
    hr__arena_init(&arena);
    steps[0].kind = HR_COLOUR_BRIGHTNESS;
    CHECK_ERR(HR_ERR_SHAPE, hr__colour_run(&arena, &src, &gray, steps, 2, 255));
    hr__arena_finish(&arena);
}

TEST(gray_input_responds_only_to_brightness_and_contrast)
{
    uint8_t in[4] = {0, 100, 100, 200}, out[4];
    struct hr_pixels src = {in, HR_U8, 4, 1, 1, 4, 1, 1},
                     dst = {out, HR_U8, 4, 1, 1, 4, 1, 1};
    struct hr_colour_step steps[4] = {
        {HR_COLOUR_HUE,        .3f, 0},
        {HR_COLOUR_CONTRAST,   .5f, 0},
        {HR_COLOUR_SATURATION, 0,   0},
        {HR_COLOUR_GRAY,       0,   0}
    };

    run(&src, &dst, steps, 4, 255);
    CHECK_EQ_INT(out[0], 50);
    CHECK_EQ_INT(out[1], 100);
    CHECK_EQ_INT(out[3], 150);
}

TEST(an_image_can_be_changed_in_place)
{
    struct hr_pixels a = test_pixels(HR_U8, 70, 9, 3, false);
    struct hr_pixels b = test_pixels(HR_U8, 70, 9, 3, false);
    struct hr_colour_step steps[2] = {
        {HR_COLOUR_HUE,      .2f, 0},
        {HR_COLOUR_CONTRAST, 2,   0}
    };

    test_noise(&a, 2, 0);
    run(&a, &b, steps, 2, 255);
    run(&a, &a, steps, 2, 255);
    CHECK_BYTES(a.data, b.data, test_bytes(&a));
    hr__free(a.data);
    hr__free(b.data);
}

TEST(every_instruction_set_gives_the_same_colours)
{
    struct test_rng rng;

    rng.state = 8;
    for (int round = 0; round < 200; round++) {
        int32_t w = 1 + test_below(&rng, 90), h = 1 + test_below(&rng, 9);
        bool u8 = round % 2;
        int32_t channels = round % 5 ? 3 : 1;
        struct hr_pixels src =
            test_pixels(u8 ? HR_U8 : HR_F32, w, h, channels, test_below(&rng, 2));
        enum hr_dtype out = test_below(&rng, 2) ? HR_U8 : HR_F32;
        bool planar = test_below(&rng, 2);
        struct hr_pixels plain = test_pixels(out, w, h, channels, planar);
        struct hr_pixels other = test_pixels(out, w, h, channels, planar);
        struct hr_colour_step steps[8];
        int count = test_below(&rng, 9);

        for (int s = 0; s < count; s++)
            steps[s] = (struct hr_colour_step){test_below(&rng, 7),
                                               (float)test_uniform(&rng, -.5, 2), 200};
        paint(&src, 255);
        hr__isa_limit(HR_ISA_C);
        run(&src, &plain, steps, count, 255);
        for (int i = 1; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            run(&src, &other, steps, count, 255);
            CHECK_BYTES(plain.data, other.data, test_bytes(&plain));
        }
        hr__isa_limit(TEST_BEST);
        hr__free(src.data);
        hr__free(plain.data);
        hr__free(other.data);
    }
}

TEST(limits_and_failed_allocations_are_reported)
{
    struct hr_pixels p = test_pixels(HR_U8, 5000, 1, 3, false);
    struct hr_colour_step steps[HR_COLOUR_MAX + 1] = {0};
    enum hr_err err = HR_ERR_MEMORY;
    struct hr_arena arena;

    test_noise(&p, 1, 0);
    for (uint64_t n = 1; err != HR_OK; n++) {
        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__colour_run(&arena, &p, &p, steps, 3, 255);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(n < 50);
        hr__arena_finish(&arena);
    }
    hr__arena_init(&arena);
    CHECK_ERR(HR_ERR_LIMIT,
              hr__colour_run(&arena, &p, &p, steps, HR_COLOUR_MAX + 1, 255));
    hr__arena_finish(&arena);
    hr__free(p.data);
}
