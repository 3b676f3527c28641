/*
 * store/seek.c - entries in memory, by key, in shards with a lock each.
 *
 * A lock is held for a look-up and a copy of 2 kB, about 0.1 us, and no thread waits for
 * it: if a shard is locked, the caller behaves as if there were no entry. While the store
 * is saved it is frozen: entries do not change, so they can be written without locks and
 * still be found. All shards are locked for the moment in which the new file replaces
 * memory.
 */
#include "store/seek.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/seek_internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SHARDS 32 /* a power of 2; TSan follows 64 locks of a thread */
#define SLOTS_MIN 16
#define ENTRY_OVERHEAD 32 /* what the allocator and the slot take */
#define WORTH 16          /* new entries must cover 1/WORTH of what is saved */
#define REST 50           /* times as long as the last save took, before the next */

struct entry {
    struct hr_seek_record record;
    const struct hr_seek_record *over; /* the section's that this one hides, or NULL */
    uint8_t data[];
};

struct shard {
    pthread_mutex_t lock;
    struct entry **slots; /* open addressing; entries are replaced, never removed */
    size_t count, room;   /* room: a power of 2 */
};

struct hr_seek {
    atomic_uint refs;
    char *path; /* or NULL */
    uint64_t bytes_max;
    struct shard shards[SHARDS];
    struct hr_seek_section section; /* changed with all shards locked */
    pthread_mutex_t saving;
    atomic_bool frozen;
    pthread_mutex_t starting; /* the saver's below */
    pthread_t saver;
    bool has_saver;
    atomic_bool saver_ended;
    atomic_int_fast64_t saved;                /* `done` of the section */
    atomic_uint_fast64_t saved_ns, took_ns;   /* the end of the last save, its length */
    atomic_uint_fast64_t fresh, memory_bytes; /* in memory */
    /* What the entries in memory add to the section's sums. */
    atomic_int_fast64_t entries, entry_bytes, done;
    atomic_uint_fast64_t hits, misses, refused;
    atomic_uint_fast64_t uses, went, would; /* hr__seek_count, not saved yet */
    atomic_bool damaged, save_failed;
};

static void destroy(struct hr_seek *seek)
{
    for (int i = 0; i < SHARDS; i++) {
        struct shard *shard = &seek->shards[i];

        for (size_t k = 0; k < shard->room; k++)
            hr__free(shard->slots[k]);
        hr__free(shard->slots);
        pthread_mutex_destroy(&shard->lock);
    }
    hr__seek_section_close(&seek->section);
    pthread_mutex_destroy(&seek->saving);
    pthread_mutex_destroy(&seek->starting);
    hr__free(seek->path);
    hr__free(seek);
}

enum hr_err hr__seek_create(const char *path, uint64_t bytes_max,
                            struct hr_seek **ret_seek, struct hr_error *reterr)
{
    struct hr_seek *seek = hr__calloc(1, sizeof *seek);
    bool damaged;

