/*
 * codec/tokenizer_json.h - Hugging Face's tokenizer.json: what the readers of all models
 * share.
 */
#ifndef HR_CODEC_TOKENIZER_JSON_H
#define HR_CODEC_TOKENIZER_JSON_H

#include "codec/tokenizer.h"
#include "core/doc.h"

/* Makes the tokenizer that the file describes. HR_ERR_UNSUPPORTED names what is not
 * supported by its path in the file. */
HR_CHECK enum hr_err
hr__tokenizer_read_json(const struct hr_tokenizer_file *file,
                        struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr);

/* Whether a member is missing, null or an empty string. */
bool hr__json_is_absent(const struct hr_doc *doc);

/* A member that is a bool; `fallback` if it is absent. */
bool hr__json_bool(const struct hr_doc *map, const char *key, bool fallback);

/* Whether the member "type" of `doc` is `type`. */
bool hr__json_is_type(const struct hr_doc *doc, const char *type);

#endif
