/*
 * store/cache.c - the table of a cache, and values in memory.
 *
 * The table is cut into shards with a lock each, held only to find or add an entry.
 * Values in memory lie one after the other in slabs, which never move and are freed
 * together, so a value is used in place and costs no allocation of its own.
 */
#include "store/cache_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define SLAB_BYTES ((size_t)4 << 20)
#define SHARD_ROOM 16

/* What an entry takes of the budget in memory: its place in a table that is at least half
 * full. */
#define ENTRY_BYTES (2 * sizeof(struct hr_cache_entry))

void hr__cache_fill(struct hr_cache *cache, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&cache->lock);
    if (!atomic_exchange(&cache->full, true)) {
        va_start(args, format);
        vsnprintf(cache->reason, sizeof cache->reason, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&cache->lock);
}

void hr__cache_used_up(struct hr_cache *cache)
{
    char budget[32];

    hr__cache_fill(cache, "its budget of %s is used up",
                   hr__bytes_text(budget, sizeof budget, cache->bytes_max));
}

/* ---- the table ---- */

static struct hr_cache_shard *shard_of(struct hr_cache *cache, struct hr_hash128 key)
{
    return &cache->shards[key.high % HR_CACHE_SHARDS];
}

/* The entry of the key, or the free one where it belongs. */
static struct hr_cache_entry *
place_of(struct hr_cache_entry *entries, size_t room, struct hr_hash128 key)
{
    size_t at = key.low & (room - 1);

    while (entries[at].unit != NULL && !hr__hash_equal(entries[at].key, key))
        at = (at + 1) & (room - 1);
    return &entries[at];
}

static bool grow(struct hr_cache_shard *shard)
{
    size_t room = shard->room > 0 ? 2 * shard->room : SHARD_ROOM;
    struct hr_cache_entry *grown = hr__calloc(room, sizeof *grown);

    if (grown == NULL)
        return false;
    for (size_t i = 0; i < shard->room; i++)
        if (shard->entries[i].unit != NULL)
            *place_of(grown, room, shard->entries[i].key) = shard->entries[i];
    hr__free(shard->entries);
    shard->entries = grown;
    shard->room = room;
    return true;
}

bool hr__cache_add(struct hr_cache *cache, const struct hr_cache_entry *entry)
{
    struct hr_cache_shard *shard = shard_of(cache, entry->key);
    struct hr_cache_entry *place;
    bool ok;

    assert(entry->unit != NULL);
    pthread_mutex_lock(&shard->lock);
    ok = 4 * (shard->count + 1) <= 3 * shard->room || grow(shard);
    if (ok) {
        place = place_of(shard->entries, shard->room, entry->key);
        if (place->unit == NULL) {
            shard->count++;
            atomic_fetch_add(&cache->entries, 1);
        }
        if (place->unit == NULL || place->gone || place->when < entry->when)
            *place = *entry;
    }
    pthread_mutex_unlock(&shard->lock);
    return ok;
}

