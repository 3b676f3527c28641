/*
 * codec/bpe_scan.h - splits text into words by the patterns of tokenizers.
 *
 * A word is a match of the pattern's regular expression; together they cover the text. A
 * byte that is not part of a well-formed character is a character of class OTHER.
 */
#ifndef HR_CODEC_BPE_SCAN_H
#define HR_CODEC_BPE_SCAN_H

#include "headrace/tokenizer.h"

/* Where a scan has got to. Zero-initialise all but text, end. */
struct hr_bpe_scan {
    const uint8_t *text;
    size_t end; /* bytes of the text */
    size_t at;  /* scanned so far */

    /* r50k, which goes by blocks of 64 bytes: bit 63 of the masks of the block before;
     * starts of words in the next block to set and to clear; the character that reaches
     * into it. */
    uint64_t letter, number, other, white, space;
    uint64_t set, clear;
    unsigned rest, rest_class;
};

#define HR_BPE_SCAN_SLACK 80

/* Writes the ends of the next words in order, `count` or up to 64 more;
 * returns their number, 0 at the end of the text. The last end is the end of the text.
 * `ends` has room for `count` + HR_BPE_SCAN_SLACK. */
typedef size_t hr_bpe_scan_fn(struct hr_bpe_scan *scan, uint32_t *ends, size_t count);

/* The scanner of a pattern for this machine (hr__isa). */
hr_bpe_scan_fn *hr__bpe_scanner(enum hr_tokenizer_pattern pattern);

/* r50k by instruction set; bpe_scan_rows.h is the algorithm. */
hr_bpe_scan_fn hr__bpe_scan_r50k_c, hr__bpe_scan_r50k_avx2, hr__bpe_scan_r50k_avx512;

#endif
