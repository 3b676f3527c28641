/*
 * engine/sample.c - chooses records to time and adds up their costs. See sample.h.
 */
#include "engine/sample.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "engine/engine.h"

/* Fraction of all records' time that timing may cost. */
#define BUDGET 0.004
/* What timing a record costs: by itself and per node, by the TSC and by the CPU clock. */
#define SAMPLE_NS 60.0
#define TICKS_NODE_NS 25.0
#define CLOCK_NODE_NS 260.0
/* From this mean on the CPU clock is read; below it, a record of this length is checked.
 */
#define CLOCK_NS 20000.0
/* A record is left out for stolen time only if a node took at least STOLEN_NS and
 * STOLEN_MEANS times its mean over STOLEN_LEAST or more records. */
#define STOLEN_NS 3e6
#define STOLEN_MEANS 300
#define STOLEN_LEAST 8

/* Draws the distance to the next timed record, if each is timed with the same
 * probability. */
static uint64_t draw_gap(struct hr_sampler *sampler)
{
    double u;

    if (sampler->rate >= 1)
        return 1;
    u = 1 - hr__rng_double(&sampler->rng);
    return 1 + (uint64_t)(log(u) / log1p(-sampler->rate));
}

static double rate_for(size_t nodes, uint32_t count, double record_ns, bool clock)
{
    double each = SAMPLE_NS + (double)nodes * (clock ? CLOCK_NODE_NS : TICKS_NODE_NS);
    double rate = record_ns > 0 ? BUDGET * record_ns / each : 1;

    /* Aim at half of a pass's room for samples, since their number varies. */
    if (count > HR_SAMPLES_MAX && rate * count > HR_SAMPLES_MAX / 2)
        rate = HR_SAMPLES_MAX / 2 / (double)count;
    return rate < 1 ? rate : 1;
}

void hr__sampler_aim(struct hr_runner *runner, size_t stage, size_t nodes, uint32_t count,
                     double record_ns)
{
    struct hr_sampler *sampler = &runner->meter.samplers[stage];
    bool clock = record_ns == 0 || record_ns > CLOCK_NS;
    double rate = runner->engine->options.trace
                      ? 1 /* spans of all nodes are wanted */
                      : rate_for(nodes, count, record_ns, clock);

    if (sampler->rate == 0)
        hr__rng_init(&sampler->rng, (uint64_t)runner->number, 0, stage);
    else if (sampler->clock == clock && rate < sampler->rate * 1.25 &&
             rate > sampler->rate * 0.8)
        return;
    sampler->rate = rate;
    sampler->clock = clock;
    sampler->left = draw_gap(sampler);
}

void hr__sample_init(struct hr_runner *runner, const struct hr_stage *stage,
                     struct hr_sample *sample)
{
    struct hr_sampler *sampler = &runner->meter.samplers[stage->number];
    const struct hr_program *p = &stage->program;

    assert(sampler->left == 0 && sampler->rate > 0);
    for (size_t i = 0; i < p->node_count; i++)
        memset(&sample->charges[p->nodes[i]], 0, sizeof *sample->charges);
    sample->weight = 1 / sampler->rate;
    sample->records = 1;
    sample->clock = sampler->clock;
    sampler->left = draw_gap(sampler);
}

void hr__sample_resume(struct hr_runner *runner, const struct hr_sample *sample,
                       uint32_t node)
{
    hr__thread_timing_begin(&runner->thread, sample->charges, node, sample->clock);
}

void hr__sample_pause(struct hr_runner *runner)
{
    hr__thread_timing_end(&runner->thread);
}

static double
cpu_of(const struct hr_sample *sample, const struct hr_charge *charge, double tick_ns)
{
    return sample->clock ? (double)charge->cpu_ns : (double)charge->ticks * tick_ns;
}

/* The node of the record that took longest, and by how much, and all of them. */
struct longest {
    uint32_t node;
    double ns, all_ns;
};