static bool
find(struct hr_cache *cache, struct hr_hash128 key, struct hr_cache_entry *ret_entry)
{
    struct hr_cache_shard *shard = shard_of(cache, key);
    bool found = false;

    pthread_mutex_lock(&shard->lock);
    if (shard->room > 0) {
        *ret_entry = *place_of(shard->entries, shard->room, key);
        found = ret_entry->unit != NULL && !ret_entry->gone;
        if (found && cache->folder == NULL)
            hr_buffer_ref(ret_entry->unit);
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

void hr__cache_forget(struct hr_cache *cache, struct hr_hash128 key)
{
    struct hr_cache_shard *shard = shard_of(cache, key);
    struct hr_cache_entry *place;

    pthread_mutex_lock(&shard->lock);
    if (shard->room > 0) {
        place = place_of(shard->entries, shard->room, key);
        if (place->unit != NULL && !place->gone) {
            place->gone = true;
            atomic_fetch_add(&cache->damaged, 1);
        }
    }
    pthread_mutex_unlock(&shard->lock);
}

/* ---- reading ---- */

bool hr__cache_holds(struct hr_cache *cache, struct hr_hash128 key)
{
    struct hr_cache_entry entry;
    bool found = find(cache, key, &entry);

    if (found && cache->folder == NULL)
        hr_buffer_unref(entry.unit);
    return found;
}

/* Takes over the reference to a slab. */
static bool take(struct hr_cache *cache, const struct hr_cache_entry *entry,
                 struct hr_pool *pool, struct hr_cache_value *value)
{
    value->bytes = (size_t)entry->bytes;
    if (cache->folder == NULL) {
        value->owner = entry->unit;
        value->data = (char *)hr_buffer_data(value->owner) + entry->at;
        return true;
    }
    if (hr_pool_get(pool, value->bytes, &value->owner) != HR_OK)
        return false;
    value->data = hr_buffer_data(value->owner);
    if (hr__cache_folder_read(entry, value->data))
        return true;
    hr_buffer_unref(value->owner);
    hr__cache_forget(cache, entry->key);
    return false;
}

enum hr_cache_found hr__cache_get(struct hr_cache *cache, struct hr_hash128 key,
                                  struct hr_pool *pool, struct hr_cache_value *ret_value)
{
    struct hr_cache_entry entry;
    bool found = find(cache, key, &entry);

    if (!found && cache->folder != NULL) {
        hr__cache_folder_look(cache);
        found = find(cache, key, &entry);
    }
    if (found && entry.bytes == 0) {
        if (cache->folder == NULL)
            hr_buffer_unref(entry.unit);
        atomic_fetch_add_explicit(&cache->hits, 1, memory_order_relaxed);
        return HR_CACHE_MARK;
    }
    found = found && take(cache, &entry, pool, ret_value);
    atomic_fetch_add_explicit(found ? &cache->hits : &cache->misses, 1,
                              memory_order_relaxed);
    return found ? HR_CACHE_BYTES : HR_CACHE_NONE;
}

/* ---- memory ---- */

/* Whether the budget allows `bytes` more, which are then counted. */
static bool claim(struct hr_cache *cache, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add(&cache->bytes, bytes);

    if (before + bytes <= cache->bytes_max)
        return true;
    atomic_fetch_sub(&cache->bytes, bytes);
    return false;
}

/* A new slab of `bytes` bytes, counted; NULL if the budget or the memory does not allow
 * it. */
static struct hr_buffer *add_slab(struct hr_cache *cache, size_t bytes)
{
    struct hr_buffer *slab;

    if (!hr__array_room(&cache->slabs, cache->slab_count, &cache->slab_room, 1,
                        sizeof *cache->slabs) ||
        !claim(cache, bytes))
        return NULL;
    slab = hr_buffer_create(bytes);
    if (slab == NULL) {
        atomic_fetch_sub(&cache->bytes, bytes);
        return NULL;
    }
    cache->slabs[cache->slab_count++] = slab;
    return slab;
}

/* Room in a slab; the last one added is the one with room. `value` gets a reference. */
static bool
room_in_slab(struct hr_cache *cache, size_t bytes, struct hr_cache_value *value)
{
    size_t need = (bytes + HR_CACHE_ALIGN - 1) & ~(HR_CACHE_ALIGN - 1);
    bool alone = need > cache->slab_bytes / 4;
    struct hr_buffer *slab;

    if (alone) {
        slab = add_slab(cache, need);
        if (slab == NULL)
            return false;
        /* The slab with room stays the last one. */
        if (cache->slab_count > 1 && cache->slab_used > 0) {
            cache->slabs[cache->slab_count - 1] = cache->slabs[cache->slab_count - 2];
            cache->slabs[cache->slab_count - 2] = slab;
        }
        value->data = hr_buffer_data(slab);
    } else {
        if (cache->slab_used == 0 || cache->slab_used + need > cache->slab_bytes) {
            if (add_slab(cache, cache->slab_bytes) == NULL)
                return false;
            cache->slab_used = 0;
        }
        slab = cache->slabs[cache->slab_count - 1];
        value->data = (char *)hr_buffer_data(slab) + cache->slab_used;
        cache->slab_used += need;
    }
    value->owner = hr_buffer_ref(slab);
    return true;
}

static bool
room_in_memory(struct hr_cache *cache, size_t bytes, struct hr_cache_value *value)
{
    bool ok;

    pthread_mutex_lock(&cache->lock);
    ok = claim(cache, ENTRY_BYTES);
    if (ok && !room_in_slab(cache, bytes, value)) {
        atomic_fetch_sub(&cache->bytes, ENTRY_BYTES);
        ok = false;
    }
    pthread_mutex_unlock(&cache->lock);
    if (!ok)
        hr__cache_used_up(cache);
    return ok;
}

/* ---- writing ---- */

bool hr__cache_room(struct hr_cache *cache, size_t bytes, struct hr_pool *pool,
                    struct hr_cache_value *ret_value)
{
    assert(bytes > 0);
    if (atomic_load_explicit(&cache->full, memory_order_relaxed))
        return false;
    ret_value->bytes = bytes;
    if (cache->folder == NULL)
        return room_in_memory(cache, bytes, ret_value);
    if (hr_pool_get(pool, bytes, &ret_value->owner) != HR_OK)
        return false;
    ret_value->data = hr_buffer_data(ret_value->owner);
    return true;
}

void hr__cache_put(struct hr_cache *cache, struct hr_hash128 key,
                   struct hr_cache_value *value)
{
    struct hr_cache_entry entry = {
        .key = key, .unit = value->owner, .bytes = value->bytes, .when = 1};

    if (cache->folder == NULL) {
        entry.at = (uint64_t)((char *)value->data - (char *)hr_buffer_data(value->owner));
        if (!hr__cache_add(cache, &entry))
            hr__cache_fill(cache, "there is no memory for its table");
    } else {
        hr__cache_folder_put(cache, key, value->data, value->bytes);
    }
    hr_buffer_unref(value->owner);
    value->owner = NULL;
}

void hr__cache_mark(struct hr_cache *cache, struct hr_hash128 key)
{
    struct hr_cache_entry entry = {.key = key, .when = 1};
    struct hr_cache_value value;

    if (atomic_load_explicit(&cache->full, memory_order_relaxed) ||
        hr__cache_holds(cache, key))
        return;
    if (cache->folder != NULL) {
        hr__cache_folder_put(cache, key, NULL, 0);
    } else if (room_in_memory(cache, 1, &value)) { /* a mark belongs to a slab, too */
        entry.unit = value.owner;
        if (!hr__cache_add(cache, &entry))
            hr__cache_fill(cache, "there is no memory for its table");
        hr_buffer_unref(value.owner);
    }
}

/* ---- life ---- */

static struct hr_cache *create(const struct hr_cache_options *options)
{
    struct hr_cache *cache = hr__calloc(1, sizeof *cache);

    if (cache == NULL)
        return NULL;
    pthread_mutex_init(&cache->lock, NULL);
    for (size_t i = 0; i < HR_CACHE_SHARDS; i++)
        pthread_mutex_init(&cache->shards[i].lock, NULL);
    cache->bytes_max = options->bytes_max;
    cache->folder_lock = -1;
    cache->slab_bytes = SLAB_BYTES;
    while (cache->slab_bytes > 4096 && cache->slab_bytes > cache->bytes_max / 8)
        cache->slab_bytes /= 2;
    return cache;
}

enum hr_err hr__cache_open(const struct hr_cache_options *options,
                           struct hr_cache **ret_cache, struct hr_error *reterr)
{
    struct hr_cache *cache = create(options);
    enum hr_err code = HR_OK;

    if (cache == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a cache");
    if (options->folder != NULL) {
        cache->folder = hr__strdup(options->folder);
        code = cache->folder == NULL
                   ? hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a cache")
                   : hr__cache_folder_open(cache, options->of, reterr);
    }
    if (code != HR_OK) {
        hr__cache_close(cache);
        return code;
    }
    *ret_cache = cache;
    return HR_OK;
}

void hr__cache_close(struct hr_cache *cache)
{
    if (cache == NULL)
        return;
    hr__cache_folder_close(cache);
    for (size_t i = 0; i < cache->slab_count; i++)
        hr_buffer_unref(cache->slabs[i]);
    for (size_t i = 0; i < HR_CACHE_SHARDS; i++) {
        hr__free(cache->shards[i].entries);
        pthread_mutex_destroy(&cache->shards[i].lock);
    }
    pthread_mutex_destroy(&cache->lock);
    hr__free(cache->slabs);
    hr__free(cache->folder);
    hr__free(cache->own_folder);
    hr__free(cache);
}

void hr__cache_stats(struct hr_cache *cache, struct hr_cache_stats *ret_stats)
{
    *ret_stats = (struct hr_cache_stats){
        .entries = atomic_load(&cache->entries),
        .bytes = atomic_load(&cache->bytes),
        .hits = atomic_load(&cache->hits),
        .misses = atomic_load(&cache->misses),
        .damaged = atomic_load(&cache->damaged),
        .evicted = atomic_load(&cache->evicted),
        .full = atomic_load(&cache->full),
    };
    pthread_mutex_lock(&cache->lock);
    memcpy(ret_stats->reason, cache->reason, sizeof cache->reason);
    pthread_mutex_unlock(&cache->lock);
}
