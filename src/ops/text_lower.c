/*
 * text.lower - text to lower case.
 */
#include "codec/text.h"
#include "ops/text.h"

struct lower {
    const char *field;
};

static const struct hr_param lower_params[] = {
    HR_P_TEXT(struct lower),
};

static enum hr_err lower_apply(struct hr_op_ctx *ctx)
{
    struct hr_value *text = ctx->fields[0];
    size_t bytes;
    void *to;

    HR_TRY(hr__op_alloc(ctx, HR_TEXT_LOWER_ROOM(text->bytes), &to));
    bytes = hr__text_lower(text->data, text->bytes, to);
    hr__value_clear(text);
    hr__value_set_bytes(text, to, bytes, NULL);
    return HR_OK;
}

const struct hr_op hr_op_text_lower = {
    .name = "text.lower",
    .summary = "text to lower case",
    .doc = "Each character becomes its lower case by Unicode 16.0, as Python's "
           "`str.lower` has it for that character alone: sigma at the end of a word is "
           "no exception. Bytes that are not UTF-8 stay as they are.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(lower_params, struct lower),
    .infer = hr__infer_text_to_text,
    .apply = lower_apply,
};
