/*
 * engine/sequence.h - shared by the files that sequence a stage: sequence.c (blocks and
 * records in order), sequencer.c (the ops that see them), out.c (what leaves the stage).
 * Everything here is for the thread that set `sequencing`, without the lock unless the
 * name says `locked`. Functions that return bool return false if the run has failed or
 * there is no room, and are called again later.
 */
#ifndef HR_ENGINE_SEQUENCE_H
#define HR_ENGINE_SEQUENCE_H

#include "engine/engine.h"

/* sequencer.c. init and finish are called before and after there are threads. */
HR_CHECK enum hr_err hr__sequencers_init(struct hr_stage *stage, struct hr_error *reterr);
void hr__sequencers_finish(struct hr_stage *stage);
/* Begins the epoch in all sequencers that are not in it yet. */
HR_CHECK bool hr__sequence_begin(struct hr_stage *stage, uint64_t epoch);
/* Passes a record to sequencer `k` and those after it. The sequencer takes the values
 * that it keeps; the caller clears the rest. No sequencer may be draining. */
HR_CHECK bool
hr__sequence_add(struct hr_stage *stage, size_t k, struct hr_sequence_record *record);
/* The same for up to `count` records in columns that start at stage->columns, which is
 * not NULL. *ret_taken were passed. */
HR_CHECK bool
hr__sequence_add_rows(struct hr_stage *stage, const struct hr_record_id *ids,
                      uint32_t count, uint32_t *ret_taken);
/* Passes on all pending outputs of next(). */
HR_CHECK bool hr__sequence_drain(struct hr_stage *stage);
/* Ends the epoch: passes on everything that sequencers hold. */
HR_CHECK bool hr__sequence_flush(struct hr_stage *stage);
/* Restores sequencer `k`: begins `epoch` at `input` with this state, and skips `skip`
 * outputs. Copies *input and `state`. */
HR_CHECK enum hr_err
hr__sequencer_restore(struct hr_stage *stage, size_t k, uint64_t epoch,
                      const struct hr_place *input, const char *state, uint64_t skip,
                      struct hr_error *reterr);
/* The place after the last output of the first `k` sequencers; k = 0: of the stage's
 * input, children included. *ret_place must be empty. Fails only when out of memory,
 * which ends the run. */
HR_CHECK bool
hr__sequence_place(struct hr_stage *stage, size_t k, struct hr_place *ret_place);
/* Sequencer `k` cannot go on. Returns false: the error ends the run, unless a later stage
 * turns out to have ended the epoch before it. */
bool hr__sequence_fail(struct hr_stage *stage, size_t k, enum hr_err code,
                       struct hr_error *error);
/* Whether no failed sequencer is left that may end the run. */
HR_CHECK bool hr__sequence_settle(struct hr_stage *stage);
/* Adds the records that passed to the meter of this thread. */
void hr__sequencers_count(struct hr_stage *stage);

/* The order of marks: of sequencer `k`, and of the stage's expansion, which precedes it.
 */
static inline uint32_t hr__mark_order(const struct hr_stage *stage, size_t k)
{
    return (uint32_t)(stage->number * (HR_PLAN_SEQUENCE_MAX + 1) + 1 + k);
}
static inline uint32_t hr__expand_order(const struct hr_stage *stage)
{
    return (uint32_t)(stage->number * (HR_PLAN_SEQUENCE_MAX + 1));
}

/* out.c */
bool hr__stage_is_final(const struct hr_stage *stage);
/* Whether another record or batch may leave, and the run has not failed. */
HR_CHECK bool hr__stage_has_room(struct hr_stage *stage);
bool hr__stage_has_room_locked(const struct hr_stage *stage);
/* Passes a record out of the stage, to the consumer or the next stage. There must be
 * room. Takes its values. */
HR_CHECK bool
hr__emit(struct hr_stage *stage, struct hr_sequence_record *record, uint64_t epoch);
/* Tells the next stage that the epoch ends. */
HR_CHECK bool hr__emit_epoch_end(struct hr_stage *stage, uint64_t epoch);
/* Removes the block in `filling` from the stage if no record was added to it, and clears
 * it; the caller sets it EMPTY under the lock. Returns NULL if there is none. */
struct hr_block *hr__unused_filling(struct hr_stage *stage);
/* Lets threads claim the records in `filling`. Under the lock. */
void hr__publish_locked(struct hr_stage *stage);
/* Ends the run with this error, after setting its code, and a message if it has none.
 * `detail` is as in hr__engine_fail. */
void hr__stage_fail(struct hr_stage *stage, enum hr_err code, struct hr_error *error,
                    char **detail);

void hr__row_clear(struct hr_value *row, size_t count);

#endif
