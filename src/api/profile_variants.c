/*
 * api/profile_variants.c - see profile_variants.h.
 *
 * One thread runs the graph while another one looks whether user code holds its lock
 * (api/lock_probe.h). What follows for several threads is the cost model's matter.
 *
 * In worker processes nodes run alone, without their neighbours, so that each has its own
 * transfer: in one run those that are not next to each other, in a second one the others.
 *
 * Such a run is divided into windows. Each run ends when enough is known.
 */
#include "api/profile_variants.h"

#include <math.h>
#include <string.h>

#include "api/iter.h"
#include "api/lock_probe.h"
#include "api/transfer_rates.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/str.h"
#include "engine/engine.h"
#include "op/code_table.h"
#include "opt/certainty.h"
#include "opt/opt.h"

#define POLL_NS 50000000u
#define WINDOW_NS 150000000u
#define WINDOWS_MIN 4
#define SECONDS_MAX 2.0 /* of a run, from its first batch on */
#define PATIENCE 4      /* times that, until the first batch */
#define SERIAL_WIDTH 0.04
#define SERIAL_WIDTH_MAX 0.3 /* else it stays unknown */
#define CHEAP_NS 200.0       /* nodes that need not be certain, after the first windows */

/* Quantiles of Student's t: 95 %, two-sided, by degrees of freedom from 1 on. */
static const double student[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26};
#define STUDENT_MANY 2.1

/* Sums over windows of a node's value. */
struct mean {
    double sum, squares;
    unsigned count;
};

struct sums {
    double records, cpu_ns;
};

struct run {
    struct hr_graph *graph;
    const struct hr_profile_options *options;
    const struct hr_profile_node *const *known; /* per node: what it costs inline */
    bool *nodes;                                /* that are measured */
    bool processes;
    uint64_t records; /* for progress */
    uint64_t windows;
    struct hr_iter *iter;
    struct hr_lock_probe probe;
    struct hr_lock_seen *seen;    /* per node: in threads */
    struct sums *from, *now;      /* per node: when the window began; last looked at */
    struct mean *means;           /* per node: ns in worker processes */
    struct hr_certainty *certain; /* per node */
    uint64_t opened_ns, based_ns, window_ns; /* based_ns 0: no batch yet */
    struct hr_error *error;
};

/* ---- means ---- */

static void add(struct mean *mean, double value)
{
    mean->sum += value;
    mean->squares += value * value;
    mean->count++;
}

static double mean_of(const struct mean *mean)
{
    return mean->count > 0 ? mean->sum / mean->count : HR_PROFILE_UNKNOWN;
}

/* Half of the 95 % confidence interval. */
static double width_of(const struct mean *mean)
{
    double n = mean->count, variance;

    if (mean->count < 2)
        return HUGE_VAL;
    variance = fmax(mean->squares - mean->sum * mean->sum / n, 0) / (n - 1);
    return (mean->count - 2 < sizeof student / sizeof student[0]
                ? student[mean->count - 2]
                : STUDENT_MANY) *
           sqrt(variance / n);
}

/* A node's time, and how sure what is measured of it is. Nothing is asked of a node that
 * is not measured, nor of a cheap one after the first windows. */
static struct hr_certainty certainty_of(const struct run *r, uint32_t node)
{
    const struct hr_profile_node *known = r->known[node];
    const struct mean *mean = &r->means[node];
    struct hr_certainty made = {.width = -1};

    if (!r->nodes[node] || (known->cpu_ns < CHEAP_NS && r->windows >= WINDOWS_MIN))
        return made;
    made.ns = (double)known->records_in * hr__profile_wall_ns(known);
    if (!r->processes)
        hr__lock_held(&r->seen[node], &made.width);
    else if (mean->count >= WINDOWS_MIN && mean->sum > 0)
        made.width = width_of(mean) / mean_of(mean);
    return made;
}

static bool is_narrow(const struct run *r)
{
    for (uint32_t i = 0; i < r->graph->count; i++)
        r->certain[i] = certainty_of(r, i);
    return hr__certain(r->certain, r->graph->count,
                       r->processes ? r->options->width : SERIAL_WIDTH);
}

/* ---- windows ---- */

static void look(struct run *r)
{
    for (size_t i = 0; i < r->graph->count; i++) {
        struct hr_node_stats s;

        if (hr_iter_node_stats(r->iter, i, &s) == HR_OK)
            r->now[i] = (struct sums){(double)s.records, s.seconds * 1e9};
    }
}

static struct sums since(const struct run *r, size_t node)
{
    const struct sums *to = &r->now[node], *from = &r->from[node];

    return (struct sums){to->records - from->records, fmax(to->cpu_ns - from->cpu_ns, 0)};
}

