/*
 * store/seek.c - entries in memory, by key, in shards that are locked one by one.
 *
 * A lock is held for a look-up and a copy of 2 kB, about 0.1 us, and nobody waits for
 * one: who finds a shard taken goes on as if there were no entry. Saving takes all shards
 * for as long as it writes; it comes when a run ends.
 */
#include "store/seek.h"
#include "core/alloc.h"
#include "core/error.h"
#include "store/seek_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SHARDS 32 /* a power of 2; TSan follows 64 locks of a thread */
#define SLOTS_MIN 16
#define ENTRY_OVERHEAD 32 /* what the allocator and the slot take */

struct entry {
    struct hr_seek_record record;
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
    atomic_uint_fast64_t memory_bytes, entry_bytes, entries, done;
    atomic_uint_fast64_t hits, misses, refused;
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
        seek->damaged = damaged;
    }
    *ret_seek = seek;
    return HR_OK;
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
    hr__seek_save(seek);
    destroy(seek);
}

/* ---- entries ---- */

static struct shard *shard_of(struct hr_seek *seek, struct hr_hash128 key)
{
    return &seek->shards[key.low % SHARDS];
}

/* The slot of the key, or the free one where it would go. */
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

/* Whole bytes of the entry, or NULL; the shard is locked. */
static const void *
look(struct hr_seek *seek, struct shard *shard, struct hr_hash128 key, size_t *ret_bytes)
{
    const struct entry *entry =
        shard->room > 0 ? shard->slots[slot_of(shard, key)] : NULL;
    const struct hr_seek_record *record;

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

static void count_entry(struct hr_seek *seek, const struct entry *entry, uint64_t sign)
{
    uint64_t bytes = entry->record.bytes, whole = bytes + sizeof *entry + ENTRY_OVERHEAD;

    atomic_fetch_add_explicit(&seek->memory_bytes, sign * whole, memory_order_relaxed);
    atomic_fetch_add_explicit(&seek->entry_bytes, sign * bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&seek->entries, sign, memory_order_relaxed);
    atomic_fetch_add_explicit(&seek->done, sign * entry->record.done,
                              memory_order_relaxed);
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

    /* A few threads may pass the bound together, by an entry each. */
    if (bytes <= UINT32_MAX &&
        atomic_load_explicit(&seek->memory_bytes, memory_order_relaxed) + bytes <=
            seek->bytes_max)
        entry = make_entry(key, data, bytes, done);
    if (entry != NULL)
        locked = pthread_mutex_trylock(&shard->lock) == 0;
    if (locked && make_room(shard)) {
        struct entry **slot = &shard->slots[slot_of(shard, key)];

        old = *slot;
        *slot = entry;
        shard->count += old == NULL;
        count_entry(seek, entry, 1);
        if (old != NULL)
            count_entry(seek, old, (uint64_t)-1);
        entry = NULL;
        taken = true;
    } else {
        atomic_fetch_add_explicit(&seek->refused, 1, memory_order_relaxed);
    }
    if (locked)
        pthread_mutex_unlock(&shard->lock);
    hr__free(entry);
    hr__free(old);
    return taken;
}

/* ---- saving; with all shards locked ---- */

static struct hr_seek_item *list_items(const struct hr_seek *seek, size_t *ret_count)
{
    size_t count = 0, at = 0;
    struct hr_seek_item *items;

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
                count_entry(seek, shard->slots[k], (uint64_t)-1);
            hr__free(shard->slots[k]);
            shard->slots[k] = NULL;
        }
        shard->count = 0;
    }
}

static void save_locked(struct hr_seek *seek)
{
    struct hr_seek_section now;
    enum hr_err err = HR_ERR_MEMORY;
    struct hr_seek_item *items;
    size_t count;
    bool damaged;

    items = list_items(seek, &count);
    /* Other runs may have written since. */
    hr__seek_section_open(seek->path, &now, &damaged);
    if (items != NULL)
        err = hr__seek_section_write(seek->path, items, count, &now);
    hr__free(items);
    hr__seek_section_close(&now);
    seek->save_failed = err != HR_OK;
    if (err != HR_OK)
        return;
    hr__seek_section_open(seek->path, &now, &damaged);
    if (damaged || now.count == 0) {
        hr__seek_section_close(&now);
        return;
    }
    hr__seek_section_close(&seek->section);
    seek->section = now;
    seek->damaged = false;
    forget_entries(seek);
}

void hr__seek_save(struct hr_seek *seek)
{
    if (seek->path == NULL || seek->entries == 0)
        return;
    pthread_mutex_lock(&seek->saving);
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_lock(&seek->shards[i].lock);
    if (seek->entries > 0)
        save_locked(seek);
    for (int i = 0; i < SHARDS; i++)
        pthread_mutex_unlock(&seek->shards[i].lock);
    pthread_mutex_unlock(&seek->saving);
}

void hr__seek_rest(struct hr_seek *seek)
{
    bool worth;

    pthread_mutex_lock(&seek->saving);
    worth = seek->entries >= seek->section.count / 16;
    pthread_mutex_unlock(&seek->saving);
    if (worth)
        hr__seek_save(seek);
}

void hr__seek_stats(struct hr_seek *seek, struct hr_seek_stats *ret_stats)
{
    uint64_t done;

    pthread_mutex_lock(&seek->saving);
    *ret_stats = (struct hr_seek_stats){
        .entries = seek->entries + seek->section.count,
        .bytes = seek->entry_bytes + seek->section.entry_bytes,
        .mapped_entries = seek->section.count,
        .memory_bytes = seek->memory_bytes,
        .hits = seek->hits,
        .misses = seek->misses,
        .refused = seek->refused,
        .damaged = seek->damaged,
        .save_failed = seek->save_failed,
    };
    done = seek->done + seek->section.done;
    pthread_mutex_unlock(&seek->saving);
    if (ret_stats->entries > 0)
        ret_stats->done = (double)done / (double)ret_stats->entries / HR_SEEK_WHOLE;
}
