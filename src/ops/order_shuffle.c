/*
 * order.shuffle - visit the records in another order every epoch.
 *
 * The order is a keyed permutation of positions (core/perm.h): nothing is buffered, and
 * any thread can map any position. Making a permutation takes up to a few microseconds,
 * so the last few are cached, in slots that readers validate with a sequence number
 * around their copy, because threads must not write shared memory per record. A reader
 * that finds its slot being replaced computes the permutation itself.
 */
#include "ops/ordinal.h"

#include <assert.h>
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
             .help = "number of records that are shuffled together; 0: the whole epoch"),
    HR_P_INT(struct shuffle, seed, .fallback = "-1", HR_RANGE(-1, 9e15),
             .help = "decides the order together with the run's seed; -1: the node's "
                     "name does"),
};

#define SLOTS 8
#define WINDOW_NUMBER_MAX ((uint64_t)1 << 60) /* records before a window */
#define TABLE_MAX HR_PERM_TABLE /* below, hr_perm has a table that must be copied */
#define PERM_WORDS (sizeof(struct hr_perm) / sizeof(uint64_t))

/* What a permutation depends on: the number of records and the random stream. */
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

/* Returns false if the slot holds another permutation or is being written. */
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

/* Takes the place of a node's draw_id. */
static uint64_t seed_id(int64_t seed)
{
    static const char name[] = "order.shuffle seed";

    return hr__hash64(&seed, sizeof seed, hr__hash64(name, sizeof name, 0));
}

static uint64_t shuffle_count(const void *params, const void *state, uint64_t n)
{
    (void)params, (void)state;
    return n;
}

static bool draws_by_params(const void *params)
{
    return ((const struct shuffle *)params)->seed >= 0;
}

static uint64_t shuffle_map(const void *params, void *state, uint64_t n, uint64_t at,
                            struct hr_record_id *id, uint64_t draw_id)
{
    const struct shuffle *p = params;
    uint64_t window = p->window > 0 ? (uint64_t)p->window : n, first = at - at % window;
    struct key key = {
        .n = n - first < window ? n - first : window,
        .seed = id->seed ^ (p->seed >= 0 ? seed_id(p->seed) : draw_id),
        .epoch = id->draw_epoch,
        .block = first / window,
    };

    return first + permute(state, &key, at - first);
}

/* ---- windows over records whose number is not known ---- */

struct window {
    const struct shuffle *params;
    struct cache *cache;
    uint64_t seed, draw_id;
    uint32_t epoch;
    size_t fields;
    uint64_t number;          /* of this window in the epoch */
    uint64_t count, at, room; /* records held; the next output; rows allocated */
    bool draining;
    struct hr_sequence_record *records; /* values point into rows */
    struct hr_value *rows;
    struct hr_pool *pool;
};

static bool window_possible(const void *params)
{
    return ((const struct shuffle *)params)->window > 0;
}

static uint64_t
window_holds(const void *params, const void *state, const struct hr_schema *input)
{
    (void)state, (void)input;
    return (uint64_t)((const struct shuffle *)params)->window;
}

static void window_end(void *sequencer)
{
    struct window *w = sequencer;

    for (uint64_t i = 0; i < w->count * w->fields; i++)
        hr__value_clear(&w->rows[i]);
    hr__free(w->records);
    hr__free(w->rows);
    hr__free(w);
}

static enum hr_err window_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct window *w = *sequencer;

    if (w == NULL)
        w = hr__calloc(1, sizeof *w);
    if (w == NULL)
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    assert(w->count == 0);
    w->params = begin->params;
    w->cache = begin->state;
    w->seed = begin->seed;
    w->draw_id = begin->draw_id;
    w->epoch = begin->epoch;
    w->fields = begin->input->count;
    w->pool = begin->pool;
    w->number = w->at = 0;
    w->draining = false;
    *sequencer = w;
    return HR_OK;
}

static enum hr_err window_grow(struct window *w, struct hr_error *error)
{
    uint64_t room = w->room == 0 ? 64 : 2 * w->room;
    struct hr_sequence_record *records;
    struct hr_value *rows;

    room = room < (uint64_t)w->params->window ? room : (uint64_t)w->params->window;
    records = hr__realloc(w->records, room * sizeof *records);
    if (records != NULL)
        w->records = records;
    rows = hr__realloc(w->rows, (room * w->fields + 1) * sizeof *rows);
    if (rows != NULL)
        w->rows = rows;
    if (records == NULL || rows == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "no memory for a window of %lld records",
                        (long long)w->params->window);
    w->room = room;
    return HR_OK;
}

/* Smaller values share buffers that are small, too. */
#define OWN_BYTES_MIN 2048

/* Copies a tensor that shows part of a larger buffer, such as a batch that was taken
 * apart: records that leave in another order would each keep all of it. */
