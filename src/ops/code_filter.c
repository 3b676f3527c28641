/*
 * code.filter - user code decides which records stay.
 */
#include "ops/code_common.h"

static const struct hr_param filter_params[] = {
    HR_P_CODE_NAME,
    HR_P_CODE_FIELDS("the fields that the code reads; absent: all"),
    HR_P_CODE_VARIANT,
};

static enum hr_err filter_infer(struct hr_infer *infer)
{
    infer->output->records = -1;
    return HR_OK;
}

const struct hr_op hr_op_code_filter = {
    .name = "code.filter",
    .summary = "your own code decides which records stay",
    .doc = "record.filter does the same with an expression and decodes no image for it.",
    .version = 1,
    .kind = HR_OP_FILTER,
    .params = filter_params,
    .param_count = sizeof filter_params / sizeof filter_params[0],
    HR_CODE_OP,
    .infer = filter_infer,
};
