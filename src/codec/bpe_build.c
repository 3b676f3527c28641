/*
 * codec/bpe_build.c - a tokenizer's tables from its tokens and merges.
 */
#include "codec/bpe_priv.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct hr_bpe *hr__bpe_create(void)
{
    struct hr_bpe *t = hr__calloc(1, sizeof *t);

    if (t != NULL)
        memset(t->byte_ids, 0xFF, sizeof t->byte_ids);
    return t;
}

void hr__bpe_destroy(void *bpe)
{
    struct hr_bpe *t = bpe;

    if (t == NULL)
        return;
    hr__free(t->bytes);
    hr__free(t->starts);
    hr__free(t->lengths);
    hr__free(t->names);
    hr__free(t->pairs.moves);
    hr__free(t->pairs.marks);
    hr__free(t->pairs.slots);
    hr__free(t->pairs.bytes);
    hr__free(t->merged);
    hr__free(t->itself);
    hr__free(t);
}

/* ---- tokens ---- */

/* The slot of the token with these bytes, or the empty slot where it would be. */
static uint32_t name_slot(const struct hr_bpe *t, const uint8_t *bytes, size_t count)
{
    uint32_t at = (uint32_t)hr__hash64(bytes, count, 0) & t->names_mask;

    for (; t->names[at] != 0; at = (at + 1) & t->names_mask) {
        uint32_t id = t->names[at] - 1;

        if (t->lengths[id] == count &&
            memcmp(t->bytes + t->starts[id], bytes, count) == 0)
            break;
    }
    return at;
}

uint32_t hr__bpe_find(const struct hr_bpe *t, const uint8_t *bytes, size_t count)
{
    return t->names[name_slot(t, bytes, count)] - 1;
}

static bool grow_names(struct hr_bpe_builder *b)
{
    struct hr_bpe *t = b->t;
    uint32_t *old = t->names, room = t->names == NULL ? 0 : t->names_mask + 1;
    uint32_t grown = room == 0 ? 1024 : 2 * room;
    uint32_t *names;

    if (2 * (b->names + 1) <= room)
        return true;
    names = hr__calloc(grown, sizeof *names);
    if (names == NULL)
        return false;
    t->names = names;
    t->names_mask = grown - 1;
    for (uint32_t i = 0; i < room; i++) {
        if (old[i] != 0)
            names[name_slot(t, t->bytes + t->starts[old[i] - 1],
                            t->lengths[old[i] - 1])] = old[i];
    }
    hr__free(old);
    return true;
}

static bool grow_ids(struct hr_bpe_builder *b, uint32_t id)
{
    struct hr_bpe *t = b->t;
    size_t room = b->ids_room == 0 ? 1024 : b->ids_room;
    uint32_t *starts, *lengths;

    while (room <= id)
        room *= 2;
    if (room == b->ids_room)
        return true;
    starts = hr__realloc(t->starts, room * sizeof *starts);
    if (starts == NULL)
        return false;
    t->starts = starts;
    lengths = hr__realloc(t->lengths, room * sizeof *lengths);
    if (lengths == NULL)
        return false;
    memset(starts + b->ids_room, 0, (room - b->ids_room) * sizeof *starts);
    memset(lengths + b->ids_room, 0, (room - b->ids_room) * sizeof *lengths);
    t->lengths = lengths;
    b->ids_room = room;
    return true;
}

