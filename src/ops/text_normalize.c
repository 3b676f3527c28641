/*
 * text.normalize - text to a normal form of Unicode.
 */
#include "codec/text.h"
#include "ops/text.h"

struct normalize {
    const char *field;
    int form;
};

static const char *const forms[] = {
    [HR_NFC] = "nfc", [HR_NFD] = "nfd", [HR_NFKC] = "nfkc", [HR_NFKD] = "nfkd", NULL};

static const struct hr_param normalize_params[] = {
    HR_P_ENUM(struct normalize, form, .fallback = "nfc", .names = forms,
              .help =
                  "c: composed, d: decomposed; k: characters that only look different "
                  "(ligatures, full width) become the usual ones"),
    HR_P_TEXT(struct normalize),
};

static enum hr_err normalize_apply(struct hr_op_ctx *ctx)
{
    const struct normalize *p = ctx->params;
    enum hr_normal_form form = (enum hr_normal_form)p->form;
    struct hr_value *text = ctx->fields[0];
    size_t count, bytes;
    void *codes, *to;

    if (hr__text_is_normal(text->data, text->bytes, form))
        return HR_OK;
    count = hr__text_decomposed(text->data, text->bytes, form);
    HR_TRY(hr__op_alloc(ctx, 2 * count * sizeof(uint32_t), &codes));
    HR_TRY(hr__op_alloc(ctx, 4 * count, &to));
    bytes = hr__text_normalize(text->data, text->bytes, form, codes, count, to);
    hr__value_clear(text);
    hr__value_set_bytes(text, to, bytes, NULL);
    return HR_OK;
}

const struct hr_op hr_op_text_normalize = {
    .name = "text.normalize",
    .summary = "text to a normal form of Unicode",
    .doc = "The forms NFC, NFD, NFKC and NFKD of Unicode 16.0, whatever libraries are "
           "installed. Bytes that are not UTF-8 stay as they are.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(normalize_params, struct normalize),
    .infer = hr__infer_text_to_text,
    .apply = normalize_apply,
};
