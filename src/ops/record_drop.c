/*
 * record.drop - removes fields from records.
 *
 * The fields are bound as taken; the caller removes them from schema and row.
 */
#include "op/op.h"

struct drop {
    struct hr_names fields;
};

static const struct hr_param drop_params[] = {
    HR_P_FIELDS(struct drop, fields, .required = true, .access = HR_ACCESS_TAKE,
                .help = "the fields to remove"),
};

static enum hr_err drop_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static enum hr_err drop_apply(struct hr_op_ctx *ctx)
{
    for (size_t i = 0; i < ctx->field_count; i++)
        hr__value_clear(ctx->fields[i]);
    return HR_OK;
}

const struct hr_op hr_op_record_drop = {
    .name = "record.drop",
    .summary = "remove some fields",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(drop_params, struct drop),
    .infer = drop_infer,
    .apply = drop_apply,
};