enum hr_err hr__bpe_add(struct hr_bpe_builder *b, uint32_t id, const uint8_t *bytes,
                        size_t count, bool named)
{
    struct hr_bpe *t = b->t;

    assert(count > 0 && id < HR_TOKENIZER_IDS_MAX);
    if (!grow_ids(b, id) || !grow_names(b) ||
        !hr__array_room(&t->bytes, b->bytes, &b->bytes_room, count, 1))
        return HR_ERR_MEMORY;
    if (t->lengths[id] != 0 || (named && hr__bpe_find(t, bytes, count) != UINT32_MAX))
        return HR_ERR_FORMAT;
    memcpy(t->bytes + b->bytes, bytes, count);
    t->starts[id] = (uint32_t)b->bytes;
    t->lengths[id] = (uint32_t)count;
    b->bytes += count;
    t->id_end = id >= t->id_end ? id + 1 : t->id_end;
    if (named) {
        t->names[name_slot(t, bytes, count)] = id + 1;
        b->names++;
        if (count == 1)
            t->byte_ids[bytes[0]] = id;
    }
    return HR_OK;
}

enum hr_err
hr__bpe_add_merge(struct hr_bpe_builder *b, uint32_t left, uint32_t right, uint32_t rank)
{
    assert(rank < HR_BPE_RANKS_MAX);
    if (!hr__array_room(&b->merges, b->merge_count, &b->merge_room, 1, sizeof *b->merges))
        return HR_ERR_MEMORY;
    b->merges[b->merge_count++] = (struct hr_bpe_merge){left, right, rank};
    return HR_OK;
}

/* ---- pairs ---- */

static uint64_t pair_of(const struct hr_bpe_merge *m)
{
    return (uint64_t)m->left << 21 | m->right;
}

static int compare_merges(const void *a, const void *b)
{
    uint64_t x = pair_of(a), y = pair_of(b);

    return (x > y) - (x < y);
}

static enum hr_err check_merges(struct hr_bpe_builder *b, struct hr_error *reterr)
{
    if (b->merge_count > 0)
        qsort(b->merges, b->merge_count, sizeof *b->merges, compare_merges);
    for (size_t i = 1; i < b->merge_count; i++) {
        const struct hr_bpe_merge *one = &b->merges[i - 1], *other = &b->merges[i];

        if (compare_merges(one, other) == 0)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "merges %u and %u are of the same two tokens",
                            1 + (one->rank < other->rank ? one->rank : other->rank),
                            1 + (one->rank < other->rank ? other->rank : one->rank));
    }
    return HR_OK;
}

/* Merges in order of bucket, with the start of each bucket. */
struct buckets {
    uint32_t *starts; /* [count + 1] */
    uint32_t *order;  /* [count]: buckets, the largest first */
    uint64_t *items;  /* slots as in hr_bpe_pairs */
    uint32_t count;
};

static uint64_t hash_of(const struct hr_bpe_pairs *p, uint64_t pair)
{
    return pair * p->factor;
}

static void fill_buckets(const struct hr_bpe_builder *b, const struct hr_bpe_pairs *p,
                         struct buckets *k)
{
    uint32_t sizes[64] = {0}, at = 0;

    memset(k->starts, 0, (k->count + 1) * sizeof *k->starts);
    for (size_t i = 0; i < b->merge_count; i++)
        k->starts[hash_of(p, pair_of(&b->merges[i])) >> p->shift]++;
    for (uint32_t i = 0; i < k->count; i++) {
        sizes[k->starts[i] < 63 ? k->starts[i] : 63]++;
        at += k->starts[i];
        k->starts[i] = at;
    }
    k->starts[k->count] = at;
    /* Now starts[i] is the end of bucket i; filling moves it to its start. */
    for (size_t i = 0; i < b->merge_count; i++) {
        uint64_t pair = pair_of(&b->merges[i]);

        k->items[--k->starts[hash_of(p, pair) >> p->shift]] =
            pair << 22 | b->merges[i].rank;
    }
    at = 0;
    for (int s = 63; s >= 0; s--) {
        uint32_t size = sizes[s];

        sizes[s] = at;
        at += size;
    }
    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t size = k->starts[i + 1] - k->starts[i];

        k->order[sizes[size < 63 ? size : 63]++] = i;
    }
}

static uint32_t slot_of(const struct hr_bpe_pairs *p, uint64_t item, uint32_t move)
{
    return ((uint32_t)(hash_of(p, item >> 22) >> 20) ^ move) & p->mask;
}

