/*
 * ops/join_fill.c - what the fields of the second input become in records of a left join
 * that have no match there.
 *
 * A number fills tensors of fixed shape, a text byte strings. Lists, and tensors whose
 * shape differs between records, become empty ones. Photos and other files cannot be made
 * up, nor can pictures without a size, nor as many items as all other records have.
 */
#include "ops/join_fill.h"

#include <string.h>

#include "core/alloc.h"
#include "op/ragged.h"
#include "ops/fill.h"

struct filled {
    struct hr_field field; /* unknown dimensions are 0 */
    const char *text;      /* BYTES */
    char element[8];       /* TENSOR */
};

struct hr_join_fills {
    size_t count;
    struct filled items[];
};

/* The text of the field's value, "" for an empty list; NULL: there is none. */
static const char *text_of(const struct hr_pairs *fill, const char *name)
{
    for (int i = 0; i < fill->count; i++) {
        const char *text = fill->values[i];

        if (strcmp(fill->keys[i], name) == 0)
            return text[0] == '=' ? text + 1 + strspn(text + 1, " ") : text;
    }
    return NULL;
}

static bool is_list(const struct hr_field *field)
{
    return field->kind == HR_FIELD_RAGGED || field->kind == HR_FIELD_STRINGS;
}

/* What no value stands for. */
static enum hr_err refuse_kind(struct hr_infer *infer, const struct hr_field *field)
{
    const char *why = NULL;

    if (field->kind == HR_FIELD_BYTES && field->meaning == HR_MEANING_ENCODED)
        why = "the bytes of a file";
    else if (is_list(field) && field->dims[0].size != HR_DIM_UNKNOWN)
        why = "a list of a fixed number of items";
    else if (hr__field_has_pixels(field) && hr__field_has_unknown_dims(field))
        why = "a picture of any size";
    if (why == NULL)
        return HR_OK;
    return hr__infer_fail(infer, "how", HR_ERR_GRAPH,
                          "\"%s\" is %s, which cannot be made up for a record without a "
                          "match: make that input the first one, or %s before the join",
                          field->name, why,
                          hr__field_has_pixels(field) ? "resize all pictures to one size"
                                                      : "drop the field");
}

static enum hr_err
refuse_missing(struct hr_infer *infer, const struct hr_field *field, bool list)
{
    return hr__infer_fail(
        infer, "fill", HR_ERR_GRAPH,
        "a record without a match has no \"%s\": say what it becomes, "
        "such as \"fill: {%s: %s}\", or name a new field that is true "
        "where there is a match, such as \"matched: found\"; others are "
        "then zeros, and empty texts and lists",
        field->name, field->name, field->kind == HR_FIELD_BYTES || list ? "'='" : "-1");
}

enum hr_err hr__join_fill_check(struct hr_infer *infer, size_t at,
                                const struct hr_pairs *fill, bool told)
{
    const struct hr_field *field = &infer->output->fields[at];
    const char *text = text_of(fill, field->name);
    bool list = is_list(field) || hr__field_has_unknown_dims(field);
    char element[8], type[100];

    HR_TRY(refuse_kind(infer, field));
    if (text == NULL)
        return told ? HR_OK : refuse_missing(infer, field, list);
    if (field->kind == HR_FIELD_BYTES ||
        (list ? text[0] == '\0' : hr__fill_parse(text, field->dtype, element)))
        return HR_OK;
    return hr__infer_fail(infer, "fill", HR_ERR_ARGUMENT,
                          "\"%.80s\" is no value of \"%s\", which is %s%s", text,
                          field->name, hr__field_text(field, type, sizeof type),
                          list ? ": it can only be empty, \"=\"" : "");
}

