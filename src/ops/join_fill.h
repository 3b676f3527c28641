/*
 * ops/join_fill.h - what the fields of the second input become in records of a left join
 * that have no match there.
 */
#ifndef HR_OPS_JOIN_FILL_H
#define HR_OPS_JOIN_FILL_H

#include "op/op.h"

/* Values by number of the output's field. */
struct hr_join_fills;

/* infer: checks that field `at` of the output, which is of the second input, can be
 * filled: by `fill`, or by zeros and empty texts and lists where `told`, another field
 * says which records these are. */
HR_CHECK enum hr_err hr__join_fill_check(struct hr_infer *infer, size_t at,
                                         const struct hr_pairs *fill, bool told);

/* infer: checks that all fields which `fill` names are among those of the output from
 * `first` on. */
HR_CHECK enum hr_err
hr__join_fill_names(struct hr_infer *infer, size_t first, const struct hr_pairs *fill);

/* The values of the fields that were checked. NULL if out of memory. `fill` must
 * outlive them. */
struct hr_join_fills *
hr__join_fills_create(const struct hr_schema *output, const struct hr_pairs *fill);
void hr__join_fills_destroy(struct hr_join_fills *fills);

/* Makes the value of a field in the arena. */
HR_CHECK enum hr_err
hr__join_fill(const struct hr_join_fills *fills, struct hr_op_ctx *ctx, size_t field,
              struct hr_value *value);

#endif