/* Places all items of a bucket, or none. */
static bool
place_bucket(struct hr_bpe_pairs *p, const uint64_t *items, uint32_t count, uint32_t move)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *slot = &p->slots[slot_of(p, items[i], move)];

        if (*slot != UINT64_MAX) {
            while (i-- > 0)
                p->slots[slot_of(p, items[i], move)] = UINT64_MAX;
            return false;
        }
        *slot = items[i];
    }
    return true;
}

static bool place_all(struct hr_bpe_pairs *p, const struct buckets *k)
{
    memset(p->slots, 0xFF, ((size_t)p->mask + 1) * sizeof *p->slots);
    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t bucket = k->order[i], move = 0;
        const uint64_t *items = k->items + k->starts[bucket];
        uint32_t count = k->starts[bucket + 1] - k->starts[bucket];

        if (count > 0)
            while (!place_bucket(p, items, count, move))
                if (++move > p->mask)
                    return false;
        p->moves[bucket] = move;
    }
    return true;
}

static void mark_slots(struct hr_bpe_pairs *p)
{
    for (size_t i = 0; i <= p->mask; i++)
        if (p->slots[i] != UINT64_MAX)
            p->marks[i] = hr__bpe_mark(hash_of(p, p->slots[i] >> 22));
}

/* Two pairs of a bucket with equal hashes never fit; another factor separates them. */
static bool
search_places(const struct hr_bpe_builder *b, struct hr_bpe_pairs *p, struct buckets *k)
{
    uint64_t seed = 0;

    for (int i = 0; i < 40; i++) {
        p->factor = hr__hash64(&seed, sizeof seed, (uint64_t)i) | 1;
        fill_buckets(b, p, k);
        if (place_all(p, k)) {
            mark_slots(p);
            return true;
        }
    }
    return false;
}

static bool alloc_pairs(const struct hr_bpe_builder *b, struct hr_bpe_pairs *p,
                        struct buckets *k, int bits)
{
    k->count = 1U << (bits - 3);
    p->shift = 64 - (bits - 3);
    p->mask = (1U << bits) - 1;
    p->moves = hr__calloc(k->count, sizeof *p->moves);
    p->marks = hr__calloc((size_t)p->mask + 1, sizeof *p->marks);
    p->slots = hr__malloc(((size_t)p->mask + 1) * sizeof *p->slots);
    k->starts = hr__malloc((k->count + 1) * sizeof *k->starts);
    k->order = hr__malloc(k->count * sizeof *k->order);
    k->items = hr__malloc((b->merge_count + 1) * sizeof *k->items);
    return p->moves != NULL && p->marks != NULL && p->slots != NULL &&
           k->starts != NULL && k->order != NULL && k->items != NULL;
}

static void free_buckets(struct buckets *k)
{
    hr__free(k->starts);
    hr__free(k->order);
    hr__free(k->items);
}

/* At a load of at most 0.8 a few factors suffice; if none does, with twice the slots. */
static enum hr_err build_pairs(struct hr_bpe_builder *b, struct hr_error *reterr)
{
    struct hr_bpe_pairs *p = &b->t->pairs;
    bool found = false;
    int bits = 6;

