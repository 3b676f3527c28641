/*
 * ops/image_ops_test.c - what the image ops do to tiny images; their borders, draws and
 * refusals.
 */
#include "ops/ops_test_util.h"

#include <math.h>

static struct bench bench;

static void put_u8(uint8_t *levels, int height, int width, int channels)
{
    bench_clear(&bench);
    bench_put_image(&bench, "image", HR_U8, height, width, channels, levels);
}

static void put_f32(float *levels, int height, int width, int channels)
{
    bench_clear(&bench);
    bench_put_image(&bench, "image", HR_F32, height, width, channels, levels);
}

static void check_u8(const uint8_t *wanted, size_t count)
{
    size_t bytes;
    uint8_t *got = bench_bytes(&bench, "image", &bytes);

    CHECK_EQ_INT(bytes, count);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_INT(got[i], wanted[i]);
    free(got);
}

static void check_f32(const float *wanted, size_t count, double tolerance)
{
    size_t bytes;
    float *got = bench_bytes(&bench, "image", &bytes);

    CHECK_EQ_INT(bytes, count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(got[i], wanted[i], tolerance);
    free(got);
}

#define IS_U8(...)                                                                       \
    check_u8((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define IS_F32(tolerance, ...)                                                           \
    check_f32((const float[]){__VA_ARGS__},                                              \
              sizeof((const float[]){__VA_ARGS__}) / sizeof(float), tolerance)
#define OP(name, params) CHECK_OK(bench_op(&bench, name, params))
#define REFUSED(err, name, params, words)                                                \
    do {                                                                                 \
        memset(&bench.error, 0, sizeof bench.error);                                     \
        CHECK_ERR(err, bench_op(&bench, name, params));                                  \
        CHECK_HAS(bench.error.message, words);                                           \
    } while (0)

TEST(flip_mirrors_and_twice_is_nothing)
{
    uint8_t levels[6] = {1, 2, 3, 4, 5, 6};

    bench_init(&bench);
    put_u8(levels, 2, 3, 1);
    OP("image.flip", "{p: 1}");
    IS_U8(3, 2, 1, 6, 5, 4);
    put_u8(levels, 2, 3, 1);
    OP("image.flip", "{p: 1, direction: vertical}");
    IS_U8(4, 5, 6, 1, 2, 3);
    put_u8(levels, 2, 3, 1);
    OP("image.flip", "{p: 1}");
    OP("image.flip", "{p: 1}");
    IS_U8(1, 2, 3, 4, 5, 6);
    put_u8(levels, 2, 3, 1);
    OP("image.flip", "{p: 0}");
    IS_U8(1, 2, 3, 4, 5, 6);
    REFUSED(HR_ERR_RANGE, "image.flip", "{p: 1.5}", "p");
    bench_finish(&bench);
}

TEST(flips_come_as_often_as_asked_and_the_same_again)
{
    uint8_t levels[2] = {0, 255};
    int flips = 0, again = 0;

    bench_init(&bench);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 2000; i++) {
            size_t bytes;
            uint8_t *got;
            put_u8(levels, 1, 2, 1);
            bench.id.index = (uint64_t)i;
            OP("image.flip", "{p: 0.3}");
            got = bench_bytes(&bench, "image", &bytes);
            *(pass == 0 ? &flips : &again) += got[0] == 255;
            free(got);
        }
    CHECK(flips > 520 && flips < 680);
    CHECK_EQ_INT(flips, again);
    bench_finish(&bench);
}

TEST(center_crop_rounds_half_to_even_and_frames_small_images)
{
    uint8_t levels[5] = {1, 2, 3, 4, 5};

    bench_init(&bench);
    put_u8(levels, 1, 5, 1);
    OP("image.center_crop", "{size: [1, 4]}"); /* half a pixel: 0 */
    IS_U8(1, 2, 3, 4);
    put_u8(levels, 1, 5, 1);
    OP("image.center_crop", "{size: [1, 2]}"); /* one and a half: 2 */
    IS_U8(3, 4);
    put_u8(levels, 1, 2, 1);
    OP("image.center_crop", "{size: [2, 5]}");
    IS_U8(0, 1, 2, 0, 0, 0, 0, 0, 0, 0);
    bench_finish(&bench);
}

TEST(pad_modes_are_torchvisions)
{
    uint8_t levels[3] = {1, 2, 3};

    bench_init(&bench);
    put_u8(levels, 1, 3, 1);
    OP("image.pad", "{padding: [2, 0, 1, 0], fill: 9}");
    IS_U8(9, 9, 1, 2, 3, 9);
    put_u8(levels, 1, 3, 1);
    OP("image.pad", "{padding: [2, 0], mode: edge}");
    IS_U8(1, 1, 1, 2, 3, 3, 3);
    put_u8(levels, 1, 3, 1);
    OP("image.pad", "{padding: [3, 0], mode: reflect}");
    IS_U8(2, 3, 2, 1, 2, 3, 2, 1, 2);
    put_u8(levels, 1, 3, 1);
    OP("image.pad", "{padding: 1, fill: 7}");
    IS_U8(7, 7, 7, 7, 7, 7, 1, 2, 3, 7, 7, 7, 7, 7, 7);
    REFUSED(HR_ERR_RANGE, "image.pad", "{padding: 1, fill: 0.5}", "whole number");
    REFUSED(HR_ERR_ARGUMENT, "image.pad", "{padding: [1, 2, 3]}", "1, 2 or 4");
    bench_finish(&bench);
}

TEST(random_crop_reaches_every_place_and_refuses_small_images)
{
    uint8_t levels[4] = {1, 2, 3, 4};
    bool seen[5] = {false};

    bench_init(&bench);
    for (int i = 0; i < 200; i++) {
        size_t bytes;
        uint8_t *got;
        put_u8(levels, 1, 4, 1);
        bench.id.index = (uint64_t)i;
        OP("image.random_crop", "{size: 1}");
        got = bench_bytes(&bench, "image", &bytes);
        seen[got[0]] = true;
        free(got);
    }
    CHECK(seen[1] && seen[2] && seen[3] && seen[4]);
    put_u8(levels, 1, 4, 1);
    REFUSED(HR_ERR_SHAPE, "image.random_crop", "{size: 2}", "pad_if_needed");
    put_u8(levels, 1, 4, 1);
    OP("image.random_crop", "{size: 2, pad_if_needed: true}");
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[0], 2);
    bench_finish(&bench);
}

TEST(random_resized_crop_keeps_area_and_aspect_within_bounds)
{
    static uint8_t levels[64 * 48];

    bench_init(&bench);
    for (int i = 0; i < 300; i++) {
        const struct hr_image *image;
        double area, ratio;
        put_u8(levels, 48, 64, 1);
        bench.id.index = (uint64_t)i;
        OP("image.random_resized_crop", "{size: 10, scale: [0.2, 0.6]}");
        image = (const struct hr_image *)bench_value(&bench, "image")->u.lazy;
        area = (double)image->clip_width * image->clip_height / (48 * 64);
        ratio = (double)image->clip_width / image->clip_height;
        CHECK(area > 0.19 && area < 0.62);
        CHECK(ratio > 0.72 && ratio < 1.39);
    }
    /* No window of this shape fits: the middle. */
    put_u8(levels, 1, 64, 1);
    OP("image.random_resized_crop", "{size: 4, scale: [1, 1], ratio: [0.75, 1.25]}");
    CHECK_EQ_INT(((const struct hr_image *)bench_value(&bench, "image")->u.lazy)->clip_x,
                 31);
    REFUSED(HR_ERR_RANGE, "image.random_resized_crop", "{size: 4, scale: [1, 0.5]}",
            "smaller number comes first");
    bench_finish(&bench);
}

TEST(resize_shortest_keeps_the_aspect_and_the_limit)
{
    static uint8_t levels[30 * 50];

    bench_init(&bench);
    put_u8(levels, 30, 50, 1);
    OP("image.resize_shortest", "{size: 20}");
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[0], 20);
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[1], 33);
    put_u8(levels, 30, 50, 1);
    OP("image.resize_shortest", "{size: 20, max_size: 30}");
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[0], 18);
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[1], 30);
    REFUSED(HR_ERR_RANGE, "image.resize_shortest", "{size: 20, max_size: 10}", "below");
    bench_finish(&bench);
}

