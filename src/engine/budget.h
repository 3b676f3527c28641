/*
 * engine/budget.h - keeping a run within the memory that its plan divides.
 *
 * Threads claim records only while the results of the stage fit its bytes, and a
 * sequencer passes records on only while the next stage's inputs fit; a stage that holds
 * nothing always takes one. Sizes start as estimates from schemas. When records turn out
 * larger, the budget is divided again; if that fails, the run ends with an error that
 * names the least budget that works. Without a budget only the number of batches follows
 * from their size.
 */
#ifndef HR_ENGINE_BUDGET_H
#define HR_ENGINE_BUDGET_H

#include "engine/stage.h"

/* When the engine opens. */
void hr__budget_init(struct hr_engine *engine);
/* Sets what the caches of nodes may keep: as the plan says, or as little as works. */
void hr__budget_limit_caches(const struct hr_plan *plan, bool least);

/* Returns how many of `count` records a thread may claim now. Under the lock. */
uint32_t hr__budget_admit(const struct hr_stage *stage, uint32_t count);
/* Bytes that the results of that many records may take. Under the lock. */
uint64_t hr__budget_room(const struct hr_stage *stage, uint32_t count);
/* How many records of a claim a thread may run before it looks whether their results take
 * more than that. The second adds those of records [from, until) to *bytes, and returns
 * whether they do. Without the lock. */
uint32_t hr__budget_step(const struct hr_claim *claim);
bool hr__budget_is_used(const struct hr_claim *claim, uint32_t from, uint32_t until,
                        uint64_t *bytes);
/* Measures what the claim's records hold. By the thread that ran the claim, without the
 * lock. */
void hr__budget_measure(struct hr_claim *claim, uint64_t scratch);
/* Adds that to the stage's sums; may divide the budget again. Under the lock. */
void hr__budget_complete(struct hr_stage *stage, const struct hr_claim *claim);
/* A batch or record of this size leaves the stage. Under the lock. */
void hr__budget_output(struct hr_stage *stage, uint64_t bytes);
/* Whether the stage has room for another input. Any thread. */
bool hr__budget_has_room(const struct hr_stage *stage);

#endif
