/*
 * order.shuffle - visit the records in another order every epoch.
 *
 * The order is a keyed permutation of positions (core/perm.h), so nothing is buffered
 * and any position can be asked for by any thread. Making a permutation costs up to a
 * few microseconds, so the last few are kept: in slots that a reader checks with a
 * sequence number around its copy, because threads must not write anything shared per
 * record. A slot that is being replaced is simply computed anew.
 */
#include "op/op.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "core/perm.h"

struct shuffle {
    int64_t window, seed;
};

static const struct hr_param shuffle_params[] = {
    HR_P_INT(struct shuffle, window, .fallback = "0", HR_RANGE(0, 1e12),
             .unit = "records",
             .help = "shuffle within blocks of so many records; 0: over the whole epoch"),
    HR_P_INT(struct shuffle, seed, .fallback = "0", HR_RANGE(0, 9e15),
             .help = "mixed with the run's seed, for another order of the same records"),
};

#define SLOTS 8
#define TABLE_MAX HR_PERM_TABLE /* below, hr_perm has a table that must be copied */
#define PERM_WORDS (sizeof(struct hr_perm) / sizeof(uint64_t))

/* What a permutation depends on: the number of records, and the stream that its draws
 * come from. */
struct key {
    uint64_t n, seed, epoch, block;
};

struct slot {
    atomic_uint_fast64_t sequence; /* odd while it is being written */
    atomic_uint_fast64_t n, seed, epoch, block;
    atomic_uint_fast64_t perm[PERM_WORDS]; /* n >= TABLE_MAX */
    _Atomic uint16_t table[TABLE_MAX];
};

struct cache {
    pthread_mutex_t lock; /* for writers */
    struct slot slots[SLOTS];
};

static enum hr_err shuffle_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static enum hr_err shuffle_open(const struct hr_open *open, void **ret_state)
{
    struct cache *cache = hr__calloc(1, sizeof *cache);

    if (cache == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for a shuffle");
    pthread_mutex_init(&cache->lock, NULL);
    *ret_state = cache;
    return HR_OK;
}

static void shuffle_close(void *state)
{
    struct cache *cache = state;

    pthread_mutex_destroy(&cache->lock);
    hr__free(cache);
}

static bool holds(struct slot *slot, const struct key *key)
{
    return atomic_load_explicit(&slot->n, memory_order_relaxed) == key->n &&
           atomic_load_explicit(&slot->seed, memory_order_relaxed) == key->seed &&
           atomic_load_explicit(&slot->epoch, memory_order_relaxed) == key->epoch &&
           atomic_load_explicit(&slot->block, memory_order_relaxed) == key->block;
}

/* False when the slot holds another permutation or is being written. */
static bool
look_up(struct slot *slot, const struct key *key, uint64_t at, uint64_t *ret_place)
{
    uint64_t before = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    union {
        uint64_t words[PERM_WORDS];
        struct hr_perm perm;
    } copy;
    uint64_t place = 0;

    if (before % 2 != 0 || before == 0 || !holds(slot, key))
        return false;
    if (key->n < TABLE_MAX)
        place = atomic_load_explicit(&slot->table[at], memory_order_relaxed);
    else
        for (size_t i = 0; i < PERM_WORDS; i++)
            copy.words[i] = atomic_load_explicit(&slot->perm[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) != before)
        return false;
    *ret_place = key->n < TABLE_MAX ? place : hr__perm_map(&copy.perm, at);
    return true;
}

static void fill(struct slot *slot, const struct key *key, const struct hr_perm *perm)
{
    uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    uint64_t words[PERM_WORDS];

    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->n, key->n, memory_order_relaxed);
    atomic_store_explicit(&slot->seed, key->seed, memory_order_relaxed);
    atomic_store_explicit(&slot->epoch, key->epoch, memory_order_relaxed);
    atomic_store_explicit(&slot->block, key->block, memory_order_relaxed);
    memcpy(words, perm, sizeof words);
    for (size_t i = 0; i < PERM_WORDS; i++)
        atomic_store_explicit(&slot->perm[i], words[i], memory_order_relaxed);
    for (uint64_t i = 0; key->n < TABLE_MAX && i < key->n; i++)
        atomic_store_explicit(&slot->table[i], (uint16_t)hr__perm_map(perm, i),
                              memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 2, memory_order_release);
}

static uint64_t permute(struct cache *cache, const struct key *key, uint64_t at)
{
    struct slot *slot = &cache->slots[hr__hash64(key, sizeof *key, 0) % SLOTS];
    uint16_t table[HR_PERM_TABLE];
    struct hr_perm perm;
    struct hr_rng rng;
    uint64_t place;

    if (look_up(slot, key, at, &place))
        return place;
    hr__rng_init(&rng, key->seed, (uint32_t)key->epoch, key->block);
    hr__perm_init(&perm, key->n, &rng, table);
    place = hr__perm_map(&perm, at);
    pthread_mutex_lock(&cache->lock);
    if (!holds(slot, key) || atomic_load(&slot->sequence) == 0)
        fill(slot, key, &perm);
    pthread_mutex_unlock(&cache->lock);
    return place;
}

static uint64_t shuffle_count(const void *params, uint64_t n)
{
    (void)params;
    return n;
}

static uint64_t shuffle_map(const void *params, void *state, uint64_t n, uint64_t at,
                            struct hr_record_id *id, uint64_t draw_id)
{
    const struct shuffle *p = params;
    uint64_t window = p->window > 0 ? (uint64_t)p->window : n, first = at - at % window;
    struct key key = {
        .n = n - first < window ? n - first : window,
        .seed = id->seed ^ draw_id ^ hr__rng_mix((uint64_t)p->seed),
        .epoch = id->draw_epoch,
        .block = first / window,
    };

    return first + permute(state, &key, at - first);
}

static uint64_t shuffle_block(const void *params)
{
    return (uint64_t)((const struct shuffle *)params)->window;
}

const struct hr_op hr_op_order_shuffle = {
    .name = "order.shuffle",
    .summary = "visit the records in a random order, another one each epoch",
    .doc =
        "With `window: 0` every order of the whole epoch is possible, at no cost in "
        "memory. A window keeps neighbours near each other (for slow disks), and is "
        "needed behind an op that drops records, where the epoch's length is not known: "
        "there, each block of `window` records is gathered and then given out in random "
        "order. The order depends on seed, epoch and the node's name, "
        "never on threads.",
    .version = 1,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(shuffle_params, struct shuffle),
    .infer = shuffle_infer,
    .open = shuffle_open,
    .close = shuffle_close,
    .order_count = shuffle_count,
    .order_map = shuffle_map,
    .stream_block = shuffle_block,
};