static void add_window(struct run *r)
{
    for (uint32_t i = 0; i < r->graph->count; i++) {
        struct sums s = since(r, i);

        if (r->nodes[i] && s.records > 0)
            add(&r->means[i], s.cpu_ns / s.records);
    }
}

static void begin_window(struct run *r)
{
    memcpy(r->from, r->now, r->graph->count * sizeof *r->now);
    r->window_ns = hr__now_ns();
}

/* After a batch or some time without one; *ret_done when enough is known. */
static enum hr_err step(struct run *r, bool *ret_done)
{
    struct hr_batch *batch = NULL;
    enum hr_err code = hr_iter_next_for(r->iter, POLL_NS, &batch, r->error);
    double limit_ns = fmin(r->options->seconds_max / 2, SECONDS_MAX) * 1e9;
    const struct hr_profile_options *o = r->options;
    uint64_t now;

    hr_batch_unref(batch);
    if (code != HR_OK)
        return code;
    now = hr__now_ns();
    if (batch != NULL && r->based_ns == 0) {
        look(r);
        begin_window(r);
        r->based_ns = now;
    }
    if (o->progress != NULL && !o->progress(o->user, r->records, r->records))
        return hr__fail(r->error, HR_ERR_CANCELLED, "stopped");
    if (r->based_ns == 0) {
        *ret_done = (double)(now - r->opened_ns) > PATIENCE * limit_ns;
        return HR_OK;
    }
    if (now - r->window_ns >= WINDOW_NS) {
        look(r);
        add_window(r);
        begin_window(r);
        r->windows++;
    }
    *ret_done = (double)(now - r->based_ns) > limit_ns || is_narrow(r);
    return HR_OK;
}

/* ---- a run ---- */

/* The plan of the run, as text that the caller frees. */
static enum hr_err make_plan(const struct run *r, char **ret_text)
{
    struct hr_opt_settings settings = {.cpus = hr__cpu_count(),
                                       .threads = 1,
                                       .ordered = true,
                                       .fuse = r->options->fuse,
                                       .processes = r->processes ? r->nodes : NULL};
    struct hr_plan plan;
    struct hr_str text;

