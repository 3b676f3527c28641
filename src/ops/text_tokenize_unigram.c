/*
 * text.tokenize_unigram - text to the ids of its tokens, by a SentencePiece model or a
 * tokenizer.json.
 *
 * The tokenizer is the node's state, which all threads share. The file's contents, not
 * its path, are part of the fingerprint.
 */
#include "ops/text.h"
#include "ops/tokenizer_files.h"

struct tokenize {
    const char *model, *field, *to;
};

static const struct hr_param tokenize_params[] = {
    HR_P_PATH(struct tokenize, model, .required = true, .not_identity = true,
              .help = "a SentencePiece model of type unigram or bpe (spm.model), or "
                      "Hugging Face's tokenizer.json of a Unigram model"),
    HR_P_FIELD(struct tokenize, field, .fallback = "text", .access = HR_ACCESS_TAKE,
               .help = "the field with the text; it is dropped"),
    HR_P_FIELD(struct tokenize, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the ids"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err tokenize_infer(struct hr_infer *infer)
{
    HR_TRY(hr__infer_text(infer));
    hr__infer_tokens(infer->fields[FIELD_TO]);
    return HR_OK;
}

static enum hr_err tokenize_open(const struct hr_open *open, void **ret_state)
{
    const struct tokenize *p = open->params;

    return hr__unigram_open(p->model, ret_state, open->error);
}

const struct hr_op hr_op_text_tokenize_unigram = {
    .name = "text.tokenize_unigram",
    .summary = "text to token ids by a SentencePiece or Unigram model",
    .doc = "A byte string to int32 `[tokens]`, whose length differs between records: "
           "collect batches with `batch.pad` or with `ragged: true`. The ids are those "
           "of the sentencepiece library, without begin and end symbols: tokens.add puts "
           "them. Models of type unigram and bpe are read, with their normalisation, "
           "byte fallback and user-defined symbols. Text that looks like a control "
           "symbol is ordinary text, and each byte that is not part of a well-formed "
           "UTF-8 character is U+FFFD. With a tokenizer.json the ids are those of "
           "Hugging Face's library for Unigram models as T5, XLNet, ALBERT, mBART and "
           "XLM-R have them; its post_processor, truncation and padding do not apply, "
           "and what is not supported is refused by name. The contents of the file, not "
           "its path, are part of the fingerprint. Each thread keeps about 9 MB, "
           "which a memory budget counts.",
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
