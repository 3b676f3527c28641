/*
 * codec/bpe_encode.c - text to ids, through a cache of words.
 *
 * A cache belongs to one thread at a time. Most words have small entries (bpe_words.h);
 * other words of up to 32 bytes have large ones. All words are in one place or nowhere: a
 * full set loses one of its words. The size is fixed, so memory is bounded and nothing is
 * moved while text is encoded. A cache starts with the vocabulary.
 *
 * Text is taken in runs of words: first the scanner finds their ends, then keys are made
 * and the lines of their sets fetched, then ids are copied out.
 */
#include "codec/bpe_priv.h"
#include "codec/bpe_words.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/error.h"

#include <assert.h>
#include <string.h>

#define LARGE_MAX 32 /* bytes of a word with a large entry */
#define LARGE_IDS 22
#define LARGE_SETS_LOG2 12 /* 2 MiB */
#define WAYS HR_BPE_WAYS
#define SMALL_IDS HR_BPE_SMALL_IDS
#define SCRATCH_KEPT ((size_t)1 << 20) /* bytes, between calls */

struct large {
    uint8_t word[LARGE_MAX];
    uint32_t length, count; /* length 0: empty */
    uint32_t ids[LARGE_IDS];
};
_Static_assert(SMALL_IDS <= HR_TOKENIZER_ROOM_MORE, "ids are copied SMALL_IDS at a time");
_Static_assert(sizeof(struct large) == 128, "cache lines");

struct hr_bpe_cache {
    const struct hr_bpe *t;
    hr_bpe_scan_fn *scan;
    hr_bpe_fetch_fn *fetch;
    hr_bpe_find_fn *find;
    struct large *large;
    struct hr_bpe_scratch scratch;
    struct hr_bpe_words words;
};

#define SMALL_BYTES (sizeof(struct hr_bpe_small) * WAYS << HR_BPE_SETS_LOG2)
#define LARGE_BYTES (sizeof(struct large) * WAYS << LARGE_SETS_LOG2)

/* ---- words with small entries, without vector instructions ---- */

static inline unsigned match(struct hr_bpe_key key, const struct hr_bpe_small *entries)
{
    const struct hr_bpe_key *a = &entries[0].key, *b = &entries[1].key;

    return (unsigned)(((key.low ^ a->low) | (key.high ^ a->high)) == 0) |
           (unsigned)(((key.low ^ b->low) | (key.high ^ b->high)) == 0) << 1;
}

static inline void copy(const struct hr_bpe_small *entry, int32_t *ids)
{
    memcpy(ids, entry->ids, sizeof entry->ids);
    ids[SMALL_IDS - 1] &= HR_BPE_COUNT_MASK;
}

static hr_bpe_fetch_fn fetch_c;
static hr_bpe_find_fn find_c;
#define FETCH_NAME fetch_c
#define FIND_NAME find_c
#define MATCH match
#define COPY copy
#include "codec/bpe_words_rows.h"

/* ---- entries ---- */

static void put_small(struct hr_bpe_cache *cache, struct hr_bpe_key key,
                      const int32_t *ids, size_t count)
{
    struct hr_bpe_small *set = hr__bpe_set(cache->words.small, key);
    unsigned way = 0;

    while (way < WAYS && set[way].key.high != 0)
        way++;
    /* A full set: the victim depends on the word, so that words take turns. */
    if (way == WAYS)
        way = 1 + (unsigned)((key.low ^ key.high >> 56) * 0x9E3779B97F4A7C15 >> 40) %
                      (WAYS - 1);
    set[way].key = key;
    memset(set[way].ids, 0, sizeof set[way].ids);
    for (size_t i = 0; i < count; i++)
        set[way].ids[i] = (uint32_t)ids[i];
    set[way].ids[SMALL_IDS - 1] |= (uint32_t)count << HR_BPE_COUNT_SHIFT;
}

