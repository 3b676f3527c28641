/*
 * tensor.cast - converts to another element type.
 *
 * For images it edits the description and keeps the meaning: levels 0..255 of uint8
 * become floats 0..1, and back. Other tensors are converted at once.
 */
#include <math.h>

#include "op/kind.h"
#include "ops/image_job.h"
#include "ops/image_size.h"

struct cast {
    const char *field;
    int dtype;
    bool scale;
};

static const struct hr_param cast_params[] = {
    HR_P_DTYPE(struct cast, dtype, .required = true, .help = "the new element type"),
    HR_P_BOOL(struct cast, scale, .fallback = "true",
              .help = "images: uint8 0..255 becomes 0..1 and back"),
    HR_P_FIELD(struct cast, field, .fallback = "image", .access = HR_ACCESS_UPDATE,
               .help = "the field to convert"),
};

static bool is_float(int dtype)
{
    return dtype == HR_F32 || dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F64;
}

static enum hr_err infer_image(struct hr_infer *infer, const struct cast *p)
{
    struct hr_field *field = infer->fields[0];

    if (p->dtype != HR_U8 && (!is_float(p->dtype) || p->dtype == HR_F64))
        return hr__infer_fail(infer, "dtype", HR_ERR_TYPE,
                              "an image is uint8, float32, float16 or bfloat16, not %s",
                              hr_dtype_name((enum hr_dtype)p->dtype));
    if (p->dtype == HR_U8 && field->meaning == HR_MEANING_IMAGE_NORMAL)
        return hr__infer_fail(
            infer, "dtype", HR_ERR_TYPE,
            "field \"%s\" is normalised already and would lose its range "
            "as uint8: cast before the normalisation",
            field->name);
    if (p->dtype == HR_U8 && field->meaning == HR_MEANING_IMAGE_UNIT && !p->scale)
        return hr__infer_fail(infer, "scale", HR_ERR_TYPE,
                              "field \"%s\" is 0..1 and would become black as uint8 "
                              "without scale",
                              field->name);
    if (field->meaning == HR_MEANING_IMAGE_U8 && p->dtype != HR_U8)
        field->meaning = p->scale ? HR_MEANING_IMAGE_UNIT : HR_MEANING_IMAGE_NORMAL;
    else if (p->dtype == HR_U8)
        field->meaning = HR_MEANING_IMAGE_U8;
    return HR_OK;
}

static enum hr_err cast_infer(struct hr_infer *infer)
{
    const struct cast *p = infer->params;
    struct hr_field *field = infer->fields[0];

    if (field->kind != HR_FIELD_TENSOR)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a tensor to be cast", field->name);
    if (hr__field_is_image(field))
        HR_TRY(infer_image(infer, p));
    if (field->meaning == HR_MEANING_MASK && is_float(p->dtype))
        return hr__infer_fail(infer, "dtype", HR_ERR_TYPE,
                              "field \"%s\" is a mask: its labels are cast to integers",
                              field->name);
    if (hr__kind_of(field) != NULL && field->dtype != (enum hr_dtype)p->dtype &&
        !hr__field_is_image(field)) { /* it no longer moves with an image */
        field->meaning = HR_MEANING_NONE;
        field->layout = HR_LAYOUT_NONE;
    }
    field->dtype = (enum hr_dtype)p->dtype;
    return HR_OK;
}

static bool image_dtype(int dtype)
{
    return dtype == HR_U8 || dtype == HR_F32 || dtype == HR_F16 || dtype == HR_BF16;
}

static bool is_image(const struct hr_value *value)
{
    return value->kind == HR_VALUE_DEFERRED || value->layout != HR_LAYOUT_NONE;
}

/* Loads an element as a double and, for integers, as an exact int64. */
static double load(enum hr_dtype dtype, const char *from, int64_t *ret_whole)
{
    float number;

    switch (dtype) {
    case HR_U8:
    case HR_BOOL:
        return (double)(*ret_whole = *(const uint8_t *)from);
    case HR_I8:
        return (double)(*ret_whole = *(const int8_t *)from);
    case HR_I16:
        return (double)(*ret_whole = *(const int16_t *)from);
    case HR_U16:
        return (double)(*ret_whole = *(const uint16_t *)from);
    case HR_I32:
        return (double)(*ret_whole = *(const int32_t *)from);
    case HR_I64:
        return (double)(*ret_whole = *(const int64_t *)from);
    case HR_F16:
        hr__f16_to_f32((const uint16_t *)from, &number, 1);
        return (double)number;
    case HR_BF16:
        hr__bf16_to_f32((const uint16_t *)from, &number, 1);
        return (double)number;
    case HR_F32:
        return (double)*(const float *)from;
    default:
        return *(const double *)from;
    }
}

