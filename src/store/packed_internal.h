/*
 * store/packed_internal.h - private interface of packed*.c: what is known about a
 * compressed file that was opened, and its decoders.
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
    uint64_t begin, end; /* unpacked: HR_PACKED_FILL. The next stream begins at `end` */
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

/* What cannot be decoded reads as this: no format takes it for data or its end. */
#define HR_PACKED_FILL 255

struct hr_packed_decoder {
    struct hr_packed *packed;
    struct hr_unpack *unpack;
    enum hr_packing packing;
    struct hr_object object; /* if is_open */
    bool is_open, busy;
    bool between; /* a stream begins next */
    size_t cut;   /* of the block that is made next */
    uint64_t in, out;
    size_t damage; /* the next one */
    unsigned char *input;
    size_t room, used, have;        /* of the input */
    struct hr_packed_decoder *next; /* older */
};

/* ---- packed_decoder.c ---- */

/* A decoder of the file, at no place yet. */
HR_CHECK enum hr_err hr__packed_decoder_create(struct hr_packed *packed,
                                               struct hr_packed_decoder **ret_decoder,
                                               struct hr_error *reterr);
void hr__packed_decoder_destroy(struct hr_packed_decoder *decoder); /* NULL is fine */
/* Says where the decoder is in the file: a stream begins there. */
void hr__packed_decoder_seek(struct hr_packed_decoder *decoder, uint64_t in,
                             uint64_t out);
/* Goes to a cut that is resumable. */
HR_CHECK enum hr_err hr__packed_decoder_go(struct hr_packed_decoder *decoder, size_t at,
                                           struct hr_error *reterr);
/* Decodes up to `bytes` bytes to `to`, to an event or the end of the file. */
HR_CHECK enum hr_err
hr__packed_decoder_run(struct hr_packed_decoder *decoder, bool marks, unsigned char *to,
                       size_t bytes, size_t *ret_bytes, enum hr_unpack_event *ret_event,
                       bool *ret_end, struct hr_error *reterr);

/* ---- packed.c: blocks; the lock is held, or the file is being opened ---- */

/* A block that nobody needs, or a new one; NULL. Neither is in the table of a file. */
struct hr_packed_block *hr__packed_block_take(struct hr_packed_cache *cache);
void hr__packed_block_free(struct hr_packed_cache *cache, struct hr_packed_block *block);
/* Enters a block that is about to be decoded; NULL. */
struct hr_packed_block *hr__packed_block_claim(struct hr_packed *packed, size_t cut);
/* It was decoded, or not. */
void hr__packed_block_settle(struct hr_packed_block *block, bool ready, size_t bytes);

/* The last cut up to `cut` where decoding can begin. */
size_t hr__packed_resumable(const struct hr_packed *packed, size_t cut);
/* Removes the last cut, and its block. */
void hr__packed_cut_drop(struct hr_packed *packed);
/* Drops marks that are closer than the span, when there are too many. */
void hr__packed_thin(struct hr_packed_cache *cache);
/* The objects of a file whose cuts are known; strict.identity is set. */
void hr__packed_set_objects(struct hr_packed *packed, uint64_t bytes);

#endif
