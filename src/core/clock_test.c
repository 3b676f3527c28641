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

TEST(ticks_measure_what_the_clock_measures)
{
    uint64_t ticks = hr__ticks(), start = hr__now_ns(), passed;
    double by_ticks;

    while (hr__now_ns() - start < 20000000)
        continue;
    passed = hr__now_ns() - start;
    by_ticks = hr__ticks_to_ns(hr__ticks() - ticks);
    CHECK_NEAR(by_ticks / (double)passed, 1, 0.01);
    CHECK(hr__ticks_to_ns(0) == 0);
}
