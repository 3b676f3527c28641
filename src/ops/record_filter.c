/*
 * record.filter - keeps the records for which a condition holds.
 *
 * An expression must be checked against a schema before it can be evaluated, but open()
 * gets no schema. So infer stores what the expression needs to know about its fields
 * after the parameters, as plain data, and open builds the checked expression from it.
 * Sizes of an image are read from its description: no pixel is made in order to drop a
 * photo.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "op/expr.h"
#include "ops/image_job.h"

struct filter {
    const char *expr;
};

static const struct hr_param filter_params[] = {
    HR_P_STRING(struct filter, expr, .required = true,
                .help = "the condition, such as \"label < 10 and image.height >= 64\""),
};

/* Builds the checked expression; the caller owns *ret_expr. */
static enum hr_err make(const struct filter *p, const struct hr_schema *schema,
                        struct hr_expr **ret_expr, struct hr_error *error)
{
    struct hr_expr *expr;
    enum hr_err err;

    HR_TRY(hr__expr_parse(p->expr, &expr, error));
    err = hr__expr_check(expr, schema, error);
    if (err == HR_OK && hr__expr_kind(expr) != HR_OPERAND_BOOL)
        err = hr__fail(error, HR_ERR_TYPE,
                       "the condition must be true or false, not a number or string: "
                       "compare with something");
    if (err != HR_OK) {
        hr__expr_destroy(expr);
        return err;
    }
    *ret_expr = expr;
    return HR_OK;
}

static enum hr_err
filter_binds(const void *params, const void *state, const struct hr_schema *input,
             struct hr_bindings *bindings, struct hr_error *error)
{
    enum hr_err code = HR_OK;
    const char *const *names;
    struct hr_expr *expr;
    size_t count;

    (void)state;
    HR_TRY(make(params, input, &expr, error));
    names = hr__expr_fields(expr, &count);
    for (size_t i = 0; code == HR_OK && i < count; i++)
        code = hr__bind(bindings, names[i], HR_ACCESS_READ, error);
    hr__expr_destroy(expr);
    return code;
}

static enum hr_err filter_infer(struct hr_infer *infer)
{
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err filter_open(const struct hr_open *open, void **ret_state)
{
    struct hr_expr *expr;

    HR_TRY(make(open->params, open->input, &expr, open->error));
    *ret_state = expr;
    return HR_OK;
}

static void filter_close(void *state)
{
    hr__expr_destroy(state);
}

static enum hr_err
size_of(struct hr_op_ctx *ctx, const struct hr_expr_ref *ref, struct hr_operand *operand)
{
    const struct hr_value *value = ctx->fields[ref->field];
    int32_t width, height, channels;

    operand->kind = HR_OPERAND_INT;
    if (ref->member == HR_MEMBER_LENGTH) {
        operand->as.integer =
            value->kind == HR_VALUE_BYTES ? (int64_t)value->bytes : value->dims[0];
        return HR_OK;
    }
    HR_TRY(hr__image_size(ctx, ref->field, &width, &height, &channels));
    operand->as.integer = ref->member == HR_MEMBER_WIDTH    ? width
                          : ref->member == HR_MEMBER_HEIGHT ? height
                                                            : channels;
    return HR_OK;
}

static double float_of(const struct hr_value *value)
{
    float number;

    if (value->dtype == HR_F64)
        return *(const double *)value->data;
    if (value->dtype == HR_F16)
        hr__f16_to_f32(value->data, &number, 1);
    else if (value->dtype == HR_BF16)
        hr__bf16_to_f32(value->data, &number, 1);
    else
        number = *(const float *)value->data;
    return (double)number;
}

static int64_t whole_of(const struct hr_value *value)
{
    switch ((enum hr_dtype)value->dtype) {
    case HR_I8:
        return *(const int8_t *)value->data;
    case HR_I16:
        return *(const int16_t *)value->data;
    case HR_U16:
        return *(const uint16_t *)value->data;
    case HR_I32:
        return *(const int32_t *)value->data;
    case HR_I64:
        return *(const int64_t *)value->data;
    default:
        return *(const uint8_t *)value->data;
    }
}

static enum hr_err operand_of(struct hr_op_ctx *ctx, const struct hr_expr_ref *ref,
                              struct hr_operand *operand)
{
    struct hr_value *value = ctx->fields[ref->field];

    if (ref->member != HR_MEMBER_VALUE)
        return size_of(ctx, ref, operand);
    assert(hr__value_is_made(value)); /* numbers and strings are never deferred */
    operand->kind = ref->kind;
    if (ref->kind == HR_OPERAND_STRING) {
        operand->as.string.text = value->data;
        operand->as.string.length = value->bytes;
    } else if (ref->kind == HR_OPERAND_FLOAT) {
        operand->as.number = float_of(value);
    } else if (ref->kind == HR_OPERAND_BOOL) {
        operand->as.boolean = whole_of(value) != 0;
    } else {
        operand->as.integer = whole_of(value);
    }
    return HR_OK;
}

static enum hr_err filter_apply(struct hr_op_ctx *ctx)
{
    struct hr_operand operands[HR_EXPR_REFS_MAX], result;
    const struct hr_expr_ref *refs;
    size_t count;

    refs = hr__expr_refs(ctx->state, &count);
    for (size_t i = 0; i < count; i++)
        HR_TRY(operand_of(ctx, &refs[i], &operands[i]));
    HR_TRY(hr__expr_eval(ctx->state, operands, &result, ctx->error));
    ctx->drop = !result.as.boolean;
    return HR_OK;
}

const struct hr_op hr_op_record_filter = {
    .name = "record.filter",
    .summary = "keep the records for which a condition holds",
    .doc =
        "`or`, `and`, `not`, comparisons, `in [..]`, `+ - * / %`; names of fields, and "
        "`f.height`, `f.width`, `f.channels`, `f.length`. Sizes of an image are known "
        "from its header, so filtering by them decodes nothing.",
    .version = 1,
    .kind = HR_OP_FILTER,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DEFERS | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(filter_params, struct filter),
    .infer = filter_infer,
    .binds = filter_binds,
    .open = filter_open,
    .close = filter_close,
    .apply = filter_apply,
};
