/*
 * kernel/samples_test.c - transposition, columns and edges against the obvious loops.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/samples.h"
#include "kernel/sound.h"

#define MOST 70

static float noise[MOST * MOST];

static void fill_noise(struct test_rng *rng)
{
    rng->state = check_seed();
    for (size_t i = 0; i < MOST * MOST; i++)
        noise[i] = (float)test_uniform(rng, -1, 1);
}

TEST(transposing_moves_every_number_and_no_other_byte)
{
    static float to[MOST * MOST];
    struct test_rng rng;

    fill_noise(&rng);
    for (int round = 0; round < 2000; round++) {
        size_t rows = (size_t)test_below(&rng, MOST),
               columns = (size_t)test_below(&rng, MOST);
        size_t stride = rows + (size_t)test_below(&rng, (int32_t)(MOST - rows));

        memset(to, 0x55, sizeof to);
        hr__isa_limit(test_isas[round % TEST_ISAS]);
        hr__sound_table()->transpose(noise, MOST, to, stride, rows, columns);
        for (size_t i = 0; i < MOST * MOST; i++) {
            size_t c = stride > 0 ? i / stride : MOST, r = stride > 0 ? i % stride : 0;
            float untouched;

            memset(&untouched, 0x55, sizeof untouched);
            if (r < rows && c < columns)
                CHECK(to[i] == noise[r * MOST + c]);
            else
                CHECK_BYTES(&to[i], &untouched, sizeof untouched);
        }
    }
    hr__isa_limit(TEST_BEST);
}

/* The sample at a place beyond the ends, step by step. */
static float at(const float *sound, int64_t count, enum hr_sound_edge edge, int64_t i)
{
    while (i < 0 || i >= count) {
        if (edge == HR_EDGE_ZERO || count == 0)
            return 0;
        if (count == 1)
            return sound[0];
        i = i < 0 ? -i : 2 * (count - 1) - i;
    }
    return sound[i];
}

TEST(columns_are_blocks_and_edges_follow_the_rule)
{
    static float to[2 * MOST * MOST];
    struct test_rng rng;

    fill_noise(&rng);
    for (int round = 0; round < 5000; round++) {
        enum hr_sound_edge edge = test_below(&rng, 2) ? HR_EDGE_ZERO : HR_EDGE_REFLECT;
        size_t block = 1 + (size_t)test_below(&rng, 30);
        size_t rows = 1 + (size_t)test_below(&rng, (int32_t)block);
        size_t columns = 1 + (size_t)test_below(&rng, 60), stride = columns + 5;
        int64_t count = test_below(&rng, round % 2 ? 10 : 2000);
        int64_t from = test_below(&rng, 400) - 200;

        hr__sound_columns(noise, count, edge, from, block, rows, to, stride, columns);
        for (size_t c = 0; c < columns; c++)
            for (size_t r = 0; r < rows; r++)
                CHECK(to[r * stride + c] ==
                      at(noise, count, edge, from + (int64_t)(c * block + r)));
    }
}

TEST(the_mean_of_channels_is_their_mean)
{
    float out[50];
    struct test_rng rng;

    fill_noise(&rng);
    for (size_t channels = 1; channels < 9; channels++) {
        hr__samples_mean(noise, 64, channels, out, 50);
        for (size_t i = 0; i < 50; i++) {
            double sum = 0;

            for (size_t c = 0; c < channels; c++)
                sum += (double)noise[c * 64 + i];
            CHECK_NEAR(out[i], sum / (double)channels, 1e-6);
        }
    }
}

TEST(a_range_is_limited_from_its_largest_number)
{
    struct test_rng rng;

    fill_noise(&rng);
    for (size_t count = 0; count < 70; count++) {
        float data[70], top = -2;

        memcpy(data, noise, sizeof data);
        for (size_t i = 0; i < count; i++)
            top = data[i] > top ? data[i] : top;
        hr__limit_range(data, count, 0.5f);
        for (size_t i = 0; i < 70; i++)
            CHECK(data[i] ==
                  (i < count && noise[i] < top - 0.5f ? top - 0.5f : noise[i]));
    }
}

TEST(integers_at_full_scale_are_exact)
{
    static const uint8_t bytes[] = {0, 255, 0x00, 0x80, 0xff, 0x7f};
    float out[4];

    hr__samples_to_f32(HR_SAMPLE_U8, bytes, 1, out, 2);
    CHECK_NEAR(out[0], -1, 0);
    CHECK_NEAR(out[1], 127 / 128.0, 0);
    hr__samples_to_f32(HR_SAMPLE_S16, bytes + 2, 1, out, 2);
    CHECK_NEAR(out[0], -1, 0);
    CHECK_NEAR(out[1], 32767 / 32768.0, 0);
    hr__samples_to_f32(HR_SAMPLE_S24, bytes + 3, 1, out, 1); /* 80 ff 7f */
    CHECK_NEAR(out[0], 0x7fff80 / 8388608.0, 0);
    hr__samples_to_f32(HR_SAMPLE_S32, bytes + 2, 1, out, 1); /* 00 80 ff 7f */
    CHECK_NEAR(out[0], 0x7fff8000 / 2147483648.0, 0);
}
