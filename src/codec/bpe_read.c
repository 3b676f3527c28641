/*
 * codec/bpe_read.c - the files of tokenizers: GPT-2's pair, tiktoken's ranks, Hugging
 * Face's tokenizer.json.
 *
 * In the JSON files a token is a text in which each character stands for one byte:
 * printable Latin-1 for itself, the other bytes in order for U+0100 on.
 */
#include "codec/bpe_priv.h"
#include "codec/tokenizer_json.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"

#include <string.h>

#define TOKEN_MAX 1024 /* bytes; bounds the time that splitting tokens takes */
#define LETTERS 324    /* characters that stand for bytes are below this */

struct read {
    const struct hr_tokenizer_file *file; /* for messages */
    struct hr_bpe_builder builder;
    int16_t letters[LETTERS]; /* byte of a character, or -1 */
    uint32_t *merged;         /* token of each merge */
    size_t merged_count, merged_room;
    struct hr_error *error;
};

static enum hr_err no_memory(struct read *r)
{
    return hr__fail(r->error, HR_ERR_MEMORY, "%s: out of memory", r->file->name);
}

static void fill_letters(int16_t letters[LETTERS])
{
    int other = 256;

    memset(letters, 0xFF, LETTERS * sizeof letters[0]);
    for (int16_t byte = 0; byte < 256; byte++) {
        bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);

        letters[printable ? byte : other++] = byte;
    }
}

/* The bytes that `text` stands for; false if a character stands for none. */
static bool unmap(const struct read *r, const char *text, size_t length,
                  uint8_t bytes[TOKEN_MAX], size_t *ret_count)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + length;
    size_t count = 0;

    while (at < end) {
        uint32_t code = *at++;

        if (code >= 0xC0 && code < 0xE0 && at < end)
            code = (code & 0x1F) << 6 | (*at++ & 0x3F);
        else if (code >= 0x80)
            return false;
        if (code >= LETTERS || r->letters[code] < 0 || count == TOKEN_MAX)
            return false;
        bytes[count++] = (uint8_t)r->letters[code];
    }
    *ret_count = count;
    return true;
}

static enum hr_err
begin(struct read *r, const struct hr_tokenizer_file *file, struct hr_error *reterr)
{
    *r = (struct read){.file = file, .error = reterr};
    fill_letters(r->letters);
    r->builder.t = hr__bpe_create();
    return r->builder.t != NULL ? HR_OK : no_memory(r);
}

/* Builds the tables; releases everything on failure. */
static enum hr_err
end(struct read *r, enum hr_err err, struct hr_tokenizer **ret_tokenizer)
{
    if (err == HR_OK) {
        uint32_t *merged = r->merged;
        struct hr_error why = {0};

        r->merged = NULL;
        err = hr__bpe_finish(&r->builder, merged, (uint32_t)r->merged_count, &why);
        if (err != HR_OK)
            (void)hr__fail(r->error, err, "%s: %s", r->file->name, why.message);
    }
    hr__free(r->builder.merges);
    hr__free(r->merged);
    if (err == HR_OK)
        return hr__tokenizer_create(&hr__bpe_kind, r->builder.t, r->builder.t->id_end,
                                    r->builder.t->hash, ret_tokenizer, r->error);
    hr__bpe_destroy(r->builder.t);
    return err;
}

/* ---- tokens and merges of the JSON files ---- */

static enum hr_err fail_at(struct read *r, enum hr_err code, const struct hr_doc *doc,
                           const char *message, const char *detail)
{
    return hr__fail_in(r->error, code, r->file->name, doc->line, doc->column, message,
                       detail);
}

static enum hr_err
add_token(struct read *r, const struct hr_doc *id, const char *text, bool special)
{
    size_t length = strlen(text), count;
    const uint8_t *bytes = (const uint8_t *)text;
    uint8_t mapped[TOKEN_MAX];
    enum hr_err err;
    bool named;

    if (id->kind != HR_DOC_INT || id->as.integer < 0 ||
        id->as.integer >= HR_TOKENIZER_IDS_MAX)
        return fail_at(r, HR_ERR_RANGE, id,
                       "the id of token \"%.100s\" must be 0 to 2097150", text);
    if (length == 0 || length > TOKEN_MAX)
        return fail_at(r, HR_ERR_LIMIT, id, "token \"%.100s\" must have 1 to 1024 bytes",
                       text);
    named = !special && unmap(r, text, length, mapped, &count);
    err = hr__bpe_add(&r->builder, (uint32_t)id->as.integer, named ? mapped : bytes,
                      named ? count : length, named);
    if (err == HR_ERR_FORMAT)
        return fail_at(r, err, id, "the id of token \"%.100s\" is another token's", text);
    return err == HR_OK ? HR_OK : no_memory(r);
}

