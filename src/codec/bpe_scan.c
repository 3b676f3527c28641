/*
 * codec/bpe_scan.c - the scanners in plain C, and the choice among them.
 *
 * The regular expressions, as tiktoken has them:
 *
 *   r50k    '(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++|
 * ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s cl100k
 * '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|
 *           ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s
 *   llama3  as cl100k, without the alternative \s++$
 *   o200k   P?U*L+C?|P?U+L*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|
 *           \s+(?!\S)|\s+, where P is [^\r\n\p{L}\p{N}], U
 * [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L [\p{Ll}\p{Lm}\p{Lo}\p{M}], C
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)
 */
#define SCAN_NAME hr__bpe_scan_r50k_c
#define LOWEST_BIT(bits) ((bits) != 0 ? __builtin_ctzll(bits) : 0)
#include "codec/bpe_scan_rows.h"

#include "core/cpu.h"

struct text {
    const uint8_t *bytes;
    size_t end;
};

enum {
    SET_UPPER =
        1 << HR_CHAR_UPPER | 1 << HR_CHAR_CASELESS | 1 << HR_CHAR_MARK, /* U of o200k */
    SET_LOWER = 1 << HR_CHAR_LOWER | 1 << HR_CHAR_CASELESS | 1 << HR_CHAR_MARK, /* L */
    SET_LETTER = 1 << HR_CHAR_UPPER | 1 << HR_CHAR_LOWER | 1 << HR_CHAR_CASELESS,
    SET_NUMBER = 1 << HR_CHAR_NUMBER,
    SET_WHITE = 1 << HR_CHAR_WHITE,
    SET_OTHER = 1 << HR_CHAR_OTHER | 1 << HR_CHAR_MARK, /* [^\s\p{L}\p{N}] */
};

/* Whether the character at `at` is of the set; *ret_next is where the next one is. False
 * at the end of the text. */
static inline bool is_in(const struct text *t, size_t at, unsigned set, size_t *ret_next)
{
    unsigned length;

    if (at >= t->end || (1U << hr__char_at(t->bytes, at, t->end, &length) & set) == 0)
        return false;
    *ret_next = at + length;
    return true;
}

/* The end of the run of characters of the set, at most `most`. */
static inline size_t skip(const struct text *t, size_t at, unsigned set, size_t most)
{
    while (most-- > 0 && is_in(t, at, set, &at))
        ;
    return at;
}

static size_t skip_bytes(const struct text *t, size_t at, const char *bytes)
{
    while (at < t->end && t->bytes[at] != '\0' && strchr(bytes, t->bytes[at]) != NULL)
        at++;
    return at;
}

static bool is_line_end(uint8_t byte)
{
    return byte == '\n' || byte == '\r';
}

/* The end of a contraction at `at`, in any case; `at` if there is none. U+017F is an s in
 * upper and lower case. */
