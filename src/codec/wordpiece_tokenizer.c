/*
 * codec/wordpiece_tokenizer.c - WordPiece as a tokenizer of headrace/tokenizer.h, and
 * Hugging Face's tokenizer.json of BERT and DistilBERT.
 */
#include "codec/tokenizer_json.h"
#include "codec/wordpiece.h"
#include "core/alloc.h"
#include "core/error.h"

#include <string.h>

struct model {
    struct hr_wordpiece *wordpiece;
    struct hr_wordpiece_decoder decoder;
    char prefix[HR_WORDPIECE_PREFIX_MAX + 1]; /* of the decoder */
};

static void destroy(void *user)
{
    struct model *model = user;

    hr__wordpiece_destroy(model->wordpiece);
    hr__free(model);
}

/* ---- encoding ---- */

/* Text is taken in parts that end before white space, so that a long one takes no more
 * scratch memory. */
#define PART_BYTES ((size_t)16 << 10)

struct state {
    const struct model *model;
    uint32_t *scratch;
    size_t room; /* bytes of text that it suffices for */
};

static void *begin(const void *model)
{
    struct state *state = hr__calloc(1, sizeof *state);

    if (state != NULL)
        state->model = model;
    return state;
}

static void end(void *user)
{
    struct state *state = user;

    hr__free(state->scratch);
    hr__free(state);
}

static bool scratch_room(struct state *s, size_t bytes)
{
    if (s->scratch != NULL && s->room >= bytes)
        return true;
    hr__free(s->scratch);
    s->scratch = hr__malloc(HR_WORDPIECE_SCRATCH(bytes) * sizeof *s->scratch);
    s->room = s->scratch != NULL ? bytes : 0;
    return s->scratch != NULL;
}

static size_t part_end(const uint8_t *text, size_t at, size_t bytes)
{
    size_t stop = bytes - at > PART_BYTES ? at + PART_BYTES : bytes;

    while (stop < bytes && text[stop] != ' ' && text[stop] != '\n')
        stop++;
    return stop;
}

static enum hr_err
encode(void *user, const uint8_t *text, size_t bytes, struct hr_tokens *tokens)
{
    struct state *s = user;
    size_t before = tokens->count;

    for (size_t at = 0, stop; at < bytes; at = stop) {
        stop = part_end(text, at, bytes);
        if (!scratch_room(s, stop - at) ||
            !hr__tokens_room(tokens, HR_WORDPIECE_ROOM(stop - at))) {
            tokens->count = before;
            return HR_ERR_MEMORY;
        }
        tokens->count += hr__wordpiece_encode(s->model->wordpiece, text + at, stop - at,
                                              s->scratch, tokens->ids + tokens->count);
    }
    if (s->room > 4 * PART_BYTES) {
        hr__free(s->scratch);
        s->scratch = NULL;
    }
    return HR_OK;
}

/* ---- decoding ---- */

static bool begins_with(const char *word, size_t bytes, const char *text)
{
    size_t length = strlen(text);

    return length <= bytes && memcmp(word, text, length) == 0;
}

/* Whether no space is put before the word, where text is cleaned up. */
static bool joins(const char *word, size_t bytes)
{
    static const char *const starts[] = {".",  "?",  "!",   ",",  "n't",
                                         "'m", "'s", "'ve", "'re"};

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (begins_with(word, bytes, starts[i]))
            return true;
    return false;
}

static enum hr_err decode(const void *user, const int32_t *ids, size_t count,
                          struct hr_text_out *out, struct hr_error *reterr)
{
    const struct model *model = user;
    const struct hr_vocab *vocab = hr__wordpiece_vocab(model->wordpiece);
    size_t prefix = strlen(model->prefix);

    for (size_t i = 0; i < count; i++) {
        size_t bytes = 0;
        const char *word = hr__vocab_word(vocab, ids[i], &bytes);

        if (word == NULL)
            return hr__fail(reterr, HR_ERR_RANGE, "id %d at position %zu is no token",
                            (int)ids[i], i);
        if (i > 0 && model->decoder.prefix != NULL &&
            begins_with(word, bytes, model->prefix)) {
            word += prefix;
            bytes -= prefix;
        } else if (i > 0 && !(model->decoder.cleanup && joins(word, bytes))) {
            hr__text_out(out, " ", 1);
        }
        hr__text_out(out, word, bytes);
    }
    return HR_OK;
}

