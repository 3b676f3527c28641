/*
 * headrace/tokenizer.h - tokenizers by themselves: text to token ids and back.
 *
 * Byte-level BPE gives the ids of tiktoken's encode_ordinary and of Hugging Face
 * tokenizers with add_special_tokens=False: text that looks like a special token is
 * ordinary text. Text is bytes in UTF-8. Every byte that is not part of a well-formed
 * character (truncated, overlong, a surrogate or beyond U+10FFFF) counts as one character
 * that is neither a letter, a number nor white space, and its byte is encoded as it is,
 * so decoding returns the same bytes whatever the text was. Character classes are those
 * of Unicode 16.0.
 *
 * SentencePiece gives the ids of the sentencepiece library: text is normalised by the
 * rules in the model, and each byte that is not part of a well-formed character is
 * U+FFFD, so decoding returns the normalised text. So is it for Unigram models, with the
 * ids of Hugging Face tokenizers.
 *
 * A tokenizer is immutable and thread-safe. Each thread that encodes uses a cache of
 * words, about 20 MB (SentencePiece: 8 MB, Unigram: 2 MB), which the tokenizer keeps
 * between calls: at most HR_TOKENIZER_CACHES of them.
 *
 * Errors: HR_ERR_NOT_FOUND or HR_ERR_IO if a file cannot be read, HR_ERR_FORMAT for a
 * malformed file, HR_ERR_UNSUPPORTED for a tokenizer of another kind, HR_ERR_LIMIT for
 * files and texts beyond the limits below, HR_ERR_ARGUMENT, HR_ERR_MEMORY. A tokenizer
 * stays usable after every error.
 */
#ifndef HR_TOKENIZER_H
#define HR_TOKENIZER_H

#include "headrace/base.h"

HR_BEGIN_DECLS

#define HR_TOKENIZER_FILE_MAX ((size_t)64 << 20)       /* bytes of a file */
#define HR_TOKENIZER_IDS_MAX ((1 << 21) - 1)           /* ids are below this */
#define HR_TOKENIZER_TEXT_MAX (((size_t)1 << 31) - 64) /* bytes of one text */
#define HR_TOKENIZER_CACHES 64
#define HR_TOKENIZER_THREADS_MAX 256

/* How text is split into words, which BPE then encodes one by one. X(name, value). */
#define HR_TOKENIZER_PATTERNS(X)                                                         \
    X(r50k, 0)   /* GPT-2 */                                                             \
    X(cl100k, 1) /* GPT-4, in tiktoken */                                                \
    X(o200k, 2)  /* GPT-4o */                                                            \
    X(llama3, 3) /* Llama 3, and GPT-4 in Hugging Face's form: as cl100k, but white      \
                    space at the end of the text is split after its last newline */

enum hr_tokenizer_pattern {
#define HR_TOKENIZER_ENUM(name, value) HR_PATTERN_##name = (value),
    HR_TOKENIZER_PATTERNS(HR_TOKENIZER_ENUM)
#undef HR_TOKENIZER_ENUM
};

/* Looks up a pattern by name ("cl100k"); false if there is none of that name. */
HR_API bool
hr_tokenizer_pattern_find(const char *name, enum hr_tokenizer_pattern *ret_pattern);

struct hr_tokenizer;

/* ---- creation ---- */

/* GPT-2's pair of files: encoder.json (token to id) and vocab.bpe (merges, one a line).
 * Pattern r50k. */
HR_API HR_CHECK enum hr_err
hr_tokenizer_from_gpt2(const char *encoder_json, const char *vocab_bpe,
                       struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);

/* A rank file of tiktoken: lines of a token in base64 and its rank, which is its id. */
HR_API HR_CHECK enum hr_err
hr_tokenizer_from_tiktoken(const char *path, enum hr_tokenizer_pattern pattern,
                           struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);

