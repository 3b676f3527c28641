/*
 * store/cache_internal.h - shared by cache.c (the table, memory), cache_disk.c (files)
 * and cache_evict.c (other caches in the folder).
 */
#ifndef HR_STORE_CACHE_INTERNAL_H
#define HR_STORE_CACHE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "core/str.h"
#include "store/cache.h"

#define HR_CACHE_ALIGN ((uint64_t)64)

/* One process's files: values, and an entry for each. */
struct hr_cache_segment {
    char name[48];
    int values, index; /* descriptors */
    uint64_t read;     /* bytes of the index that are in the table */
    bool own;
    atomic_ullong end; /* own: where the next value goes */
    struct hr_cache_segment *next;
};

struct hr_cache_entry {
    struct hr_hash128 key;
    void *unit; /* NULL: free; struct hr_buffer or struct hr_cache_segment */
    uint64_t at, bytes;
    uint64_t when; /* in a folder: the latest entry of a key counts */
    uint32_t crc;
    bool gone;
};

#define HR_CACHE_SHARDS 64
struct hr_cache_shard {
    pthread_mutex_t lock;
    struct hr_cache_entry *entries;
    size_t count, room; /* room: a power of two */
};

struct hr_cache {
    uint64_t bytes_max;
    char *folder, *own_folder; /* NULL in memory */
    int folder_lock;           /* held in own_folder while it is in use; -1: none */
    struct hr_cache_shard shards[HR_CACHE_SHARDS];

    pthread_mutex_t lock; /* of what follows up to `reason` */
    struct hr_buffer **slabs;
    size_t slab_count, slab_room, slab_bytes, slab_used;
    struct hr_cache_segment *segments, *own;
    pid_t own_pid;      /* that made `own` */
    uint64_t others;    /* bytes of other caches in the folder */
    uint64_t looked_at; /* 1 + `bytes` when they, or the disk, were last looked at */
    bool disk_full;
    char reason[192];

    atomic_bool full;
    atomic_ullong looked_ns; /* when the folder was last read */
    atomic_ullong bytes, entries, hits, misses, damaged, evicted;
};

/* Adds or replaces an entry; an older one is left. False without memory. */
HR_CHECK bool hr__cache_add(struct hr_cache *cache, const struct hr_cache_entry *entry);
/* No more is added; the first reason stays. */
void hr__cache_fill(struct hr_cache *cache, const char *format, ...) HR_PRINTF(2, 3);
/* That, because of the budget. */
void hr__cache_used_up(struct hr_cache *cache);

/* cache_disk.c */
HR_CHECK enum hr_err hr__cache_folder_open(struct hr_cache *cache, struct hr_hash128 of,
                                           struct hr_error *reterr);
void hr__cache_folder_close(struct hr_cache *cache);
/* Takes in what other processes have added, if it was not looked at recently. */
void hr__cache_folder_look(struct hr_cache *cache);
/* Reads a value; false if it is not what was written. */
HR_CHECK bool hr__cache_folder_read(const struct hr_cache_entry *entry, void *to);
/* Writes a value and then its entry. `data` may be NULL for a mark. */
void hr__cache_folder_put(struct hr_cache *cache, struct hr_hash128 key, const void *data,
                          size_t bytes);

/* cache_evict.c: the name of a cache's folder in `folder`. */
#define HR_CACHE_NAME_BYTES 40
void hr__cache_name(struct hr_hash128 of, char ret_name[HR_CACHE_NAME_BYTES]);
/* Locks a cache's folder against removal and notes that it is used now; makes it. */
HR_CHECK enum hr_err
hr__cache_keep(const char *own_folder, int *ret_lock, struct hr_error *reterr);
/* Bytes of the other caches in `folder`. */
uint64_t hr__cache_others(const char *folder, const char *own_folder);
/* Removes the one that was not used for the longest time, of those that no process has
 * open. Returns its bytes; 0: there is none. */
uint64_t hr__cache_evict(const char *folder, const char *own_folder);

#endif
