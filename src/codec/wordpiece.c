/*
 * codec/wordpiece.c - WordPiece with the ids of Hugging Face's BertNormalizer,
 * BertPreTokenizer and WordPiece. Their tables of punctuation, control characters and
 * marks are older than ours: bert.def has them.
 */
#include "codec/wordpiece.h"
#include "codec/text.h"
#include "codec/unicode.h"
#include "core/alloc.h"
#include "core/error.h"

#include <string.h>

#include "codec/bert.def"

enum { BERT_REMOVED = 1, BERT_PUNCTUATION = 2, BERT_ACCENT = 4 };

struct hr_wordpiece {
    struct hr_vocab *vocab;
    struct hr_wordpiece_options options;
    char prefix[HR_WORDPIECE_PREFIX_MAX + 1];
    size_t prefix_bytes, piece_max; /* bytes of the longest word of the vocabulary */
    int32_t unknown;
};

enum hr_err
hr__wordpiece_create(struct hr_vocab *vocab, const struct hr_wordpiece_options *options,
                     struct hr_wordpiece **ret_wordpiece, struct hr_error *reterr)
{
    int32_t unknown = hr__vocab_find(vocab, options->unknown, strlen(options->unknown));
    struct hr_wordpiece *w = NULL;
    enum hr_err err = HR_OK;

    if (unknown < 0)
        err = hr__fail(reterr, HR_ERR_NOT_FOUND,
                       "the word \"%.100s\" for unknown words is not in the vocabulary",
                       options->unknown);
    else if (strlen(options->prefix) > HR_WORDPIECE_PREFIX_MAX)
        err = hr__fail(reterr, HR_ERR_LIMIT, "the prefix is longer than %d bytes",
                       HR_WORDPIECE_PREFIX_MAX);
    else if ((w = hr__calloc(1, sizeof *w)) == NULL)
        err = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (err != HR_OK) {
        hr__vocab_destroy(vocab);
        return err;
    }
    w->vocab = vocab;
    w->options = *options;
    w->unknown = unknown;
    w->prefix_bytes = strlen(options->prefix);
    memcpy(w->prefix, options->prefix, w->prefix_bytes);
    for (int32_t id = 0; id < hr__vocab_size(vocab); id++) {
        size_t bytes = 0;

        (void)hr__vocab_word(vocab, id, &bytes);
        w->piece_max = bytes > w->piece_max ? bytes : w->piece_max;
    }
    *ret_wordpiece = w;
    return HR_OK;
}

void hr__wordpiece_destroy(struct hr_wordpiece *wordpiece)
{
    if (wordpiece != NULL)
        hr__vocab_destroy(wordpiece->vocab);
    hr__free(wordpiece);
}

const struct hr_vocab *hr__wordpiece_vocab(const struct hr_wordpiece *wordpiece)
{
    return wordpiece->vocab;
}

/* ---- characters ---- */

static unsigned flags_of(uint32_t code)
{
    return code < HR_CODE_BYTE ? bert_at[bert_blocks[code >> HR_CHAR_BLOCK_BITS]]
                                        [code & ((1 << HR_CHAR_BLOCK_BITS) - 1)]
                               : 0;
}

/* The ranges of BERT's own code; 0x2B920 is there, too. */
static bool is_ideograph(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x4E00,  0x9FFF },
        {0x3400,  0x4DBF },
        {0x20000, 0x2A6DF},
        {0x2A700, 0x2B73F},
        {0x2B740, 0x2B81F},
        {0x2B920, 0x2CEAF},
        {0xF900,  0xFAFF },
        {0x2F800, 0x2FA1F},
    };

    if (code < 0x3400)
        return false;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

static bool is_space(uint32_t code)
{
    return code < HR_CODE_BYTE && hr__char_class(code) == HR_CHAR_WHITE;
}

