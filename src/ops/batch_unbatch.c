/*
 * batch.unbatch - takes batches apart into records, without a copy.
 */
#include "ops/batch.h"
#include "op/op.h"
#include "op/ragged.h"

static enum hr_err unbatch_infer(struct hr_infer *infer)
{
    struct hr_schema *out = infer->output;

    if (out->batch_rank < 1 || out->count == 0)
        return hr__infer_fail(infer, NULL, HR_ERR_GRAPH,
                              "there are no batches here to take apart");
    for (size_t i = 0; i < out->count; i++)
        hr__field_item(&out->fields[i], "batch");
    out->batch_rank--;
    out->records = -1;
    return HR_OK;
}

/* The number of records is read from the first field. */
static enum hr_err
unbatch_binds(const void *params, const void *state, const struct hr_schema *input,
              struct hr_bindings *bindings, struct hr_error *error)
{
    (void)params;
    (void)state;
    if (input->count == 0)
        return hr__fail(error, HR_ERR_GRAPH, "the batches have no fields");
    return hr__bind(bindings, input->fields[0].name, HR_ACCESS_READ, error);
}

static enum hr_err unbatch_count(struct hr_op_ctx *ctx, uint64_t *ret_count)
{
    const struct hr_value *value = ctx->fields[0];

    if (value->kind == HR_VALUE_NONE || value->kind == HR_VALUE_BYTES || value->ndim < 1)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "the field holds no batch");
    *ret_count = (uint64_t)value->dims[0];
    return HR_OK;
}

static enum hr_err
unbatch_child(struct hr_op_ctx *ctx, uint64_t at, const struct hr_value *parents,
              struct hr_value *children, size_t count)
{
    for (size_t i = 0; i < count; i++)
        HR_TRY(hr__batch_item(&parents[i], (int64_t)at, ctx->thread->pool, &children[i],
                              ctx->error));
    return HR_OK;
}

const struct hr_op hr_op_batch_unbatch = {
    .name = "batch.unbatch",
    .summary = "take batches apart into records",
    .doc =
        "Record i of batch b is child i of b, and its identity says so. Padding stays.",
    .version = 1,
    .kind = HR_OP_EXPAND,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    .infer = unbatch_infer,
    .binds = unbatch_binds,
    .expand.count = unbatch_count,
    .expand.child = unbatch_child,
};