static enum hr_err add_vocab(struct read *r, const struct hr_doc *vocab)
{
    for (size_t i = 0; i < vocab->as.map.count; i++)
        HR_TRY(add_token(r, vocab->as.map.pairs[i].value, vocab->as.map.pairs[i].key,
                         false));
    return HR_OK;
}

/* A token of a merge, and its bytes. */
static bool find_token(const struct read *r, const char *text, size_t length,
                       uint32_t *ret_id, uint8_t bytes[TOKEN_MAX], size_t *ret_count)
{
    if (length == 0 || r->builder.t->names == NULL ||
        !unmap(r, text, length, bytes, ret_count))
        return false;
    *ret_id = hr__bpe_find(r->builder.t, bytes, *ret_count);
    return *ret_id != UINT32_MAX;
}

static enum hr_err add_merge(struct read *r, int line, const char *left,
                             size_t left_length, const char *right, size_t right_length)
{
    uint8_t bytes[2 * TOKEN_MAX];
    uint32_t left_id, right_id, id = UINT32_MAX;
    size_t left_count, right_count;

    if (find_token(r, left, left_length, &left_id, bytes, &left_count) &&
        find_token(r, right, right_length, &right_id, bytes + left_count, &right_count))
        id = hr__bpe_find(r->builder.t, bytes, left_count + right_count);
    if (id == UINT32_MAX)
        return hr__fail_in(r->error, HR_ERR_FORMAT, r->file->name, line, 1,
                           "merge \"%.*s %.*s\": both parts and what they make must be "
                           "tokens of the vocabulary",
                           (int)(left_length < 60 ? left_length : 60), left,
                           (int)(right_length < 60 ? right_length : 60), right);
    if (r->merged_count >= HR_BPE_RANKS_MAX)
        return hr__fail_in(r->error, HR_ERR_LIMIT, r->file->name, line, 1,
                           "more than %d merges", HR_BPE_RANKS_MAX);
    if (hr__bpe_add_merge(&r->builder, left_id, right_id, (uint32_t)r->merged_count) !=
            HR_OK ||
        !hr__array_room(&r->merged, r->merged_count, &r->merged_room, 1,
                        sizeof *r->merged))
        return no_memory(r);
    r->merged[r->merged_count++] = id;
    return HR_OK;
}

/* "left right" */
static enum hr_err
add_merge_text(struct read *r, int line, const char *text, size_t length)
{
    const char *blank = memchr(text, ' ', length);
    size_t left = blank != NULL ? (size_t)(blank - text) : length;
    size_t right = blank != NULL ? length - left - 1 : 0;

    return add_merge(r, line, text, left, text + length - right, right);
}

/* ---- GPT-2 ---- */

static enum hr_err read_merge_lines(struct read *r)
{
    const char *at = r->file->data, *end = at + r->file->bytes;

    for (int line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop != NULL ? stop : end) - at);
        bool skipped = line == 1 && length >= 8 && memcmp(at, "#version", 8) == 0;

        if (length > 0 && at[length - 1] == '\r')
            length--;
        if (length > 0 && !skipped)
            HR_TRY(add_merge_text(r, line, at, length));
        at = stop != NULL ? stop + 1 : end;
    }
    return HR_OK;
}

static enum hr_err read_encoder(struct read *r)
{
    struct hr_doc *doc;
    enum hr_err err;

    HR_TRY(hr__doc_parse(r->file->data, r->file->bytes, r->file->name, &doc, r->error));
    if (doc->kind == HR_DOC_MAP)
        err = add_vocab(r, doc);
    else
        err = fail_at(r, HR_ERR_FORMAT, doc,
                      "expected a JSON object of tokens and ids, not a %s",
                      hr__doc_kind_name(doc->kind));
    hr__doc_destroy(doc);
    return err;
}

enum hr_err
hr__bpe_read_gpt2(const struct hr_tokenizer_file *encoder,
                  const struct hr_tokenizer_file *merges,
                  struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct read r;
    enum hr_err err;

    HR_TRY(begin(&r, encoder, reterr));
    err = read_encoder(&r);
    if (err == HR_OK) {
        r.file = merges;
        err = read_merge_lines(&r);
    }
    return end(&r, err, ret_tokenizer);
}

/* ---- tiktoken ---- */

static bool read_rank(const char *text, size_t length, uint32_t *ret_rank)
{
    uint32_t rank = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || rank >= HR_TOKENIZER_IDS_MAX)
            return false;
        rank = 10 * rank + (uint32_t)(text[i] - '0');
    }
    *ret_rank = rank;
    return length > 0 && rank < HR_TOKENIZER_IDS_MAX;
}

