/*
 * codec/vocab.c - vocabulary files. Words are found by open addressing.
 */
#include "codec/vocab.h"
#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"

#include <string.h>

struct word {
    uint32_t start, bytes;
    bool there;
};

struct hr_vocab {
    char *text; /* of all words */
    size_t text_bytes, text_room;
    struct word *words; /* by id */
    size_t size, words_room;
    uint32_t *slots; /* id + 1, or 0 */
    size_t mask, count;
    struct hr_hash128 hash;
};

struct read {
    const struct hr_tokenizer_file *file;
    struct hr_vocab *vocab;
    struct hr_error *error;
};

static enum hr_err no_memory(const struct read *r)
{
    return hr__fail(r->error, HR_ERR_MEMORY, "%s: out of memory", r->file->name);
}

/* The slot of the word, or the empty slot where it would be. */
static size_t slot_of(const struct hr_vocab *v, const void *word, size_t bytes)
{
    size_t at = (size_t)hr__hash64(word, bytes, 0) & v->mask;

    for (; v->slots[at] != 0; at = (at + 1) & v->mask) {
        const struct word *other = &v->words[v->slots[at] - 1];

        if (other->bytes == bytes && memcmp(v->text + other->start, word, bytes) == 0)
            break;
    }
    return at;
}

static bool grow_slots(struct hr_vocab *v)
{
    size_t room = v->slots == NULL ? 0 : v->mask + 1, grown = room == 0 ? 1024 : 2 * room;
    uint32_t *old = v->slots;

    if (2 * (v->count + 1) <= room)
        return true;
    v->slots = hr__calloc(grown, sizeof *v->slots);
    if (v->slots == NULL) {
        v->slots = old;
        return false;
    }
    v->mask = grown - 1;
    for (size_t i = 0; i < room; i++)
        if (old[i] != 0) {
            const struct word *word = &v->words[old[i] - 1];

            v->slots[slot_of(v, v->text + word->start, word->bytes)] = old[i];
        }
    hr__free(old);
    return true;
}

static enum hr_err
add_word(struct read *r, int line, int64_t id, const char *word, size_t bytes)
{
    struct hr_vocab *v = r->vocab;
    size_t slot, end = (size_t)id + 1;

    if (id < 0 || id >= HR_TOKENIZER_IDS_MAX)
        return hr__fail_in(r->error, HR_ERR_RANGE, r->file->name, line, 1,
                           "ids must be 0 to %d", HR_TOKENIZER_IDS_MAX - 1);
    if (!hr__array_room(&v->text, v->text_bytes, &v->text_room, bytes + 1, 1) ||
        !hr__array_room(&v->words, v->size, &v->words_room,
                        end > v->size ? end - v->size : 0, sizeof *v->words) ||
        !grow_slots(v))
        return no_memory(r);
    slot = slot_of(v, word, bytes);
    if (v->slots[slot] != 0)
        return hr__fail_in(r->error, HR_ERR_FORMAT, r->file->name, line, 1,
                           "\"%.*s\" is the word with id %u already",
                           (int)(bytes < 100 ? bytes : 100), word, v->slots[slot] - 1);
    for (; v->size < end; v->size++)
        v->words[v->size] = (struct word){0};
    if (v->words[id].there)
        return hr__fail_in(r->error, HR_ERR_FORMAT, r->file->name, line, 1,
                           "id %lld is another word's already", (long long)id);
    memcpy(v->text + v->text_bytes, word, bytes);
    v->words[id] = (struct word){(uint32_t)v->text_bytes, (uint32_t)bytes, true};
    v->text_bytes += bytes;
    v->slots[slot] = (uint32_t)id + 1;
    v->count++;
    return HR_OK;
}

static enum hr_err read_lines(struct read *r, const char *at, const char *end)
{
    for (int line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((stop != NULL ? stop : end) - at);

        if (bytes > 0 && at[bytes - 1] == '\r')
            bytes--;
        HR_TRY(add_word(r, line, line - 1, at, bytes));
        at = stop != NULL ? stop + 1 : end;
    }
    return HR_OK;
}

