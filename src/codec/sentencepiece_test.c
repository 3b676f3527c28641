/*
 * codec/sentencepiece_test.c - small models. python/tests/test_tokenizer.py compares with
 * the sentencepiece library.
 */
#include "codec/sentencepiece_test_util.h"
#include "tests/support/check.h"

#include "codec/trie.h"

#include <math.h>
#include <stdlib.h>

static enum hr_err
read_text(const struct hr_str *text, struct hr_tokenizer **ret, struct hr_error *error)
{
    const struct hr_tokenizer_file file = {hr__str_text(text), text->length, "toy.model"};

    return hr__sentencepiece_read(&file, ret, error);
}

static struct hr_tokenizer *open_toy(const struct toy *toy)
{
    struct hr_tokenizer *t = NULL;
    struct hr_str text;

    toy_write(toy, &text);
    CHECK_OK(read_text(&text, &t, NULL));
    hr__str_finish(&text);
    return t;
}

/* The ids of a text, separated by blanks. */
static void
check(struct hr_tokenizer *t, const char *text, size_t bytes, const char *want)
{
    char got[400];

    for (int again = 0; again < 2; again++) {
        struct hr_tokens ids = {NULL};

        got[0] = '\0';
        CHECK_OK(hr_tokenizer_append(t, text, bytes, &ids, NULL));
        for (size_t i = 0; i < ids.count; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d",
                     i > 0 ? " " : "", (int)ids.ids[i]);
        CHECK_EQ_STR(got, want);
        hr_tokens_finish(&ids);
    }
}

static void
check_text(struct hr_tokenizer *t, const int32_t *ids, size_t count, const char *want)
{
    char text[200];
    size_t bytes;

    CHECK_OK(hr_tokenizer_decode(t, ids, count, text, sizeof text, &bytes, NULL));
    CHECK_EQ_INT(bytes, strlen(want));
    CHECK_BYTES(text, want, bytes);
}

#define IS(text, want) check(t, text, sizeof text - 1, want)
#define DECODES(want, ...)                                                               \
    check_text(t, (const int32_t[]){__VA_ARGS__},                                        \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t), want)

/* 0 to 11 */
static const struct toy_piece pieces[] = {
    {"<unk>",        0,     TOY_UNKNOWN},
    {"<s>",          0,     TOY_CONTROL},
    {"\u2581",       -4,    TOY_NORMAL },
    {"a",            -5,    TOY_NORMAL },
    {"b",            -5.5f, TOY_NORMAL },
    {"ab",           -6,    TOY_NORMAL },
    {"\u2581a",      -6,    TOY_NORMAL },
    {"\u2581ab",     -9,    TOY_NORMAL },
    {"ba",           -9,    TOY_NORMAL },
    {"<x>",          0,     TOY_USER   },
    {"\u2581\u2581", -7,    TOY_NORMAL },
    {"bab",          -1,    TOY_UNUSED },
    {NULL,           0,     0          },
};

TEST(unigram_takes_the_pieces_of_the_best_total_score)
{
    struct hr_tokenizer *t = open_toy(&(struct toy){.pieces = pieces});

    CHECK_EQ_INT(hr_tokenizer_vocab_size(t), 12);
    IS("", "");
    IS(" \n", "2 0");
    IS("   ", "");
    IS("a", "6");
    IS("ab", "7");
    IS("  ab  ab ", "7 7");
    IS("abab", "7 5");
    IS("baba", "2 4 5 3");
    IS("bab", "2 4 5");
    IS("ba", "2 8");
    IS("a<x>b", "6 9 4");
    IS("<x>", "2 9");
    IS("<s>", "2 0");
    IS("xyz a", "2 0 6");
    IS("a x", "6 2 0");
    IS("a\0", "6 0");
    IS("a", "6");
    IS("\xC3\xA9\xFF", "2 0");
    DECODES("ab <x>a \u2047 b", 1, 7, 2, 9, 3, 0, 4);
    DECODES("", 1);
    DECODES("a", 2, 3);
    DECODES("a a", 6, 6);
    hr_tokenizer_destroy(t);
}