static enum hr_err
read_rank_line(struct read *r, int line, const char *text, size_t length)
{
    const char *blank = memchr(text, ' ', length);
    size_t left = blank != NULL ? (size_t)(blank - text) : length;
    uint8_t bytes[TOKEN_MAX + 2];
    size_t count = left <= TOKEN_MAX / 3 * 4 ? hr__base64_read(text, left, bytes) : 0;
    enum hr_err err;
    uint32_t rank;

    if (count == 0 || blank == NULL || !read_rank(blank + 1, length - left - 1, &rank))
        return hr__fail_in(
            r->error, HR_ERR_FORMAT, r->file->name, line, 1,
            "expected a token of at most 1024 bytes in base64, a space and "
            "a rank below 2097151");
    err = hr__bpe_add(&r->builder, rank, bytes, count, true);
    if (err == HR_ERR_FORMAT)
        return hr__fail_in(r->error, err, r->file->name, line, 1,
                           "an earlier line has the same token or the same rank");
    return err == HR_OK ? HR_OK : no_memory(r);
}

static enum hr_err read_rank_lines(struct read *r)
{
    const char *at = r->file->data, *end = at + r->file->bytes;

    for (int line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop != NULL ? stop : end) - at);

        if (length > 0 && at[length - 1] == '\r')
            length--;
        if (length > 0)
            HR_TRY(read_rank_line(r, line, at, length));
        at = stop != NULL ? stop + 1 : end;
    }
    return HR_OK;
}

/* Two adjacent tokens merge if their bytes together are a token, whose id is the rank. */
static enum hr_err split_token(struct read *r, uint32_t id)
{
    const struct hr_bpe *t = r->builder.t;
    const uint8_t *bytes = t->bytes + t->starts[id];
    size_t count = t->lengths[id];

    for (size_t i = 1; i < count; i++) {
        uint32_t left = hr__bpe_find(t, bytes, i);
        uint32_t right =
            left != UINT32_MAX ? hr__bpe_find(t, bytes + i, count - i) : UINT32_MAX;

        if (right == UINT32_MAX)
            continue;
        if (r->builder.merge_count >= HR_BPE_RANKS_MAX)
            return hr__fail(r->error, HR_ERR_LIMIT, "%s: more than %d merges",
                            r->file->name, HR_BPE_RANKS_MAX);
        if (hr__bpe_add_merge(&r->builder, left, right, id) != HR_OK)
            return no_memory(r);
    }
    return HR_OK;
}

enum hr_err
hr__bpe_read_tiktoken(const struct hr_tokenizer_file *ranks,
                      enum hr_tokenizer_pattern pattern,
                      struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct read r;
    enum hr_err err;

    HR_TRY(begin(&r, ranks, reterr));
    r.builder.t->pattern = pattern;
    r.builder.t->whole = true;
    err = read_rank_lines(&r);
    for (uint32_t id = 0; err == HR_OK && id < r.builder.t->id_end; id++)
        err = split_token(&r, id);
    return end(&r, err, ret_tokenizer);
}

/* ---- tokenizer.json ---- */

#define SUFFIXES "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define FIRST "[^\\r\\n\\p{L}\\p{N}]?"

