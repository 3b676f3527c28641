/*
 * ops/batch.h - shared by the ops that make batches.
 */
#ifndef HR_OPS_BATCH_H
#define HR_OPS_BATCH_H

#include "op/op.h"

#define HR_P_BATCH_SIZE(struct_)                                                         \
    HR_P_INT(struct_, size, .required = true, HR_RANGE(1, 1 << 24), .unit = "records",   \
             .help = "records in a batch")
#define HR_DROP_LAST_HELP "leave out the last batch when it is not full"
#define HR_P_DROP_LAST(struct_)                                                          \
    HR_P_BOOL(struct_, drop_last, .fallback = "false", .help = HR_DROP_LAST_HELP)

/* The schema of batches: every field gains a dimension, byte strings become lists. */
HR_CHECK enum hr_err
hr__infer_batch(struct hr_infer *infer, int64_t size, bool drop_last, bool ragged);

/* Turns a field of a batch, or of lists, into that of one of its items. `dim` is what the
 * first dimension of an item that is a list itself is called. */
void hr__field_item(struct hr_field *field, const char *dim);

/* Number of n records that go into batches. */
uint64_t hr__batch_count(uint64_t n, int64_t size, bool drop_last);

#endif