TEST(normalize_scales_levels_and_refuses_to_do_it_twice)
{
    uint8_t levels[6] = {0, 255, 51, 255, 0, 102};
    float units[3] = {0, 1, 0.5f};

    bench_init(&bench);
    put_u8(levels, 1, 2, 3);
    REFUSED(HR_ERR_RANGE, "image.normalize", "{mean: [0.4, 123, 0.4], std: 1}",
            "mean 123 is one of levels of 0 to 255, and levels are 0 to 1 here: divide");
    REFUSED(HR_ERR_RANGE, "image.normalize", "{mean: 0, std: 255}", "std 255 is one");
    put_u8(levels, 1, 2, 3);
    OP("image.normalize", "{mean: [0, 0.5, 0.2], std: [1, 0.5, 0.1]}");
    IS_F32(1e-5, 0, 1, 0, 1, -1, 2);
    REFUSED(HR_ERR_TYPE, "image.normalize", "{mean: half, std: half}",
            "normalised already");
    REFUSED(HR_ERR_TYPE, "image.color_jitter", "{brightness: 0.1}", "normalised already");
    put_f32(units, 1, 1, 3);
    OP("image.normalize", "{mean: half, std: half}");
    IS_F32(1e-6, -1, 1, 0);
    put_f32(units, 1, 3, 1);
    REFUSED(HR_ERR_SHAPE, "image.normalize", "{mean: imagenet, std: imagenet}",
            "3 means");
    REFUSED(HR_ERR_RANGE, "image.normalize", "{mean: half, std: 0}", "std");
    REFUSED(HR_ERR_TYPE, "image.normalize", "{mean: half, std: half, dtype: int32}",
            "float32");
    bench_finish(&bench);
}

TEST(casts_keep_the_meaning_of_images)
{
    uint8_t levels[3] = {0, 51, 255};

    bench_init(&bench);
    put_u8(levels, 1, 3, 1);
    OP("tensor.cast", "{dtype: float32}");
    IS_F32(1e-6, 0, 0.2f, 1);
    CHECK_EQ_INT(bench_field(&bench, "image")->meaning, HR_MEANING_IMAGE_UNIT);
    put_u8(levels, 1, 3, 1);
    OP("tensor.cast", "{dtype: float16}");
    OP("tensor.cast", "{dtype: uint8}");
    IS_U8(0, 51, 255);
    put_u8(levels, 1, 3, 1);
    OP("tensor.cast", "{dtype: float32, scale: false}");
    IS_F32(0, 0, 51, 255);
    REFUSED(HR_ERR_TYPE, "tensor.cast", "{dtype: uint8}", "normalised");
    put_u8(levels, 1, 3, 1);
    REFUSED(HR_ERR_TYPE, "tensor.cast", "{dtype: int32}", "an image is");
    bench_finish(&bench);
}

TEST(plain_tensors_are_cast_and_clamped)
{
    double numbers[4] = {-3.7, 300.2, NAN, 1e30};
    int64_t dim = 4;
    int32_t *got;
    size_t bytes;

    bench_init(&bench);
    hr__value_set_tensor(bench_put(&bench, "x"), HR_F64, 1, &dim, numbers, NULL);
    bench_field(&bench, "x")->dtype = HR_F64;
    bench_field(&bench, "x")->ndim = 1;
    hr__dim_set(&bench_field(&bench, "x")->dims[0], 4);
    OP("tensor.cast", "{field: x, dtype: int32}");
    got = bench_bytes(&bench, "x", &bytes);
    CHECK_EQ_INT(got[0], -3);
    CHECK_EQ_INT(got[1], 300);
    CHECK_EQ_INT(got[2], 0);
    CHECK_EQ_INT(got[3], INT32_MAX);
    free(got);
    bench_finish(&bench);
}

