/*
 * codec/bpe_scan_rows.h - the scanner of pattern r50k, included once per instruction set.
 *
 * The file that includes it defines MASKS(bytes, masks): the masks of those of 64 bytes
 * that are ASCII, and the mask of the others, or nothing; LOWEST_BIT(bits): the number of
 * the lowest bit, anything if there is none; and SCAN_NAME.
 *
 * Each class of characters is a mask with a bit per byte. A word starts where the class
 * changes; a space belongs to the word after it; in a run of white space that a word
 * follows, the last character starts a word. Contractions are mended one by one.
 */
#include "codec/bpe_scan.h"
#include "codec/bpe_scan_char.h"

#include <string.h>

#define TEXT_AHEAD 1024 /* bytes that are fetched before they are needed */

struct masks {
    uint64_t letter, number, other, white, space, apostrophe;
    uint64_t inner; /* bytes of a character after its first */
    uint64_t last;  /* first bytes of white characters that no white one follows */
};

static bool is_white(const struct hr_bpe_scan *scan, size_t at)
{
    unsigned length;

    return at >= scan->end ||
           hr__char_at(scan->text, at, scan->end, &length) == HR_CHAR_WHITE;
}

static void add_class(struct masks *m, unsigned class, uint64_t bits)
{
    switch (class) {
    case HR_CHAR_UPPER:
    case HR_CHAR_LOWER:
    case HR_CHAR_CASELESS:
        m->letter |= bits;
        break;
    case HR_CHAR_NUMBER:
        m->number |= bits;
        break;
    case HR_CHAR_WHITE:
        m->white |= bits;
        break;
    default:
        m->other |= bits;
    }
}

/* `count` bits from bit `at` on, without those beyond 63. */
static uint64_t bits_at(unsigned at, unsigned count)
{
    return (((uint64_t)1 << count) - 1) << at;
}

/* Character by character, for any text. A character that reaches into the next block is
 * remembered in the scan. */
static void mask_chars(struct hr_bpe_scan *scan, unsigned count, struct masks *m)
{
    unsigned i = scan->rest, length;

    *m = (struct masks){0};
    if (i > 0) {
        add_class(m, scan->rest_class, bits_at(0, i));
        m->inner = bits_at(0, i);
    }
    for (; i < count; i += length) {
        size_t at = scan->at + i;
        enum hr_char_class class = hr__char_at(scan->text, at, scan->end, &length);
        uint64_t first = (uint64_t)1 << i;

        add_class(m, class, bits_at(i, length));
        m->inner |= bits_at(i, length) & ~first;
        if (scan->text[at] == ' ')
            m->space |= first;
        else if (scan->text[at] == '\'')
            m->apostrophe |= first;
        if (class == HR_CHAR_WHITE && !is_white(scan, at + length))
            m->last |= first;
        scan->rest_class = class;
    }
    scan->rest = i - count;
}

