/*
 * api/profile_run.c - runs a graph until the costs of its nodes are known.
 *
 * The engine's meters only count up, so what came before the first batch (opened files,
 * first calls) is subtracted, and so is what came while the run still touched new memory:
 * a fault may take ten times as long as what is then done with the page.
 */
#include "api/profile_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/iter.h"
#include "api/machine_rates.h"
#include "api/profile_variants.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/error.h"
#include "engine/engine.h"
#include "engine/positions.h"
#include "op/code_table.h"
#include "opt/certainty.h"

#define POLL_NS 50000000u   /* between looks at the meters */
#define LEAST_NS 300000000u /* measured at least */
#define LEAST_RECORDS 32    /* of the sources, measured at least */
#define CHEAP_NS 50.0       /* per record: nodes that cost less need not be certain */
#define PATIENCE 4          /* times the limit, until the first batch */
#define GROWTH_MAX 16e6     /* bytes/s of new memory that a run in its stride touches */
#define WHOLE_EPOCHS 2      /* without a batch, after which another one is unlikely */

/* What a node did since the iterator was opened. */
struct sums {
    uint64_t records_in, records_out, errors;
    double cpu_ns, ordered_ns, wait_ns, bytes_in, bytes_out;
    struct hr_fit fit;
};

struct profiling {
    const struct hr_graph *graph;
    const struct hr_profile_options *options;
    struct hr_iter *iter;
    struct sums *base, *now;       /* per node: at `based`; last looked at */
    struct hr_certainty *known;    /* per node */
    uint64_t began, based, looked; /* when; based: 0 before the first batch */
    uint64_t warm_until;           /* the latest time of `based` */
    uint64_t resident;             /* bytes of the process, at most so far */
    uint64_t delay_began;          /* time without a core, until then */
    uint64_t limit_ns;             /* to measure, after `based` */
    bool whole;                    /* up to records_max, however sure the costs are */
    uint64_t before;               /* records of the run before it, for progress */
    bool again;                    /* they will be run once more */
    struct hr_error *error;
};

static void look(struct profiling *p)
{
    for (size_t i = 0; i < p->graph->count; i++) {
        struct hr_node_stats s;

        if (hr_iter_node_stats(p->iter, i, &s) != HR_OK)
            continue;
        p->now[i] = (struct sums){
            .records_in = s.records,
            .records_out = s.records_out,
            .errors = s.errors,
            .cpu_ns = s.seconds * 1e9,
            .ordered_ns = s.ordered_seconds * 1e9,
            .wait_ns = s.wait_seconds * 1e9,
            .bytes_in = (double)s.bytes_in,
            .bytes_out = (double)s.bytes_out,
            .fit = hr__engine_node_fit(p->iter->engine, i),
        };
    }
    p->looked = hr__now_ns();
}

/* Since `based`; since the start if the node has done nothing since then. */
static struct sums measured(const struct profiling *p, size_t node)
{
    struct sums s = p->now[node];
    const struct sums *base = &p->base[node];

    if (s.records_in == base->records_in)
        return s;
    s.records_in -= base->records_in;
    s.records_out -= base->records_out;
    s.cpu_ns = fmax(s.cpu_ns - base->cpu_ns, 0);
    s.ordered_ns = fmax(s.ordered_ns - base->ordered_ns, 0);
    s.wait_ns = fmax(s.wait_ns - base->wait_ns, 0);
    s.bytes_in = fmax(s.bytes_in - base->bytes_in, 0);
    s.bytes_out = fmax(s.bytes_out - base->bytes_out, 0);
    hr__fit_subtract(&s.fit, &base->fit);
    return s;
}

/* Records that the sources have given, since the start. */
static uint64_t source_records(const struct profiling *p)
{
    uint64_t most = 0;

    for (size_t i = 0; i < p->graph->count; i++)
        if (p->graph->nodes[i].input_count == 0 && p->now[i].records_in > most)
            most = p->now[i].records_in;
    return most;
}

