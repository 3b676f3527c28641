#include "codec/bpe_test_util.h"
#include "tests/support/check.h"

#include "codec/bpe_scan.h"
#include "codec/tokenizer_json.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "tests/support/isas.h"

#include <stdlib.h>

static struct hr_rng rng_of(uint64_t stream)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, stream);
    return rng;
}

/* ---- ids ---- */

static void check_ids(struct hr_tokenizer *t, const struct tiny *tiny, bool ranks,
                      const struct hr_str *text)
{
    int32_t *want = malloc((text->length + 1) * sizeof *want);
    struct hr_tokens got = {NULL};
    size_t count;

    CHECK(want != NULL);
    count = tiny_encode(tiny, ranks, (const uint8_t *)text->text, text->length, want);
    for (int again = 0; again < 2; again++) {
        got.count = 0;
        CHECK_OK(hr_tokenizer_append(t, text->text, text->length, &got, NULL));
        CHECK_EQ_INT(got.count, count);
        for (size_t i = 0; i < count; i++)
            if (got.ids[i] != want[i])
                check_failed(__FILE__, __LINE__, "id %zu is %d, not %d", i,
                             (int)got.ids[i], (int)want[i]);
    }
    hr_tokens_finish(&got);
    free(want);
}

static void check_decoding(struct hr_tokenizer *t, const struct hr_str *text)
{
    struct hr_tokens ids = {NULL};
    char *back = malloc(text->length + 1);
    size_t bytes;

    CHECK_OK(hr_tokenizer_append(t, text->text, text->length, &ids, NULL));
    CHECK_OK(
        hr_tokenizer_decode(t, ids.ids, ids.count, back, text->length + 1, &bytes, NULL));
    CHECK_EQ_INT(bytes, text->length);
    CHECK_BYTES(back, text->text, bytes);
    hr_tokens_finish(&ids);
    free(back);
}

static struct hr_tokenizer *read_ranks(const struct tiny *tiny)
{
    struct hr_tokenizer *t = NULL;
    struct hr_str ranks;
    struct hr_tokenizer_file file;

    tiny_ranks(tiny, &ranks);
    file = (struct hr_tokenizer_file){ranks.text, ranks.length, "ranks"};
    CHECK_OK(hr__bpe_read_tiktoken(&file, HR_PATTERN_r50k, &t, NULL));
    hr__str_finish(&ranks);
    return t;
}

static struct hr_tokenizer *read_json(const struct tiny *tiny)
{
    struct hr_tokenizer *t = NULL;
    struct hr_str json;
    struct hr_tokenizer_file file;

    tiny_json(tiny, TINY_R50K, &json);
    file = (struct hr_tokenizer_file){json.text, json.length, "tokenizer.json"};
    CHECK_OK(hr__tokenizer_read_json(&file, &t, NULL));
    hr__str_finish(&json);
    return t;
}

TEST(ids_are_those_of_merging_step_by_step)
{
    static struct tiny tiny;

    for (uint64_t round = 0; round < 20; round++) {
        struct hr_rng rng = rng_of(round);
        struct hr_tokenizer *t[3];

        tiny_draw(&tiny, &rng);
        hr__isa_limit(test_isas[round % TEST_ISAS]);
        t[0] = tiny_gpt2(&tiny);
        t[1] = read_json(&tiny);
        t[2] = read_ranks(&tiny);
        for (int i = 0; i < 12; i++) {
            struct hr_str text;

            hr__str_init(&text);
            tiny_text(&rng, 1 + hr__rng_below(&rng, 120), &text);
            for (int k = 0; k < 3; k++)
                check_ids(t[k], &tiny, k == 2, &text);
            check_decoding(t[round % 3], &text);
            hr__str_finish(&text);
        }
        for (int k = 0; k < 3; k++)
            hr_tokenizer_destroy(t[k]);
    }
    hr__isa_limit(HR_ISA_AVX512);
}

