/*
 * codec/bpe_priv.h - a tokenizer's tables, shared by the bpe_*.c files.
 */
#ifndef HR_CODEC_BPE_PRIV_H
#define HR_CODEC_BPE_PRIV_H

#include "codec/bpe.h"

/* Ranks of merges have 22 bits in a slot of the table of pairs. */
#define HR_BPE_RANKS_MAX ((1 << 22) - 1)
#define HR_BPE_NO_RANK UINT32_MAX

/*
 * The merges by their pair of tokens, without collisions. The high bits of a pair's hash
 * choose a displacement that was searched so that all pairs of that bucket land in empty
 * slots. Most pairs do not merge; their look-up ends at the mark of the slot, 16 more
 * bits of the hash, so it touches a quarter of the memory.
 */
struct hr_bpe_pairs {
    uint64_t factor; /* of the hash */
    int shift;       /* hash to bucket */
    uint32_t mask;   /* slots - 1 */
    uint32_t *moves; /* displacement of each bucket */
    uint16_t *marks; /* of slots */
    uint64_t *slots; /* left << 43 | right << 22 | rank; UINT64_MAX: empty */
    uint32_t *bytes; /* [256 * 256]: rank of a pair of bytes, or HR_BPE_NO_RANK */
};

struct hr_bpe {
    enum hr_tokenizer_pattern pattern;
    bool whole;        /* a word that is a token becomes that token without merging */
    uint32_t id_end;   /* the largest id + 1 */
    uint8_t *bytes;    /* of all tokens */
    uint32_t *starts;  /* [id_end]: of a token in `bytes` */
    uint32_t *lengths; /* [id_end]: 0: no token has this id */
    uint32_t *names;   /* tokens by their bytes: id + 1 or 0; open addressing */
    uint32_t names_mask;
    uint32_t byte_ids[256];
    struct hr_bpe_pairs pairs;
    uint32_t *merged; /* [ranks]: id of a merge's token; NULL: rank + merged_base */
    uint32_t merged_base;
    uint8_t *itself; /* [id_end]: 1: the token's bytes are encoded as that token */
    struct hr_hash128 hash;
};

/* The token with these bytes, or UINT32_MAX. */
uint32_t hr__bpe_find(const struct hr_bpe *t, const uint8_t *bytes, size_t count);

/* ---- bpe_build.c ---- */

struct hr_bpe_merge {
    uint32_t left, right, rank;
};

/* Makes a tokenizer without tokens; NULL when out of memory. */
struct hr_bpe *hr__bpe_create(void);
void hr__bpe_destroy(void *bpe); /* NULL is fine */

/* Gives id `id` to a token; the tokens' bytes are copied. `named`: it takes part in
 * merging, so no two such tokens may have the same bytes. *ret_other is the id that has
 * them, or `id` if it has a token already; then HR_ERR_FORMAT. Only before
 * hr__bpe_finish. */
struct hr_bpe_builder {
    struct hr_bpe *t;
    size_t bytes, bytes_room, ids_room, names;
    struct hr_bpe_merge *merges;
    size_t merge_count, merge_room;
};
HR_CHECK enum hr_err hr__bpe_add(struct hr_bpe_builder *b, uint32_t id,
                                 const uint8_t *bytes, size_t count, bool named);
HR_CHECK enum hr_err
hr__bpe_add_merge(struct hr_bpe_builder *b, uint32_t left, uint32_t right, uint32_t rank);

/* Builds the tables from the tokens, from the merges added and from `merged`, the token
 * of each of `ranks` ranks, which is taken over (NULL: a token's id is its rank). */
HR_CHECK enum hr_err hr__bpe_finish(struct hr_bpe_builder *b, uint32_t *merged,
                                    uint32_t ranks, struct hr_error *reterr);

/* ---- bpe_merge.c ---- */

/* Memory for merging long words. */
struct hr_bpe_scratch {
    void *memory;
    size_t bytes;
};

static inline uint16_t hr__bpe_mark(uint64_t hash)
{
    return (uint16_t)(hash >> 36);
}

static inline uint32_t
hr__bpe_rank(const struct hr_bpe_pairs *p, uint32_t left, uint32_t right)
{
    uint64_t pair = (uint64_t)left << 21 | right, hash = pair * p->factor;
    uint32_t at = ((uint32_t)(hash >> 20) ^ p->moves[hash >> p->shift]) & p->mask;
    uint64_t slot;

    if (p->marks[at] != hr__bpe_mark(hash))
        return HR_BPE_NO_RANK;
    slot = p->slots[at];
    return slot >> 22 == pair ? (uint32_t)slot & HR_BPE_RANKS_MAX : HR_BPE_NO_RANK;
}

/* Writes the ids of a word, at most `count`, to `ids`; returns their number, or 0 when
 * out of memory, which only words longer than HR_BPE_SHORT need. */
#define HR_BPE_SHORT 96
size_t hr__bpe_merge(const struct hr_bpe *t, struct hr_bpe_scratch *scratch,
                     const uint8_t *word, size_t count, int32_t *ids);

#endif
