/*
 * padding.c - the lengths of padded records, and how they are stacked.
 */
#include "ops/padding.h"
#include "ops/fill.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LENGTH_SUFFIX "_length"
#define WHOLE_EXACT 0x1p53 /* smaller whole numbers are exact as doubles */

/* `item` is the field before it was batched. */
static enum hr_err infer_length(struct hr_infer *infer, const struct hr_field *item,
                                const struct hr_dim *batch)
{
    char name[HR_FIELD_NAME_MAX + sizeof LENGTH_SUFFIX];
    int dims[HR_MAX_DIMS], count;
    struct hr_field *field;

    if (item->kind != HR_FIELD_TENSOR || item->ndim == 0)
        return hr__infer_fail(
            infer, "lengths", HR_ERR_SHAPE, "field \"%s\" is %s, which is not padded",
            item->name, item->kind == HR_FIELD_TENSOR ? "one number a record" : "a list");
    snprintf(name, sizeof name, "%s" LENGTH_SUFFIX, item->name);
    if (strlen(name) > HR_FIELD_NAME_MAX || hr__schema_find(infer->output, name) != NULL)
        return hr__infer_fail(
            infer, "lengths", HR_ERR_ARGUMENT,
            "the lengths of \"%s\" cannot be called \"%s\", which is %s: "
            "rename it",
            item->name, name, strlen(name) > HR_FIELD_NAME_MAX ? "too long" : "taken");
    field = hr__schema_put(infer->output, name);
    if (field == NULL)
        return hr__infer_fail(infer, "lengths", HR_ERR_LIMIT,
                              "a record has at most %d fields", HR_SCHEMA_FIELDS_MAX);
    field->kind = HR_FIELD_TENSOR;
    field->dtype = HR_I64;
    field->dims[field->ndim++] = *batch;
    count = hr__length_dims(item, dims);
    if (count > 1)
        hr__dim_set(&field->dims[field->ndim++], count);
    return HR_OK;
}

/* Before it was batched. */
static bool may_be_padded(const struct hr_field *item, const struct hr_padding *padding)
{
    if (item->kind != HR_FIELD_TENSOR)
        return false;
    for (int d = 0; d < item->ndim; d++)
        if (item->dims[d].size < 0 || padding->multiple > 1)
            return true;
    return false;
}

static enum hr_err check_value(struct hr_infer *infer, const struct hr_padding *padding)
{
    const struct hr_schema *input = &infer->inputs[0];

    for (size_t i = 0; i < input->count; i++) {
        const struct hr_field *item = &input->fields[i];

        if (!may_be_padded(item, padding))
            continue;
        if (item->dtype == HR_I64 && fabs(padding->value) >= WHOLE_EXACT &&
            hr__fill_fits(HR_I64, padding->value))
            return hr__infer_fail(infer, "value", HR_ERR_RANGE,
                                  "the value %.0f pads field \"%s\" of dtype int64, and "
                                  "may have been rounded: whole numbers are exact up to "
                                  "9007199254740991",
                                  padding->value, item->name);
        if (!hr__fill_fits(item->dtype, padding->value))
            return hr__infer_fail(infer, "value", HR_ERR_RANGE,
                                  "field \"%s\" of dtype %s cannot hold the value %g, "
                                  "which pads all fields: cast or pad it before",
                                  item->name, hr_dtype_name(item->dtype), padding->value);
    }
    return HR_OK;
}

enum hr_err hr__infer_padding(struct hr_infer *infer, const struct hr_padding *padding)
{
    const struct hr_names *lengths = &padding->lengths;

    HR_TRY(check_value(infer, padding));
    for (int i = 0; i < lengths->count; i++) {
        const struct hr_field *item =
            hr__schema_get(&infer->inputs[0], lengths->values[i]);
        const struct hr_field *batch = hr__schema_get(infer->output, lengths->values[i]);

        HR_TRY(infer_length(infer, item, &batch->dims[0]));
    }
    return HR_OK;
}

struct hr_stack_spec hr__padding_spec(const struct hr_padding *padding, int64_t size)
{
    return (struct hr_stack_spec){.size = size,
                                  .drop_last = padding->drop_last,
                                  .pad = true,
                                  .pad_value = padding->value,
                                  .pad_multiple = padding->multiple,
                                  .lengths = &padding->lengths};
}
