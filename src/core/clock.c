/*
 * core/clock.c - the only source of time.
 *
 * The TSC is used where CPUID calls it invariant. Its rate is the slope between the first
 * reading of both clocks and one at least 1 ms later (we spin if needed), accurate to
 * 1e-4. After a second the slope is accurate to 1e-7 and kept; from then on a conversion
 * costs one multiplication.
 */
#include "core/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

static uint64_t read_clock(clockid_t which)
{
    struct timespec now;

    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t hr__now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t hr__wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t hr__cpu_process_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t hr__cpu_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t hr__cpu_other_thread_ns(pthread_t thread)
{
    clockid_t clock;

    return pthread_getcpuclockid(thread, &clock) == 0 ? read_clock(clock) : 0;
}

#if defined(__x86_64__)

enum { TICKS_UNKNOWN, TICKS_TSC, TICKS_CLOCK };

static pthread_once_t ticks_once = PTHREAD_ONCE_INIT;
static atomic_int ticks_from;
static uint64_t base_ticks, base_ns; /* written once, under ticks_once */
static _Atomic double ticks_slope;   /* ns per tick; 0 until it is accurate enough */

static void ticks_init(void)
{
    unsigned a, b, c, d;
    int from = TICKS_CLOCK;

    if (__get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1U << 8) != 0)
        from = TICKS_TSC;
    base_ns = hr__now_ns();
    base_ticks = __rdtsc();
    atomic_store(&ticks_from, from);
}

static int ticks_source(void)
{
    int from = atomic_load_explicit(&ticks_from, memory_order_acquire);

    if (from == TICKS_UNKNOWN) {
        pthread_once(&ticks_once, ticks_init);
        from = atomic_load_explicit(&ticks_from, memory_order_acquire);
    }
    return from;
}

uint64_t hr__ticks(void)
{
    return ticks_source() == TICKS_TSC ? __rdtsc() : hr__now_ns();
}

double hr__ticks_to_ns(uint64_t ticks)
{
    double slope = atomic_load_explicit(&ticks_slope, memory_order_relaxed);
    uint64_t passed;

    if (ticks_source() != TICKS_TSC)
        return (double)ticks;
    if (slope != 0)
        return (double)ticks * slope;
    do
        passed = hr__now_ns() - base_ns;
    while (passed < 1000000);
    slope = (double)passed / (double)(__rdtsc() - base_ticks);
    if (passed > 1000000000)
        atomic_store_explicit(&ticks_slope, slope, memory_order_relaxed);
    return (double)ticks * slope;
}

#else

uint64_t hr__ticks(void)
{
    return hr__now_ns();
}

double hr__ticks_to_ns(uint64_t ticks)
{
    return (double)ticks;
}

#endif
