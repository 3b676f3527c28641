/*
 * text.strip - removes white space at the ends of a text.
 */
#include "codec/text.h"
#include "ops/text.h"

struct strip {
    const char *field;
    int side;
};

enum { SIDE_BOTH, SIDE_START, SIDE_END };
static const char *const sides[] = {"both", "start", "end", NULL};

static const struct hr_param strip_params[] = {
    HR_P_ENUM(struct strip, side, .fallback = "both", .names = sides,
              .help = "which end of the text"),
    HR_P_TEXT(struct strip),
};

/* The result shows the input's bytes. */
static enum hr_err strip_apply(struct hr_op_ctx *ctx)
{
    const struct strip *p = ctx->params;
    struct hr_value *text = ctx->fields[0];
    size_t start = 0;

    if (text->bytes == 0)
        return HR_OK;
    if (p->side != SIDE_END)
        start = hr__text_white_start(text->data, text->bytes);
    text->data = (char *)text->data + start;
    text->bytes -= start;
    if (p->side != SIDE_START)
        text->bytes -= hr__text_white_end(text->data, text->bytes);
    return HR_OK;
}

const struct hr_op hr_op_text_strip = {
    .name = "text.strip",
    .summary = "remove white space at the ends of a text",
    .doc =
        "White space is what Unicode 16.0 calls White_Space: what Python's `str.strip` "
        "removes, except U+001C to U+001F.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(strip_params, struct strip),
    .infer = hr__infer_text_to_text,
    .apply = strip_apply,
};
