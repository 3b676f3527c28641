/*
 * ops/chunk_cache.c - see chunk_cache.h. A search looks at all entries: there are few,
 * and unpacking a chunk takes a thousand times as long.
 */
#include "ops/chunk_cache.h"

#include <pthread.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/lru.h"

#define ENTRIES 256

struct entry {
    struct hr_lru_link link; /* if `buffer` is set */
    const void *owner;       /* or NULL: free */
    uint64_t number;
    struct hr_buffer *buffer; /* NULL: a thread makes it */
};

struct hr_chunk_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry entries[ENTRIES];
    struct hr_lru made; /* entries that have a chunk */
    uint64_t bytes, bytes_max;
};

enum hr_err hr__chunk_cache_create(uint64_t bytes_max, struct hr_chunk_cache **ret_cache,
                                   struct hr_error *reterr)
{
    struct hr_chunk_cache *cache = hr__calloc(1, sizeof *cache);

    if (cache == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    cache->bytes_max = bytes_max;
    *ret_cache = cache;
    return HR_OK;
}

void hr__chunk_cache_destroy(struct hr_chunk_cache *cache)
{
    if (cache == NULL)
        return;
    for (int i = 0; i < ENTRIES; i++)
        hr_buffer_unref(cache->entries[i].buffer);
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->changed);
    hr__free(cache);
}

/* ---- lock held ---- */

static struct entry *
find(struct hr_chunk_cache *cache, const void *owner, uint64_t number)
{
    for (int i = 0; i < ENTRIES; i++)
        if (cache->entries[i].owner == owner && cache->entries[i].number == number)
            return &cache->entries[i];
    return NULL;
}

static void drop(struct hr_chunk_cache *cache, struct entry *entry)
{
    hr__lru_remove(&cache->made, &entry->link);
    cache->bytes -= hr_buffer_bytes(entry->buffer);
    hr_buffer_unref(entry->buffer);
    *entry = (struct entry){0};
}

static void trim(struct hr_chunk_cache *cache)
{
    while (cache->bytes > cache->bytes_max && cache->made.oldest != NULL)
        drop(cache, (void *)cache->made.oldest);
}

/* A free entry, for this chunk; NULL: as many threads as entries make one. */
static struct entry *
claim(struct hr_chunk_cache *cache, const void *owner, uint64_t number)
{
    struct entry *entry = find(cache, NULL, 0);

    if (entry == NULL) {
        entry = (void *)cache->made.oldest;
        if (entry == NULL)
            return NULL;
        drop(cache, entry);
    }
    *entry = (struct entry){.owner = owner, .number = number};
    return entry;
}

/* The entry's chunk was made, or not (NULL). */
static void
settle(struct hr_chunk_cache *cache, struct entry *entry, struct hr_buffer *buffer)
{
    if (buffer == NULL) {
        *entry = (struct entry){0};
    } else {
        entry->buffer = hr_buffer_ref(buffer);
        hr__lru_add(&cache->made, &entry->link);
        cache->bytes += hr_buffer_bytes(buffer);
    }
    trim(cache);
    pthread_cond_broadcast(&cache->changed);
}

void hr__chunk_cache_limit(struct hr_chunk_cache *cache, uint64_t bytes_max)
{
    pthread_mutex_lock(&cache->lock);
    cache->bytes_max = bytes_max;
    trim(cache);
    pthread_mutex_unlock(&cache->lock);
}

enum hr_err
hr__chunk_cache_get(struct hr_chunk_cache *cache, const void *owner, uint64_t number,
                    hr_chunk_make_fn *make, void *user, struct hr_buffer **ret_buffer)
{
    struct hr_buffer *buffer = NULL;
    struct entry *entry;
    enum hr_err code;

    pthread_mutex_lock(&cache->lock);
    while ((entry = find(cache, owner, number)) != NULL && entry->buffer == NULL)
        pthread_cond_wait(&cache->changed, &cache->lock);
    if (entry != NULL) {
        hr__lru_use(&cache->made, &entry->link);
        *ret_buffer = hr_buffer_ref(entry->buffer);
        pthread_mutex_unlock(&cache->lock);
        return HR_OK;
    }
    entry = claim(cache, owner, number);
    pthread_mutex_unlock(&cache->lock);
    code = make(user, &buffer);
    pthread_mutex_lock(&cache->lock);
    if (entry != NULL)
        settle(cache, entry, code == HR_OK ? buffer : NULL);
    pthread_mutex_unlock(&cache->lock);
    if (code == HR_OK)
        *ret_buffer = buffer;
    return code;
}

bool hr__chunk_cache_has(struct hr_chunk_cache *cache, const void *owner, uint64_t number)
{
    bool found;

    pthread_mutex_lock(&cache->lock);
    found = find(cache, owner, number) != NULL;
    pthread_mutex_unlock(&cache->lock);
    return found;
}
