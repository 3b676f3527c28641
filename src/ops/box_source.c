/*
 * box_source.c - fields of sources of images with boxes.
 */
#include "ops/box_source.h"

#include <stdio.h>
#include <string.h>

#include "core/str.h"

enum hr_err
hr__choose_columns(const struct hr_names *given, const char *const *columns, int count,
                   const char *words, bool *wanted, struct hr_error *error)
{
    for (int i = 0; i < given->count; i++) {
        const char *name = given->values[i], *near;
        int kind = 0;

        while (kind < count && strcmp(columns[kind], name) != 0)
            kind++;
        if (kind < count) {
            wanted[kind] = true;
            continue;
        }
        near = hr__nearest(name, columns, (size_t)count);
        snprintf(error->param, sizeof error->param, "columns");
        return hr__fail(error, HR_ERR_ARGUMENT, "no column \"%s\": %s can be fields%s%s",
                        name, words, near != NULL ? "; did you mean " : "",
                        near != NULL ? near : "");
    }
    return HR_OK;
}

void hr__infer_bytes(struct hr_field *field, enum hr_meaning meaning)
{
    field->kind = HR_FIELD_BYTES;
    field->meaning = meaning;
}

void hr__infer_box_list(struct hr_field *field, enum hr_dtype dtype)
{
    field->dtype = dtype;
    field->ndim = 1;
    hr__dim_unknown(&field->dims[0], "boxes");
}

void hr__infer_boxes(struct hr_field *field)
{
    hr__infer_box_list(field, HR_F32);
    field->ndim = 2;
    hr__dim_set(&field->dims[1], 4);
    field->meaning = HR_MEANING_BOXES;
}

void hr__infer_box_labels(struct hr_field *field, const struct hr_field_classes *classes)
{
    hr__infer_box_list(field, HR_I64);
    field->meaning = HR_MEANING_LABEL;
    field->classes = classes;
}

static enum hr_err new_rows(struct hr_op_ctx *ctx, size_t field, enum hr_dtype dtype,
                            size_t count, int64_t columns, void **ret_data)
{
    int64_t dims[2] = {(int64_t)count, columns};

    HR_TRY(
        hr__op_alloc(ctx, count * (size_t)columns * hr_dtype_size(dtype) + 1, ret_data));
    hr__value_set_tensor(ctx->fields[field], dtype, columns > 1 ? 2 : 1, dims, *ret_data,
                         NULL);
    return HR_OK;
}

enum hr_err
hr__new_boxes(struct hr_op_ctx *ctx, size_t field, size_t count, float **ret_boxes)
{
    void *data;

    HR_TRY(new_rows(ctx, field, HR_F32, count, 4, &data));
    *ret_boxes = data;
    return HR_OK;
}

enum hr_err hr__new_box_list(struct hr_op_ctx *ctx, size_t field, enum hr_dtype dtype,
                             size_t count, void **ret_data)
{
    return new_rows(ctx, field, dtype, count, 1, ret_data);
}

enum hr_err hr__set_text(struct hr_op_ctx *ctx, size_t field, const char *text)
{
    size_t bytes = strlen(text);
    void *memory;

    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, text, bytes + 1);
    hr__value_set_bytes(ctx->fields[field], memory, bytes, NULL);
    return HR_OK;
}