/* More distinct words than a cache has entries for. */
TEST(words_that_are_lost_from_the_cache_have_the_same_ids)
{
    static struct tiny tiny;
    struct hr_rng rng = rng_of(1000);
    struct hr_tokenizer *t;
    struct hr_tokens first = {NULL}, second = {NULL};
    struct hr_str text;
    char word[48];

    tiny_draw(&tiny, &rng);
    t = tiny_gpt2(&tiny);
    hr__str_init(&text);
    for (uint32_t i = 0; i < 1200000; i++) {
        size_t length = i % 40 == 0 ? 17 + i % 13 : 4 + i % 9;

        for (size_t k = 0; k < length; k++)
            word[k] = (char)('a' + (i * 2654435761U >> 5 * (k % 6) & 15));
        word[length] = ' ';
        hr__str_add_bytes(&text, word, length + 1);
    }
    CHECK(hr__str_ok(&text));
    CHECK_OK(hr_tokenizer_append(t, text.text, text.length, &first, NULL));
    CHECK_OK(hr_tokenizer_append(t, text.text, text.length, &second, NULL));
    CHECK_EQ_INT(first.count, second.count);
    CHECK_BYTES(first.ids, second.ids, first.count * sizeof first.ids[0]);
    text.length = 300000; /* the slow way takes a while */
    check_ids(t, &tiny, false, &text);
    hr_tokens_finish(&first);
    hr_tokens_finish(&second);
    hr__str_finish(&text);
    hr_tokenizer_destroy(t);
}

TEST(a_word_of_a_megabyte_is_encoded)
{
    static const char *const kinds[] = {"a", "ab", "abcabca", " ", "\xE4\xB8\xAD", "!?"};
    static struct tiny tiny;
    struct hr_rng rng = rng_of(2000);
    struct hr_tokenizer *t;

    tiny_draw(&tiny, &rng);
    t = tiny_gpt2(&tiny);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct hr_str text;

        hr__str_init(&text);
        while (text.length < 1 << 20)
            hr__str_add(&text, kinds[k]);
        check_decoding(t, &text);
        text.length = 1500;
        check_ids(t, &tiny, false, &text);
        hr__str_finish(&text);
    }
    hr_tokenizer_destroy(t);
}

/* ---- words ---- */

/* Words separated by '|', as tiktoken and Hugging Face's library split them. */
static const struct {
    enum hr_tokenizer_pattern pattern;
    const char *words;
} golden[] = {
    {HR_PATTERN_r50k,   "Hello| world|'s|  | 3|.|14|\n|\n|x|\t|y|'re|'|RE|  "               },
    {HR_PATTERN_r50k,
     "a|''|s| '|s|'ll|ama|!'|s|\302\240|b|\343\200\200|\344\270\255| 12|ab|'d|'"            },
    {HR_PATTERN_cl100k,
     "Hello| world|'S|\t|\ty| |123|45|.\n\n|x|(foo|)\r\n| | a|  \n| | b|  \n "              },
    {HR_PATTERN_cl100k, "a|'\305\277|b|  | c|'LL|\n  "                                      },
    {HR_PATTERN_llama3,
     "Hello| world|'S|\t|\ty| |123|45|.\n\n|x|(foo|)\r\n| | a|  \n| | b|  \n| "             },
    {HR_PATTERN_llama3, "a|'\305\277|b|  | c|'LL|\n|  "                                     },
    {HR_PATTERN_o200k,  "Hello|World's|HELLOworld| |123|45|/a|//\n/|  \n|  "                },
    {HR_PATTERN_o200k,  "\314\201ABC\344\270\255Abe\314\201t| "
                       "\307\205|!!|xdon't|T\314\201| A\314\201a|12|a"},
};

