/*
 * code.expand - user code makes any number of records from one.
 */
#include "ops/code_common.h"

static const struct hr_param expand_params[] = {
    HR_P_CODE_NAME,
    HR_P_CODE_FIELDS("the fields that the code reads; absent: all"),
    HR_P_CODE_OUTPUTS,
    HR_P_CODE_VARIANT,
};

static enum hr_err expand_infer(struct hr_infer *infer)
{
    infer->output->records = -1;
    return hr__code_infer(infer, true);
}

const struct hr_op hr_op_code_expand = {
    .name = "code.expand",
    .summary = "your own code makes many records from one",
    .doc =
        "Child i of a record has an identity of its own. A child has the fields that the "
        "code made; to keep a field of the parent, output it.",
    .version = 1,
    .kind = HR_OP_EXPAND,
    .params = expand_params,
    .param_count = sizeof expand_params / sizeof expand_params[0],
    HR_CODE_OP,
    .infer = expand_infer,
};
