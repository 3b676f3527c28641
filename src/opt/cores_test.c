/*
 * opt/cores_test.c - threads that share cores: limits, a known formula, and others found
 * again from their effect.
 */
#include "core/rng.h"
#include "opt/cores.h"
#include "tests/support/check.h"

#include <math.h>

static double draw(struct hr_rng *rng, double from, double to)
{
    return from * pow(to / from, hr__rng_double(rng));
}

TEST(a_thread_alone_never_waits_for_a_core)
{
    struct hr_cores_load load = {.wait_ns = 3e6, .cpu_ns = 1e6, .cores = 2};

    CHECK_NEAR(hr__cores_rate(&load, 1), 250, 1e-6);
    load.wait_ns = 0;
    CHECK_NEAR(hr__cores_rate(&load, 1), 1000, 1e-6);
    CHECK_NEAR(hr__cores_rate(&load, 7), 2000, 1e-6);
    load.cores = 0;
    CHECK_NEAR(hr__cores_rate(&load, 7), 7000, 1e-6);
    load = (struct hr_cores_load){.wait_ns = 4e6, .cores = 2};
    CHECK_NEAR(hr__cores_rate(&load, 8), 2000, 1e-6);
}

/* The utilization of a core by N threads is 1 - Erlang's loss formula of N servers at a
 * load of wait / cpu. */
TEST(a_single_core_is_busy_as_the_machine_repair_model_says)
{
    for (int threads = 1; threads <= 40; threads++) {
        struct hr_cores_load load = {.wait_ns = 9e6, .cpu_ns = 1e6, .cores = 1};
        double loss = 1;

        for (int n = 1; n <= threads; n++)
            loss = 9 * loss / (n + 9 * loss);
        CHECK_NEAR(hr__cores_rate(&load, threads) * 1e-3, 1 - loss, 1e-9);
    }
}

TEST(more_threads_make_more_and_others_take_some)
{
    uint64_t seed = check_seed();
    struct hr_rng rng;

    hr__rng_init(&rng, seed, 0, 0);
    for (int i = 0; i < 1000; i++) {
        struct hr_cores_load load = {.wait_ns = draw(&rng, 1e3, 1e9),
                                     .cpu_ns = draw(&rng, 1e3, 1e9),
                                     .cores = 1 + floor(8 * hr__rng_double(&rng))};
        int threads = 1 + (int)(hr__rng_below(&rng, 300));
        double rate = hr__cores_rate(&load, threads), delay_ns, others;

        CHECK(rate > 0 && rate <= (1 + 1e-9) * load.cores / load.cpu_ns * 1e9);
        CHECK(rate <= (1 + 1e-9) * threads / (load.wait_ns + load.cpu_ns) * 1e9);
        CHECK(hr__cores_rate(&load, threads + 1) >= rate * (1 - 1e-9));
        others = load.others = 10 * hr__rng_double(&rng);
        CHECK(hr__cores_rate(&load, threads) <= rate * (1 + 1e-9));
        delay_ns =
            threads / hr__cores_rate(&load, threads) * 1e9 - load.wait_ns - load.cpu_ns;
        if (delay_ns < 0.01 * load.cpu_ns)
            continue;
        load.others = hr__cores_others(&load, threads, delay_ns);
        CHECK_NEAR(hr__cores_rate(&load, threads) *
                       (load.wait_ns + load.cpu_ns + delay_ns) / (threads * 1e9),
                   1, 1e-3);
        CHECK(threads < load.cores || fabs(load.others - others) < 0.05 + 0.05 * others);
    }
}
