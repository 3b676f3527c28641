/*
 * store/seek.h - what was learnt about files by reading them, keyed by their contents.
 *
 * Small byte strings (for photos: where decoding can begin, codec/jpeg_index.h) under a
 * hash of the file's bytes: a file that changes has another key, whatever its name and
 * time. They are kept in memory up to a limit, and in a section of a saved index
 * (docs/formats/source-index.md), which later runs map. Every entry has a checksum that
 * is checked on each use; a damaged entry is ignored.
 *
 * The store only saves time: nothing fails except creating it without memory, and entries
 * that do not fit or cannot be written are dropped. When memory is half full it is saved,
 * if there is a file; when it is full, new entries are refused. Dropping the oldest would
 * be worse: in an epoch over more photos than fit, each entry would be dropped just
 * before it is needed again.
 */
#ifndef HR_STORE_SEEK_H
#define HR_STORE_SEEK_H

#include "core/arena.h"
#include "core/hash.h"
#include "headrace/base.h"

struct hr_seek;

/* `path` (NULL: memory only) is a saved index, or will be one. HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__seek_create(const char *path, uint64_t bytes_max,
                                     struct hr_seek **ret_seek, struct hr_error *reterr);

/* Thread-safe reference count. The last unref saves and frees; NULL is fine. */
struct hr_seek *hr__seek_ref(struct hr_seek *seek);
void hr__seek_unref(struct hr_seek *seek);

/* Copies the entry into the arena. Returns false if there is none, or if another thread
 * holds the lock of its shard. Thread-safe, never waits. */
HR_CHECK bool
hr__seek_find(struct hr_seek *seek, struct hr_hash128 key, struct hr_arena *arena,
              const uint8_t **ret_data, size_t *ret_bytes);

/* Keeps a copy, replacing an older entry; returns false if it was refused. `done` is how
 * much of the file it covers, in 1/HR_SEEK_WHOLE; when two runs save the same key, the
 * entry that covers more is kept. Thread-safe, never waits. */
#define HR_SEEK_WHOLE 65535
bool hr__seek_put(struct hr_seek *seek, struct hr_hash128 key, const void *data,
                  size_t bytes, uint32_t done);

/* Writes new entries to the saved index, merged with those that other runs have written
 * meanwhile, and frees their memory: they are mapped from then on. Rewrites the whole
 * file. Failures appear only in the stats. */
void hr__seek_save(struct hr_seek *seek);

/* Waits for a save that hr__seek_pause began, then saves if it is worth it: if the new
 * entries cover at least a sixteenth of what is saved. Otherwise the last unref saves. */
void hr__seek_rest(struct hr_seek *seek);

/* The same in a thread of its own, while the run continues: after an epoch, or when
 * memory fills. Saves seldom enough to spend at most a fiftieth of the time on it.
 * Meanwhile entries are found, and new ones refused. Thread-safe, never waits. */
void hr__seek_pause(struct hr_seek *seek);

/* Counts one window of a file with an entry: how much of the file it went through, and
 * would have without the entry, in 1/HR_SEEK_WHOLE. Sums are saved with the entries. */
void hr__seek_count(struct hr_seek *seek, uint32_t went, uint32_t would);

struct hr_seek_stats {
    uint64_t entries, bytes;   /* in memory and mapped, without overhead */
    uint64_t mapped_entries;   /* those in the saved index */
    uint64_t memory_bytes;     /* of those in memory, with overhead */
    double done;               /* mean part of a file that an entry covers, 0 to 1 */
    uint64_t hits, misses;     /* finds since create */
    uint64_t refused;          /* puts that did not fit */
    double went, would;        /* means of hr__seek_count, 0 to 1; 0 without any */
    bool damaged, save_failed; /* the section was ignored; of the last save */
};
void hr__seek_stats(struct hr_seek *seek, struct hr_seek_stats *ret_stats);

#endif
