/*
 * codec/bpe_test_util.c - see bpe_test_util.h.
 */
#include "codec/bpe_test_util.h"
#include "codec/unicode.h"
#include "core/alloc.h"
#include "tests/support/check.h"

/* ---- drawing ---- */

static bool has_token(const struct tiny *tiny, size_t count, const uint8_t *bytes,
                      size_t length, uint32_t *ret_id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tiny->tokens[i].count == length &&
            memcmp(tiny->tokens[i].bytes, bytes, length) == 0) {
            *ret_id = i;
            return true;
        }
    }
    return false;
}

/* Tokens of letters and spaces first, so that merges are met in texts. */
static uint32_t draw_part(const struct tiny *tiny, struct hr_rng *rng, uint32_t count)
{
    static const char often[] = "abcab \xD0\xB0\xE4\xB8";

    if (count == 256 || hr__rng_below(rng, 2) == 0)
        return tiny->byte_ids[(uint8_t)often[hr__rng_below(rng, sizeof often - 1)]];
    return 256 + (uint32_t)hr__rng_below(rng, count - 256);
}

void tiny_draw(struct tiny *tiny, struct hr_rng *rng)
{
    memset(tiny, 0, sizeof *tiny);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t other = (uint32_t)hr__rng_below(rng, i + 1);

        tiny->tokens[i] = tiny->tokens[other];
        tiny->tokens[other].bytes[0] = (uint8_t)i;
        tiny->tokens[other].count = 1;
    }
    for (uint32_t i = 0; i < 256; i++)
        tiny->byte_ids[tiny->tokens[i].bytes[0]] = i;
    for (uint32_t i = 256; i < TINY_TOKENS;) {
        uint32_t left = draw_part(tiny, rng, i), right = draw_part(tiny, rng, i), other;
        size_t a = tiny->tokens[left].count, b = tiny->tokens[right].count;

        if (a + b > TINY_BYTES)
            continue;
        memcpy(tiny->tokens[i].bytes, tiny->tokens[left].bytes, a);
        memcpy(tiny->tokens[i].bytes + a, tiny->tokens[right].bytes, b);
        if (has_token(tiny, i, tiny->tokens[i].bytes, a + b, &other))
            continue;
        tiny->tokens[i].count = a + b;
        tiny->merges[i - 256][0] = left;
        tiny->merges[i - 256][1] = right;
        i++;
    }
}

/* ---- files ---- */

/* A byte as the character that stands for it, in UTF-8. */
static void add_letter(struct hr_str *out, uint8_t byte)
{
    uint32_t code = byte;
    char text[2];

    if (!((byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173))) {
        code = 256;
        for (uint32_t i = 0; i < byte; i++)
            code += !((i >= 33 && i <= 126) || (i >= 161 && i != 173));
    }
    if (code < 0x80) {
        hr__str_addf(out, "%c", (char)code);
        return;
    }
    text[0] = (char)(0xC0 | code >> 6);
    text[1] = (char)(0x80 | (code & 0x3F));
    hr__str_add_bytes(out, text, 2);
}

static void add_token(const struct tiny *tiny, uint32_t id, struct hr_str *out)
{
    for (size_t i = 0; i < tiny->tokens[id].count; i++)
        add_letter(out, tiny->tokens[id].bytes[i]);
}

static void add_quoted(const struct tiny *tiny, uint32_t id, struct hr_str *out)
{
    struct hr_str token;

    hr__str_init(&token);
    add_token(tiny, id, &token);
    hr__str_add_json(out, token.text, token.length);
    hr__str_finish(&token);
}

static void add_vocab(const struct tiny *tiny, struct hr_str *out)
{
    hr__str_add(out, "{");
    for (uint32_t i = 0; i < TINY_TOKENS; i++) {
        hr__str_add(out, i > 0 ? ", " : "");
        add_quoted(tiny, i, out);
        hr__str_addf(out, ": %u", i);
    }
    hr__str_add(out, "}");
}

void tiny_encoder(const struct tiny *tiny, struct hr_str *out)
{
    hr__str_init(out);
    add_vocab(tiny, out);
    CHECK(hr__str_ok(out));
}

