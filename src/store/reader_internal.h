/*
 * store/reader_internal.h - shared by reader.c, which takes ranges, and reader_ahead.c,
 * which reads them ahead.
 */
#ifndef HR_STORE_READER_INTERNAL_H
#define HR_STORE_READER_INTERNAL_H

#include "store/reader.h"
#include "store/store_internal.h"

#define HR_READER_STRIPES 16
#define HR_READER_CHANNELS_MAX 8 /* stores in use at a time */

enum hr_request_state {
    HR_REQUEST_FREE,
    HR_REQUEST_QUEUED,    /* waits for room in the budget */
    HR_REQUEST_IN_FLIGHT, /* the channel owns all but links */
    HR_REQUEST_READY,     /* buffer is whole */
};

struct hr_request {
    struct hr_store_read read; /* first: the channel gives it back */
    struct hr_reader *reader;
    struct hr_channel *channel;
    uint64_t key, serial; /* hash of the range; when it was named */
    enum hr_request_state state;
    struct hr_request *next;   /* in its bucket; in the free list */
    struct hr_request *behind; /* QUEUED: the next in the queue */
    struct hr_buffer *buffer;
    /* What it will hold, or HR_BYTES_UNKNOWN; the part of it that is counted in
     * reserved_bytes; what it holds, counted in ahead_bytes. */
    uint64_t known_bytes;
    size_t reserved_bytes, held_bytes;
    bool refused; /* there was no room: it is queued again */
    struct hr_range range;
};

/* Counters of the threads that share a stripe. */
struct hr_reader_stripe {
    _Alignas(64) atomic_uint_fast64_t files, bytes, cached, waited;
};

struct hr_reader {
    struct hr_pool *pool;
    uint64_t file_bytes_max;
    size_t ahead_bytes_max;
    uint32_t depth, thread_count;
    enum hr_reader_mode mode; /* as asked */

    atomic_int cold_left; /* reads until the reader counts as warm; > 0: cold */
    atomic_uint live;     /* requests not free */
    struct hr_reader_stripe stripes[HR_READER_STRIPES];

    pthread_mutex_t lock;
    pthread_cond_t done; /* a request ended */
    /* under lock */
    struct hr_channel *channels[HR_READER_CHANNELS_MAX]; /* the first reads files */
    uint32_t channel_count;
    struct hr_request *requests, *free, **buckets;
    struct hr_request *queue, **queue_end;
    uint32_t bucket_mask;
    uint32_t waiters;
    bool closing;
    size_t ahead_bytes, reserved_bytes;
    uint64_t mean_bytes, spread_bytes; /* of ranges of unknown size; mean 0: none yet */
    uint64_t named, started, dropped, ready, late, unused;
};

/* A read ended, and had to wait or not. */
void hr__reader_note(struct hr_reader *reader, bool waited);
/* A buffer of the pool, with the slack after it zeroed. */
enum hr_err hr__reader_buffer(const struct hr_reader *reader, size_t bytes,
                              struct hr_buffer **ret_buffer);

/* HR_ERR_MEMORY */
enum hr_err hr__reader_make_table(struct hr_reader *reader);
/* Cancels the requests and frees the table. */
void hr__reader_free_table(struct hr_reader *reader);
/* The buffer of the range that was read ahead, or NULL when there is none. */
struct hr_buffer *
hr__reader_take_ahead(struct hr_reader *reader, const struct hr_range *range);
/* Frees what is complete and not yet taken: the pool has no room for a range that is
 * wanted now. False if there was nothing. */
bool hr__reader_drop_ready(struct hr_reader *reader);

#endif
