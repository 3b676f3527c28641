/*
 * engine/meter.c - CPU time and wall time, divided over buckets. See meter.h.
 */
#include "engine/meter.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "engine/engine.h"

/* One reading costs 0.2 percent of this. */
#define PERIOD_NS 100000.0
/* Between two readings, at least, while the consumer takes batches that are ready; and
 * only once that has taken a period in all. */
#define IDLE_PERIODS 100

static size_t bucket_count(const struct hr_meter *meter)
{
    return meter->node_count + meter->stage_count + 2;
}

enum hr_err hr__meter_init(struct hr_meter *meter, size_t node_count, size_t stage_count)
{
    meter->node_count = node_count;
    meter->stage_count = stage_count;
    meter->bucket = hr__meter_outside(meter);
    meter->period = (uint64_t)(PERIOD_NS / hr__tick_ns());
    meter->pending = hr__calloc(bucket_count(meter), sizeof *meter->pending);
    meter->nodes = hr__calloc(node_count + 1, sizeof *meter->nodes);
    meter->stages = hr__calloc(stage_count + 1, sizeof *meter->stages);
    meter->samplers = hr__calloc(stage_count + 1, sizeof *meter->samplers);
    meter->shown_nodes = hr__calloc(node_count + 1, sizeof *meter->shown_nodes);
    meter->shown_stages = hr__calloc(stage_count + 1, sizeof *meter->shown_stages);
    return meter->pending != NULL && meter->nodes != NULL && meter->stages != NULL &&
                   meter->samplers != NULL && meter->shown_nodes != NULL &&
                   meter->shown_stages != NULL
               ? HR_OK
               : HR_ERR_MEMORY;
}

void hr__meter_finish(struct hr_meter *meter)
{
    hr__free(meter->pending);
    hr__free(meter->nodes);
    hr__free(meter->stages);
    hr__free(meter->samplers);
    hr__free(meter->shown_nodes);
    hr__free(meter->shown_stages);
    memset(meter, 0, sizeof *meter);
}

static struct hr_time *time_of(struct hr_meter *meter, unsigned bucket)
{
    assert(bucket < hr__meter_asleep(meter));
    return bucket < meter->node_count
               ? &meter->nodes[bucket].own
               : &meter->stages[bucket - meter->node_count].records;
}

static double inside_ns(const struct hr_meter *meter)
{
    uint64_t ticks = 0;

    for (unsigned i = 0; i < hr__meter_asleep(meter); i++)
        ticks += meter->pending[i];
    return hr__ticks_to_ns(ticks);
}

/* CPU time per wall time of the pending buckets. A shortfall is attributed to the
 * consumer's own code as far as possible, since the engine's own sleep is not among the
 * buckets; an excess is the cost of the engine's going to sleep. */
static double find_ratio(const struct hr_meter *meter, double inside, double cpu_ns)
{
    double outside = hr__ticks_to_ns(meter->pending[hr__meter_outside(meter)]);
    double lost = inside + outside - cpu_ns;

    if (inside <= 0)
        return 1;
    if (lost < 0)
        return (cpu_ns - outside) / inside;
    return lost > outside ? 1 - (lost - outside) / inside : 1;
}

static void divide(struct hr_meter *meter, double ratio, uint64_t cpu_ns)
{
    for (unsigned i = 0; i < hr__meter_asleep(meter); i++) {
        double ns;

        if (meter->pending[i] == 0)
            continue;
        ns = hr__ticks_to_ns(meter->pending[i]);
        time_of(meter, i)->cpu_ns += ns * ratio;
        time_of(meter, i)->wait_ns += ratio < 1 ? ns * (1 - ratio) : 0;
        if (i < meter->node_count)
            hr__meter_changed(meter, i);
    }
    memset(meter->pending, 0, bucket_count(meter) * sizeof *meter->pending);
    meter->cpu_ns = cpu_ns;
    meter->read_at = meter->since;
}

static void read_clock(struct hr_meter *meter)
{
    uint64_t cpu_ns = hr__cpu_thread_ns();

    divide(meter, find_ratio(meter, inside_ns(meter), (double)(cpu_ns - meter->cpu_ns)),
           cpu_ns);
}

static unsigned go_to(struct hr_meter *meter, unsigned bucket)
{
    unsigned was = meter->bucket;
    uint64_t now = hr__ticks();

    assert(bucket < bucket_count(meter));
    assert(pthread_equal(meter->thread, pthread_self()));
    meter->pending[was] += now - meter->since;
    meter->since = now;
    meter->bucket = bucket;
    return was;
}

unsigned hr__meter_switch(struct hr_meter *meter, unsigned bucket)
{
    unsigned was = go_to(meter, bucket);

    if (meter->since - meter->read_at > meter->period)
        read_clock(meter);
    return was;
}

void hr__meter_enter(struct hr_meter *meter, uint32_t node)
{
    unsigned was = go_to(meter, node);

    assert(was == hr__meter_outside(meter) && node < meter->node_count);
    (void)was;
    meter->entered_at = meter->since;
}

void hr__meter_leave(struct hr_meter *meter)
{
    uint64_t from;

    go_to(meter, hr__meter_outside(meter));
    from = meter->read_at > meter->entered_at ? meter->read_at : meter->entered_at;
    if (meter->since - from > meter->period ||
        (meter->since - meter->read_at > IDLE_PERIODS * meter->period &&
         inside_ns(meter) > PERIOD_NS))
        read_clock(meter);
}

void hr__meter_adopt(struct hr_meter *meter)
{
    if (pthread_equal(meter->thread, pthread_self()))
        return;
    meter->thread = pthread_self();
    meter->since = hr__ticks();
    divide(meter, 1, hr__cpu_thread_ns()); /* the other thread's clock is out of reach */
}

void hr__meter_settle(struct hr_meter *meter, uint64_t least_ns)
{
    hr__meter_switch(meter, meter->bucket);
    if (hr__ticks_to_ns(meter->since - meter->read_at) >= (double)least_ns)
        read_clock(meter);
}

double hr__meter_lost(const struct hr_meter *meter)
{
    double wall = inside_ns(meter) + hr__ticks_to_ns(hr__ticks() - meter->since) +
                  hr__ticks_to_ns(meter->pending[hr__meter_outside(meter)]);
    double cpu_ns = (double)(hr__cpu_thread_ns() - meter->cpu_ns);

    assert(meter->bucket < hr__meter_asleep(meter));
    return wall > cpu_ns ? wall - cpu_ns : 0;
}

void hr__meter_show(struct hr_meter *meter)
{
    memcpy(meter->shown_stages, meter->stages,
           meter->stage_count * sizeof *meter->shown_stages);
    memcpy(&meter->shown_nodes[meter->changed], &meter->nodes[meter->changed],
           (meter->changed_end - meter->changed) * sizeof *meter->shown_nodes);
    meter->changed = meter->changed_end = 0;
}

unsigned hr__meter_begin(struct hr_runner *runner, uint32_t node)
{
    assert(node < runner->meter.node_count);
    return hr__meter_switch(&runner->meter, node);
}

void hr__meter_end(struct hr_runner *runner, unsigned was)
{
    hr__meter_switch(&runner->meter, was);
}

struct hr_node_meter *hr__meter_node(struct hr_runner *runner, uint32_t node)
{
    assert(node < runner->meter.node_count);
    hr__meter_changed(&runner->meter, node);
    return &runner->meter.nodes[node];
}