static enum hr_err read_map(struct read *r, const struct hr_doc *map)
{
    if (map->kind != HR_DOC_MAP)
        return hr__fail_in(r->error, HR_ERR_FORMAT, r->file->name, map->line, map->column,
                           "expected an object of words and ids, not a %s",
                           hr__doc_kind_name(map->kind));
    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];

        if (pair->value->kind != HR_DOC_INT)
            return hr__fail_in(r->error, HR_ERR_FORMAT, r->file->name, pair->line,
                               pair->column, "the id of \"%.100s\" must be an integer",
                               pair->key);
        HR_TRY(add_word(r, pair->line, pair->value->as.integer, pair->key,
                        strlen(pair->key)));
    }
    return HR_OK;
}

static enum hr_err read_json(struct read *r)
{
    struct hr_doc *doc;
    enum hr_err err;

    HR_TRY(hr__doc_parse(r->file->data, r->file->bytes, r->file->name, &doc, r->error));
    err = read_map(r, doc);
    hr__doc_destroy(doc);
    return err;
}

static enum hr_err hash_words(struct read *r)
{
    struct hr_hasher *hasher = hr__hasher_create();
    struct hr_vocab *v = r->vocab;

    if (hasher == NULL)
        return no_memory(r);
    for (size_t id = 0; id < v->size; id++) {
        const uint64_t head[2] = {v->words[id].there, v->words[id].bytes};

        hr__hasher_add(hasher, head, sizeof head);
        hr__hasher_add(hasher, v->text + v->words[id].start, v->words[id].bytes);
    }
    v->hash = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    return HR_OK;
}

static bool is_json(const char *name)
{
    const char *suffix = strrchr(name, '.');

    return suffix != NULL && strcmp(suffix, ".json") == 0;
}

static enum hr_err read_file(struct read *r)
{
    const char *at = r->file->data, *end = at + r->file->bytes;

    if (r->file->bytes >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0)
        at += 3;
    return is_json(r->file->name) ? read_json(r) : read_lines(r, at, end);
}

static enum hr_err finish(struct read *r, enum hr_err err, struct hr_vocab **ret_vocab)
{
    if (err == HR_OK && r->vocab->count == 0)
        err = hr__fail(r->error, HR_ERR_FORMAT, "%s: it holds no words", r->file->name);
    if (err == HR_OK)
        err = hash_words(r);
    if (err == HR_OK)
        *ret_vocab = r->vocab;
    else
        hr__vocab_destroy(r->vocab);
    return err;
}

enum hr_err hr__vocab_read(const struct hr_tokenizer_file *file,
                           struct hr_vocab **ret_vocab, struct hr_error *reterr)
{
    struct read r = {.file = file, .error = reterr};

    r.vocab = hr__calloc(1, sizeof *r.vocab);
    if (r.vocab == NULL)
        return no_memory(&r);
    return finish(&r, read_file(&r), ret_vocab);
}

enum hr_err
hr__vocab_read_map(const struct hr_tokenizer_file *file, const struct hr_doc *map,
                   struct hr_vocab **ret_vocab, struct hr_error *reterr)
{
    struct read r = {.file = file, .error = reterr};

    r.vocab = hr__calloc(1, sizeof *r.vocab);
    if (r.vocab == NULL)
        return no_memory(&r);
    return finish(&r, read_map(&r, map), ret_vocab);
}

void hr__vocab_destroy(struct hr_vocab *vocab)
{
    if (vocab == NULL)
        return;
    hr__free(vocab->text);
    hr__free(vocab->words);
    hr__free(vocab->slots);
    hr__free(vocab);
}

int32_t hr__vocab_find(const struct hr_vocab *vocab, const void *word, size_t bytes)
{
    return (int32_t)vocab->slots[slot_of(vocab, word, bytes)] - 1;
}

const char *hr__vocab_word(const struct hr_vocab *vocab, int32_t id, size_t *ret_bytes)
{
    if (id < 0 || (size_t)id >= vocab->size || !vocab->words[id].there)
        return NULL;
    *ret_bytes = vocab->words[id].bytes;
    return vocab->text + vocab->words[id].start;
}

int32_t hr__vocab_size(const struct hr_vocab *vocab)
{
    return (int32_t)vocab->size;
}

struct hr_hash128 hr__vocab_hash(const struct hr_vocab *vocab)
{
    return vocab->hash;
}
