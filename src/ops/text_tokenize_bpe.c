/*
 * text.tokenize_bpe - text to the ids of its tokens, by byte-level BPE.
 *
 * The tokenizer is the node's state, which all threads share. The files' contents, not
 * their paths, are part of the fingerprint.
 */
#include "ops/text.h"
#include "ops/tokenizer_files.h"

struct tokenize {
    const char *field, *to;
    struct hr_tokenizer_files files;
};

static const struct hr_param tokenize_params[] = {
    HR_P_FIELD(struct tokenize, field, .fallback = "text", .access = HR_ACCESS_TAKE,
               .help = "the field with the text; it is dropped"),
    HR_P_FIELD(struct tokenize, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the ids"),
    HR_P_TOKENIZER_FILES(struct tokenize),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err tokenize_infer(struct hr_infer *infer)
{
    const struct tokenize *p = infer->params;
    struct hr_field *from = infer->fields[FIELD_FROM], *to = infer->fields[FIELD_TO];

    HR_TRY(hr__tokenizer_files_infer(infer, &p->files));
    if (from->kind != HR_FIELD_BYTES && from != to)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" has no text to tokenize", p->field);
    hr__infer_tokens(to);
    return HR_OK;
}

static enum hr_err tokenize_open(const struct hr_open *open, void **ret_state)
{
    const struct tokenize *p = open->params;

    if (p->files.json != NULL)
        return hr__tokenizer_json_open(p->files.json, "byte-level BPE", ret_state,
                                       open->error);
    return hr__tokenizer_files_open(&p->files, ret_state, open->error);
}

const struct hr_op hr_op_text_tokenize_bpe = {
    .name = "text.tokenize_bpe",
    .summary = "text to token ids by byte-level BPE",
    .doc =
        "A byte string to int32 `[tokens]`, whose length differs between records: "
        "collect batches with `batch.pad` or with `ragged: true`. The ids are those "
        "of tiktoken's `encode_ordinary` and of Hugging Face's tokenizers without "
        "special tokens: text that looks like a special token is ordinary text. Each "
        "byte that is not part of a well-formed UTF-8 character is encoded as it is. "
        "`json` must be a byte-level BPE without normalizer, with the pattern of "
        "GPT-2, Llama 3 or o200k. The contents of the files, not their paths, are "
        "part of the fingerprint. Each thread keeps about 20 MB, which a memory budget "
        "counts.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(tokenize_params, struct tokenize),
    .infer = tokenize_infer,
    .open = tokenize_open,
    .close = hr__tokenizer_close,
    .identity = hr__tokenizer_identity,
    .apply = hr__tokenizer_apply,
    .memory.kept = hr__tokenizer_kept,
};
