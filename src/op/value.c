/*
 * op/value.c - making, sharing and copying a field's value.
 *
 * Strided tensors are copied with the innermost contiguous run as one memcpy; anything
 * cleverer (transposes by tiles) belongs to the kernels.
 */
#include "op/value.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "op/op.h"

/* Everything but dims and strides, which mean nothing beyond ndim: this is called for
 * every record and field. */
static void
set_head(struct hr_value *value, enum hr_value_kind kind, enum hr_dtype dtype, int ndim)
{
    value->kind = (uint8_t)kind;
    value->dtype = (uint8_t)dtype;
    value->ndim = (uint8_t)ndim;
    value->layout = 0;
    value->shared = false;
    value->strings = false;
    value->u.ragged = NULL;
}

void hr__value_clear(struct hr_value *value)
{
    if (value->owner != NULL)
        hr_buffer_unref(value->owner);
    set_head(value, HR_VALUE_NONE, HR_DTYPE_NONE, 0);
    value->data = NULL;
    value->bytes = 0;
    value->owner = NULL;
}

void hr__value_alias(struct hr_value *to, struct hr_value *from)
{
    if (to == from)
        return;
    if (to->owner != NULL)
        hr_buffer_unref(to->owner);
    memcpy(to, from, offsetof(struct hr_value, dims)); /* before its bytes are stored to:
                                                          a wide load would wait */
    for (int i = 0; i < from->ndim; i++) {
        to->dims[i] = from->dims[i];
        to->strides[i] = from->strides[i];
    }
    to->shared = from->shared = true;
    if (to->owner != NULL)
        hr_buffer_ref(to->owner);
}

void hr__value_set_tensor(struct hr_value *value, enum hr_dtype dtype, int ndim,
                          const int64_t *dims, void *data, struct hr_buffer *owner)
{
    int64_t stride = (int64_t)hr_dtype_size(dtype);

    assert(stride > 0);
    assert(ndim >= 0 && ndim <= HR_MAX_DIMS);
    if (value->owner != NULL)
        hr_buffer_unref(value->owner);
    set_head(value, HR_VALUE_TENSOR, dtype, ndim);
    for (int i = ndim - 1; i >= 0; i--) {
        value->dims[i] = dims[i]; /* dims may be the value's own */
        value->strides[i] = stride;
        stride *= value->dims[i];
    }
    value->data = data;
    value->bytes = (size_t)stride;
    value->owner = owner;
}

void hr__value_set_bytes(struct hr_value *value, const void *data, size_t bytes,
                         struct hr_buffer *owner)
{
    assert(data != NULL || bytes == 0);
    if (value->owner != NULL)
        hr_buffer_unref(value->owner);
    set_head(value, HR_VALUE_BYTES, HR_DTYPE_NONE, 0);
    value->data = (void *)(uintptr_t)data;
    value->bytes = bytes;
    value->owner = owner;
}

bool hr__value_contiguous(const struct hr_value *value)
{
    int64_t stride = (int64_t)hr_dtype_size((enum hr_dtype)value->dtype);

    if (value->kind != HR_VALUE_TENSOR)
        return false;
    if (hr__value_count(value) == 0)
        return true;
    for (int i = value->ndim - 1; i >= 0; i--) {
        if (value->dims[i] != 1 && value->strides[i] != stride)
            return false;
        stride *= value->dims[i];
    }
    return true;
}

int64_t hr__value_count(const struct hr_value *value)
{
    int64_t count = 1;

    for (int i = 0; i < value->ndim; i++)
        count *= value->dims[i];
    return count;
}

enum hr_err hr__value_force(struct hr_thread *thread, struct hr_value *value, void *into,
                            struct hr_error *reterr)
{
    if (value->kind == HR_VALUE_DEFERRED) {
        if (!thread->describes)
            return value->u.lazy->class->force(thread, value, into, reterr);
        thread->describes = false;
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "records are only described here");
    }
    if (into == NULL)
        return HR_OK;
    if (value->kind == HR_VALUE_TENSOR)
        hr__value_copy(value, into);
    else if (value->bytes > 0)
        memcpy(into, value->data, value->bytes);
    return HR_OK;
}

void hr__value_force_early(struct hr_thread *thread, struct hr_value *value)
{
    struct hr_error error;

    if (value->kind != HR_VALUE_DEFERRED || thread->describes)
        return;
    if (hr__value_force(thread, value, NULL, &error) != HR_OK)
        thread->failed_node = 0;
    assert(value->kind == HR_VALUE_DEFERRED || hr__value_is_made(value));
}

bool hr__value_may_wait(struct hr_thread *thread, const struct hr_value *value,
                        enum hr_err code)
{
    assert(code != HR_OK && value->kind == HR_VALUE_DEFERRED);
    if (code == HR_ERR_MEMORY || value->u.lazy->class->encode == NULL)
        return false;
    thread->failed_node = 0;
    return true;
}

void hr__number_text(struct hr_str *out, enum hr_dtype dtype, const void *data)
{
    double number;
    float small;

    assert(hr__has_number_text(dtype));
    if (dtype == HR_F64) {
        memcpy(&number, data, sizeof number);
        hr__str_add_double(out, number);
    } else if (dtype == HR_F32) {
        memcpy(&small, data, sizeof small);
        hr__str_add_double(out, (double)small);
    } else {
        hr__str_addf(out, "%lld", (long long)hr__integer_at(dtype, data));
    }
}
