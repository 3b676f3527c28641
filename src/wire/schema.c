/*
 * wire/schema.c - fields and schemas to bytes and back.
 */
#include "wire/schema.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

_Static_assert(HR_FIELD_TENSOR == 0 && HR_FIELD_BYTES == 1 && HR_FIELD_RAGGED == 2 &&
                   HR_FIELD_STRINGS == 3,
               "kinds of fields are part of the format");
_Static_assert(HR_MEANING_NONE == 0 && HR_MEANING_IMAGE_NORMAL == 6 &&
                   HR_MEANING_SAMPLES == 10,
               "meanings are part of the format");
_Static_assert(HR_LAYOUT_NONE == 0 && HR_LAYOUT_CHW == 2,
               "layouts are part of the format");

/* A field: this head, its name, the rate of SAMPLES, then for each dim a size and a name.
 */
struct field_head {
    uint8_t kind, dtype, ndim, meaning, layout, levels, name_bytes;
};

struct schema_head {
    int64_t records;
    uint32_t fields;
    int32_t batch_rank;
};

_Static_assert(sizeof(struct field_head) == 7, "the format has no padding");
_Static_assert(sizeof(struct schema_head) == 16, "the format has no padding");

static void write_name(const char *name, size_t most, struct hr_str *out)
{
    size_t bytes = strnlen(name, most);

    hr__str_add_bytes(out, &(uint8_t){(uint8_t)bytes}, 1);
    hr__str_add_bytes(out, name, bytes);
}

void hr__wire_field_write(const struct hr_field *field, struct hr_str *out)
{
    struct field_head head = {.kind = (uint8_t)field->kind,
                              .dtype = (uint8_t)field->dtype,
                              .ndim = (uint8_t)field->ndim,
                              .meaning = (uint8_t)field->meaning,
                              .layout = (uint8_t)field->layout,
                              .levels = (uint8_t)field->levels,
                              .name_bytes =
                                  (uint8_t)strnlen(field->name, HR_FIELD_NAME_MAX)};

    assert(field->ndim >= 0 && field->ndim <= HR_MAX_DIMS);
    hr__str_add_bytes(out, &head, sizeof head);
    hr__str_add_bytes(out, field->name, head.name_bytes);
    if (field->meaning == HR_MEANING_SAMPLES)
        hr__str_add_bytes(out, &field->rate, sizeof field->rate);
    for (int i = 0; i < field->ndim; i++) {
        hr__str_add_bytes(out, &field->dims[i].size, sizeof(int64_t));
        write_name(field->dims[i].name, HR_DIM_NAME_MAX, out);
    }
}

void hr__wire_schema_write(const struct hr_schema *schema, struct hr_str *out)
{
    struct schema_head head = {schema->records, (uint32_t)schema->count,
                               schema->batch_rank};

    assert(schema->count <= HR_SCHEMA_FIELDS_MAX);
    hr__str_add_bytes(out, &head, sizeof head);
    for (size_t i = 0; i < schema->count; i++)
        hr__wire_field_write(&schema->fields[i], out);
}

bool hr__wire_take(struct hr_wire_input *in, void *to, size_t bytes)
{
    if (in->failed || bytes > in->left) {
        in->failed = true;
        memset(to, 0, bytes);
        return false;
    }
    if (bytes > 0)
        memcpy(to, in->at, bytes);
    in->at += bytes;
    in->left -= bytes;
    return true;
}

static bool take_name(struct hr_wire_input *in, char *to, size_t bytes, size_t most)
{
    if (bytes > most || !hr__wire_take(in, to, bytes) || memchr(to, '\0', bytes) != NULL)
        in->failed = true;
    to[in->failed ? 0 : bytes] = '\0';
    return !in->failed;
}

static bool take_dim(struct hr_wire_input *in, struct hr_dim *dim)
{
    uint8_t bytes;

    return hr__wire_take(in, &dim->size, sizeof dim->size) &&
           hr__wire_take(in, &bytes, 1) &&
           take_name(in, dim->name, bytes, HR_DIM_NAME_MAX) &&
           dim->size >= HR_DIM_UNKNOWN;
}

static bool take_rate(struct hr_wire_input *in, int32_t *ret_rate)
{
    return hr__wire_take(in, ret_rate, sizeof *ret_rate) && *ret_rate >= 0;
}

static bool head_is_sound(const struct field_head *head)
{
    bool typed = head->kind == HR_FIELD_TENSOR || head->kind == HR_FIELD_RAGGED;
    bool nested = head->kind == HR_FIELD_RAGGED || head->kind == HR_FIELD_STRINGS;

    return head->kind <= HR_FIELD_STRINGS && nested == (head->levels > 0) &&
           head->levels <= HR_FIELD_LEVELS_MAX && head->ndim <= HR_MAX_DIMS &&
           head->meaning <= HR_MEANING_SAMPLES && head->layout <= HR_LAYOUT_CHW &&
           (hr_dtype_size((enum hr_dtype)head->dtype) > 0 ||
            (!typed && head->dtype == HR_DTYPE_NONE));
}

