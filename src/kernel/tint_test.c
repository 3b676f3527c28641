/*
 * kernel/tint_test.c - against torch's formulas for uint8, reimplemented from
 * torchvision's source, on every instruction set.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/tint.h"

#include <math.h>

static uint8_t truncated(float level)
{
    return (uint8_t)(level > 0 ? level < 255 ? level : 255 : 0);
}

static float gray_of(const uint8_t p[3])
{
    float sum = fmaf(p[1], .587f, (float)p[0] * .2989f);

    return floorf(fmaf(p[2], .114f, sum));
}

/* What torchvision makes of a level. */
static uint8_t blended(uint8_t level, float other, double factor)
{
    return truncated(fmaf(other, (float)(1 - factor), (float)level * (float)factor));
}

static struct hr_level_tables drawn_tables(struct test_rng *rng)
{
    struct hr_level_tables tables;

    for (int c = 0; c < 4; c++)
        for (int i = 0; i < 256; i++)
            tables.of[c][i] = (uint8_t)test_u32(rng);
    return tables;
}

static uint8_t *level_at(const struct hr_pixels *p, int32_t x, int32_t y, int32_t c)
{
    return (uint8_t *)p->data + y * p->row_stride + x * p->pixel_stride +
           c * p->channel_stride;
}

static void check_image(struct hr_arena *arena, struct test_rng *rng)
{
    int32_t width = 1 + (int32_t)(test_u32(rng) % 70),
            channels = test_u32(rng) % 4 ? 3 : 1;
    int32_t height = 1 + (int32_t)(test_u32(rng) % 5);
    bool planar = test_u32(rng) % 2;
    struct hr_pixels in = test_pixels(HR_U8, width, height, channels, planar);
    struct hr_pixels out = test_pixels(HR_U8, width, height, channels, test_u32(rng) % 2);
    struct hr_level_tables drawn = drawn_tables(rng);
    const struct hr_level_tables *tables = test_u32(rng) % 2 ? &drawn : NULL;
    double factor = test_uniform(rng, 0, 2), sum = 0;
    float mean;

    for (int32_t i = 0; i < width * height * channels; i++)
        *level_at(&in, i / channels % width, i / channels / width, i % channels) =
            (uint8_t)test_u32(rng);
    CHECK_OK(hr__tint_mean(arena, &in, tables, &mean));
    if (channels == 3)
        CHECK_OK(hr__tint_saturate(arena, &in, tables, factor, &out));
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++) {
            uint8_t p[3];

            for (int32_t c = 0; c < channels; c++) {
                p[c] = *level_at(&in, x, y, c);
                p[c] = tables != NULL ? drawn.of[c][p[c]] : p[c];
            }
            sum += (double)(channels == 3 ? gray_of(p) : p[0]);
            for (int32_t c = 0; channels == 3 && c < 3; c++)
                CHECK_EQ_INT(*level_at(&out, x, y, c), blended(p[c], gray_of(p), factor));
        }
    CHECK(mean == (float)sum / (float)(width * height));
    hr__free(in.data);
    hr__free(out.data);
}

TEST(means_and_saturation_are_torchs_on_every_instruction_set)
{
    struct test_rng rng = {check_seed()};
    struct hr_arena arena;

    hr__arena_init(&arena);
    for (int i = 0; i < 400; i++) {
        hr__isa_limit(test_isas[i % TEST_ISAS]);
        check_image(&arena, &rng);
        hr__arena_reset(&arena);
    }
    hr__isa_limit(TEST_BEST);
    hr__arena_finish(&arena);
}

TEST(brightness_and_contrast_truncate)
{
    uint8_t table[256];

    hr__tint_brightness(1.27, table);
    CHECK_EQ_INT(table[0], 0);
    CHECK_EQ_INT(table[3], 3); /* 3.81 */
    CHECK_EQ_INT(table[250], 255);
    hr__tint_contrast(0.73, 100, table);
    CHECK_EQ_INT(table[0], 27);
    CHECK_EQ_INT(table[255], 213); /* 213.15 */
    hr__tint_contrast(1.9, 255, table);
    CHECK_EQ_INT(table[100], 0);
}
