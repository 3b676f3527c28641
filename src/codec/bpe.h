/*
 * codec/bpe.h - byte-level BPE: makes the tokenizers of headrace/tokenizer.h from the
 * bytes of their files, encodes and decodes. Opens no file.
 *
 * Encoding has two parts. A scanner (bpe_scan.c) splits the text into words by the
 * pattern. A word's ids come from the cache of the calling thread (bpe_encode.c), or else
 * from merging (bpe_merge.c): starting with its bytes, the adjacent pair of tokens of
 * lowest rank is replaced by its merged token, the leftmost of equal rank first.
 */
#ifndef HR_CODEC_BPE_H
#define HR_CODEC_BPE_H

#include "codec/tokenizer.h"

HR_CHECK enum hr_err
hr__bpe_read_gpt2(const struct hr_tokenizer_file *encoder,
                  const struct hr_tokenizer_file *merges,
                  struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__bpe_read_tiktoken(const struct hr_tokenizer_file *ranks,
                      enum hr_tokenizer_pattern pattern,
                      struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);
/* Of a tokenizer.json whose model is BPE. */
struct hr_doc;
HR_CHECK enum hr_err
hr__bpe_read_json(const struct hr_tokenizer_file *json, const struct hr_doc *doc,
                  struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);

/* The bytes of a token of a byte-level BPE; NULL if `id` is none. */
struct hr_bpe;
const uint8_t *hr__bpe_token(const struct hr_bpe *bpe, int32_t id, size_t *ret_bytes);

/* The kind of the tokenizers above. */
extern const struct hr_tokenizer_kind hr__bpe_kind;

#endif