/* Bytes of the contraction at `at`, where the apostrophe is; 0 if there is none. */
static unsigned contraction(const struct hr_bpe_scan *scan, size_t at)
{
    uint8_t a = at + 1 < scan->end ? scan->text[at + 1] : 0;
    uint8_t b = at + 2 < scan->end ? scan->text[at + 2] : 0;

    if (a == 's' || a == 'd' || a == 'm' || a == 't')
        return 2;
    return (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ? 3 : 0;
}

/* Starts of words, among them contractions: one ends where the next word starts. */
static inline uint64_t
split_contractions(struct hr_bpe_scan *scan, uint64_t starts, uint64_t apostrophes)
{
    uint64_t set = scan->set, clear = scan->clear;

    scan->set = scan->clear = 0;
    starts = (starts & ~clear) | set;
    for (uint64_t left = apostrophes & starts; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        unsigned length = contraction(scan, scan->at + i);

        if (length == 0)
            continue;
        if (i + 1 < 64)
            starts &= ~((uint64_t)1 << (i + 1));
        else
            scan->clear |= 1;
        if (i + length < 64)
            starts |= (uint64_t)1 << (i + length);
        else
            scan->set |= (uint64_t)1 << (i + length - 64);
    }
    return starts;
}

static inline __attribute__((always_inline)) uint64_t
starts_of(struct hr_bpe_scan *scan, const struct masks *m)
{
    uint64_t starts = m->letter & ~(m->letter << 1 | scan->letter);

    starts |= m->number & ~(m->number << 1 | scan->number);
    starts |= m->other & ~(m->other << 1 | scan->other);
    starts &= ~(m->space << 1 | scan->space);
    starts |= m->white & ~(m->white << 1 | scan->white);
    starts = (starts | m->last) & ~m->inner;
    scan->letter = m->letter >> 63;
    scan->number = m->number >> 63;
    scan->other = m->other >> 63;
    scan->white = m->white >> 63;
    scan->space = m->space >> 63;
    return split_contractions(scan, starts, m->apostrophe);
}

#ifdef MASKS
/* Adds the characters of the bytes in `wide`, which are not ASCII, to the masks of a
 * block. False, with the scan unchanged, if one of them is white space. */
static bool add_wide(struct hr_bpe_scan *scan, uint64_t wide, struct masks *m)
{
    unsigned rest = 0, rest_class = scan->rest_class, length;

    m->inner = bits_at(0, scan->rest);
    if (scan->rest > 0) {
        if (rest_class == HR_CHAR_WHITE)
            return false;
        add_class(m, rest_class, m->inner);
    }
    for (wide &= ~m->inner; wide != 0;) {
        unsigned i = (unsigned)__builtin_ctzll(wide);
        enum hr_char_class class =
            hr__char_at(scan->text, scan->at + i, scan->end, &length);
        uint64_t bits = bits_at(i, length);

        if (class == HR_CHAR_WHITE)
            return false;
        add_class(m, class, bits);
        m->inner |= bits & ~((uint64_t)1 << i);
        wide &= ~bits;
        rest = i + length > 64 ? i + length - 64 : 0;
        rest_class = class;
    }
    scan->rest = rest;
    scan->rest_class = rest_class;
    return true;
}
#endif

/* The block of `count` bytes at scan->at; bytes beyond the text count as white space. */
static void mask_block(struct hr_bpe_scan *scan, unsigned count, struct masks *m)
{
#ifdef MASKS
    uint8_t padded[64];
    const uint8_t *block = scan->text + scan->at;
    uint64_t wide;

    if (count < 64) {
        memset(padded, ' ', sizeof padded);
        memcpy(padded, block, count);
        block = padded;
    }
    wide = MASKS(block, m);
    m->inner = 0;
    if ((wide | scan->rest) == 0 || add_wide(scan, wide, m)) {
        m->last =
            m->white & ~(m->white >> 1 | (uint64_t)is_white(scan, scan->at + 64) << 63);
        return;
    }
#endif
    mask_chars(scan, count, m);
}

#ifndef LIST_BITS
/* Writes `base` + the number of each bit that is set; returns how many there are. Eight
 * are written at a time, so that the number of them is mispredicted less often. */
static inline size_t list_bits(uint64_t bits, uint32_t base, uint32_t *to)
{
    size_t count = (size_t)__builtin_popcountll(bits);

    for (size_t i = 0; i < count; i += 8)
        for (size_t k = i; k < i + 8; k++, bits &= bits - 1)
            to[k] = base + (uint32_t)LOWEST_BIT(bits);
    return count;
}
#endif

/* Writes the ends of the words before those that start in the block of `bytes` bytes at
 * scan->at, and moves past it; returns their number. */
static inline size_t
end_words(struct hr_bpe_scan *scan, uint64_t starts, unsigned bytes, uint32_t *ends)
{
    uint64_t first = scan->at == 0; /* no word ends there */
    size_t written = list_bits(starts & ~first, (uint32_t)scan->at, ends);

    scan->at += bytes;
    return written;
}

#ifdef MASKS
/* Blocks of ASCII before another ASCII character, never the last block; without a call or
 * a store to *scan in the loop. */
static size_t scan_ascii(struct hr_bpe_scan *scan, uint32_t *ends, size_t count)
{
    struct hr_bpe_scan s = *scan;
    size_t written = 0;

    while (written < count && s.end - s.at > 64) {
        uint8_t next = s.text[s.at + 64];
        bool white = next == ' ' || (uint8_t)(next - '\t') < 5;
        struct masks m;

        if ((MASKS(s.text + s.at, &m) | (next & 0x80)) != 0)
            break;
        m.inner = 0;
        m.last = m.white & ~(m.white >> 1 | (uint64_t)white << 63);
        __builtin_prefetch(s.text + s.at + TEXT_AHEAD);
        written += end_words(&s, starts_of(&s, &m), 64, ends + written);
    }
    *scan = s;
    return written;
}
#endif

size_t SCAN_NAME(struct hr_bpe_scan *scan, uint32_t *ends, size_t count)
{
    size_t written = 0;

    while (written < count && scan->at < scan->end) {
        unsigned bytes;
        struct masks m;
        uint64_t starts;

#ifdef MASKS
        written += scan_ascii(scan, ends + written, count - written);
        if (written >= count)
            break;
#endif
        bytes = scan->end - scan->at < 64 ? (unsigned)(scan->end - scan->at) : 64;
        mask_block(scan, bytes, &m);
        starts = starts_of(scan, &m);
        if (bytes < 64)
            starts &= bits_at(0, bytes);
        written += end_words(scan, starts, bytes, ends + written);
        if (scan->at == scan->end)
            ends[written++] = (uint32_t)scan->end;
    }
    return written;
}