static void check_words(hr_bpe_scan_fn *scanner, const char *words)
{
    struct hr_bpe_scan scan = {.text = NULL};
    uint32_t ends[64 + HR_BPE_SCAN_SLACK];
    uint8_t text[256];
    size_t bytes = 0, count, word = 0;

    for (const char *at = words; *at != '\0'; at++)
        if (*at != '|')
            text[bytes++] = (uint8_t)*at;
    scan.text = text;
    scan.end = bytes;
    count = scanner(&scan, ends, 64);
    bytes = 0;
    for (const char *at = words;; at++) {
        if (*at == '|' || *at == '\0') {
            if (word >= count || ends[word] != bytes)
                check_failed(__FILE__, __LINE__, "word %zu of \"%s\" ends at %u, not %zu",
                             word, words, word < count ? ends[word] : 0, bytes);
            word++;
            if (*at == '\0')
                break;
        } else {
            bytes++;
        }
    }
    CHECK_EQ_INT(word, count);
}

TEST(text_is_split_as_the_patterns_say)
{
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
        for (int k = 0; k < TEST_ISAS; k++) {
            hr__isa_limit(test_isas[k]);
            check_words(hr__bpe_scanner(golden[i].pattern), golden[i].words);
        }
    hr__isa_limit(HR_ISA_AVX512);
}

TEST(words_of_every_pattern_cover_the_text)
{
    struct hr_rng rng = rng_of(3000);

    for (int i = 0; i < 400; i++) {
        enum hr_tokenizer_pattern pattern = (enum hr_tokenizer_pattern)(i % 4);
        struct hr_bpe_scan scan = {.text = NULL};
        uint32_t ends[7 + HR_BPE_SCAN_SLACK];
        struct hr_str text;
        size_t at = 0, count;

        hr__str_init(&text);
        tiny_text(&rng, 60, &text);
        scan.text = (const uint8_t *)text.text;
        scan.end = text.length;
        while ((count = hr__bpe_scanner(pattern)(&scan, ends, 7)) > 0)
            for (size_t k = 0; k < count; k++) {
                CHECK(ends[k] > at && ends[k] <= text.length);
                at = ends[k];
            }
        CHECK_EQ_INT(at, text.length);
        hr__str_finish(&text);
    }
}

/* ---- files ---- */

/* The bytes as tokens in base64 with their ids as ranks. */
static void add_bytes(struct hr_str *out)
{
    static struct tiny tiny;
    struct hr_str ranks;
    struct hr_rng rng = rng_of(4000);
    size_t lines = 0, at = 0;

    tiny_draw(&tiny, &rng);
    tiny_ranks(&tiny, &ranks);
    for (; lines < 256; at++)
        lines += ranks.text[at] == '\n';
    hr__str_add_bytes(out, ranks.text, at);
    hr__str_finish(&ranks);
}

static void
check_ranks(const char *more, bool with_bytes, enum hr_err code, const char *message)
{
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};
    struct hr_tokenizer_file file;
    struct hr_str text;

    hr__str_init(&text);
    if (with_bytes)
        add_bytes(&text);
    hr__str_add(&text, more);
    file = (struct hr_tokenizer_file){hr__str_text(&text), text.length, "some.tiktoken"};
    CHECK_ERR(code, hr__bpe_read_tiktoken(&file, HR_PATTERN_r50k, &t, &error));
    if (code != HR_OK)
        CHECK_HAS(error.message, message);
    hr_tokenizer_destroy(t);
    hr__str_finish(&text);
}

TEST(damaged_rank_files_are_refused_with_their_line)
{
    check_ranks("", true, HR_OK, "");
    check_ranks("YWI= 1000\r\n\n", true, HR_OK, "");
    check_ranks("", false, HR_ERR_FORMAT, "single byte 0x00");
    check_ranks("YQ== 0\n", false, HR_ERR_FORMAT, "single byte 0x00");
    check_ranks("YWI= 300\nYWI= 301\n", true, HR_ERR_FORMAT, "some.tiktoken:258");
    check_ranks("YWI= 7\n", true, HR_ERR_FORMAT, "same rank");
    check_ranks("YWI=\n", true, HR_ERR_FORMAT, "some.tiktoken:257:1: expected a token");
    check_ranks("YWI 300\n", true, HR_ERR_FORMAT, "base64");
    check_ranks("==== 300\n", true, HR_ERR_FORMAT, "base64");
    check_ranks(" 300\n", true, HR_ERR_FORMAT, "base64");
    check_ranks("YWI= 2097151\n", true, HR_ERR_FORMAT, "2097151");
    check_ranks("YWI= -1\n", true, HR_ERR_FORMAT, "rank");
    check_ranks("YWI= 99999999999999999999\n", true, HR_ERR_FORMAT, "rank");
}

