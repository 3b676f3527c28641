/*
 * ops/stack.h - joins consecutive records field by field; the common part of batch.stack
 * and batch.pad.
 *
 * Fields of one fixed shape are copied into a column as records arrive; all others are
 * kept until the batch is full.
 */
#ifndef HR_OPS_STACK_H
#define HR_OPS_STACK_H

#include "op/op.h"

struct hr_stack_spec {
    int64_t size; /* records */
    bool drop_last;
    bool pad;    /* fields whose shapes differ are padded to the largest; else they must
                    agree */
    bool ragged; /* tensors with unknown dims keep their sizes: HR_VALUE_RAGGED */
    double pad_value;
    int64_t pad_multiple; /* padded dims are rounded up to this */
    int64_t pad_to;       /* > 0: padded dims are this, and no record's exceed it */
    bool keep_rows;       /* fields of fixed shape are kept, too, since `size` is
                             far more than a batch has */
    const struct hr_names *lengths; /* or NULL: fields whose records' sizes are joined,
                                       too; these values follow those of the schema */
};

/* `size` rounded up to a multiple. */
static inline int64_t hr__pad_up(int64_t size, int64_t multiple)
{
    return (size + multiple - 1) / multiple * multiple;
}

/* The dimensions whose sizes are the lengths of a record: those that differ between
 * records, or the first one if none is known to. Returns how many there are. */
int hr__length_dims(const struct hr_field *field, int ret_dims[HR_MAX_DIMS]);

/*
 * Joins the values of `records` records (at least 1), and lengths if there are. A field
 * with a column gets its first rows (the reference moves); others are joined from
 * rows[f], rows[f + stride],
 * ..., which the caller still owns. `columns` may be NULL. HR_ERR_SHAPE names the field
 * and both shapes. On failure some values may be set; the caller clears them.
 */
HR_CHECK enum hr_err
hr__stack_join(struct hr_pool *pool, const struct hr_schema *schema, int64_t records,
               struct hr_buffer **columns, const struct hr_value *rows, size_t stride,
               const struct hr_stack_spec *spec, struct hr_value *ret_values,
               struct hr_error *reterr);

/* Hooks of struct hr_op_sequence for a sequencer that stacks. The op's own begin calls
 * hr__stacker_begin. */
HR_CHECK enum hr_err
hr__stacker_begin(const struct hr_sequence_begin *begin, const struct hr_stack_spec *spec,
                  void **sequencer);
HR_CHECK enum hr_err
hr__stacker_add(void *sequencer, struct hr_sequence_record *record,
                enum hr_sequence_verdict *ret_verdict, struct hr_error *error);
HR_CHECK enum hr_err
hr__stacker_add_rows(void *sequencer, const struct hr_record_id *ids,
                     char *const *columns, uint32_t count, uint32_t *ret_taken,
                     enum hr_sequence_verdict *ret_verdict, struct hr_error *error);
HR_CHECK enum hr_err
hr__stacker_next(void *sequencer, struct hr_sequence_record *record, bool *ret_any,
                 bool *ret_more, struct hr_error *error);
HR_CHECK enum hr_err
hr__stacker_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error);
void hr__stacker_clear(void *sequencer); /* drops the records held */
bool hr__stacker_save(const void *sequencer, struct hr_str *out);
void hr__stacker_end(void *sequencer);
uint64_t hr__stacker_held_bytes(const void *sequencer);
uint64_t hr__stacker_held_records(const void *sequencer);

#define HR_STACKER                                                                       \
    .add = hr__stacker_add, .add_rows = hr__stacker_add_rows, .next = hr__stacker_next,  \
    .flush = hr__stacker_flush, .save = hr__stacker_save, .end = hr__stacker_end,        \
    .held_bytes = hr__stacker_held_bytes, .held_records = hr__stacker_held_records,      \
    .replays = true

#endif
