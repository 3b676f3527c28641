/*
 * fuzz/fuzz_tokenizer.c - any bytes as the files of a tokenizer: refused with a message,
 * or what it encodes decodes to the same bytes.
 *
 * The first byte chooses the form and the pattern. "@" in the text stands for the tokens
 * of all single bytes, which every vocabulary needs; the files of GPT-2 are separated by
 * a zero byte.
 */
#include "codec/bpe.h"
#include "codec/tokenizer_json.h"
#include "codec/unigram_priv.h"
#include "core/alloc.h"
#include "core/str.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* `"A": 65, ` for each byte. */
static void add_json(struct hr_str *out)
{
    uint32_t other = 256;

    for (uint32_t byte = 0; byte < 256; byte++) {
        bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);

        hr__str_addf(out, "\"\\u%04x\": %u%s", printable ? byte : other++, byte,
                     byte < 255 ? ", " : "");
    }
}

static void add_ranks(struct hr_str *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (uint32_t byte = 0; byte < 256; byte++)
        hr__str_addf(out, "%c%c== %u\n", digits[byte >> 2], digits[(byte & 3) << 4],
                     byte);
}

static void expand(const char *data, size_t bytes, bool ranks, struct hr_str *out)
{
    hr__str_init(out);
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != '@')
            hr__str_add_bytes(out, &data[i], 1);
        else if (out->length > 1 << 20)
            return;
        else if (ranks)
            add_ranks(out);
        else
            add_json(out);
    }
}

static struct hr_tokenizer_file file_of(const struct hr_str *text)
{
    return (struct hr_tokenizer_file){hr__str_text(text), text->length, "x.json"};
}

static enum hr_err read_files(uint8_t form, const char *data, size_t bytes,
                              struct hr_tokenizer **ret_tokenizer, struct hr_error *error)
{
    const char *middle = memchr(data, '\0', bytes);
    size_t first = middle != NULL ? (size_t)(middle - data) : bytes;
    struct hr_str text, merges;
    struct hr_tokenizer_file files[2];
    enum hr_err err;

    if (form % 3 == 0) {
        expand(data, bytes, true, &text);
        files[0] = file_of(&text);
        err = hr__bpe_read_tiktoken(&files[0], (enum hr_tokenizer_pattern)(form / 3 % 4),
                                    ret_tokenizer, error);
    } else if (form % 3 == 1) {
        expand(data, bytes, false, &text);
        files[0] = file_of(&text);
        err = hr__tokenizer_read_json(&files[0], ret_tokenizer, error);
    } else {
        expand(data, first, false, &text);
        hr__str_init(&merges);
        if (middle != NULL)
            hr__str_add_bytes(&merges, middle + 1, bytes - first - 1);
        files[0] = file_of(&text);
        files[1] = file_of(&merges);
        err = hr__bpe_read_gpt2(&files[0], &files[1], ret_tokenizer, error);
        hr__str_finish(&merges);
    }
    hr__str_finish(&text);
    return err;
}

/* Every text has ids that have a text: for BPE the same. What the normalizer of a Unigram
 * model makes of it may be refused as too long. */
static void encode(struct hr_tokenizer *t, const char *text, size_t bytes)
{
    bool same = hr__tokenizer_kind(t) == &hr__bpe_kind;
    bool grows = hr__tokenizer_kind(t) == &hr__unigram_kind;
    struct hr_tokens ids = {NULL};
    size_t count = 0;
    enum hr_err err = hr_tokenizer_append(t, text, bytes, &ids, NULL);
    char *back;

    if (grows && err == HR_ERR_MEMORY)
        return;
    if (err != HR_OK || (!grows && ids.count > bytes) ||
        hr_tokenizer_decode(t, ids.ids, ids.count, NULL, 0, &count, NULL) == HR_ERR_RANGE)
        abort();
    back = hr__malloc(count + 1);
    if (back == NULL ||
        hr_tokenizer_decode(t, ids.ids, ids.count, back, count, &count, NULL) != HR_OK ||
        (same && (count != bytes || memcmp(back, text, bytes) != 0)))
        abort();
    hr__free(back);
    hr_tokens_finish(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char text[] =
        "Hello  world's 1234\n\n\xC3\xA9\xE4\xB8\xAD\xFF\xE4 aaaabbbb";
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};

    if (bytes == 0)
        return 0;
    if (read_files(data[0], (const char *)data + 1, bytes - 1, &t, &error) != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    encode(t, text, sizeof text);
    encode(t, (const char *)data, bytes);
    hr_tokenizer_destroy(t);
    return 0;
}
