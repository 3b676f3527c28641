/*
 * op/schema.c - fields by name, sizes of images by meaning, and fields as text.
 */
#include "op/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "headrace/graph.h"

static void copy_name(char *to, size_t room, const char *from)
{
    size_t length = strnlen(from, room - 1);

    assert(room > 0);

    memmove(to, from, length);
    memset(to + length, 0, room - length);
}

const struct hr_field *hr__schema_get(const struct hr_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++) {
        if (strcmp(schema->fields[i].name, name) == 0)
            return &schema->fields[i];
    }
    return NULL;
}

struct hr_field *hr__schema_find(struct hr_schema *schema, const char *name)
{
    return (struct hr_field *)(uintptr_t)hr__schema_get(schema, name);
}

struct hr_field *hr__schema_put(struct hr_schema *schema, const char *name)
{
    char kept[HR_FIELD_NAME_MAX + 1]; /* `name` may be the old field's own */
    struct hr_field *field = hr__schema_find(schema, name);

    assert(schema->count <= HR_SCHEMA_FIELDS_MAX);
    if (field == NULL && schema->count == HR_SCHEMA_FIELDS_MAX)
        return NULL;
    if (field == NULL)
        field = &schema->fields[schema->count++];
    copy_name(kept, sizeof kept, name);
    memset(field, 0, sizeof *field);
    memcpy(field->name, kept, sizeof kept);
    return field;
}

void hr__schema_remove(struct hr_schema *schema, size_t at)
{
    assert(at < schema->count);
    schema->count--;
    memmove(&schema->fields[at], &schema->fields[at + 1],
            (schema->count - at) * sizeof schema->fields[0]);
    memset(&schema->fields[schema->count], 0, sizeof schema->fields[0]);
}

bool hr__field_is_image(const struct hr_field *field)
{
    return field->kind == HR_FIELD_TENSOR && field->layout != HR_LAYOUT_NONE &&
           field->ndim >= 3 &&
           (field->meaning == HR_MEANING_IMAGE_U8 ||
            field->meaning == HR_MEANING_IMAGE_UNIT ||
            field->meaning == HR_MEANING_IMAGE_NORMAL);
}

bool hr__field_may_defer(const struct hr_field *field)
{
    return field->kind == HR_FIELD_TENSOR && field->layout != HR_LAYOUT_NONE;
}

bool hr__field_has_pixels(const struct hr_field *field)
{
    return hr__field_is_image(field) ||
           (field->kind == HR_FIELD_TENSOR && field->layout != HR_LAYOUT_NONE &&
            field->ndim >= 3 && field->meaning == HR_MEANING_MASK);
}

/* The last three dims are the image's, those before them the batch's. */
struct hr_dim *hr__field_height(struct hr_field *field)
{
    assert(field->ndim >= 3);
    return &field->dims[field->ndim - (field->layout == HR_LAYOUT_CHW ? 2 : 3)];
}

struct hr_dim *hr__field_width(struct hr_field *field)
{
    assert(field->ndim >= 3);
    return &field->dims[field->ndim - (field->layout == HR_LAYOUT_CHW ? 1 : 2)];
}

struct hr_dim *hr__field_channels(struct hr_field *field)
{
    assert(field->ndim >= 3);
    return &field->dims[field->ndim - (field->layout == HR_LAYOUT_CHW ? 3 : 1)];
}

bool hr__field_has_unknown_dims(const struct hr_field *field)
{
    for (int i = 0; i < field->ndim; i++)
        if (field->dims[i].size == HR_DIM_UNKNOWN)
            return true;
    return false;
}

int64_t hr__field_bytes(const struct hr_field *field)
{
    int64_t bytes = (int64_t)hr_dtype_size(field->dtype);

    if (field->kind != HR_FIELD_TENSOR)
        return -1;
    for (int i = 0; i < field->ndim; i++) {
        if (field->dims[i].size < 0 ||
            __builtin_mul_overflow(bytes, field->dims[i].size, &bytes))
            return -1;
    }
    return bytes;
}

void hr__dim_set(struct hr_dim *dim, int64_t size)
{
    memset(dim, 0, sizeof *dim);
    dim->size = size;
}

void hr__dim_unknown(struct hr_dim *dim, const char *name)
{
    dim->size = HR_DIM_UNKNOWN;
    copy_name(dim->name, sizeof dim->name, name);
}

static size_t add_dims(const struct hr_field *field, char *text, size_t room)
{
    size_t length = 0;

    for (int i = 0; i < field->ndim && length < room; i++) {
        const struct hr_dim *dim = &field->dims[i];
        const char *comma = i > 0 ? ", " : "";
        int wrote;

        if (dim->size >= 0)
            wrote = snprintf(text + length, room - length, "%s%lld", comma,
                             (long long)dim->size);
        else
            wrote = snprintf(text + length, room - length, "%s%s", comma,
                             dim->name[0] != '\0' ? dim->name : "?");
        length += (size_t)wrote;
    }
    return length;
}

const char *hr__field_text(const struct hr_field *field, char *text, size_t room)
{
    char dims[HR_MAX_DIMS * (HR_DIM_NAME_MAX + 3)] = "";
    const char *dtype = hr_dtype_name(field->dtype);

    add_dims(field, dims, sizeof dims);
    switch (field->kind) {
    case HR_FIELD_BYTES:
        snprintf(text, room, "%s", field->meaning == HR_MEANING_TEXT ? "text" : "bytes");
        break;
    case HR_FIELD_STRINGS:
        snprintf(text, room, "byte strings [%s]", dims);
        break;
    case HR_FIELD_RAGGED:
        snprintf(text, room, "ragged %s [%s]", dtype, dims);
        break;
    default:
        if (field->ndim == 0)
            snprintf(text, room, "%s", dtype);
        else if (field->meaning == HR_MEANING_SAMPLES && field->rate > 0)
            snprintf(text, room, "%s [%s] at %d Hz", dtype, dims, (int)field->rate);
        else
            snprintf(text, room, "%s [%s]", dtype, dims);
    }
    return text;
}

void hr__field_info(const struct hr_field *field, struct hr_field_info *ret_info)
{
    bool strings = field->kind == HR_FIELD_BYTES || field->kind == HR_FIELD_STRINGS;

    ret_info->name = field->name;
    ret_info->dtype = strings ? HR_DTYPE_NONE : field->dtype;
    ret_info->ragged = field->kind == HR_FIELD_RAGGED;
    ret_info->text = field->meaning == HR_MEANING_TEXT;
    ret_info->ndim = field->ndim;
    for (int i = 0; i < field->ndim; i++) {
        ret_info->dims[i] = field->dims[i].size;
        ret_info->dim_names[i] = field->dims[i].name;
    }
    ret_info->classes = field->classes != NULL ? field->classes->names : NULL;
    ret_info->class_count = field->classes != NULL ? field->classes->count : 0;
}
