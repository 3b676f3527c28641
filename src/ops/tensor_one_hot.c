/*
 * tensor.one_hot - turns a class number into a row of zeros with a one.
 */
#include "op/op.h"

#include <string.h>

struct one_hot {
    const char *field;
    int64_t classes;
};

static const struct hr_param one_hot_params[] = {
    HR_P_INT(struct one_hot, classes, .required = true, HR_RANGE(1, 1 << 24),
             .help = "length of the row"),
    HR_P_FIELD(struct one_hot, field, .fallback = "label", .access = HR_ACCESS_UPDATE,
               .help = "the field with the class number"),
};

static enum hr_err one_hot_infer(struct hr_infer *infer)
{
    const struct one_hot *p = infer->params;
    struct hr_field *field = infer->fields[0];

    if (field->kind != HR_FIELD_TENSOR || field->ndim != 0 || field->dtype != HR_I64)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be an int64 scalar to be a class number",
                              field->name);
    field->dtype = HR_F32;
    field->meaning = HR_MEANING_NONE;
    field->ndim = 1;
    hr__dim_set(&field->dims[0], p->classes);
    return HR_OK;
}

static enum hr_err one_hot_apply(struct hr_op_ctx *ctx)
{
    const struct one_hot *p = ctx->params;
    int64_t label;
    void *memory;

    HR_TRY(hr__op_result(ctx, 0, (size_t)p->classes * sizeof(float), &memory));
    memcpy(&label, ctx->fields[0]->data, sizeof label);
    if (label < 0 || label >= p->classes)
        return hr__fail(ctx->error, HR_ERR_RANGE, "class %lld is not below %lld",
                        (long long)label, (long long)p->classes);
    memset(memory, 0, (size_t)p->classes * sizeof(float));
    ((float *)memory)[label] = 1.0f;
    hr__value_set_tensor(ctx->fields[0], HR_F32, 1, &p->classes, memory, NULL);
    return HR_OK;
}

const struct hr_op hr_op_tensor_one_hot = {
    .name = "tensor.one_hot",
    .summary = "class numbers to rows of zeros and a one",
    .doc = "int64 scalar to float32 `[classes]`. A number outside 0..classes - 1 is an "
           "error.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DTYPE | HR_TRAIT_GROWS,
    HR_PARAMS(one_hot_params, struct one_hot),
    .infer = one_hot_infer,
    .apply = one_hot_apply,
    .placed = true,
};
