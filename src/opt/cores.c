/*
 * opt/cores.c - see cores.h.
 */
#include "opt/cores.h"

#include <assert.h>

#define OTHERS_MOST 64 /* for each core */
#define HALVINGS 24
#define LARGE 1e100

/* Cores that `ready` threads get. */
static double cores_of(const struct hr_cores_load *load, int ready)
{
    double all = ready + load->others;

    return load->cores == 0 || all <= load->cores ? ready : load->cores * ready / all;
}

/* The number of threads that are ready to run is a birth and death process: `weight` is
 * how likely a number of them is, by that of none. */
double hr__cores_rate(const struct hr_cores_load *load, int threads)
{
    double weight = 1, sum = 1, used = 0;

    assert(threads >= 1 && load->wait_ns >= 0 && load->cpu_ns >= 0 &&
           load->wait_ns + load->cpu_ns > 0 && load->cores >= 0 && load->others >= 0);
    if (load->cpu_ns == 0)
        return threads / load->wait_ns * 1e9;
    if (load->wait_ns == 0)
        return cores_of(load, threads) / load->cpu_ns * 1e9;
    for (int ready = 1; ready <= threads; ready++) {
        double cores = cores_of(load, ready);

        weight *= (threads - ready + 1) * load->cpu_ns / (load->wait_ns * cores);
        sum += weight;
        used += weight * cores;
        if (sum > LARGE) {
            weight /= LARGE;
            used /= LARGE;
            sum /= LARGE;
        }
    }
    return used / sum / load->cpu_ns * 1e9;
}

/* How long a record waits for a core. */
static double delay_of(const struct hr_cores_load *load, int threads)
{
    return threads / hr__cores_rate(load, threads) * 1e9 - load->wait_ns - load->cpu_ns;
}

double hr__cores_others(const struct hr_cores_load *load, int threads, double delay_ns)
{
    struct hr_cores_load trial = *load;
    double few = 0, many = OTHERS_MOST * load->cores;

    trial.others = 0;
    if (load->cores == 0 || load->cpu_ns == 0 || delay_of(&trial, threads) >= delay_ns)
        return 0;
    for (int i = 0; i < HALVINGS; i++) {
        trial.others = (few + many) / 2;
        if (delay_of(&trial, threads) < delay_ns)
            few = trial.others;
        else
            many = trial.others;
    }
    return few;
}
