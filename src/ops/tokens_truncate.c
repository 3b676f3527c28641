/*
 * tokens.truncate - shortens lists to a maximum length.
 */
#include "op/op.h"

struct truncate {
    const char *field;
    int64_t length;
    int keep;
};

enum { KEEP_START, KEEP_END };
static const char *const ends[] = {"start", "end", NULL};

static const struct hr_param truncate_params[] = {
    HR_P_INT(struct truncate, length, .required = true, HR_RANGE(0, INT32_MAX),
             .help = "items that remain of a longer list"),
    HR_P_ENUM(struct truncate, keep, .fallback = "start", .names = ends,
              .help = "which end of the list remains"),
    HR_P_FIELD(struct truncate, field, .fallback = "tokens", .access = HR_ACCESS_UPDATE,
               .help = "the field with the list"),
};

static enum hr_err truncate_infer(struct hr_infer *infer)
{
    const struct truncate *p = infer->params;
    struct hr_field *field = infer->fields[0];

    if (field->kind != HR_FIELD_TENSOR || field->ndim != 1)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a list, a tensor of one dimension",
                              field->name);
    if (field->dims[0].size > p->length)
        hr__dim_set(&field->dims[0], p->length);
    return HR_OK;
}

static enum hr_err truncate_apply(struct hr_op_ctx *ctx)
{
    const struct truncate *p = ctx->params;
    struct hr_value *list = ctx->fields[0], part = *list;
    void *memory;

    if (list->dims[0] <= p->length)
        return HR_OK;
    if (p->keep == KEEP_END)
        part.data = (char *)part.data + (part.dims[0] - p->length) * part.strides[0];
    part.dims[0] = p->length;
    HR_TRY(hr__op_alloc(ctx, (size_t)p->length * hr_dtype_size(part.dtype), &memory));
    hr__value_copy(&part, memory);
    hr__value_clear(list);
    hr__value_set_tensor(list, part.dtype, 1, part.dims, memory, NULL);
    return HR_OK;
}

const struct hr_op hr_op_tokens_truncate = {
    .name = "tokens.truncate",
    .summary = "cut lists to a maximal length",
    .doc = "A list of any dtype, `[n]`, to `[min(n, length)]`.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(truncate_params, struct truncate),
    .infer = truncate_infer,
    .apply = truncate_apply,
};