TEST(bpe_merges_the_pair_of_the_highest_score)
{
    struct hr_tokenizer *t = open_toy(&(struct toy){.pieces = pieces, .bpe = true});

    IS("ab", "7");
    IS("aab", "6 5");
    /* Unused pieces are made, and taken apart again at the end. */
    IS("abab", "6 4 5");
    IS("baba", "2 4 5 3");
    IS("bab", "2 4 5");
    IS("xbab", "2 0 4 5");
    IS("a<x>b", "6 9 4");
    IS("xyz a", "2 0 6");
    hr_tokenizer_destroy(t);
}

TEST(unknown_characters_are_spelt_in_bytes)
{
    const struct toy toys[] = {
        {.pieces = pieces, .bytes = true},
        { .pieces = pieces,   .bytes = true,   .bpe = true}
    };

    for (int i = 0; i < 2; i++) {
        struct hr_tokenizer *t = open_toy(&toys[i]);

        IS("a\u00e9", "6 207 181");
        IS("a\xFF", "6 251 203 201"); /* U+FFFD */
        DECODES("a\u00e9a", 6, 207, 181, 3);
        DECODES("a\uFFFD\uFFFD", 6, 207, 207);
        DECODES("\uFFFDa", 207, 3);
        hr_tokenizer_destroy(t);
    }
}

static const struct toy_rule rules[] = {
    {"\t",      " "                         },
    {"\u3000",  " "                         },
    {"A",       "a"                         },
    {"A\u0308", "ba"                        },
    {"\u200b",  ""                          },
    {"\ufdfa",  "abababababababababababab a"},
    {NULL,      NULL                        },
};

TEST(rules_of_the_longest_match_normalise_the_text)
{
    struct hr_tokenizer *t = open_toy(&(struct toy){.pieces = pieces, .rules = rules});
    int32_t ids[64];
    size_t count = 0;

    IS("A", "6");
    IS("\tA\u3000A\t", "6 6");
    IS("A\u0308", "2 8");
    IS("b\u200bA", "2 8");
    IS("\u200b", "");
    IS("a \u200b a", "6 6");
    IS("a<x>A", "6 9 3");
    /* More ids than bytes. */
    IS("\ufdfa", "7 5 5 5 5 5 5 5 5 5 5 5 6");
    CHECK_ERR(HR_ERR_LIMIT, hr_tokenizer_encode(t, "\ufdfa", 3, ids, 7, &count, NULL));
    CHECK_EQ_INT(count, 13);
    CHECK_OK(hr_tokenizer_encode(t, "\ufdfa", 3, ids, 13, &count, NULL));
    CHECK_EQ_INT(ids[12], 6);
    hr_tokenizer_destroy(t);
}

TEST(options_say_where_spaces_are)
{
    struct hr_tokenizer *t = open_toy(&(struct toy){.pieces = pieces, .no_prefix = true});

    IS("a ab", "3 7");
    DECODES("a", 6);
    hr_tokenizer_destroy(t);
    t = open_toy(&(struct toy){.pieces = pieces, .keep_spaces = true});
    IS("a", "6");
    IS(" a", "2 6");
    IS("a  a ", "6 2 6 2");
    IS("a   a", "6 10 6");
    IS("  ", "2 10");
    DECODES(" a", 10, 3);
    DECODES(" a", 2, 6);
    hr_tokenizer_destroy(t);
    t = open_toy(&(struct toy){.pieces = pieces, .suffix = true});
    IS("a a", "3 6 2");
    hr_tokenizer_destroy(t);
}

/* ---- models at random ---- */

static void draw_text(struct hr_rng *rng, size_t words, struct hr_str *out)
{
    hr__str_init(out);
    for (size_t i = 0; i < words; i++) {
        size_t letters = 1 + hr__rng_below(rng, hr__rng_below(rng, 20) == 0 ? 40 : 6);

        for (size_t k = 0; k < letters; k++)
            hr__str_addf(out, "%c",
                         hr__rng_below(rng, 40) == 0 ? 'e'
                                                     : 'a' + (int)hr__rng_below(rng, 4));
        hr__str_add(out, hr__rng_below(rng, 9) == 0 ? "  " : " ");
    }
}

