/*
 * code.source - records that user code makes, by number.
 *
 * Without a count the code reports the end of the data (HR_ERR_END). Then no order op may
 * ask for records by number, since their number is unknown.
 */
#include "ops/code_common.h"

static const struct hr_param source_params[] = {
    HR_P_CODE_NAME,
    HR_P_INT(struct hr_code_params, count, .fallback = "-1", HR_RANGE(-1, 1e15),
             .unit = "records",
             .help = "number of records; -1: the code reports the end of the data"),
    HR_P_CODE_OUTPUTS,
    HR_P_CODE_VARIANT,
};

static enum hr_err source_infer(struct hr_infer *infer)
{
    const struct hr_code_params *p = infer->params;

    HR_TRY(hr__code_infer(infer, false));
    infer->output->records = p->count;
    return HR_OK;
}

static bool source_open_ended(const void *params)
{
    return ((const struct hr_code_params *)params)->count < 0;
}

static uint64_t source_count(const void *params, const void *state)
{
    const struct hr_code_params *p = params;

    (void)state;
    return p->count < 0 ? HR_COUNT_UNKNOWN : (uint64_t)p->count;
}

const struct hr_op hr_op_code_source = {
    .name = "code.source",
    .summary = "records that your own code makes",
    .doc = "The code is asked for record i, in any order and from several threads unless "
           "`variant` says otherwise. A graph file names the code; the program that has "
           "it gives it.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .params = source_params,
    .param_count = sizeof source_params / sizeof source_params[0],
    HR_CODE_OP,
    .infer = source_infer,
    .source = {.open_ended = source_open_ended, .count = source_count},
};
