/*
 * tokens.pad - lengthens lists to a length or to a multiple.
 */
#include "op/op.h"
#include "ops/fill.h"

#include <stdio.h>
#include <string.h>

struct pad {
    const char *field;
    int64_t length, multiple;
    double value;
    int side;
    bool mask, lengths;
};

enum { SIDE_END, SIDE_START };
static const char *const sides[] = {"end", "start", NULL};

static const struct hr_param pad_params[] = {
    HR_P_INT(struct pad, length, .fallback = "0", HR_RANGE(0, INT32_MAX), .unit = "items",
             .help = "the length that all lists get; longer ones are refused"),
    HR_P_INT(struct pad, multiple, .fallback = "1", HR_RANGE(1, 1 << 20), .unit = "items",
             .help = "or round lengths up to a multiple of this"),
    HR_P_FLOAT(struct pad, value, .fallback = "0", HR_RANGE(-1e15, 1e15),
               .help = "value of the padding"),
    HR_P_ENUM(struct pad, side, .fallback = "end", .names = sides,
              .help = "where the padding goes"),
    HR_P_BOOL(struct pad, mask, .fallback = "false",
              .help = "add `x_mask` for field `x`: true for items, false for padding"),
    HR_P_BOOL(struct pad, lengths, .fallback = "false",
              .help = "add `x_length` for field `x`: the length before padding"),
    HR_P_FIELD(struct pad, field, .fallback = "tokens", .access = HR_ACCESS_UPDATE,
               .help = "the field with the list"),
};

static enum hr_err
bind_more(const struct pad *p, const char *suffix, const struct hr_schema *input,
          struct hr_bindings *bindings, struct hr_error *error)
{
    char name[HR_FIELD_NAME_MAX + 16];
    bool fits;

    snprintf(name, sizeof name, "%s%s", p->field, suffix);
    fits = strlen(name) <= HR_FIELD_NAME_MAX;
    if (!fits || hr__schema_get(input, name) != NULL)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "it cannot add \"%s\", which is %s: rename it", name,
                        fits ? "taken" : "too long");
    return hr__bind(bindings, name, HR_ACCESS_WRITE, error);
}

static enum hr_err
pad_binds(const void *params, const void *state, const struct hr_schema *input,
          struct hr_bindings *bindings, struct hr_error *error)
{
    const struct pad *p = params;

    (void)state;
    if (p->mask)
        HR_TRY(bind_more(p, "_mask", input, bindings, error));
    return p->lengths ? bind_more(p, "_length", input, bindings, error) : HR_OK;
}

static int64_t padded(const struct pad *p, int64_t length)
{
    return p->length > 0 ? p->length
                         : (length + p->multiple - 1) / p->multiple * p->multiple;
}

static enum hr_err pad_infer(struct hr_infer *infer)
{
    const struct pad *p = infer->params;
    struct hr_field *field = infer->fields[0];
    struct hr_dim *length = &field->dims[0];

    if (field->kind != HR_FIELD_TENSOR || field->ndim != 1)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a list, a tensor of one dimension",
                              field->name);
    if ((p->length > 0) == (p->multiple > 1))
        return hr__infer_fail(infer, "length", HR_ERR_ARGUMENT,
                              "give either a length or a multiple");
    if (!hr__fill_fits(field->dtype, p->value))
        return hr__infer_fail(infer, "value", HR_ERR_RANGE,
                              "field \"%s\" of dtype %s cannot hold the value %g",
                              field->name, hr_dtype_name(field->dtype), p->value);
    if (length->size >= 0 || p->length > 0)
        hr__dim_set(length, padded(p, length->size));
    if (p->mask) {
        infer->fields[1]->dtype = HR_BOOL;
        infer->fields[1]->ndim = 1;
        infer->fields[1]->dims[0] = *length;
    }
    if (p->lengths)
        infer->fields[1 + p->mask]->dtype = HR_I64;
    return HR_OK;
}

/* Memory for the field's `length` items of which `count` are to be set at *ret_items; the
 * others have the value of padding. */
static enum hr_err
make_room(struct hr_op_ctx *ctx, size_t field, enum hr_dtype dtype, int64_t length,
          int64_t count, double value, void **ret_all, char **ret_items)
{
    const struct pad *p = ctx->params;
    size_t item = hr_dtype_size(dtype);
    int64_t before = p->side == SIDE_START ? length - count : 0;

    HR_TRY(hr__op_result(ctx, field, (size_t)length * item, ret_all));
    *ret_items = (char *)*ret_all + (size_t)before * item;
    hr__fill(*ret_all, dtype, before, value);
    hr__fill(*ret_items + (size_t)count * item, dtype, length - count - before, value);
    return HR_OK;
}

static enum hr_err add_mask(struct hr_op_ctx *ctx, int64_t length, int64_t count)
{
    void *all;
    char *items;

    HR_TRY(make_room(ctx, 1, HR_BOOL, length, count, 0, &all, &items));
    memset(items, 1, (size_t)count);
    hr__value_set_tensor(ctx->fields[1], HR_BOOL, 1, &length, all, NULL);
    return HR_OK;
}

static enum hr_err add_length(struct hr_op_ctx *ctx, size_t at, int64_t count)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof count, &memory));
    memcpy(memory, &count, sizeof count);
    hr__value_set_tensor(ctx->fields[at], HR_I64, 0, NULL, memory, NULL);
    return HR_OK;
}

static enum hr_err pad_apply(struct hr_op_ctx *ctx)
{
    const struct pad *p = ctx->params;
    struct hr_value *list = ctx->fields[0];
    enum hr_dtype dtype = (enum hr_dtype)list->dtype;
    int64_t count = list->dims[0], length = padded(p, count);
    void *all;
    char *items;

    if (count > length)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "a list of %lld items is longer than %lld: put tokens.truncate "
                        "before",
                        (long long)count, (long long)length);
    if (p->mask)
        HR_TRY(add_mask(ctx, length, count));
    if (p->lengths)
        HR_TRY(add_length(ctx, 1 + p->mask, count));
    if (count == length)
        return HR_OK;
    HR_TRY(make_room(ctx, 0, dtype, length, count, p->value, &all, &items));
    hr__value_copy(list, items);
    hr__value_clear(list);
    hr__value_set_tensor(list, dtype, 1, &length, all, NULL);
    return HR_OK;
}

const struct hr_op hr_op_tokens_pad = {
    .name = "tokens.pad",
    .summary = "lengthen lists to a length or a multiple",
    .doc =
        "A list of any dtype, `[n]`, to `[length]`, or to `[m]`, m the next multiple of "
        "`multiple`. To pad the lists of a batch to the longest of them, use "
        "batch.pad.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(pad_params, struct pad),
    .binds = pad_binds,
    .infer = pad_infer,
    .apply = pad_apply,
    .placed = true,
};
