/*
 * codec/bpe_merge.c - a word's bytes to tokens, by merging.
 *
 * Short words are an array of tokens with the rank of each pair beside it: the minimum is
 * searched in each step, which for so few is faster than any other structure. Long words
 * are a linked list with a heap of pairs, so that a word of a megabyte takes n log n.
 */
#include "codec/bpe_priv.h"
#include "codec/heap.h"
#include "core/alloc.h"

#include <assert.h>
#include <string.h>

static inline uint32_t merged(const struct hr_bpe *t, uint32_t rank)
{
    return t->merged != NULL ? t->merged[rank] : rank + t->merged_base;
}

/* ---- short words ---- */

#define PLACE_BITS 7
_Static_assert(HR_BPE_SHORT <= 1 << PLACE_BITS, "a place fits beside a rank");

/* keys[i] is the rank of the pair (i, i + 1) << PLACE_BITS, or UINT32_MAX. */
static inline uint32_t key_of(uint32_t rank)
{
    return rank == HR_BPE_NO_RANK ? UINT32_MAX : rank << PLACE_BITS;
}

static uint32_t find_lowest(const uint32_t *keys, uint32_t count)
{
    uint32_t lowest = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = keys[i] | i;

        lowest = key < lowest ? key : lowest;
    }
    return lowest;
}

/* Keys that do not merge are UINT32_MAX whatever is or-ed to them. */
static size_t
merge_short(const struct hr_bpe *t, const uint8_t *word, uint32_t count, int32_t *to)
{
    uint32_t ids[HR_BPE_SHORT + 1], keys[HR_BPE_SHORT + 1];

    ids[0] = t->byte_ids[word[0]];
    for (uint32_t i = 1; i < count; i++) {
        ids[i] = t->byte_ids[word[i]];
        keys[i - 1] = key_of(t->pairs.bytes[word[i - 1] << 8 | word[i]]);
    }
    while (count > 1) {
        uint32_t lowest = find_lowest(keys, count - 1), at;

        if (lowest == UINT32_MAX)
            break;
        at = lowest & ((1 << PLACE_BITS) - 1);
        ids[at] = merged(t, lowest >> PLACE_BITS);
        count--;
        memmove(&ids[at + 1], &ids[at + 2], (count - at - 1) * sizeof ids[0]);
        if (at + 1 < count) {
            memmove(&keys[at + 1], &keys[at + 2], (count - at - 2) * sizeof keys[0]);
            keys[at] = key_of(hr__bpe_rank(&t->pairs, ids[at], ids[at + 1]));
        }
        if (at > 0)
            keys[at - 1] = key_of(hr__bpe_rank(&t->pairs, ids[at - 1], ids[at]));
    }
    memcpy(to, ids, count * sizeof ids[0]);
    return count;
}

/* ---- long words ---- */

#define NOWHERE UINT32_MAX
#define MERGED_AWAY UINT32_MAX

struct node {
    uint32_t id, rank; /* rank of the pair with the next node */
    uint32_t before, after;
};

static void
rank_pair(const struct hr_bpe *t, struct hr_heap *heap, struct node *nodes, uint32_t at)
{
    struct node *node = &nodes[at];

    node->rank = node->after == NOWHERE
                     ? HR_BPE_NO_RANK
                     : hr__bpe_rank(&t->pairs, node->id, nodes[node->after].id);
    if (node->rank != HR_BPE_NO_RANK)
        hr__heap_push(heap, (uint64_t)node->rank << 32 | at);
}

static void
merge_at(const struct hr_bpe *t, struct hr_heap *heap, struct node *nodes, uint32_t at)
{
    struct node *node = &nodes[at], *next = &nodes[node->after];

    node->id = merged(t, node->rank);
    node->after = next->after;
    next->id = MERGED_AWAY;
    next->rank = HR_BPE_NO_RANK;
    if (node->after != NOWHERE)
        nodes[node->after].before = at;
    rank_pair(t, heap, nodes, at);
    if (node->before != NOWHERE)
        rank_pair(t, heap, nodes, node->before);
}

static bool scratch_room(struct hr_bpe_scratch *scratch, size_t bytes)
{
    if (scratch->bytes >= bytes)
        return true;
    hr__free(scratch->memory);
    scratch->memory = hr__malloc(bytes);
    scratch->bytes = scratch->memory != NULL ? bytes : 0;
    return scratch->memory != NULL;
}

/* A pair whose rank changed stays in the heap and is skipped when it comes up. Each
 * merge pushes at most two pairs and removes a node, so 3 * count items suffice. */
static size_t merge_long(const struct hr_bpe *t, struct hr_bpe_scratch *scratch,
                         const uint8_t *word, size_t count, int32_t *to)
{
    size_t per_byte = sizeof(struct node) + 3 * sizeof(uint64_t), written = 0;
    struct hr_heap heap = {NULL}; /* pairs: rank << 32 | node */
    struct node *nodes;

    if (!scratch_room(scratch, count * per_byte))
        return 0;
    heap.items = scratch->memory;
    nodes = (struct node *)(heap.items + 3 * count);
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = (struct node){t->byte_ids[word[i]], HR_BPE_NO_RANK, i - 1,
                                 i + 1 < count ? i + 1 : NOWHERE};
    for (uint32_t i = 0; i + 1 < count; i++)
        rank_pair(t, &heap, nodes, i);
    while (heap.count > 0) {
        uint64_t item = hr__heap_pop(&heap);
        uint32_t at = (uint32_t)item;

        if (nodes[at].rank == item >> 32)
            merge_at(t, &heap, nodes, at);
    }
    for (uint32_t at = 0; at != NOWHERE; at = nodes[at].after)
        to[written++] = (int32_t)nodes[at].id;
    return written;
}

size_t hr__bpe_merge(const struct hr_bpe *t, struct hr_bpe_scratch *scratch,
                     const uint8_t *word, size_t count, int32_t *ids)
{
    assert(count > 0 && count <= HR_TOKENIZER_TEXT_MAX);
    if (t->whole) {
        uint32_t id = hr__bpe_find(t, word, count);

        if (id != UINT32_MAX) {
            ids[0] = (int32_t)id;
            return 1;
        }
    }
    return count <= HR_BPE_SHORT ? merge_short(t, word, (uint32_t)count, ids)
                                 : merge_long(t, scratch, word, count, ids);
}
