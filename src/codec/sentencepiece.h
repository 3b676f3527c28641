/*
 * codec/sentencepiece.h - SentencePiece: makes tokenizers of headrace/tokenizer.h from
 * the bytes of a model file, of types unigram and bpe.
 *
 * Text is normalised by the rules of the model; spaces become U+2581. Unigram chooses the
 * pieces of highest total score; bpe starts with characters, and merges the adjacent two
 * whose piece has the highest score, the leftmost of equal score first.
 */
#ifndef HR_CODEC_SENTENCEPIECE_H
#define HR_CODEC_SENTENCEPIECE_H

#include "codec/tokenizer.h"

HR_CHECK enum hr_err
hr__sentencepiece_read(const struct hr_tokenizer_file *file,
                       struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);

/* The kind of these tokenizers. */
extern const struct hr_tokenizer_kind hr__sentencepiece_kind;

#endif