static struct longest
find_longest(const struct hr_stage *stage, const struct hr_sample *sample, double tick_ns)
{
    const struct hr_program *p = &stage->program;
    struct longest longest = {.node = p->nodes[0]};

    for (size_t i = 0; i < p->node_count; i++) {
        double ns = cpu_of(sample, &sample->charges[p->nodes[i]], tick_ns);

        longest.all_ns += ns;
        if (ns <= longest.ns)
            continue;
        longest.ns = ns;
        longest.node = p->nodes[i];
    }
    return longest;
}

/* The part of a long record's wall time that was spent off the core; subtracted from its
 * longest node. */
static double find_lost(const struct hr_runner *runner, const struct hr_sample *sample,
                        const struct longest *longest)
{
    if (sample->clock || longest->all_ns < CLOCK_NS)
        return 0;
    return fmin(hr__meter_lost(&runner->meter), longest->ns);
}

bool hr__stolen_explains(struct hr_stolen *stolen, uint64_t steal_ns, uint64_t ns)
{
    unsigned long long explained = atomic_load(&stolen->explained_ns);
    uint64_t all = steal_ns > stolen->before_ns ? steal_ns - stolen->before_ns : 0;

    do {
        /* What is known of it lags by up to a step. */
        if (explained >= all || explained + ns > all + HR_CPU_STEAL_STEP_NS)
            return false;
    } while (
        !atomic_compare_exchange_weak(&stolen->explained_ns, &explained, explained + ns));
    return true;
}

static bool was_stolen(struct hr_runner *runner, const struct hr_sample *sample,
                       const struct longest *longest, double lost)
{
    const struct hr_fit *cost = &runner->meter.nodes[longest->node].cost;
    double ns = longest->ns - lost;

    return ns > STOLEN_NS && ns > STOLEN_MEANS * hr__fit_mean(cost) * sample->records &&
           hr__fit_count(cost) >= STOLEN_LEAST &&
           hr__stolen_explains(&runner->engine->stolen, hr__cpu_steal_ns(), (uint64_t)ns);
}

static void
add(struct hr_node_meter *meter, const struct hr_charge *charge,
    const struct hr_sample *sample, double cpu_ns, double wait_ns, bool shares)
{
    double weight = sample->weight, records = sample->records;
    uint64_t in = charge->bytes[HR_BYTES_READ] + charge->bytes[HR_BYTES_TAKEN] +
                  charge->bytes[HR_BYTES_BEFORE];
    uint64_t out = charge->bytes[HR_BYTES_AFTER] + charge->bytes[HR_BYTES_WRITTEN];

    hr__fit_add(&meter->cost, weight * records, (double)(in > 0 ? in : out) / records,
                cpu_ns / records);
    meter->share += shares ? weight * cpu_ns : 0;
    meter->wait_ns += weight * wait_ns;
    for (size_t i = 0; i < HR_BYTES_KINDS; i++)
        meter->bytes[i] += weight * (double)charge->bytes[i];
}

void hr__sample_finish(struct hr_runner *runner, const struct hr_stage *stage,
                       const struct hr_sample *sample)
{
    const struct hr_program *p = &stage->program;
    const struct hr_graph_node *nodes = runner->engine->graph->nodes;
    double tick_ns = hr__tick_ns(), lost;
    struct longest longest = find_longest(stage, sample, tick_ns);

    assert(runner->thread.charges == NULL);
    lost = find_lost(runner, sample, &longest);
    if (was_stolen(runner, sample, &longest, lost))
        return;
    for (size_t i = 0; i < p->node_count; i++) {
        uint32_t node = p->nodes[i];
        const struct hr_charge *charge = &sample->charges[node];
        double wall = (double)charge->ticks * tick_ns;
        double cpu = cpu_of(sample, charge, tick_ns) - (node == longest.node ? lost : 0);

        if (!charge->ran && charge->ticks == 0)
            continue;
        /* User code has buckets of its own. */
        add(&runner->meter.nodes[node], charge, sample, cpu, wall > cpu ? wall - cpu : 0,
            nodes[node].op->code == NULL);
        hr__meter_changed(&runner->meter, node);
    }
}