bool hr__wire_field_read(struct hr_wire_input *in, struct hr_field *ret_field)
{
    struct hr_field field = {0};
    struct field_head head;

    if (!hr__wire_take(in, &head, sizeof head) || !head_is_sound(&head) ||
        !take_name(in, field.name, head.name_bytes, HR_FIELD_NAME_MAX) ||
        (head.meaning == HR_MEANING_SAMPLES && !take_rate(in, &field.rate))) {
        in->failed = true;
        return false;
    }
    field.kind = (enum hr_field_kind)head.kind;
    field.dtype = (enum hr_dtype)head.dtype;
    field.ndim = head.ndim;
    field.meaning = (enum hr_meaning)head.meaning;
    field.layout = (enum hr_layout)head.layout;
    field.levels = head.levels;
    for (int i = 0; i < field.ndim; i++)
        if (!take_dim(in, &field.dims[i])) {
            in->failed = true;
            return false;
        }
    *ret_field = field;
    return true;
}

bool hr__wire_schema_read(struct hr_wire_input *in, struct hr_schema *ret_schema)
{
    struct schema_head head;

    if (!hr__wire_take(in, &head, sizeof head) || head.fields > HR_SCHEMA_FIELDS_MAX ||
        head.records < -1 || head.batch_rank < 0) {
        in->failed = true;
        return false;
    }
    memset(ret_schema, 0, sizeof *ret_schema);
    ret_schema->records = head.records;
    ret_schema->batch_rank = head.batch_rank;
    for (size_t i = 0; i < head.fields; i++)
        if (!hr__wire_field_read(in, &ret_schema->fields[i]))
            return false;
    ret_schema->count = head.fields;
    return true;
}

/* ---- names of classes ---- */

/* The names of a field: this head, then each with its NUL. */
struct classes_head {
    uint32_t field, count;
};

_Static_assert(sizeof(struct classes_head) == 8, "the format has no padding");

void hr__wire_classes_write(const struct hr_schema *schema, struct hr_str *out)
{
    for (size_t i = 0; i < schema->count; i++) {
        const struct hr_field_classes *classes = schema->fields[i].classes;
        struct classes_head head = {.field = (uint32_t)i};

        if (classes == NULL || classes->count == 0)
            continue;
        assert(classes->count <= UINT32_MAX);
        head.count = (uint32_t)classes->count;
        hr__str_add_bytes(out, &head, sizeof head);
        for (size_t k = 0; k < classes->count; k++)
            hr__str_add_bytes(out, classes->names[k], strlen(classes->names[k]) + 1);
    }
}

static const char *take_text(struct hr_wire_input *in)
{
    const char *text = in->at, *end = memchr(text, '\0', in->left);

    if (end == NULL)
        return NULL;
    in->left -= (size_t)(end + 1 - text);
    in->at = end + 1;
    return text;
}

static bool is_class_number(const struct hr_field *field)
{
    return (field->kind == HR_FIELD_TENSOR || field->kind == HR_FIELD_RAGGED) &&
           hr__dtype_is_integer(field->dtype);
}

static enum hr_err take_classes(struct hr_wire_input *in, struct hr_schema *schema,
                                struct hr_wire_classes *classes)
{
    struct hr_field_classes *of;
    struct classes_head head;
    const char **names;

    if (!hr__wire_take(in, &head, sizeof head) || head.field >= schema->count ||
        head.count == 0 || head.count > in->left ||
        classes->of[head.field].names != NULL ||
        !is_class_number(&schema->fields[head.field]))
        return HR_ERR_FORMAT;
    of = &classes->of[head.field];
    names = hr__malloc(head.count * sizeof *names);
    if (names == NULL)
        return HR_ERR_MEMORY;
    of->names = names;
    for (of->count = 0; of->count < head.count; of->count++) {
        names[of->count] = take_text(in);
        if (names[of->count] == NULL)
            return HR_ERR_FORMAT;
    }
    schema->fields[head.field].classes = of;
    return HR_OK;
}

enum hr_err hr__wire_classes_read(struct hr_wire_input *in, struct hr_schema *schema,
                                  struct hr_wire_classes *ret_classes)
{
    memset(ret_classes, 0, sizeof *ret_classes);
    while (in->left > 0)
        HR_TRY(take_classes(in, schema, ret_classes));
    return HR_OK;
}

void hr__wire_classes_finish(struct hr_wire_classes *classes)
{
    for (size_t i = 0; i < HR_SCHEMA_FIELDS_MAX; i++)
        hr__free((void *)classes->of[i].names);
}
