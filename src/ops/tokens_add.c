/*
 * tokens.add - puts token ids before and after each list, such as those that begin and
 * end a text.
 */
#include "op/op.h"

#include <string.h>

struct add {
    const char *field;
    struct hr_ints begin, end;
};

static const struct hr_param add_params[] = {
    HR_P_INTS(struct add, begin, HR_RANGE(INT32_MIN, INT32_MAX),
              .help = "ids that come first"),
    HR_P_INTS(struct add, end, HR_RANGE(INT32_MIN, INT32_MAX),
              .help = "ids that come last"),
    HR_P_FIELD(struct add, field, .fallback = "tokens", .access = HR_ACCESS_UPDATE,
               .help = "the field with the ids"),
};

static enum hr_err add_infer(struct hr_infer *infer)
{
    const struct add *p = infer->params;
    struct hr_field *field = infer->fields[0];

    if (field->kind != HR_FIELD_TENSOR || field->ndim != 1 || field->dtype != HR_I32)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a list of int32", field->name);
    if (p->begin.count + p->end.count == 0)
        return hr__infer_fail(infer, "begin", HR_ERR_ARGUMENT,
                              "give the ids to add: begin, end, or both");
    if (field->dims[0].size != HR_DIM_UNKNOWN)
        hr__dim_set(&field->dims[0], field->dims[0].size + p->begin.count + p->end.count);
    return HR_OK;
}

static int32_t *put(int32_t *to, const struct hr_ints *ids)
{
    for (int i = 0; i < ids->count; i++)
        *to++ = (int32_t)ids->values[i];
    return to;
}

static enum hr_err add_apply(struct hr_op_ctx *ctx)
{
    const struct add *p = ctx->params;
    struct hr_value *list = ctx->fields[0];
    int64_t count = list->dims[0] + p->begin.count + p->end.count;
    void *memory;
    int32_t *to;

    HR_TRY(hr__op_alloc(ctx, (size_t)count * sizeof(int32_t), &memory));
    to = put(memory, &p->begin);
    hr__value_copy(list, to);
    (void)put(to + list->dims[0], &p->end);
    hr__value_clear(list);
    hr__value_set_tensor(list, HR_I32, 1, &count, memory, NULL);
    return HR_OK;
}

const struct hr_op hr_op_tokens_add = {
    .name = "tokens.add",
    .summary = "add ids before and after token ids",
    .doc = "int32 `[n]` to `[len(begin) + n + len(end)]`.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(add_params, struct add),
    .infer = add_infer,
    .apply = add_apply,
};