static const struct hr_tokenizer_kind kind = {
    .name = "WordPiece",
    .destroy = destroy,
    .begin = begin,
    .end = end,
    .encode = encode,
    .decode = decode,
};

enum hr_err
hr__wordpiece_tokenizer(struct hr_wordpiece *wordpiece,
                        const struct hr_wordpiece_decoder *decoder,
                        struct hr_hash128 hash, struct hr_tokenizer **ret_tokenizer,
                        struct hr_error *reterr)
{
    struct model *model = hr__calloc(1, sizeof *model);
    uint32_t id_end;

    if (model == NULL) {
        hr__wordpiece_destroy(wordpiece);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    model->wordpiece = wordpiece;
    model->decoder = *decoder;
    if (decoder->prefix != NULL)
        memcpy(model->prefix, decoder->prefix,
               strnlen(decoder->prefix, HR_WORDPIECE_PREFIX_MAX));
    id_end = (uint32_t)hr__vocab_size(hr__wordpiece_vocab(wordpiece));
    return hr__tokenizer_create(&kind, model, id_end, hash, ret_tokenizer, reterr);
}

/* ---- tokenizer.json ---- */

struct read {
    const struct hr_tokenizer_file *file;
    struct hr_wordpiece_options options;
    struct hr_wordpiece_decoder decoder;
    struct hr_error *error;
};

static enum hr_err
fail_at(const struct read *r, enum hr_err code, const struct hr_doc *doc,
        const char *message, const char *detail)
{
    return hr__fail_in(r->error, code, r->file->name, doc->line, doc->column, message,
                       detail);
}

static enum hr_err read_normalizer(struct read *r, const struct hr_doc *doc)
{
    const struct hr_doc *accents;

    if (hr__json_is_absent(doc))
        return HR_OK;
    if (!hr__json_is_type(doc, "BertNormalizer"))
        return fail_at(r, HR_ERR_UNSUPPORTED, doc,
                       "normalizer.type must be BertNormalizer for WordPiece%s", "");
    accents = hr__doc_get(doc, "strip_accents");
    r->options.clean = hr__json_bool(doc, "clean_text", true);
    r->options.chinese = hr__json_bool(doc, "handle_chinese_chars", true);
    r->options.lower = hr__json_bool(doc, "lowercase", true);
    r->options.strip_accents = accents != NULL && accents->kind == HR_DOC_BOOL
                                   ? accents->as.boolean
                                   : r->options.lower;
    return HR_OK;
}

static enum hr_err read_decoder(struct read *r, const struct hr_doc *doc)
{
    if (hr__json_is_absent(doc))
        return HR_OK;
    if (!hr__json_is_type(doc, "WordPiece"))
        return fail_at(r, HR_ERR_UNSUPPORTED, doc,
                       "decoder.type must be WordPiece for WordPiece%s", "");
    r->decoder.prefix = hr__doc_get_string(doc, "prefix");
    r->decoder.cleanup = hr__json_bool(doc, "cleanup", true);
    if (r->decoder.prefix == NULL || strlen(r->decoder.prefix) > HR_WORDPIECE_PREFIX_MAX)
        return fail_at(r, HR_ERR_FORMAT, doc,
                       "decoder.prefix must be a text of at most 32 bytes%s", "");
    return HR_OK;
}

static enum hr_err read_options(struct read *r, const struct hr_doc *model)
{
    const struct hr_doc *most = hr__doc_get(model, "max_input_chars_per_word");

