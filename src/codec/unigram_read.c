/*
 * codec/unigram_read.c - tokenizer.json of Unigram models.
 */
#include "codec/tokenizer_json.h"
#include "codec/unigram_priv.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)64 << 20) /* bytes of all tokens */
#define UNKNOWN_PENALTY 10.0

struct read {
    const struct hr_tokenizer_file *file;
    struct hr_unigram *m;
    size_t text_bytes, text_room, token_room;
    struct hr_error *error;
};

static enum hr_err no_memory(const struct read *r)
{
    return hr__fail(r->error, HR_ERR_MEMORY, "%s: out of memory", r->file->name);
}

static enum hr_err
fail_at(const struct read *r, enum hr_err code, const struct hr_doc *doc,
        const char *message, const char *detail)
{
    return hr__fail_in(r->error, code, r->file->name, doc->line, doc->column, message,
                       detail);
}

/* "`part`: NAME is not supported for Unigram models". */
static enum hr_err
refuse(const struct read *r, const struct hr_doc *doc, const char *part, const char *name)
{
    return hr__fail_in(r->error, HR_ERR_UNSUPPORTED, r->file->name, doc->line,
                       doc->column, "%s: \"%.100s\" is not supported for Unigram models",
                       part, name);
}

static const char *type_of(const struct hr_doc *doc)
{
    const char *type = hr__doc_get_string(doc, "type");

    return type != NULL ? type : "";
}

/* A copy of a member that is a text; zero bytes are refused. */
static enum hr_err take_text(const struct read *r, const struct hr_doc *map,
                             const char *key, char **ret_text, size_t *ret_bytes)
{
    const struct hr_doc *doc = hr__doc_get(map, key);

    if (doc == NULL || doc->kind != HR_DOC_STRING ||
        strlen(doc->as.string.text) != doc->as.string.length)
        return fail_at(r, HR_ERR_FORMAT, map, "\"%s\" must be a text without zero bytes",
                       key);
    *ret_text = hr__strndup(doc->as.string.text, doc->as.string.length);
    *ret_bytes = doc->as.string.length;
    return *ret_text != NULL ? HR_OK : no_memory(r);
}

/* A member that is one character. */
static enum hr_err
take_char(const struct read *r, const struct hr_doc *map, const char *key, char to[5])
{
    const char *text = hr__doc_get_string(map, key);
    size_t bytes = text != NULL ? strlen(text) : 0;

    if (bytes == 0 || hr__utf8_length(text, bytes) != bytes)
        return fail_at(r, HR_ERR_FORMAT, map, "\"%s\" must be a character", key);
    memcpy(to, text, bytes + 1);
    return HR_OK;
}

/* ---- normalizer ---- */

static enum hr_err
read_charsmap(const struct read *r, const struct hr_doc *doc, struct hr_step *step)
{
    const struct hr_doc *map = hr__doc_get(doc, "precompiled_charsmap");
    enum hr_err err = HR_ERR_FORMAT;
    uint8_t *bytes = NULL;
    size_t count = 0;

    step->kind = HR_STEP_CHARSMAP;
    if (map != NULL && map->kind == HR_DOC_STRING) {
        bytes = hr__malloc(map->as.string.length + 1);
        if (bytes == NULL)
            return no_memory(r);
        count = hr__base64_read(map->as.string.text, map->as.string.length, bytes);
    }
    if (count > 0)
        err = hr__charsmap_read(&step->rules, bytes, count);
    hr__free(bytes);
    if (err == HR_ERR_FORMAT)
        return fail_at(r, err, doc, "normalizer: precompiled_charsmap must be %s",
                       "the rules of SentencePiece in base64");
    return err == HR_OK ? HR_OK : no_memory(r);
}

