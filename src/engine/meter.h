/*
 * engine/meter.h - where the time of a run goes.
 *
 * A thread of the engine always has its time in one bucket: a node (work that is not one
 * record's, such as making a batch), the records of a stage, asleep, or outside (the
 * consumer's own code). Changing the bucket reads the TSC (8 ns). The thread's CPU clock
 * (200 ns, more after a pause) is read when 100 us have passed since it was read last;
 * the CPU time of that interval is divided over its buckets in proportion to wall time.
 * So the buckets of a thread sum to its CPU time by construction, and no time falls
 * between two buckets. A consumer that takes batches which are ready spends a microsecond
 * here, and its clock is read every 10 ms.
 *
 * A meter belongs to one thread, which alone writes it. Others read the copy that
 * hr__meter_show makes under the engine's lock.
 */
#ifndef HR_ENGINE_METER_H
#define HR_ENGINE_METER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fit.h"
#include "core/rng.h"
#include "op/thread.h"

struct hr_runner;

/* Wait: wall time without CPU time: for a file, a worker process, a lock, a core. */
struct hr_time {
    double cpu_ns, wait_ns;
};

/* The meter of a node. */
struct hr_node_meter {
    /* Counted. Of nodes in a program (program.h), records_in follows from how many began
     * the stage and how many ended in it (`ended`: failed, dropped, never run). */
    uint64_t records_in, records_out, errors, dropped, ended;
    uint64_t skipped;             /* records of other inputs of a merge */
    uint64_t bytes_in, bytes_out; /* not part of any sample */
    struct hr_time own;           /* not spent on a record */
    struct hr_time worker;        /* in worker processes */

    /* Sums over sampled records, each times its weight. */
    struct hr_fit cost; /* y: CPU ns; x: bytes in, or bytes out if there are none */
    double share;       /* CPU ns, part of the stage's bucket */
    double wait_ns;
    double bytes[HR_BYTES_KINDS];
};

struct hr_stage_meter {
    struct hr_time records;
    uint64_t begun;
};

/* Which records of a stage are timed: each with the chance `rate`, see sample.h. */
struct hr_sampler {
    uint64_t left; /* records up to and including the next one */
    double rate;
    bool clock; /* timed with the CPU clock */
    struct hr_rng rng;
};

struct hr_meter {
    size_t node_count, stage_count;
    unsigned bucket;     /* the current one */
    uint64_t since;      /* ticks when it became current */
    uint64_t read_at;    /* ticks when the CPU clock was read last */
    uint64_t entered_at; /* ticks when the consumer's own code ended last */
    uint64_t period;     /* ticks between two readings, at least */
    uint64_t cpu_ns;     /* its last reading */
    pthread_t thread;    /* whose clock is read; the consumer may change threads */
    uint64_t *pending;   /* per bucket: ticks since that reading */
    struct hr_node_meter *nodes;
    struct hr_stage_meter *stages;
    struct hr_sampler *samplers; /* per stage */
    /* The nodes that have changed since they were shown: [changed, changed_end). */
    size_t changed, changed_end;

    /* The copies that others read; guarded by the engine's lock. */
    struct hr_node_meter *shown_nodes;
    struct hr_stage_meter *shown_stages;
};

HR_CHECK enum hr_err
hr__meter_init(struct hr_meter *meter, size_t node_count, size_t stage_count);
void hr__meter_finish(struct hr_meter *meter);

/* The buckets that follow those of the nodes, which have the nodes' numbers. */
static inline unsigned hr__meter_records(const struct hr_meter *meter, size_t stage)
{
    return (unsigned)(meter->node_count + stage);
}
static inline unsigned hr__meter_asleep(const struct hr_meter *meter)
{
    return (unsigned)(meter->node_count + meter->stage_count);
}
static inline unsigned hr__meter_outside(const struct hr_meter *meter)
{
    return (unsigned)(meter->node_count + meter->stage_count + 1);
}

/* Charges the time from now on to `bucket` and returns the previous one. By the meter's
 * own thread. */
unsigned hr__meter_switch(struct hr_meter *meter, unsigned bucket);

/* The same from the consumer's own code to a node, and back to it. */
void hr__meter_enter(struct hr_meter *meter, uint32_t node);
void hr__meter_leave(struct hr_meter *meter);

/* Makes the calling thread the meter's owner. */
void hr__meter_adopt(struct hr_meter *meter);

/* Reads the CPU clock now unless it was read less than `least_ns` ago. */
void hr__meter_settle(struct hr_meter *meter, uint64_t least_ns);

/* Notes that the node has changed. */
static inline void hr__meter_changed(struct hr_meter *meter, size_t node)
{
    bool none = meter->changed == meter->changed_end;

    meter->changed = none || node < meter->changed ? node : meter->changed;
    meter->changed_end =
        none || node >= meter->changed_end ? node + 1 : meter->changed_end;
}

/* Copies what has changed for others to read. Under the engine's lock. */
void hr__meter_show(struct hr_meter *meter);

/*
 * For work that does not belong to one record (sequencers, batches): charges the time
 * from begin to end to the node, except for pairs nested in between. About 20 ns
 * together: once per batch or block, not per record. Also under the lock.
 *
 *     unsigned was = hr__meter_begin(stage->sequencer, node);
 *     ...
 *     hr__meter_end(stage->sequencer, was);
 */
unsigned hr__meter_begin(struct hr_runner *runner, uint32_t node);
void hr__meter_end(struct hr_runner *runner, unsigned was);
/* The node's counters in this thread's meter. */
struct hr_node_meter *hr__meter_node(struct hr_runner *runner, uint32_t node);

/* Wall time without CPU time, in ns, since the CPU clock was last read. */
double hr__meter_lost(const struct hr_meter *meter);

#endif