TEST(layout_moves_the_channels)
{
    uint8_t levels[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

    bench_init(&bench);
    put_u8(levels, 2, 2, 3);
    OP("tensor.layout", "{order: chw}");
    IS_U8(1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12);
    OP("tensor.layout", "{order: hwc}");
    IS_U8(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    /* Three by three by three: only the value's layout tells. */
    put_u8(levels, 2, 2, 3);
    OP("tensor.layout", "{order: chw}");
    OP("image.center_crop", "{size: [1, 2]}");
    IS_U8(1, 4, 2, 5, 3, 6);
    bench_finish(&bench);
}

TEST(jitter_with_fixed_factors_is_arithmetic)
{
    float units[3] = {0.2f, 0.4f, 0.9f};
    uint8_t levels[3] = {10, 100, 250};

    bench_init(&bench);
    put_f32(units, 1, 1, 3);
    OP("image.color_jitter", "{brightness: [1.5, 1.5]}");
    IS_F32(1e-6, 0.3f, 0.6f, 1);
    put_u8(levels, 1, 1, 3);
    OP("image.color_jitter", "{saturation: [0, 0]}"); /* .2989*10+.587*100+.114*250 */
    IS_U8(90, 90, 90);
    put_u8(levels, 1, 1, 3);
    OP("image.color_jitter", NULL);
    IS_U8(10, 100, 250);
    put_u8(levels, 1, 3, 1);
    OP("image.color_jitter", "{contrast: [0, 0]}");
    IS_U8(120, 120, 120);
    REFUSED(HR_ERR_RANGE, "image.color_jitter", "{brightness: [2, 1]}", "smaller");
    REFUSED(HR_ERR_RANGE, "image.color_jitter", "{hue: 0.7}", "hue");
    bench_finish(&bench);
}

TEST(a_standardized_image_has_mean_0_and_deviation_1)
{
    uint8_t levels[6] = {0, 240, 240, 0, 240, 0}, flat[4] = {9, 9, 9, 9};
    float units[4] = {0.5f, 0.5f, 0.5f, 0.52f};

    bench_init(&bench);
    put_u8(levels, 1, 2, 3);
    OP("image.standardize", NULL); /* mean 120, deviation 120 */
    IS_F32(1e-6, -1, 1, 1, -1, 1, -1);
    REFUSED(HR_ERR_TYPE, "image.standardize", NULL, "normalised already");
    put_u8(flat, 2, 2, 1);
    OP("image.standardize", NULL);
    IS_F32(0, 0, 0, 0, 0);
    put_f32(units, 2, 2, 1); /* the deviation is less than 1 / sqrt(4) */
    OP("image.standardize", NULL);
    IS_F32(1e-6, -0.01f, -0.01f, -0.01f, 0.03f);
    bench_finish(&bench);
}

TEST(a_random_area_crop_is_the_window_of_random_resized_crop)
{
    uint8_t levels[30 * 40];
    bool wide = false, tall = false;

    bench_init(&bench);
    for (int i = 0; i < 30 * 40; i++)
        levels[i] = (uint8_t)(i * 7);
    for (int i = 0; i < 100; i++) {
        const struct hr_value *value;
        int64_t height, width;
        size_t bytes;
        uint8_t *crop, *whole;
        char same[64];

        bench.id.index = (uint64_t)i;
        put_u8(levels, 30, 40, 1);
        OP("image.random_area_crop", "{scale: [0.1, 0.5], ratio: [0.5, 2]}");
        value = bench_value(&bench, "image");
        crop = bench_bytes(&bench, "image", &bytes);
        CHECK_OK(hr__value_force(&bench.thread, bench_value(&bench, "image"), NULL,
                                 &bench.error));
        height = value->dims[0];
        width = value->dims[1];
        CHECK(height * width >= 30 * 40 / 12 && height * width <= 30 * 40 * 6 / 10);
        wide = wide || width > height;
        tall = tall || width < height;
        snprintf(same, sizeof same,
                 "{size: [%d, %d], scale: [0.1, 0.5], ratio: [0.5, 2]}", (int)height,
                 (int)width);
        put_u8(levels, 30, 40, 1);
        OP("image.random_resized_crop", same);
        whole = bench_bytes(&bench, "image", &bytes);
        CHECK_BYTES(crop, whole, bytes);
        free(crop);
        free(whole);
    }
    CHECK(wide && tall);
    REFUSED(HR_ERR_RANGE, "image.random_area_crop", "{scale: [0.5, 0.1]}", "smaller");
    REFUSED(HR_ERR_RANGE, "image.random_area_crop", "{ratio: [2, 1]}", "smaller");
    bench_finish(&bench);
}

TEST(jitter_draws_the_same_for_the_same_record_only)
{
    float units[3] = {0.2f, 0.4f, 0.6f};
    float *first, *other;
    size_t bytes;

    bench_init(&bench);
    for (int i = 0; i < 2; i++) {
        put_f32(units, 1, 1, 3);
        OP("image.color_jitter",
           "{brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}");
        first = bench_bytes(&bench, "image", &bytes);
        put_f32(units, 1, 1, 3);
        bench.id.index += (uint64_t)i;
        OP("image.color_jitter",
           "{brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}");
        other = bench_bytes(&bench, "image", &bytes);
        CHECK((memcmp(first, other, bytes) == 0) == (i == 0));
        free(first);
        free(other);
    }
    bench_finish(&bench);
}

static int channel_order(const uint8_t *got, const uint8_t wanted[3])
{
    static const int orders[6][3] = {
        {0, 1, 2},
        {0, 2, 1},
        {1, 0, 2},
        {1, 2, 0},
        {2, 0, 1},
        {2, 1, 0}
    };

    for (int i = 0; i < 6; i++)
        if (got[0] == wanted[orders[i][0]] && got[1] == wanted[orders[i][1]] &&
            got[2] == wanted[orders[i][2]])
            return i;
    return -1;
}

/* Always, never, and refusals; what the kernels do is in levels_test.c. */
TEST(levels_change_with_a_probability)
{
    uint8_t levels[6] = {0, 10, 100, 128, 200, 255};
    float floats[3] = {0, 0.25f, 0.75f};

    bench_init(&bench);
    put_u8(levels, 1, 2, 3);
    OP("image.invert", "{p: 1}");
    IS_U8(255, 245, 155, 127, 55, 0);
    put_f32(floats, 1, 1, 3);
    OP("image.invert", "{p: 1}");
    IS_F32(0, 1, 0.75f, 0.25f);
    put_u8(levels, 1, 2, 3);
    OP("image.solarize", "{threshold: 128, p: 1}");
    IS_U8(0, 10, 100, 127, 55, 0);
    put_u8(levels, 1, 2, 3);
    OP("image.posterize", "{bits: 1, p: 1}");
    IS_U8(0, 0, 0, 128, 128, 128);
    put_u8(levels, 1, 6, 1);
    OP("image.autocontrast", "{p: 1}");
    IS_U8(0, 10, 100, 128, 200, 255);
    put_u8(levels, 1, 6, 1);
    OP("image.equalize", "{p: 1}");
    IS_U8(0, 10, 100, 128, 200, 255);
    put_u8(levels, 1, 2, 3);
    OP("image.invert", "{p: 0}");
    OP("image.solarize", "{threshold: 0, p: 0}");
    OP("image.posterize", "{bits: 0, p: 0}");
    OP("image.autocontrast", "{p: 0}");
    IS_U8(0, 10, 100, 128, 200, 255);
    REFUSED(HR_ERR_RANGE, "image.solarize", "{threshold: 256}", "threshold");
    REFUSED(HR_ERR_RANGE, "image.posterize", "{bits: 9}", "bits");
    put_f32(floats, 1, 1, 3);
    REFUSED(HR_ERR_RANGE, "image.solarize", "{threshold: 128}", "at most 1, not 128");
    put_f32(floats, 1, 1, 3);
    OP("image.normalize", "{mean: 0.5, std: 0.5}");
    REFUSED(HR_ERR_TYPE, "image.invert", "{}", "normalised");
    bench_finish(&bench);
}

TEST(sharpness_blends_the_middle)
{
    uint8_t levels[9] = {0, 10, 20, 30, 100, 40, 50, 60, 70};

    bench_init(&bench);
    put_u8(levels, 3, 3, 1);
    OP("image.sharpness", "{factor: 2, p: 1}");
    IS_U8(0, 10, 20, 30, 140, 40, 50, 60, 70);
    put_u8(levels, 3, 3, 1);
    OP("image.sharpness", "{factor: 2, p: 0}");
    IS_U8(0, 10, 20, 30, 100, 40, 50, 60, 70);
    REFUSED(HR_ERR_RANGE, "image.sharpness", "{factor: -1}", "factor");
    REFUSED(HR_ERR_RANGE, "image.sharpness", "{factor: [2, 1]}", "factor");
    bench_finish(&bench);
}

/* Whether the image is one of `count` results. */
static int which_u8(const uint8_t *results, size_t size, int count)
{
    size_t bytes;
    uint8_t *got = bench_bytes(&bench, "image", &bytes);
    int found = -1;

    CHECK_EQ_INT(bytes, size);
    for (int i = 0; i < count; i++)
        if (memcmp(got, results + (size_t)i * size, size) == 0)
            found = i;
    free(got);
    return found;
}

/* What torchvision 0.28 makes of the image by every step of the greatest magnitude. */
TEST(rand_augment_takes_every_step)
{
    const uint8_t levels[6] = {10, 60, 101, 150, 200, 240};
    static const uint8_t results[][6] = {
        {10,  60,  101, 150, 200, 240}, /* identity, and what one gray row does not show */
        {10,  60,  0,   0,   0,   0  }, /* shear along y, either way */
        {0,   0,   10,  60,  101, 150}, /* shift along x */
        {101, 150, 200, 240, 0,   0  },
        {0,   0,   101, 150, 0,   0  }, /* turn, either way */
        {19,  114, 191, 255, 255, 255}, /* brightness */
        {1,   6,   10,  15,  20,  24 },
        {0,   0,   77,  170, 255, 255}, /* contrast */
        {115, 120, 124, 129, 134, 138},
        {0,   48,  96,  144, 192, 240}, /* posterize */
        {245, 195, 154, 105, 55,  15 }, /* solarize */
        {0,   55,  100, 155, 210, 254}, /* autocontrast */
    };
    enum { RESULTS = sizeof results / sizeof *results };
    int seen[RESULTS] = {0};

    bench_init(&bench);
    for (int i = 0; i < 600; i++) {
        uint8_t copy[6];
        int found;

        memcpy(copy, levels, 6);
        put_u8(copy, 1, 6, 1);
        bench.id.index = (uint64_t)i;
        OP("image.rand_augment", "{num_ops: 1, magnitude: 30}");
        CHECK_BYTES(copy, levels, 6); /* the input stays as it is */
        found = which_u8(results[0], 6, RESULTS);
        CHECK(found >= 0);
        seen[found]++;
    }
    for (int i = 0; i < RESULTS; i++)
        CHECK(seen[i] > 6);
    bench_finish(&bench);
}

/* One chain of one step: a pixel outside is black, a pixel of the image as it was, and
 * the result lies between. */
TEST(aug_mix_mixes_the_image_with_chains)
{
    uint8_t levels[48], black = 0, changed = 0;

    bench_init(&bench);
    for (int i = 0; i < 300; i++) {
        size_t bytes;
        uint8_t *got;
        int least = 255, most = 0;

        memset(levels, 200, sizeof levels);
        put_u8(levels, 4, 4, 3);
        bench.id.index = (uint64_t)i;
        OP("image.aug_mix", "{mixture_width: 1, chain_depth: 1, severity: 10, all_ops: "
                            "false, alpha: 0.5}");
        got = bench_bytes(&bench, "image", &bytes);
        CHECK_EQ_INT(bytes, 48);
        for (int k = 0; k < 48; k++) {
            least = got[k] < least ? got[k] : least;
            most = got[k] > most ? got[k] : most;
            CHECK(got[k] == got[k - k % 3]); /* gray stays gray */
        }
        CHECK(most <= 200);
        black = black || least < 100;
        changed = changed || (most < 199 && most > 60);
        free(got);
    }
    CHECK(black && changed);
    put_u8(levels, 4, 4, 3);
    REFUSED(HR_ERR_RANGE, "image.aug_mix", "{severity: 11}", "severity");
    REFUSED(HR_ERR_RANGE, "image.aug_mix", "{mixture_width: 0}", "mixture_width");
    REFUSED(HR_ERR_RANGE, "image.aug_mix", "{alpha: 0}", "alpha");
    bench_finish(&bench);
}

TEST(augmentations_name_what_they_cannot_do)
{
    uint8_t levels[12] = {0};
    float floats[3] = {0, 0.5f, 1};

    bench_init(&bench);
    put_u8(levels, 2, 2, 3);
    OP("image.rand_augment", "{num_ops: 0}");
    REFUSED(HR_ERR_RANGE, "image.rand_augment", "{magnitude: 31}",
            "below num_magnitude_bins (31), not 31");
    REFUSED(HR_ERR_RANGE, "image.rand_augment", "{num_ops: 65}", "num_ops");
    REFUSED(HR_ERR_RANGE, "image.rand_augment", "{num_magnitude_bins: 1}", "bins");
    REFUSED(HR_ERR_RANGE, "image.trivial_augment_wide", "{num_magnitude_bins: 1}",
            "bins");
    REFUSED(HR_ERR_RANGE, "image.auto_augment", "{policy: mnist}", "imagenet");
    REFUSED(HR_ERR_RANGE, "image.trivial_augment_wide", "{fill: 0.5}", "whole number");
    REFUSED(HR_ERR_SHAPE, "image.trivial_augment_wide", "{fill: [1, 2]}", "2 levels");
    put_f32(floats, 1, 1, 3);
    REFUSED(HR_ERR_TYPE, "image.rand_augment", "{}", "before tensor.cast");
    put_u8(levels, 3, 2, 2);
    REFUSED(HR_ERR_SHAPE, "image.rand_augment", "{}", "need 1 or 3");
    bench_finish(&bench);
}

/* A tenth of the area, 2 wide and 5 high or the other way round; 24 of 240 pixels. */
TEST(erase_replaces_a_rectangle)
{
    uint8_t levels[240];
    float floats[240] = {0};
    int tall = 0, erased = 0;

    bench_init(&bench);
    memset(levels, 9, sizeof levels);
    for (uint64_t id = 0; id < 1000; id++) {
        int count = 0, first = -1, last = -1;
        uint8_t *got;
        size_t bytes;

        put_u8(levels, 12, 20, 1);
        bench.id.index = id;
        OP("image.erase",
           "{scale: [0.1, 0.1], ratio: [0.375, 2.67], value: 200, p: 0.7}");
        got = bench_bytes(&bench, "image", &bytes);
        for (int i = 0; i < 240; i++) {
            CHECK(got[i] == 9 || got[i] == 200);
            count += got[i] == 200;
            last = got[i] == 200 ? i : last;
            first = first < 0 && got[i] == 200 ? i : first;
        }
        free(got);
        if (count == 0)
            continue;
        CHECK_EQ_INT(count, (last / 20 - first / 20 + 1) * (last % 20 - first % 20 + 1));
        CHECK(count >= 20 && count <= 28);
        erased++;
        tall += last / 20 - first / 20 > last % 20 - first % 20;
    }
    CHECK(erased > 630 && erased < 770);
    CHECK(tall > erased / 4 && tall < erased * 3 / 4);
    put_u8(levels, 12, 20, 1);
    OP("image.erase", "{p: 1, scale: [1, 1]}"); /* the whole image: none */
    check_u8(levels, 240);
    REFUSED(HR_ERR_RANGE, "image.erase", "{value: 256}", "whole number from 0 to 255");
    REFUSED(HR_ERR_SHAPE, "image.erase", "{value: [1, 2, 3]}", "1 channels");
    REFUSED(HR_ERR_RANGE, "image.erase", "{scale: [0.5, 0.2]}", "scale");
    put_f32(floats, 4, 20, 3);
    OP("image.erase", "{p: 0}");
    check_f32(floats, 240, 0);
    bench_finish(&bench);
}

TEST(noise_that_is_erased_to_has_mean_0_and_deviation_1)
{
    static float floats[300 * 300];
    double sum = 0, squares = 0, count = 0;
    float *got;
    size_t bytes;

    bench_init(&bench);
    for (size_t i = 0; i < 300 * 300; i++)
        floats[i] = 0.5f;
    put_f32(floats, 300, 300, 1);
    OP("image.erase", "{p: 1, random: true, scale: [0.5, 0.5], ratio: [0.8, 1.2]}");
    got = bench_bytes(&bench, "image", &bytes);
    for (size_t i = 0; i < 300 * 300; i++) {
        if (got[i] == 0.5f)
            continue;
        sum += (double)got[i];
        squares += (double)got[i] * (double)got[i];
        count++;
    }
    free(got);
    CHECK(count > 44000 && count < 46000);
    CHECK_NEAR(sum / count, 0, 0.03);
    CHECK_NEAR(squares / count, 1, 0.04);
    bench_finish(&bench);
}

TEST(permute_channels_draws_every_order_equally_often)
{
    uint8_t levels[3] = {0, 1, 2};
    int count[27] = {0}, orders = 0;

    bench_init(&bench);
    for (uint64_t id = 0; id < 1200; id++) {
        uint8_t *got;
        size_t bytes;

        put_u8(levels, 1, 1, 3);
        bench.id.index = id;
        OP("image.permute_channels", "{}");
        got = bench_bytes(&bench, "image", &bytes);
        count[got[0] * 9 + got[1] * 3 + got[2]]++;
        free(got);
    }
    for (int i = 0; i < 27; i++) {
        orders += count[i] > 0;
        CHECK(count[i] == 0 || (count[i] > 140 && count[i] < 260));
    }
    CHECK_EQ_INT(orders, 6);
    bench_finish(&bench);
}

TEST(photometric_distort_changes_colours_in_order_and_permutes_channels)
{
    uint8_t levels[6] = {10, 30, 50, 20, 60, 101}, doubled[3] = {20, 60, 100};
    int seen[6] = {0}, changed = 0;
    size_t bytes;

    bench_init(&bench);
    for (int i = 0; i < 300; i++) {
        uint8_t *got;
        int order;

        bench.id.index = (uint64_t)i;
        put_u8(levels, 1, 2, 3);
        OP("image.photometric_distort", "{p: 1, brightness: [2, 2], contrast: [1, 1], "
                                        "saturation: [1, 1], hue: [0, 0]}");
        got = bench_bytes(&bench, "image", &bytes);
        order = channel_order(got, doubled);
        CHECK(order >= 0);
        seen[order]++;
        free(got);
        put_u8(levels, 1, 2, 3);
        OP("image.photometric_distort", "{p: 0.5, brightness: [2, 2], contrast: [1, 1], "
                                        "saturation: [1, 1], hue: [0, 0]}");
        got = bench_bytes(&bench, "image", &bytes);
        changed += channel_order(got, doubled) >= 0;
        free(got);
    }
    for (int i = 0; i < 6; i++)
        CHECK(seen[i] > 20);
    CHECK(changed > 100 && changed < 200);
    put_u8(levels, 1, 2, 3);
    OP("image.photometric_distort", "{p: 0}");
    IS_U8(10, 30, 50, 20, 60, 101);
    put_u8(levels, 2, 3, 1);
    OP("image.photometric_distort", "{p: 1, brightness: [2, 2], contrast: [1, 1], "
                                    "saturation: [0, 0], hue: [0.5, 0.5]}");
    IS_U8(20, 60, 100, 40, 120, 202);
    REFUSED(HR_ERR_RANGE, "image.photometric_distort", "{contrast: [1.5, 0.5]}",
            "the smaller number comes first");
    REFUSED(HR_ERR_RANGE, "image.photometric_distort", "{hue: [-0.6, 0]}", "hue");
    REFUSED(HR_ERR_RANGE, "image.photometric_distort", "{brightness: 0.4}", "brightness");
    bench_finish(&bench);
}

/* The contrast step sees the levels before saturation and hue, or those after them. */
TEST(photometric_distort_draws_the_place_of_contrast)
{
    float units[6] = {0.2f, 0.4f, 0.8f, 0.1f, 0.9f, 0.3f};
    float *first = NULL;
    int others = 0;
    size_t bytes;

    bench_init(&bench);
    for (int i = 0; i < 200; i++) {
        float *got;

        bench.id.index = (uint64_t)i;
        put_f32(units, 1, 2, 3);
        OP("image.photometric_distort", "{p: 1, brightness: [1, 1], contrast: [3, 3], "
                                        "saturation: [0, 0], hue: [0, 0]}");
        got = bench_bytes(&bench, "image", &bytes);
        for (int k = 1; k < 3; k++) /* gray: any order of the channels */
            CHECK_NEAR(got[0], got[k], 1e-5);
        if (first == NULL)
            first = got;
        else if (fabsf(first[0] - got[0]) > 1e-3f)
            others++;
        if (first != got)
            free(got);
    }
    free(first);
    CHECK(others > 50 && others < 150);
    bench_finish(&bench);
}

TEST(zoom_out_places_the_image_on_a_canvas_of_its_aspect)
{
    static const uint8_t mean[3] = {123, 117, 104};
    uint8_t levels[4 * 6 * 3];
    int places = 0, left_of = -1;

    bench_init(&bench);
    for (int i = 0; i < 72; i++)
        levels[i] = (uint8_t)(i + 1);
    for (int i = 0; i < 200; i++) {
        const struct hr_value *value;
        int64_t width, height, left = 0, top = 0;
        uint8_t *got;
        size_t bytes;

        bench.id.index = (uint64_t)i;
        put_u8(levels, 4, 6, 3);
        OP("image.zoom_out", "{fill: [123, 117, 104], p: 1, side_range: [1, 3]}");
        value = bench_value(&bench, "image");
        height = value->dims[0];
        width = value->dims[1];
        CHECK(width >= 6 && width <= 18 && height >= 4 && height <= 12);
        CHECK(width * 4 - height * 6 < 6 && height * 6 - width * 4 < 6);
        got = bench_bytes(&bench, "image", &bytes);
        while (memcmp(got + (top * width + left) * 3, levels, 18) != 0)
            if (++left + 6 > width) {
                left = 0;
                CHECK(++top + 4 <= height);
            }
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++) {
                const uint8_t *pixel = got + (y * width + x) * 3;
                bool inside = x >= left && x < left + 6 && y >= top && y < top + 4;

                CHECK_BYTES(pixel,
                            inside ? &levels[((y - top) * 6 + x - left) * 3] : mean, 3);
            }
        places += left != left_of;
        left_of = (int)left;
        free(got);
    }
    CHECK(places > 50);
    put_u8(levels, 4, 6, 3);
    OP("image.zoom_out", "{p: 0}");
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[1], 6);
    put_u8(levels, 4, 6, 3);
    REFUSED(HR_ERR_RANGE, "image.zoom_out", "{side_range: [0.5, 2]}", "side_range");
    REFUSED(HR_ERR_RANGE, "image.zoom_out", "{side_range: [3, 2]}", "smaller");
    REFUSED(HR_ERR_RANGE, "image.zoom_out", "{fill: 300}", "0 to 255");
    REFUSED(HR_ERR_SHAPE, "image.zoom_out", "{fill: [1, 2]}", "2 levels");
    bench_finish(&bench);
}

