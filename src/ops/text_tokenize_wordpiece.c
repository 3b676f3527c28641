/*
 * text.tokenize_wordpiece - text to the ids of its tokens, by BERT's WordPiece.
 *
 * The tokenizer is the node's state, which all threads share.
 */
#include "codec/wordpiece.h"
#include "core/alloc.h"
#include "core/file.h"
#include "ops/text.h"
#include "ops/tokenizer_files.h"

struct tokenize {
    const char *field, *to, *vocab, *unknown, *prefix, *json;
    bool lower, clean, chinese;
    int accents;
    int64_t chars_max;
};

enum { ACCENTS_AUTO, ACCENTS_STRIP, ACCENTS_KEEP };
static const char *const accents[] = {"auto", "strip", "keep", NULL};

static const struct hr_param tokenize_params[] = {
    HR_P_PATH(struct tokenize, vocab, .not_identity = true,
              .help =
                  "the vocabulary, BERT's vocab.txt: a token per line, whose id is the "
                  "number of the line from 0"),
    HR_P_BOOL(struct tokenize, lower, .fallback = "true", .help = "lower case first"),
    HR_P_ENUM(struct tokenize, accents, .fallback = "auto", .names = accents,
              .help = "what becomes of accents; auto: strip them with `lower`, else keep "
                      "them"),
    HR_P_BOOL(struct tokenize, clean, .fallback = "true",
              .help = "remove control characters"),
    HR_P_BOOL(struct tokenize, chinese, .fallback = "true",
              .help = "make each Chinese character a word"),
    HR_P_STRING(struct tokenize, unknown, .fallback = "[UNK]",
                .help = "the token of words that the vocabulary cannot spell"),
    HR_P_STRING(struct tokenize, prefix, .fallback = "##",
                .help = "marks tokens that continue a word"),
    HR_P_INT(struct tokenize, chars_max, .fallback = "100",
             HR_RANGE(1, HR_WORDPIECE_CHARS_MAX), .unit = "characters",
             .help = "longer words are unknown"),
    HR_P_FIELD(struct tokenize, field, .fallback = "text", .access = HR_ACCESS_TAKE,
               .help = "the field with the text; it is dropped"),
    HR_P_FIELD(struct tokenize, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the ids"),
    HR_P_PATH(struct tokenize, json, .not_identity = true,
              .help = "instead of the vocabulary: Hugging Face's tokenizer.json of a "
                      "WordPiece model, which says what the other parameters say"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err tokenize_infer(struct hr_infer *infer)
{
    const struct tokenize *p = infer->params;

    if ((p->vocab != NULL) == (p->json != NULL))
        return hr__infer_fail(infer, "vocab", HR_ERR_ARGUMENT,
                              "give the file of one tokenizer: vocab or json");
    HR_TRY(hr__infer_text(infer));
    hr__infer_tokens(infer->fields[FIELD_TO]);
    return HR_OK;
}

static enum hr_err
read_vocab(const char *path, struct hr_vocab **ret_vocab, struct hr_error *error)
{
    struct hr_tokenizer_file file = {.name = path};
    enum hr_err err;
    char *data;

    HR_TRY(hr__file_read(path, HR_TOKENIZER_FILE_MAX, &data, &file.bytes, error));
    file.data = data;
    err = hr__vocab_read(&file, ret_vocab, error);
    hr__free(data);
    return err;
}

static enum hr_err tokenize_open(const struct hr_open *open, void **ret_state)
{
    const struct tokenize *p = open->params;
    const struct hr_wordpiece_options options = {
        .clean = p->clean,
        .chinese = p->chinese,
        .strip_accents =
            p->accents == ACCENTS_AUTO ? p->lower : p->accents == ACCENTS_STRIP,
        .lower = p->lower,
        .unknown = p->unknown,
        .prefix = p->prefix,
        .chars_max = (int32_t)p->chars_max};
    const struct hr_wordpiece_decoder decoder = {NULL, false}; /* nothing is decoded */
    struct hr_tokenizer *tokenizer = NULL;
    struct hr_wordpiece *wordpiece = NULL;
    struct hr_vocab *vocab = NULL;
    struct hr_hash128 hash;

    if (p->json != NULL)
        return hr__tokenizer_json_open(p->json, "WordPiece", ret_state, open->error);
    HR_TRY(read_vocab(p->vocab, &vocab, open->error));
    hash = hr__vocab_hash(vocab);
    HR_TRY(hr__wordpiece_create(vocab, &options, &wordpiece, open->error));
    HR_TRY(hr__wordpiece_tokenizer(wordpiece, &decoder, hash, &tokenizer, open->error));
    *ret_state = tokenizer;
    return HR_OK;
}

const struct hr_op hr_op_text_tokenize_wordpiece = {
    .name = "text.tokenize_wordpiece",
    .summary = "text to token ids by BERT's WordPiece",
    .doc =
        "A byte string to int32 `[tokens]`, without [CLS] and [SEP]: tokens.add puts "
        "them. The ids are those of Hugging Face's BertNormalizer, BertPreTokenizer "
        "and WordPiece: text that looks like a special token is ordinary text, and "
        "Unicode's properties are those of version 8, as there. Bytes that are not "
        "UTF-8 are characters of no kind. `json` must have BertNormalizer or no "
        "normalizer, and BertPreTokenizer; its post_processor, truncation and padding do "
        "not apply. The words and ids of the vocabulary, not its path, are part of the "
        "fingerprint.",
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
