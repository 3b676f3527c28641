/*
 * source.range - integers, for tests and benchmarks, and as indices into user data.
 */
#include "op/op.h"

struct range {
    int64_t n, start, step;
    const char *field;
};

static const struct hr_param range_params[] = {
    HR_P_INT(struct range, n, .required = true, HR_RANGE(0, 1e15), .unit = "records",
             .help = "number of records"),
    HR_P_INT(struct range, start, .fallback = "0", HR_RANGE(-1e15, 1e15),
             .help = "the first number"),
    HR_P_INT(struct range, step, .fallback = "1", HR_RANGE(-1000, 1000),
             .help = "the difference between consecutive numbers"),
    HR_P_FIELD(struct range, field, .fallback = "value", .access = HR_ACCESS_WRITE,
               .help = "the field that holds the number"),
};

static enum hr_err range_infer(struct hr_infer *infer)
{
    const struct range *p = infer->params;

    infer->fields[0]->kind = HR_FIELD_TENSOR;
    infer->fields[0]->dtype = HR_I64;
    infer->output->records = p->n;
    return HR_OK;
}

static uint64_t range_count(const void *params, const void *state)
{
    const struct range *p = params;

    (void)state;
    return (uint64_t)p->n;
}

static enum hr_err range_apply(struct hr_op_ctx *ctx)
{
    const struct range *p = ctx->params;
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &memory));
    *(int64_t *)memory = p->start + (int64_t)ctx->id->index * p->step;
    hr__value_set_tensor(ctx->fields[0], HR_I64, 0, NULL, memory, NULL);
    return HR_OK;
}

const struct hr_op hr_op_source_range = {
    .name = "source.range",
    .summary = "the numbers start, start + step, ...",
    .doc = "Record `i` holds `start + i * step` as an int64 scalar.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(range_params, struct range),
    .infer = range_infer,
    .apply = range_apply,
    .source = {.count = range_count},
};