TEST(scale_jitter_fits_the_image_into_a_size)
{
    uint8_t levels[4 * 6 * 3] = {0};
    int smaller = 0;

    bench_init(&bench);
    for (int i = 0; i < 200; i++) {
        const struct hr_value *value;

        bench.id.index = (uint64_t)i;
        put_u8(levels, 4, 6, 3);
        OP("image.scale_jitter", "{size: [40, 30], scale: [0.5, 2]}");
        value = bench_value(&bench, "image");
        CHECK(value->dims[1] >= 15 && value->dims[1] <= 60);
        CHECK(value->dims[0] * 3 <= value->dims[1] * 2 + 2 &&
              value->dims[0] * 3 >= value->dims[1] * 2 - 3);
        smaller += value->dims[1] < 30;
    }
    CHECK(smaller > 40 && smaller < 100);
    put_u8(levels, 4, 6, 3);
    OP("image.scale_jitter", "{size: 30, scale: [0.001, 0.001]}");
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[0], 1);
    put_u8(levels, 4, 6, 3);
    REFUSED(HR_ERR_RANGE, "image.scale_jitter", "{size: 30, scale: [2, 1]}", "smaller");
    REFUSED(HR_ERR_RANGE, "image.scale_jitter", "{size: 30, scale: [0, 1]}", "scale");
    REFUSED(HR_ERR_LIMIT, "image.scale_jitter", "{size: 60000, scale: [900, 1000]}",
            "would become");
    bench_finish(&bench);
}

