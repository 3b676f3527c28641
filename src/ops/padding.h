/*
 * ops/padding.h - shared by the ops that pad records of differing shapes into batches.
 */
#ifndef HR_OPS_PADDING_H
#define HR_OPS_PADDING_H

#include "op/op.h"
#include "ops/stack.h"

struct hr_padding {
    bool drop_last;
    double value;
    int64_t multiple;
    struct hr_names lengths;
};

/* Rows of a parameter table for the member `in_` of the op's struct. */
#define HR_P_PADDING(struct_, in_)                                                       \
    HR_P_IN(HR_PARAM_FLOAT, struct_, in_, value, .fallback = "0",                        \
            .help = "value of the padding after shorter records"),                       \
        HR_P_IN(HR_PARAM_INT, struct_, in_, multiple, .fallback = "1",                   \
                HR_RANGE(1, 1 << 20), .unit = "elements",                                \
                .help = "round padded dimensions up to a multiple of this"),             \
        HR_P_IN(HR_PARAM_FIELDS, struct_, in_, lengths, .access = HR_ACCESS_READ,        \
                .help = "the fields whose sizes before padding are wanted: `x` adds "    \
                        "`x_length`")

/* After hr__infer_batch(): checks the value, and adds the fields with the sizes that
 * records had. */
HR_CHECK enum hr_err
hr__infer_padding(struct hr_infer *infer, const struct hr_padding *padding);

/* How batches of `size` records are stacked. Refers to *padding. */
struct hr_stack_spec hr__padding_spec(const struct hr_padding *padding, int64_t size);

#endif
