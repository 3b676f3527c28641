/*
 * op/expr_range.h - what a condition can be for operands of which only bounds are known.
 *
 * Bounds need not be tight: they may be those that a file's statistics give. Every answer
 * errs on the side of "may be true".
 */
#ifndef HR_OP_EXPR_RANGE_H
#define HR_OP_EXPR_RANGE_H

#include "op/expr.h"

/* Every value lies in [low, high], both of one kind, or is NaN where `nan` is set. */
struct hr_operand_range {
    struct hr_operand low, high;
    bool open; /* of strings: there is no upper bound */
    bool nan;  /* of floats: some may be NaN */
};

/* Any value of the kind. */
struct hr_operand_range hr__operand_any(enum hr_operand_kind kind);

/* The least range that holds both, which are of one kind. */
struct hr_operand_range
hr__operand_join(const struct hr_operand_range *a, const struct hr_operand_range *b);

/* Whether the checked condition is false, and its evaluation does not fail, whatever the
 * operands are; ranges[i] belongs to refs[i]. */
bool hr__expr_never(const struct hr_expr *expr, const struct hr_operand_range *ranges);

#endif