TEST(random_shortest_size_draws_a_length)
{
    uint8_t levels[4 * 6 * 3] = {0};
    int counts[41] = {0};

    bench_init(&bench);
    for (int i = 0; i < 300; i++) {
        const struct hr_value *value;

        bench.id.index = (uint64_t)i;
        put_u8(levels, 4, 6, 3);
        OP("image.random_shortest_size", "{sizes: [10, 20, 40], max_size: 30}");
        value = bench_value(&bench, "image");
        CHECK_EQ_INT(value->dims[1], value->dims[0] == 10 ? 15 : 30);
        counts[value->dims[0]]++;
        put_u8(levels, 4, 6, 3);
        OP("image.random_shortest_size", "{between: [1, 2]}");
        value = bench_value(&bench, "image");
        CHECK_EQ_INT(value->dims[1], value->dims[0] == 1 ? 1 : 3);
        counts[value->dims[0]]++;
    }
    CHECK(counts[1] > 100 && counts[2] > 100 && counts[1] + counts[2] == 300);
    CHECK(counts[10] > 50 && counts[20] > 150 && counts[10] + counts[20] == 300);
    put_u8(levels, 4, 6, 3);
    REFUSED(HR_ERR_ARGUMENT, "image.random_shortest_size", "{}", "give lengths");
    REFUSED(HR_ERR_ARGUMENT, "image.random_shortest_size", "{sizes: 3, between: [1, 2]}",
            "give lengths");
    REFUSED(HR_ERR_ARGUMENT, "image.random_shortest_size", "{between: 3}", "two");
    REFUSED(HR_ERR_RANGE, "image.random_shortest_size", "{between: [3, 2]}", "smaller");
    REFUSED(HR_ERR_LIMIT, "image.random_shortest_size", "{sizes: 60000}", "would become");
    bench_finish(&bench);
}

