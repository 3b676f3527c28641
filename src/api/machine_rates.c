/*
 * api/machine_rates.c - see machine_rates.h. Rates are by CPU time, so that other
 * processes disturb them little.
 */
#include "api/machine_rates.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/thread.h"

#define BLOCK_BYTES ((size_t)2 << 20) /* two are more than a core's own caches hold */
#define ROUNDS 5
#define PASSES 3 /* over its block, of a thread in a round */
#define THREADS_MAX 16

/* Copies a block of its own, and changes it, as ops do. */
struct worker {
    unsigned char *block;    /* two of them */
    double copy_ns, work_ns; /* CPU time, of the fastest pass */
};

static void work(struct worker *w)
{
    uint64_t began = hr__cpu_thread_ns(), copied;

    memcpy(w->block + BLOCK_BYTES, w->block, BLOCK_BYTES);
    copied = hr__cpu_thread_ns();
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        w->block[i] = (unsigned char)(w->block[i] * 3 + w->block[BLOCK_BYTES + i]);
    w->copy_ns = fmin(w->copy_ns, (double)(copied - began));
    w->work_ns = fmin(w->work_ns, (double)(hr__cpu_thread_ns() - began));
}

static void *run(void *user)
{
    struct worker *w = user;

    for (int i = 0; i < PASSES; i++)
        work(w);
    return NULL;
}

static void begin(struct worker *w)
{
    w->copy_ns = w->work_ns = HUGE_VAL;
}

/* The time of a pass while `count` threads make one, on average; HUGE_VAL if they cannot
 * be started. */
static double together(struct worker *workers, int count)
{
    pthread_t threads[THREADS_MAX];
    double ns = 0;
    int started = 0;

    for (; started < count; started++) {
        begin(&workers[started]);
        if (hr__thread_start(&threads[started], "hr-rates", run, &workers[started],
                             NULL) != HR_OK)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        ns += workers[i].work_ns / started;
    }
    return started == count ? ns : HUGE_VAL;
}

static void measure(struct worker *workers, int count, struct hr_profile_machine *machine)
{
    double alone = HUGE_VAL, all = HUGE_VAL, copy = HUGE_VAL;

    for (int i = 0; i < ROUNDS; i++) {
        begin(&workers[0]);
        run(&workers[0]);
        alone = fmin(alone, workers[0].work_ns);
        copy = fmin(copy, workers[0].copy_ns);
        if (count > 1)
            all = fmin(all, together(workers, count));
    }
    if (copy > 0)
        machine->copy = (double)BLOCK_BYTES / copy * 1e9;
    if (count > 1 && alone > 0 && all < HUGE_VAL)
        machine->crowd = fmax(all / alone, 1);
}

void hr__machine_rates(struct hr_profile_machine *machine)
{
    int count = machine->cores < THREADS_MAX ? (int)machine->cores : THREADS_MAX;
    struct worker workers[THREADS_MAX];
    unsigned char *blocks;

    machine->copy = machine->crowd = HR_PROFILE_UNKNOWN;
    blocks = count > 0 ? hr__malloc((size_t)count * 2 * BLOCK_BYTES) : NULL;
    if (blocks == NULL)
        return;
    memset(blocks, 1, (size_t)count * 2 * BLOCK_BYTES);
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){.block = blocks + (size_t)i * 2 * BLOCK_BYTES};
    measure(workers, count, machine);
    hr__free(blocks);
}