static enum hr_err
read_replace(const struct read *r, const struct hr_doc *doc, struct hr_step *step)
{
    const struct hr_doc *pattern = hr__doc_get(doc, "pattern");
    const char *regex = hr__doc_get_string(pattern, "Regex");

    step->kind = regex != NULL ? HR_STEP_SPACES : HR_STEP_REPLACE;
    if (regex != NULL && strcmp(regex, " {2,}") != 0)
        return refuse(r, doc, "normalizer: Replace of the pattern", regex);
    if (regex == NULL) {
        if (pattern == NULL || pattern->kind != HR_DOC_MAP)
            return fail_at(r, HR_ERR_FORMAT, doc, "normalizer: Replace needs %s",
                           "a pattern");
        HR_TRY(take_text(r, pattern, "String", &step->from, &step->from_bytes));
        if (step->from_bytes == 0)
            return refuse(r, doc, "normalizer: Replace of the pattern", "");
    }
    return take_text(r, doc, "content", &step->to, &step->to_bytes);
}

static enum hr_err
read_step(struct read *r, const struct hr_doc *doc, struct hr_step *step)
{
    static const struct {
        const char *type;
        enum hr_step_kind kind;
        enum hr_normal_form form;
    } simple[] = {
        {"NFC",          HR_STEP_FORM,    HR_NFC },
        {"NFD",          HR_STEP_FORM,    HR_NFD },
        {"NFKC",         HR_STEP_FORM,    HR_NFKC},
        {"NFKD",         HR_STEP_FORM,    HR_NFKD},
        {"Lowercase",    HR_STEP_LOWER,   HR_NFC },
        {"StripAccents", HR_STEP_ACCENTS, HR_NFC },
    };
    const char *type = type_of(doc);

    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++)
        if (strcmp(type, simple[i].type) == 0) {
            step->kind = simple[i].kind;
            step->form = simple[i].form;
            return HR_OK;
        }
    if (strcmp(type, "Precompiled") == 0)
        return read_charsmap(r, doc, step);
    if (strcmp(type, "Replace") == 0)
        return read_replace(r, doc, step);
    if (strcmp(type, "Strip") != 0)
        return refuse(r, doc, "normalizer.type", type);
    step->kind = HR_STEP_STRIP;
    step->left = hr__json_bool(doc, "strip_left", true);
    step->right = hr__json_bool(doc, "strip_right", true);
    return HR_OK;
}

/* Calls `read` for `doc`, or for each of its list `key` if it is a Sequence, which nest
 * as deep as a file may. */
static enum hr_err for_each(struct read *r, const struct hr_doc *doc, const char *key,
                            enum hr_err (*read)(struct read *r, const struct hr_doc *doc))
{
    const struct hr_doc *list;

    if (hr__json_is_absent(doc))
        return HR_OK;
    if (!hr__json_is_type(doc, "Sequence"))
        return read(r, doc);
    list = hr__doc_get(doc, key);
    if (list == NULL || list->kind != HR_DOC_LIST)
        return fail_at(r, HR_ERR_FORMAT, doc, "a Sequence needs the list \"%s\"", key);
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(for_each(r, list->as.list.items[i], key, read));
    return HR_OK;
}

static enum hr_err read_normalizer(struct read *r, const struct hr_doc *doc)
{
    if (r->m->step_count == HR_STEPS_MAX)
        return fail_at(r, HR_ERR_LIMIT, doc, "normalizer: more than 32 steps%s", "");
    return read_step(r, doc, &r->m->steps[r->m->step_count++]);
}

/* ---- pre_tokenizer, decoder ---- */

static enum hr_err
read_prepend(const struct read *r, const struct hr_doc *doc, enum hr_prepend *ret_prepend)
{
    static const char *const names[] = {"always", "first", "never"};
    const char *scheme = hr__doc_get_string(doc, "prepend_scheme");

    *ret_prepend = HR_PREPEND_ALWAYS;
    if (scheme == NULL && !hr__json_bool(doc, "add_prefix_space", true))
        *ret_prepend = HR_PREPEND_NEVER;
    for (size_t i = 0; scheme != NULL; i++) {
        if (i == sizeof names / sizeof names[0])
            return refuse(r, doc, "prepend_scheme", scheme);
        *ret_prepend = (enum hr_prepend)i;
        if (strcmp(scheme, names[i]) == 0)
            break;
    }
    return HR_OK;
}

