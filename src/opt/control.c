/*
 * opt/control.c - see control.h.
 */
#include "opt/control.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define WINDOW_NS (250 * MS)
/* When the consumer sets the demand, a window starts and ends as it takes a batch, and
 * holds at least WINDOW_BATCHES of them unless it has lasted WINDOW_LATE_NS. */
#define WINDOW_BATCHES 4
#define WINDOW_LATE_NS (1000 * MS)
/* Spare rate, as a part of the demand: that the threads are given, and that a smaller
 * number must have before a thread is taken away. The second is larger, so that noise
 * does not bring the thread back. Never more than one thread above the least. */
#define MARGIN 0.01
#define MARGIN_FEWER 0.05
#define PATIENCE_NS (2000 * MS)
#define PATIENCE_MAX_NS (120000 * MS)
/* Windows agree if their rates differ by less than this part. */
#define AGREE 0.1
#define WINDOWS_LEAST 3 /* for a decision */
#define WINDOWS_MOST 16 /* that a mean remembers */
/* The least rate of a thread while all run, as a part of its rate alone. */
#define LEAST_RATE 0.5
/* Initial guess of the part of its rate that a thread loses while all run, and the weight
 * of that guess against a measured change of all threads. */
#define CROWD_FIRST 0.2
#define CROWD_WEIGHT 0.04
/* After this many removals for a demand, taking away a single thread needs twice
 * MARGIN_FEWER: each removal changes the estimated rate a little, which must not cause a
 * third one. */
#define FALLS 2
/* A thread that is given back within this time was taken away too early. */
#define REGRET_NS (20000 * MS)
/* How long worker processes stay without work, at first and at most. */
#define KEEP_NS (30000 * MS)
#define KEEP_MAX_NS (16 * KEEP_NS)

void hr__control_init(struct hr_control *control, int threads_max, double demand)
{
    assert(threads_max >= 1 && demand >= 0);
    *control = (struct hr_control){.threads_max = threads_max,
                                   .demand = demand,
                                   .threads = threads_max,
                                   .kept = threads_max,
                                   .crowd = CROWD_FIRST / threads_max,
                                   .patience_ns = PATIENCE_NS,
                                   .keep_ns = KEEP_NS};
}

void hr__control_demand(struct hr_control *control, double demand)
{
    assert(demand >= 0);
    if (demand == control->demand)
        return;
    control->demand = demand;
    control->enough_ns = 0;
}

/* ---- what was observed ---- */

static bool window_is_over(const struct hr_control *c, const struct hr_control_sums *to)
{
    const struct hr_control_sums *from = &c->from;
    uint64_t ns = to->now_ns - from->now_ns, batches = to->batches - from->batches;

    if (ns < WINDOW_NS || to->busy_ns <= from->busy_ns || to->made <= from->made)
        return false;
    return c->demand > 0 ||
           (to->batches > c->batches &&
            (batches >= WINDOW_BATCHES || (batches > 0 && ns >= WINDOW_LATE_NS)));
}

static bool differ(double a, double b, double part)
{
    return fabs(a - b) > part * fmax(a, b);
}

static bool agree(const struct hr_control *c, const struct hr_control_rates *a,
                  const struct hr_control_rates *b)
{
    return !differ(a->made, b->made, AGREE) &&
           (c->demand > 0 || !differ(a->taken, b->taken, AGREE));
}

static void add_window(struct hr_control_rates *mean, const struct hr_control_rates *one)
{
    double weight;

    mean->windows += mean->windows < WINDOWS_MOST;
    weight = 1.0 / mean->windows;
    mean->made += weight * (one->made - mean->made);
    mean->taken += weight * (one->taken - mean->taken);
}

/* Returns false if the window disagrees with the mean: it is held back until a second one
 * confirms it. */
static bool take_window(struct hr_control *c, const struct hr_control_rates *one)
{
    if (c->mean.windows == 0 || agree(c, one, &c->mean)) {
        c->odd.windows = 0;
    } else if (c->odd.windows == 0 || !agree(c, one, &c->odd)) {
        c->odd = *one;
        c->odd.windows = 1;
        return false;
    } else {
        c->mean = c->odd;
        c->odd.windows = 0;
    }
    add_window(&c->mean, one);
    return true;
}

static struct hr_control_rates
rates_of(const struct hr_control_sums *from, const struct hr_control_sums *to)
{
    double ns = (double)(to->now_ns - from->now_ns);
    double own = ns - (double)(to->waits_ns - from->waits_ns);

    if (own < ns / 1000) /* the consumer does nothing but wait */
        own = ns / 1000;
    return (struct hr_control_rates){1e9 * (to->made - from->made) /
                                         (double)(to->busy_ns - from->busy_ns),
                                     1e9 * (double)(to->taken - from->taken) / own, 0};
}

/* ---- decisions ---- */

/* Updates `crowd` from the last change; a change of more threads has more weight. */
static void learn(struct hr_control *c, double rate)
{
    double most = (1 - LEAST_RATE) / c->threads_max, crowd, weight;
    int more = c->threads - c->other_threads;

    if (c->other_threads == 0)
        return;
    crowd = (c->other_rate / rate - 1) / more;
    crowd = crowd > 0 ? crowd : 0; /* else the pipeline has changed since */
    crowd = crowd < most ? crowd : most;
    weight = (double)more * more / ((double)c->threads_max * c->threads_max);
    c->crowd += weight / (weight + CROWD_WEIGHT) * (crowd - c->crowd);
    c->other_threads = 0;
}

