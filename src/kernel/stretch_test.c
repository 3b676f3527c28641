/*
 * kernel/stretch_test.c - the phase vocoder on sounds whose stretch is known. Its numbers
 * against librosa's are in python/tests/test_audio.py.
 */
#include "kernel/stretch.h"

#include <math.h>

#include "kernel/kernel_test_util.h"
#include "kernel/sound.h"

#define COUNT 6000

/* Runs on every instruction set; the caller frees. */
static float *run(const struct hr_stretch *s, const float *in, int64_t count, double rate)
{
    size_t bytes = (size_t)hr__stretch_count(count, rate) * sizeof(float);
    float *first = hr__malloc(bytes + 1), *out = hr__malloc(bytes + 1);

    for (int32_t k = 0; k < TEST_ISAS; k++) {
        struct hr_arena arena;

        hr__isa_limit(test_isas[k]);
        hr__arena_init(&arena);
        CHECK_OK(hr__stretch_run(s, &arena, in, count, rate, out));
        hr__arena_finish(&arena);
        if (k == 0)
            memcpy(first, out, bytes);
        CHECK_BYTES(out, first, bytes);
    }
    hr__isa_limit(TEST_BEST);
    hr__free(out);
    return first;
}

TEST(at_rate_1_a_sound_stays_as_it_is)
{
    static const int32_t frames[][3] = {
        {2048, 2048, 512},
        {400,  400,  100},
        {512,  400,  160},
        {2,    2,    1  },
        {98,   98,   49 },
    };
    struct test_rng rng = {check_seed()};
    float in[COUNT];

    for (int i = 0; i < COUNT; i++)
        in[i] = (float)test_uniform(&rng, -1, 1);
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct hr_stretch *s;
        float *out;

        CHECK_OK(hr__stretch_create(frames[i][0], frames[i][1], frames[i][2], &s, NULL));
        out = run(s, in, COUNT, 1);
        for (int k = 0; k < COUNT - frames[i][0]; k++)
            CHECK_NEAR(out[k], in[k], 1e-5);
        hr__free(out);
        hr__stretch_destroy(s);
    }
}

/* The frequency of a tone by its crossings of 0 in the middle third. */
static double frequency(const float *sound, int64_t count)
{
    int64_t first = -1, last = 0, crossings = -1;

    for (int64_t i = count / 3; i < count * 2 / 3; i++)
        if (sound[i] < 0 && sound[i + 1] >= 0) {
            first = first < 0 ? i : first;
            last = i;
            crossings++;
        }
    CHECK(crossings > 3);
    return (double)crossings / (double)(last - first);
}

TEST(a_tone_keeps_its_pitch_and_changes_its_length)
{
    struct test_rng rng = {check_seed()};
    struct hr_stretch *s;
    static float in[4 * COUNT];

    CHECK_OK(hr__stretch_create(1024, 1024, 256, &s, NULL));
    for (int i = 0; i < 8; i++) {
        double pitch = test_uniform(&rng, 0.02, 0.2), rate = test_uniform(&rng, 0.5, 2.5);
        int64_t count = hr__stretch_count(4 * COUNT, rate);
        float *out;

        for (int k = 0; k < 4 * COUNT; k++)
            in[k] = (float)sin(6.283185307179586 * pitch * k);
        CHECK_EQ_INT(count, llrint(4 * COUNT / rate));
        out = run(s, in, 4 * COUNT, rate);
        CHECK_NEAR(frequency(out, count), pitch, pitch / 200);
        hr__free(out);
    }
    hr__stretch_destroy(s);
}

TEST(short_and_silent_sounds_stretch)
{
    static const float in[300] = {0};
    struct hr_stretch *s;

    CHECK_OK(hr__stretch_create(2048, 2048, 512, &s, NULL));
    for (int64_t count = 0; count < 300; count += count < 4 ? 1 : 37)
        for (double rate = 0.3; rate < 5; rate *= 1.7) {
            float *out = run(s, in, count, rate);

            for (int64_t k = 0; k < hr__stretch_count(count, rate); k++)
                CHECK(out[k] == 0);
            hr__free(out);
        }
    hr__stretch_destroy(s);
}

TEST(a_failed_allocation_is_reported)
{
    static const float in[500] = {0};
    float out[400];
    enum hr_err err = HR_ERR_MEMORY;

    for (uint64_t n = 1; err != HR_OK; n++) {
        struct hr_stretch *s = NULL;
        struct hr_arena arena;

        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__stretch_create(128, 128, 32, &s, NULL);
        if (err == HR_OK)
            err = hr__stretch_run(s, &arena, in, 500, 1.25, out);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(n < 30);
        hr__stretch_destroy(s);
        hr__arena_finish(&arena);
    }
}