void tiny_merges(const struct tiny *tiny, struct hr_str *out)
{
    hr__str_init(out);
    hr__str_add(out, "#version: 0.2\n");
    for (uint32_t i = 0; i < TINY_MERGES; i++) {
        add_token(tiny, tiny->merges[i][0], out);
        hr__str_add(out, " ");
        add_token(tiny, tiny->merges[i][1], out);
        hr__str_add(out, "\n");
    }
    CHECK(hr__str_ok(out));
}

void tiny_ranks(const struct tiny *tiny, struct hr_str *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    hr__str_init(out);
    for (uint32_t id = 0; id < TINY_TOKENS; id++) {
        size_t count = tiny->tokens[id].count;

        for (size_t i = 0; i < count; i += 3) {
            uint32_t bits = 0;

            for (size_t j = i; j < i + 3; j++)
                bits = bits << 8 | (j < count ? tiny->tokens[id].bytes[j] : 0);
            for (size_t j = 0; j < 4; j++)
                hr__str_addf(out, "%c",
                             i + j > count ? '=' : digits[bits >> (18 - 6 * j) & 63]);
        }
        hr__str_addf(out, " %u\n", id);
    }
    CHECK(hr__str_ok(out));
}

void tiny_json(const struct tiny *tiny, const char *pre_tokenizer, struct hr_str *out)
{
    hr__str_init(out);
    hr__str_addf(
        out,
        "{\"version\": \"1.0\", \"normalizer\": null, \"added_tokens\": [{\"id\": "
        "%d, \"content\": \"<|end|>\", \"special\": true}],\n"
        "\"pre_tokenizer\": %s,\n\"model\": {\"type\": \"BPE\", \"vocab\": ",
        TINY_TOKENS, pre_tokenizer);
    add_vocab(tiny, out);
    hr__str_add(out, ",\n\"merges\": [");
    for (uint32_t i = 0; i < TINY_MERGES; i++) {
        hr__str_add(out, i > 0 ? ",\n[" : "[");
        add_quoted(tiny, tiny->merges[i][0], out);
        hr__str_add(out, ", ");
        add_quoted(tiny, tiny->merges[i][1], out);
        hr__str_add(out, "]");
    }
    hr__str_add(out, "]}}");
    CHECK(hr__str_ok(out));
}