TEST(jpeg_loses_what_its_quality_loses)
{
    uint8_t levels[16 * 16 * 3];
    uint64_t lost[2] = {0};
    const uint8_t *gray;
    struct hr_rng rng;

    bench_init(&bench);
    hr__rng_init(&rng, 5, 0, 0);
    for (size_t i = 0; i < sizeof levels; i++)
        levels[i] = (uint8_t)(8 * (i % 17) + hr__rng_below(&rng, 60));
    for (int low = 0; low < 2; low++) {
        const uint8_t *got;

        put_u8(levels, 16, 16, 3);
        OP("image.jpeg", low ? "{quality: 10}" : "{quality: [90, 100]}");
        CHECK_EQ_INT(bench_value(&bench, "image")->dims[2], 3);
        got = bench_value(&bench, "image")->data;
        for (size_t i = 0; i < sizeof levels; i++)
            lost[low] += (uint64_t)abs(got[i] - levels[i]);
    }
    CHECK(lost[0] > 0 && lost[1] > lost[0]);
    for (size_t i = 0; i < 16 * 16; i++)
        levels[i] = (uint8_t)(8 * (i % 16) + 6 * (i / 16));
    put_u8(levels, 16, 16, 1);
    OP("image.jpeg", "{quality: 100}");
    CHECK_EQ_INT(bench_value(&bench, "image")->bytes, 16 * 16);
    gray = bench_value(&bench, "image")->data;
    for (size_t i = 0; i < 16 * 16; i++)
        CHECK(abs(gray[i] - (uint8_t)(8 * (i % 16) + 6 * (i / 16))) <= 3);
    memset(levels, 77, sizeof levels);
    put_u8(levels, 1, 1, 1);
    OP("image.jpeg", "{quality: [1, 100]}");
    IS_U8(77);
    put_u8(levels, 4, 4, 3);
    REFUSED(HR_ERR_RANGE, "image.jpeg", "{quality: [30, 10]}", "smaller");
    REFUSED(HR_ERR_RANGE, "image.jpeg", "{quality: 0}", "quality");
    bench_finish(&bench);
}

/* A photo of smooth colours, as far as `channels` go. */
static void put_smooth(uint8_t *levels, int side, int channels)
{
    for (int i = 0; i < side * side * channels; i++)
        levels[i] = (uint8_t)(3 * (i / channels % side) + 4 * (i / channels / side) +
                              20 * (i % channels));
    put_u8(levels, side, side, channels);
}

TEST(encoded_images_are_read_by_decode)
{
    static const struct {
        const char *params;
        int channels, difference;
    } cases[] = {
        {"{}",                            3, 4},
        {"{quality: 100, sampling: 444}", 3, 2},
        {"{quality: 100, sampling: 422}", 3, 3},
        {"{quality: 100}",                1, 1},
        {"{format: png}",                 1, 0},
        {"{format: png}",                 3, 0},
        {"{format: png}",                 4, 0},
    };
    uint8_t levels[17 * 17 * 4] = {0}, kept[sizeof levels], *got;
    size_t bytes;

    bench_init(&bench);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_smooth(levels, 17, cases[i].channels);
        memcpy(kept, levels, sizeof kept);
        OP("image.encode", cases[i].params);
        CHECK_BYTES(levels, kept, sizeof kept);
        CHECK(bench_value(&bench, "image") == NULL);
        CHECK_EQ_INT(bench_value(&bench, "data")->kind, HR_VALUE_BYTES);
        OP("image.decode", "{mode: exact, color: unchanged}");
        got = bench_bytes(&bench, "image", &bytes);
        CHECK_EQ_INT(bytes, 17 * 17 * cases[i].channels);
        for (size_t k = 0; k < bytes; k++)
            CHECK(abs(got[k] - levels[k]) <= cases[i].difference);
        free(got);
    }
    bench_finish(&bench);
}

