/*
 * core/rng_test.c - Philox against known answers; bounds and distribution of the draws.
 */
#include "core/rng.h"
#include "tests/support/check.h"

/* From kat_vectors of Random123: counter, key, result. */
static const uint32_t known[3][10] = {
    {0,          0,          0,          0,          0,          0,          0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
     0x41c83b0e,                                                                                     0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
     0x94fdcceb,                                                                                     0x5001e420, 0x24126ea1},
};

TEST(philox_gives_the_known_answers)
{
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];

        hr__philox4x32(known[i], known[i] + 4, out);
        CHECK_BYTES(out, known[i] + 6, sizeof out);
    }
}

TEST(a_stream_is_the_blocks_of_its_counter)
{
    uint32_t key[2] = {5, 6}, counter[4] = {7, 8, 9, 0}, out[4];
    struct hr_rng rng;

    hr__rng_init(&rng, (uint64_t)6 << 32 | 5, 9, (uint64_t)8 << 32 | 7);
    for (uint32_t block = 0; block < 3; block++) {
        counter[3] = block;
        hr__philox4x32(counter, key, out);
        for (int i = 0; i < 4; i++)
            CHECK_EQ_INT(hr__rng_u32(&rng), out[i]);
    }
}

TEST(floats_lie_in_the_half_open_unit)
{
    double sum = 0, sum_double = 0;
    struct hr_rng rng;

    hr__rng_init(&rng, 1, 0, 0);
    for (int i = 0; i < 3000; i++) {
        float x = hr__rng_float(&rng);
        double y = hr__rng_double(&rng);

        CHECK(x >= 0 && x < 1 && y >= 0 && y < 1);
        sum += (double)x;
        sum_double += y;
    }
    CHECK_NEAR(sum / 3000, 0.5, 0.03);
    CHECK_NEAR(sum_double / 3000, 0.5, 0.03);
}

TEST(uniform_keeps_its_borders)
{
    double low = 1, high = nextafter(1, 2);
    struct hr_rng rng, twin;

    hr__rng_init(&rng, 1, 0, 0);
    for (int i = 0; i < 100; i++) {
        double wide = hr__rng_uniform(&rng, -1.7e308, 1.7e308);

        CHECK(hr__rng_uniform(&rng, low, high) == low);
        CHECK(wide >= -1.7e308 && wide < 1.7e308);
    }
    hr__rng_init(&rng, 1, 0, 0);
    hr__rng_init(&twin, 1, 0, 0);
    CHECK(hr__rng_uniform(&rng, 3, 3) == 3);
    (void)hr__rng_double(&twin);
    CHECK(hr__rng_u32(&rng) == hr__rng_u32(&twin));
}

TEST(below_is_even_and_stays_below)
{
    unsigned seen[7] = {0};
    struct hr_rng rng;

    hr__rng_init(&rng, 2, 0, 0);
    for (int i = 0; i < 7000; i++)
        seen[hr__rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++)
        CHECK_NEAR(seen[i], 1000, 130);
    CHECK_EQ_INT(hr__rng_below(&rng, 1), 0);
    /* Half of all draws are rejected here; all results must stay below n. */
    for (int i = 0; i < 100; i++)
        CHECK(hr__rng_below(&rng, ((uint64_t)1 << 63) + 1) <= (uint64_t)1 << 63);
}

/* Against the mean and the variance of the distributions. */
TEST(normal_and_beta_numbers_have_their_moments)
{
    static const double shapes[][2] = {
        {1,     1    },
        {0.2,   0.2  },
        {0.001, 0.001},
        {2.5,   7    },
        {400,   100  },
        {0.4,   3    },
    };
    struct hr_rng rng;
    double sum = 0, squares = 0;

    hr__rng_init(&rng, 3, 0, 0);
    for (int i = 0; i < 20000; i++) {
        double x = hr__rng_normal(&rng);

        sum += x / 20000;
        squares += x * x / 20000;
    }
    CHECK_NEAR(sum, 0, 0.03);
    CHECK_NEAR(squares, 1, 0.05);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        double a = shapes[k][0], b = shapes[k][1], mean = a / (a + b);
        double variance = mean * (1 - mean) / (a + b + 1);

        sum = squares = 0;
        for (int i = 0; i < 20000; i++) {
            double x = hr__rng_beta(&rng, a, b);

            CHECK(x >= 0 && x <= 1);
            sum += x / 20000;
            squares += (x - mean) * (x - mean) / 20000;
        }
        CHECK_NEAR(sum, mean, 0.03 * sqrt(variance));
        CHECK_NEAR(squares, variance, 0.05 * variance);
    }
}

TEST(dirichlet_shares_add_up_to_one)
{
    static const double alphas[] = {1, 0.01, 20};
    struct hr_rng rng;

    hr__rng_init(&rng, 4, 0, 0);
    for (int k = 0; k < 3; k++) {
        double first = 0, squares = 0;

        for (int i = 0; i < 10000; i++) {
            double shares[4], sum = 0;

            hr__rng_dirichlet(&rng, alphas[k], 4, shares);
            for (int c = 0; c < 4; c++) {
                CHECK(shares[c] >= 0);
                sum += shares[c];
            }
            CHECK_NEAR(sum, 1, 1e-12);
            first += shares[3] / 10000;
            squares += (shares[3] - 0.25) * (shares[3] - 0.25) / 10000;
        }
        CHECK_NEAR(first, 0.25, 0.02);
        CHECK_NEAR(squares, 0.1875 / (4 * alphas[k] + 1), 0.01 / (alphas[k] + 0.5));
    }
}

TEST(many_words_at_once_are_those_of_single_draws)
{
    static uint32_t words[1000];
    struct hr_rng one, many;
    size_t count;

    hr__rng_init(&one, 77, 3, 12345678901);
    many = one;
    for (int round = 0; round < 200; round++) {
        count = (size_t)hr__rng_below(&one, 1000);
        CHECK_EQ_INT(hr__rng_below(&many, 1000), count);
        hr__rng_words(&many, words, count);
        for (size_t i = 0; i < count; i++)
            CHECK_EQ_INT(words[i], hr__rng_u32(&one));
    }
    many.counter[3] = UINT32_MAX - 20; /* up to the last block, and no further */
    many.used = 4;
    one = many;
    hr__rng_words(&many, words, 80);
    for (size_t i = 0; i < 80; i++)
        CHECK_EQ_INT(words[i], hr__rng_u32(&one));
}
