/*
 * batch.unbatch - takes batches apart into records, without a copy.
 */
#include "ops/batch.h"
#include "op/op.h"
#include "op/ragged.h"

#include <string.h>

#include "core/alloc.h"

struct unbatch {
    char names[HR_SCHEMA_FIELDS_MAX][HR_FIELD_NAME_MAX + 1]; /* of the fields */
};

static enum hr_err unbatch_infer(struct hr_infer *infer)
{
    struct hr_schema *out = infer->output;

    if (out->batch_rank < 1 || out->count == 0)
        return hr__infer_fail(infer, NULL, HR_ERR_GRAPH,
                              "there are no batches here to take apart");
    for (size_t i = 0; i < out->count; i++) {
        struct hr_field *field = &out->fields[i];

        if (field->kind == HR_FIELD_BYTES || field->ndim < 1)
            return hr__infer_fail(infer, NULL, HR_ERR_SHAPE,
                                  "field \"%s\" is one value for a whole batch, which "
                                  "has no records to take apart: drop it before",
                                  field->name);
        hr__field_item(field, "batch");
    }
    out->batch_rank--;
    out->records = -1;
    return HR_OK;
}

/* All fields, so that a field with fewer or more records than the others is seen,
 * whatever made it. */
static enum hr_err
unbatch_binds(const void *params, const void *state, const struct hr_schema *input,
              struct hr_bindings *bindings, struct hr_error *error)
{
    (void)params;
    (void)state;
    if (input->count == 0)
        return hr__fail(error, HR_ERR_GRAPH, "the batches have no fields");
    for (size_t i = 0; i < input->count; i++)
        HR_TRY(hr__bind(bindings, input->fields[i].name, HR_ACCESS_READ, error));
    return HR_OK;
}

static enum hr_err unbatch_open(const struct hr_open *open, void **ret_state)
{
    struct unbatch *state = hr__calloc(1, sizeof *state);

    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < open->input->count; i++)
        memcpy(state->names[i], open->input->fields[i].name, sizeof state->names[i]);
    *ret_state = state;
    return HR_OK;
}

static void unbatch_close(void *state)
{
    hr__free(state);
}

static enum hr_err unbatch_count(struct hr_op_ctx *ctx, uint64_t *ret_count)
{
    const struct unbatch *state = ctx->state;
    const struct hr_value *first = ctx->fields[0];
    size_t odd = hr__values_odd(ctx->fields, ctx->field_count);

    if (odd == ctx->field_count) {
        *ret_count = (uint64_t)first->dims[0];
        return HR_OK;
    }
    if (!hr__value_has_items(ctx->fields[odd]))
        return hr__fail(ctx->error, HR_ERR_SHAPE, "field \"%s\" holds no batch",
                        state->names[odd]);
    return hr__fail(ctx->error, HR_ERR_SHAPE,
                    "the fields of a batch have different numbers of records: "
                    "\"%s\" has %lld, and \"%s\" %lld",
                    state->names[0], (long long)first->dims[0], state->names[odd],
                    (long long)ctx->fields[odd]->dims[0]);
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
        "Record i of batch b is child i of b, and its identity says so. Padding stays. A "
        "batch whose fields have different numbers of records, as user code may return, "
        "is a bad record.",
    .version = 1,
    .kind = HR_OP_EXPAND,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    .infer = unbatch_infer,
    .binds = unbatch_binds,
    .open = unbatch_open,
    .close = unbatch_close,
    .expand.count = unbatch_count,
    .expand.child = unbatch_child,
};
