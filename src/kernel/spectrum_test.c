/*
 * kernel/spectrum_test.c - spectra, mel bands and logarithms against sums in double, on
 * every instruction set.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/spectrum.h"

#include <math.h>

#include "kernel/sound.h"

#define PI 3.14159265358979323846

static const struct hr_mel_options no_bands = {0};

static float *sound(struct test_rng *rng, int64_t count)
{
    float *data = hr__malloc((size_t)count * sizeof *data + 1);

    for (int64_t i = 0; i < count; i++)
        data[i] = (float)test_uniform(rng, -1, 1);
    return data;
}

static float *run(const struct hr_spectrum_options *o, const struct hr_mel_options *mel,
                  const float *in, int64_t count)
{
    int64_t frames = hr__spectrum_frames(o, count);
    struct hr_spectrum *s;
    struct hr_arena arena;
    float *out = hr__malloc((size_t)(frames * hr__spectrum_rows(o, mel)) * sizeof *out);

    CHECK(out != NULL);
    CHECK_OK(hr__spectrum_create(o, mel, &s, NULL));
    hr__arena_init(&arena);
    CHECK_OK(hr__spectrum_run(s, &arena, in, count, out));
    hr__arena_finish(&arena);
    hr__spectrum_destroy(s);
    return out;
}

static double window_at(const struct hr_spectrum_options *o, int32_t s)
{
    double turn;

    s -= (o->size - o->width) / 2;
    turn = 2 * PI * s / o->width;
    if (s < 0 || s >= o->width)
        return 0;
    return o->window == HR_WINDOW_HANN      ? 0.5 - 0.5 * cos(turn)
           : o->window == HR_WINDOW_HAMMING ? 0.54 - 0.46 * cos(turn)
           : o->window == HR_WINDOW_BLACKMAN
               ? 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn)
               : 1;
}

static double
sample(const struct hr_spectrum_options *o, const float *in, int64_t count, int64_t i)
{
    while (i < 0 || i >= count) {
        if (!o->reflect)
            return 0;
        if (count == 1)
            return (double)in[0];
        i = i < 0 ? -i : 2 * (count - 1) - i;
    }
    return (double)in[i];
}

/* Power of bin k of frame f. */
static double reference(const struct hr_spectrum_options *o, const float *in,
                        int64_t count, int64_t f, int32_t k)
{
    int64_t from = f * o->hop - (o->centre ? o->size / 2 : 0);
    double re = 0, im = 0;

    for (int32_t s = 0; s < o->size; s++) {
        double x = window_at(o, s) * sample(o, in, count, from + s);
        double angle = 2 * PI * (double)((int64_t)k * s % o->size) / o->size;

        re += x * cos(angle);
        im -= x * sin(angle);
    }
    return re * re + im * im;
}

static void random_options(struct test_rng *rng, struct hr_spectrum_options *o)
{
    static const int32_t sizes[] = {400, 512, 320, 1024, 2, 3, 4, 5, 7, 8, 480, 882, 338};

    o->size = test_below(rng, 2) ? sizes[test_below(rng, 13)] : 2 + test_below(rng, 300);
    o->width = test_below(rng, 2) ? o->size : 1 + test_below(rng, o->size);
    o->hop = 1 + test_below(rng, test_below(rng, 4) ? o->size : 2 * o->size);
    o->window = test_below(rng, 4);
    o->centre = test_below(rng, 4) > 0;
    o->reflect = test_below(rng, 2);
    o->magnitude = test_below(rng, 2);
}

TEST(bins_are_the_transforms_of_the_frames_for_any_size_and_hop)
{
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 300; round++) {
        struct hr_spectrum_options o;
        int64_t count, frames;
        float *in, *out;

        random_options(&rng, &o);
        count = 1 + test_below(&rng, 40 * o.hop + o.size);
        frames = hr__spectrum_frames(&o, count);
        CHECK((frames == 0) == (!o.centre && count < o.size));
        if (frames == 0)
            continue;
        in = sound(&rng, count);
        out = run(&o, &no_bands, in, count);
        for (int n = 0; n < 30; n++) {
            int64_t f = n == 0 ? frames - 1 : test_below(&rng, (int32_t)frames);
            int32_t k = n == 0 ? o.size / 2 : test_below(&rng, o.size / 2 + 1);
            double power = reference(&o, in, count, f, k);
            double got = (double)out[k * frames + f];

            /* Rounding grows with the whole frame's power. */
            CHECK_NEAR(o.magnitude ? got * got : got, power, 2e-5 * (power + o.size));
        }
        hr__free(in);
        hr__free(out);
    }
}

TEST(every_instruction_set_gives_the_same_bytes)
{
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 100; round++) {
        struct hr_spectrum_options o;
        struct hr_mel_options mel = {0};
        int64_t count, bytes;
        float *in, *plain, *other;

        random_options(&rng, &o);
        if (test_below(&rng, 2))
            mel = (struct hr_mel_options){
                1 + test_below(&rng, 90), 16000, 20, 8000, test_below(&rng, 2),
                test_below(&rng, 2)};
        count = o.size + test_below(&rng, 40 * o.hop);
        in = sound(&rng, count);
        bytes = hr__spectrum_frames(&o, count) * hr__spectrum_rows(&o, &mel) * 4;
        hr__isa_limit(HR_ISA_C);
        plain = run(&o, &mel, in, count);
        for (int i = 1; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            other = run(&o, &mel, in, count);
            CHECK_BYTES(plain, other, (size_t)bytes);
            hr__free(other);
        }
        hr__isa_limit(TEST_BEST);
        hr__free(in);
        hr__free(plain);
    }
}

