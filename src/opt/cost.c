/*
 * opt/cost.c - the rate of a plan as the least of its limits.
 */
#include "opt/cost.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "op/code_table.h"

/* Threads that wait less than the rest of their time are said to compute. */
#define WAITS_LITTLE 0.95
/* Of what a step costs in a thread: what it may seem to cost less in a process. */
#define SAME_CODE 0.2

/* All times are per record of the largest source. */
struct costing {
    const struct hr_plan *plan;
    const struct hr_cost_fact *facts; /* scaled for `cores` busy cores */
    const struct hr_cost_machine *machine;
    struct hr_cost *cost;
    double cores;      /* that threads and worker processes can use at once */
    double crowd;      /* factor on the time of copies while they are busy */
    double cpu_ns;     /* of everything */
    double process_ns; /* of worker processes */
    double carried_ns; /* of threads, with waits and their worker processes, overlapped or
                          one after the other */
    double code_ns;    /* under the lock of user code */
    double code_most_ns; /* of these, of one node */
    double sequence_ns;  /* of the slowest end of a stage */
    uint32_t code_node, sequence_node;
    double bytes; /* that sources read */
};

const char *hr__cost_limit_text(enum hr_cost_limit limit)
{
    static const char *const texts[] = {
        [HR_COST_CORES] = "cores",       [HR_COST_THREADS] = "threads",
        [HR_COST_SEQUENCE] = "sequence", [HR_COST_CODE] = "user code",
        [HR_COST_DISK] = "disk",
    };

    return texts[limit];
}

static const struct hr_graph_node *node_at(const struct costing *c, uint32_t node)
{
    return &c->plan->graph->nodes[node];
}

/* Charges `ns` of CPU time to a node. */
static void charge(struct costing *c, uint32_t node, double ns)
{
    c->cpu_ns += ns;
    c->cost->nodes[node].cpu_ns += ns;
}

/* ---- cores ---- */

static double threads_of(const struct hr_plan *plan)
{
    return plan->threads > 0 ? plan->threads : 1;
}

static bool has_processes(const struct hr_plan *plan)
{
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct hr_plan_stage *stage = &plan->stages[i];

        for (size_t k = 0; k < stage->step_count; k++)
            if (stage->steps[k].variant == HR_PLAN_PROCESSES)
                return true;
        if (stage->expand != HR_NO_NODE && stage->expand_variant == HR_PLAN_PROCESSES)
            return true;
    }
    return false;
}

/* Cores that threads and worker processes can use at once. */
static double used_cores(const struct hr_plan *plan, const struct hr_cost_machine *m)
{
    return fmin(m->cores, threads_of(plan) * (has_processes(plan) ? 2 : 1));
}

/* How much longer work takes while `used` cores compute, if it takes `crowd` times as
 * long while all do. */
static double crowding(const struct hr_cost_machine *m, double used, double crowd)
{
    return m->cores > 1 ? 1 + (crowd - 1) * (used - 1) / (m->cores - 1) : 1;
}

/* Copies the facts, with CPU times scaled for c->cores busy cores. NULL if out of memory.
 */
static struct hr_cost_fact *crowded_facts(const struct costing *c)
{
    size_t count = c->plan->graph->count;
    struct hr_cost_fact *facts = hr__calloc(count, sizeof *facts);

    for (size_t i = 0; facts != NULL && i < count; i++) {
        double crowd = c->facts[i].crowd > 0 ? c->facts[i].crowd : c->machine->crowd;
        double more = crowding(c->machine, c->cores, crowd);

        facts[i] = c->facts[i];
        facts[i].cpu_ns *= more;
        facts[i].process_ns *= more;
    }
    return facts;
}

/* ---- a node ---- */

/* The part of this step's CPU time in which no other such step runs: user code under a
 * lock that its host takes around calls, and code that must be called one at a time. */
static double
exclusive_part(const struct costing *c, uint32_t node, enum hr_plan_variant variant)
{
    const struct hr_graph_node *n = node_at(c, node);
    const struct hr_code_use *use = hr__node_code(n);

    if (use == NULL)
        return 0;
    if (variant == HR_PLAN_INLINE)
        return 1;
    return use->code->enter != NULL ? 1 - c->facts[node].parallel : 0;
}

static double copy_ns(const struct costing *c, double bytes)
{
    return c->machine->copy > 0 ? c->crowd * bytes / c->machine->copy * 1e9 : 0;
}

/* CPU time of both sides that a record takes to get to a worker process, before the step
 * `in`, and back. Later steps read what comes back where it is. */
static double crossing_ns(const struct costing *c, const struct hr_cost_fact *in)
{
    return c->crowd * in->records * c->machine->transfer_ns +
           copy_ns(c, in->records * in->bytes_in);
}