/* The text's characters, cleaned, ideographs between blanks. */
static size_t read_text(const struct hr_wordpiece *w, const uint8_t *text, size_t bytes,
                        uint32_t *codes)
{
    size_t count = 0;

    for (size_t at = 0; at < bytes;) {
        uint32_t code = hr__text_code(text, bytes, &at);
        bool apart = w->options.chinese && is_ideograph(code);

        if (w->options.clean && (flags_of(code) & BERT_REMOVED) != 0)
            continue;
        if (apart)
            codes[count++] = ' ';
        codes[count++] = code;
        if (apart)
            codes[count++] = ' ';
    }
    return count;
}

static size_t strip_accents(uint32_t *codes, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if ((flags_of(codes[i]) & BERT_ACCENT) == 0)
            codes[kept++] = codes[i];
    return kept;
}

/* ---- words ---- */

/* A word, with room for the prefix before each of its characters but the first. */
struct word {
    uint8_t text[HR_WORDPIECE_PREFIX_MAX + 4 * (HR_WORDPIECE_CHARS_MAX + 1)];
    size_t bytes;
    int32_t chars;
    int32_t *ids;
    size_t count;
};

/* The id of the longest piece at `from`, whose end is *ret_end; -1 if there is none. What
 * is before it was used already, so the prefix is put there. */
static int32_t longest_piece(const struct hr_wordpiece *w, struct word *word, size_t from,
                             size_t *ret_end)
{
    size_t prefix = from > 0 ? w->prefix_bytes : 0, end = word->bytes;
    uint8_t *text = word->text + HR_WORDPIECE_PREFIX_MAX, *piece = text + from - prefix;

    memcpy(piece, w->prefix, prefix);
    if (end - from + prefix > w->piece_max)
        end = w->piece_max > prefix ? from + w->piece_max - prefix : from;
    for (; end > from; end--) {
        int32_t id;

        if (end < word->bytes && (text[end] & 0xC0) == 0x80)
            continue;
        id = hr__vocab_find(w->vocab, piece, end - from + prefix);
        if (id >= 0) {
            *ret_end = end;
            return id;
        }
    }
    return -1;
}

static void end_word(const struct hr_wordpiece *w, struct word *word)
{
    size_t first = word->count, at = 0;
    bool known = word->chars <= w->options.chars_max;

    if (word->chars == 0)
        return;
    while (known && at < word->bytes) {
        int32_t id = longest_piece(w, word, at, &at);

        known = id >= 0;
        word->ids[word->count++] = id;
    }
    if (!known) {
        word->count = first;
        word->ids[word->count++] = w->unknown;
    }
    word->bytes = 0;
    word->chars = 0;
}

static void add_char(const struct hr_wordpiece *w, struct word *word, uint32_t code)
{
    if (is_space(code)) {
        end_word(w, word);
        return;
    }
    if ((flags_of(code) & BERT_PUNCTUATION) != 0)
        end_word(w, word);
    if (word->chars++ < w->options.chars_max)
        word->bytes +=
            hr__text_put(code, word->text + HR_WORDPIECE_PREFIX_MAX + word->bytes);
    if ((flags_of(code) & BERT_PUNCTUATION) != 0)
        end_word(w, word);
}

size_t hr__wordpiece_encode(const struct hr_wordpiece *w, const uint8_t *text,
                            size_t bytes, uint32_t *scratch, int32_t *ids)
{
    uint32_t *codes = scratch, lowered[2];
    size_t count = read_text(w, text, bytes, codes);
    struct word word;

    if (w->options.strip_accents && !hr__text_is_normal(text, bytes, HR_NFD)) {
        codes = scratch + HR_WORDPIECE_ROOM(bytes);
        count =
            hr__text_decompose(scratch, count, codes, codes + HR_WORDPIECE_ROOM(bytes));
        count = strip_accents(codes, count);
    }
    word.bytes = word.count = 0;
    word.chars = 0;
    word.ids = ids;
    for (size_t i = 0; i < count; i++) {
        size_t parts = 1;

        lowered[0] = codes[i];
        if (w->options.lower)
            parts = hr__text_lower_code(codes[i], lowered);
        for (size_t k = 0; k < parts; k++)
            add_char(w, &word, lowered[k]);
    }
    end_word(w, &word);
    return word.count;
}
