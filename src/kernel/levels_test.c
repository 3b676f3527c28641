/*
 * kernel/levels_test.c - changes of levels against values worked out by hand,
 * in every form of an image.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/levels.h"

#include <math.h>

/* One row of levels in one channel. */
static struct hr_pixels row_of(uint8_t *levels, int32_t n)
{
    return hr__pixels_u8(levels, n, 1, 1);
}

#define IS(...) CHECK_BYTES(levels, ((const uint8_t[]){__VA_ARGS__}), sizeof levels)

TEST(solarize_inverts_from_the_threshold_on)
{
    uint8_t levels[5] = {0, 127, 128, 200, 255};
    struct hr_pixels row = row_of(levels, 5);
    float floats[3] = {0.25f, 0.5f, 1};
    struct hr_pixels other = {floats, HR_F32, 3, 1, 1, 12, 4, 4};

    hr__levels_solarize(&row, 127.5f);
    IS(0, 127, 127, 55, 0);
    hr__levels_solarize(&row, 256);
    IS(0, 127, 127, 55, 0);
    hr__levels_solarize(&row, -INFINITY);
    IS(255, 128, 128, 200, 255);
    hr__levels_solarize(&row, 255);
    IS(0, 128, 128, 200, 0);
    hr__levels_solarize(&other, 0.5f);
    CHECK(floats[0] == 0.25f && floats[1] == 0.5f && floats[2] == 0);
}

TEST(posterize_keeps_the_highest_bits)
{
    uint8_t levels[4] = {1, 127, 200, 255};
    struct hr_pixels row = row_of(levels, 4);
    float floats[4] = {-0.1f, 0.3f, 0.5f, 1};
    struct hr_pixels other = {floats, HR_F32, 4, 1, 1, 16, 4, 4};

    hr__levels_posterize(&row, 8);
    IS(1, 127, 200, 255);
    hr__levels_posterize(&row, 3);
    IS(0, 96, 192, 224);
    hr__levels_posterize(&row, 0);
    IS(0, 0, 0, 0);
    hr__levels_posterize(&other, 2);
    CHECK(floats[0] == 0 && floats[1] == 0.25f && floats[2] == 0.5f);
    CHECK(floats[3] == 0.75f);
}

TEST(autocontrast_stretches_and_truncates)
{
    uint8_t levels[5] = {10, 50, 77, 100, 210};
    struct hr_pixels row = row_of(levels, 5);
    float floats[3] = {0.25f, 0.375f, 0.75f};
    struct hr_pixels other = {floats, HR_F32, 3, 1, 1, 12, 4, 4};

    hr__levels_autocontrast(&row); /* 50.999996, 85.42, 114.75, 254.99997 */
    IS(0, 50, 85, 114, 254);
    memset(levels, 7, sizeof levels);
    hr__levels_autocontrast(&row);
    IS(7, 7, 7, 7, 7);
    hr__levels_autocontrast(&other);
    CHECK(floats[0] == 0 && floats[1] == 0.25f && floats[2] == 1);
}

/* 600 pixels: 510 of them below the highest level, so a step of 2. */
TEST(equalize_makes_the_histogram_flat)
{
    uint8_t levels[600];
    struct hr_pixels row = row_of(levels, 600);

    for (int i = 0; i < 600; i++)
        levels[i] = i < 100 ? 30 : i < 510 ? 40 : 50;
    hr__levels_equalize(&row);
    for (int i = 0; i < 600; i++) /* (0, 100 and 510 plus half a step) / step */
        CHECK_EQ_INT(levels[i], i < 100 ? 0 : i < 510 ? 50 : 255);
    for (int i = 0; i < 600; i++)
        levels[i] = i < 254 ? 30 : 40;
    hr__levels_equalize(&row);
    CHECK_EQ_INT(levels[0], 30);
    CHECK_EQ_INT(levels[599], 40);
}

typedef void change(const struct hr_pixels *image);

static void solarize(const struct hr_pixels *image)
{
    hr__levels_solarize(image, image->dtype == HR_U8 ? 99 : 0.4f);
}

static void posterize(const struct hr_pixels *image)
{
    hr__levels_posterize(image, 5);
}

static void permute(const struct hr_pixels *image)
{
    const int order[4] = {image->channels - 1, 0, 1, 2};

    hr__levels_permute(image, order);
}

/* Channel by channel as an image of one channel, but for permute. */
static void check_forms(change *apply, enum hr_dtype dtype, struct test_rng *rng)
{
    int32_t w = 1 + test_below(rng, 70), h = 1 + test_below(rng, 40);
    int32_t channels = 1 + test_below(rng, 4);
    struct hr_pixels planar = test_pixels(dtype, w, h, channels, true);
    struct hr_pixels mixed = test_pixels(dtype, w, h, channels, false);
    struct hr_pixels before = test_pixels(dtype, w, h, channels, true);
    uint64_t seed = test_u32(rng);

    test_noise(&planar, seed, 1);
    test_noise(&mixed, seed, 1);
    test_noise(&before, seed, 1);
    apply(&planar);
    apply(&mixed);
    for (int32_t c = 0; c < channels && apply != permute; c++) {
        struct hr_pixels one = before;

        one.data = test_at(&before, 0, 0, c);
        one.channels = 1;
        apply(&one);
    }
    for (int32_t c = 0; c < channels; c++) {
        int32_t from = apply == permute ? (c + channels - 1) % channels : c;

        for (int32_t i = 0; i < w * h; i++) {
            double wanted = test_value(&before, i % w, i / w, from);

            CHECK(test_value(&planar, i % w, i / w, c) == wanted);
            CHECK(test_value(&mixed, i % w, i / w, c) == wanted);
        }
    }
    hr__free(planar.data);
    hr__free(mixed.data);
    hr__free(before.data);
}

TEST(every_form_of_an_image_has_the_same_levels)
{
    static change *const changes[] = {solarize, posterize, hr__levels_autocontrast,
                                      hr__levels_equalize, permute};
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 200; round++)
        check_forms(changes[round % 5], round / 5 % 2 ? HR_U8 : HR_F32, &rng);
}
