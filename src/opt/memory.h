/*
 * opt/memory.h - divides one budget in bytes among everything that holds records.
 *
 * Pure functions. The engine starts with sizes estimated from schemas. When the first
 * records have run, it divides again by measured sizes, and applies the new limits to
 * blocks, queues and batches that it opens from then on.
 */
#ifndef HR_OPT_MEMORY_H
#define HR_OPT_MEMORY_H

#include "graph/plan.h"
#include "opt/extent.h"

/*
 * Sizes of the records of a stage in bytes, each the largest seen or expected, because
 * limits must hold for any record. Values that share a buffer count once.
 */
struct hr_stage_sizes {
    uint64_t records; /* measured; 0: the other members are estimates */
    bool known;       /* estimated from records that were looked at, not from schemas */
    uint64_t result;  /* a record after the steps, or all of its children */
    uint64_t item;    /* one child if the stage expands, else the same as result */
    uint64_t scratch; /* of a thread while it runs a record, besides the result */
    uint64_t batch;   /* a finished batch; 0 if the stage makes none */
    uint64_t held; /* records that the stage's sequence holds, those of runs left out */
};

struct hr_sizes {
    struct hr_stage_sizes stages[HR_PLAN_STAGES_MAX];
};

/* Product and sum, at most HR_PLAN_BYTES_MAX: users can ask for windows and batches that
 * fit no machine. */
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

/* Sizes from schemas, and from records where `extents` (one per node, or NULL) knows
 * them. Else an unknown dimension of an image counts as 512, any other field of unknown
 * size as 4 KiB. */
void hr__sizes_estimate(const struct hr_plan *plan, const struct hr_extent *extents,
                        struct hr_sizes *ret_sizes);

/*
 * Divides plan->memory.budget (0: uses the defaults): sets plan->memory and the memory of
 * all stages, and lowers plan->threads if the budget requires it. `read_ahead` is the
 * read-ahead in bytes, 0: chosen. HR_ERR_LIMIT if the budget is too small even with one
 * thread and one record per block and queue; the message names the least budget that
 * works, which is also in plan->memory.least.
 *
 * To revise the plan of a run, call it again with measured sizes and `running`: then
 * counts of records, blocks and threads never grow, because arrays of these lengths
 * exist. Limits in bytes may grow or shrink; a queue that holds more than a new limit
 * drains first. Nothing is written but limits, threads, `help_ns` and their reasons: the
 * rest of the plan, plan->memory.budget included, may be read by other threads meanwhile.
 */
HR_CHECK enum hr_err
hr__plan_divide(struct hr_plan *plan, const struct hr_sizes *sizes, uint64_t read_ahead,
                bool running, struct hr_error *reterr);

/* The part of the budget for buffers of records, pooled ones included; not 0. */
uint64_t hr__plan_record_bytes(const struct hr_plan *plan);

/* What a node keeps between records, and the sum over all; zeros without a budget. */
struct hr_op_kept hr__plan_kept(const struct hr_plan *plan, uint32_t node);
struct hr_op_kept hr__plan_kept_all(const struct hr_plan *plan);

/* What the cache of a node may keep in a run of this plan; UINT64_MAX: it has no budget.
 * With what the nodes keep as it was when the budget was divided. */
uint64_t hr__plan_cache_bytes(const struct hr_plan *plan, uint32_t node);
/* What nodes keep at least, for one thread: more than it was when they have seen larger
 * data. */
uint64_t hr__plan_kept_least(const struct hr_plan *plan);

/* What the structures of a record that waits take besides its bytes. */
uint64_t hr__values_bytes(size_t fields);

/* Sets plan->memory.total to the sum of all parts. */
void hr__plan_sum(struct hr_plan *plan);

#endif
