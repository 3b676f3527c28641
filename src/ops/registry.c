/*
 * ops/registry.c - the list of all operators, one line each in ops.def. It is alone in
 * its file, because tests link a longer list in its place (tests/contract/contract.c).
 */
#include "op/op.h"

#define HR_OP(symbol) extern const struct hr_op hr_op_##symbol;
#include "ops/ops.def"
#undef HR_OP

static const struct hr_op *const list[] = {
#define HR_OP(symbol) &hr_op_##symbol,
#include "ops/ops.def"
#undef HR_OP
    NULL,
};

const struct hr_op *const *hr__op_list(size_t *ret_count)
{
    *ret_count = sizeof list / sizeof list[0] - 1;
    return list;
}
