/*
 * codec/jpeg_kernels_test.c - every table of inner loops against plain C, without a file:
 * coefficients up to what the entropy decoder accepts, all chroma values, data full of
 * 0xFF.
 */
#include "codec/jpeg_priv.h"
#include "codec/jpeg_test_util.h"

#define GROUPS 3
#define STRIDE (32 * GROUPS)

/* Coefficients that times their step are at most 2^bits; half of the groups are
 * sparse. */
static void draw_groups(struct bench *bench, int16_t *groups, int32_t step)
{
    int bits = 3 + draw(bench, 11), few = draw(bench, 2);

    memset(groups, 0, GROUPS * HR_JPEG_GROUP * sizeof *groups);
    for (int i = 0; i < GROUPS * HR_JPEG_GROUP; i++) {
        int32_t v = draw(bench, 2 << bits) - (1 << bits);

        v = v < -HR_JPEG_VALUE_MAX ? -HR_JPEG_VALUE_MAX : v;
        if (i % HR_JPEG_GROUP < 256 &&
            (!few || draw(bench, 8) == 0)) /* skip the margin */
            groups[i] = (int16_t)(v / step);
    }
}

static bool transform(enum hr_isa isa, int size, const int16_t *groups,
                      const int16_t *quant, uint8_t *out)
{
    int16_t mine[GROUPS * HR_JPEG_GROUP];
    bool good;

    memcpy(mine, groups, sizeof mine);
    hr__isa_limit(isa);
    good = hr__jpeg_kernels()->idct[size](mine, quant, GROUPS, out, STRIDE);
    for (int i = 0; i < GROUPS * HR_JPEG_GROUP; i++)
        CHECK(mine[i] == 0); /* zeroed for the next batch */
    return good;
}

TEST(transforms_accept_the_same_blocks_and_give_the_same_bytes)
{
    int16_t groups[GROUPS * HR_JPEG_GROUP], quant[64];
    uint8_t want[8 * STRIDE], got[8 * STRIDE];
    int accepted = 0, declined = 0;
    struct bench bench;

    bench_init(&bench);
    for (int round = 0; round < 4000; round++) {
        int size = 2 + round % 2;
        bool good;

        draw_groups(&bench, groups, 1 + round % 5);
        for (int i = 0; i < 64; i++)
            quant[i] = (int16_t)(1 + round % 5);
        memset(want, 0, sizeof want);
        good = transform(HR_ISA_C, size, groups, quant, want);
        accepted += good;
        declined += !good;
        for (int i = 1; i < TEST_ISAS; i++) {
            memset(got, 0, sizeof got);
            CHECK_EQ_INT(transform(test_isas[i], size, groups, quant, got), good);
            CHECK(!good || memcmp(got, want, sizeof got) == 0);
        }
    }
    CHECK(accepted > 500 && declined > 500);
    hr__isa_limit(HR_ISA_AVX512);
    bench_finish(&bench);
}

TEST(sums_that_would_wrap_back_into_range_are_declined)
{
    const int sign[4][2] = {
        {1,  1 },
        {1,  -1},
        {-1, 1 },
        {-1, -1}
    };
    int16_t groups[GROUPS * HR_JPEG_GROUP], quant[64];
    uint8_t out[8 * STRIDE];

    for (int i = 0; i < 64; i++)
        quant[i] = 1;
    for (int i = 0; i < 4 * TEST_ISAS; i++) {
        memset(groups, 0, sizeof groups);
        /* The first pass makes both 32764; the second adds or subtracts them. */
        groups[0] = (int16_t)(sign[i % 4][0] * HR_JPEG_VALUE_MAX);
        groups[4] = (int16_t)(sign[i % 4][1] * HR_JPEG_VALUE_MAX);
        CHECK(!transform(test_isas[i / 4], 3, groups, quant, out));
    }
    hr__isa_limit(HR_ISA_AVX512);
}

TEST(colour_is_the_same_for_all_chroma)
{
    enum { N = 256 };
    uint8_t y[N], cb[N], cr[N], want[3 * N + 1], got[3 * N + 1];

    for (int r = 0; r < 256; r++) {
        int n = N - r % 19; /* odd row lengths */

        for (int i = 0; i < N; i++) {
            y[i] = (uint8_t)(i * 7 + r * 13);
            cb[i] = (uint8_t)i;
            cr[i] = (uint8_t)r;
        }
        memset(want, 0xa5, sizeof want);
        hr__isa_limit(HR_ISA_C);
        hr__jpeg_kernels()->rgb(y, cb, cr, want, n);
        for (int i = 1; i < TEST_ISAS; i++) {
            memset(got, 0xa5, sizeof got);
            hr__isa_limit(test_isas[i]);
            hr__jpeg_kernels()->rgb(y, cb, cr, got, n);
            CHECK(memcmp(got, want, sizeof got) == 0);
        }
    }
    hr__isa_limit(HR_ISA_AVX512);
}

TEST(unstuffing_ends_at_the_same_marker_with_the_same_bytes)
{
    enum { N = 700 };
    struct bench bench;

    bench_init(&bench);
    for (int round = 0; round < 400; round++) {
        uint8_t in[N], want[N + 64], got[N + 64], *want_end = NULL, *got_end = NULL;
        const uint8_t *marker;
        int n = 1 + draw(&bench, N), often = 2 + draw(&bench, 90);

        for (int i = 0; i < n; i++)
            in[i] = (uint8_t)(draw(&bench, often) == 0 ? 255 : draw(&bench, 255));
        for (int i = 1; i < n; i++) /* others remain and act as markers */
            if (in[i - 1] == 255 && draw(&bench, 12) != 0)
                in[i] = 0;
        hr__isa_limit(HR_ISA_C);
        marker = hr__jpeg_kernels()->unstuff(in, in + n, want, &want_end);
        for (int i = 1; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            CHECK(hr__jpeg_kernels()->unstuff(in, in + n, got, &got_end) == marker);
            CHECK_EQ_INT(got_end - got, want_end - want);
            CHECK(memcmp(got, want, (size_t)(want_end - want)) == 0);
        }
    }
    hr__isa_limit(HR_ISA_AVX512);
    bench_finish(&bench);
}