static void check_drawn(bool bpe, uint64_t stream)
{
    struct hr_tokenizer *t;
    struct toy_drawn drawn;
    struct hr_rng rng;
    struct hr_str text;

    hr__rng_init(&rng, check_seed(), 0, stream);
    toy_draw(&drawn, bpe, &rng);
    t = open_toy(&(struct toy){.pieces = drawn.pieces, .bpe = bpe});
    for (size_t words = 0; words < 400; words += 1 + words / 2) {
        struct hr_tokens got = {NULL};
        int32_t *want;
        size_t count;

        draw_text(&rng, words, &text);
        want = malloc((2 * text.length + 2) * sizeof *want);
        count = toy_encode(&drawn, bpe, hr__str_text(&text), want);
        CHECK_OK(hr_tokenizer_append(t, hr__str_text(&text), text.length, &got, NULL));
        CHECK_EQ_INT(got.count, count);
        for (size_t i = 0; i < count; i++)
            if (got.ids[i] != want[i])
                check_failed(__FILE__, __LINE__, "id %zu is %d, not %d in \"%s\"", i,
                             (int)got.ids[i], (int)want[i], text.text);
        hr_tokens_finish(&got);
        free(want);
        hr__str_finish(&text);
    }
    hr_tokenizer_destroy(t);
}

/* Words are remembered, and the slow way adds from the start of the text: totals of
 * thousands, in which nearly equal scores are equal, give the same ids. */
TEST(drawn_models_give_the_ids_of_trying_every_way)
{
    for (uint64_t i = 0; i < 12; i++) {
        check_drawn(false, 2 * i);
        check_drawn(true, 2 * i + 1);
    }
}

TEST(long_words_take_time_in_proportion)
{
    const struct toy toys[] = {
        {.pieces = pieces},
        { .pieces = pieces,     .bpe = true}
    };
    size_t bytes = (size_t)1 << 20;
    char *text = malloc(bytes);

    for (size_t i = 0; i < bytes; i++)
        text[i] = i % 3 == 0 ? 'b' : 'a';
    for (int i = 0; i < 2; i++) {
        struct hr_tokenizer *t = open_toy(&toys[i]);
        struct hr_tokens ids = {NULL};

        CHECK_OK(hr_tokenizer_append(t, text, bytes, &ids, NULL));
        CHECK(ids.count > bytes / 3 && ids.count <= bytes);
        hr_tokens_finish(&ids);
        hr_tokenizer_destroy(t);
    }
    free(text);
}

/* ---- damaged files ---- */

static void refused(const struct hr_str *text, enum hr_err code, const char *words)
{
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};

    CHECK_ERR(code, read_text(text, &t, &error));
    CHECK_HAS(error.message, "toy.model");
    CHECK_HAS(error.message, words);
}

static void refused_pieces(const struct toy_piece *some, bool bytes, const char *words)
{
    struct hr_str text;

    toy_write(&(struct toy){.pieces = some}, &text);
    if (bytes)
        toy_bytes(&text, 2, "\x98\x02\x01", 3);
    refused(&text, HR_ERR_FORMAT, words);
    hr__str_finish(&text);
}

#define REFUSED(words, bytes, ...)                                                       \
    do {                                                                                 \
        static const struct toy_piece some_[] = {__VA_ARGS__, TOY_END};                  \
                                                                                         \
        refused_pieces(some_, bytes, words);                                             \
    } while (0)

#define UNKNOWN                                                                          \
    {                                                                                    \
        "<unk>", 0, TOY_UNKNOWN                                                          \
    }

TEST(pieces_that_make_no_sense_are_refused)
{
    REFUSED("no unknown piece", false, {"a", 0, TOY_NORMAL});
    REFUSED("is empty", false, UNKNOWN, {"", 0, TOY_NORMAL});
    REFUSED("no number", false, UNKNOWN, {"a", NAN, TOY_NORMAL});
    REFUSED("second unknown", false, UNKNOWN, {"<u>", 0, TOY_UNKNOWN});
    REFUSED("\"a\" is defined twice", false, UNKNOWN, {"a", 0, TOY_NORMAL},
            {"a", 0, TOY_USER});
    REFUSED("no byte_fallback", false, UNKNOWN, {"<0x41>", 0, TOY_BYTE});
    REFUSED("like <0x41>", true, UNKNOWN, {"<0xg1>", 0, TOY_BYTE});
    REFUSED("byte 0x00", true, UNKNOWN, {"<0x41>", 0, TOY_BYTE});
}

static void refused_field(unsigned field, const void *bytes, size_t count,
                          enum hr_err code, const char *words)
{
    struct hr_str text;

    toy_write(&(struct toy){.pieces = pieces}, &text);
    toy_bytes(&text, field, bytes, count);
    refused(&text, code, words);
    hr__str_finish(&text);
}

