/*
 * codec/wordpiece_test.c - WordPiece over a small vocabulary. python/tests/test_text.py
 * compares it with Hugging Face's library.
 */
#include "codec/wordpiece.h"
#include "tests/support/check.h"

#include <stdlib.h>

static const char words[] =
    "[UNK]\nwater\n##wheel\n##w\n##wh\n##eel\n,\ne\n##e\n\u00e9\n\u4e2d\nW\n"
    "a\n##a\n\u0130\ni\n##\u0307\n";

static const struct hr_wordpiece_options bert = {.clean = true,
                                                 .chinese = true,
                                                 .strip_accents = true,
                                                 .lower = true,
                                                 .unknown = "[UNK]",
                                                 .prefix = "##",
                                                 .chars_max = 100};

static struct hr_wordpiece *open_words(const struct hr_wordpiece_options *options)
{
    const struct hr_tokenizer_file file = {words, sizeof words - 1, "words.txt"};
    struct hr_wordpiece *w;
    struct hr_vocab *vocab;

    CHECK_OK(hr__vocab_read(&file, &vocab, NULL));
    CHECK_OK(hr__wordpiece_create(vocab, options, &w, NULL));
    return w;
}

/* The words with the ids that the text gives, separated by blanks. */
static void check(const struct hr_wordpiece_options *options, const char *text,
                  size_t bytes, const char *want)
{
    uint32_t *scratch = malloc(HR_WORDPIECE_SCRATCH(bytes) * sizeof *scratch);
    int32_t *ids = malloc(HR_WORDPIECE_ROOM(bytes) * sizeof *ids);
    struct hr_wordpiece *w = open_words(options);
    size_t count = hr__wordpiece_encode(w, (const uint8_t *)text, bytes, scratch, ids);
    char got[400] = "";

    for (size_t i = 0; i < count; i++) {
        const char *word = words;

        for (int32_t k = 0; k < ids[i]; k++)
            word = strchr(word, '\n') + 1;
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", i > 0 ? " " : "",
                 (int)strcspn(word, "\n"), word);
    }
    CHECK_EQ_STR(got, want);
    hr__wordpiece_destroy(w);
    free(scratch);
    free(ids);
}

#define IS(text, want) check(&bert, text, sizeof text - 1, want)

TEST(words_are_spelt_by_the_longest_pieces)
{
    IS("", "");
    IS(" \t\n", "");
    IS("water", "water");
    IS("Water WATERWHEEL", "water water ##wheel");
    IS("waterwheeel", "water ##wh ##e ##eel");
    IS("waterwhx", "[UNK]");
    IS("waterwheelw", "water ##wheel ##w");
    IS("water,,e", "water , , e");
    IS("waters", "[UNK]");
    IS("wheel", "[UNK]"); /* only inside words */
    IS("e\u0301\u00c9", "e ##e");
    IS("e\u4e2de", "e \u4e2d e");
    IS("e\0e\u200be\xEF\xBF\xBD", "e ##e ##e");
    IS("e\u3000e", "e e");
    IS("e\xff", "[UNK]");
}

TEST(options_change_what_words_are)
{
    struct hr_wordpiece_options options = bert;

    options.strip_accents = false;
    check(&options, "\u00c9", 2, "\u00e9");
    check(&options, "\u0130", 2, "i ##\u0307");
    options.lower = false;
    check(&options, "W\u00e9", 3, "[UNK]");
    check(&options, "W \u00e9 \u0130", 7, "W \u00e9 \u0130");
    options.chars_max = 4;
    check(&options, "aaaa", 4, "a ##a ##a ##a");
    check(&options, "aaaaa", 5, "[UNK]");
    options.clean = false;
    check(&options, "e\u200b", 4, "[UNK]");
    options.chinese = false;
    check(&options, "e\u4e2d", 4, "[UNK]");
}

TEST(long_words_take_no_more_memory)
{
    size_t bytes = 1 << 20;
    char *text = malloc(bytes);

    memset(text, 'a', bytes);
    check(&bert, text, bytes, "[UNK]");
    free(text);
}

TEST(a_vocabulary_without_the_word_for_unknown_ones_is_refused)
{
    const struct hr_tokenizer_file file = {"a\n", 2, "words.txt"};
    struct hr_wordpiece *w;
    struct hr_vocab *vocab;
    struct hr_error error = {0};

    CHECK_OK(hr__vocab_read(&file, &vocab, NULL));
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__wordpiece_create(vocab, &bert, &w, &error));
    CHECK_HAS(error.message, "[UNK]");
}
