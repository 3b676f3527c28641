/*
 * opt/memory.h - dividing one budget in bytes among everything that holds records.
 *
 * Pure functions. The engine opens with sizes guessed from schemas; once the first
 * records have run it measures, divides again, and applies the new limits to what it
 * opens from then on.
 */
#ifndef HR_OPT_MEMORY_H
#define HR_OPT_MEMORY_H

#include "graph/plan.h"

/*
 * Bytes of records where a stage lets them rest. Each is the largest seen or expected: a
 * limit that holds for the mean only does not hold. Only resting bytes count: a value
 * that shares another one's buffer counts once.
 */
struct hr_stage_sizes {
    uint64_t records; /* measured; 0: the other members are estimates */
    uint64_t result;  /* what the steps leave of one record: a row, or all its children */
    uint64_t item;    /* one row: a child where the stage expands, else as result */
    uint64_t scratch; /* what a thread needs while one record runs, beyond its result */
    uint64_t batch;   /* one finished batch; 0 where the stage makes none */
};

struct hr_sizes {
    struct hr_stage_sizes stages[HR_PLAN_STAGES_MAX];
};

/* At most HR_PLAN_BYTES_MAX: windows and batches can be asked for that no machine holds.
 */
static inline uint64_t hr__bytes_times(uint64_t count, uint64_t each)
{
    uint64_t bytes;

    return __builtin_mul_overflow(count, each, &bytes) || bytes > HR_PLAN_BYTES_MAX
               ? HR_PLAN_BYTES_MAX
               : bytes;
}

static inline uint64_t hr__bytes_plus(uint64_t a, uint64_t b)
{
    return a < HR_PLAN_BYTES_MAX - b ? a + b : HR_PLAN_BYTES_MAX;
}

/* Sizes by schemas alone. Unknown dimensions count as those of a middling photo in fields
 * that are images, as 4 KiB in others. */
void hr__sizes_estimate(const struct hr_plan *plan, struct hr_sizes *ret_sizes);

/* `sizes` with what was measured in place of estimates (records > 0), each at least 1. */
void hr__sizes_merge(struct hr_sizes *sizes, const struct hr_sizes *measured);

/*
 * Sets `memory` of the plan and of its stages, and `parallelism`, for the budget
 * plan->memory.budget (0: defaults) and `read_ahead` bytes (0: chosen). Fails with
 * HR_ERR_LIMIT when the budget is too small even for one thread and one record in each
 * place: the message names the least that would do (also in plan->memory.least, on
 * failure too).
 *
 * To revise a plan that runs, call it again with measured sizes: numbers of records and
 * blocks never grow beyond what they are in `plan` when `running`, as arrays of these
 * lengths exist; bytes may grow and shrink. Places that hold more than a new limit drain
 * first.
 */
HR_CHECK enum hr_err
hr__plan_divide(struct hr_plan *plan, const struct hr_sizes *sizes, uint64_t read_ahead,
                bool running, struct hr_error *reterr);

/* Sets plan->memory.total from the bytes that the plan and its stages have. */
void hr__plan_sum(struct hr_plan *plan);

#endif