static bool is_narrow(struct profiling *p)
{
    double all = 0;

    for (size_t i = 0; i < p->graph->count; i++)
        all += measured(p, i).cpu_ns;
    for (size_t i = 0; i < p->graph->count; i++) {
        struct sums s = measured(p, i);
        bool cheap = s.cpu_ns < CHEAP_NS * (double)s.records_in;

        if (p->graph->nodes[i].input_count == 0 && s.records_in < LEAST_RECORDS &&
            !cheap && s.cpu_ns >= HR_CERTAINTY_SHARE_MIN * all)
            return false;
        p->known[i] = (struct hr_certainty){.ns = cheap ? 0 : s.cpu_ns,
                                            .width = hr__fit_width(&s.fit)};
    }
    return hr__certain(p->known, p->graph->count, p->options->width);
}

static bool is_done(struct profiling *p)
{
    int64_t records_max = p->options->records_max;

    if (p->based == 0)
        return false;
    if (records_max > 0 && source_records(p) >= (uint64_t)records_max)
        return true;
    if (p->looked - p->based >= p->limit_ns)
        return true;
    return !p->whole && p->looked - p->based >= LEAST_NS && is_narrow(p);
}

/* Whether an epoch has records, but is known to end before the first batch. */
static bool ends_early(const struct profiling *p)
{
    struct hr_epoch_size size;

    return source_records(p) > 0 &&
           hr_graph_epoch_size(p->iter->engine->graph, NULL, &size, NULL) == HR_OK &&
           size.batches == 0;
}

/* How many times the limit to wait for the first batch: once where whole epochs had none.
 */
static uint64_t patience(const struct profiling *p)
{
    uint64_t epoch = hr__engine_positions(p->iter->engine, 0);

    return epoch > 0 && epoch < HR_COUNT_UNKNOWN &&
                   source_records(p) / epoch >= WHOLE_EPOCHS
               ? 1
               : PATIENCE;
}

static const char *how_it_ended(const struct sums *s, char *text, size_t room)
{
    unsigned long long all = s->records_in, bad = s->errors;

    if (bad == 0)
        snprintf(text, room, "let none of %llu records pass", all);
    else
        snprintf(text, room,
                 "failed for %llu of %llu records and let none pass; `headrace run` says "
                 "why",
                 bad, all);
    return text;
}

/* Why no batch came. */
static enum hr_err tell_nothing(const struct profiling *p)
{
    double seconds = (double)(p->looked - p->began) * 1e-9;
    char text[160];

    if (ends_early(p))
        return hr__fail(p->error, HR_ERR_STATE,
                        "there is nothing to measure: an epoch ends before its first "
                        "batch is complete; make batches or windows smaller, or set "
                        "drop_last to false");
    if (source_records(p) == 0)
        return hr__fail(p->error, HR_ERR_STATE,
                        "there is nothing to measure: the sources gave no record in "
                        "%.1f s",
                        seconds);
    for (size_t i = 0; i < p->graph->count; i++) {
        const struct hr_graph_node *node = &p->graph->nodes[i];

        if (p->now[i].records_in == 0 || p->now[i].records_out > 0 ||
            node->op->kind == HR_OP_SEQUENCE)
            continue;
        return hr__fail(p->error, HR_ERR_STATE,
                        "there is nothing to measure after node '%s' (%s): it %s",
                        node->name, node->op->name,
                        how_it_ended(&p->now[i], text, sizeof text));
    }
    return hr__fail(p->error, HR_ERR_TIMEOUT,
                    "no batch was complete after %.1f s and %llu records: measure longer "
                    "(seconds), or make batches or windows smaller",
                    seconds, (unsigned long long)source_records(p));
}

static bool cancelled(const struct profiling *p)
{
    const struct hr_profile_options *o = p->options;
    uint64_t done = source_records(p), all;
    double passed = (double)(p->looked - p->began);

    if (o->progress == NULL)
        return false;
    all = (uint64_t)((double)done * fmax((double)p->limit_ns / passed, 1));
    if (o->records_max > 0 && (p->whole || (uint64_t)o->records_max < all))
        all = (uint64_t)o->records_max;
    all = all > done ? all : done;
    return !o->progress(o->user, p->before + done, p->before + (p->again ? 2 : 1) * all);
}