enum hr_err
hr__join_fill_names(struct hr_infer *infer, size_t first, const struct hr_pairs *fill)
{
    const char *names[HR_SCHEMA_FIELDS_MAX], *near;
    size_t count = 0;

    for (size_t i = first; i < infer->output->count; i++)
        names[count++] = infer->output->fields[i].name;
    for (int i = 0; i < fill->count; i++) {
        size_t k = 0;

        while (k < count && strcmp(names[k], fill->keys[i]) != 0)
            k++;
        if (k < count)
            continue;
        near = hr__nearest(fill->keys[i], names, count);
        return hr__infer_fail(infer, "fill", HR_ERR_ARGUMENT,
                              "after the join, no field of the second input is called "
                              "\"%.63s\"%s%s%s",
                              fill->keys[i], near != NULL ? "; did you mean \"" : "",
                              near != NULL ? near : "", near != NULL ? "\"?" : "");
    }
    return HR_OK;
}

struct hr_join_fills *
hr__join_fills_create(const struct hr_schema *output, const struct hr_pairs *fill)
{
    struct hr_join_fills *fills =
        hr__calloc(1, sizeof *fills + output->count * sizeof fills->items[0]);

    if (fills == NULL)
        return NULL;
    fills->count = output->count;
    for (size_t i = 0; i < output->count; i++) {
        struct filled *to = &fills->items[i];
        const char *text = text_of(fill, output->fields[i].name);

        to->field = output->fields[i];
        for (int d = 0; d < to->field.ndim; d++)
            if (to->field.dims[d].size < 0)
                to->field.dims[d].size = 0;
        to->text = text != NULL ? text : "";
        /* A list without elements needs no value. */
        if (text != NULL && to->field.kind == HR_FIELD_TENSOR)
            (void)hr__fill_parse(text, to->field.dtype, to->element);
    }
    return fills;
}

void hr__join_fills_destroy(struct hr_join_fills *fills)
{
    hr__free(fills);
}

static enum hr_err
fill_tensor(const struct filled *filled, struct hr_op_ctx *ctx, struct hr_value *value)
{
    const struct hr_field *field = &filled->field;
    size_t size = hr_dtype_size(field->dtype), count = 1;
    int64_t dims[HR_MAX_DIMS] = {0};
    void *memory;

    for (int d = 0; d < field->ndim; d++) {
        dims[d] = field->dims[d].size;
        count *= (size_t)dims[d];
    }
    HR_TRY(hr__op_alloc(ctx, count * size + 1, &memory));
    for (size_t i = 0; i < count; i++)
        memcpy((char *)memory + i * size, filled->element, size);
    hr__value_set_tensor(value, field->dtype, field->ndim, dims, memory, NULL);
    value->layout = (uint8_t)field->layout;
    return HR_OK;
}

static enum hr_err
fill_list(const struct filled *filled, struct hr_op_ctx *ctx, struct hr_value *value)
{
    const struct hr_field *field = &filled->field;
    bool strings = field->kind == HR_FIELD_STRINGS;
    struct hr_ragged *ragged;
    int64_t *none;
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof *ragged + sizeof *none, &memory));
    ragged = memory;
    none = (int64_t *)(ragged + 1);
    *none = 0;
    *ragged = (struct hr_ragged){.levels = field->levels,
                                 .item_ndim = strings ? 0 : field->ndim - 1,
                                 .shapes = none};
    for (int i = 0; i < field->levels; i++)
        ragged->splits[i] = none;
    hr__ragged_set(value, strings ? HR_U8 : field->dtype, 0, ragged, none, 0, NULL);
    return HR_OK;
}

enum hr_err hr__join_fill(const struct hr_join_fills *fills, struct hr_op_ctx *ctx,
                          size_t field, struct hr_value *value)
{
    const struct filled *filled = &fills->items[field];
    size_t bytes = strlen(filled->text);
    void *memory;

    if (filled->field.kind == HR_FIELD_TENSOR)
        return fill_tensor(filled, ctx, value);
    if (is_list(&filled->field))
        return fill_list(filled, ctx, value);
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, filled->text, bytes + 1);
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}
