/*
 * ops/condition.c - conditions on the fields of a record.
 *
 * Sizes of an image are read from its description: no pixel is made in order to drop a
 * photo.
 */
#include "ops/condition.h"

#include <assert.h>

#include "ops/image_job.h"

enum hr_err hr__condition_make(const char *text, const struct hr_schema *schema,
                               struct hr_expr **ret_expr, struct hr_error *error)
{
    struct hr_expr *expr;
    enum hr_err err;

    HR_TRY(hr__expr_parse(text, &expr, error));
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

static enum hr_err size_of(struct hr_op_ctx *ctx, const struct hr_expr_ref *ref,
                           size_t field, struct hr_operand *operand)
{
    const struct hr_value *value = ctx->fields[field];
    int32_t width, height, channels;

    operand->kind = HR_OPERAND_INT;
    if (ref->member == HR_MEMBER_LENGTH) {
        operand->as.integer =
            value->kind == HR_VALUE_BYTES ? (int64_t)value->bytes : value->dims[0];
        return HR_OK;
    }
    HR_TRY(hr__image_dims(ctx, field, &width, &height, &channels));
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
                              size_t field, struct hr_operand *operand)
{
    struct hr_value *value = ctx->fields[field];

    if (ref->member != HR_MEMBER_VALUE)
        return size_of(ctx, ref, field, operand);
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

enum hr_err hr__condition_holds(struct hr_op_ctx *ctx, const struct hr_expr *expr,
                                const size_t *at, bool *ret_holds)
{
    struct hr_operand operands[HR_EXPR_REFS_MAX], result;
    size_t count;
    const struct hr_expr_ref *refs = hr__expr_refs(expr, &count);

    for (size_t i = 0; i < count; i++)
        HR_TRY(operand_of(ctx, &refs[i], at != NULL ? at[refs[i].field] : refs[i].field,
                          &operands[i]));
    HR_TRY(hr__expr_eval(expr, operands, &result, ctx->error));
    *ret_holds = result.as.boolean;
    return HR_OK;
}
