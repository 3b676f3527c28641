/*
 * engine/sample.h - records that are timed, chosen at random.
 *
 * A stage's records are timed with a chance that keeps the cost of timing at 0.4 percent
 * of theirs: all of them where they take long. Which ones is drawn, since every n-th
 * could always be the same part of a pattern. A timed record counts as many times as the
 * chance is small, so that sums stay right when the chance changes. The sums say how the
 * CPU time of the stage's bucket (meter.h) divides over its nodes; what they sum to by
 * themselves does not matter.
 *
 * Where records take 20 us and more, the thread's CPU clock is read at each change of
 * node. Below that the TSC must do. A record that took long by it may have been
 * interrupted: then the time that the thread was off its core is taken off the node
 * that took longest.
 */
#ifndef HR_ENGINE_SAMPLE_H
#define HR_ENGINE_SAMPLE_H

#include "engine/meter.h"

struct hr_stage;

/* Timed records of a pass at most. */
#define HR_SAMPLES_MAX 16

struct hr_sample {
    struct hr_charge *charges; /* per node of the graph */
    double weight;             /* records that it stands for */
    bool clock;
    uint32_t row;
};

/* The chance of the stage's records from here on; `count` of them come, of `record_ns`
 * each (0: unknown) and on their way through `nodes` nodes. */
void hr__sampler_aim(struct hr_runner *runner, size_t stage, size_t nodes, uint32_t count,
                     double record_ns);

/* Whether the next record is timed. If so, hr__sample_init comes next. */
static inline bool hr__sampler_takes(struct hr_sampler *sampler)
{
    return --sampler->left == 0;
}

void hr__sample_init(struct hr_runner *runner, const struct hr_stage *stage,
                     struct hr_sample *sample);
/* A part of the record, beginning in `node`, up to hr__sample_pause. */
void hr__sample_resume(struct hr_runner *runner, const struct hr_sample *sample,
                       uint32_t node);
void hr__sample_pause(struct hr_runner *runner);
/* The record is through: adds what it has cost to the meter. */
void hr__sample_finish(struct hr_runner *runner, const struct hr_stage *stage,
                       const struct hr_sample *sample);

#endif
