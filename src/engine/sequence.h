/*
 * engine/sequence.h - what the files of a stage's sequencer share. All of it is for the
 * thread that holds `sequencing`; none is called under the lock unless its name says so.
 */
#ifndef HR_ENGINE_SEQUENCE_H
#define HR_ENGINE_SEQUENCE_H

#include "engine/engine.h"

/* out.c */
bool hr__stage_is_final(const struct hr_stage *stage);
/* May one more record, batch or mark go out, and is the run still sound? */
bool hr__stage_has_room(struct hr_stage *stage);
bool hr__stage_has_room_locked(const struct hr_stage *stage);
/* End the run with this error (its code is set; a message is given when it has none). */
void hr__stage_fail(struct hr_stage *stage, enum hr_err code, struct hr_error *error);
/* The same with a long text about it, taken over when the error is. */
void hr__stage_fail_with(struct hr_stage *stage, enum hr_err code, struct hr_error *error,
                         char **detail);
/* Where a new engine goes on behind the record that stands at `at`. */
struct hr_cursor
hr__cursor_behind(const struct hr_stage *stage, const struct hr_cursor *at);
/* Takes the batch over. */
void hr__stage_push_batch(struct hr_stage *stage, struct hr_batch *batch,
                          const struct hr_cursor *behind);
/* A record or batch for the next stage (its values are moved), or the end of an epoch
 * when `values` is NULL. */
void hr__stage_push_record(struct hr_stage *stage, struct hr_value *values,
                           const struct hr_record_id *id, const struct hr_cursor *cursor,
                           uint64_t epoch);

/* batcher.c */
void hr__row_clear(struct hr_value *row, size_t count);
/* Turn `records` rows, and columns (taken over), into a batch. Rows are left to the
 * caller to clear. */
HR_CHECK enum hr_err
hr__batch_make(struct hr_stage *stage, const struct hr_out_field *fields, size_t count,
               int64_t records, struct hr_buffer **columns, const struct hr_value *rows,
               const struct hr_batch_spec *spec, struct hr_batch **ret_batch,
               struct hr_error *error);
/* These say false when the run has failed. add takes the row's values. */
bool hr__batcher_add(struct hr_stage *stage, struct hr_value *row,
                     const struct hr_record_id *id, const struct hr_cursor *cursor,
                     uint64_t epoch);
bool hr__batcher_flush(struct hr_stage *stage);

/* stream.c: a record arrives at the stage's end (its values are taken); give out what the
 * window holds as far as there is room, true when it is empty. */
bool hr__stream_arrive(struct hr_stage *stage, struct hr_value *row,
                       const struct hr_record_id *id, const struct hr_cursor *cursor,
                       uint64_t epoch);
bool hr__stream_drain(struct hr_stage *stage, uint64_t epoch);

#endif
