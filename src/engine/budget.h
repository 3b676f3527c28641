/*
 * engine/budget.h - keeping a run within the memory that its plan divides.
 *
 * Threads take records only as far as a stage's results have room in its bytes, and a
 * sequencer passes on only as far as the next stage's inputs have; an empty place always
 * takes one. Sizes begin as estimates from schemas; when records turn out larger, the
 * plan is divided again, and the run ends with the least that would do where that fails.
 * Nothing of this is done without a budget.
 */
#ifndef HR_ENGINE_BUDGET_H
#define HR_ENGINE_BUDGET_H

#include "engine/stage.h"

/* When the engine opens. */
void hr__budget_init(struct hr_engine *engine);

/* Under the lock: how many of `count` records a thread may take now. */
uint32_t hr__budget_admit(const struct hr_stage *stage, uint32_t count);
/* Outside of the lock, by the thread that has run the claim: what its records hold. */
void hr__budget_measure(struct hr_claim *claim, uint64_t scratch);
/* Under the lock: the same is counted; the plan may be divided again. */
void hr__budget_complete(struct hr_stage *stage, const struct hr_claim *claim);
/* Under the lock: a batch or record of this size leaves the stage. */
void hr__budget_output(struct hr_stage *stage, uint64_t bytes);
/* Whether another input fits in front of the stage. By any thread. */
bool hr__budget_has_room(const struct hr_stage *stage);

#endif