/* CPU time of copying the output of a step to where the stage's records are kept. Code in
 * threads writes it there itself. */
static double storing_ns(const struct costing *c, const struct hr_cost_fact *out)
{
    return copy_ns(c, out->records * out->kept * out->bytes_out);
}

/* CPU time of a step in a worker process, without what crosses the border. What was
 * measured has the way there and no storing, which is charged to the node that keeps the
 * records. A step that `follows` another one there reads its input from that core's
 * cache: its way there would have cost more than the copy. It is the same code as in a
 * thread, and was measured at another time: a difference of less than SAME_CODE to its
 * advantage is one of these times. */
static double
process_ns(const struct costing *c, const struct hr_cost_fact *fact, bool follows)
{
    double inline_ns = fact->records * fact->cpu_ns;
    double ns = fmax(fact->records * fact->process_ns - crossing_ns(c, fact), 0);

    if (fact->process_ns <= 0 || (ns < inline_ns && ns > (1 - SAME_CODE) * inline_ns))
        return inline_ns;
    return follows ? fmin(ns, inline_ns) : ns;
}

/* What a stage's steps cost its threads and its worker processes. */
struct work {
    double thread_ns, process_ns, wait_ns;
};

static void add_step(struct costing *c, uint32_t node, enum hr_plan_variant variant,
                     bool follows, struct work *work)
{
    const struct hr_cost_fact *fact = &c->facts[node];
    double ns = variant == HR_PLAN_PROCESSES ? process_ns(c, fact, follows)
                                             : fact->records * fact->cpu_ns;
    double wait_ns = fact->records * fact->wait_ns;
    double exclusive_ns;

    charge(c, node, ns);
    c->cost->nodes[node].wait_ns += wait_ns;
    if (node_at(c, node)->input_count == 0)
        c->bytes += fact->records * fact->bytes_out;
    if (variant == HR_PLAN_PROCESSES) {
        work->process_ns += ns + wait_ns;
        return;
    }
    work->thread_ns += ns;
    work->wait_ns += wait_ns;
    exclusive_ns = ns * exclusive_part(c, node, variant);
    if (c->plan->threads <= 1 || exclusive_ns == 0)
        return;
    if (exclusive_ns > c->code_most_ns) {
        c->code_most_ns = exclusive_ns;
        c->code_node = node;
    }
    c->code_ns += exclusive_ns;
}

/* ---- a stage ---- */

static bool changes(const struct hr_graph_node *n, const char *field)
{
    for (size_t i = 0; i < n->field_count; i++)
        if (n->field_access[i] != HR_ACCESS_READ && strcmp(n->field_names[i], field) == 0)
            return true;
    return false;
}

/* Whether the records that leave the stage's steps still have a field as its step number
 * `at` made it. */
static bool
is_stored(const struct costing *c, const struct hr_plan_stage *stage, size_t at)
{
    const struct hr_graph_node *n = node_at(c, stage->steps[at].node);
    const struct hr_schema *left =
        &node_at(c, stage->steps[stage->step_count - 1].node)->schema;

    for (size_t f = 0; f < n->field_count; f++) {
        const char *name = n->field_names[f];
        bool kept =
            n->field_access[f] != HR_ACCESS_READ && hr__schema_get(left, name) != NULL;

        for (size_t i = at + 1; kept && i < stage->step_count; i++)
            kept = !changes(node_at(c, stage->steps[i].node), name);
        if (kept)
            return true;
    }
    return false;
}

/* A record goes to a worker process before the step `first` and comes back after `last`.
 */
static void add_crossing(struct costing *c, uint32_t first, uint32_t last, bool stored,
                         struct work *work)
{
    double ns = crossing_ns(c, &c->facts[first]);

    if (stored)
        ns += storing_ns(c, &c->facts[last]);
    charge(c, first, ns);
    work->thread_ns += ns;
}

static void
add_steps(struct costing *c, const struct hr_plan_stage *stage, struct work *work)
{
    const struct hr_plan_step *steps = stage->steps;
    bool expands =
        stage->expand != HR_NO_NODE && stage->expand_variant == HR_PLAN_PROCESSES;
    size_t count = stage->step_count, first = 0; /* of the slice that ends before i */

    for (size_t i = 0; i < count; i++) {
        bool process = steps[i].variant == HR_PLAN_PROCESSES;

        if (!process && first < i)
            add_crossing(c, steps[first].node, steps[i - 1].node,
                         is_stored(c, stage, i - 1), work);
        first = process ? first : i + 1;
        add_step(c, steps[i].node, steps[i].variant, first < i, work);
    }
    if (first < count && !expands)
        add_crossing(c, steps[first].node, steps[count - 1].node,
                     is_stored(c, stage, count - 1), work);
    if (stage->expand != HR_NO_NODE)
        add_step(c, stage->expand, stage->expand_variant, first < count, work);
    if (expands)
        add_crossing(c, first < count ? steps[first].node : stage->expand, stage->expand,
                     true, work);
}

