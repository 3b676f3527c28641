/*
 * ops/text.c - shared by the ops that change a text.
 */
#include "ops/text.h"

#include <string.h>

enum hr_err hr__infer_text(struct hr_infer *infer)
{
    const struct hr_field *field =
        hr__schema_get(&infer->inputs[0], infer->fields[0]->name);

    if (field->kind == HR_FIELD_BYTES)
        return HR_OK;
    return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                          "field \"%s\" is no text: it must be a byte string",
                          field->name);
}

enum hr_err hr__infer_text_to_text(struct hr_infer *infer)
{
    HR_TRY(hr__infer_text(infer));
    infer->fields[0]->meaning = HR_MEANING_TEXT;
    return HR_OK;
}

void hr__infer_tokens(struct hr_field *field)
{
    struct hr_field tokens = {.kind = HR_FIELD_TENSOR, .dtype = HR_I32, .ndim = 1};

    memcpy(tokens.name, field->name, sizeof tokens.name);
    tokens.slot = field->slot;
    hr__dim_unknown(&tokens.dims[0], "tokens");
    *field = tokens;
}