static uint64_t hash_large(const uint8_t *word, size_t length)
{
    uint64_t hash = length, part;

    for (size_t i = 0; i < LARGE_MAX; i += 8) {
        part = 0;
        if (i < length)
            memcpy(&part, word + i, length - i < 8 ? length - i : 8);
        hash = (hash ^ part) * 0x9E3779B97F4A7C15;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The entry of the word, or NULL; *ret_free is the one to write it to. */
static const struct large *
find_large(const struct hr_bpe_cache *cache, const uint8_t *word, size_t length,
           struct large **ret_free)
{
    uint64_t hash = hash_large(word, length);
    struct large *set = cache->large + (hash >> (64 - LARGE_SETS_LOG2)) * WAYS;

    *ret_free = &set[hash & (WAYS - 1)];
    for (unsigned way = 0; way < WAYS; way++) {
        if (set[way].length == length && memcmp(set[way].word, word, length) == 0)
            return &set[way];
        if (set[way].length == 0) {
            *ret_free = &set[way];
            break;
        }
    }
    return NULL;
}

static void put_large(struct large *entry, const uint8_t *word, size_t length,
                      const int32_t *ids, size_t count)
{
    memcpy(entry->word, word, length);
    entry->length = (uint32_t)length;
    entry->count = (uint32_t)count;
    memcpy(entry->ids, ids, count * sizeof ids[0]);
}

/* A word without a small entry: writes its ids and returns their number; 0 when out of
 * memory. */
static __attribute__((noinline)) size_t
encode_word(struct hr_bpe_cache *cache, const uint8_t *word, size_t length, int32_t *ids)
{
    struct large *entry = NULL;
    const struct large *found =
        length <= LARGE_MAX ? find_large(cache, word, length, &entry) : NULL;
    size_t count;

    if (found != NULL) {
        memcpy(ids, found->ids, found->count * sizeof ids[0]);
        return found->count;
    }
    count = hr__bpe_merge(cache->t, &cache->scratch, word, length, ids);
    if (length <= HR_BPE_SMALL_MAX && count <= SMALL_IDS)
        put_small(cache, hr__bpe_key(word, length), ids, count);
    else if (length <= LARGE_MAX && count > 0 && count <= LARGE_IDS)
        put_large(entry, word, length, ids, count);
    return count;
}

/* ---- text ---- */

/* Writes the ids of the run's words, the first of which begins at `from`, and moves
 * *ret_ids past them. There is room for one id per byte and SMALL_IDS more. False when
 * out of memory. */
static bool encode_run(struct hr_bpe_cache *cache, const uint8_t *text, size_t bytes,
                       size_t from, size_t count, int32_t **ret_ids)
{
    const uint32_t *ends = cache->words.ends;

    cache->fetch(&cache->words, text, bytes, from, count);
    for (size_t i = 0; (i = cache->find(&cache->words, i, count, ret_ids)) < count; i++) {
        size_t start = i > 0 ? ends[i - 1] : from, written;

        written = encode_word(cache, text + start, ends[i] - start, *ret_ids);
        if (written == 0)
            return false;
        *ret_ids += written;
    }
    return true;
}

static enum hr_err
encode(void *state, const uint8_t *text, size_t bytes, struct hr_tokens *tokens)
{
    struct hr_bpe_cache *cache = state;
    struct hr_bpe_scan scan = {.text = text, .end = bytes};
    size_t count = tokens->count, from = 0, words;

    assert(bytes <= HR_TOKENIZER_TEXT_MAX);
    while ((words = cache->scan(&scan, cache->words.ends, HR_BPE_RUN)) > 0) {
        size_t end = cache->words.ends[words - 1];
        int32_t *ids;

        if (!hr__tokens_room(tokens, end - from + SMALL_IDS)) {
            tokens->count = count;
            return HR_ERR_MEMORY;
        }
        ids = tokens->ids + tokens->count;
        if (!encode_run(cache, text, bytes, from, words, &ids)) {
            tokens->count = count;
            return HR_ERR_MEMORY;
        }
        tokens->count = (size_t)(ids - tokens->ids);
        from = end;
    }
    if (cache->scratch.bytes > SCRATCH_KEPT) {
        hr__free(cache->scratch.memory);
        cache->scratch = (struct hr_bpe_scratch){NULL};
    }
    return HR_OK;
}

/* ---- caches ---- */

static void destroy_cache(void *state)
{
    struct hr_bpe_cache *cache = state;

    if (cache == NULL)
        return;
    hr__pages_free(cache->words.small, SMALL_BYTES);
    hr__pages_free(cache->large, LARGE_BYTES);
    hr__free(cache->scratch.memory);
    hr__free(cache);
}

static void put_vocabulary(struct hr_bpe_cache *cache)
{
    const struct hr_bpe *t = cache->t;

    for (uint32_t id = 0; id < t->id_end; id++) {
        int32_t ids[1] = {(int32_t)id};

        if (t->itself[id] != 0 && t->lengths[id] <= HR_BPE_SMALL_MAX)
            put_small(cache, hr__bpe_key(t->bytes + t->starts[id], t->lengths[id]), ids,
                      1);
    }
}

static void *create_cache(const void *bpe)
{
    const struct hr_bpe *t = bpe;
    struct hr_bpe_cache *cache = hr__calloc(1, sizeof *cache);

    if (cache == NULL)
        return NULL;
    cache->t = t;
    cache->scan = hr__bpe_scanner(t->pattern);
    cache->fetch = fetch_c;
    cache->find = find_c;
#ifdef HR_BPE_X86
    if (hr__isa() >= HR_ISA_AVX2) {
        cache->fetch = hr__bpe_fetch_avx2;
        cache->find = hr__bpe_find_avx2;
    }
#endif
    cache->words.small = hr__pages_alloc(SMALL_BYTES);
    cache->large = hr__pages_alloc(LARGE_BYTES);
    if (cache->words.small == NULL || cache->large == NULL) {
        destroy_cache(cache);
        return NULL;
    }
    memset(cache->large, 0, LARGE_BYTES); /* now, not at the first long word */
    put_vocabulary(cache);
    return cache;
}

static enum hr_err decode(const void *bpe, const int32_t *ids, size_t count,
                          struct hr_text_out *out, struct hr_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        const uint8_t *token = hr__bpe_token(bpe, ids[i], &bytes);

        if (token == NULL)
            return hr__fail(reterr, HR_ERR_RANGE, "id %d at position %zu is no token",
                            (int)ids[i], i);
        hr__text_out(out, token, bytes);
    }
    return HR_OK;
}

const struct hr_tokenizer_kind hr__bpe_kind = {
    .name = "byte-level BPE",
    .in_place = true,
    .state_bytes = SMALL_BYTES + LARGE_BYTES,
    .destroy = hr__bpe_destroy,
    .begin = create_cache,
    .end = destroy_cache,
    .encode = encode,
    .decode = decode,
};