struct hr_tokenizer *tiny_gpt2(const struct tiny *tiny)
{
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};
    struct hr_str encoder, merges;
    struct hr_tokenizer_file files[2];

    tiny_encoder(tiny, &encoder);
    tiny_merges(tiny, &merges);
    files[0] = (struct hr_tokenizer_file){encoder.text, encoder.length, "encoder.json"};
    files[1] = (struct hr_tokenizer_file){merges.text, merges.length, "vocab.bpe"};
    if (hr__bpe_read_gpt2(&files[0], &files[1], &t, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    hr__str_finish(&encoder);
    hr__str_finish(&merges);
    return t;
}

/* ---- texts ---- */

static void add_run(struct hr_rng *rng, const char *of, size_t most, struct hr_str *out)
{
    size_t count = 1 + hr__rng_below(rng, most), kinds = strlen(of);

    for (size_t i = 0; i < count; i++)
        hr__str_add_bytes(out, &of[hr__rng_below(rng, kinds)], 1);
}

void tiny_text(struct hr_rng *rng, size_t pieces, struct hr_str *out)
{
    static const char *const some[] = {
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "'s",
        "'re",
        "'ll",
        "'",
        "''",
        "12",
        "3",
        "!?",
        "\xC3\xA9",
        "\xD0\xB0",
        "\xE4\xB8\xAD",
        "\xC2\xA0",
        "\xE3\x80\x80",
        "\xE1\x9A\x80",
        "\xF0\x9F\x98\x80",
        "\xC2\xB2",
        "\xCC\x81",
        "\xC5\xBF",
        "\xFF",
        "\xE4\xB8",
        "\xF4\x90\x80\x80",
        "\xED\xA0\x80",
        "\xC0\x80",
        "'S",
        "A",
        "\xC7\x85",
        "/",
    };

    for (size_t i = 0; i < pieces; i++) {
        uint64_t kind = hr__rng_below(rng, 40);

        if (kind < 12)
            add_run(rng, "abc", 12, out);
        else if (kind < 14)
            add_run(rng, "ab", kind == 12 ? 40 : 400, out);
        else if (kind == 14)
            add_run(rng, " ", 80, out);
        else if (kind == 15)
            hr__str_add_bytes(out, "a\0b\0", 1 + hr__rng_below(rng, 4));
        else
            hr__str_add(out, some[hr__rng_below(rng, sizeof some / sizeof some[0])]);
    }
    CHECK(hr__str_ok(out));
}

/* ---- the slow way ---- */

/* 'L', 'N', 'W' or 'O', and the length of the character. */
static char class_at(const uint8_t *text, size_t at, size_t end, size_t *ret_length)
{
    static const char letters[] = "OLLLONW";
    size_t length = at < end ? hr__utf8_length((const char *)text + at, end - at) : 0;
    uint32_t code;

    *ret_length = length != 0 ? length : 1;
    if (length == 0)
        return 'O';
    code = length == 1 ? text[at] : text[at] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (text[at + i] & 0x3F);
    return letters[hr__char_class(code)];
}

static size_t run_end(const uint8_t *text, size_t at, size_t end, char class)
{
    size_t length;

    while (at < end && class_at(text, at, end, &length) == class)
        at += length;
    return at;
}

size_t tiny_word_end(const uint8_t *text, size_t at, size_t end)
{
    static const char *const suffixes[] = {"'s", "'d", "'m", "'t", "'ll", "'ve", "'re"};
    size_t length, next, last = at;
    char class;

    for (size_t i = 0; i < 7; i++) {
        length = strlen(suffixes[i]);
        if (end - at >= length && memcmp(text + at, suffixes[i], length) == 0)
            return at + length;
    }
    next = at + (text[at] == ' ' && at + 1 < end);
    class = class_at(text, next, end, &length);
    if (class != 'W')
        return run_end(text, next, end, class);
    for (next = at; next < end && class_at(text, next, end, &length) == 'W';
         next += length)
        last = next;
    return next < end && last > at ? last : next;
}

/* The token that two adjacent ones merge to, by the lower rank the earlier. */
static bool find_merge(const struct tiny *tiny, bool ranks, uint32_t left, uint32_t right,
                       uint32_t *ret_id)
{
    uint8_t bytes[2 * TINY_BYTES];
    size_t a = tiny->tokens[left].count, b = tiny->tokens[right].count;

    if (ranks) {
        memcpy(bytes, tiny->tokens[left].bytes, a);
        memcpy(bytes + a, tiny->tokens[right].bytes, b);
        return has_token(tiny, TINY_TOKENS, bytes, a + b, ret_id);
    }
    for (uint32_t i = 0; i < TINY_MERGES; i++) {
        if (tiny->merges[i][0] == left && tiny->merges[i][1] == right) {
            *ret_id = 256 + i;
            return true;
        }
    }
    return false;
}

static size_t encode_word(const struct tiny *tiny, bool ranks, const uint8_t *word,
                          size_t length, int32_t *ids)
{
    size_t count = 0, best_at = 0;
    uint32_t best, id;

    if (ranks && has_token(tiny, TINY_TOKENS, word, length, &id)) {
        ids[0] = (int32_t)id;
        return 1;
    }
    while (count < length) {
        ids[count] = (int32_t)tiny->byte_ids[word[count]];
        count++;
    }
    do {
        best = UINT32_MAX;
        for (size_t i = 0; i + 1 < count; i++) {
            if (find_merge(tiny, ranks, (uint32_t)ids[i], (uint32_t)ids[i + 1], &id) &&
                id < best) {
                best = id;
                best_at = i;
            }
        }
        if (best != UINT32_MAX) {
            ids[best_at] = (int32_t)best;
            count--;
            memmove(&ids[best_at + 1], &ids[best_at + 2],
                    (count - best_at - 1) * sizeof ids[0]);
        }
    } while (best != UINT32_MAX);
    return count;
}

size_t tiny_encode(const struct tiny *tiny, bool ranks, const uint8_t *text, size_t bytes,
                   int32_t *ids)
{
    size_t count = 0;

    for (size_t at = 0, end; at < bytes; at = end) {
        end = tiny_word_end(text, at, bytes);
        count += encode_word(tiny, ranks, text + at, end - at, ids + count);
    }
    return count;
}
