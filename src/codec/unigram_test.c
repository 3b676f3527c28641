/*
 * codec/unigram_test.c - Unigram models of tokenizer.json. python/tests/test_unigram.py
 * compares many with Hugging Face's library.
 */
#include "codec/tokenizer_json.h"
#include "core/alloc.h"
#include "tests/support/check.h"

static const char json[] =
    "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKD\"},"
    " {\"type\": \"StripAccents\"}, {\"type\": \"Lowercase\"},"
    " {\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"},"
    " {\"type\": \"Strip\", \"strip_left\": false, \"strip_right\": true}]},"
    "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\":"
    " [{\"type\": \"WhitespaceSplit\"}, {\"type\": \"Metaspace\", \"replacement\":"
    " \"\xE2\x96\x81\", \"add_prefix_space\": true}]},"
    "\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\"},"
    "\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"byte_fallback\": true,"
    " \"vocab\": [[\"<unk>\", 0], [\"\xE2\x96\x81\", -2], [\"\xE2\x96\x81water\", -4],"
    " [\"w\", -3], [\"a\", -3], [\"<0xC3>\", 0], [\"<0x9F>\", 0]]}}";

static enum hr_err read_json(struct hr_tokenizer **ret_tokenizer, struct hr_error *error)
{
    const struct hr_tokenizer_file file = {json, strlen(json), "t.json"};

    return hr__tokenizer_read_json(&file, ret_tokenizer, error);
}

TEST(text_takes_the_steps_of_the_file)
{
    static const char text[] =
        "  WATER \xC3\x9F\xEF\xBD\x81\xCC\x81  \xFF"; /* sharp s, wide a, accent */
    static const int32_t wanted[] = {2, 1, 5, 6, 4, 1, 0};
    struct hr_tokenizer *t = NULL;
    struct hr_tokens ids = {NULL};
    char back[64];
    size_t bytes;

    CHECK_OK(read_json(&t, NULL));
    CHECK_OK(hr_tokenizer_append(t, text, sizeof text - 1, &ids, NULL));
    CHECK_EQ_INT(ids.count, sizeof wanted / sizeof wanted[0]);
    CHECK_BYTES(ids.ids, wanted, sizeof wanted);
    CHECK_OK(hr_tokenizer_decode(t, ids.ids, 2, back, sizeof back, &bytes, NULL));
    CHECK_EQ_INT(bytes, 6);
    CHECK_BYTES(back, "water ", 6);
    CHECK_ERR(HR_ERR_RANGE,
              hr_tokenizer_decode(t, &(int32_t){7}, 1, back, sizeof back, &bytes, NULL));
    hr_tokens_finish(&ids);
    hr_tokenizer_destroy(t);
}

TEST(any_failing_allocation_is_reported)
{
    bool failed = true;

    for (uint64_t nth = 1; failed; nth++) {
        struct hr_tokenizer *t = NULL;
        struct hr_tokens ids = {NULL};
        struct hr_error error = {0};
        enum hr_err err;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        err = read_json(&t, &error);
        if (err == HR_OK)
            err = hr_tokenizer_append(t, "water \xC3\x89", 8, &ids, &error);
        failed = hr__fault_calls() >= nth;
        hr__fault_arm(0, 0);
        CHECK_ERR(failed ? HR_ERR_MEMORY : HR_OK, err);
        CHECK(err == HR_OK || ids.count == 0);
        hr_tokens_finish(&ids);
        hr_tokenizer_destroy(t);
    }
}
