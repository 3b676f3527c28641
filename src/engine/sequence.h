/*
 * engine/sequence.h - what the files of a stage's sequencing share: sequence.c (blocks
 * and records in order), sequencer.c (the ops that see them), out.c (what leaves the
 * stage). All of it is for the thread that set `sequencing`; none is called under the
 * lock unless its name says so. Functions that return bool return false when the run has
 * failed or there is no room, and are called again later.
 */
#ifndef HR_ENGINE_SEQUENCE_H
#define HR_ENGINE_SEQUENCE_H

#include "engine/engine.h"

/* sequencer.c. init and finish are called before and after there are threads. */
HR_CHECK enum hr_err hr__sequencers_init(struct hr_stage *stage, struct hr_error *reterr);
void hr__sequencers_finish(struct hr_stage *stage);
/* The stage's sequencers are in this epoch. */
HR_CHECK bool hr__sequence_begin(struct hr_stage *stage, uint64_t epoch);
/* Passes a record to sequencer `k` and those after it. Takes its values, or leaves them
 * for the caller to clear. Nothing is draining when this is called. */
HR_CHECK bool
hr__sequence_add(struct hr_stage *stage, size_t k, struct hr_sequence_record *record);
/* The same for up to `count` records whose fields begin at stage->columns, which is not
 * NULL. */
HR_CHECK bool
hr__sequence_add_rows(struct hr_stage *stage, const struct hr_record_id *ids,
                      uint32_t count, uint32_t *ret_taken);
/* Passes on all that next() has to give. */
HR_CHECK bool hr__sequence_drain(struct hr_stage *stage);
/* The epoch ends: passes on all that is held. */
HR_CHECK bool hr__sequence_flush(struct hr_stage *stage);
/* What a state says of sequencer `k`: begin `epoch` at `input` with this state, and leave
 * out `skip` outputs. *input and `state` are copied. */
HR_CHECK enum hr_err
hr__sequencer_restore(struct hr_stage *stage, size_t k, uint64_t epoch,
                      const struct hr_place *input, const char *state, uint64_t skip,
                      struct hr_error *reterr);
/* The place after what the first `k` sequencers have given so far; k = 0: of the stage's
 * input, children included. *ret_place is empty. Fails when memory is out, which ends the
 * run. */
HR_CHECK bool
hr__sequence_place(struct hr_stage *stage, size_t k, struct hr_place *ret_place);
/* Adds the records that passed to the meter of the thread that sequences. */
void hr__sequencers_count(struct hr_stage *stage);
/* The epoch needs no more records. */
void hr__sequence_end_epoch_early(struct hr_stage *stage, uint64_t epoch);

/* Of marks: sequencer `k` of the stage; its expansion comes before all of them. */
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
/* May one more record, batch or mark go out, and is the run still sound? */
HR_CHECK bool hr__stage_has_room(struct hr_stage *stage);
bool hr__stage_has_room_locked(const struct hr_stage *stage);
/* Passes a record that leaves the stage to the consumer or the next stage; there must be
 * room. Takes its values. */
HR_CHECK bool
hr__emit(struct hr_stage *stage, struct hr_sequence_record *record, uint64_t epoch);
/* Tells the next stage that the epoch ends. */
HR_CHECK bool hr__emit_epoch_end(struct hr_stage *stage, uint64_t epoch);
/* Takes the block that no record was added to off the stage, cleared: the caller makes it
 * EMPTY, under the lock. NULL when there is none. */
struct hr_block *hr__unused_filling(struct hr_stage *stage);
/* The records in `filling` may be claimed: under the lock. */
void hr__publish_locked(struct hr_stage *stage);
/* End the run with this error (its code is set; a message is given when it has none), and
 * a long text about it (or NULL), taken over when the error is. */
void hr__stage_fail(struct hr_stage *stage, enum hr_err code, struct hr_error *error,
                    char **detail);

void hr__row_clear(struct hr_value *row, size_t count);

#endif
