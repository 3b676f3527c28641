/*
 * engine/contention.c - see contention.h.
 */
#include "engine/contention.h"

#include <assert.h>

#include "core/clock.h"

/* What is measured before a decision. */
#define BUSY_NS 40000000
#define PIECES 16
/* A thread that runs for less than this share of its time is not worth its switches. */
#define WORTH 0.25
/* Fewer threads make at least this share of the records that all make. */
#define LEAST 0.9
#define PAUSE_NS UINT64_C(1000000000)
#define PAUSE_MAX_NS (16 * PAUSE_NS)

void hr__contention_init(struct hr_contention *c, int threads)
{
    *c = (struct hr_contention){
        .threads = threads, .allowed = threads, .pause_ns = PAUSE_NS};
}

/* The number of threads to keep of `n` that queue for this share of their time. */
static int worth_keeping(int n, double queued)
{
    double run = n * (1 - queued) - WORTH;
    int kept = (int)run;

    kept += kept < run;
    return kept < 1 ? 1 : kept < n ? kept : n;
}

static void measure_from(struct hr_contention *c, uint64_t now_ns)
{
    c->busy_ticks = c->queued_ticks = c->records = c->pieces = 0;
    c->since_ns = now_ns;
}

static void decide(struct hr_contention *c, uint64_t now_ns)
{
    double rate = (double)c->records / (double)(now_ns - c->since_ns);

    if (c->rate > 0) { /* fewer are allowed */
        if (rate < LEAST * c->rate)
            c->allowed = c->threads;
        c->rate = 0;
        return;
    }
    c->allowed =
        worth_keeping(c->threads, (double)c->queued_ticks / (double)c->busy_ticks);
    if (c->allowed == c->threads) {
        c->pause_ns = PAUSE_NS;
        return;
    }
    c->rate = rate;
    c->retry_ns = now_ns + c->pause_ns;
    c->pause_ns = 2 * c->pause_ns < PAUSE_MAX_NS ? 2 * c->pause_ns : PAUSE_MAX_NS;
}

void hr__contention_note(struct hr_contention *c, uint64_t busy_ticks,
                         uint64_t queued_ticks, uint64_t records, uint64_t now_ns)
{
    assert(queued_ticks <= busy_ticks);
    if (c->threads <= 1)
        return;
    if (c->rate == 0 && now_ns < c->retry_ns) {
        c->since_ns = 0;
        return;
    }
    if (c->since_ns == 0 || now_ns <= c->since_ns) {
        measure_from(c, now_ns);
        return;
    }
    c->busy_ticks += busy_ticks;
    c->queued_ticks += queued_ticks;
    c->records += records;
    c->pieces++;
    if (c->pieces < PIECES || hr__ticks_to_ns(c->busy_ticks) < BUSY_NS)
        return;
    decide(c, now_ns);
    measure_from(c, now_ns);
}

void hr__contention_retry(struct hr_contention *c, uint64_t now_ns)
{
    if (c->allowed == c->threads || now_ns < c->retry_ns)
        return;
    c->allowed = c->threads;
    c->rate = 0;
    measure_from(c, now_ns);
}
