/*
 * op/infer.c - what most infer functions ask of a field.
 *
 * Encoded bytes where pixels are needed is the most common wrong order; the message says
 * which op fixes it. That name is for people only: no decision depends on it.
 */
#include "op/kind.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum hr_err hr__infer_fail(struct hr_infer *infer, const char *param, enum hr_err code,
                           const char *format, ...)
{
    char message[sizeof infer->error->message];
    va_list args;

    assert(code != HR_OK);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (param != NULL && infer->error != NULL)
        snprintf(infer->error->param, sizeof infer->error->param, "%s", param);
    return hr__fail(infer->error, code, "%s", message);
}

enum hr_err hr__infer_order(struct hr_infer *infer, const char *param,
                            const struct hr_floats *interval)
{
    if (interval->values[0] <= interval->values[interval->count - 1])
        return HR_OK;
    return hr__infer_fail(infer, param, HR_ERR_RANGE,
                          "%s: the smaller number comes first", param);
}

enum hr_err hr__bind(struct hr_bindings *bindings, const char *name,
                     enum hr_param_access access, struct hr_error *error)
{
    struct hr_binding *binding = &bindings->items[bindings->count];

    assert(bindings->count <= HR_BINDINGS_MAX);
    if (bindings->count == HR_BINDINGS_MAX)
        return hr__fail(error, HR_ERR_LIMIT, "it reads and makes more than %d fields",
                        HR_BINDINGS_MAX);
    snprintf(binding->name, sizeof binding->name, "%s", name);
    binding->access = access;
    bindings->count++;
    return HR_OK;
}

void hr__infer_remove(struct hr_infer *infer, size_t field)
{
    assert(field < infer->field_count);
    hr__schema_remove(infer->output,
                      (size_t)(infer->fields[field] - infer->output->fields));
}

static const char *how_to_be_image(const struct hr_field *f)
{
    if (f->kind == HR_FIELD_TENSOR && f->ndim == 2)
        return "it lacks the channels, [height, width, 1]; of a NumPy array, array[..., "
               "None]";
    if (f->kind == HR_FIELD_TENSOR && f->ndim == 3 && f->dtype == HR_F32)
        return "declare levels of 0 to 1 an image with record.kind";
    return "that is uint8 [height, width, 1 to 4 channels], or float32 of 0 to 1 that "
           "record.kind declares one";
}

enum hr_err hr__infer_image(struct hr_infer *infer, size_t field)
{
    const struct hr_field *f = infer->fields[field];
    char text[128];

    assert(field < infer->field_count);
    if (hr__field_is_image(f))
        return HR_OK;
    if (hr__kind_of(f) != NULL)
        return hr__infer_fail(infer, f->name, HR_ERR_TYPE,
                              "field \"%s\" is of kind %s, and this needs an image",
                              f->name, hr__kind_of(f)->name);
    if (f->meaning == HR_MEANING_ENCODED)
        return hr__infer_fail(
            infer, f->name, HR_ERR_TYPE,
            "field \"%s\" is encoded bytes, not pixels: put image.decode "
            "before it",
            f->name);
    return hr__infer_fail(infer, f->name, HR_ERR_TYPE,
                          "field \"%s\" is %s, not an image: %s", f->name,
                          hr__field_text(f, text, sizeof text), how_to_be_image(f));
}

enum hr_err hr__infer_levels(struct hr_infer *infer, size_t field)
{
    const struct hr_field *f = infer->fields[field];

    HR_TRY(hr__infer_image(infer, field));
    if (f->meaning == HR_MEANING_IMAGE_NORMAL)
        return hr__infer_fail(
            infer, f->name, HR_ERR_TYPE,
            "field \"%s\" is normalised already, or cast without scale, "
            "and this needs levels (0..255 or 0..1): put it before that "
            "step",
            f->name);
    return HR_OK;
}

/* What makes a field of an input no field of the merge, or NULL. */
static const char *difference(const struct hr_field *a, const struct hr_field *b)
{
    if (a->kind != b->kind)
        return "kind";
    if (a->kind == HR_FIELD_TENSOR && a->dtype != b->dtype)
        return "dtype";
    if (a->ndim != b->ndim)
        return "number of dimensions";
    if (a->meaning != b->meaning)
        return "meaning";
    if (a->layout != b->layout)
        return "layout";
    return NULL;
}

static enum hr_err
merge_field(struct hr_infer *infer, size_t input, struct hr_field *field)
{
    const struct hr_field *other = hr__schema_get(&infer->inputs[input], field->name);
    char one[128], two[128];
    const char *what;

    if (other == NULL)
        return hr__infer_fail(infer, NULL, HR_ERR_GRAPH,
                              "input 1 has a field \"%s\", and input %zu has none: all "
                              "inputs must have the same fields (record.select, "
                              "record.rename)",
                              field->name, input + 1);
    what = difference(field, other);
    if (what != NULL)
        return hr__infer_fail(infer, NULL, HR_ERR_TYPE,
                              "field \"%s\" of input 1 is %s, and that of input %zu %s: "
                              "they differ in %s",
                              field->name, hr__field_text(field, one, sizeof one),
                              input + 1, hr__field_text(other, two, sizeof two), what);
    if (field->rate != other->rate)
        field->rate = 0;
    for (int d = 0; d < field->ndim; d++)
        if (field->dims[d].size != other->dims[d].size)
            field->dims[d].size = HR_DIM_UNKNOWN;
    return HR_OK;
}

enum hr_err hr__infer_merge(struct hr_infer *infer)
{
    struct hr_schema *out = infer->output;

    for (size_t i = 1; i < infer->input_count; i++) {
        const struct hr_schema *in = &infer->inputs[i];

        for (size_t f = 0; f < out->count; f++)
            HR_TRY(merge_field(infer, i, &out->fields[f]));
        for (size_t f = 0; f < in->count; f++)
            if (hr__schema_get(out, in->fields[f].name) == NULL)
                return hr__infer_fail(infer, NULL, HR_ERR_GRAPH,
                                      "input %zu has a field \"%s\", and input 1 has "
                                      "none: all inputs must have the same fields "
                                      "(record.select, record.rename)",
                                      i + 1, in->fields[f].name);
    }
    for (size_t f = 0; f < out->count; f++)
        out->fields[f].slot = 0;
    out->records = -1;
    return HR_OK;
}
