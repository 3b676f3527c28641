/*
 * codec/text.h - text in UTF-8 character by character: lower case, normal forms, white
 * space (Unicode 16.0).
 *
 * Each byte that is not part of a well-formed character is one character without
 * properties, and stays as it is.
 */
#ifndef HR_CODEC_TEXT_H
#define HR_CODEC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code points are below this; HR_CODE_BYTE + b is the byte b that is part of none. */
#define HR_CODE_BYTE 0x110000u

/* The character at *at < bytes, which moves past it. */
uint32_t hr__text_code(const uint8_t *text, size_t bytes, size_t *at);

/* Writes a character, up to 4 bytes; returns their number. */
size_t hr__text_put(uint32_t code, uint8_t *to);

/* The lower case of a character without its context: one or two characters. */
size_t hr__text_lower_code(uint32_t code, uint32_t ret_codes[2]);

/* Writes the lower case of each character, at most HR_TEXT_LOWER_ROOM(bytes) bytes;
 * returns their number. */
#define HR_TEXT_LOWER_ROOM(bytes) ((bytes) + (bytes) / 2 + 1)
size_t hr__text_lower(const uint8_t *text, size_t bytes, uint8_t *to);

/* Bytes of white space at the start of the text, at its end; bytes before the first white
 * space. */
size_t hr__text_white_start(const uint8_t *text, size_t bytes);
size_t hr__text_white_end(const uint8_t *text, size_t bytes);
size_t hr__text_until_white(const uint8_t *text, size_t bytes);

enum hr_normal_form { HR_NFC, HR_NFD, HR_NFKC, HR_NFKD };

/* Whether the text is in the form for sure, as a look at its bytes shows. */
bool hr__text_is_normal(const uint8_t *text, size_t bytes, enum hr_normal_form form);

/* Characters of the text when decomposed. */
size_t hr__text_decomposed(const uint8_t *text, size_t bytes, enum hr_normal_form form);

/* Writes the text in the form; returns the number of bytes, at most 4 for each of the
 * `count` characters that hr__text_decomposed() counts. `codes` has room for twice as
 * many. */
size_t hr__text_normalize(const uint8_t *text, size_t bytes, enum hr_normal_form form,
                          uint32_t *codes, size_t count, uint8_t *to);

/* Decomposes `count` characters (NFD) into `to`, and returns their number, at most twice
 * that of their bytes in UTF-8. `to` and `scratch` have room for them. */
size_t
hr__text_decompose(const uint32_t *codes, size_t count, uint32_t *to, uint32_t *scratch);

#endif