/* Whether the process has grown since the last look as it does before its pools have what
 * they need, `ns` ago. */
static bool is_growing(struct profiling *p, uint64_t ns)
{
    uint64_t resident = hr__rss_bytes();
    uint64_t more = resident > p->resident ? resident - p->resident : 0;

    p->resident += more;
    return (double)more > GROWTH_MAX * (double)ns * 1e-9;
}

/* Whether what was measured until now is to be forgotten. */
static bool is_warming(struct profiling *p, bool first, uint64_t ns)
{
    int64_t records_max = p->options->records_max;
    bool growing = is_growing(p, ns);

    if (first)
        p->warm_until = p->looked + p->limit_ns;
    if (first || p->based == 0)
        return first;
    return growing && p->looked < p->warm_until &&
           (records_max == 0 || source_records(p) < (uint64_t)records_max / 2);
}

/* One step of the run; *ret_done once everything is known. */
static enum hr_err step(struct profiling *p, bool *ret_done)
{
    struct hr_batch *batch = NULL;
    enum hr_err code = hr_iter_next_for(p->iter, POLL_NS, &batch, p->error);
    bool first = batch != NULL && p->based == 0;
    uint64_t before = p->looked;

    hr_batch_unref(batch);
    if (code == HR_ERR_END) {
        look(p);
        *ret_done = true;
        return p->based != 0 ? HR_OK : tell_nothing(p);
    }
    if (code != HR_OK)
        return code;
    if (!first && hr__now_ns() - p->looked < POLL_NS)
        return HR_OK;
    look(p);
    if (is_warming(p, first, p->looked - before)) {
        memcpy(p->base, p->now, p->graph->count * sizeof *p->now);
        p->based = p->looked;
    }
    if (cancelled(p))
        return hr__fail(p->error, HR_ERR_CANCELLED, "stopped");
    *ret_done = is_done(p);
    if (p->based == 0 &&
        (p->looked - p->began >= patience(p) * p->limit_ns || ends_early(p)))
        return tell_nothing(p);
    return HR_OK;
}

/* Sums over the nodes of a run. */
struct totals {
    double cpu_ns, wait_ns;
    double source_wait_ns, source_bytes;
    double delay; /* time without a core for each ns of CPU time */
    double waits; /* part of not_delayed() that nodes waited */
};

static struct totals add_up(const struct profiling *p)
{
    struct totals t = {0};

    for (size_t i = 0; i < p->graph->count; i++) {
        struct sums s = measured(p, i);

        t.cpu_ns += s.cpu_ns;
        t.wait_ns += s.wait_ns;
        if (p->graph->nodes[i].input_count > 0)
            continue;
        t.source_wait_ns += s.wait_ns;
        t.source_bytes += s.bytes_out;
    }
    return t;
}

/* Time without a core for each ns of CPU time, in the whole run. */
static double delay_part(const struct profiling *p)
{
    uint64_t delay_ns = hr__cpu_delay_ns();
    double cpu_ns = 0;

    for (size_t i = 0; i < p->graph->count; i++)
        cpu_ns += p->now[i].cpu_ns;
    return cpu_ns > 0 && delay_ns > p->delay_began
               ? (double)(delay_ns - p->delay_began) / cpu_ns
               : 0;
}

/* A thread may lose its core in any node, in proportion to the time that it computes
 * there. That is nothing a node waits for. */
static double not_delayed(const struct sums *s, const struct totals *all)
{
    return fmax(s->wait_ns - all->delay * s->cpu_ns, 0);
}

/* The part of what is left in all nodes that makes the sum right: what one node lost more
 * than its part, others lost less. */
static double waits_left(const struct profiling *p, const struct totals *all)
{
    double left = 0;

    for (size_t i = 0; i < p->graph->count; i++) {
        struct sums s = measured(p, i);

        left += not_delayed(&s, all);
    }
    return left > 0 ? fmin(fmax(all->wait_ns - all->delay * all->cpu_ns, 0) / left, 1)
                    : 0;
}

