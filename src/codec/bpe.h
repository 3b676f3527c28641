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

#include "core/hash.h"
#include "headrace/tokenizer.h"

/* A file's bytes and its name for messages. */
struct hr_bpe_file {
    const char *data;
    size_t bytes;
    const char *name;
};

HR_CHECK enum hr_err
hr__bpe_read_gpt2(const struct hr_bpe_file *encoder, const struct hr_bpe_file *merges,
                  struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__bpe_read_tiktoken(const struct hr_bpe_file *ranks, enum hr_tokenizer_pattern pattern,
                      struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__bpe_read_json(const struct hr_bpe_file *json, struct hr_tokenizer **ret_tokenizer,
                  struct hr_error *reterr);

/* Appends the ids of a text of at most HR_TOKENIZER_TEXT_MAX bytes. `tokens` does not
 * grow if it has room for the bytes and HR_BPE_ROOM_MORE ids more. On failure,
 * HR_ERR_MEMORY only, it keeps its ids. */
#define HR_BPE_ROOM_MORE 4
struct hr_bpe_cache;
HR_CHECK enum hr_err hr__bpe_encode(struct hr_bpe_cache *cache, const uint8_t *text,
                                    size_t bytes, struct hr_tokens *tokens);

/* A cache for the calling thread until it is given back; NULL when out of memory. */
struct hr_bpe_cache *hr__bpe_cache_take(struct hr_tokenizer *tokenizer);
void hr__bpe_cache_give(struct hr_bpe_cache *cache);

/* Room for `more` ids; false when out of memory. */
bool hr__tokens_room(struct hr_tokens *tokens, size_t more);

/* Of the pattern, the tokens and the merges: equal if all ids are. */
struct hr_hash128 hr__bpe_hash(const struct hr_tokenizer *tokenizer);

/* The largest id + 1. */
uint32_t hr__bpe_id_end(const struct hr_tokenizer *tokenizer);

/* The bytes of a token; NULL if `id` is none. */
const uint8_t *
hr__bpe_token(const struct hr_tokenizer *tokenizer, int32_t id, size_t *ret_bytes);

#endif