static size_t skip_contraction(const struct text *t, size_t at)
{
    uint8_t a, b;

    if (at + 1 >= t->end || t->bytes[at] != '\'')
        return at;
    a = t->bytes[at + 1];
    b = at + 2 < t->end ? t->bytes[at + 2] : 0;
    if (a == 0xC5 && b == 0xBF)
        return at + 3;
    a |= 0x20;
    b |= 0x20;
    if (a == 's' || a == 'd' || a == 'm' || a == 't')
        return at + 2;
    return (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ? at + 3 : at;
}

/* White space at `at`: up to its last line end; else all but the last character, which
 * belongs to the next word; else all of it. */
static size_t skip_white(const struct text *t, size_t at, bool whole_at_end)
{
    size_t from = at, last = at, lines = at, next;

    while (is_in(t, at, SET_WHITE, &next)) {
        if (is_line_end(t->bytes[at]))
            lines = next;
        last = at;
        at = next;
    }
    if (at == t->end && whole_at_end)
        return at;
    if (lines > from)
        return lines;
    return at < t->end && last > from ? last : at;
}

/* [^\s\p{L}\p{N}]+ and the bytes after it, after an optional space; `at` if there is
 * none. */
static size_t skip_others(const struct text *t, size_t at, const char *after)
{
    size_t from = at + (t->bytes[at] == ' '), end = skip(t, from, SET_OTHER, SIZE_MAX);

    return end > from ? skip_bytes(t, end, after) : at;
}

/* ---- cl100k, llama3 ---- */

static size_t next_cl100k(const struct text *t, size_t at, bool whole_at_end)
{
    unsigned length;
    enum hr_char_class class = hr__char_at(t->bytes, at, t->end, &length);
    size_t end = skip_contraction(t, at), next;

    if (end > at)
        return end;
    if ((1U << class & SET_LETTER) != 0)
        return skip(t, at + length, SET_LETTER, SIZE_MAX);
    if (class == HR_CHAR_NUMBER)
        return skip(t, at, SET_NUMBER, 3);
    if (!is_line_end(t->bytes[at]) && is_in(t, at + length, SET_LETTER, &next))
        return skip(t, next, SET_LETTER, SIZE_MAX);
    end = skip_others(t, at, "\r\n");
    return end > at ? end : skip_white(t, at, whole_at_end);
}

/* ---- o200k ---- */

/* U*L+: U* takes all it can and gives back until L+ has a character; `at` if it never
 * has. */
static size_t skip_lower(const struct text *t, size_t at)
{
    size_t both = SIZE_MAX, next, end;

    for (end = at; is_in(t, end, SET_UPPER, &next); end = next)
        if (is_in(t, end, SET_LOWER, &next))
            both = next;
    if (is_in(t, end, SET_LOWER, &next))
        return skip(t, next, SET_LOWER, SIZE_MAX);
    return both != SIZE_MAX ? both : at;
}

/* The two alternatives for words, each with and without a character before it. A mark can
 * be that character or part of the word. */
static size_t skip_letters(const struct text *t, size_t at)
{
    unsigned length;
    enum hr_char_class class = hr__char_at(t->bytes, at, t->end, &length);
    bool has_first =
        (1U << class & (SET_OTHER | SET_WHITE)) != 0 && !is_line_end(t->bytes[at]);
    size_t after = has_first ? at + length : at, end = skip_lower(t, after);

    if (end == after && has_first) {
        size_t without = skip_lower(t, at);

        if (without > at)
            return skip_contraction(t, without);
    }
    if (end == after)
        end = skip(t, after, SET_UPPER, SIZE_MAX);
    return end > after ? skip_contraction(t, end) : at;
}

static size_t next_o200k(const struct text *t, size_t at)
{
    size_t end = skip_letters(t, at);

    if (end > at)
        return end;
    end = skip(t, at, SET_NUMBER, 3);
    if (end > at)
        return end;
    end = skip_others(t, at, "\r\n/");
    return end > at ? end : skip_white(t, at, false);
}

/* ---- scanners ---- */

static inline size_t scan_words(struct hr_bpe_scan *scan, uint32_t *ends, size_t count,
                                enum hr_tokenizer_pattern pattern)
{
    const struct text text = {scan->text, scan->end};
    size_t written = 0;

    for (; written < count && scan->at < scan->end; written++) {
        scan->at = pattern == HR_PATTERN_o200k
                       ? next_o200k(&text, scan->at)
                       : next_cl100k(&text, scan->at, pattern == HR_PATTERN_cl100k);
        ends[written] = (uint32_t)scan->at;
    }
    return written;
}

static size_t scan_cl100k(struct hr_bpe_scan *scan, uint32_t *ends, size_t count)
{
    return scan_words(scan, ends, count, HR_PATTERN_cl100k);
}

static size_t scan_llama3(struct hr_bpe_scan *scan, uint32_t *ends, size_t count)
{
    return scan_words(scan, ends, count, HR_PATTERN_llama3);
}

static size_t scan_o200k(struct hr_bpe_scan *scan, uint32_t *ends, size_t count)
{
    return scan_words(scan, ends, count, HR_PATTERN_o200k);
}

hr_bpe_scan_fn *hr__bpe_scanner(enum hr_tokenizer_pattern pattern)
{
    switch (pattern) {
    case HR_PATTERN_cl100k:
        return scan_cl100k;
    case HR_PATTERN_llama3:
        return scan_llama3;
    case HR_PATTERN_o200k:
        return scan_o200k;
    default:
        break;
    }
#ifdef HR_BPE_X86
    if (hr__isa() >= HR_ISA_AVX512)
        return hr__bpe_scan_r50k_avx512;
    if (hr__isa() >= HR_ISA_AVX2)
        return hr__bpe_scan_r50k_avx2;
#endif
    return hr__bpe_scan_r50k_c;
}