/* What the sources read in a second, if everything else waited for them. */
static double disk_rate(const struct profiling *p, const struct totals *all)
{
    double ns = (double)(p->looked - p->based);
    double waits = fmax(all->source_wait_ns - all->delay * all->cpu_ns, 0);

    return waits > (all->cpu_ns + all->wait_ns) / 2 && all->source_bytes > 0 && ns > 0
               ? all->source_bytes / ns * 1e9
               : HR_PROFILE_UNKNOWN;
}

static enum hr_err fill_node(const struct profiling *p, size_t at, uint64_t second,
                             const struct totals *all, struct hr_profile *profile)
{
    const struct hr_graph_node *from = &p->graph->nodes[at];
    struct hr_profile_node *node = hr__profile_add(profile, from->name, from->op->name);
    struct sums s = measured(p, at);
    double records = s.records_in > 0 ? (double)s.records_in : 1;
    double mean = hr__fit_mean(&s.fit);

    if (node == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    node->fingerprint = from->fingerprint;
    node->measured = second;
    node->records_in = s.records_in;
    node->records_out = s.records_out;
    node->cpu_ns = s.cpu_ns / records;
    node->wait_ns = all->waits * not_delayed(&s, all) / records;
    node->deviation_ns =
        mean > 0 ? sqrt(hr__fit_variance(&s.fit)) / mean * node->cpu_ns : 0;
    node->bytes_in = s.bytes_in / records;
    node->bytes_out = s.bytes_out / records;
    node->fixed = hr__fit_fixed(&s.fit);
    node->width = hr__fit_width(&s.fit);
    if (s.ordered_ns > 0)
        node->ordered = fmin(s.ordered_ns / s.cpu_ns, 1);
    return HR_OK;
}

void hr__profile_begin(struct hr_profile *profile, enum hr_variant variant, bool fuse)
{
    static const enum hr_plan_variant variants[] = {
        [HR_VARIANT_THREADS] = HR_PLAN_THREADS,
        [HR_VARIANT_INLINE] = HR_PLAN_INLINE,
        [HR_VARIANT_PROCESSES] = HR_PLAN_PROCESSES,
    };

    *profile = (struct hr_profile){.variant = variants[variant], .fused = fuse};
    hr__profile_machine(&profile->machine);
    snprintf(profile->library, sizeof profile->library, "%s", hr_version());
}

static enum hr_err fill(const struct profiling *p, struct hr_profile *profile)
{
    uint64_t second = hr__wall_ns() / 1000000000u;
    struct totals all = add_up(p);

    all.delay = delay_part(p);
    all.waits = waits_left(p, &all);
    hr__profile_begin(profile, p->options->variant, p->options->fuse);
    profile->machine.disk = disk_rate(p, &all);
    profile->graph = p->graph->nodes[p->graph->output].fingerprint;
    profile->seconds = (double)(p->looked - p->began) * 1e-9;
    for (size_t i = 0; i < p->graph->count; i++)
        HR_TRY(fill_node(p, i, second, &all, profile));
    return HR_OK;
}

static enum hr_err open_iter(struct profiling *p, struct hr_graph *graph)
{
    const struct hr_profile_options *o = p->options;
    struct hr_iter_options options;

    hr_iter_options_init(&options);
    options.seed = o->seed;
    options.epochs = 0;
    options.variant = o->variant;
    options.threads = o->threads;
    options.fuse = o->fuse;
    options.uncached = true;
    options.on_error = HR_ON_ERROR_SKIP;
    options.errors_max = INT64_MAX; /* the same ones fail in each epoch */
    return hr_iter_open(graph, &options, &p->iter, p->error);
}

static enum hr_err begin(struct profiling *p)
{
    p->base = hr__calloc(p->graph->count, sizeof *p->base);
    p->now = hr__calloc(p->graph->count, sizeof *p->now);
    p->known = hr__calloc(p->graph->count, sizeof *p->known);
    if (p->base == NULL || p->now == NULL || p->known == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static void end(struct profiling *p)
{
    hr_iter_close(p->iter);
    hr__free(p->base);
    hr__free(p->now);
    hr__free(p->known);
}

static enum hr_err run(struct profiling *p, struct hr_graph *graph)
{
    enum hr_err code;
    bool done = false;

    HR_TRY(begin(p));
    p->limit_ns = (uint64_t)(p->options->seconds_max * 1e9);
    p->delay_began = hr__cpu_delay_ns();
    code = open_iter(p, graph);
    p->began = p->looked = hr__now_ns();
    while (code == HR_OK && !done)
        code = step(p, &done);
    return code;
}

/* ---- all cores ---- */

static bool has_code(const struct hr_graph *graph)
{
    for (uint32_t i = 0; i < graph->count; i++)
        if (hr__node_code(&graph->nodes[i]) != NULL)
            return true;
    return false;
}

static void fill_crowd(const struct profiling *p, struct hr_profile *profile)
{
    for (size_t i = 0; i < p->graph->count; i++) {
        struct sums s = measured(p, i);
        struct hr_profile_node *node = &profile->nodes[i];

        if (s.records_in > 0 && s.cpu_ns > 0 && node->cpu_ns > 0)
            node->crowd = s.cpu_ns / (double)s.records_in / node->cpu_ns;
    }
}

/* Runs the records that `alone` was measured with in all threads: what they cost there.
 * What threads of user code cost each other is profile_variants.h's matter. */
static enum hr_err measure_crowd(const struct profiling *alone, struct hr_graph *graph,
                                 struct hr_profile *profile, struct hr_error *reterr)
{
    struct hr_profile_options options = *alone->options;
    struct hr_error error = {0};
    struct profiling p = {.graph = graph,
                          .options = &options,
                          .whole = true,
                          .before = source_records(alone),
                          .error = &error};
    enum hr_err code;

    options.variant = HR_VARIANT_THREADS;
    options.threads = 0;
    options.records_max = (int64_t)p.before;
    code = run(&p, graph);
    if (code == HR_OK)
        fill_crowd(&p, profile);
    profile->seconds += (double)(p.looked - p.began) * 1e-9;
    end(&p);
    if (code != HR_ERR_MEMORY && code != HR_ERR_CANCELLED)
        return HR_OK; /* it stays unknown */
    if (reterr != NULL)
        *reterr = error;
    return code;
}

/* ---- the whole ---- */

enum hr_err
hr__profile_run(struct hr_graph *graph, const struct hr_profile_options *options,
                struct hr_profile *profile, struct hr_error *reterr)
{
    bool alone = options->variant == HR_VARIANT_INLINE;
    struct profiling p = {.graph = graph,
                          .options = options,
                          .again = alone && hr__cpu_count() > 1 && !has_code(graph),
                          .error = reterr};
    enum hr_err code = run(&p, graph);

    if (code == HR_OK)
        code = fill(&p, profile);
    hr_iter_close(p.iter);
    p.iter = NULL;
    if (code == HR_OK)
        hr__machine_rates(&profile->machine);
    if (code == HR_OK && p.again)
        code = measure_crowd(&p, graph, profile, reterr);
    if (code == HR_OK && alone)
        code = hr__profile_variants(graph, options, source_records(&p), profile, reterr);
    end(&p);
    return code;
}

enum hr_err hr__profile_iter(const struct hr_iter *iter, struct hr_profile *profile,
                             struct hr_error *reterr)
{
    const struct hr_engine *engine = iter->engine;
    struct hr_profile_options options = {.variant = engine->options.variant,
                                         .fuse = engine->options.fuse};
    struct profiling p = {.graph = engine->graph,
                          .options = &options,
                          .iter = (struct hr_iter *)(uintptr_t)iter,
                          .began = engine->open_ns,
                          .error = reterr};
    enum hr_err code = begin(&p);

    if (code == HR_OK) {
        look(&p);
        code = fill(&p, profile);
    }
    p.iter = NULL; /* the caller's */
    end(&p);
    return code;
}
