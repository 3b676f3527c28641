/*
 * engine/batch.c - batches: one allocation per field, whatever the records were.
 */
#include "engine/batch.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/pixels.h"

struct hr_batch *hr__batch_create(const struct hr_out_field *fields, size_t count)
{
    size_t text = 0;
    struct hr_batch *batch;
    char *at;

    for (size_t i = 0; i < count; i++)
        text += strlen(fields[i].field->name) + 1;
    batch = hr__calloc(1, sizeof *batch +
                              count * (sizeof(struct hr_value) + sizeof(char *)) + text);
    if (batch == NULL)
        return NULL;
    batch->refs = 1;
    batch->field_count = count;
    batch->values = (struct hr_value *)(batch + 1);
    batch->names = (const char **)(batch->values + count);
    at = (char *)(batch->names + count);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(fields[i].field->name) + 1;

        memcpy(at, fields[i].field->name, length);
        batch->names[i] = at;
        at += length;
    }
    return batch;
}

enum hr_err hr__column_get(struct hr_pool *pool, const struct hr_out_field *field,
                           int64_t records, struct hr_buffer **ret_buffer)
{
    size_t bytes;

    if (__builtin_mul_overflow((size_t)field->bytes, (size_t)records, &bytes))
        return HR_ERR_LIMIT;
    return hr_pool_get(pool, bytes, ret_buffer);
}

void hr__column_value(struct hr_value *value, const struct hr_out_field *field,
                      int64_t records, struct hr_buffer *column)
{
    const struct hr_field *f = field->field;
    int64_t dims[HR_MAX_DIMS];

    dims[0] = records;
    for (int i = 0; i < f->ndim; i++)
        dims[i + 1] = f->dims[i].size;
    hr__value_set_tensor(value, f->dtype, f->ndim + 1, dims, hr_buffer_data(column),
                         column);
    value->layout = (uint8_t)f->layout;
}

/* Byte strings, or lists of elements of `item` bytes. Offsets first, then the bytes, in
 * one buffer: one owner is enough. */
static enum hr_err
stack_ragged(struct hr_pool *pool, const struct hr_value *first, size_t stride,
             int64_t records, size_t item, struct hr_value *ret_value)
{
    size_t head = ((size_t)records + 1) * sizeof(int64_t), total = 0;
    struct hr_buffer *buffer;
    int64_t *offsets;
    char *bytes;

    for (int64_t i = 0; i < records; i++)
        total += first[(size_t)i * stride].bytes;
    HR_TRY(hr_pool_get(pool, head + total, &buffer));
    offsets = hr_buffer_data(buffer);
    bytes = (char *)hr_buffer_data(buffer) + head;
    offsets[0] = 0;
    for (int64_t i = 0; i < records; i++) {
        const struct hr_value *value = &first[(size_t)i * stride];

        if (value->kind == HR_VALUE_TENSOR)
            hr__value_copy(value, bytes + (size_t)offsets[i] * item);
        else if (value->bytes > 0)
            memcpy(bytes + offsets[i], value->data, value->bytes);
        offsets[i + 1] = offsets[i] + (int64_t)(value->bytes / item);
    }
    memset(ret_value, 0, sizeof *ret_value);
    ret_value->kind = HR_VALUE_RAGGED;
    ret_value->strings = first->kind == HR_VALUE_BYTES;
    ret_value->dtype = ret_value->strings ? HR_U8 : first->dtype;
    ret_value->ndim = 1;
    ret_value->dims[0] = records;
    ret_value->data = bytes;
    ret_value->bytes = total;
    ret_value->u.offsets = offsets;
    ret_value->owner = buffer;
    return HR_OK;
}

static const char *dims_text(const struct hr_value *value, char *text, size_t room)
{
    int at = snprintf(text, room, "[");

    for (int i = 0; i < value->ndim && at < (int)room; i++)
        at += snprintf(text + at, room - (size_t)at, "%s%lld", i == 0 ? "" : ", ",
                       (long long)value->dims[i]);
    if (at < (int)room)
        snprintf(text + at, room - (size_t)at, "]");
    return text;
}

/* The smallest shape that holds all; false when they differ and may not be padded. */
static enum hr_err
common_shape(const struct hr_out_field *field, const struct hr_value *first,
             size_t stride, int64_t records, const struct hr_batch_spec *spec,
             int64_t *ret_dims, bool *ret_pad, struct hr_error *reterr)
{
    char a[128], b[128];

    *ret_pad = false;
    memcpy(ret_dims, first->dims, sizeof first->dims);
    for (int64_t i = 1; i < records; i++) {
        const struct hr_value *value = &first[(size_t)i * stride];
        bool same = value->ndim == first->ndim;

        for (int d = 0; same && d < value->ndim; d++)
            same = value->dims[d] == ret_dims[d];
        if (same)
            continue;
        if (!spec->pad || value->ndim != first->ndim)
            return hr__fail(
                reterr, HR_ERR_SHAPE,
                "records of differing shape cannot be stacked: field '%s' is %s in "
                "one record and %s in another; give them one size (image.resize, "
                "image.random_resized_crop, ...) or use batch.pad",
                field->field->name, dims_text(first, a, sizeof a),
                dims_text(value, b, sizeof b));
        *ret_pad = true;
        for (int d = 0; d < value->ndim; d++)
            if (value->dims[d] > ret_dims[d])
                ret_dims[d] = value->dims[d];
    }
    if (spec->pad && spec->pad_multiple > 1) {
        for (int d = 0; d < first->ndim; d++) {
            int64_t rest = ret_dims[d] % spec->pad_multiple;

            if (field->field->dims[d].size >= 0 || rest == 0)
                continue;
            ret_dims[d] += spec->pad_multiple - rest;
            *ret_pad = true;
        }
    }
    return HR_OK;
}

