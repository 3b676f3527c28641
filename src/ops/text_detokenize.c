/*
 * text.detokenize - token ids back to text.
 */
#include "ops/tokenizer_files.h"

#include <string.h>

struct detokenize {
    const char *field, *to, *model;
    struct hr_tokenizer_files files;
};

static const struct hr_param detokenize_params[] = {
    HR_P_FIELD(struct detokenize, field, .fallback = "tokens", .access = HR_ACCESS_TAKE,
               .help = "the field with the ids; it is dropped"),
    HR_P_FIELD(struct detokenize, to, .fallback = "text", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the text"),
    HR_P_TOKENIZER_FILES(struct detokenize),
    HR_P_PATH(struct detokenize, model, .not_identity = true,
              .help = "or a model as in text.tokenize_unigram"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err detokenize_infer(struct hr_infer *infer)
{
    const struct detokenize *p = infer->params;
    const struct hr_field *from = hr__schema_get(&infer->inputs[0], p->field);
    struct hr_field *to = infer->fields[FIELD_TO];
    struct hr_field text = {.kind = HR_FIELD_BYTES, .meaning = HR_MEANING_TEXT};

    if (p->model == NULL)
        HR_TRY(hr__tokenizer_files_infer(infer, &p->files));
    else if (hr__tokenizer_files_any(&p->files))
        return hr__infer_fail(infer, "model", HR_ERR_ARGUMENT,
                              "give a model or the files of a BPE tokenizer, not both");
    if (from->kind != HR_FIELD_TENSOR || from->ndim != 1 || from->dtype != HR_I32)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a list of int32", p->field);
    memcpy(text.name, to->name, sizeof text.name);
    text.slot = to->slot;
    *to = text;
    return HR_OK;
}

static enum hr_err detokenize_open(const struct hr_open *open, void **ret_state)
{
    const struct detokenize *p = open->params;

    return p->model != NULL ? hr__unigram_open(p->model, ret_state, open->error)
                            : hr__tokenizer_files_open(&p->files, ret_state, open->error);
}

static enum hr_err detokenize_apply(struct hr_op_ctx *ctx)
{
    struct hr_value *list = ctx->fields[FIELD_FROM];
    size_t count = (size_t)list->dims[0], bytes = 0;
    void *ids = list->data, *text;

    if (!hr__value_contiguous(list)) {
        HR_TRY(hr__op_alloc(ctx, count * sizeof(int32_t), &ids));
        hr__value_copy(list, ids);
    }
    /* Only to learn how long the text is; an id that is no token fails below. */
    if (hr_tokenizer_decode(ctx->state, ids, count, NULL, 0, &bytes, NULL) ==
        HR_ERR_RANGE)
        bytes = 0;
    HR_TRY(hr__op_alloc(ctx, bytes, &text));
    HR_TRY(hr_tokenizer_decode(ctx->state, ids, count, text, bytes, &bytes, ctx->error));
    hr__value_clear(list);
    hr__value_set_bytes(ctx->fields[FIELD_TO], text, bytes, NULL);
    return HR_OK;
}

const struct hr_op hr_op_text_detokenize = {
    .name = "text.detokenize",
    .summary = "token ids back to text",
    .doc = "int32 `[tokens]` to a byte string: the bytes of the tokens one after the "
           "other, which are those of the text that text.tokenize_bpe was given. With "
           "`model` it is the text as normalised by the model, without control symbols; "
           "with a tokenizer.json of WordPiece or Unigram, the tokens as its decoder "
           "joins them. "
           "An id that is no token is an error. The files are as in text.tokenize_bpe "
           "and text.tokenize_unigram.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(detokenize_params, struct detokenize),
    .infer = detokenize_infer,
    .open = detokenize_open,
    .close = hr__tokenizer_close,
    .identity = hr__tokenizer_identity,
    .apply = detokenize_apply,
};