    r->options.unknown = hr__doc_get_string(model, "unk_token");
    r->options.prefix = hr__doc_get_string(model, "continuing_subword_prefix");
    if (r->options.unknown == NULL || r->options.prefix == NULL)
        return fail_at(r, HR_ERR_FORMAT, model,
                       "model.unk_token and model.continuing_subword_prefix must be "
                       "texts%s",
                       "");
    r->options.chars_max = 100;
    if (most == NULL)
        return HR_OK;
    if (most->kind != HR_DOC_INT || most->as.integer < 0 ||
        most->as.integer > HR_WORDPIECE_CHARS_MAX)
        return fail_at(r, HR_ERR_UNSUPPORTED, most,
                       "model.max_input_chars_per_word must be 0 to 1000%s", "");
    r->options.chars_max = (int32_t)most->as.integer;
    return HR_OK;
}

/* Tokens that the vocabulary has, too, and that are special. */
static enum hr_err
check_added(const struct read *r, const struct hr_doc *list, const struct hr_vocab *vocab)
{
    size_t count = list != NULL && list->kind == HR_DOC_LIST ? list->as.list.count : 0;

    for (size_t i = 0; i < count; i++) {
        const struct hr_doc *item = list->as.list.items[i], *id = hr__doc_get(item, "id");
        const char *text = hr__doc_get_string(item, "content");

        if (id == NULL || id->kind != HR_DOC_INT || text == NULL)
            return fail_at(r, HR_ERR_FORMAT, item, "an added token needs %s",
                           "\"id\" and \"content\"");
        if (!hr__json_bool(item, "special", false))
            return fail_at(r, HR_ERR_UNSUPPORTED, item,
                           "added_tokens: \"%.100s\" is not special: splitting text at "
                           "such tokens is not supported",
                           text);
        if (hr__vocab_find(vocab, text, strlen(text)) != id->as.integer)
            return fail_at(r, HR_ERR_UNSUPPORTED, item,
                           "added_tokens: \"%.100s\" is not in model.vocab with its id: "
                           "that is not supported",
                           text);
    }
    return HR_OK;
}

static enum hr_err
hash_all(const struct read *r, const struct hr_vocab *vocab, struct hr_hash128 *ret_hash)
{
    const struct hr_wordpiece_options *o = &r->options;
    const struct hr_hash128 words = hr__vocab_hash(vocab);
    const int32_t flags[] = {o->clean, o->chinese, o->strip_accents, o->lower,
                             o->chars_max};
    struct hr_hasher *hasher = hr__hasher_create();

    if (hasher == NULL)
        return hr__fail(r->error, HR_ERR_MEMORY, "%s: out of memory", r->file->name);
    hr__hasher_add(hasher, &words, sizeof words);
    hr__hasher_add(hasher, flags, sizeof flags);
    hr__hasher_add(hasher, o->unknown, strlen(o->unknown) + 1);
    hr__hasher_add(hasher, o->prefix, strlen(o->prefix) + 1);
    *ret_hash = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    return HR_OK;
}

static enum hr_err read_all(struct read *r, const struct hr_doc *doc,
                            struct hr_vocab **ret_vocab, struct hr_hash128 *ret_hash)
{
    const struct hr_doc *model = hr__doc_get(doc, "model"), *words, *before;

    words = hr__doc_get(model, "vocab");
    before = hr__doc_get(doc, "pre_tokenizer");
    if (words == NULL || words->kind != HR_DOC_MAP)
        return fail_at(r, HR_ERR_FORMAT, model, "expected a tokenizer.json%s",
                       " with a map model.vocab");
    if (before == NULL || !hr__json_is_type(before, "BertPreTokenizer"))
        return fail_at(r, HR_ERR_UNSUPPORTED, before != NULL ? before : doc,
                       "pre_tokenizer.type must be BertPreTokenizer for WordPiece%s", "");
    HR_TRY(read_options(r, model));
    HR_TRY(read_normalizer(r, hr__doc_get(doc, "normalizer")));
    HR_TRY(read_decoder(r, hr__doc_get(doc, "decoder")));
    HR_TRY(hr__vocab_read_map(r->file, words, ret_vocab, r->error));
    HR_TRY(check_added(r, hr__doc_get(doc, "added_tokens"), *ret_vocab));
    return hash_all(r, *ret_vocab, ret_hash);
}

enum hr_err
hr__wordpiece_read_json(const struct hr_tokenizer_file *file, const struct hr_doc *doc,
                        struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct read r = {.file = file, .error = reterr};
    struct hr_wordpiece *wordpiece = NULL;
    struct hr_vocab *vocab = NULL;
    struct hr_hash128 hash;
    struct hr_error why = {0};
    enum hr_err err = read_all(&r, doc, &vocab, &hash);

    if (err != HR_OK) {
        hr__vocab_destroy(vocab);
        return err;
    }
    err = hr__wordpiece_create(vocab, &r.options, &wordpiece, &why);
    if (err != HR_OK)
        return hr__fail(reterr, err, "%s: model: %s", file->name, why.message);
    return hr__wordpiece_tokenizer(wordpiece, &r.decoder, hash, ret_tokenizer, reterr);
}
