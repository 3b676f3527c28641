/*
 * codec/bpe_scan_char.h - the next character of a text and its class.
 */
#ifndef HR_CODEC_BPE_SCAN_CHAR_H
#define HR_CODEC_BPE_SCAN_CHAR_H

#include "codec/unicode.h"
#include "core/str.h"

/* The class of the character at `at` < `end`, and its length in bytes. */
static inline enum hr_char_class
hr__char_at(const uint8_t *text, size_t at, size_t end, unsigned *ret_length)
{
    const uint8_t *b = text + at;

    *ret_length = 1;
    if (b[0] < 0x80)
        return hr__char_class(b[0]);
    *ret_length = (unsigned)hr__utf8_length((const char *)b, end - at);
    if (*ret_length == 0) {
        *ret_length = 1;
        return HR_CHAR_OTHER;
    }
    return hr__char_class(hr__char_code(b, *ret_length));
}

#endif
