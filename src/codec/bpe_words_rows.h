/*
 * codec/bpe_words_rows.h - looks up the words of a run, included once per instruction
 * set.
 *
 * The file that includes it defines FETCH_NAME and FIND_NAME; MATCH(key, entries): 1 if
 * the first entry has the key, 2 if the second one has it, else 0; and
 * COPY(entry, ids): writes an entry's ids without the count.
 */
#include "codec/bpe_words.h"

/* What a key keeps of the 16 bytes at a word of some length, and the length. */
struct tail {
    struct hr_bpe_key mask;
    uint64_t length, unused; /* a multiple of two in size, for its address */
};
#define LOW(n) ((n) >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * ((n)&7)) - 1)
#define HIGH(n) ((n) <= 8 ? 0 : (UINT64_C(1) << 8 * ((n)&7)) - 1)
#define TAIL(n)                                                                          \
    {                                                                                    \
        {LOW(n), HIGH(n)}, (uint64_t)(n) << 56, 0                                        \
    }
static const struct tail tails[HR_BPE_SMALL_MAX + 2] = {
    TAIL(0),
    TAIL(1),
    TAIL(2),
    TAIL(3),
    TAIL(4),
    TAIL(5),
    TAIL(6),
    TAIL(7),
    TAIL(8),
    TAIL(9),
    TAIL(10),
    TAIL(11),
    TAIL(12),
    TAIL(13),
    TAIL(14),
    TAIL(15),
    {{0, 0}, UINT64_MAX, 0}, /* HR_BPE_NO_KEY */
};

static inline void set_key(struct hr_bpe_words *words, size_t i, struct hr_bpe_key key)
{
    words->keys[i] = key;
    words->sets[i] = hr__bpe_set(words->small, key);
    __builtin_prefetch(words->sets[i]);
}

void FETCH_NAME(struct hr_bpe_words *words, const uint8_t *text, size_t bytes,
                size_t from, size_t count)
{
    size_t i = 0;

    for (; i < count && from + sizeof(struct hr_bpe_key) <= bytes; i++) {
        size_t end = words->ends[i], length = end - from;
        const struct tail *tail =
            &tails[length > HR_BPE_SMALL_MAX ? HR_BPE_SMALL_MAX + 1 : length];
        struct hr_bpe_key key;

        memcpy(&key, text + from, sizeof key);
        key.low &= tail->mask.low;
        key.high = (key.high & tail->mask.high) + tail->length;
        set_key(words, i, key);
        from = end;
    }
    for (; i < count; i++) { /* 16 bytes from there reach beyond the text */
        size_t end = words->ends[i], length = end - from;

        set_key(words, i,
                length > HR_BPE_SMALL_MAX ? HR_BPE_NO_KEY
                                          : hr__bpe_key(text + from, length));
        from = end;
    }
}

/* The first two entries share a cache line and a branch. */
size_t
FIND_NAME(const struct hr_bpe_words *words, size_t at, size_t count, int32_t **ret_ids)
{
    int32_t *ids = *ret_ids;

    for (; at < count; at++) {
        const struct hr_bpe_small *entry = words->sets[at];
        unsigned which = MATCH(words->keys[at], entry);

        if (__builtin_expect(which == 0, 0)) {
            entry += 2;
            which = MATCH(words->keys[at], entry);
            if (which == 0)
                break;
        }
        entry += which >> 1;
        COPY(entry, ids);
        ids += entry->ids[HR_BPE_SMALL_IDS - 1] >> HR_BPE_COUNT_SHIFT;
    }
    *ret_ids = ids;
    return at;
}
