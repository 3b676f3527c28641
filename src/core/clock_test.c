/*
 * core/clock_test.c - the clocks advance and agree.
 */
#include "core/clock.h"
#include "tests/support/check.h"

#include <time.h>

TEST(clocks_advance_and_the_wall_clock_is_plausible)
{
    uint64_t a = hr__now_ns(), b = hr__now_ns();

    CHECK(b >= a);
    CHECK(hr__wall_ns() > (uint64_t)1700000000 * 1000000000);
    CHECK(hr__cpu_process_ns() >= hr__cpu_thread_ns() / 2);
}

/* 20 ms in ticks, as a part of what the clock says. */
static double ticks_per_clock(void)
{
    uint64_t ticks = hr__ticks(), start = hr__now_ns(), passed;

    while (hr__now_ns() - start < 20000000)
        continue;
    passed = hr__now_ns() - start;
    return hr__ticks_to_ns(hr__ticks() - ticks) / (double)passed;
}

/* However often the thread loses its core between the two clocks. */
TEST(the_length_of_a_tick_is_always_about_the_same)
{
    uint64_t start = hr__now_ns();
    double first, least, most;

    while (hr__now_ns() - start < 10000000)
        continue;
    first = least = most = hr__tick_ns();
    while (hr__now_ns() - start < 200000000) {
        double one = hr__tick_ns();

        least = one < least ? one : least;
        most = one > most ? one : most;
    }
    CHECK(most / first - 1 < 1e-3);
    CHECK(1 - least / first < 1e-3);
}

TEST(ticks_measure_what_the_clock_measures)
{
    double ratio = ticks_per_clock();

    /* The thread may have lost its CPU between the two. */
    for (int i = 0; i < 20 && fabs(ratio - 1) > 0.01; i++)
        ratio = ticks_per_clock();
    CHECK_NEAR(ratio, 1, 0.01);
    CHECK(hr__ticks_to_ns(0) == 0);
}
