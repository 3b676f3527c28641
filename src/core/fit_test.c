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

TEST(the_fixed_part_is_where_the_line_meets_zero)
{
    struct hr_fit fit = {0}, noisy = {0};

    for (int i = 0; i < 100; i++) {
        hr__fit_add(&fit, 1, i, 49.5 + i);
        hr__fit_add(&noisy, 1, 1000 + i % 2, i % 7);
    }
    NEAR(hr__fit_fixed(&fit), 0.5);
    NEAR(hr__fit_fixed(&noisy), -1);
    NEAR(hr__fit_fixed(&(struct hr_fit){0}), -1);
}

TEST(the_width_shrinks_with_the_root_of_the_count)
{
    struct hr_fit few = {0}, many = {0};

    for (int i = 0; i < 401; i++)
        hr__fit_add(&many, 3, 0, 100 + i % 2);
    for (int i = 0; i < 101; i++)
        hr__fit_add(&few, 1, 0, 100 + i % 2);
    NEAR(hr__fit_count(&many), 401);
    CHECK_NEAR(hr__fit_width(&few) / hr__fit_width(&many), 2, 1e-3);
    NEAR(hr__fit_width(&(struct hr_fit){0}), -1);
}

TEST(sums_without_their_beginning)
{
    struct hr_fit all = {0}, begin = {0}, rest = {0};

    for (int i = 0; i < 60; i++) {
        hr__fit_add(&all, 1 + i % 3, i, 5.0 * i);
        hr__fit_add(i < 20 ? &begin : &rest, 1 + i % 3, i, 5.0 * i);
    }
    hr__fit_subtract(&all, &begin);
    NEAR(hr__fit_mean(&all), hr__fit_mean(&rest));
    NEAR(hr__fit_slope(&all), hr__fit_slope(&rest));
    NEAR(hr__fit_width(&all), hr__fit_width(&rest));
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
