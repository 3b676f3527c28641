/*
 * codec/bpe_encode.c - text to ids, through a cache of words.
 *
 * A cache belongs to one thread at a time. Words of up to 15 bytes with up to 4 ids, 99 %
 * of all, have entries of 32 bytes, four in a set of two cache lines; other words of up
 * to 32 bytes have large entries. All words are in one place or nowhere: a full set loses
 * one of its words. The size is fixed, so memory is bounded and nothing is moved while
 * text is encoded. A cache starts with the vocabulary.
 *
 * Text is taken in runs of words: first the scanner finds their ends, then keys are made
 * and the lines of their sets fetched, then ids are copied out.
 */
#include "codec/bpe_priv.h"
#include "codec/bpe_scan.h"
#include "core/alloc.h"
#include "core/error.h"

#include <assert.h>
#include <string.h>

#define RUN 192 /* words; their keys stay in the L1 cache */
#define RUN_MAX (RUN + HR_BPE_SCAN_SLACK)

#define SMALL_MAX 15 /* bytes of a word with a small entry */
#define SMALL_IDS 4
#define SMALL_SETS_LOG2 17 /* 16 MiB */
#define LARGE_MAX 32       /* bytes of a word with a large entry */
#define LARGE_IDS 22
#define LARGE_SETS_LOG2 12 /* 2 MiB */
#define WAYS 4
#define SCRATCH_KEPT ((size_t)1 << 20) /* bytes, between calls */

/* A word padded with zeros; its length is the last byte, so words with zeros differ. */
struct key {
    uint64_t low, high;
};

/* The count is in the top byte of the last id. */
struct small {
    struct key key; /* zero: empty */
    uint32_t ids[SMALL_IDS];
};

struct large {
    uint8_t word[LARGE_MAX];
    uint32_t length, count; /* length 0: empty */
    uint32_t ids[LARGE_IDS];
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "words are masked from their end");
_Static_assert(SMALL_IDS <= HR_TOKENIZER_ROOM_MORE, "ids are copied SMALL_IDS at a time");
_Static_assert(sizeof(struct small) == 32 && sizeof(struct large) == 128, "cache lines");

struct hr_bpe_cache {
    const struct hr_bpe *t;
    hr_bpe_scan_fn *scan;
    struct small *small; /* [sets * WAYS] */
    struct large *large;
    struct hr_bpe_scratch scratch;
    uint32_t ends[RUN_MAX];
    struct key keys[RUN_MAX];
};

#define SMALL_BYTES (sizeof(struct small) * WAYS << SMALL_SETS_LOG2)
#define LARGE_BYTES (sizeof(struct large) * WAYS << LARGE_SETS_LOG2)
#define COUNT_SHIFT 24
#define COUNT_MASK ((1U << COUNT_SHIFT) - 1)
_Static_assert(HR_TOKENIZER_IDS_MAX < 1 << COUNT_SHIFT, "the count fits beside an id");

/* ---- keys ---- */

/* Bytes of each half of the key that belong to a word. */
static const struct key byte_masks[SMALL_MAX + 1] = {
    {0,              0             },
    {0xFF,           0             },
    {0xFFFF,         0             },
    {0xFFFFFF,       0             },
    {0xFFFFFFFF,     0             },
    {0xFFFFFFFFFF,   0             },
    {0xFFFFFFFFFFFF, 0             },
    {~0ULL >> 8,     0             },
    {~0ULL,          0             },
    {~0ULL,          0xFF          },
    {~0ULL,          0xFFFF        },
    {~0ULL,          0xFFFFFF      },
    {~0ULL,          0xFFFFFFFF    },
    {~0ULL,          0xFFFFFFFFFF  },
    {~0ULL,          0xFFFFFFFFFFFF},
    {~0ULL,          ~0ULL >> 8    },
};

/* `word` has 16 readable bytes. */
static inline struct key key_of(const uint8_t *word, size_t length)
{
    struct key key;

    memcpy(&key, word, sizeof key);
    key.low &= byte_masks[length].low;
    key.high = (key.high & byte_masks[length].high) | (uint64_t)length << 56;
    return key;
}

static struct key key_of_short_text(const uint8_t *word, size_t length)
{
    uint8_t padded[16] = {0};

    memcpy(padded, word, length);
    return key_of(padded, length);
}

/* The WAYS entries where a word can be. */
static inline struct small *set_at(const struct hr_bpe_cache *cache, struct key key)
{
    uint64_t hash = key.low * 0x9E3779B97F4A7C15 + key.high * 0xD6E8FEB86659FD93;

    return cache->small + (hash >> (64 - SMALL_SETS_LOG2)) * WAYS;
}

/* ---- entries ---- */

