/*
 * codec/tokenizer.c - see codec/tokenizer.h.
 */
#include "codec/tokenizer.h"
#include "core/alloc.h"
#include "core/error.h"

#include <stdatomic.h>
#include <string.h>

#define IDS_KEPT ((size_t)1 << 18) /* between calls */

struct place {
    _Alignas(64) _Atomic(struct hr_tokenizer_cache *) cache;
};

struct hr_tokenizer {
    const struct hr_tokenizer_kind *kind;
    void *model;
    uint32_t id_end;
    struct hr_hash128 hash;
    struct place places[HR_TOKENIZER_CACHES]; /* idle caches */
};

enum hr_err
hr__tokenizer_create(const struct hr_tokenizer_kind *kind, void *model, uint32_t id_end,
                     struct hr_hash128 hash, struct hr_tokenizer **ret_tokenizer,
                     struct hr_error *reterr)
{
    struct hr_tokenizer *t = hr__aligned_alloc(64, sizeof *t);

    if (t == NULL) {
        kind->destroy(model);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->model = model;
    t->id_end = id_end;
    t->hash = hash;
    *ret_tokenizer = t;
    return HR_OK;
}

const struct hr_tokenizer_kind *hr__tokenizer_kind(const struct hr_tokenizer *t)
{
    return t->kind;
}

const void *hr__tokenizer_model(const struct hr_tokenizer *t)
{
    return t->model;
}

uint64_t hr__tokenizer_thread_bytes(const struct hr_tokenizer *t)
{
    return t->kind->state_bytes + (t->kind->in_place ? 0 : IDS_KEPT * sizeof(int32_t));
}

struct hr_hash128 hr__tokenizer_hash(const struct hr_tokenizer *t)
{
    return t->hash;
}

int32_t hr_tokenizer_vocab_size(const struct hr_tokenizer *t)
{
    return (int32_t)t->id_end;
}

/* ---- caches ---- */

static void destroy_cache(struct hr_tokenizer_cache *cache)
{
    if (cache == NULL)
        return;
    cache->tokenizer->kind->end(cache->state);
    hr_tokens_finish(&cache->ids);
    hr__free(cache);
}

static struct hr_tokenizer_cache *create_cache(struct hr_tokenizer *t)
{
    struct hr_tokenizer_cache *cache = hr__calloc(1, sizeof *cache);

    if (cache == NULL)
        return NULL;
    cache->tokenizer = t;
    cache->state = t->kind->begin(t->model);
    if (cache->state == NULL) {
        hr__free(cache);
        return NULL;
    }
    return cache;
}

/* The place where this thread looks first, so that it finds its own cache again. */
static size_t own_place(void)
{
    static _Thread_local char here;
    uint64_t address = (uint64_t)(uintptr_t)&here;

    return (size_t)(address * 0x9E3779B97F4A7C15 >> 58) % HR_TOKENIZER_CACHES;
}

struct hr_tokenizer_cache *hr__tokenizer_take(struct hr_tokenizer *t)
{
    size_t own = own_place();

    for (size_t i = 0; i < HR_TOKENIZER_CACHES; i++) {
        struct place *place = &t->places[(own + i) % HR_TOKENIZER_CACHES];
        struct hr_tokenizer_cache *cache;

        if (atomic_load_explicit(&place->cache, memory_order_relaxed) == NULL)
            continue;
        cache = atomic_exchange_explicit(&place->cache, NULL, memory_order_acquire);
        if (cache != NULL)
            return cache;
    }
    return create_cache(t);
}

void hr__tokenizer_give(struct hr_tokenizer_cache *cache)
{
    struct hr_tokenizer *t = cache->tokenizer;
    size_t own = own_place();

    if (cache->ids.room > IDS_KEPT)
        hr_tokens_finish(&cache->ids);
    for (size_t i = 0; i < HR_TOKENIZER_CACHES; i++) {
        struct place *place = &t->places[(own + i) % HR_TOKENIZER_CACHES];
        struct hr_tokenizer_cache *none = NULL;

        if (atomic_compare_exchange_strong_explicit(
                &place->cache, &none, cache, memory_order_release, memory_order_relaxed))
            return;
    }
    destroy_cache(cache);
}

void hr_tokenizer_destroy(struct hr_tokenizer *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < HR_TOKENIZER_CACHES; i++)
        destroy_cache(atomic_load_explicit(&t->places[i].cache, memory_order_acquire));
    t->kind->destroy(t->model);
    hr__free(t);
}

/* ---- ids and text ---- */

bool hr__tokens_room(struct hr_tokens *tokens, size_t more)
{
    return hr__array_room(&tokens->ids, tokens->count, &tokens->room, more,
                          sizeof *tokens->ids);
}

void hr_tokens_finish(struct hr_tokens *tokens)
{
    hr__free(tokens->ids);
    *tokens = (struct hr_tokens){NULL};
}

static int digit_of(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

size_t hr__base64_read(const char *text, size_t length, uint8_t *to)
{
    size_t padding = 0, count = 0;
    uint32_t bits = 0;

    if (length == 0 || length % 4 != 0)
        return 0;
    while (padding < 2 && text[length - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < length; i++) {
        int digit = i >= length - padding ? 0 : digit_of(text[i]);

        if (digit < 0)
            return 0;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 == 3)
            for (int shift = 16; shift >= 0; shift -= 8)
                to[count++] = (uint8_t)(bits >> shift);
    }
    return count - padding;
}

void hr__text_out(struct hr_text_out *out, const void *bytes, size_t count)
{
    if (count > 0 && out->bytes + count <= out->room)
        memcpy(out->text + out->bytes, bytes, count);
    out->bytes += count;
}

enum hr_err
hr__tokenizer_decode(const struct hr_tokenizer *t, const int32_t *ids, size_t count,
                     struct hr_text_out *out, struct hr_error *reterr)
{
    return t->kind->decode(t->model, ids, count, out, reterr);
}
