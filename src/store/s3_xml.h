/*
 * store/s3_xml.h - what S3 answers in XML: lists and errors.
 */
#ifndef HR_STORE_S3_XML_H
#define HR_STORE_S3_XML_H

#include "core/str.h"

/* An answer of ListObjectsV2. `visit` gets each key, decoded; false ends the parse with
 * HR_OK. *ret_next: the continuation token, empty if the list is complete. HR_ERR_FORMAT:
 * not such an answer; HR_ERR_LIMIT: a key or token is too long; HR_ERR_MEMORY. */
typedef bool
hr_s3_visit_fn(void *user, const char *key, size_t key_bytes, uint64_t bytes);
HR_CHECK enum hr_err
hr__s3_parse_list(const char *text, size_t bytes, hr_s3_visit_fn *visit, void *user,
                  struct hr_str *ret_next, struct hr_error *reterr);

/* "Code: message" of an error; false if it is none. */
bool hr__s3_parse_error(const char *answer, size_t bytes, char *text, size_t room);

#endif