static enum hr_err read_before(struct read *r, const struct hr_doc *doc)
{
    struct hr_unigram *m = r->m;

    if (m->metaspace)
        return refuse(r, doc, "pre_tokenizer: after Metaspace", type_of(doc));
    if (hr__json_is_type(doc, "WhitespaceSplit")) {
        m->by_white = true;
        return HR_OK;
    }
    if (!hr__json_is_type(doc, "Metaspace"))
        return refuse(r, doc, "pre_tokenizer.type", type_of(doc));
    m->metaspace = true;
    m->split = hr__json_bool(doc, "split", true);
    HR_TRY(read_prepend(r, doc, &m->prepend));
    if (m->by_white && m->prepend == HR_PREPEND_FIRST)
        return refuse(r, doc, "pre_tokenizer: prepend_scheme after WhitespaceSplit",
                      "first");
    HR_TRY(take_char(r, doc, "replacement", m->mark));
    m->mark_bytes = strlen(m->mark);
    return HR_OK;
}

/* Where a decoder may stand in a chain. */
enum { CHAIN_NONE, CHAIN_REPLACE, CHAIN_BYTES, CHAIN_FUSE, CHAIN_STRIP };

static enum hr_err read_chain(struct read *r, const struct hr_doc *doc, int *last)
{
    static const char *const types[] = {"", "Replace", "ByteFallback", "Fuse", "Strip"};
    struct hr_unigram *m = r->m;
    const char *type = type_of(doc);
    const struct hr_doc *number;
    size_t bytes;
    int at = CHAIN_STRIP;

    while (at > 0 && strcmp(type, types[at]) != 0)
        at--;
    if (at <= *last || (at == CHAIN_STRIP && *last != CHAIN_FUSE))
        return refuse(r, doc, "decoder, at this place", type);
    *last = at;
    m->decode_bytes |= at == CHAIN_BYTES;
    if (at == CHAIN_REPLACE) {
        HR_TRY(take_text(r, doc, "content", &m->decode_to, &bytes));
        HR_TRY(
            take_text(r, hr__doc_get(doc, "pattern"), "String", &m->decode_from, &bytes));
        if (bytes == 0)
            return refuse(r, doc, "decoder: Replace of the pattern", "");
    }
    if (at != CHAIN_STRIP)
        return HR_OK;
    HR_TRY(take_char(r, doc, "content", m->decode_strip));
    number = hr__doc_get(doc, "stop");
    if (number != NULL && (number->kind != HR_DOC_INT || number->as.integer != 0))
        return refuse(r, doc, "decoder: Strip", "stop");
    number = hr__doc_get(doc, "start");
    if (number == NULL || number->kind != HR_DOC_INT || number->as.integer < 0)
        return fail_at(r, HR_ERR_FORMAT, doc, "decoder: Strip needs the number %s",
                       "\"start\"");
    m->decode_left = (size_t)number->as.integer;
    return HR_OK;
}

static enum hr_err read_decoder(struct read *r, const struct hr_doc *doc)
{
    const struct hr_doc *list = hr__doc_get(doc, "decoders");
    enum hr_prepend prepend;
    int last = CHAIN_NONE;

