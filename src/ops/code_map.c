/*
 * code.map - user code makes one record from another; after a batch op, one batch from
 * another.
 */
#include "ops/code_common.h"

static const struct hr_param map_params[] = {
    HR_P_CODE_NAME,
    HR_P_CODE_FIELDS("the fields that the code reads; those that it does not output "
                     "are dropped; absent: it reads all, and all stay"),
    HR_P_CODE_OUTPUTS,
    HR_P_BOOL(struct hr_code_params, keep, .fallback = "true",
              .help = "fields that the code neither takes nor makes stay; false: the "
                      "record is what the code made"),
    HR_P_CODE_VARIANT,
};

static enum hr_err map_infer(struct hr_infer *infer)
{
    const struct hr_code_params *p = infer->params;

    return hr__code_infer(infer, !p->keep);
}

const struct hr_op hr_op_code_map = {
    .name = "code.map",
    .summary = "your own code, record by record",
    .doc = "An output of the name, dtype and rank of an image field stays an image, so "
           "that image ops may follow; so is one whose dimensions are called height and "
           "width. Images are decoded before the code sees them.",
    .version = 1,
    .kind = HR_OP_MAP,
    .params = map_params,
    .param_count = sizeof map_params / sizeof map_params[0],
    HR_CODE_OP,
    .infer = map_infer,
};