static void fill_value(void *data, enum hr_dtype dtype, int64_t count, double value)
{
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case HR_U8:
        case HR_BOOL:
            ((uint8_t *)data)[i] = (uint8_t)value;
            break;
        case HR_I8:
            ((int8_t *)data)[i] = (int8_t)value;
            break;
        case HR_I16:
            ((int16_t *)data)[i] = (int16_t)value;
            break;
        case HR_U16:
            ((uint16_t *)data)[i] = (uint16_t)value;
            break;
        case HR_I32:
            ((int32_t *)data)[i] = (int32_t)value;
            break;
        case HR_I64:
            ((int64_t *)data)[i] = (int64_t)value;
            break;
        case HR_F32:
            ((float *)data)[i] = (float)value;
            break;
        case HR_F64:
            ((double *)data)[i] = value;
            break;
        case HR_F16:
            hr__f32_to_f16(&(float){(float)value}, (uint16_t *)data + i, 1);
            break;
        case HR_BF16:
            hr__f32_to_bf16(&(float){(float)value}, (uint16_t *)data + i, 1);
            break;
        case HR_DTYPE_NONE:
            break;
        }
    }
}

/* Copy a record's tensor into the corner of a larger one. */
static void copy_corner(const struct hr_value *value, const int64_t *dims, int d,
                        const char *from, char *to, size_t item)
{
    int64_t step = (int64_t)item;

    if (d == value->ndim) {
        memcpy(to, from, item);
        return;
    }
    for (int k = d + 1; k < value->ndim; k++)
        step *= dims[k];
    for (int64_t i = 0; i < value->dims[d]; i++)
        copy_corner(value, dims, d + 1, from + i * value->strides[d], to + i * step,
                    item);
}

static enum hr_err stack_tensors(struct hr_pool *pool, const struct hr_out_field *field,
                                 const struct hr_value *first, size_t stride,
                                 int64_t records, const struct hr_batch_spec *spec,
                                 struct hr_value *ret_value, struct hr_error *reterr)
{
    int64_t dims[HR_MAX_DIMS + 1], count = 1;
    size_t item = hr_dtype_size((enum hr_dtype)first->dtype), row;
    struct hr_buffer *buffer;
    char *at;
    bool pad;

    if (first->ndim >= HR_MAX_DIMS)
        return hr__fail(reterr, HR_ERR_SHAPE,
                        "field '%s' has %d dimensions; a batch would have more than %d",
                        field->field->name, first->ndim, HR_MAX_DIMS);
    HR_TRY(common_shape(field, first, stride, records, spec, dims + 1, &pad, reterr));
    dims[0] = records;
    for (int d = 0; d < first->ndim; d++)
        count *= dims[d + 1];
    row = (size_t)count * item;
    HR_TRY(hr_pool_get(pool, row * (size_t)records, &buffer));
    at = hr_buffer_data(buffer);
    if (pad)
        fill_value(at, (enum hr_dtype)first->dtype, count * records, spec->pad_value);
    for (int64_t i = 0; i < records; i++, at += row) {
        const struct hr_value *value = &first[(size_t)i * stride];

        if (pad)
            copy_corner(value, dims + 1, 0, value->data, at, item);
        else
            hr__value_copy(value, at);
    }
    hr__value_set_tensor(ret_value, (enum hr_dtype)first->dtype, first->ndim + 1, dims,
                         hr_buffer_data(buffer), buffer);
    ret_value->layout = (uint8_t)field->field->layout;
    return HR_OK;
}

static bool is_list(const struct hr_out_field *field, const struct hr_value *first,
                    const struct hr_batch_spec *spec)
{
    return spec->ragged && first->kind == HR_VALUE_TENSOR && first->ndim == 1 &&
           field->field->dims[0].size == HR_DIM_UNKNOWN;
}

enum hr_err hr__values_stack(struct hr_pool *pool, const struct hr_out_field *field,
                             const struct hr_value *first, size_t stride, int64_t records,
                             const struct hr_batch_spec *spec, struct hr_value *ret_value,
                             struct hr_error *reterr)
{
    enum hr_err code;

    if (first->kind == HR_VALUE_BYTES)
        code = stack_ragged(pool, first, stride, records, 1, ret_value);
    else if (is_list(field, first, spec))
        code = stack_ragged(pool, first, stride, records,
                            hr_dtype_size((enum hr_dtype)first->dtype), ret_value);
    else if (first->kind == HR_VALUE_TENSOR)
        code =
            stack_tensors(pool, field, first, stride, records, spec, ret_value, reterr);
    else
        return hr__fail(
            reterr, HR_ERR_UNSUPPORTED,
            "field '%s' is ragged already and cannot be batched again; unbatch it first",
            field->field->name);
    if (code == HR_ERR_MEMORY || code == HR_ERR_LIMIT)
        hr__fail(reterr, code, "no memory for a batch of field '%s'", field->field->name);
    return code;
}

struct hr_batch *hr_batch_ref(struct hr_batch *batch)
{
    if (batch != NULL)
        __atomic_fetch_add(&batch->refs, 1, __ATOMIC_RELAXED);
    return batch;
}

void hr_batch_unref(struct hr_batch *batch)
{
    if (batch == NULL || __atomic_fetch_sub(&batch->refs, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    for (size_t i = 0; i < batch->field_count; i++)
        hr__value_clear(&batch->values[i]);
    hr__free(batch);
}
