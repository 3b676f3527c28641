/*
 * kernel/dft_test.c - the transform against its definition, convolutions and changes of
 * rate against sums, on every instruction set.
 */
#include "kernel/dft.h"

#include <math.h>

#include "kernel/convolve.h"
#include "kernel/kernel_test_util.h"
#include "kernel/sinc.h"
#include "kernel/sound.h"

#define PI 3.14159265358979323846

/* Numbers -1..1 in fresh memory. */
static double *draw(struct test_rng *rng, size_t count)
{
    double *x = hr__malloc(count * sizeof *x);

    CHECK(x != NULL);
    for (size_t i = 0; i < count; i++)
        x[i] = test_uniform(rng, -1, 1);
    return x;
}

static void check_transform(const struct hr_dft *dft, const double *x, const double *got)
{
    size_t n = dft->size;

    for (size_t k = 0; k < n; k += 1 + n / 17) {
        double re = 0, im = 0;

        for (size_t j = 0; j < n; j++) {
            double angle = -2 * PI * (double)(j * k % n) / (double)n;

            re += x[j] * cos(angle) - x[j + n] * sin(angle);
            im += x[j] * sin(angle) + x[j + n] * cos(angle);
        }
        CHECK_NEAR(got[k], re, 1e-12 * (double)n);
        CHECK_NEAR(got[k + n], im, 1e-12 * (double)n);
    }
}

TEST(transforms_of_any_size_are_what_they_are_defined_as)
{
    static const int32_t sizes[] = {1,  2,  3,  4,   5,   6,   7,    8,    15,   16,
                                    25, 49, 77, 100, 128, 400, 1009, 1024, 2000, 2022};
    struct test_rng rng = {check_seed()};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = 2 * (size_t)sizes[i] * sizeof(double);
        double *x = draw(&rng, 2 * (size_t)sizes[i]), *in = hr__malloc(bytes);
        double *work = hr__malloc(bytes), *first = hr__malloc(bytes);
        struct hr_dft dft;

        CHECK_OK(hr__dft_create(sizes[i], &dft, NULL));
        for (int32_t k = 0; k < TEST_ISAS; k++) {
            double *got;

            hr__isa_limit(test_isas[k]);
            memcpy(in, x, bytes);
            got = hr__sound_table()->dft(&dft, in, work);
            if (k == 0)
                check_transform(&dft, x, got);
            if (k == 0)
                memcpy(first, got, bytes);
            CHECK_BYTES(got, first, bytes);
        }
        hr__isa_limit(TEST_BEST);
        hr__dft_destroy(&dft);
        hr__free(x);
        hr__free(in);
        hr__free(work);
        hr__free(first);
    }
}

TEST(a_large_prime_factor_is_refused)
{
    struct hr_error error = {0};
    struct hr_dft dft;

    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__dft_create(2 * 1031, &dft, &error));
    CHECK_HAS(error.message, "prime factor");
}

/* ---- convolution ---- */

TEST(convolutions_are_sums)
{
    struct test_rng rng = {check_seed()};

    for (int i = 0; i < 12; i++) {
        int64_t taps = 1 + test_below(&rng, i < 6 ? 20 : 900);
        int64_t count = test_below(&rng, i % 3 == 0 ? 5 : 4000),
                from = test_below(&rng, 30);
        float response[900], in[4000], out[4000] = {0}, first[4000];
        struct hr_convolver *convolver;

        for (int64_t k = 0; k < taps; k++)
            response[k] = (float)test_uniform(&rng, -1, 1);
        for (int64_t k = 0; k < count; k++)
            in[k] = (float)test_uniform(&rng, -1, 1);
        CHECK_OK(hr__convolver_create(taps, &convolver, NULL));
        for (int32_t k = 0; k < TEST_ISAS; k++) {
            struct hr_arena arena;

            hr__isa_limit(test_isas[k]);
            hr__arena_init(&arena);
            CHECK_OK(hr__convolver_run(convolver, &arena, response, taps, in, count, from,
                                       out));
            hr__arena_finish(&arena);
            if (k == 0)
                memcpy(first, out, sizeof out);
            CHECK_BYTES(out, first, (size_t)count * sizeof *out);
        }
        hr__isa_limit(TEST_BEST);
        hr__convolver_destroy(convolver);
        for (int64_t t = 0; t < count; t++) {
            double sum = 0;

            for (int64_t k = 0; k < taps; k++)
                if (t + from - k >= 0 && t + from - k < count)
                    sum += (double)response[k] * (double)in[t + from - k];
            CHECK_NEAR(out[t], sum, 1e-5);
        }
    }
}

/* ---- changes of rate ---- */

static double tone(double time)
{
    return 0.5 * sin(0.7 * time) + 0.3 * cos(1.3 * time + 1);
}

TEST(tones_are_the_same_at_any_rate)
{
    struct test_rng rng = {check_seed()};
    float in[4000], out[8000] = {0}, first[8000];

    for (int64_t k = 0; k < 4000; k++)
        in[k] = (float)tone((double)k);
    for (int i = 0; i < 10; i++) {
        double step = test_uniform(&rng, 0.6, 1.6);
        int64_t count = (int64_t)ceil(4000 / step);
        struct hr_sinc *sinc;

        CHECK_OK(hr__sinc_create(step, &sinc, NULL));
        for (int32_t k = 0; k < TEST_ISAS; k++) {
            struct hr_arena arena;

            hr__isa_limit(test_isas[k]);
            hr__arena_init(&arena);
            CHECK_OK(hr__sinc_run(sinc, &arena, in, 4000, out, count + 3));
            hr__arena_finish(&arena);
            if (k == 0)
                memcpy(first, out, sizeof out);
            CHECK_BYTES(out, first, (size_t)(count + 3) * sizeof *out);
        }
        hr__isa_limit(TEST_BEST);
        hr__sinc_destroy(sinc);
        for (int64_t k = 400; k < count - 400; k++)
            CHECK_NEAR(out[k], tone((double)k * step), 1e-5);
        CHECK(out[count + 1] == 0 && out[count + 2] == 0);
    }
}

TEST(a_failed_allocation_is_reported)
{
    static const float in[500] = {0}, room[300] = {1};
    float out[500];
    enum hr_err err = HR_ERR_MEMORY;

    for (uint64_t n = 1; err != HR_OK; n++) {
        struct hr_convolver *convolver = NULL;
        struct hr_sinc *sinc = NULL;
        struct hr_arena arena;

        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        err = hr__convolver_create(300, &convolver, NULL);
        if (err == HR_OK)
            err = hr__convolver_run(convolver, &arena, room, 300, in, 500, 0, out);
        if (err == HR_OK)
            err = hr__sinc_create(1.2, &sinc, NULL);
        if (err == HR_OK)
            err = hr__sinc_run(sinc, &arena, in, 500, out, 400);
        hr__fault_arm(0, 0);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(n < 30);
        hr__convolver_destroy(convolver);
        hr__sinc_destroy(sinc);
        hr__arena_finish(&arena);
    }
}
