/*
 * codec/bpe_words.h - the words of a run, and their entries in the cache of a thread.
 *
 * Words of up to 15 bytes with up to 4 ids, 99 % of all, have entries of 32 bytes, four
 * in a set of two cache lines.
 */
#ifndef HR_CODEC_BPE_WORDS_H
#define HR_CODEC_BPE_WORDS_H

#include "codec/bpe_scan.h"

#include <string.h>

#define HR_BPE_RUN 192 /* words; their keys stay in the L1 cache */
#define HR_BPE_RUN_MAX (HR_BPE_RUN + HR_BPE_SCAN_SLACK)

#define HR_BPE_SMALL_MAX 15 /* bytes of a word with an entry */
#define HR_BPE_SMALL_IDS 4
#define HR_BPE_SETS_LOG2 17 /* 16 MiB */
#define HR_BPE_WAYS 4

/* A word padded with zeros; its length is the last byte, so words with zeros differ. */
struct hr_bpe_key {
    uint64_t low, high;
};

/* The count is in the top byte of the last id. */
struct hr_bpe_small {
    struct hr_bpe_key key; /* zero: empty */
    uint32_t ids[HR_BPE_SMALL_IDS];
};
#define HR_BPE_COUNT_SHIFT 24
#define HR_BPE_COUNT_MASK ((1U << HR_BPE_COUNT_SHIFT) - 1)
_Static_assert(HR_TOKENIZER_IDS_MAX < 1 << HR_BPE_COUNT_SHIFT,
               "the count fits beside an id");
_Static_assert(sizeof(struct hr_bpe_small) == 32, "two entries share a cache line");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "words are masked from their end");

struct hr_bpe_words {
    struct hr_bpe_small *small; /* [sets * HR_BPE_WAYS] */
    uint32_t ends[HR_BPE_RUN_MAX];
    struct hr_bpe_key keys[HR_BPE_RUN_MAX];
    const struct hr_bpe_small *sets[HR_BPE_RUN_MAX];
};

/* Makes the keys of `count` words, the first of which begins at `from` and whose ends are
 * in `words`, and fetches their sets. */
typedef void hr_bpe_fetch_fn(struct hr_bpe_words *words, const uint8_t *text,
                             size_t bytes, size_t from, size_t count);

/* Writes the ids of the words from number `at` on that have entries, and moves *ret_ids
 * past them; returns the number of the first word that has none, or `count`. There is
 * room for HR_BPE_SMALL_IDS more. */
typedef size_t hr_bpe_find_fn(const struct hr_bpe_words *words, size_t at, size_t count,
                              int32_t **ret_ids);

/* With AVX2; bpe_words_rows.h is the algorithm. */
hr_bpe_fetch_fn hr__bpe_fetch_avx2;
hr_bpe_find_fn hr__bpe_find_avx2;

/* The HR_BPE_WAYS entries where a word can be. */
static inline struct hr_bpe_small *
hr__bpe_set(struct hr_bpe_small *small, struct hr_bpe_key key)
{
    uint64_t hash = (key.low ^ (key.high << 29 | key.high >> 35)) * 0x9E3779B97F4A7C15;

    return small + (hash >> (64 - HR_BPE_SETS_LOG2)) * HR_BPE_WAYS;
}

/* The key of a word of at most HR_BPE_SMALL_MAX bytes. */
static inline struct hr_bpe_key hr__bpe_key(const uint8_t *word, size_t length)
{
    struct hr_bpe_key key = {0};

    memcpy(&key, word, length);
    key.high |= (uint64_t)length << 56;
    return key;
}

/* Of a word that has no entry. */
#define HR_BPE_NO_KEY ((struct hr_bpe_key){0, UINT64_MAX})

#endif
