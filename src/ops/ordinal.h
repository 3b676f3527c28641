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
    uint64_t rank, world;
};

/* The record is number `at` of what the op passes: to this rank, or to another one. */
static inline enum hr_sequence_verdict
hr__ordinal_pass(const struct hr_ordinal *o, uint64_t at)
{
    return at % o->world == o->rank ? HR_SEQUENCE_PASS : HR_SEQUENCE_DROP;
}

#define HR_ORDINAL_RANKS_DOC                                                             \
    "The records of all ranks are counted. Where their number is not known before, "     \
    "after a filter, an expansion or an iterable, every rank runs all records up to "    \
    "here, and ranks divide what is kept."

/* HR_RANKS_OUTPUTS: which records are the first of an epoch depends on all of them. */
enum hr_sequence_ranks hr__ordinal_ranks(const void *params);

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