static void
put_small(struct hr_bpe_cache *cache, struct key key, const int32_t *ids, size_t count)
{
    struct small *set = set_at(cache, key);
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
    set[way].ids[SMALL_IDS - 1] |= (uint32_t)count << COUNT_SHIFT;
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
    if (length <= SMALL_MAX && count <= SMALL_IDS)
        put_small(cache, key_of_short_text(word, length), ids, count);
    else if (length <= LARGE_MAX && count > 0 && count <= LARGE_IDS)
        put_large(entry, word, length, ids, count);
    return count;
}

/* ---- text ---- */

static inline struct key
key_at(const uint8_t *text, size_t bytes, size_t from, size_t length)
{
    if (length > SMALL_MAX)
        return (struct key){0, UINT64_MAX}; /* of no word */
    return from + sizeof(struct key) <= bytes ? key_of(text + from, length)
                                              : key_of_short_text(text + from, length);
}

/* Makes the keys of the run's words, the first of which begins at `from`, and fetches
 * their sets. */
static void fetch_sets(struct hr_bpe_cache *cache, const uint8_t *text, size_t bytes,
                       size_t from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t end = cache->ends[i];

        cache->keys[i] = key_at(text, bytes, from, end - from);
        __builtin_prefetch(set_at(cache, cache->keys[i]));
        from = end;
    }
}

static inline bool same(struct key a, struct key b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

static inline size_t copy_ids(const struct small *entry, int32_t *ids)
{
    uint32_t last = entry->ids[SMALL_IDS - 1];

    memcpy(ids, entry->ids, sizeof entry->ids);
    ids[SMALL_IDS - 1] = (int32_t)(last & COUNT_MASK);
    return last >> COUNT_SHIFT;
}

/* Writes the ids of a word that has a small entry and returns their number, else 0. The
 * first two entries share a cache line and a branch. */
static inline size_t
find_small(const struct hr_bpe_cache *cache, struct key key, int32_t *ids)
{
    const struct small *set = set_at(cache, key);
    bool second = same(set[1].key, key);

    if (same(set[0].key, key) | second)
        return copy_ids(&set[second], ids);
    for (unsigned way = 2; way < WAYS; way++)
        if (same(set[way].key, key))
            return copy_ids(&set[way], ids);
    return 0;
}

/* Writes the ids of the run's words, for which there is room for one id per byte and
 * SMALL_IDS more, and moves *ret_ids past them. False when out of memory. */
static bool encode_run(struct hr_bpe_cache *cache, const uint8_t *text, size_t from,
                       size_t count, int32_t **ret_ids)
{
    int32_t *ids = *ret_ids;

    for (size_t i = 0; i < count; i++) {
        size_t end = cache->ends[i], written = find_small(cache, cache->keys[i], ids);

        if (written == 0) {
            written = encode_word(cache, text + from, end - from, ids);
            if (written == 0)
                return false;
        }
        ids += written;
        from = end;
    }
    *ret_ids = ids;
    return true;
}

static enum hr_err
encode(void *state, const uint8_t *text, size_t bytes, struct hr_tokens *tokens)
{
    struct hr_bpe_cache *cache = state;
    struct hr_bpe_scan scan = {.text = text, .end = bytes};
    size_t count = tokens->count, from = 0, words;

    assert(bytes <= HR_TOKENIZER_TEXT_MAX);
    while ((words = cache->scan(&scan, cache->ends, RUN)) > 0) {
        size_t end = cache->ends[words - 1];
        int32_t *ids;

        if (!hr__tokens_room(tokens, end - from + SMALL_IDS)) {
            tokens->count = count;
            return HR_ERR_MEMORY;
        }
        ids = tokens->ids + tokens->count;
        fetch_sets(cache, text, bytes, from, words);
        if (!encode_run(cache, text, from, words, &ids)) {
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
    hr__pages_free(cache->small, SMALL_BYTES);
    hr__pages_free(cache->large, LARGE_BYTES);
    hr__free(cache->scratch.memory);
    hr__free(cache);
}

static void put_vocabulary(struct hr_bpe_cache *cache)
{
    const struct hr_bpe *t = cache->t;

    for (uint32_t id = 0; id < t->id_end; id++) {
        int32_t ids[1] = {(int32_t)id};

        if (t->itself[id] != 0 && t->lengths[id] <= SMALL_MAX)
            put_small(cache, key_of_short_text(t->bytes + t->starts[id], t->lengths[id]),
                      ids, 1);
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
    cache->small = hr__pages_alloc(SMALL_BYTES);
    cache->large = hr__pages_alloc(LARGE_BYTES);
    if (cache->small == NULL || cache->large == NULL) {
        destroy_cache(cache);
        return NULL;
    }
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
    .destroy = hr__bpe_destroy,
    .begin = create_cache,
    .end = destroy_cache,
    .encode = encode,
    .decode = decode,
};