    if (seek == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    atomic_init(&seek->refs, 1);
    pthread_mutex_init(&seek->saving, NULL);
    pthread_mutex_init(&seek->starting, NULL);
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_init(&seek->shards[i].lock, NULL);
    seek->bytes_max = bytes_max;
    if (path != NULL) {
        seek->path = hr__strdup(path);
        if (seek->path == NULL) {
            destroy(seek);
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        }
        hr__seek_section_open(path, &seek->section, &damaged);
        seek->saved = seek->section.done;
        seek->damaged = damaged;
    }
    *ret_seek = seek;
    return HR_OK;
}

/* Waits for the thread that saves, if there is one. */
static void await_saver(struct hr_seek *seek)
{
    pthread_mutex_lock(&seek->starting);
    if (seek->has_saver)
        pthread_join(seek->saver, NULL);
    seek->has_saver = false;
    pthread_mutex_unlock(&seek->starting);
}

struct hr_seek *hr__seek_ref(struct hr_seek *seek)
{
    atomic_fetch_add_explicit(&seek->refs, 1, memory_order_relaxed);
    return seek;
}

void hr__seek_unref(struct hr_seek *seek)
{
    if (seek == NULL ||
        atomic_fetch_sub_explicit(&seek->refs, 1, memory_order_acq_rel) != 1)
        return;
    await_saver(seek);
    hr__seek_save(seek);
    destroy(seek);
}

/* ---- entries ---- */

static struct shard *shard_of(struct hr_seek *seek, struct hr_hash128 key)
{
    return &seek->shards[key.low % SHARDS];
}

/* The slot of the key, or the free slot for it. */
static size_t slot_of(const struct shard *shard, struct hr_hash128 key)
{
    size_t at = (size_t)key.high & (shard->room - 1);

    while (shard->slots[at] != NULL && !hr__hash_equal(shard->slots[at]->record.key, key))
        at = (at + 1) & (shard->room - 1);
    return at;
}

static bool make_room(struct shard *shard)
{
    struct shard grown = {.room = shard->room > 0 ? 2 * shard->room : SLOTS_MIN};

    hr__assert_locked(&shard->lock);
    assert((shard->room & (shard->room - 1)) == 0 && shard->count <= shard->room);
    if (shard->count + 1 <= shard->room / 4 * 3)
        return true;
    grown.slots = hr__calloc(grown.room, sizeof(struct entry *));
    if (grown.slots == NULL)
        return false;
    for (size_t i = 0; i < shard->room; i++)
        if (shard->slots[i] != NULL)
            grown.slots[slot_of(&grown, shard->slots[i]->record.key)] = shard->slots[i];
    hr__free(shard->slots);
    shard->slots = grown.slots;
    shard->room = grown.room;
    return true;
}

/* The bytes of an intact entry, or NULL; the shard is locked. */
static const void *
look(struct hr_seek *seek, struct shard *shard, struct hr_hash128 key, size_t *ret_bytes)
{
    const struct entry *entry =
        shard->room > 0 ? shard->slots[slot_of(shard, key)] : NULL;
    const struct hr_seek_record *record;

    hr__assert_locked(&shard->lock);
    if (entry != NULL) {
        *ret_bytes = entry->record.bytes;
        return hr__seek_checksum(key, entry->data, entry->record.bytes) ==
                       entry->record.checksum
                   ? entry->data
                   : NULL;
    }
    record = hr__seek_section_find(&seek->section, key);
    if (record == NULL)
        return NULL;
    *ret_bytes = record->bytes;
    return hr__seek_section_data(&seek->section, record);
}

bool hr__seek_find(struct hr_seek *seek, struct hr_hash128 key, struct hr_arena *arena,
                   const uint8_t **ret_data, size_t *ret_bytes)
{
    struct shard *shard = shard_of(seek, key);
    uint8_t *copy = NULL;
    const void *data;
    size_t bytes = 0;

    if (pthread_mutex_trylock(&shard->lock) == 0) {
        data = look(seek, shard, key, &bytes);
        if (data != NULL && bytes > 0)
            copy = hr__arena_alloc(arena, bytes);
        if (copy != NULL)
            memcpy(copy, data, bytes);
        pthread_mutex_unlock(&shard->lock);
    }
    atomic_fetch_add_explicit(copy != NULL ? &seek->hits : &seek->misses, 1,
                              memory_order_relaxed);
    if (copy == NULL)
        return false;
    *ret_data = copy;
    *ret_bytes = bytes;
    return true;
}

/* `sign`: 1 or -1. */
static void count_entry(struct hr_seek *seek, const struct entry *entry, int64_t sign)
{
    int64_t bytes = entry->record.bytes, done = entry->record.done;
    int64_t whole = bytes + (int64_t)sizeof *entry + ENTRY_OVERHEAD;

    atomic_fetch_add_explicit(&seek->fresh, (uint64_t)sign, memory_order_relaxed);
    atomic_fetch_add_explicit(&seek->memory_bytes, (uint64_t)(sign * whole),
                              memory_order_relaxed);
    if (entry->over != NULL) {
        bytes -= entry->over->bytes;
        done -= entry->over->done;
    } else {
        atomic_fetch_add_explicit(&seek->entries, sign, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&seek->entry_bytes, sign * bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&seek->done, sign * done, memory_order_relaxed);
}

static struct entry *
make_entry(struct hr_hash128 key, const void *data, size_t bytes, uint32_t done)
{
    struct entry *entry = hr__malloc(sizeof *entry + bytes);

    if (entry == NULL)
        return NULL;
    memcpy(entry->data, data, bytes);
    entry->record =
        (struct hr_seek_record){.key = key,
                                .checksum = hr__seek_checksum(key, data, bytes),
                                .bytes = (uint32_t)bytes,
                                .done = done};
    return entry;
}

bool hr__seek_put(struct hr_seek *seek, struct hr_hash128 key, const void *data,
                  size_t bytes, uint32_t done)
{
    struct shard *shard = shard_of(seek, key);
    struct entry *entry = NULL, *old = NULL;
    bool locked = false, taken = false;

    /* Threads may exceed the limit together, by one entry each. */
    if (bytes <= UINT32_MAX &&
        atomic_load_explicit(&seek->memory_bytes, memory_order_relaxed) + bytes <=
            seek->bytes_max)
        entry = make_entry(key, data, bytes, done);
    if (entry != NULL)
        locked = pthread_mutex_trylock(&shard->lock) == 0;
    if (locked && !seek->frozen && make_room(shard)) {
        struct entry **slot = &shard->slots[slot_of(shard, key)];

        old = *slot;
        *slot = entry;
        entry->over = hr__seek_section_find(&seek->section, key);
        shard->count += old == NULL;
        count_entry(seek, entry, 1);
        if (old != NULL)
            count_entry(seek, old, -1);
        entry = NULL;
        taken = true;
    } else {
        atomic_fetch_add_explicit(&seek->refused, 1, memory_order_relaxed);
    }
    if (locked)
        pthread_mutex_unlock(&shard->lock);
    hr__free(entry);
    hr__free(old);
    if (atomic_load_explicit(&seek->memory_bytes, memory_order_relaxed) >
        seek->bytes_max / 2)
        hr__seek_pause(seek);
    return taken;
}

void hr__seek_count(struct hr_seek *seek, uint32_t went, uint32_t would)
{
    atomic_fetch_add_explicit(&seek->uses, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&seek->went, went, memory_order_relaxed);
    atomic_fetch_add_explicit(&seek->would, would, memory_order_relaxed);
}

/* ---- saving ---- */

static void lock_all(struct hr_seek *seek)
{
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_lock(&seek->shards[i].lock);
}

static void unlock_all(struct hr_seek *seek)
{
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_unlock(&seek->shards[i].lock);
}

/* Of a frozen store. */
static struct hr_seek_item *list_items(const struct hr_seek *seek, size_t *ret_count)
{
    size_t count = 0, at = 0;
    struct hr_seek_item *items;

    assert(seek->frozen);
    for (int i = 0; i < SHARDS; i++)
        count += seek->shards[i].count;
    items = hr__malloc((count + 1) * sizeof *items);
    for (int i = 0; items != NULL && i < SHARDS; i++) {
        const struct shard *shard = &seek->shards[i];

        for (size_t k = 0; k < shard->room; k++) {
            const struct entry *entry = shard->slots[k];

            if (entry != NULL)
                items[at++] = (struct hr_seek_item){entry->record, entry->data};
        }
    }
    *ret_count = count;
    return items;
}

static void forget_entries(struct hr_seek *seek)
{
    for (int i = 0; i < SHARDS; i++) {
        struct shard *shard = &seek->shards[i];

        for (size_t k = 0; k < shard->room; k++) {
            if (shard->slots[k] != NULL)
                count_entry(seek, shard->slots[k], -1);
            hr__free(shard->slots[k]);
            shard->slots[k] = NULL;
        }
        shard->count = 0;
    }
}

/* The file that was written replaces memory. */
static void turn_to_file(struct hr_seek *seek, const struct hr_seek_use *use)
{
    struct hr_seek_section now;
    bool damaged;

    hr__seek_section_open(seek->path, &now, &damaged);
    if (damaged || now.count == 0) {
        hr__seek_section_close(&now);
        return;
    }
    lock_all(seek);
    forget_entries(seek);
    hr__seek_section_close(&seek->section);
    seek->section = now;
    seek->saved = now.done;
    seek->damaged = false;
    unlock_all(seek);
    seek->uses -= use->count;
    seek->went -= use->went;
    seek->would -= use->would;
}

static void save_frozen(struct hr_seek *seek)
{
    const struct hr_seek_use use = {seek->uses, seek->went, seek->would};
    struct hr_seek_section now;
    enum hr_err err = HR_ERR_MEMORY;
    struct hr_seek_item *items;
    size_t count;
    bool damaged;

    items = list_items(seek, &count);
    /* Other runs may have written to it since. */
    hr__seek_section_open(seek->path, &now, &damaged);
    if (items != NULL)
        err = hr__seek_section_write(seek->path, items, count, &use, &now);
    hr__free(items);
    hr__seek_section_close(&now);
    seek->save_failed = err != HR_OK;
    if (err == HR_OK)
        turn_to_file(seek, &use);
}

void hr__seek_save(struct hr_seek *seek)
{
    uint64_t began;

    if (seek->path == NULL || seek->fresh == 0)
        return;
    pthread_mutex_lock(&seek->saving);
    began = hr__now_ns();
    seek->frozen = true;
    lock_all(seek); /* puts that have begun end */
    unlock_all(seek);
    if (seek->fresh > 0)
        save_frozen(seek);
    seek->frozen = false;
    seek->saved_ns = hr__now_ns();
    seek->took_ns = seek->saved_ns - began;
    pthread_mutex_unlock(&seek->saving);
}

static bool is_worth(struct hr_seek *seek)
{
    return seek->path != NULL && seek->fresh > 0 && seek->done >= seek->saved / WORTH;
}

void hr__seek_rest(struct hr_seek *seek)
{
    await_saver(seek);
    if (is_worth(seek))
        hr__seek_save(seek);
}

static void *run_saver(void *user)
{
    struct hr_seek *seek = user;

    hr__seek_save(seek);
    seek->saver_ended = true;
    return NULL;
}

static bool is_time(struct hr_seek *seek)
{
    return seek->saved_ns == 0 ||
           (!seek->save_failed && hr__now_ns() - seek->saved_ns >= REST * seek->took_ns);
}

void hr__seek_pause(struct hr_seek *seek)
{
    if (seek->frozen || !is_worth(seek) || !is_time(seek) ||
        pthread_mutex_trylock(&seek->starting) != 0)
        return;
    if (seek->has_saver && seek->saver_ended) {
        pthread_join(seek->saver, NULL);
        seek->has_saver = false;
    }
    if (!seek->has_saver) {
        seek->saver_ended = false;
        seek->has_saver =
            hr__thread_start(&seek->saver, "hr-seek", run_saver, seek, NULL) == HR_OK;
    }
    pthread_mutex_unlock(&seek->starting);
}

static double mean(uint64_t sum, uint64_t count)
{
    return count > 0 ? (double)sum / (double)count / HR_SEEK_WHOLE : 0;
}

void hr__seek_stats(struct hr_seek *seek, struct hr_seek_stats *ret_stats)
{
    struct hr_seek_section saved;

    pthread_mutex_lock(
        &seek->shards[0].lock); /* it changes only with all shards locked */
    saved = seek->section;
    pthread_mutex_unlock(&seek->shards[0].lock);
    *ret_stats = (struct hr_seek_stats){
        .entries = (uint64_t)seek->entries + saved.count,
        .bytes = (uint64_t)seek->entry_bytes + saved.entry_bytes,
        .mapped_entries = saved.count,
        .memory_bytes = seek->memory_bytes,
        .done = mean((uint64_t)seek->done + saved.done,
                     (uint64_t)seek->entries + saved.count),
        .hits = seek->hits,
        .misses = seek->misses,
        .refused = seek->refused,
        .went = mean(seek->went + saved.use.went, seek->uses + saved.use.count),
        .would = mean(seek->would + saved.use.would, seek->uses + saved.use.count),
        .damaged = seek->damaged,
        .save_failed = seek->save_failed,
    };
}