static double mel_of(bool htk, double hz)
{
    if (htk)
        return 2595 * log10(1 + hz / 700);
    return hz < 1000 ? hz / (200.0 / 3) : 15 + 27 * log(hz / 1000) / log(6.4);
}

/* Weight of a bin: how far its mel lies from the edges is measured in Hz, so edges are
 * found by bisection instead of the inverse formula. */
static double hz_of(bool htk, double mel)
{
    double low = 0, high = 1e6;

    for (int i = 0; i < 100; i++) {
        double mid = (low + high) / 2;

        if (mel_of(htk, mid) < mel)
            low = mid;
        else
            high = mid;
    }
    return low;
}

TEST(mel_bands_are_triangles_of_the_power)
{
    struct test_rng rng = {check_seed()};

    for (int round = 0; round < 40; round++) {
        struct hr_spectrum_options o = {
            .size = 400, .width = 400, .hop = 160, .centre = true, .reflect = true};
        struct hr_mel_options mel = {
            1 + test_below(&rng, 128),      16000,     test_uniform(&rng, 0, 300),
            test_uniform(&rng, 3000, 8000), round % 2, test_below(&rng, 2)};
        bool htk = mel.scale == HR_MEL_HTK;
        double low = mel_of(htk, mel.low);
        double step = (mel_of(htk, mel.high) - low) / (mel.count + 1);
        float *in = sound(&rng, 3000), *power = run(&o, &no_bands, in, 3000);
        float *bands = run(&o, &mel, in, 3000);

        for (int n = 0; n < 20; n++) {
            int32_t b = test_below(&rng, mel.count), f = test_below(&rng, 19);
            double left = hz_of(htk, low + b * step),
                   mid = hz_of(htk, low + (b + 1) * step);
            double right = hz_of(htk, low + (b + 2) * step), sum = 0;

            for (int32_t k = 0; k <= 200; k++) {
                double hz = 40.0 * k;
                double w =
                    hz <= mid ? (hz - left) / (mid - left) : (right - hz) / (right - mid);

                sum += fmax(w, 0) * (double)power[k * 19 + f];
            }
            sum *= mel.norm ? 2 / (right - left) : 1;
            CHECK_NEAR(bands[b * 19 + f], sum, 1e-5 * sum + 1e-6);
        }
        hr__free(in);
        hr__free(power);
        hr__free(bands);
    }
}

TEST(logarithms_are_near_and_the_same_on_every_instruction_set)
{
    struct test_rng rng = {check_seed()};
    float in[1003], out[1003], plain[1003];

    for (int i = 0; i < 1003; i++)
        in[i] = (float)exp2(test_uniform(&rng, -125, 127));
    in[0] = 1;
    in[1] = 0;
    in[2] = -1;
    in[3] = NAN;
    for (int i = 0; i < TEST_ISAS; i++) {
        hr__isa_limit(test_isas[i]);
        hr__sound_table()->log2(in, i == 0 ? plain : out, 1003, 0, 0x1p-126f, 1, 0);
        if (i > 0)
            CHECK_BYTES(plain, out, sizeof out);
    }
    hr__isa_limit(TEST_BEST);
    CHECK_NEAR(plain[0], 0, 0);
    for (int i = 1; i < 4; i++)
        CHECK_NEAR(plain[i], -126, 0);
    for (int i = 4; i < 1003; i++)
        CHECK_NEAR(plain[i], log2((double)in[i]), 1e-5);
    for (int i = 4; i < 1003; i++)
        in[i] = (float)test_uniform(&rng, 0.5, 2);
    hr__sound_table()->log2(in, out, 1003, 0, 0x1p-126f, 1, 0);
    for (int i = 4; i < 1003; i++)
        CHECK_NEAR(out[i], log2((double)in[i]),
                   3e-7 * fmax(0.3, fabs(log2((double)in[i]))));
}

TEST(sizes_with_large_primes_are_refused)
{
    struct hr_spectrum_options o = {.size = 2 * 1031, .width = 2, .hop = 1};
    struct hr_error error = {0};
    struct hr_spectrum *s;

    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__spectrum_create(&o, &no_bands, &s, &error));
    CHECK_HAS(error.message, "a transform of 2062 samples: the largest prime factor");
}

TEST(a_failed_allocation_is_reported)
{
    struct hr_spectrum_options o = {
        .size = 400, .width = 400, .hop = 160, .centre = true};
    struct hr_mel_options mel = {80, 16000, 0, 8000, HR_MEL_HTK, false};
    struct test_rng rng = {1};
    float *in = sound(&rng, 4000), *out = hr__malloc(80 * 26 * sizeof *out);
    enum hr_err err = HR_ERR_MEMORY;

    for (uint64_t n = 1; err != HR_OK; n++) {
        struct hr_spectrum *s = NULL;
        struct hr_arena arena;

        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__spectrum_create(&o, &mel, &s, NULL);
        if (err == HR_OK)
            err = hr__spectrum_run(s, &arena, in, 4000, out);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(n < 20);
        hr__spectrum_destroy(s);
        hr__arena_finish(&arena);
    }
    hr__free(in);
    hr__free(out);
}
