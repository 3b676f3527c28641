/*
 * codec/vocab.h - a vocabulary: words and their ids.
 */
#ifndef HR_CODEC_VOCAB_H
#define HR_CODEC_VOCAB_H

#include "codec/bpe.h"

struct hr_vocab;

/*
 * Reads a vocabulary file: a JSON object of words and ids if its name ends in .json, else
 * a word per line, whose id is the number of the line from 0. Line ends are LF or CRLF; a
 * byte order mark at the start is skipped. HR_ERR_FORMAT names the line of a word or an
 * id that was there before.
 */
HR_CHECK enum hr_err hr__vocab_read(const struct hr_tokenizer_file *file,
                                    struct hr_vocab **ret_vocab, struct hr_error *reterr);

/* The same from a map of words and ids that was read from the file. */
struct hr_doc;
HR_CHECK enum hr_err
hr__vocab_read_map(const struct hr_tokenizer_file *file, const struct hr_doc *map,
                   struct hr_vocab **ret_vocab, struct hr_error *reterr);
void hr__vocab_destroy(struct hr_vocab *vocab);

/* The id of a word, or -1. */
int32_t hr__vocab_find(const struct hr_vocab *vocab, const void *word, size_t bytes);

/* The word with an id, or NULL. */
const char *hr__vocab_word(const struct hr_vocab *vocab, int32_t id, size_t *ret_bytes);

/* The largest id + 1. */
int32_t hr__vocab_size(const struct hr_vocab *vocab);

/* Of the words and their ids. */
struct hr_hash128 hr__vocab_hash(const struct hr_vocab *vocab);

#endif