/* The nodes that see records in order, one thread at a time, except for what threads
 * write into a batch themselves or keep for it. */
static void
add_sequence(struct costing *c, const struct hr_plan_stage *stage, struct work *work)
{
    uint32_t node_of_most = HR_NO_NODE;
    double ns = 0, most = -1;

    for (size_t i = 0; i < stage->sequence_count; i++) {
        uint32_t node = stage->sequence[i];
        double own = c->facts[node].records * c->facts[node].cpu_ns;
        double ordered = own * (1 - c->facts[node].parallel);

        charge(c, node, own);
        work->thread_ns += own;
        ns += ordered;
        if (ordered > most) {
            most = ordered;
            node_of_most = node;
        }
    }
    if (ns > c->sequence_ns) {
        c->sequence_ns = ns;
        c->sequence_node = node_of_most;
    }
}

static void add_stage(struct costing *c, const struct hr_plan_stage *stage)
{
    struct work work = {0};
    double record_ns;

    add_steps(c, stage, &work);
    add_sequence(c, stage, &work);
    record_ns = work.thread_ns + work.wait_ns;
    c->process_ns += work.process_ns;
    c->carried_ns += stage->overlap_ns > 0 ? fmax(record_ns, work.process_ns)
                                           : record_ns + work.process_ns;
}

/* Order ops that are functions of a record's number are no steps; what they cost is
 * charged to the threads. */
static void add_orders(struct costing *c)
{
    const struct hr_graph *graph = c->plan->graph;

    for (uint32_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].op->kind == HR_OP_ORDER && c->cost->nodes[i].cpu_ns == 0) {
            double ns = c->facts[i].records * c->facts[i].cpu_ns;

            charge(c, i, ns);
            c->carried_ns += ns;
        }
}

/* ---- the whole ---- */

/* Records delivered for each record of the largest source: those that enter the last
 * batcher, or leave the output where there is none. */
static double delivered(const struct costing *c)
{
    const struct hr_graph *graph = c->plan->graph;

    for (uint32_t at = graph->output;;) {
        const struct hr_graph_node *n = &graph->nodes[at];

        if (n->op->kind == HR_OP_SEQUENCE && n->op->sequence.runs != NULL)
            return c->facts[at].records;
        if (n->op->kind != HR_OP_MAP || n->input_count != 1)
            break;
        at = n->inputs[0];
    }
    return c->facts[graph->output].records * c->facts[graph->output].kept;
}

static double per_second(double count, double ns)
{
    return ns > 0 ? count / ns * 1e9 : HUGE_VAL;
}

/* Records per second of `threads` that take `all_ns` for each, `code_ns` of it under one
 * lock, with the time that they queue for it: mean value analysis of a closed network
 * with one queue. */
static double queueing(double threads, double all_ns, double code_ns)
{
    double queued = 0, rate = 0; /* threads at the lock */

    for (double n = 1; n <= threads; n++) {
        double at_lock_ns = code_ns * (1 + queued);

        rate = n / (all_ns - code_ns + at_lock_ns);
        queued = rate * at_lock_ns;
    }
    return rate * 1e9;
}

/* Records of the source per second, as each limit allows. */
static void set_rates(const struct costing *c, double *rates)
{
    const struct hr_cost_machine *m = c->machine;
    double threads = threads_of(c->plan);

    rates[HR_COST_CORES] = per_second(c->cores, c->cpu_ns);
    rates[HR_COST_THREADS] = per_second(threads, c->carried_ns);
    rates[HR_COST_SEQUENCE] = per_second(1, c->sequence_ns);
    rates[HR_COST_CODE] =
        c->code_ns > 0 ? queueing(threads, fmax(c->carried_ns, c->code_ns), c->code_ns)
                       : HUGE_VAL;
    rates[HR_COST_DISK] = m->disk > 0 && c->bytes > 0 ? m->disk / c->bytes : HUGE_VAL;
}

static uint32_t busiest(const struct costing *c, bool waits)
{
    const struct hr_cost_node *nodes = c->cost->nodes;
    uint32_t most = 0;

    for (uint32_t i = 1; i < c->plan->graph->count; i++)
        if (nodes[i].cpu_ns + (waits ? nodes[i].wait_ns : 0) >
            nodes[most].cpu_ns + (waits ? nodes[most].wait_ns : 0))
            most = i;
    return most;
}

