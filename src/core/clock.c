/*
 * core/clock.c - the only source of time.
 *
 * The TSC is used where CPUID calls it invariant. Its rate is the slope between the first
 * reading of both clocks and one at least 1 ms later (we spin if needed), accurate to
 * 1e-4. It is measured again whenever the time since the first reading has doubled. After
 * a second it is accurate to 1e-7 and kept; from then on a conversion costs one
 * multiplication. Of several readings the quickest counts: the thread may lose its core
 * between the two clocks.
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

#define READINGS 5

enum { TICKS_UNKNOWN, TICKS_TSC, TICKS_CLOCK };

static pthread_once_t ticks_once = PTHREAD_ONCE_INIT;
static atomic_int ticks_from;
static _Atomic double ticks_slope; /* ns per tick, */
/* until the counter is here; 0: not measured yet, UINT64_MAX: for good */
static _Atomic uint64_t ticks_until;

struct reading {
    uint64_t ns, ticks;
};

static struct reading read_both(void)
{
    struct reading best = {0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < READINGS; i++) {
        uint64_t begin = __rdtsc(), ns = hr__now_ns(), took = __rdtsc() - begin;

        if (took < least) {
            least = took;
            best = (struct reading){ns, begin + took / 2};
        }
    }
    return best;
}

static struct reading base; /* written once, under ticks_once */

static void ticks_init(void)
{
    unsigned a, b, c, d;
    int from = TICKS_CLOCK;

    if (__get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1U << 8) != 0)
        from = TICKS_TSC;
    base = read_both();
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

static double measure_slope(void)
{
    struct reading now;
    uint64_t passed;
    double slope;

    do {
        now = read_both();
        passed = now.ns - base.ns;
    } while (passed < 1000000);
    slope = (double)passed / (double)(now.ticks - base.ticks);
    atomic_store_explicit(&ticks_slope, slope, memory_order_relaxed);
    atomic_store_explicit(&ticks_until,
                          passed > 1000000000 ? UINT64_MAX : 2 * now.ticks - base.ticks,
                          memory_order_release);
    return slope;
}

double hr__tick_ns(void)
{
    uint64_t until;

    if (ticks_source() != TICKS_TSC)
        return 1;
    until = atomic_load_explicit(&ticks_until, memory_order_acquire);
    if (until == UINT64_MAX || __rdtsc() < until)
        return atomic_load_explicit(&ticks_slope, memory_order_relaxed);
    return measure_slope();
}

#else

uint64_t hr__ticks(void)
{
    return hr__now_ns();
}

double hr__tick_ns(void)
{
    return 1;
}

#endif

double hr__ticks_to_ns(uint64_t ticks)
{
    return (double)ticks * hr__tick_ns();
}