    while ((double)b->merge_count > 0.8 * (double)(1 << bits))
        bits++;
    for (; !found && bits <= 26; bits++) {
        struct buckets k = {NULL};
        bool has_room;

        hr__free(p->moves);
        hr__free(p->marks);
        hr__free(p->slots);
        has_room = alloc_pairs(b, p, &k, bits);
        found = has_room && search_places(b, p, &k);
        free_buckets(&k);
        if (!has_room)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    if (!found)
        return hr__fail(reterr, HR_ERR_INTERNAL, "no table of merges was found");
    return HR_OK;
}

static enum hr_err build_bytes(struct hr_bpe *t, struct hr_error *reterr)
{
    t->pairs.bytes = hr__malloc(65536 * sizeof *t->pairs.bytes);
    if (t->pairs.bytes == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < 65536; i++)
        t->pairs.bytes[i] =
            hr__bpe_rank(&t->pairs, t->byte_ids[i >> 8], t->byte_ids[i & 255]);
    return HR_OK;
}

/* ---- the whole ---- */

static enum hr_err check_bytes(const struct hr_bpe *t, struct hr_error *reterr)
{
    for (int i = 0; i < 256; i++) {
        if (t->byte_ids[i] == UINT32_MAX)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "no token is the single byte 0x%02x; a byte-level vocabulary "
                            "has all 256",
                            (unsigned)i);
    }
    return HR_OK;
}

/* Replaces the table by a base where ids follow ranks, as GPT-2's do. */
static void simplify_merged(struct hr_bpe *t, uint32_t ranks)
{
    uint32_t base = ranks > 0 ? t->merged[0] : 0;

    for (uint32_t i = 0; i < ranks; i++)
        if (t->merged[i] != base + i)
            return;
    t->merged_base = base;
    hr__free(t->merged);
    t->merged = NULL;
}

/* Which tokens are encoded as themselves: some vocabularies have tokens that merging does
 * not reach. */
static enum hr_err find_itself(struct hr_bpe *t, struct hr_error *reterr)
{
    struct hr_bpe_scratch scratch = {NULL};
    int32_t ids[HR_BPE_SHORT];

    t->itself = hr__calloc(t->id_end, 1);
    if (t->itself == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint32_t id = 0; id < t->id_end; id++) {
        const uint8_t *bytes = t->bytes + t->starts[id];
        size_t count = t->lengths[id];

        if (count > 0 && count <= HR_BPE_SHORT &&
            hr__bpe_merge(t, &scratch, bytes, count, ids) == 1)
            t->itself[id] = ids[0] == (int32_t)id;
    }
    return HR_OK;
}

/* Over tokens in order of id and merges in order of their pair. */
static enum hr_err
hash_all(struct hr_bpe_builder *b, uint32_t ranks, struct hr_error *reterr)
{
    struct hr_bpe *t = b->t;
    struct hr_hasher *hasher = hr__hasher_create();
    const uint32_t head[4] = {t->pattern, t->whole, t->id_end, ranks};

    if (hasher == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__hasher_add(hasher, head, sizeof head);
    hr__hasher_add(hasher, t->lengths, t->id_end * sizeof *t->lengths);
    for (uint32_t id = 0; id < t->id_end; id++)
        hr__hasher_add(hasher, t->bytes + t->starts[id], t->lengths[id]);
    hr__hasher_add(hasher, b->merges, b->merge_count * sizeof *b->merges);
    if (t->merged != NULL)
        hr__hasher_add(hasher, t->merged, ranks * sizeof *t->merged);
    t->hash = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    return HR_OK;
}

enum hr_err hr__bpe_finish(struct hr_bpe_builder *b, uint32_t *merged, uint32_t ranks,
                           struct hr_error *reterr)
{
    struct hr_bpe *t = b->t;

    t->merged = merged;
    HR_TRY(check_bytes(t, reterr));
    HR_TRY(check_merges(b, reterr));
    HR_TRY(hash_all(b, ranks, reterr));
    HR_TRY(build_pairs(b, reterr));
    HR_TRY(build_bytes(t, reterr));
    if (merged != NULL)
        simplify_merged(t, ranks);
    return find_itself(t, reterr);
}

const uint8_t *hr__bpe_token(const struct hr_bpe *t, int32_t id, size_t *ret_bytes)
{
    if (id < 0 || (uint32_t)id >= t->id_end || t->lengths[id] == 0)
        return NULL;
    *ret_bytes = t->lengths[id];
    return t->bytes + t->starts[id];
}
