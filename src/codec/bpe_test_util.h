/*
 * codec/bpe_test_util.h - small vocabularies drawn at random, as files of every form, and
 * what their tokenizers must return, worked out the slow way.
 */
#ifndef HR_CODEC_BPE_TEST_UTIL_H
#define HR_CODEC_BPE_TEST_UTIL_H

#include "codec/bpe.h"
#include "core/rng.h"
#include "core/str.h"

#define TINY_MERGES 120
#define TINY_TOKENS (256 + TINY_MERGES)
#define TINY_BYTES 64

/* Bytes in a random order of ids, then a token for each merge. */
struct tiny {
    struct {
        uint8_t bytes[TINY_BYTES];
        size_t count;
    } tokens[TINY_TOKENS];
    uint32_t byte_ids[256];
    uint32_t merges[TINY_MERGES][2];
};
void tiny_draw(struct tiny *tiny, struct hr_rng *rng);

/* The files. Each string is initialised here; the caller finishes it. */
void tiny_encoder(const struct tiny *tiny, struct hr_str *out);
void tiny_merges(const struct tiny *tiny, struct hr_str *out);
void tiny_ranks(const struct tiny *tiny, struct hr_str *out);
void tiny_json(const struct tiny *tiny, const char *pre_tokenizer, struct hr_str *out);
#define TINY_R50K "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true}"

/* Appends a text of letters that merge, white space, contractions, digits, other scripts,
 * broken characters and long words. */
void tiny_text(struct hr_rng *rng, size_t pieces, struct hr_str *out);

/* The end of the word at `at` by pattern r50k. */
size_t tiny_word_end(const uint8_t *text, size_t at, size_t end);

/* Encodes a text by searching all merges in every step. `ranks`: two tokens merge if
 * their bytes together are a token. Returns the number of ids. */
size_t tiny_encode(const struct tiny *tiny, bool ranks, const uint8_t *text, size_t bytes,
                   int32_t *ids);

struct hr_tokenizer *tiny_gpt2(const struct tiny *tiny);

#endif