/* The rate of each of `threads` threads, given that a thread makes `rate` now. */
static double rate_beside(const struct hr_control *c, double rate, int threads)
{
    return rate * (1 - c->crowd * (threads - c->threads));
}

/* The fewest threads that exceed the demand by this part of it, or all threads. */
static int needed(const struct hr_control *c, double demand, double rate, double margin)
{
    int threads = 1;

    while (threads < c->threads_max &&
           threads * rate_beside(c, rate, threads) < (1 + margin) * demand)
        threads++;
    return threads;
}

/* ---- worker processes ---- */

/* The number of threads changes to this. */
static void keep_processes(struct hr_control *c, int threads, uint64_t now_ns)
{
    if (threads > c->kept) {
        c->keep_ns = 2 * c->keep_ns < KEEP_MAX_NS ? 2 * c->keep_ns : KEEP_MAX_NS;
        c->kept = threads;
    }
    if (c->threads >= c->kept || threads == c->kept) {
        c->peak_ns = now_ns;
        c->peak = threads;
    } else if (threads > c->peak) {
        c->peak = threads;
    }
}

int hr__control_keep(struct hr_control *c, uint64_t now_ns)
{
    assert(c->kept >= c->threads);
    if (c->kept > c->threads && now_ns - c->peak_ns >= c->keep_ns) {
        c->kept = c->peak;
        c->peak = c->threads;
        c->peak_ns = now_ns;
    }
    return c->kept;
}

/* ---- changes ---- */

static bool set_threads(struct hr_control *c, int threads, double demand, double rate,
                        uint64_t now_ns)
{
    keep_processes(c, threads, now_ns);
    snprintf(c->reason, sizeof c->reason,
             "%d of %d threads: %.4g records/s are wanted, and a thread makes %.4g, "
             "%.4g with that many",
             threads, c->threads_max, demand, rate, rate_beside(c, rate, threads));
    c->other_threads = c->threads;
    c->other_rate = rate;
    c->threads = threads;
    c->changes++;
    c->enough_ns = 0;
    c->mean.windows = c->odd.windows = 0;
    return true;
}

static bool
give_more(struct hr_control *c, int threads, double demand, double rate, uint64_t now_ns)
{
    bool same = !differ(rate, c->fewer_rate, 2 * AGREE) &&
                !differ(demand, c->fewer_demand, AGREE);

    if (c->fewer_ns > 0 && same && now_ns - c->fewer_ns < REGRET_NS) {
        c->patience_ns =
            c->patience_ns < PATIENCE_MAX_NS / 4 ? 4 * c->patience_ns : PATIENCE_MAX_NS;
        c->fewer_ns = 0; /* one removal is regretted once */
    }
    return set_threads(c, threads, demand, rate, now_ns);
}

/* Takes threads away at once on the first decision, and later only after fewer have been
 * enough for `patience_ns`. */
static bool
take_away(struct hr_control *c, int threads, double demand, double rate, uint64_t now_ns)
{
    if (differ(demand, c->fewer_demand, AGREE)) {
        c->patience_ns = PATIENCE_NS;
        c->falls = 0;
    }
    if (c->falls >= FALLS && threads + 1 == c->threads &&
        needed(c, demand, rate, 2 * MARGIN_FEWER) == c->threads) {
        c->enough_ns = 0;
        return false;
    }
    if (c->enough_ns == 0)
        c->enough_ns = now_ns;
    if (c->changes > 0 && now_ns - c->enough_ns < c->patience_ns)
        return false;
    c->fewer_ns = now_ns;
    c->fewer_rate = rate;
    c->fewer_demand = demand;
    c->falls++;
    return set_threads(c, threads, demand, rate, now_ns);
}

static bool decide(struct hr_control *c, uint64_t now_ns)
{
    double rate = c->mean.made;
    double demand = c->demand > 0 ? c->demand : c->mean.taken;
    int least, fewer;

    learn(c, rate);
    least = needed(c, demand, rate, MARGIN);
    fewer = needed(c, demand, rate, MARGIN_FEWER);
    fewer = c->changes == 0 ? least : fewer < least + 1 ? fewer : least + 1;
    if (least > c->threads)
        return give_more(c, least, demand, rate, now_ns);
    if (fewer < c->threads)
        return take_away(c, fewer, demand, rate, now_ns);
    c->enough_ns = 0;
    return false;
}

bool hr__control_step(struct hr_control *control, const struct hr_control_sums *sums)
{
    struct hr_control_rates rates;
    bool over;

    if (control->from.now_ns == 0) {
        if (control->demand > 0 || sums->batches > control->batches)
            control->from = *sums;
        control->batches = sums->batches;
        return false;
    }
    over = window_is_over(control, sums);
    control->batches = sums->batches;
    if (!over)
        return false;
    rates = rates_of(&control->from, sums);
    control->from = *sums;
    return take_window(control, &rates) && control->mean.windows >= WINDOWS_LEAST &&
           decide(control, sums->now_ns);
}