TEST(files_of_other_kinds_are_refused)
{
    static const char not_a_model[] = "{\"model\": 1}";
    struct hr_str text, message;

    hr__str_init(&text);
    refused(&text, HR_ERR_FORMAT, "no unknown piece"); /* an empty file */
    hr__str_add(&text, not_a_model);
    refused(&text, HR_ERR_FORMAT, "malformed at byte 0");
    hr__str_finish(&text);
    refused_field(2, "\x18\x03", 2, HR_ERR_UNSUPPORTED, "type word");
    refused_field(2, "\x18\x63", 2, HR_ERR_UNSUPPORTED, "type unknown");
    refused_field(5, "\x12\x01x", 3, HR_ERR_UNSUPPORTED, "denormalizer");
    refused_field(3, "\x12\x03xyz", 5, HR_ERR_FORMAT, "malformed at byte");
    hr__str_init(&message);
    toy_bytes(&message, 2, "\x04\0\0\0\0\0\0\0a", 9); /* the texts do not end */
    refused_field(3, message.text, message.length, HR_ERR_FORMAT, "malformed at byte");
    hr__str_finish(&message);
}

/* Every byte changed and every length: refused, or usable. */
TEST(damaged_models_are_refused_or_usable)
{
    struct hr_str text;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 99);
    toy_write(&(struct toy){.pieces = pieces, .rules = rules}, &text);
    for (int i = 0; i < 300; i++) {
        struct hr_str damaged;
        struct hr_tokenizer *t = NULL;

        hr__str_init(&damaged);
        hr__str_add_bytes(&damaged, text.text,
                          i % 3 == 0 ? hr__rng_below(&rng, text.length) : text.length);
        if (i % 3 > 0)
            damaged.text[hr__rng_below(&rng, damaged.length)] ^=
                (char)(1U << hr__rng_below(&rng, 8));
        if (read_text(&damaged, &t, NULL) == HR_OK) {
            struct hr_tokens ids = {NULL};

            CHECK_OK(hr_tokenizer_append(t, "A\u0308 ab\t\u200b<x>", 13, &ids, NULL));
            hr_tokens_finish(&ids);
            hr_tokenizer_destroy(t);
        }
        hr__str_finish(&damaged);
    }
    hr__str_finish(&text);
}

/* ---- the trie ---- */

TEST(tries_find_their_strings_and_no_others)
{
    enum { COUNT = 2000 };
    static uint8_t texts[COUNT][6];
    static struct hr_trie_key keys[COUNT], probe[COUNT];
    struct hr_trie trie;
    struct hr_rng rng;
    int32_t twice;
    size_t count = 0;

    hr__rng_init(&rng, check_seed(), 0, 100);
    for (int i = 0; i < COUNT; i++) {
        size_t bytes = 1 + hr__rng_below(&rng, 6);
        bool there = false;

        for (size_t k = 0; k < bytes; k++)
            texts[i][k] = (uint8_t)(1 + hr__rng_below(&rng, i % 2 == 0 ? 4 : 255));
        for (size_t k = 0; k < count; k++)
            there |=
                keys[k].count == bytes && memcmp(keys[k].bytes, texts[i], bytes) == 0;
        if (!there)
            keys[count++] = (struct hr_trie_key){texts[i], (uint32_t)bytes, i};
    }
    memcpy(probe, keys, sizeof probe);
    CHECK_OK(hr__trie_build(&trie, keys, count, &twice));
    for (size_t i = 0; i < count; i++) {
        uint8_t longer[7] = {0};

        CHECK_EQ_INT(hr__trie_find(&trie, probe[i].bytes, probe[i].count),
                     probe[i].value);
        memcpy(longer, probe[i].bytes, probe[i].count); /* a zero byte follows */
        CHECK_EQ_INT(hr__trie_find(&trie, longer, probe[i].count + 1), -1);
    }
    hr__trie_finish(&trie);
    CHECK_OK(hr__trie_build(&trie, keys, 0, &twice));
    CHECK_EQ_INT(hr__trie_find(&trie, texts[0], 1), -1);
    hr__trie_finish(&trie);
    keys[1] = keys[0];
    CHECK_ERR(HR_ERR_FORMAT, hr__trie_build(&trie, keys, 2, &twice));
    CHECK_EQ_INT(twice, keys[0].value);
}