TEST(encode_says_what_a_file_cannot_hold)
{
    float values[12] = {0};
    uint8_t levels[12] = {0};

    bench_init(&bench);
    put_f32(values, 2, 2, 3);
    REFUSED(HR_ERR_TYPE, "image.encode", "{}", "uint8: encode before image.normalize");
    put_u8(levels, 2, 2, 3);
    OP("tensor.layout", "{order: chw}");
    REFUSED(HR_ERR_SHAPE, "image.encode", "{}", "encode before tensor.layout");
    put_u8(levels, 2, 2, 2);
    REFUSED(HR_ERR_SHAPE, "image.encode", "{}", "2 channels, and a JPEG 1 or 3");
    put_u8(levels, 2, 2, 2);
    OP("image.encode", "{format: png}");
    put_u8(levels, 2, 2, 1);
    OP("record.kind", "{field: image, kind: mask}");
    REFUSED(HR_ERR_ARGUMENT, "image.encode", "{}", "give format: png");
    bench_finish(&bench);
}

TEST(fixed_size_crop_crops_long_sides_and_pads_short_ones)
{
    uint8_t levels[6] = {1, 2, 3, 4, 5, 6};
    bool seen[2] = {false};

    bench_init(&bench);
    for (int i = 0; i < 50; i++) {
        uint8_t *got;
        size_t bytes;

        bench.id.index = (uint64_t)i;
        put_u8(levels, 2, 3, 1);
        OP("image.fixed_size_crop", "{size: [3, 2], fill: 9}");
        got = bench_bytes(&bench, "image", &bytes);
        CHECK_EQ_INT(bytes, 6);
        CHECK(got[0] == 1 || got[0] == 2);
        seen[got[0] - 1] = true;
        CHECK(got[1] == got[0] + 1 && got[2] == got[0] + 3 && got[3] == got[0] + 4);
        CHECK(got[4] == 9 && got[5] == 9);
        free(got);
    }
    CHECK(seen[0] && !seen[1]); /* an offset below 1, rounded down, as torchvision's */
    put_u8(levels, 2, 3, 1);
    OP("image.fixed_size_crop", "{size: [2, 3]}");
    IS_U8(1, 2, 3, 4, 5, 6);
    put_u8(levels, 2, 3, 1);
    OP("image.fixed_size_crop", "{size: [2, 4], mode: edge}");
    IS_U8(1, 2, 3, 3, 4, 5, 6, 6);
    REFUSED(HR_ERR_RANGE, "image.fixed_size_crop", "{size: 4, fill: 300}", "0 to 255");
    bench_finish(&bench);
}

TEST(grayscale_gives_one_or_three_channels)
{
    uint8_t levels[3] = {10, 100, 250};

    bench_init(&bench);
    put_u8(levels, 1, 1, 3);
    OP("image.grayscale", NULL);
    IS_U8(90);
    put_u8(levels, 1, 1, 3);
    OP("image.grayscale", "{channels: 3}");
    IS_U8(90, 90, 90);
    put_u8(levels, 1, 1, 1);
    OP("image.grayscale", "{channels: 3}");
    IS_U8(10, 10, 10);
    put_u8(levels, 1, 1, 3);
    OP("image.grayscale", "{channels: 3, p: 0}");
    IS_U8(10, 100, 250);
    REFUSED(HR_ERR_SHAPE, "image.grayscale", "{p: 0.5}", "channels must be 3");
    REFUSED(HR_ERR_RANGE, "image.grayscale", "{channels: 2}", "1 or 3");
    bench_finish(&bench);
}

TEST(blur_keeps_flat_images_and_spreads_a_point)
{
    uint8_t flat[25], *got;
    float point[25] = {0}, sum = 0, *spread;
    size_t bytes;

    bench_init(&bench);
    memset(flat, 77, sizeof flat);
    put_u8(flat, 5, 5, 1);
    OP("image.gaussian_blur", "{size: 11, sigma: [0.1, 2]}");
    got = bench_bytes(&bench, "image", &bytes);
    for (int i = 0; i < 25; i++)
        CHECK_EQ_INT(got[i], 77);
    free(got);
    point[12] = 1;
    put_f32(point, 5, 5, 1);
    OP("image.gaussian_blur", "{size: 3, sigma: 1}");
    spread = bench_bytes(&bench, "image", &bytes);
    for (int i = 0; i < 25; i++)
        sum += spread[i];
    CHECK_NEAR(sum, 1, 1e-5);
    CHECK_NEAR(spread[11] / spread[12], exp(-0.5), 1e-5);
    CHECK_NEAR(spread[11], spread[7], 1e-6);
    free(spread);
    REFUSED(HR_ERR_RANGE, "image.gaussian_blur", "{size: 4}", "odd");
    bench_finish(&bench);
}

TEST(rotate_by_right_angles_moves_pixels)
{
    uint8_t levels[6] = {1, 2, 3, 4, 5, 6};
    uint8_t square[4] = {1, 2, 3, 4};

    bench_init(&bench);
    put_u8(square, 2, 2, 1);
    OP("image.rotate", "{degrees: [90, 90]}"); /* counter-clockwise */
    IS_U8(2, 4, 1, 3);
    put_u8(levels, 2, 3, 1);
    OP("image.rotate", "{degrees: [90, 90], expand: true}");
    CHECK_EQ_INT(bench_value(&bench, "image")->dims[0], 3);
    IS_U8(3, 6, 2, 5, 1, 4);
    put_u8(levels, 2, 3, 1);
    OP("image.rotate", "{degrees: [180, 180], interpolation: bilinear}");
    IS_U8(6, 5, 4, 3, 2, 1);
    put_u8(levels, 2, 3, 1);
    OP("image.rotate", "{degrees: [0, 0]}");
    IS_U8(1, 2, 3, 4, 5, 6);
    put_u8(square, 2, 2, 1);
    OP("image.rotate", "{degrees: [90, 90], center: [0.5, 1.5]}"); /* of level 3 */
    IS_U8(4, 0, 3, 0);
    put_u8(square, 2, 2, 1);
    OP("image.rotate", "{degrees: [180, 180], center: [0, 0]}"); /* all of it leaves */
    IS_U8(0, 0, 0, 0);
    REFUSED(HR_ERR_RANGE, "image.rotate", "{degrees: -5}", "both directions");
    REFUSED(HR_ERR_ARGUMENT, "image.rotate", "{degrees: 5, center: 1}", "two numbers");
    REFUSED(HR_ERR_ARGUMENT, "image.rotate", "{degrees: 5, center: [1, 1], expand: true}",
            "leave out center");
    bench_finish(&bench);
}

