/*
 * codec/wordpiece.h - WordPiece, the tokenizer of BERT.
 *
 * The text is cleaned and split into words at white space and punctuation. A word is the
 * longest piece of the vocabulary that it begins with, then the longest that the rest
 * begins with, marked by a prefix, and so on; a word for which this fails is unknown as a
 * whole.
 */
#ifndef HR_CODEC_WORDPIECE_H
#define HR_CODEC_WORDPIECE_H

#include "codec/vocab.h"

struct hr_wordpiece_options {
    bool clean;         /* remove control characters */
    bool chinese;       /* make each ideograph a word */
    bool strip_accents; /* decompose, remove marks */
    bool lower;
    const char *unknown, *prefix; /* "[UNK]", "##" */
    int32_t chars_max;            /* longer words are unknown */
};

#define HR_WORDPIECE_CHARS_MAX 1000
#define HR_WORDPIECE_PREFIX_MAX 32

struct hr_wordpiece;

/* Takes over `vocab`, also on failure. HR_ERR_NOT_FOUND if `unknown` is not in it. */
HR_CHECK enum hr_err
hr__wordpiece_create(struct hr_vocab *vocab, const struct hr_wordpiece_options *options,
                     struct hr_wordpiece **ret_wordpiece, struct hr_error *reterr);
void hr__wordpiece_destroy(struct hr_wordpiece *wordpiece);

const struct hr_vocab *hr__wordpiece_vocab(const struct hr_wordpiece *wordpiece);

/* Writes the ids of a text; returns their number, at most HR_WORDPIECE_ROOM(bytes), for
 * which `ids` has room. `scratch` has room for HR_WORDPIECE_SCRATCH(bytes) numbers.
 * Thread-safe. */
#define HR_WORDPIECE_ROOM(bytes) (2 * (bytes) + 4)
#define HR_WORDPIECE_SCRATCH(bytes) (3 * HR_WORDPIECE_ROOM(bytes))
size_t hr__wordpiece_encode(const struct hr_wordpiece *wordpiece, const uint8_t *text,
                            size_t bytes, uint32_t *scratch, int32_t *ids);

/* ---- wordpiece_tokenizer.c ---- */

/* How ids become text: words with spaces between them. */
struct hr_wordpiece_decoder {
    const char *prefix; /* of tokens that continue a word; NULL: there are none */
    bool cleanup;       /* no space before punctuation and abbreviations */
};

/* A tokenizer, which takes over `wordpiece`, also on failure. `hash` is of all that ids
 * depend on. */
HR_CHECK enum hr_err
hr__wordpiece_tokenizer(struct hr_wordpiece *wordpiece,
                        const struct hr_wordpiece_decoder *decoder,
                        struct hr_hash128 hash, struct hr_tokenizer **ret_tokenizer,
                        struct hr_error *reterr);

/* Of a tokenizer.json whose model is WordPiece. */
HR_CHECK enum hr_err
hr__wordpiece_read_json(const struct hr_tokenizer_file *file, const struct hr_doc *doc,
                        struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);

#endif
