/*
 * kernel/polyphase_test.c - the resampler against sums in double, on every instruction
 * set, and its filters by tones.
 */
#include "kernel/kernel_test_util.h"
#include "kernel/polyphase.h"

#include <math.h>

#include "kernel/rows.h"

#define PI 3.14159265358979323846

static const int32_t rates[][2] = {
    {44100, 16000},
    {48000, 16000},
    {8000,  16000},
    {22050, 16000},
    {16000, 8000 },
    {16000, 44100},
    {11025, 8000 },
    {7,     5    },
    {1,     3    },
    {5,     1    },
};
#define RATES (sizeof rates / sizeof rates[0])

/* The filters' formulas, as the documentation of torchaudio and of Kaiser's window have
 * them. */
static double torchaudio_at(double time, double lower)
{
    double t = time * 0.99 * lower, window = cos(t * PI / 12);

    if (fabs(t) >= 6)
        return 0;
    return 0.99 * lower * window * window * (t == 0 ? 1 : sin(PI * t) / (PI * t));
}

static double bessel0(double x)
{
    double sum = 1, term = 1;

    for (int k = 1; k < 80; k++)
        sum += term *= x / 2 / k * (x / 2 / k);
    return sum;
}

static double hq_at(double time, double lower)
{
    double half = 112.05 / (2.285 * 2 * PI * 0.0435 * lower) / 2, part = time / half;
    double t = time * 0.9565 * lower;

    if (fabs(part) >= 1)
        return 0;
    return 0.9565 * lower * bessel0(12.26526 * sqrt(1 - part * part)) /
           bessel0(12.26526) * (t == 0 ? 1 : sin(PI * t) / (PI * t));
}

static double reference(const float *in, int64_t count, int32_t from, int32_t to,
                        enum hr_rate_filter filter, int64_t n)
{
    double lower = from < to ? 1 : (double)to / from, time = (double)n * from / to;
    double sum = 0, gain = 0;
    int64_t reach = (int64_t)(700 / lower) + 2;

    for (int64_t i = (int64_t)time - reach; i <= (int64_t)time + reach; i++) {
        double w = filter == HR_RATE_HQ ? hq_at((double)i - time, lower)
                                        : torchaudio_at((double)i - time, lower);

        gain += w;
        sum += i >= 0 && i < count ? w * (double)in[i] : 0;
    }
    return filter == HR_RATE_HQ ? sum / gain : sum;
}

static float *run(int32_t from, int32_t to, enum hr_rate_filter filter, const float *in,
                  int64_t count, int64_t *ret_count)
{
    struct hr_polyphase *p;
    struct hr_arena arena;
    float *out;

    CHECK_OK(hr__polyphase_create(from, to, filter, &p, NULL));
    *ret_count = hr__polyphase_count(p, count);
    CHECK(hr__polyphase_room(p, count) >= *ret_count);
    out = hr__malloc((size_t)hr__polyphase_room(p, count) * sizeof *out + 1);
    CHECK(out != NULL);
    hr__arena_init(&arena);
    CHECK_OK(hr__polyphase_run(p, &arena, in, count, out));
    hr__arena_finish(&arena);
    hr__polyphase_destroy(p);
    return out;
}

static float *sound(struct test_rng *rng, int64_t count)
{
    float *data = hr__malloc((size_t)count * sizeof *data + 1);

    for (int64_t i = 0; i < count; i++)
        data[i] = (float)test_uniform(rng, -1, 1);
    return data;
}

TEST(outputs_are_the_filters_sums)
{
    struct test_rng rng = {check_seed()};

    for (size_t k = 0; k < 2 * RATES; k++) {
        int32_t from = rates[k / 2][0], to = rates[k / 2][1];
        enum hr_rate_filter filter = k % 2 ? HR_RATE_HQ : HR_RATE_TORCHAUDIO;
        int64_t count = 1 + test_below(&rng, 3000), made;
        float *in = sound(&rng, count), *out = run(from, to, filter, in, count, &made);

        CHECK_EQ_INT(made, (count * to + from - 1) / from);
        for (int n = 0; n < 20; n++) {
            int64_t at = n == 0 ? 0 : n == 1 ? made - 1 : test_below(&rng, (int32_t)made);

            CHECK_NEAR(out[at], reference(in, count, from, to, filter, at), 2e-6);
        }
        hr__free(in);
        hr__free(out);
    }
}