    if (hr__json_is_absent(doc))
        return HR_OK;
    if (hr__json_is_type(doc, "Metaspace")) {
        r->m->decoder = HR_DECODE_METASPACE;
        HR_TRY(take_char(r, doc, "replacement", r->m->decode_mark));
        HR_TRY(read_prepend(r, doc, &prepend));
        r->m->decode_first = prepend == HR_PREPEND_NEVER;
        return HR_OK;
    }
    if (!hr__json_is_type(doc, "Sequence"))
        return refuse(r, doc, "decoder.type", type_of(doc));
    if (list == NULL || list->kind != HR_DOC_LIST)
        return fail_at(r, HR_ERR_FORMAT, doc, "a Sequence needs the list \"%s\"",
                       "decoders");
    r->m->decoder = HR_DECODE_CHAIN;
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(read_chain(r, list->as.list.items[i], &last));
    return HR_OK;
}

/* ---- tokens ---- */

static enum hr_err put_token(struct read *r, const struct hr_doc *doc, const char *text,
                             size_t bytes, double score)
{
    struct hr_unigram *m = r->m;

    if (m->count >= HR_TOKENIZER_IDS_MAX || bytes > HR_PIECE_MAX ||
        r->text_bytes + bytes > TEXT_MAX)
        return fail_at(r, HR_ERR_LIMIT, doc,
                       "more than 2097151 tokens, a token of more than 1024 bytes%s",
                       ", or more than 64 MiB of all");
    if (!hr__array_room(&m->tokens, m->count, &r->token_room, 1, sizeof *m->tokens) ||
        !hr__array_room(&m->text, r->text_bytes, &r->text_room, bytes + 1, 1))
        return no_memory(r);
    memcpy(m->text + r->text_bytes, text, bytes);
    m->tokens[m->count++] =
        (struct hr_token){(uint32_t)r->text_bytes, (uint32_t)bytes, score};
    r->text_bytes += bytes;
    return HR_OK;
}

/* The number as the library reads it from the shortest decimal form, with two roundings:
 * the digits to a double, then their quotient by a power of ten. Between ways of equal
 * total score the last bit decides. False when out of memory. */
static bool library_score(double *score)
{
    struct hr_str text;
    uint64_t digits = 0;
    int exponent = 0;
    bool fraction = false;
    char power[16];
    double by = 1;
    bool known;

    hr__str_init(&text);
    hr__str_add_double(&text, fabs(*score));
    for (const char *at = hr__str_text(&text); *at != '\0'; at++) {
        if (*at >= '0' && *at <= '9') {
            digits = 10 * digits + (uint64_t)(*at - '0');
            exponent -= fraction;
        } else if (*at == '.') {
            fraction = true;
        } else {
            exponent += (int)strtol(at + 1, NULL, 10);
            break;
        }
    }
    known = hr__str_ok(&text);
    hr__str_finish(&text);
    snprintf(power, sizeof power, "1e%d", abs(exponent));
    if (digits <= UINT64_MAX / 10 && exponent >= -300 &&
        hr__double_parse(power, strlen(power), &by))
        *score =
            copysign(exponent < 0 ? (double)digits / by : (double)digits * by, *score);
    return known;
}

static enum hr_err read_entry(struct read *r, const struct hr_doc *doc)
{
    const struct hr_doc *text, *number;
    double score;

    if (doc->kind != HR_DOC_LIST || doc->as.list.count != 2)
        return fail_at(r, HR_ERR_FORMAT, doc, "model.vocab: expected %s",
                       "a token and its score");
    text = doc->as.list.items[0];
    number = doc->as.list.items[1];
    if (text->kind != HR_DOC_STRING || text->as.string.length == 0 ||
        memchr(text->as.string.text, 0, text->as.string.length) != NULL)
        return fail_at(r, HR_ERR_FORMAT, doc,
                       "model.vocab: a token is a text of 1 to 1024 bytes%s",
                       " without zero bytes");
    if (number->kind != HR_DOC_INT && number->kind != HR_DOC_DOUBLE)
        return fail_at(r, HR_ERR_FORMAT, doc, "model.vocab: a score is %s", "a number");
    score = number->kind == HR_DOC_INT ? (double)number->as.integer : number->as.number;
    if (!isfinite(score))
        return fail_at(r, HR_ERR_FORMAT, doc, "model.vocab: a score is %s", "finite");
    if (!library_score(&score))
        return no_memory(r);
    return put_token(r, doc, text->as.string.text, text->as.string.length, score);
}

