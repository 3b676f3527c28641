/*
 * store/seek.h - what was learnt about files by reading them, kept by their contents.
 *
 * Small byte strings (for photos: where decoding can begin, codec/jpeg_index.h) under a
 * hash of the file's bytes: a file that changes has another key, whatever its name and
 * times say. They are held in memory up to a bound, and in a section of a saved index
 * (docs/formats/source-index.md), from which a later run maps them. Every entry has a
 * checksum that is looked at whenever it is used; a damaged one is not there.
 *
 * It only ever makes things faster: nothing here fails but for lack of memory at the
 * beginning, and what does not fit or cannot be written is not kept. When memory is half
 * full it is saved, if there is a place; when it is full nothing more is taken in. That
 * is better than dropping the oldest, which in an epoch over more photos than fit would
 * be dropped just before it is needed again.
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

/* Thread-safe count of references. The last unref saves and frees; NULL is fine. */
struct hr_seek *hr__seek_ref(struct hr_seek *seek);
void hr__seek_unref(struct hr_seek *seek);

/* Copy the entry into the arena. False: there is none. Thread-safe; never waits: while
 * another thread is at the same part of the store there is none.
 */
HR_CHECK bool
hr__seek_find(struct hr_seek *seek, struct hr_hash128 key, struct hr_arena *arena,
              const uint8_t **ret_data, size_t *ret_bytes);

/* Keep a copy, in place of what was there; false: it was not taken in. `done` is how much
 * of the file it covers, in 1/HR_SEEK_WHOLE; between two runs that save, the entry that
 * covers more stays. Thread-safe, never waits. */
#define HR_SEEK_WHOLE 65535
bool hr__seek_put(struct hr_seek *seek, struct hr_hash128 key, const void *data,
                  size_t bytes, uint32_t done);

/* Write what is new to the saved index, beside what other runs have put there meanwhile,
 * and give its memory back: from here on it is mapped. Takes as long as the file is
 * large. That it failed is told by the stats. */
void hr__seek_save(struct hr_seek *seek);

/* The same when it is worth it: what is new covers a sixteenth of what is saved at least.
 * The rest waits for the last unref. Ends a save that hr__seek_pause began, before all.
 */
void hr__seek_rest(struct hr_seek *seek);

/* The same in a thread of its own, for when the run goes on: after an epoch, or when
 * memory fills. No more often than that saving takes a fiftieth of the time. Meanwhile
 * entries are found, and none is taken in. Thread-safe, never waits. */
void hr__seek_pause(struct hr_seek *seek);

/* A window of a file that has an entry went through so much of it (in 1/HR_SEEK_WHOLE),
 * and would have gone through so much without. Sums are saved with the entries. */
void hr__seek_count(struct hr_seek *seek, uint32_t went, uint32_t would);

struct hr_seek_stats {
    uint64_t entries, bytes;   /* in memory and mapped, without overhead */
    uint64_t mapped_entries;   /* of them in the saved index */
    uint64_t memory_bytes;     /* of those that are not, with overhead */
    double done;               /* mean share that they cover, 0 to 1 */
    uint64_t hits, misses;     /* finds since create */
    uint64_t refused;          /* puts that did not fit */
    double went, would;        /* means of hr__seek_count, 0 to 1; 0 when none came */
    bool damaged, save_failed; /* the section was dropped; the last save */
};
void hr__seek_stats(struct hr_seek *seek, struct hr_seek_stats *ret_stats);

#endif