    HR_TRY(hr__plan_make(r->graph, &settings, &plan, r->error));
    plan.help_ns = 0; /* the consumer's thread only waits */
    hr__str_init(&text);
    hr__plan_print(&plan, HR_GRAPH_YAML, &text);
    hr__plan_finish(&plan);
    *ret_text = hr__str_take(&text);
    hr__str_finish(&text);
    return *ret_text != NULL ? HR_OK : hr__fail(r->error, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err open_iter(struct run *r)
{
    struct hr_iter_options options;
    char *plan = NULL;
    enum hr_err code;

    hr_iter_options_init(&options);
    HR_TRY(make_plan(r, &plan));
    options.plan = plan;
    options.seed = r->options->seed;
    options.epochs = 0;
    options.uncached = true;
    options.on_error = HR_ON_ERROR_SKIP;
    code = hr_iter_open(r->graph, &options, &r->iter, r->error);
    hr__free(plan);
    if (code == HR_OK && !r->processes)
        code = hr__lock_probe_begin(&r->probe, r->iter->engine, r->seen, r->error);
    return code;
}

static enum hr_err run_windows(struct run *r)
{
    bool done = false;
    enum hr_err code;

    r->opened_ns = hr__now_ns();
    r->based_ns = r->windows = 0;
    code = open_iter(r);
    while (code == HR_OK && !done)
        code = step(r, &done);
    hr__lock_probe_end(&r->probe);
    hr_iter_close(r->iter);
    r->iter = NULL;
    return code;
}

/* Whether failing ends the profile: all else only means that a variant cannot be had. */
static bool is_fatal(enum hr_err code)
{
    return code == HR_ERR_MEMORY || code == HR_ERR_CANCELLED;
}

/* ---- which nodes ---- */

/* Returns whether there are any. */
static bool choose_threads(struct run *r)
{
    bool any = false;

    for (uint32_t i = 0; i < r->graph->count; i++) {
        const struct hr_code_use *use = hr__node_code(&r->graph->nodes[i]);

        r->nodes[i] = use != NULL && use->variant != HR_CODE_INLINE;
        any = any || r->nodes[i];
    }
    return any;
}

/* Nodes that worker processes can run; in the second of two turns those that are next to
 * one of the first. */
static bool choose_processes(struct run *r, int turn)
{
    bool any = false, first[HR_GRAPH_NODES_MAX] = {false};

    for (uint32_t i = 0; i < r->graph->count; i++) {
        const struct hr_graph_node *node = &r->graph->nodes[i];
        const struct hr_code_use *use = hr__node_code(node);
        bool beside = false;

        r->nodes[i] = false;
        if (use == NULL || use->variant == HR_CODE_INLINE || use->code->stays != NULL)
            continue;
        for (size_t k = 0; k < node->input_count; k++)
            beside = beside || (node->inputs[k] < i && first[node->inputs[k]]);
        first[i] = !beside;
        r->nodes[i] = turn == 0 ? first[i] : beside;
        any = any || r->nodes[i];
    }
    return any;
}

static bool is_seen(const struct hr_lock_seen *seen)
{
    double width;

    hr__lock_held(seen, &width);
    return width <= SERIAL_WIDTH_MAX;
}

/* What was seen of all nodes of which too little was seen, as of one node: each has
 * little time, and of their sum this is right. */
static void add_unseen(const struct run *r, struct hr_lock_seen *ret)
{
    *ret = (struct hr_lock_seen){0};
    for (uint32_t i = 0; i < r->graph->count; i++) {
        if (!r->nodes[i] || is_seen(&r->seen[i]))
            continue;
        ret->tries += r->seen[i].tries;
        ret->waits += r->seen[i].waits;
    }
}

/* The part of a node's CPU time under the lock. In some of its other time it waits,
 * without the lock. */
static double
serial_of(const struct run *r, uint32_t node, const struct hr_lock_seen *unseen)
{
    const struct hr_profile_node *n = r->known[node];
    const struct hr_lock_seen *seen = is_seen(&r->seen[node]) ? &r->seen[node] : unseen;
    double width, held = hr__lock_held(seen, &width);

    if (hr__node_code(&r->graph->nodes[node])->code->enter == NULL)
        return 0;
    if (width > SERIAL_WIDTH_MAX)
        return HR_PROFILE_UNKNOWN;
    return n->cpu_ns > 0 ? fmin(held * hr__profile_wall_ns(n) / n->cpu_ns, 1) : held;
}

static void keep(const struct run *r, struct hr_profile *profile)
{
    struct hr_lock_seen unseen;

    add_unseen(r, &unseen);
    for (uint32_t i = 0; i < r->graph->count; i++) {
        struct hr_profile_node *node = &profile->nodes[r->known[i] - profile->nodes];

        if (!r->nodes[i])
            continue;
        if (r->processes)
            node->process_ns = mean_of(&r->means[i]);
        else
            node->serial = serial_of(r, i, &unseen);
    }
}

static enum hr_err measure_nodes(struct run *r, struct hr_profile *profile)
{
    enum hr_err code;

    memset(r->means, 0, r->graph->count * sizeof *r->means);
    memset(r->now, 0, r->graph->count * sizeof *r->now);
    code = run_windows(r);
    if (code == HR_OK || !is_fatal(code))
        keep(r, profile);
    return is_fatal(code) ? code : HR_OK;
}

static enum hr_err measure(struct run *r, struct hr_profile *profile)
{
    if (!choose_threads(r))
        return HR_OK;
    HR_TRY(measure_nodes(r, profile));
    r->processes = true;
    for (int turn = 0; turn < 2 && r->graph->codes->host.start != NULL; turn++)
        if (choose_processes(r, turn))
            HR_TRY(measure_nodes(r, profile));
    return HR_OK;
}

enum hr_err
hr__profile_variants(struct hr_graph *graph, const struct hr_profile_options *options,
                     uint64_t records, struct hr_profile *profile,
                     struct hr_error *reterr)
{
    size_t count = graph->count;
    const struct hr_profile_node **known = hr__calloc(count, sizeof *known);
    uint64_t began = hr__now_ns();
    struct hr_error error = {0};
    struct run r = {.graph = graph,
                    .options = options,
                    .records = records,
                    .known = known,
                    .nodes = hr__calloc(count, sizeof *r.nodes),
                    .from = hr__calloc(count, sizeof *r.from),
                    .now = hr__calloc(count, sizeof *r.now),
                    .seen = hr__calloc(count, sizeof *r.seen),
                    .means = hr__calloc(count, sizeof *r.means),
                    .certain = hr__calloc(count, sizeof *r.certain),
                    .error = &error};
    enum hr_err code = HR_OK;

    if (known == NULL || r.nodes == NULL || r.from == NULL || r.now == NULL ||
        r.seen == NULL || r.means == NULL || r.certain == NULL)
        code = hr__fail(&error, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK && hr__profile_match(graph, profile, known) == count)
        code = measure(&r, profile);
    hr__transfer_rates(&profile->machine);
    profile->seconds += (double)(hr__now_ns() - began) * 1e-9;
    hr__free(known);
    hr__free(r.nodes);
    hr__free(r.from);
    hr__free(r.now);
    hr__free(r.seen);
    hr__free(r.means);
    hr__free(r.certain);
    if (code != HR_OK && reterr != NULL)
        *reterr = error;
    return code;
}
