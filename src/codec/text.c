/*
 * codec/text.c - lower case and normal forms, by the tables that tools/gen-unicode
 * writes.
 *
 * A normal form is made in steps over an array of all characters: decompose, put marks in
 * the order of their classes, compose.
 */
#include "codec/text.h"

#include <assert.h>
#include <string.h>

#include "codec/unicode.h"
#include "codec/unicode_text.def"
#include "core/str.h"

/* ---- characters ---- */

uint32_t hr__text_code(const uint8_t *text, size_t bytes, size_t *at)
{
    const uint8_t *b = text + *at;
    size_t length;

    if (b[0] < 0x80) {
        (*at)++;
        return b[0];
    }
    length = hr__utf8_length((const char *)b, bytes - *at);
    if (length == 0) {
        (*at)++;
        return HR_CODE_BYTE + b[0];
    }
    *at += length;
    return hr__char_code(b, (unsigned)length);
}

size_t hr__text_put(uint32_t code, uint8_t *to)
{
    if (code < 0x80 || code >= HR_CODE_BYTE) {
        to[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (uint8_t)(0xC0 | code >> 6);
        to[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (uint8_t)(0xE0 | code >> 12);
        to[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        to[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    to[0] = (uint8_t)(0xF0 | code >> 18);
    to[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    to[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    to[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

#define AT(table, code)                                                                  \
    table##_at[table##_blocks[(code) >> HR_CHAR_BLOCK_BITS]]                             \
              [(code) & ((1 << HR_CHAR_BLOCK_BITS) - 1)]

/* ---- lower case ---- */

#define DOTTED_I 0x130 /* the one character whose lower case is two: i and a dot */
#define DOT_ABOVE 0x307

size_t hr__text_lower_code(uint32_t code, uint32_t ret_codes[2])
{
    size_t low = 0, high = LOWER_COUNT;

    ret_codes[0] = code;
    if (code < 0x80) {
        ret_codes[0] += code >= 'A' && code <= 'Z' ? 32 : 0;
        return 1;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (lower_from[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < LOWER_COUNT && lower_from[low] == code)
        ret_codes[0] = lower_to[low];
    ret_codes[1] = DOT_ABOVE;
    return code == DOTTED_I ? 2 : 1;
}

size_t hr__text_lower(const uint8_t *text, size_t bytes, uint8_t *to)
{
    uint8_t *out = to;
    uint32_t codes[2];

    for (size_t at = 0; at < bytes;) {
        size_t count;

        if (text[at] < 0x80) {
            uint8_t c = text[at++];

            *out++ = (uint8_t)(c + (c >= 'A' && c <= 'Z' ? 32 : 0));
            continue;
        }
        count = hr__text_lower_code(hr__text_code(text, bytes, &at), codes);
        for (size_t i = 0; i < count; i++)
            out += hr__text_put(codes[i], out);
    }
    return (size_t)(out - to);
}

/* ---- white space ---- */

static bool is_white(uint32_t code)
{
    return code < HR_CODE_BYTE && hr__char_class(code) == HR_CHAR_WHITE;
}

/* Bytes before the first character that is white or not. */
static size_t until(const uint8_t *text, size_t bytes, bool white)
{
    size_t from = 0;

    for (size_t at = 0; at < bytes; from = at)
        if (is_white(hr__text_code(text, bytes, &at)) == white)
            break;
    return from;
}

size_t hr__text_white_start(const uint8_t *text, size_t bytes)
{
    return until(text, bytes, false);
}

size_t hr__text_until_white(const uint8_t *text, size_t bytes)
{
    return until(text, bytes, true);
}

size_t hr__text_white_end(const uint8_t *text, size_t bytes)
{
    size_t end = bytes;

    while (end > 0) {
        size_t from = end - 1, at;

        while (from > 0 && end - from < 4 && (text[from] & 0xC0) == 0x80)
            from--;
        at = from;
        if (!is_white(hr__text_code(text, end, &at)) || at != end)
            break;
        end = from;
    }
    return bytes - end;
}

/* ---- normal forms ---- */

/* Syllables of Hangul are composed of a lead, a vowel and perhaps a tail. */
#define HANGUL 0xAC00u
#define LEAD 0x1100u
#define VOWEL 0x1161u
#define TAIL 0x11A7u
#define LEADS 19u
#define VOWELS 21u
#define TAILS 28u /* with the one that is none */

static bool is_compatible(enum hr_normal_form form)
{
    return form == HR_NFKC || form == HR_NFKD;
}

static bool is_composed(enum hr_normal_form form)
{
    return form == HR_NFC || form == HR_NFKC;
}

/* Of 0xCC: the first byte of U+0300, before which nothing changes under NFC. */
bool hr__text_is_normal(const uint8_t *text, size_t bytes, enum hr_normal_form form)
{
    uint8_t most = 0;

    for (size_t i = 0; i < bytes; i++)
        most = text[i] > most ? text[i] : most;
    return most < (form == HR_NFC ? 0xCC : 0x80);
}

/* The decomposition of a character: its length and its characters; NULL if it has none
 * or is a syllable of Hangul. */
static const uint32_t *decomposition(uint32_t code, bool compatible)
{
    uint16_t at;

    if (code >= HR_CODE_BYTE)
        return NULL;
    at = compatible ? AT(compatible, code) : AT(canonical, code);
    return at > 0 ? &decompositions[at] : NULL;
}

static size_t decompose(uint32_t code, bool compatible, uint32_t *to)
{
    const uint32_t *parts = decomposition(code, compatible);
    uint32_t syllable = code - HANGUL;

    if (syllable < LEADS * VOWELS * TAILS) {
        to[0] = LEAD + syllable / (VOWELS * TAILS);
        to[1] = VOWEL + syllable / TAILS % VOWELS;
        to[2] = TAIL + syllable % TAILS;
        return syllable % TAILS > 0 ? 3 : 2;
    }
    if (parts == NULL) {
        to[0] = code;
        return 1;
    }
    memcpy(to, parts + 1, parts[0] * sizeof *to);
    return parts[0];
}

size_t hr__text_decomposed(const uint8_t *text, size_t bytes, enum hr_normal_form form)
{
    size_t count = 0;

    for (size_t at = 0; at < bytes;) {
        uint32_t code = hr__text_code(text, bytes, &at);
        const uint32_t *parts = decomposition(code, is_compatible(form));

        if (code - HANGUL < LEADS * VOWELS * TAILS)
            count += (code - HANGUL) % TAILS > 0 ? 3 : 2;
        else
            count += parts != NULL ? parts[0] : 1;
    }
    return count;
}

/* The class of a mark, which says where it goes; 0: it is none. */
static uint8_t mark_class(uint32_t code)
{
    return code < HR_CODE_BYTE ? AT(mark, code) : 0;
}

/* Sorts a run of marks by their classes, equal ones as they come. Linear, because a text
 * may be nothing but marks. */
static void sort_marks(uint32_t *marks, size_t count, uint32_t *scratch)
{
    size_t places[256] = {0}, sum = 0;

    for (size_t i = 0; i < count; i++)
        places[mark_class(marks[i])]++;
    for (size_t i = 0; i < 256; i++) {
        size_t here = places[i];

        places[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        scratch[places[mark_class(marks[i])]++] = marks[i];
    memcpy(marks, scratch, count * sizeof *marks);
}

static void order_marks(uint32_t *codes, size_t count, uint32_t *scratch)
{
    for (size_t i = 0; i < count;) {
        size_t from = i;
        bool sorted = true;

        for (; i < count && mark_class(codes[i]) > 0; i++)
            sorted =
                sorted && (i == from || mark_class(codes[i - 1]) <= mark_class(codes[i]));
        if (!sorted)
            sort_marks(codes + from, i - from, scratch);
        if (i < count)
            i++;
    }
}

/* What two characters compose, or 0. */
static uint32_t compose_pair(uint32_t first, uint32_t second)
{
    uint64_t pair = (uint64_t)first << 32 | second;
    size_t low = 0, high = PAIR_COUNT;

    if (first - LEAD < LEADS && second - VOWEL < VOWELS)
        return HANGUL + ((first - LEAD) * VOWELS + second - VOWEL) * TAILS;
    if (first - HANGUL < LEADS * VOWELS * TAILS && (first - HANGUL) % TAILS == 0 &&
        second > TAIL && second - TAIL < TAILS)
        return first + second - TAIL;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (pairs[middle] < pair)
            low = middle + 1;
        else
            high = middle;
    }
    return low < PAIR_COUNT && pairs[low] == pair ? pairs_to[low] : 0;
}

/* Composes in place; returns the number of characters. A mark composes with the last
 * character that is none, unless one of its class or a higher one is between them. */
static size_t compose(uint32_t *codes, size_t count)
{
    size_t out = 0, starter = SIZE_MAX;
    uint8_t last = 0; /* class of the mark kept after the starter */

    for (size_t i = 0; i < count; i++) {
        uint8_t class = mark_class(codes[i]);
        bool near =
            starter != SIZE_MAX && (out == starter + 1 || (last > 0 && last < class));
        uint32_t made = near ? compose_pair(codes[starter], codes[i]) : 0;

        if (made != 0) {
            codes[starter] = made;
            continue;
        }
        if (class == 0)
            starter = out;
        last = class;
        codes[out++] = codes[i];
    }
    return out;
}

size_t hr__text_normalize(const uint8_t *text, size_t bytes, enum hr_normal_form form,
                          uint32_t *codes, size_t count, uint8_t *to)
{
    size_t made = 0;
    uint8_t *out = to;

    for (size_t at = 0; at < bytes;)
        made +=
            decompose(hr__text_code(text, bytes, &at), is_compatible(form), codes + made);
    assert(made == count);
    order_marks(codes, count, codes + count);
    if (is_composed(form))
        made = compose(codes, count);
    for (size_t i = 0; i < made; i++)
        out += hr__text_put(codes[i], out);
    return (size_t)(out - to);
}

size_t
hr__text_decompose(const uint32_t *codes, size_t count, uint32_t *to, uint32_t *scratch)
{
    size_t made = 0;

    for (size_t i = 0; i < count; i++)
        made += decompose(codes[i], false, to + made);
    order_marks(to, made, scratch);
    return made;
}