static int compare_text(const struct hr_trie_key *a, const struct hr_trie_key *b)
{
    size_t least = a->count < b->count ? a->count : b->count;
    int order = memcmp(a->bytes, b->bytes, least);

    return order != 0 ? order : (a->count > b->count) - (a->count < b->count);
}

static int compare_keys(const void *a, const void *b)
{
    const struct hr_trie_key *x = a, *y = b;
    int order = compare_text(x, y);

    return order != 0 ? order : (x->value > y->value) - (x->value < y->value);
}

/* A token that is there twice is found by its last id, as in the library. */
static enum hr_err build_trie(struct read *r)
{
    struct hr_unigram *m = r->m;
    struct hr_trie_key *keys = hr__malloc((m->count + (size_t)1) * sizeof *keys);
    size_t count = 0;
    int32_t twice;
    enum hr_err err;

    if (keys == NULL)
        return no_memory(r);
    for (uint32_t id = 0; id < m->count; id++)
        keys[id] = (struct hr_trie_key){m->text + m->tokens[id].start,
                                        m->tokens[id].bytes, (int32_t)id};
    qsort(keys, m->count, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < m->count; i++)
        if (i + 1 == m->count || compare_text(&keys[i], &keys[i + 1]) != 0)
            keys[count++] = keys[i];
    err = hr__trie_build(&m->trie, keys, count, &twice);
    hr__free(keys);
    return err == HR_OK ? HR_OK : no_memory(r);
}

static void find_bytes(struct hr_unigram *m)
{
    char name[8];

    for (unsigned byte = 0; byte < 256; byte++) {
        static const char digits[] = "0123456789ABCDEF";

        memcpy(name, "<0x00>", 7);
        name[3] = digits[byte >> 4];
        name[4] = digits[byte & 15];
        m->byte_ids[byte] = hr__trie_find(&m->trie, (const uint8_t *)name, 6);
    }
}

static enum hr_err read_vocab(struct read *r, const struct hr_doc *model)
{
    const struct hr_doc *vocab = hr__doc_get(model, "vocab");
    const struct hr_doc *unknown = hr__doc_get(model, "unk_id");
    struct hr_unigram *m = r->m;
    double least = DBL_MAX;

    if (vocab == NULL || vocab->kind != HR_DOC_LIST || vocab->as.list.count == 0)
        return fail_at(r, HR_ERR_FORMAT, model, "model.vocab must be %s",
                       "a list of tokens and their scores");
    for (size_t i = 0; i < vocab->as.list.count; i++)
        HR_TRY(read_entry(r, vocab->as.list.items[i]));
    if (unknown == NULL || unknown->kind != HR_DOC_INT || unknown->as.integer < 0 ||
        unknown->as.integer >= m->count)
        return fail_at(r, HR_ERR_UNSUPPORTED, model, "model.unk_id must be %s",
                       "the id of a token: models without one are not supported");
    m->unknown = (int32_t)unknown->as.integer;
    for (uint32_t id = 0; id < m->count; id++)
        least = m->tokens[id].score < least ? m->tokens[id].score : least;
    m->unknown_score = least - UNKNOWN_PENALTY;
    HR_TRY(build_trie(r));
    if (hr__json_bool(model, "byte_fallback", false))
        find_bytes(m);
    return HR_OK;
}

/* Special tokens have their ids in the vocabulary, or after it: then they are only
 * decoded. */
static enum hr_err read_added(struct read *r, const struct hr_doc *item)
{
    const struct hr_doc *id = hr__doc_get(item, "id");
    const char *text = hr__doc_get_string(item, "content");
    struct hr_unigram *m = r->m;
    const struct hr_token *token;
    size_t bytes;

