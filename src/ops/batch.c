/*
 * batch.c - the schema of batches, and of what is in them.
 */
#include "ops/batch.h"

#include <string.h>

/* dims[0] of a list of items is the batch's; those of the items follow. */
static enum hr_err batch_field(struct hr_infer *infer, struct hr_field *field,
                               const struct hr_dim *batch, bool ragged)
{
    if (field->meaning == HR_MEANING_SAMPLES && field->rate == 0)
        return hr__infer_fail(infer, NULL, HR_ERR_TYPE,
                              "the sounds in field \"%s\" may have different rates and "
                              "cannot share a batch: put audio.resample before it, or "
                              "give audio.decode the `rate` that all files have",
                              field->name);
    if (field->kind == HR_FIELD_RAGGED || field->kind == HR_FIELD_STRINGS) {
        if (field->levels == HR_FIELD_LEVELS_MAX)
            return hr__infer_fail(infer, NULL, HR_ERR_SHAPE,
                                  "field \"%s\" is nested in %d batches already",
                                  field->name, field->levels);
        field->levels++;
        field->dims[0] = *batch;
        return HR_OK;
    }
    if (field->ndim == HR_MAX_DIMS)
        return hr__infer_fail(infer, NULL, HR_ERR_SHAPE,
                              "field \"%s\" has %d dimensions, no room for one more",
                              field->name, field->ndim);
    if (field->kind == HR_FIELD_BYTES)
        field->kind = HR_FIELD_STRINGS;
    else if (ragged && hr__field_has_unknown_dims(field))
        field->kind = HR_FIELD_RAGGED;
    field->levels = field->kind != HR_FIELD_TENSOR;
    memmove(&field->dims[1], &field->dims[0], (size_t)field->ndim * sizeof *field->dims);
    field->dims[0] = *batch;
    field->ndim++;
    return HR_OK;
}

void hr__field_item(struct hr_field *field, const char *dim)
{
    if (field->levels > 1) {
        field->levels--;
        hr__dim_unknown(&field->dims[0], dim);
        return;
    }
    if (field->ndim < 1)
        return;
    field->kind = field->kind == HR_FIELD_STRINGS ? HR_FIELD_BYTES : HR_FIELD_TENSOR;
    field->levels = 0;
    field->ndim--;
    memmove(&field->dims[0], &field->dims[1],
            (size_t)field->ndim * sizeof field->dims[0]);
    memset(&field->dims[field->ndim], 0, sizeof field->dims[0]);
}

uint64_t hr__batch_count(uint64_t n, int64_t size, bool drop_last)
{
    return drop_last ? n - n % (uint64_t)size : n;
}

enum hr_err
hr__infer_batch(struct hr_infer *infer, int64_t size, bool drop_last, bool ragged)
{
    struct hr_schema *out = infer->output;
    bool full = drop_last || (out->records >= 0 && out->records % size == 0);
    struct hr_dim batch = {0};

    if (full)
        hr__dim_set(&batch, size);
    else
        hr__dim_unknown(&batch, "batch");
    for (size_t i = 0; i < out->count; i++)
        HR_TRY(batch_field(infer, &out->fields[i], &batch, ragged));
    if (out->records >= 0)
        out->records = (out->records + (drop_last ? 0 : size - 1)) / size;
    out->batch_rank++;
    return HR_OK;
}
