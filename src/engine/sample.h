/*
 * engine/sample.h - records that are timed, chosen at random.
 *
 * Each record of a stage is timed with a probability that keeps the cost of timing at 0.4
 * percent of the records' own; slow records are all timed. The choice is random because
 * every n-th record may always be the same part of a pattern. A timed record is weighted
 * by the inverse of the probability, so sums stay right when that changes. The sums only
 * determine how the CPU time of the stage's bucket (meter.h) is divided over its nodes;
 * their total does not matter.
 *
 * If records take 20 us or more, the thread's CPU clock is read at each change of node;
 * otherwise the TSC. A record that looks slow by the TSC may have been interrupted: then
 * the time that the thread was off its core is subtracted from its slowest node.
 *
 * Time in which a hypervisor ran others counts as the thread's in both clocks. 10 ms of
 * it in a record of 20 us, which stands for hundreds, would make its node several times
 * as dear, and a profile uncertain for minutes. So a record that takes some ms, and
 * hundreds of times as long as usual, is not counted where stolen time explains it. All
 * that is so explained is no more than was stolen since the engine opened.
 */
#ifndef HR_ENGINE_SAMPLE_H
#define HR_ENGINE_SAMPLE_H

#include <stdatomic.h>

#include "engine/meter.h"

struct hr_stage;

/* Stolen time (hr__cpu_steal_ns): when the engine opened, and what it has explained. */
struct hr_stolen {
    uint64_t before_ns;
    atomic_ullong explained_ns;
};

/* Whether what was stolen up to `steal_ns` may explain `ns`, beside what it has explained
 * before. By any thread. */
bool hr__stolen_explains(struct hr_stolen *stolen, uint64_t steal_ns, uint64_t ns);

/* Largest number of timed records in a pass. */
#define HR_SAMPLES_MAX 16

struct hr_sample {
    struct hr_charge *charges; /* per node of the graph */
    double weight;             /* the inverse of the probability */
    double records;            /* that were timed together; usually 1 */
    bool clock;
    uint32_t row;
};

/* Sets the probability for the stage's next `count` records, which take `record_ns` each
 * (0: unknown) and pass `nodes` nodes. */
void hr__sampler_aim(struct hr_runner *runner, size_t stage, size_t nodes, uint32_t count,
                     double record_ns);

/* Whether the next record is timed. If so, hr__sample_init comes next. */
static inline bool hr__sampler_takes(struct hr_sampler *sampler)
{
    return --sampler->left == 0;
}

void hr__sample_init(struct hr_runner *runner, const struct hr_stage *stage,
                     struct hr_sample *sample);
/* Times a part of the record, starting in `node`, up to hr__sample_pause. */
void hr__sample_resume(struct hr_runner *runner, const struct hr_sample *sample,
                       uint32_t node);
void hr__sample_pause(struct hr_runner *runner);
/* The record is done: adds its cost to the meter, unless stolen time explains it. */
void hr__sample_finish(struct hr_runner *runner, const struct hr_stage *stage,
                       const struct hr_sample *sample);

#endif