    if (id == NULL || id->kind != HR_DOC_INT || text == NULL || text[0] == '\0')
        return fail_at(r, HR_ERR_FORMAT, item, "an added token needs %s",
                       "\"id\" and \"content\"");
    bytes = strlen(text);
    if (!hr__json_bool(item, "special", false))
        return fail_at(r, HR_ERR_UNSUPPORTED, item,
                       "added_tokens: \"%.100s\" is not special: splitting text at such "
                       "tokens is not supported",
                       text);
    if (id->as.integer < 0 || id->as.integer >= HR_TOKENIZER_IDS_MAX)
        return fail_at(r, HR_ERR_FORMAT, item, "added_tokens: \"%.100s\" has a bad id",
                       text);
    while (m->count < (uint64_t)id->as.integer)
        HR_TRY(put_token(r, item, "", 0, 0));
    if (m->count == (uint64_t)id->as.integer)
        return put_token(r, item, text, bytes, 0);
    token = &m->tokens[id->as.integer];
    if (token->bytes == bytes && memcmp(m->text + token->start, text, bytes) == 0)
        return HR_OK;
    return fail_at(r, HR_ERR_UNSUPPORTED, item,
                   "added_tokens: \"%.100s\" has the id of another token: that is not "
                   "supported",
                   text);
}

/* Whether the text begins where it began: "first" is about that. */
static bool keeps_start(const struct hr_step *step)
{
    switch (step->kind) {
    case HR_STEP_STRIP:
        return !step->left;
    case HR_STEP_SPACES: /* before words that have a mark anyway */
        return strcmp(step->to, " ") == 0 || strcmp(step->to, HR_SPACE) == 0;
    default:
        return step->kind != HR_STEP_ACCENTS && step->kind != HR_STEP_REPLACE;
    }
}

static enum hr_err check_first(struct read *r, const struct hr_doc *doc)
{
    const struct hr_unigram *m = r->m;

    for (size_t i = 0; i < m->step_count && m->prepend == HR_PREPEND_FIRST; i++)
        if (!keeps_start(&m->steps[i]) || strcmp(m->mark, HR_SPACE) != 0)
            return refuse(r, doc,
                          "normalizer: StripAccents, Strip at the left or Replace with "
                          "the prepend_scheme",
                          "first");
    return HR_OK;
}

static enum hr_err read_all(struct read *r, const struct hr_doc *doc)
{
    const struct hr_doc *added = hr__doc_get(doc, "added_tokens");

    HR_TRY(for_each(r, hr__doc_get(doc, "normalizer"), "normalizers", read_normalizer));
    HR_TRY(for_each(r, hr__doc_get(doc, "pre_tokenizer"), "pretokenizers", read_before));
    HR_TRY(check_first(r, doc));
    HR_TRY(read_decoder(r, hr__doc_get(doc, "decoder")));
    HR_TRY(read_vocab(r, hr__doc_get(doc, "model")));
    for (size_t i = 0;
         added != NULL && added->kind == HR_DOC_LIST && i < added->as.list.count; i++)
        HR_TRY(read_added(r, added->as.list.items[i]));
    return HR_OK;
}

enum hr_err
hr__unigram_read_json(const struct hr_tokenizer_file *file, const struct hr_doc *doc,
                      struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct read r = {.file = file, .error = reterr};
    struct hr_unigram *m = hr__calloc(1, sizeof *m);
    enum hr_err err;

    if (m == NULL)
        return no_memory(&r);
    memset(m->byte_ids, 0xFF, sizeof m->byte_ids);
    r.m = m;
    err = read_all(&r, doc);
    if (err != HR_OK) {
        hr__unigram_kind.destroy(m);
        return err;
    }
    return hr__tokenizer_create(&hr__unigram_kind, m, m->count,
                                hr__hash128(file->data, file->bytes), ret_tokenizer,
                                reterr);
}