TEST(every_instruction_set_gives_the_same_bytes)
{
    struct test_rng rng = {check_seed()};

    for (size_t k = 0; k < 2 * RATES; k++) {
        int32_t from = rates[k / 2][0], to = rates[k / 2][1];
        enum hr_rate_filter filter = k % 2 ? HR_RATE_HQ : HR_RATE_TORCHAUDIO;
        int64_t count = test_below(&rng, k % 3 ? 500 : 40000), made;
        float *in = sound(&rng, count), *plain, *other;

        hr__isa_limit(HR_ISA_C);
        plain = run(from, to, filter, in, count, &made);
        for (int i = 1; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            other = run(from, to, filter, in, count, &made);
            CHECK_BYTES(plain, other, (size_t)made * sizeof *plain);
            hr__free(other);
        }
        hr__isa_limit(TEST_BEST);
        hr__free(in);
        hr__free(plain);
    }
}

/* Largest sample of what a tone of amplitude 1 becomes, in dB, away from its ends. */
static double tone_db(int32_t from, int32_t to, enum hr_rate_filter filter, double hz)
{
    int64_t count = from / 2, made;
    float *in = hr__malloc((size_t)count * sizeof *in), *out;
    double most = 0;

    for (int64_t i = 0; i < count; i++)
        in[i] = (float)sin(2 * PI * hz * (double)i / from);
    out = run(from, to, filter, in, count, &made);
    for (int64_t i = made / 4; i < made * 3 / 4; i++) {
        double level = fabs((double)out[i]);

        most = level > most ? level : most;
    }
    hr__free(in);
    hr__free(out);
    return 20 * log10(most + 1e-12);
}

TEST(hq_passes_to_91_percent_and_stops_from_the_nyquist_frequency)
{
    CHECK_NEAR(tone_db(44100, 16000, HR_RATE_HQ, 1000), 0, 0.01);
    CHECK_NEAR(tone_db(44100, 16000, HR_RATE_HQ, 7300), 0, 0.01);
    CHECK(tone_db(44100, 16000, HR_RATE_HQ, 8010) < -115);
    CHECK(tone_db(44100, 16000, HR_RATE_HQ, 12000) < -115);
    CHECK_NEAR(tone_db(8000, 16000, HR_RATE_HQ, 3600), 0, 0.01);
    CHECK(tone_db(44100, 16000, HR_RATE_TORCHAUDIO, 8500) > -20); /* as documented */
}

TEST(ratios_with_large_tables_are_refused)
{
    struct hr_polyphase *p;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_LIMIT,
              hr__polyphase_create(9999991, 9999973, HR_RATE_HQ, &p, &error));
    CHECK_HAS(error.message, "is a ratio of 9999991 to 9999973");
    CHECK_ERR(HR_ERR_LIMIT, hr__polyphase_create(9999991, 1, HR_RATE_HQ, &p, &error));
}

TEST(a_failed_allocation_is_reported)
{
    struct test_rng rng = {1};
    float *in = sound(&rng, 40000), *out = hr__malloc(40000 * sizeof *out);
    enum hr_err err = HR_ERR_MEMORY;

    for (uint64_t n = 1; err != HR_OK; n++) {
        struct hr_polyphase *p = NULL;
        struct hr_arena arena;

        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__polyphase_create(44100, 16000, HR_RATE_TORCHAUDIO, &p, NULL);
        if (err == HR_OK)
            err = hr__polyphase_run(p, &arena, in, 40000, out);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(n < 20);
        hr__polyphase_destroy(p);
        hr__arena_finish(&arena);
    }
    hr__free(in);
    hr__free(out);
}