static uint32_t widest_source(const struct costing *c)
{
    uint32_t most = HR_NO_NODE;

    for (uint32_t i = 0; i < c->plan->graph->count; i++)
        if (node_at(c, i)->input_count == 0 &&
            (most == HR_NO_NODE || c->facts[i].records * c->facts[i].bytes_out >
                                       c->facts[most].records * c->facts[most].bytes_out))
            most = i;
    return most;
}

static void name_limit(const struct costing *c)
{
    struct hr_cost *cost = c->cost;
    static const char *const reasons[] = {
        [HR_COST_CORES] = "all cores compute; '%s' takes most of their time",
        [HR_COST_THREADS] = "all threads compute or wait; '%s' takes most of their time",
        [HR_COST_SEQUENCE] = "'%s' sees records in order, one thread at a time",
        [HR_COST_CODE] = "threads queue for the lock of user code; '%s' holds it most",
        [HR_COST_DISK] = "'%s' reads as fast as it can",
    };

    cost->limit = HR_COST_CORES;
    for (int i = 0; i < HR_COST_LIMITS; i++)
        if (cost->rates[i] < cost->rates[cost->limit])
            cost->limit = (enum hr_cost_limit)i;
    cost->rate = cost->rates[cost->limit];
    if (cost->limit == HR_COST_CODE && /* hardly any thread queues */
        cost->rate > WAITS_LITTLE * cost->rates[HR_COST_THREADS])
        cost->limit = HR_COST_THREADS;
    if (cost->limit == HR_COST_THREADS &&
        cost->rate > WAITS_LITTLE * cost->rates[HR_COST_CORES])
        cost->limit = HR_COST_CORES;
    switch (cost->limit) {
    case HR_COST_SEQUENCE:
        cost->node = c->sequence_node;
        break;
    case HR_COST_CODE:
        cost->node = c->code_node;
        break;
    case HR_COST_DISK:
        cost->node = widest_source(c);
        break;
    default:
        cost->node = busiest(c, cost->limit == HR_COST_THREADS);
    }
    snprintf(cost->reason, sizeof cost->reason, reasons[cost->limit],
             node_at(c, cost->node)->name);
}

/* From times per record of the source to times per record that is delivered. */
static void scale(const struct costing *c, double out)
{
    struct hr_cost *cost = c->cost;

    for (uint32_t i = 0; i < c->plan->graph->count; i++) {
        cost->nodes[i].share = c->cpu_ns > 0 ? cost->nodes[i].cpu_ns / c->cpu_ns : 0;
        cost->nodes[i].cpu_ns /= out;
        cost->nodes[i].wait_ns /= out;
    }
    for (int i = 0; i < HR_COST_LIMITS; i++)
        cost->rates[i] *= out;
    cost->rate *= out;
    cost->cpu_ns = c->cpu_ns / out;
}

static void set_totals(const struct costing *c)
{
    const struct hr_cost_machine *m = c->machine;
    struct hr_cost *cost = c->cost;

    cost->busy = cost->rate < HUGE_VAL ? cost->rate * cost->cpu_ns * 1e-9 : 0;
    cost->memory = c->plan->memory.total;
    cost->fits = m->memory == 0 || cost->memory <= m->memory;
    cost->price = m->price > 0 && cost->rate > 0 ? m->price / 3600 / cost->rate * 1e6 : 0;
}

enum hr_err hr__cost_plan(const struct hr_plan *plan, const struct hr_cost_fact *facts,
                          const struct hr_cost_machine *machine, struct hr_cost *ret_cost,
                          struct hr_error *reterr)
{
    struct costing c = {
        .plan = plan, .facts = facts, .machine = machine, .cost = ret_cost};
    struct hr_cost_fact *crowded;
    double out;

    assert(machine->cores >= 1 && machine->crowd >= 1);
    *ret_cost = (struct hr_cost){.node = HR_NO_NODE};
    out = delivered(&c);
    if (!(out > 0))
        return hr__fail(reterr, HR_ERR_STATE,
                        "no record reached the output while the profile was measured");
    c.cores = used_cores(plan, machine);
    c.crowd = crowding(machine, c.cores, machine->crowd);
    crowded = crowded_facts(&c);
    ret_cost->nodes = hr__calloc(plan->graph->count, sizeof *ret_cost->nodes);
    if (crowded == NULL || ret_cost->nodes == NULL) {
        hr__free(crowded);
        hr__cost_finish(ret_cost);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    c.facts = crowded;
    for (size_t i = 0; i < plan->stage_count; i++)
        add_stage(&c, &plan->stages[i]);
    add_orders(&c);
    set_rates(&c, ret_cost->rates);
    name_limit(&c);
    scale(&c, out);
    set_totals(&c);
    hr__free(crowded);
    return HR_OK;
}

void hr__cost_finish(struct hr_cost *cost)
{
    hr__free(cost->nodes);
    *cost = (struct hr_cost){0};
}
