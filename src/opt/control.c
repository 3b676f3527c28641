/*
 * opt/control.c - see control.h.
 */
#include "opt/control.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "opt/cores.h"

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
#define PATIENCE_NS (1500 * MS)
#define PATIENCE_MAX_NS (120000 * MS)
/* Windows agree if their rates differ by less than this part. */
#define AGREE 0.1
#define WINDOWS_LEAST 3 /* for a decision */
#define WINDOWS_MOST 12 /* that a mean remembers */
#define WINDOWS_TOLD 2  /* since a demand changed: the second is of it alone */
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
/* The part of its time at least in which a thread at work has what it needs. */
#define LEAST_OWN 0.02
/* Threads that are at work for this part of the time show how long they wait for cores.
 */
#define BUSY 0.8
/* Threads wait for cores because of others if it is for this part of their CPU time. */
#define DELAY_LEAST 0.05
#define OTHERS_SAME 0.5
/* How long worker processes stay without work, at first and at most. */
#define KEEP_NS (30000 * MS)
#define KEEP_MAX_NS (16 * KEEP_NS)

static bool differ(double a, double b, double part)
{
    return fabs(a - b) > part * fmax(a, b);
}

void hr__control_init(struct hr_control *control, int threads_max, double cores,
                      double demand)
{
    assert(threads_max >= 1 && cores >= 0 && demand >= 0);
    *control = (struct hr_control){.threads_max = threads_max,
                                   .cores = cores,
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
    if (differ(demand, control->demand, AGREE)) {
        control->told = true;
        control->told_windows = 0;
    }
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

/* The part of its time in which a thread at work has a core or waits for something else.
 */
static double own_part(const struct hr_control_rates *rates)
{
    return fmax(1 - rates->delay, LEAST_OWN);
}

/* Threads that are idle now and then come in bursts, and wait for cores accordingly. */
static bool agree(const struct hr_control *c, const struct hr_control_rates *a,
                  const struct hr_control_rates *b)
{
    double busy = BUSY * c->threads;

    if (c->demand == 0 && differ(a->taken, b->taken, AGREE))
        return false;
    if (a->busy >= busy && b->busy >= busy && differ(a->made, b->made, AGREE))
        return false;
    return !differ(a->made / own_part(a), b->made / own_part(b), AGREE);
}

static void add_window(struct hr_control_rates *mean, const struct hr_control_rates *one)
{
    double weight;

    mean->windows += mean->windows < WINDOWS_MOST;
    weight = 1.0 / mean->windows;
    mean->made += weight * (one->made - mean->made);
    mean->taken += weight * (one->taken - mean->taken);
    mean->cpu += weight * (one->cpu - mean->cpu);
    mean->delay += weight * (one->delay - mean->delay);
    mean->busy += weight * (one->busy - mean->busy);
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
rates_of(const struct hr_control *c, const struct hr_control_sums *to)
{
    const struct hr_control_sums *from = &c->from;
    double ns = (double)(to->now_ns - from->now_ns);
    double own = ns - (double)(to->waits_ns - from->waits_ns);
    double busy_ns = (double)(to->busy_ns - from->busy_ns);
    double watched_ns = (double)(to->watched_ns - from->watched_ns);

    if (own < ns / 1000) /* the consumer does nothing but wait */
        own = ns / 1000;
    return (struct hr_control_rates){
        .made = 1e9 * (to->made - from->made) / busy_ns,
        .taken = 1e9 * (double)(to->taken - from->taken) / own,
        .cpu = watched_ns > 0 ? (double)(to->cpu_ns - from->cpu_ns) / watched_ns
                              : c->mean.cpu,
        .delay = watched_ns > 0 ? (double)(to->delay_ns - from->delay_ns) / watched_ns
                                : c->mean.delay,
        .busy = busy_ns / ns,
    };
}

/* ---- decisions ---- */

/* What a record takes. */
static struct hr_cores_load load_of(const struct hr_control *c)
{
    double ns = 1e9 / c->mean.made, own = own_part(&c->mean);
    double cpu = fmin(c->mean.cpu, own);

    return (struct hr_cores_load){.wait_ns = ns * (own - cpu),
                                  .cpu_ns = ns * cpu,
                                  .cores = c->cores,
                                  .others = c->others};
}

/* The rate of a thread that need not wait for a core. */
static double alone(const struct hr_cores_load *load)
{
    return 1e9 / (load->wait_ns + load->cpu_ns);
}

/* Updates `others`. While threads are idle they come in bursts, and wait for each other
 * longer than their number says: then it can only get less. */
static void look_around(struct hr_control *c)
{
    struct hr_cores_load load = load_of(c);
    bool busy = c->mean.busy >= BUSY * c->threads;
    int threads = busy ? c->threads : (int)ceil(c->mean.busy);
    double others = 0;

    if (c->mean.delay >= DELAY_LEAST * c->mean.cpu)
        others = hr__cores_others(&load, threads, c->mean.delay * 1e9 / c->mean.made);
    if (busy || others < c->others)
        c->others = others;
}

/* Updates `crowd` from the last change; a change of more threads has more weight. At
 * first only a record's CPU time is taken to depend on other threads, if it is known. */
static void learn(struct hr_control *c, const struct hr_cores_load *load)
{
    double most = (1 - LEAST_RATE) / c->threads_max, crowd, weight;
    double rate = alone(load);
    int more = c->threads - c->other_threads;

    if (c->changes == 0 && load->cpu_ns > 0)
        c->crowd = CROWD_FIRST / c->threads_max * load->cpu_ns / 1e9 * rate;
    if (c->other_threads == 0)
        return;
    crowd = (c->other_rate / rate - 1) / more;
    crowd = crowd > 0 ? crowd : 0; /* else the pipeline has changed since */
    crowd = crowd < most ? crowd : most;
    weight = (double)more * more / ((double)c->threads_max * c->threads_max);
    c->crowd += weight / (weight + CROWD_WEIGHT) * (crowd - c->crowd);
    c->other_threads = 0;
}

/* The rate of `threads` threads, in records per second. */
static double
rate_of(const struct hr_control *c, const struct hr_cores_load *load, int threads)
{
    return hr__cores_rate(load, threads) * (1 - c->crowd * (threads - c->threads));
}

/* The most that any number of threads makes. */
static double most_of(const struct hr_control *c, const struct hr_cores_load *load)
{
    double most = 0;

    for (int threads = 1; threads <= c->threads_max; threads++)
        most = fmax(most, rate_of(c, load, threads));
    return most;
}

/* The fewest threads whose rate is at least `rate`; all if there is no such number. */
static int
fewest(const struct hr_control *c, const struct hr_cores_load *load, double rate)
{
    int threads = 1;

    while (threads < c->threads_max && rate_of(c, load, threads) < rate)
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

/* What a decision is made from. */
struct view {
    uint64_t now_ns;
    double demand;
    struct hr_cores_load load;
    double enough; /* more is not asked of the threads: nearly the most that they make */
};

/* The fewest threads that exceed the demand by this part of it, or make nearly the most
 * that any number of them makes. */
static int needed(const struct hr_control *c, const struct view *v, double margin)
{
    return fewest(c, &v->load, fmin((1 + margin) * v->demand, v->enough));
}

static bool set_threads(struct hr_control *c, int threads, const struct view *v)
{
    keep_processes(c, threads, v->now_ns);
    snprintf(c->reason, sizeof c->reason,
             "%d of %d threads: %.4g records/s are wanted, and a thread makes %.4g, "
             "%.4g with that many",
             threads, c->threads_max, v->demand, c->mean.made,
             rate_of(c, &v->load, threads) / threads);
    c->other_threads = c->threads;
    c->other_rate = alone(&v->load);
    c->threads = threads;
    c->changes++;
    c->enough_ns = 0;
    c->mean.windows = c->odd.windows = 0;
    return true;
}

static bool give_more(struct hr_control *c, int threads, const struct view *v)
{
    bool same = !differ(c->mean.made, c->fewer_rate, 2 * AGREE) &&
                !differ(v->demand, c->fewer_demand, AGREE) &&
                fabs(c->others - c->fewer_others) < OTHERS_SAME;

    if (c->fewer_ns > 0 && same && v->now_ns - c->fewer_ns < REGRET_NS) {
        c->patience_ns =
            c->patience_ns < PATIENCE_MAX_NS / 4 ? 4 * c->patience_ns : PATIENCE_MAX_NS;
        c->fewer_ns = 0; /* one removal is regretted once */
    }
    return set_threads(c, threads, v);
}

/* Whether to leave a single thread that may not be needed: near the most that any number
 * makes, noise decides. */
static bool is_doubtful(const struct hr_control *c, const struct view *v)
{
    return (1 + MARGIN_FEWER) * v->demand > v->enough ||
           (c->falls >= FALLS && needed(c, v, 2 * MARGIN_FEWER) == c->threads);
}

/* Takes threads away at once where the demand has changed, and else only after fewer have
 * been enough for `patience_ns`. */
static bool take_away(struct hr_control *c, int threads, bool told, const struct view *v)
{
    if (differ(v->demand, c->fewer_demand, AGREE)) {
        c->patience_ns = PATIENCE_NS;
        c->falls = 0;
    }
    if (threads + 1 == c->threads && is_doubtful(c, v)) {
        c->enough_ns = 0;
        return false;
    }
    if (c->enough_ns == 0)
        c->enough_ns = v->now_ns;
    if (!told && v->now_ns - c->enough_ns < c->patience_ns)
        return false;
    c->fewer_ns = v->now_ns;
    c->fewer_rate = rate_of(c, &v->load, threads) / threads;
    c->fewer_demand = v->demand;
    c->fewer_others = c->others;
    c->falls++;
    return set_threads(c, threads, v);
}

static bool decide(struct hr_control *c, uint64_t now_ns)
{
    bool told = c->changes == 0 || (c->told && c->told_windows >= WINDOWS_TOLD);
    struct view v = {.now_ns = now_ns,
                     .demand = c->demand > 0 ? c->demand : c->mean.taken};
    int least, fewer;
    bool short_of;

    look_around(c);
    v.load = load_of(c);
    learn(c, &v.load);
    v.enough = (1 - MARGIN) * most_of(c, &v.load);
    short_of = needed(c, &v, 0) > c->threads;
    least = needed(c, &v, MARGIN);
    fewer = needed(c, &v, MARGIN_FEWER);
    fewer = told ? least : fewer < least + 1 ? fewer : least + 1;
    c->told = c->told && !told && !short_of;
    if (short_of)
        return give_more(c, least, &v);
    if (fewer < c->threads)
        return take_away(c, fewer, told, &v);
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
    rates = rates_of(control, sums);
    control->from = *sums;
    control->told_windows += control->told;
    return take_window(control, &rates) && control->mean.windows >= WINDOWS_LEAST &&
           decide(control, sums->now_ns);
}
