/*
 * ops/condition.h - conditions on the fields of a record.
 */
#ifndef HR_OPS_CONDITION_H
#define HR_OPS_CONDITION_H

#include "op/expr.h"
#include "op/op.h"

/* Parses and checks a condition, which must be true or false; the caller destroys it. */
HR_CHECK enum hr_err
hr__condition_make(const char *text, const struct hr_schema *schema,
                   struct hr_expr **ret_expr, struct hr_error *error);

/* Whether it holds. Field i of hr__expr_fields() is ctx->fields[at[i]]; `at` NULL:
 * ctx->fields[i]. On failure ctx->error is set. */
HR_CHECK enum hr_err
hr__condition_holds(struct hr_op_ctx *ctx, const struct hr_expr *expr, const size_t *at,
                    bool *ret_holds);

#endif