/* Converts a float to an integer: truncated and clamped; NaN gives 0. */
static int64_t whole_of(double number)
{
    if (isnan(number))
        return 0;
    if (number >= 9223372036854775807.0)
        return INT64_MAX;
    return number <= -9223372036854775808.0 ? INT64_MIN : (int64_t)number;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void store(enum hr_dtype dtype, char *to, double number, int64_t whole)
{
    float single = (float)number;

    switch (dtype) {
    case HR_U8:
        *(uint8_t *)to = (uint8_t)clamp(whole, 0, UINT8_MAX);
        break;
    case HR_BOOL:
        *(uint8_t *)to = number != 0;
        break;
    case HR_I8:
        *(int8_t *)to = (int8_t)clamp(whole, INT8_MIN, INT8_MAX);
        break;
    case HR_I16:
        *(int16_t *)to = (int16_t)clamp(whole, INT16_MIN, INT16_MAX);
        break;
    case HR_U16:
        *(uint16_t *)to = (uint16_t)clamp(whole, 0, UINT16_MAX);
        break;
    case HR_I32:
        *(int32_t *)to = (int32_t)clamp(whole, INT32_MIN, INT32_MAX);
        break;
    case HR_I64:
        *(int64_t *)to = whole;
        break;
    case HR_F16:
        hr__f32_to_f16(&single, (uint16_t *)to, 1);
        break;
    case HR_BF16:
        hr__f32_to_bf16(&single, (uint16_t *)to, 1);
        break;
    case HR_F32:
        *(float *)to = single;
        break;
    default:
        *(double *)to = number;
        break;
    }
}

static enum hr_err cast_plain(struct hr_op_ctx *ctx, enum hr_dtype dtype)
{
    struct hr_value *value = ctx->fields[0];
    enum hr_dtype from = (enum hr_dtype)value->dtype;
    size_t from_size = hr_dtype_size(from), to_size = hr_dtype_size(dtype);
    size_t count = (size_t)hr__value_count(value);
    uint8_t layout = value->layout;
    void *in, *out;

    HR_TRY(hr__op_alloc(ctx, count * from_size + 1, &in));
    HR_TRY(hr__op_result(ctx, 0, count * to_size, &out));
    hr__value_copy(value, in);
    for (size_t i = 0; i < count; i++) {
        int64_t whole = 0;
        double number = load(from, (char *)in + i * from_size, &whole);
        if (is_float(from))
            whole = whole_of(number);
        store(dtype, (char *)out + i * to_size, number, whole);
    }
    hr__value_set_tensor(value, dtype, value->ndim,
                         (const int64_t[HR_MAX_DIMS]){value->dims[0], value->dims[1],
                                                      value->dims[2], value->dims[3],
                                                      value->dims[4], value->dims[5],
                                                      value->dims[6], value->dims[7]},
                         out, NULL);
    value->layout = layout;
    return HR_OK;
}

static enum hr_err cast_apply(struct hr_op_ctx *ctx)
{
    const struct cast *p = ctx->params;
    enum hr_dtype dtype = (enum hr_dtype)p->dtype;
    const struct hr_value *value = ctx->fields[0];
    float scale = 1.0f;

    if (value->dtype == dtype)
        return HR_OK;
    if (!is_image(value) || !image_dtype(value->dtype) || !image_dtype(dtype))
        return cast_plain(ctx, dtype);
    if (p->scale && value->dtype == HR_U8)
        scale = 1.0f / 255.0f;
    else if (p->scale && dtype == HR_U8)
        scale = 255.0f;
    return hr__image_cast(ctx, 0, dtype, scale);
}

const struct hr_op hr_op_tensor_cast = {
    .name = "tensor.cast",
    .summary = "convert to another element type",
    .doc = "Images as torchvision's ToDtype(scale=True): uint8 times 1/255 is a float in "
           "0..1. Back to uint8 the value times 255 is rounded to the nearest level "
           "(torchvision multiplies by 255.999 and truncates). Other tensors keep their "
           "values: floats are truncated, and values out of range are clamped.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DTYPE | HR_TRAIT_POINTWISE | HR_TRAIT_AFFINE |
              HR_TRAIT_DEFERS,
    HR_PARAMS(cast_params, struct cast),
    .infer = cast_infer,
    .apply = cast_apply,
    .placed = true,
};
