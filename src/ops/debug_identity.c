/*
 * debug.identity - does nothing, to test passes and measure the executor's own cost.
 */
#include "op/op.h"

static enum hr_err identity_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static enum hr_err identity_apply(struct hr_op_ctx *ctx)
{
    (void)ctx;
    return HR_OK;
}

const struct hr_op hr_op_debug_identity = {
    .name = "debug.identity",
    .summary = "changes nothing",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_IDENTITY | HR_TRAIT_TEST_ONLY,
    .infer = identity_infer,
    .apply = identity_apply,
};