static enum hr_err own(struct window *w, struct hr_value *value, struct hr_error *error)
{
    uint8_t layout = value->layout;
    struct hr_buffer *buffer;
    enum hr_err code;

    if (value->kind != HR_VALUE_TENSOR || value->owner == NULL ||
        value->bytes < OWN_BYTES_MIN || hr_buffer_bytes(value->owner) < 2 * value->bytes)
        return HR_OK;
    code = hr_pool_get(w->pool, value->bytes, &buffer);
    if (code != HR_OK)
        return hr__fail(error, code, "no memory for a record of %zu bytes", value->bytes);
    hr__value_copy(value, hr_buffer_data(buffer));
    hr__value_set_tensor(value, (enum hr_dtype)value->dtype, value->ndim, value->dims,
                         hr_buffer_data(buffer), buffer);
    value->layout = layout;
    return HR_OK;
}

static enum hr_err
window_add(void *sequencer, struct hr_sequence_record *record,
           enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct window *w = sequencer;

    assert(!w->draining);
    if (w->count == w->room)
        HR_TRY(window_grow(w, error));
    for (size_t f = 0; f < w->fields; f++)
        HR_TRY(own(w, &record->values[f], error));
    w->records[w->count] = *record;
    memcpy(&w->rows[w->count * w->fields], record->values,
           w->fields * sizeof *record->values);
    memset(record->values, 0, w->fields * sizeof *record->values);
    w->draining = ++w->count == (uint64_t)w->params->window;
    *ret_verdict = w->draining ? HR_SEQUENCE_READY : HR_SEQUENCE_HELD;
    return HR_OK;
}

static enum hr_err window_next(void *sequencer, struct hr_sequence_record *record,
                               bool *ret_any, bool *ret_more, struct hr_error *error)
{
    struct window *w = sequencer;
    struct hr_record_id id = {.seed = w->seed, .epoch = w->epoch, .draw_epoch = w->epoch};
    uint64_t first = w->number * (uint64_t)w->params->window, from;
    struct hr_value *values = record->values;

    (void)error;
    *ret_any = w->draining;
    *ret_more = false;
    if (!w->draining)
        return HR_OK;
    from = shuffle_map(w->params, w->cache, first + w->count, first + w->at, &id,
                       w->draw_id) -
           first;
    assert(from < w->count);
    *record = w->records[from];
    record->values = values;
    memcpy(values, &w->rows[from * w->fields], w->fields * sizeof *values);
    memset(&w->rows[from * w->fields], 0, w->fields * sizeof *values);
    *ret_more = ++w->at < w->count;
    if (!*ret_more) {
        w->draining = false;
        w->count = w->at = 0;
        w->number++;
    }
    return HR_OK;
}

static enum hr_err
window_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error)
{
    struct window *w = sequencer;

    (void)why, (void)error;
    w->draining = w->count > 0;
    return HR_OK;
}

static bool window_save(const void *sequencer, struct hr_str *out)
{
    const struct window *w = sequencer;

    if (w->number > 0)
        hr__str_addf(out, "%llu", (unsigned long long)w->number);
    return w->count == 0;
}

static enum hr_err
window_restore(void *sequencer, const char *text, struct hr_error *error)
{
    struct window *w = sequencer;

    return hr__saved_number(text, WINDOW_NUMBER_MAX / (uint64_t)w->params->window,
                            &w->number, error);
}

static uint64_t window_held_bytes(const void *sequencer)
{
    const struct window *w = sequencer;
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < w->count * w->fields; i++)
        bytes += w->rows[i].bytes;
    return bytes;
}

const struct hr_op hr_op_order_shuffle = {
    .name = "order.shuffle",
    .summary = "visit the records in a random order, different in each epoch",
    .doc =
        "With `window: 0` the whole epoch is shuffled, without using memory. "
        "A window keeps neighbours near each other (for slow disks), and is needed after "
        "an op that drops records, where the epoch's length is unknown: there, each "
        "`window` records are gathered and then output in random order. The order "
        "depends on the run's seed, the epoch, and `seed` or else the node's name, "
        "never on threads: shuffles with an equal `seed` and `window` give equal numbers "
        "of records the same order.",
    .version = 2,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(shuffle_params, struct shuffle),
    .infer = shuffle_infer,
    .open = shuffle_open,
    .close = shuffle_close,
    .order.count = shuffle_count,
    .order.map = shuffle_map,
    .order.draws_by_params = draws_by_params,
    .sequence =
        {
                   .begin = window_begin,
                   .add = window_add,
                   .next = window_next,
                   .flush = window_flush,
                   .save = window_save,
                   .restore = window_restore,
                   .end = window_end,
                   .held_bytes = window_held_bytes,
                   .replays = true,
                   .holds = window_holds,
                   .possible = window_possible,
                   },
};