static void check_gpt2(const char *encoder_from, const char *encoder_to,
                       const char *merges_more, enum hr_err code, const char *message)
{
    static struct tiny tiny;
    struct hr_rng rng = rng_of(5000);
    struct hr_str encoder, merges, changed;
    struct hr_tokenizer_file files[2];
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};
    const char *at;

    tiny_draw(&tiny, &rng);
    tiny_encoder(&tiny, &encoder);
    tiny_merges(&tiny, &merges);
    hr__str_add(&merges, merges_more);
    hr__str_init(&changed);
    at = strstr(encoder.text, encoder_from);
    CHECK(at != NULL);
    hr__str_add_bytes(&changed, encoder.text, (size_t)(at - encoder.text));
    hr__str_add(&changed, encoder_to);
    hr__str_add(&changed, at + strlen(encoder_from));
    files[0] = (struct hr_tokenizer_file){changed.text, changed.length, "encoder.json"};
    files[1] = (struct hr_tokenizer_file){merges.text, merges.length, "vocab.bpe"};
    CHECK_ERR(code, hr__bpe_read_gpt2(&files[0], &files[1], &t, &error));
    if (code != HR_OK)
        CHECK_HAS(error.message, message);
    hr_tokenizer_destroy(t);
    hr__str_finish(&encoder);
    hr__str_finish(&merges);
    hr__str_finish(&changed);
}

TEST(damaged_gpt2_files_are_refused)
{
    check_gpt2("{", "{\"<|end|>\": 2000, ", "", HR_OK, "");
    check_gpt2("{", "[{", "", HR_ERR_FORMAT, "encoder.json:1");
    check_gpt2("{", "{\"\": 1000, ", "", HR_ERR_LIMIT, "1 to 1024 bytes");
    check_gpt2("{", "{\"xyz\": 7, ", "", HR_ERR_FORMAT, "another token's");
    check_gpt2("{", "{\"xyz\": -7, ", "", HR_ERR_RANGE, "\"xyz\"");
    check_gpt2("{", "{\"xyz\": \"7\", ", "", HR_ERR_RANGE, "\"xyz\"");
    check_gpt2("{", "{\"xyz\": 2097151, ", "", HR_ERR_RANGE, "2097150");
    check_gpt2("\"!\"", "\"not a byte\"", "", HR_ERR_FORMAT, "");
    check_gpt2("{", "{", "x yz\n", HR_ERR_FORMAT, "vocab.bpe:122:1: merge \"x yz\"");
    check_gpt2("{", "{", "xy\n", HR_ERR_FORMAT, "vocab.bpe:122");
    check_gpt2("{", "{", " x\n", HR_ERR_FORMAT, "vocab.bpe:122");
    check_gpt2("{", "{\"QZ\": 1000, ", "Q Z\nQ Z\n", HR_ERR_FORMAT,
               "merges 121 and 122 are of the same");
}

static void
check_json(const char *from, const char *to, enum hr_err code, const char *message)
{
    static struct tiny tiny;
    struct hr_rng rng = rng_of(6000);
    struct hr_str json, changed;
    struct hr_tokenizer_file file;
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};
    const char *at;

    tiny_draw(&tiny, &rng);
    tiny_json(&tiny, TINY_R50K, &json);
    hr__str_init(&changed);
    at = strstr(json.text, from);
    CHECK(at != NULL);
    hr__str_add_bytes(&changed, json.text, (size_t)(at - json.text));
    hr__str_add(&changed, to);
    hr__str_add(&changed, at + strlen(from));
    file = (struct hr_tokenizer_file){changed.text, changed.length, "t.json"};
    CHECK_ERR(code, hr__tokenizer_read_json(&file, &t, &error));
    if (code != HR_OK)
        CHECK_HAS(error.message, message);
    if (code != HR_OK)
        CHECK_HAS(error.message, "t.json");
    hr_tokenizer_destroy(t);
    hr__str_finish(&json);
    hr__str_finish(&changed);
}

