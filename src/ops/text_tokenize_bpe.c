/*
 * text.tokenize_bpe - text to the ids of its tokens, by byte-level BPE.
 *
 * The tokenizer is the node's state, which all threads share. The files' contents, not
 * their paths, are part of the fingerprint.
 */
#include "codec/bpe.h"
#include "op/op.h"

#include <string.h>

struct tokenize {
    const char *field, *to;
    const char *json, *ranks, *encoder, *merges;
    int pattern;
};

static const char *const patterns[] = {
#define PATTERN_NAME(name, value) [value] = #name,
    HR_TOKENIZER_PATTERNS(PATTERN_NAME)
#undef PATTERN_NAME
        NULL,
};

static const struct hr_param tokenize_params[] = {
    HR_P_FIELD(struct tokenize, field, .fallback = "text", .access = HR_ACCESS_TAKE,
               .help = "the field with the text; it is dropped"),
    HR_P_FIELD(struct tokenize, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the ids"),
    HR_P_PATH(struct tokenize, json, .not_identity = true,
              .help = "Hugging Face's tokenizer.json"),
    HR_P_PATH(struct tokenize, ranks, .not_identity = true,
              .help = "or a rank file of tiktoken"),
    HR_P_ENUM(struct tokenize, pattern, .fallback = "r50k", .names = patterns,
              .not_identity = true, .help = "with ranks: how text is split into words"),
    HR_P_PATH(struct tokenize, encoder, .not_identity = true,
              .help = "or GPT-2's encoder.json, with merges"),
    HR_P_PATH(struct tokenize, merges, .not_identity = true,
              .help = "GPT-2's vocab.bpe, with encoder"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err tokenize_infer(struct hr_infer *infer)
{
    const struct tokenize *p = infer->params;
    struct hr_field *from = infer->fields[FIELD_FROM], *to = infer->fields[FIELD_TO];
    struct hr_field tokens = {.kind = HR_FIELD_TENSOR, .dtype = HR_I32, .ndim = 1};

    if ((p->json != NULL) + (p->ranks != NULL) + (p->encoder != NULL) != 1)
        return hr__infer_fail(infer, "json", HR_ERR_ARGUMENT,
                              "give the files of one tokenizer: json, or ranks and "
                              "pattern, or encoder and merges");
    if ((p->encoder != NULL) != (p->merges != NULL))
        return hr__infer_fail(infer, "merges", HR_ERR_ARGUMENT,
                              "encoder and merges are two files of one tokenizer: give "
                              "both");
    if (from->kind != HR_FIELD_BYTES && from != to)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" has no text to tokenize", p->field);
    memcpy(tokens.name, to->name, sizeof tokens.name);
    tokens.slot = to->slot;
    hr__dim_unknown(&tokens.dims[0], "tokens");
    *to = tokens;
    return HR_OK;
}

static enum hr_err tokenize_open(const struct hr_open *open, void **ret_state)
{
    const struct tokenize *p = open->params;
    struct hr_tokenizer *tokenizer = NULL;

    if (p->json != NULL)
        HR_TRY(hr_tokenizer_from_json(p->json, &tokenizer, open->error));
    else if (p->ranks != NULL)
        HR_TRY(hr_tokenizer_from_tiktoken(p->ranks, (enum hr_tokenizer_pattern)p->pattern,
                                          &tokenizer, open->error));
    else
        HR_TRY(hr_tokenizer_from_gpt2(p->encoder, p->merges, &tokenizer, open->error));
    *ret_state = tokenizer;
    return HR_OK;
}

static void tokenize_close(void *state)
{
    hr_tokenizer_destroy(state);
}

static void
tokenize_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct hr_hash128 hash = hr__bpe_hash(state);

    (void)params;
    hr__hasher_add(hasher, &hash, sizeof hash);
}

static enum hr_err tokenize_apply(struct hr_op_ctx *ctx)
{
    struct hr_value *text = ctx->fields[FIELD_FROM];
    size_t room = text->bytes + HR_BPE_ROOM_MORE, count;
    int64_t dims[1];
    void *ids;

    if (text->kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field has no text to tokenize");
    HR_TRY(hr__op_alloc(ctx, room * sizeof(int32_t), &ids));
    HR_TRY(hr_tokenizer_encode(ctx->state, text->data, text->bytes, ids, room, &count,
                               ctx->error));
    hr__value_clear(text);
    dims[0] = (int64_t)count;
    hr__value_set_tensor(ctx->fields[FIELD_TO], HR_I32, 1, dims, ids, NULL);
    return HR_OK;
}

const struct hr_op hr_op_text_tokenize_bpe = {
    .name = "text.tokenize_bpe",
    .summary = "text to token ids by byte-level BPE",
    .doc = "A byte string to int32 `[tokens]`, whose length differs between records: "
           "collect batches with `batch.pad` or with `ragged: true`. The ids are those "
           "of tiktoken's `encode_ordinary` and of Hugging Face's tokenizers without "
           "special tokens: text that looks like a special token is ordinary text. Each "
           "byte that is not part of a well-formed UTF-8 character is encoded as it is. "
           "`json` must be a byte-level BPE without normalizer, with the pattern of "
           "GPT-2, Llama 3 or o200k. The contents of the files, not their paths, are "
           "part of the fingerprint. Each thread uses about 20 MB in addition to the "
           "memory of the iterator.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(tokenize_params, struct tokenize),
    .infer = tokenize_infer,
    .open = tokenize_open,
    .close = tokenize_close,
    .identity = tokenize_identity,
    .apply = tokenize_apply,
};
