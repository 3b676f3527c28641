/*
 * engine/batch.c - batches: one buffer per field.
 */
#include "engine/batch.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

struct hr_batch *hr__batch_create(const struct hr_schema *schema, const char *more)
{
    size_t count = schema->count + (more != NULL);
    size_t name_bytes = 0;
    struct hr_batch *batch;
    char *at;

    for (size_t i = 0; i < count; i++)
        name_bytes += strlen(i < schema->count ? schema->fields[i].name : more) + 1;
    batch = hr__calloc(
        1, sizeof *batch +
               count * (sizeof(struct hr_value) + sizeof(char *) + sizeof(bool)) +
               name_bytes);
    if (batch == NULL)
        return NULL;
    batch->refs = 1;
    batch->field_count = count;
    batch->values = (struct hr_value *)(batch + 1);
    batch->names = (const char **)(batch->values + count);
    batch->texts = (bool *)(batch->names + count);
    at = (char *)(batch->texts + count);
    for (size_t i = 0; i < count; i++) {
        const char *name = i < schema->count ? schema->fields[i].name : more;
        size_t length = strlen(name) + 1;

        memcpy(at, name, length);
        batch->names[i] = at;
        batch->texts[i] =
            i < schema->count && schema->fields[i].meaning == HR_MEANING_TEXT;
        at += length;
    }
    return batch;
}

struct hr_value hr__value_rows(const struct hr_value *value, int64_t from, int64_t count)
{
    struct hr_value rows = *value;
    size_t bytes;

    assert(value->kind == HR_VALUE_TENSOR && value->ndim > 0 &&
           hr__value_contiguous(value));
    assert(from >= 0 && count > 0 && from + count <= value->dims[0]);
    bytes = value->bytes / (size_t)value->dims[0];
    rows.data = (char *)value->data + (size_t)from * bytes;
    rows.bytes = (size_t)count * bytes;
    rows.dims[0] = count;
    rows.owner = NULL;
    return rows;
}

struct hr_batch *hr__batch_row(struct hr_batch *batch, int64_t row)
{
    struct hr_batch *one =
        hr__malloc(sizeof *one + batch->field_count * sizeof *one->values);

    if (one == NULL)
        return NULL;
    *one = (struct hr_batch){.refs = 1,
                             .records = 1,
                             .epoch = batch->epoch,
                             .field_count = batch->field_count,
                             .whole = hr_batch_ref(batch),
                             .names = batch->names,
                             .texts = batch->texts,
                             .values = (struct hr_value *)(one + 1)};
    for (size_t i = 0; i < batch->field_count; i++) {
        one->values[i] = hr__value_rows(&batch->values[i], row, 1);
        one->values[i].owner = hr_buffer_ref(batch->values[i].owner);
        one->bytes += one->values[i].bytes;
    }
    return one;
}

enum hr_err hr__column_get(struct hr_pool *pool, const struct hr_out_field *field,
                           int64_t records, struct hr_buffer **ret_buffer)
{
    size_t bytes;

    if (__builtin_mul_overflow((size_t)field->bytes, (size_t)records, &bytes))
        return HR_ERR_LIMIT;
    return hr_pool_get(pool, bytes, ret_buffer);
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
    hr_batch_unref(batch->whole);
    hr__free(batch);
}