static const struct {
    enum hr_tokenizer_pattern pattern;
    const char *regex;
} splits[] = {
    {HR_PATTERN_r50k,   "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
                      "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
    {HR_PATTERN_llama3,
     SUFFIXES "|" FIRST "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES},
    {HR_PATTERN_o200k,
     FIRST UPPER "*" LOWER "+" SUFFIXES "?|" FIRST UPPER "+" LOWER "*" SUFFIXES
                 "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES            },
};

/* ByteLevel as a pre-tokenizer that adds no space. */
static bool is_byte_level(const struct hr_doc *doc, bool splits_words)
{
    return hr__json_is_type(doc, "ByteLevel") &&
           !hr__json_bool(doc, "add_prefix_space", true) &&
           hr__json_bool(doc, "use_regex", true) == splits_words;
}

static bool find_split(const struct hr_doc *doc, enum hr_tokenizer_pattern *ret_pattern)
{
    const char *behavior = hr__doc_get_string(doc, "behavior");
    const char *regex = hr__doc_get_string(hr__doc_get(doc, "pattern"), "Regex");

    if (!hr__json_is_type(doc, "Split") || behavior == NULL || regex == NULL ||
        strcmp(behavior, "Isolated") != 0 || hr__json_bool(doc, "invert", false))
        return false;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        if (strcmp(regex, splits[i].regex) == 0) {
            *ret_pattern = splits[i].pattern;
            return true;
        }
    }
    return false;
}

static enum hr_err read_pattern(struct read *r, const struct hr_doc *doc)
{
    const struct hr_doc *pre = hr__doc_get(doc, "pre_tokenizer"), *list;

    if (pre != NULL && is_byte_level(pre, true))
        return HR_OK;
    list = pre != NULL && hr__json_is_type(pre, "Sequence")
               ? hr__doc_get(pre, "pretokenizers")
               : NULL;
    if (list != NULL && list->kind == HR_DOC_LIST && list->as.list.count == 2 &&
        find_split(list->as.list.items[0], &r->builder.t->pattern) &&
        is_byte_level(list->as.list.items[1], false))
        return HR_OK;
    return fail_at(r, HR_ERR_UNSUPPORTED, pre != NULL ? pre : doc,
                   "the pre_tokenizer must be ByteLevel without add_prefix_space, or a "
                   "Split by the pattern of GPT-2, Llama 3 or o200k and ByteLevel%s",
                   "");
}

static enum hr_err check_model(struct read *r, const struct hr_doc *model)
{
    static const char *const empty[] = {"dropout", "continuing_subword_prefix",
                                        "end_of_word_suffix"};

    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        const struct hr_doc *value = hr__doc_get(model, empty[i]);

        if (!hr__json_is_absent(value))
            return fail_at(r, HR_ERR_UNSUPPORTED, value,
                           "byte-level BPE with a %s is not supported", empty[i]);
    }
    if (hr__json_bool(model, "byte_fallback", false))
        return fail_at(r, HR_ERR_UNSUPPORTED, model, "%s is not supported",
                       "BPE with byte_fallback");
    return HR_OK;
}

static enum hr_err read_merges(struct read *r, const struct hr_doc *list)
{
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct hr_doc *item = list->as.list.items[i], *left = item, *right = item;

        if (item->kind == HR_DOC_LIST && item->as.list.count == 2) {
            left = item->as.list.items[0];
            right = item->as.list.items[1];
        }
        if (left->kind != HR_DOC_STRING || right->kind != HR_DOC_STRING)
            return fail_at(r, HR_ERR_FORMAT, item,
                           "a merge must be \"left right\" or [\"left\", \"right\"], not "
                           "a %s",
                           hr__doc_kind_name(item->kind));
        if (left == item)
            HR_TRY(add_merge_text(r, item->line, item->as.string.text,
                                  item->as.string.length));
        else
            HR_TRY(add_merge(r, item->line, left->as.string.text, left->as.string.length,
                             right->as.string.text, right->as.string.length));
    }
    return HR_OK;
}

static enum hr_err read_added(struct read *r, const struct hr_doc *item)
{
    const struct hr_doc *id = hr__doc_get(item, "id");
    const char *text = hr__doc_get_string(item, "content");
    const uint8_t *bytes;
    size_t count;

    if (id == NULL || text == NULL)
        return fail_at(r, HR_ERR_FORMAT, item, "an added token needs %s",
                       "\"id\" and \"content\"");
    if (!hr__json_bool(item, "special", false))
        return fail_at(r, HR_ERR_UNSUPPORTED, item,
                       "added token \"%.100s\" is not special: splitting text at such "
                       "tokens is not supported",
                       text);
    bytes = id->kind == HR_DOC_INT && id->as.integer <= INT32_MAX
                ? hr__bpe_token(r->builder.t, (int32_t)id->as.integer, &count)
                : NULL;
    if (bytes != NULL && count == strlen(text) && memcmp(bytes, text, count) == 0)
        return HR_OK;
    return add_token(r, id, text, true);
}

static enum hr_err read_json(struct read *r, const struct hr_doc *doc)
{
    const struct hr_doc *model = hr__doc_get(doc, "model");
    const struct hr_doc *vocab = hr__doc_get(model, "vocab");
    const struct hr_doc *merges = hr__doc_get(model, "merges");
    const struct hr_doc *added = hr__doc_get(doc, "added_tokens");

    if (vocab == NULL || vocab->kind != HR_DOC_MAP || merges == NULL ||
        merges->kind != HR_DOC_LIST)
        return fail_at(r, HR_ERR_FORMAT, doc, "expected a tokenizer.json%s",
                       " with a map model.vocab and a list model.merges");
    if (!hr__json_is_absent(hr__doc_get(doc, "normalizer")))
        return fail_at(r, HR_ERR_UNSUPPORTED, hr__doc_get(doc, "normalizer"),
                       "a %s is not supported: normalise the text first", "normalizer");
    HR_TRY(check_model(r, model));
    HR_TRY(read_pattern(r, doc));
    r->builder.t->whole = hr__json_bool(model, "ignore_merges", false);
    HR_TRY(add_vocab(r, vocab));
    HR_TRY(read_merges(r, merges));
    if (added != NULL && added->kind == HR_DOC_LIST)
        for (size_t i = 0; i < added->as.list.count; i++)
            HR_TRY(read_added(r, added->as.list.items[i]));
    return HR_OK;
}

enum hr_err
hr__bpe_read_json(const struct hr_tokenizer_file *json, const struct hr_doc *doc,
                  struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct read r;

    HR_TRY(begin(&r, json, reterr));
    return end(&r, read_json(&r, doc), ret_tokenizer);
}
