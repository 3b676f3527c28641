/*
 * codec/wordpiece_test.c - WordPiece over a small vocabulary. python/tests/test_text.py
 * compares it with Hugging Face's library.
 */
#include "codec/tokenizer_json.h"
#include "codec/wordpiece.h"
#include "core/alloc.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- tokenizer.json ---- */

static const char json[] =
    "{\"added_tokens\": [{\"id\": 0, \"content\": \"[UNK]\", \"special\": true}],\n"
    "\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true,"
    " \"handle_chinese_chars\": true, \"strip_accents\": null, \"lowercase\": true},\n"
    "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},\n"
    "\"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true},\n"
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\","
    " \"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100,\n"
    "\"vocab\": {\"[UNK]\": 0, \"water\": 1, \"##wheel\": 2, \",\": 3, \"e\": 4}}}";

static enum hr_err
read_json(const char *text, struct hr_tokenizer **ret_tokenizer, struct hr_error *error)
{
    const struct hr_tokenizer_file file = {text, strlen(text), "t.json"};

    return hr__tokenizer_read_json(&file, ret_tokenizer, error);
}

static void
check_json(const char *from, const char *to, enum hr_err code, const char *message)
{
    const char *at = strstr(json, from);
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};
    char changed[2000];

    CHECK(at != NULL);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - json), json, to,
             at + strlen(from));
    CHECK_ERR(code, read_json(changed, &t, &error));
    CHECK_HAS(error.message, message);
    if (code != HR_OK)
        CHECK_HAS(error.message, "t.json");
    hr_tokenizer_destroy(t);
}

static void check_text(struct hr_tokenizer *t, const char *text, const char *back)
{
    struct hr_tokens ids = {NULL};
    char decoded[100];
    size_t bytes;

    CHECK_OK(hr_tokenizer_append(t, text, strlen(text), &ids, NULL));
    CHECK_OK(hr_tokenizer_decode(t, ids.ids, ids.count, decoded, sizeof decoded - 1,
                                 &bytes, NULL));
    decoded[bytes] = '\0';
    CHECK_EQ_STR(decoded, back);
    hr_tokens_finish(&ids);
}

TEST(tokenizer_json_of_bert_is_read)
{
    static const int32_t want[] = {1, 2, 3, 4, 0};
    struct hr_tokenizer *t = NULL;
    struct hr_tokens ids = {NULL};
    const int32_t beyond = 5;
    size_t bytes;

    CHECK_OK(read_json(json, &t, NULL));
    CHECK_EQ_INT(hr_tokenizer_vocab_size(t), 5);
    CHECK_OK(hr_tokenizer_append(t, "WaterWheel, \xC3\xA9 wheel", 20, &ids, NULL));
    CHECK_EQ_INT(ids.count, 5);
    CHECK_BYTES(ids.ids, want, sizeof want);
    check_text(t, "", "");
    check_text(t, "WaterWheel ,e  water", "waterwheel, e water");
    CHECK_ERR(HR_ERR_RANGE, hr_tokenizer_decode(t, &beyond, 1, NULL, 0, &bytes, NULL));
    hr_tokens_finish(&ids);
    hr_tokenizer_destroy(t);
}

TEST(text_longer_than_a_part_has_the_same_ids)
{
    enum { TIMES = 20000 };
    char *text = malloc(TIMES * 12 + 1), *at = text;
    struct hr_tokenizer *t = NULL;
    struct hr_tokens ids = {NULL};

    for (int i = 0; i < TIMES; i++, at += 12)
        memcpy(at, i % 1000 == 0 ? "wheelwheelxx" : "waterwheel, ", 13);
    CHECK_OK(read_json(json, &t, NULL));
    CHECK_OK(hr_tokenizer_append(t, text, TIMES * 12, &ids, NULL));
    /* wheelwheelxxwaterwheel is one unknown word */
    CHECK_EQ_INT(ids.count, (TIMES - 2 * TIMES / 1000) * 3 + 2 * TIMES / 1000);
    hr_tokens_finish(&ids);
    hr_tokenizer_destroy(t);
    free(text);
}

TEST(tokenizer_json_with_other_parts_is_refused)
{
    check_json("\"type\": \"WordPiece\", \"unk", "\"unk", HR_OK, "");
    check_json("\"WordPiece\", \"unk", "\"WordLevel\", \"unk", HR_ERR_UNSUPPORTED,
               "model.type WordLevel");
    check_json("\"WordPiece\", \"unk", "\"BPE\", \"unk", HR_ERR_FORMAT, "model.merges");
    check_json("BertNormalizer", "NFC", HR_ERR_UNSUPPORTED, "normalizer.type");
    check_json("BertPreTokenizer", "Whitespace", HR_ERR_UNSUPPORTED,
               "pre_tokenizer.type");
    check_json("\"pre_tokenizer\"", "\"other\"", HR_ERR_UNSUPPORTED,
               "pre_tokenizer.type");
    check_json("\"decoder\": {\"type\": \"WordPiece\"",
               "\"decoder\": {\"type\": \"ByteLevel\"", HR_ERR_UNSUPPORTED,
               "decoder.type");
    check_json("\"prefix\"", "\"suffix\"", HR_ERR_FORMAT, "decoder.prefix");
    check_json("\"special\": true", "\"special\": false", HR_ERR_UNSUPPORTED, "[UNK]");
    check_json("\"id\": 0", "\"id\": 7", HR_ERR_UNSUPPORTED, "added_tokens");
    check_json("\"content\"", "\"text\"", HR_ERR_FORMAT, "added token");
    check_json("\"unk_token\"", "\"unk\"", HR_ERR_FORMAT, "model.unk_token");
    check_json("\"unk_token\": \"[UNK]\"", "\"unk_token\": \"nothing\"", HR_ERR_NOT_FOUND,
               "nothing");
    check_json("100", "1000000", HR_ERR_UNSUPPORTED, "max_input_chars_per_word");
    check_json("\"vocab\"", "\"words\"", HR_ERR_FORMAT, "model.vocab");
    check_json("\"e\": 4", "\"e\": 1", HR_ERR_FORMAT, "id 1");
    check_json("\"e\": 4", "\"e\": -1", HR_ERR_RANGE, "ids must be");
}

TEST(any_failing_allocation_of_a_tokenizer_is_reported)
{
    bool failed = true;

    for (uint64_t nth = 1; failed; nth++) {
        struct hr_tokenizer *t = NULL;
        struct hr_tokens ids = {NULL};
        struct hr_error error = {0};
        enum hr_err err;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        err = read_json(json, &t, &error);
        if (err == HR_OK)
            err = hr_tokenizer_append(t, "water wheel", 11, &ids, &error);
        failed = hr__fault_calls() >= nth;
        hr__fault_arm(0, 0);
        CHECK_ERR(failed ? HR_ERR_MEMORY : HR_OK, err);
        CHECK(err == HR_OK || ids.count == 0);
        hr_tokens_finish(&ids);
        hr_tokenizer_destroy(t);
    }
}
