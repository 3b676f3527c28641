/*
 * store/packed_internal.h - shared by packed.c and packed_saved.c: what is known about a
 * compressed file that was opened.
 */
#ifndef HR_STORE_PACKED_INTERNAL_H
#define HR_STORE_PACKED_INTERNAL_H

#include <pthread.h>

#include "core/lru.h"
#include "store/packed.h"

#define HR_PACKED_BLOCK_BYTES                                                            \
    ((size_t)1 << 20) /* where a stream or a mark can be a cut */
#define HR_PACKED_BLOCK_ROOM                                                             \
    (HR_PACKED_BLOCK_BYTES +                                                             \
     (HR_PACKED_BLOCK_BYTES >> 2)) /* where a cut is made anyway */

enum hr_packed_cut_kind { HR_PACKED_PLAIN, HR_PACKED_STREAM, HR_PACKED_MARK };

struct hr_packed_cut {
    uint64_t out, in;
    enum hr_packed_cut_kind kind;
    unsigned char bits, value;
    uint16_t window_bytes; /* HR_UNPACK_WINDOW fits */
    unsigned char *window;
};

/* A stream whose bytes cannot be trusted. */
struct hr_packed_damage {
    uint64_t begin, end; /* unpacked: FILL. The next stream begins at `end` */
    uint64_t in;         /* where it was found, in the file */
    uint64_t next;       /* where the next stream begins in the file */
    char why[96];
};

struct hr_packed_block {
    struct hr_lru_link link; /* if ready */
    struct hr_packed *packed;
    size_t cut;
    unsigned users;
    bool ready;
    size_t bytes;
    unsigned char *data; /* HR_PACKED_BLOCK_ROOM */
};

struct hr_packed {
    struct hr_packed_cache *cache;
    const char *uri;
    enum hr_packing packing;
    uint64_t file_bytes;
    const struct hr_object *file; /* of hr__packed_watch, or NULL */
    struct hr_object strict, scanned;
    struct hr_packed_cut *cuts; /* the last one is the end */
    struct hr_packed_block **blocks;
    size_t cut_count, cut_room, block_room;
    struct hr_packed_damage *damages;
    size_t damage_count, damage_room;
    struct hr_packed *next; /* of the cache's files */
};

struct hr_packed_cache {
    struct hr_packed_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under lock */
    struct hr_lru blocks; /* the ready ones */
    size_t block_count, blocks_max;
    struct hr_packed_decoder *decoders; /* the last one used first */
    /* while files are opened */
    struct hr_packed *files;
    uint64_t span; /* bytes between marks, at least */
    size_t mark_count;
};

/* Drops marks that are closer than the span, when there are too many. */
void hr__packed_thin(struct hr_packed_cache *cache);
/* The objects of a file whose cuts are known; strict.identity is set. */
void hr__packed_set_objects(struct hr_packed *packed, uint64_t bytes);

#endif