TEST(affine_turns_clockwise_scales_and_fills)
{
    uint8_t square[4] = {1, 2, 3, 4};
    static uint8_t row[16];
    size_t bytes;
    uint8_t *got;

    bench_init(&bench);
    put_u8(square, 2, 2, 1);
    OP("image.affine", "{degrees: [90, 90]}");
    IS_U8(3, 1, 4, 2);
    memset(row, 200, sizeof row);
    put_u8(row, 4, 4, 1);
    OP("image.affine", "{degrees: 0, scale: [0.5, 0.5], fill: 9}");
    IS_U8(9, 9, 9, 9, 9, 200, 200, 9, 9, 200, 200, 9, 9, 9, 9, 9);
    put_u8(row, 4, 4, 1);
    OP("image.affine", "{degrees: 30, translate: [0.2, 0.2], shear: [-5, 5, -5, 5]}");
    got = bench_bytes(&bench, "image", &bytes);
    CHECK_EQ_INT(bytes, 16);
    free(got);
    put_u8(square, 2, 2, 1);
    OP("image.affine", "{degrees: 0, scale: [2, 2], center: [0, 2]}");
    IS_U8(3, 3, 3, 3);
    REFUSED(HR_ERR_ARGUMENT, "image.affine", "{degrees: 0, center: [1]}", "two numbers");
    put_u8(square, 2, 2, 1);
    OP("image.affine", "{degrees: 0, shear: [2, 2, -1, 1]}"); /* each pair by itself */
    IS_U8(1, 2, 3, 4);
    REFUSED(HR_ERR_RANGE, "image.affine", "{degrees: 0, shear: [1, 2, 5, 4]}",
            "of each pair");
    REFUSED(HR_ERR_RANGE, "image.affine", "{degrees: 0, shear: [2, 1]}", "comes first");
    REFUSED(HR_ERR_ARGUMENT, "image.affine", "{degrees: 0, shear: [1, 2, 3]}",
            "1, 2 or 4");
    bench_finish(&bench);
}

TEST(clip_limits_values)
{
    uint8_t levels[3] = {10, 100, 250};
    float units[3] = {0.1f, 0.5f, 0.9f};

    bench_init(&bench);
    put_u8(levels, 1, 3, 1);
    OP("image.clip", "{min: 20, max: 200}");
    IS_U8(20, 100, 200);
    put_f32(units, 1, 3, 1);
    OP("image.normalize", "{mean: 0.5, std: 0.1}");
    OP("image.clip", "{min: -3, max: 3}");
    IS_F32(1e-5, -3, 0, 3);
    REFUSED(HR_ERR_RANGE, "image.clip", "{min: 2, max: 1}", "above");
    bench_finish(&bench);
}

TEST(pixel_ops_refuse_half_floats_and_bytes)
{
    uint8_t levels[3] = {10, 100, 250};

    bench_init(&bench);
    put_u8(levels, 1, 3, 1);
    OP("tensor.cast", "{dtype: float16}");
    REFUSED(HR_ERR_TYPE, "image.gaussian_blur", "{size: 3}", "convert to float16 after");
    bench_clear(&bench);
    bench_put_bytes(&bench, "image", "x", 1);
    REFUSED(HR_ERR_TYPE, "image.flip", NULL, "image.decode");
    bench_finish(&bench);
}

TEST(one_hot_marks_the_class)
{
    int64_t label = 2;
    size_t bytes;
    float *got;

    bench_init(&bench);
    hr__value_set_tensor(bench_put(&bench, "label"), HR_I64, 0, NULL, &label, NULL);
    bench_field(&bench, "label")->dtype = HR_I64;
    OP("tensor.one_hot", "{classes: 4}");
    got = bench_bytes(&bench, "label", &bytes);
    CHECK_EQ_INT(bytes, 16);
    CHECK(got[0] == 0 && got[1] == 0 && got[2] == 1 && got[3] == 0);
    free(got);
    bench_clear(&bench);
    hr__value_set_tensor(bench_put(&bench, "label"), HR_I64, 0, NULL, &label, NULL);
    bench_field(&bench, "label")->dtype = HR_I64;
    REFUSED(HR_ERR_RANGE, "tensor.one_hot", "{classes: 2}", "class 2");
    bench_finish(&bench);
}

TEST(noise_is_normal_and_stays_between_black_and_white)
{
    static float floats[300 * 300];
    static uint8_t levels[300 * 300];
    double sum = 0, squares = 0, beyond = 0;
    uint8_t *whole;
    float *got;
    size_t bytes;

    bench_init(&bench);
    for (size_t i = 0; i < 300 * 300; i++)
        floats[i] = 0.5f;
    put_f32(floats, 300, 300, 1);
    OP("image.gaussian_noise", "{mean: 0.1, sigma: 0.08}");
    got = bench_bytes(&bench, "image", &bytes);
    for (size_t i = 0; i < 300 * 300; i++) {
        double noise = (double)got[i] - 0.6;

        sum += noise;
        squares += noise * noise;
        beyond += fabs(noise) > 0.16;
    }
    free(got);
    CHECK(fabs(sum / 90000) < 0.0015); /* 5 standard deviations are 0.0013 */
    CHECK(fabs(sqrt(squares / 90000) - 0.08) < 0.001);
    CHECK(fabs(beyond / 90000 - 0.0455) < 0.004);
    memset(levels, 250, sizeof levels);
    put_u8(levels, 300, 300, 1);
    OP("image.gaussian_noise", "{sigma: 0.1}");
    whole = bench_bytes(&bench, "image", &bytes);
    beyond = 0;
    for (size_t i = 0; i < 300 * 300; i++)
        beyond += whole[i] == 255;
    free(whole);
    CHECK(fabs(beyond / 90000 - 0.4222) < 0.01); /* from 5 / 25.5 deviations on */
    put_u8(levels, 300, 300, 1);
    OP("image.gaussian_noise", "{sigma: 0.1, clip: false}");
    whole = bench_bytes(&bench, "image", &bytes);
    beyond = 0;
    for (size_t i = 0; i < 300 * 300; i++)
        beyond += whole[i] < 100;
    free(whole);
    CHECK(beyond > 30000); /* wrapped around */
    put_u8(levels, 300, 300, 1);
    OP("image.gaussian_noise", "{sigma: 0}");
    check_u8(levels, 300 * 300);
    bench_finish(&bench);
}

TEST(elastic_moves_pixels_by_what_it_draws)
{
    uint8_t levels[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

    bench_init(&bench);
    put_u8(levels, 3, 4, 1);
    OP("image.elastic", "{alpha: 0}");
    check_u8(levels, 12);
    put_u8(levels, 1, 12, 1); /* a blur that is larger than the image */
    OP("image.elastic", "{alpha: 0, sigma: 100}");
    check_u8(levels, 12);
    put_u8(levels, 3, 4, 1); /* all pixels move out of it */
    OP("image.elastic", "{alpha: 1000000, sigma: 0, fill: 77}");
    memset(levels, 77, sizeof levels);
    check_u8(levels, 12);
    REFUSED(HR_ERR_RANGE, "image.elastic", "{alpha: -1}", "0 to 1");
    REFUSED(HR_ERR_RANGE, "image.elastic", "{sigma: 101}", "0 to 100");
    REFUSED(HR_ERR_SHAPE, "image.elastic", "{fill: [1, 2]}", "1 channels");
    bench_finish(&bench);
}

TEST(perspective_keeps_what_it_does_not_draw)
{
    uint8_t levels[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

    bench_init(&bench);
    put_u8(levels, 3, 4, 1);
    OP("image.perspective", "{distortion_scale: 0, p: 1}");
    check_u8(levels, 12);
    OP("image.perspective", "{p: 0}");
    check_u8(levels, 12);
    put_u8(levels, 1, 12, 1); /* corners of one line */
    OP("image.perspective", "{p: 1, distortion_scale: 1}");
    check_u8(levels, 12);
    REFUSED(HR_ERR_RANGE, "image.perspective", "{distortion_scale: 1.1}", "0 to 1");
    REFUSED(HR_ERR_SHAPE, "image.perspective", "{fill: [1, 2]}", "1 channels");
    bench_finish(&bench);
}
