/*
 * ops/joined.h - the fields of records that are joined from those of several inputs.
 */
#ifndef HR_OPS_JOINED_H
#define HR_OPS_JOINED_H

#include "op/op.h"

/* The parameter of ops that join. */
#define HR_P_JOINED_PREFIX(type)                                                         \
    HR_P_FIELDS(type, prefix, .fallback = "[]", .items_min = 0, .items_max = 8,          \
                .access = HR_ACCESS_NONE,                                                \
                .help = "prefixes of each input's field names, in order; [] for none")

/* Empties the output schema. Fails unless there are no prefixes, or one for each input.
 */
HR_CHECK enum hr_err
hr__joined_begin(struct hr_infer *infer, const struct hr_names *prefix);

/* Adds a field of input `input` under its name with the input's prefix, which must be
 * new. */
HR_CHECK enum hr_err hr__joined_add(struct hr_infer *infer, const struct hr_field *field,
                                    const struct hr_names *prefix, size_t input);

#endif