/* Hugging Face's tokenizer.json: a BPE model without normalizer whose pre_tokenizer is
 * ByteLevel (r50k) or a Split by the pattern of cl100k, llama3 or o200k followed by
 * ByteLevel; or a WordPiece model (BERT, DistilBERT) with BertNormalizer or no
 * normalizer, BertPreTokenizer, and WordPiece as decoder or none; or a Unigram model (T5,
 * XLNet, ALBERT, mBART, XLM-R) whose normalizer is made of Precompiled, NFC, NFD, NFKC,
 * NFKD, Lowercase, StripAccents, Strip and Replace (of a text or of " {2,}"), whose
 * pre_tokenizer of WhitespaceSplit and Metaspace, and whose decoder is Metaspace, or
 * Replace, ByteFallback, Fuse and Strip in this order, or none. Its post_processor,
 * truncation and padding do not apply; special tokens are only decoded. What is not
 * supported is HR_ERR_UNSUPPORTED, with file, line and its path in the file. */
HR_API HR_CHECK enum hr_err
hr_tokenizer_from_json(const char *path, struct hr_tokenizer **ret_tokenizer,
                       struct hr_error *reterr);

/* A SentencePiece model (spm.model, tokenizer.model) of type unigram or bpe, without a
 * denormalizer. Control symbols are only decoded, to nothing. */
HR_API HR_CHECK enum hr_err
hr_tokenizer_from_sentencepiece(const char *path, struct hr_tokenizer **ret_tokenizer,
                                struct hr_error *reterr);

HR_API void hr_tokenizer_destroy(struct hr_tokenizer *tokenizer); /* NULL is allowed */

/* The largest id plus one. */
HR_API int32_t hr_tokenizer_vocab_size(const struct hr_tokenizer *tokenizer);

/* ---- encoding ---- */

/* Encodes `bytes` bytes into the caller's `ids`. With byte-level BPE a text never has
 * more ids than bytes; with SentencePiece it may, by what its rules insert. *ret_count is
 * the number of ids; if it is more than `room`, the call fails with HR_ERR_LIMIT and the
 * contents of `ids` are undefined. */
HR_API HR_CHECK enum hr_err
hr_tokenizer_encode(struct hr_tokenizer *tokenizer, const void *text, size_t bytes,
                    int32_t *ids, size_t room, size_t *ret_count,
                    struct hr_error *reterr);

/* Ids that grow. Zero-initialise; finish frees them. */
struct hr_tokens {
    int32_t *ids;
    size_t count, room;
};
HR_API void hr_tokens_finish(struct hr_tokens *tokens);

/* Appends the ids of a text. On failure `tokens` is unchanged. */
HR_API HR_CHECK enum hr_err
hr_tokenizer_append(struct hr_tokenizer *tokenizer, const void *text, size_t bytes,
                    struct hr_tokens *tokens, struct hr_error *reterr);

/* Encodes `count` texts with up to `threads` threads (0: one for each CPU). The ids of
 * text i are values->ids[offsets[i]] up to offsets[i + 1]; `offsets` has room for count +
 * 1 numbers. `values` is replaced; on failure it is empty. The result does not depend on
 * `threads`. */
struct hr_tokenizer_text {
    const void *data;
    size_t bytes;
};
HR_API HR_CHECK enum hr_err
hr_tokenizer_encode_batch(struct hr_tokenizer *tokenizer,
                          const struct hr_tokenizer_text *texts, size_t count,
                          int threads, struct hr_tokens *values, int64_t *offsets,
                          struct hr_error *reterr);

/* ---- decoding ---- */

/* Writes the bytes of the tokens to `text`, without a terminating NUL. *ret_bytes is
 * their number; if it is more than `room`, the call fails with HR_ERR_LIMIT and `text`
 * holds the first `room` of them at most. HR_ERR_RANGE for an id that is no token. */
HR_API HR_CHECK enum hr_err
hr_tokenizer_decode(const struct hr_tokenizer *tokenizer, const int32_t *ids,
                    size_t count, void *text, size_t room, size_t *ret_bytes,
                    struct hr_error *reterr);

HR_END_DECLS

#endif
