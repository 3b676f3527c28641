/*
 * codec/unigram.h - Hugging Face's tokenizer.json of Unigram models (T5, XLNet, ALBERT,
 * mBART, XLM-R), with the ids of that library.
 *
 * It differs from SentencePiece, for which these models were made: normalisers are a list
 * of steps, one of which takes SentencePiece's rules by grapheme; scores are doubles; the
 * words of a text are encoded independently; and every token of the vocabulary can be
 * found in text.
 */
#ifndef HR_CODEC_UNIGRAM_H
#define HR_CODEC_UNIGRAM_H

#include "codec/tokenizer.h"
#include "core/doc.h"

HR_CHECK enum hr_err
hr__unigram_read_json(const struct hr_tokenizer_file *file, const struct hr_doc *doc,
                      struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);

#endif