TEST(tokenizer_json_of_other_kinds_is_refused)
{
    check_json("null", "null", HR_OK, "");
    check_json("null", "{\"type\": \"NFC\"}", HR_ERR_UNSUPPORTED, "normalizer");
    check_json("\"BPE\"", "\"Unigram\"", HR_ERR_UNSUPPORTED, "Unigram");
    check_json("\"BPE\"", "\"BPE\", \"dropout\": 0.1", HR_ERR_UNSUPPORTED, "dropout");
    check_json("\"BPE\"", "\"BPE\", \"byte_fallback\": true", HR_ERR_UNSUPPORTED,
               "byte_fallback");
    check_json("\"BPE\"", "\"BPE\", \"end_of_word_suffix\": \"</w>\"", HR_ERR_UNSUPPORTED,
               "end_of_word_suffix");
    check_json("\"BPE\"", "\"BPE\", \"end_of_word_suffix\": \"\"", HR_OK, "");
    check_json("\"add_prefix_space\":false", "\"add_prefix_space\":true",
               HR_ERR_UNSUPPORTED, "pre_tokenizer");
    check_json("\"ByteLevel\"", "\"Whitespace\"", HR_ERR_UNSUPPORTED, "pre_tokenizer");
    check_json("\"special\": true", "\"special\": false", HR_ERR_UNSUPPORTED, "<|end|>");
    check_json("\"content\"", "\"text\"", HR_ERR_FORMAT, "added token");
    check_json("\"vocab\"", "\"words\"", HR_ERR_FORMAT, "model.vocab");
    check_json("\"merges\": [", "\"merges\": [7, ", HR_ERR_FORMAT, "a merge must be");
    check_json("\"merges\": [", "\"merges\": [\"ab\", ", HR_ERR_FORMAT, "merge \"ab \"");
}

TEST(patterns_of_tokenizer_json_are_known_by_their_text)
{
#define REST "|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define LLAMA3                                                                           \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}" \
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*" REST
#define SPLIT(regex)                                                                     \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"         \
    "{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\",\"invert\":false},"             \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}"

    check_json(TINY_R50K, SPLIT(LLAMA3), HR_OK, "");
    check_json(TINY_R50K, SPLIT("x" LLAMA3), HR_ERR_UNSUPPORTED, "pre_tokenizer");
}

/* ---- memory ---- */

TEST(any_failing_allocation_is_reported)
{
    static struct tiny tiny;
    struct hr_rng rng = rng_of(7000);
    struct hr_str json, text;
    struct hr_tokenizer_file file;
    bool failed = true;

    tiny_draw(&tiny, &rng);
    tiny_json(&tiny, TINY_R50K, &json);
    file = (struct hr_tokenizer_file){json.text, json.length, "t.json"};
    hr__str_init(&text);
    tiny_text(&rng, 300, &text);
    for (uint64_t nth = 1; failed; nth += nth < 100 ? 1 : 37) {
        struct hr_tokenizer *t = NULL;
        struct hr_tokens ids = {NULL};
        struct hr_error error = {0};
        enum hr_err err;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        err = hr__tokenizer_read_json(&file, &t, &error);
        if (err == HR_OK)
            err = hr_tokenizer_append(t, text.text, text.length, &ids, &error);
        failed = hr__fault_calls() >= nth;
        hr__fault_arm(0, 0);
        CHECK_ERR(failed ? HR_ERR_MEMORY : HR_OK, err);
        if (failed)
            CHECK_HAS(error.message, "memory");
        CHECK(err == HR_OK || ids.count == 0);
        hr_tokens_finish(&ids);
        if (t != NULL && failed)
            check_ids(t, &tiny, false, &text);
        hr_tokenizer_destroy(t);
    }
    hr__str_finish(&json);
    hr__str_finish(&text);
}
