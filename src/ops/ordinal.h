/*
 * ops/ordinal.h - sequencers that decide by a record's ordinal alone: take, skip and
 * shard where the number of records is not known.
 */
#ifndef HR_OPS_ORDINAL_H
#define HR_OPS_ORDINAL_H

#include "op/op.h"

struct hr_ordinal {
    const void *params;
    uint64_t next; /* ordinal of the next record in the epoch */
};

/* Hooks of struct hr_op_sequence; the op has its own add. */
HR_CHECK enum hr_err
hr__ordinal_begin(const struct hr_sequence_begin *begin, void **sequencer);
uint64_t hr__ordinal_number(const void *sequencer);
HR_CHECK enum hr_err
hr__ordinal_restore(void *sequencer, const char *text, struct hr_error *error);
void hr__ordinal_end(void *sequencer);

#define HR_ORDINAL                                                                       \
    .sequence.begin = hr__ordinal_begin, .sequence.number = hr__ordinal_number,          \
    .sequence.restore = hr__ordinal_restore, .sequence.end = hr__ordinal_end

/* Parses a number that a sequencer saved. HR_ERR_FORMAT for anything else, and above
 * `most`. */
HR_CHECK enum hr_err hr__saved_number(const char *text, uint64_t most,
                                      uint64_t *ret_number, struct hr_error *error);

#endif
