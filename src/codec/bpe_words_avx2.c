/*
 * codec/bpe_words_avx2.c - looks up the words of a run with AVX2.
 */
#include "codec/bpe_words.h"

#include <immintrin.h>

static inline unsigned
match(const struct hr_bpe_key *key, const struct hr_bpe_small *entries);
static inline void copy(const struct hr_bpe_small *entry, int32_t *ids);

#define FETCH_NAME hr__bpe_fetch_avx2
#define FIND_NAME hr__bpe_find_avx2
#define MATCH(key, entries) match(&(key), entries)
#define COPY copy
#include "codec/bpe_words_rows.h"

static inline __m128i load(const void *from)
{
    return _mm_loadu_si128(from);
}

/* Both comparisons in one register, whose halves are all ones where all of a key is
 * equal. */
static inline unsigned
match(const struct hr_bpe_key *key, const struct hr_bpe_small *entries)
{
    __m128i first = _mm_cmpeq_epi32(load(key), load(&entries[0].key));
    __m128i second = _mm_cmpeq_epi32(load(key), load(&entries[1].key));
    __m128i both = _mm_cmpeq_epi64(_mm_packs_epi32(first, second), _mm_set1_epi32(-1));

    return (unsigned)_mm_movemask_pd(_mm_castsi128_pd(both));
}

static inline void copy(const struct hr_bpe_small *entry, int32_t *ids)
{
    const __m128i mask = _mm_setr_epi32(-1, -1, -1, HR_BPE_COUNT_MASK);

    _mm_storeu_si128((__m128i *)ids, _mm_and_si128(load(entry->ids), mask));
}
