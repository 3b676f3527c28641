/*
 * core/fit_test.c - mean, variance and slope by the textbook; merged sums equal single
 * ones.
 */
#include "core/fit.h"

#include <math.h>

#include "tests/support/check.h"

#define NEAR(a, b) CHECK(fabs((a) - (b)) <= 1e-9 * (1 + fabs((double)(b))))

TEST(nothing_is_zero)
{
    struct hr_fit fit = {0};

    NEAR(hr__fit_mean(&fit), 0);
    NEAR(hr__fit_variance(&fit), 0);
    NEAR(hr__fit_slope(&fit), 0);
}

TEST(a_line_is_found)
{
    struct hr_fit fit = {0};

    for (int i = 0; i < 100; i++)
        hr__fit_add(&fit, 1, i, 7 + 3.0 * i);
    NEAR(hr__fit_slope(&fit), 3);
    NEAR(hr__fit_mean(&fit), 7 + 3 * 49.5);
    NEAR(hr__fit_variance(&fit), 9 * (100.0 * 100 - 1) / 12);
}

TEST(x_that_does_not_vary_has_no_slope)
{
    struct hr_fit fit = {0};

    for (int i = 0; i < 10; i++)
        hr__fit_add(&fit, 1, 1e6, i);
    NEAR(hr__fit_slope(&fit), 0);
    NEAR(hr__fit_mean(&fit), 4.5);
}

TEST(a_weight_counts_as_that_many_pairs)
{
    struct hr_fit a = {0}, b = {0};

    hr__fit_add(&a, 3, 1, 10);
    hr__fit_add(&a, 1, 2, 50);
    for (int i = 0; i < 3; i++)
        hr__fit_add(&b, 1, 1, 10);
    hr__fit_add(&b, 1, 2, 50);
    NEAR(hr__fit_mean(&a), hr__fit_mean(&b));
    NEAR(hr__fit_variance(&a), hr__fit_variance(&b));
    NEAR(hr__fit_slope(&a), hr__fit_slope(&b));
}

TEST(parts_merge_to_the_whole)
{
    struct hr_fit whole = {0}, parts[2] = {{0}, {0}};

    for (int i = 0; i < 50; i++) {
        hr__fit_add(&whole, 1 + i % 3, i * i, 5.0 * i);
        hr__fit_add(&parts[i % 2], 1 + i % 3, i * i, 5.0 * i);
    }
    hr__fit_merge(&parts[0], &parts[1]);
    NEAR(hr__fit_mean(&parts[0]), hr__fit_mean(&whole));
    NEAR(hr__fit_variance(&parts[0]), hr__fit_variance(&whole));
    NEAR(hr__fit_slope(&parts[0]), hr__fit_slope(&whole));
}
