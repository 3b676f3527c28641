/*
 * store/reader_internal.h - what the files reader*.c share; nobody else includes it.
 */
#ifndef HR_STORE_READER_INTERNAL_H
#define HR_STORE_READER_INTERNAL_H

#include "store/reader.h"
#include <pthread.h>
#include <stdatomic.h>

#define HR_READER_STRIPES 16

enum hr_request_state {
    HR_REQUEST_FREE,
    HR_REQUEST_QUEUED,  /* nobody works on it yet */
    HR_REQUEST_RUNNING, /* a backend owns all but state, key and links */
    HR_REQUEST_READY,   /* buffer is whole */
};

struct hr_request {
    uint64_t key; /* hash of the range */
    enum hr_request_state state;
    bool unwanted;           /* RUNNING, and nobody will take it */
    struct hr_request *next; /* in its bucket; in the free list */
    struct hr_request *queue_next;
    struct hr_buffer *buffer;
    size_t held_bytes; /* counted in ahead_bytes */
    int fd;            /* io_uring: open while RUNNING, else -1 */
    size_t done_bytes; /* io_uring */
    bool waited;
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
    enum hr_reader_mode mode;

    atomic_int cold_left; /* cached files until the reader counts as warm; > 0: cold */
    atomic_uint live;     /* requests not free */
    struct hr_reader_stripe stripes[HR_READER_STRIPES];

    pthread_mutex_t lock;
    pthread_cond_t work, done; /* something was queued, or stop; something ended */
    /* under lock */
    struct hr_request *requests, *free, **buckets;
    uint32_t bucket_mask;
    struct hr_request *queue_first, *queue_last;
    uint32_t waiters;
    atomic_bool stop; /* written under lock, read anywhere */
    size_t ahead_bytes;
    uint64_t started, dropped, ready, late, unused;

    pthread_t *threads; /* thread_count of them run */
    struct hr_reader_ring *ring;
};

/* A file being read: what open and fstat tell. */
enum hr_err hr__reader_open_file(const char *path, int *ret_fd, struct hr_error *reterr);
enum hr_err
hr__reader_check_file(const struct hr_reader *reader, int fd, const char *path,
                      size_t *ret_bytes, struct hr_error *reterr);
enum hr_err hr__reader_open_failed(int errnum, const char *path, struct hr_error *reterr);
/* Read from what is cached: up to `bytes` from `at`; returns the bytes got, 0 when the
 * disk would have to be waited for (or at the end), -1 when the kernel cannot tell. */
int64_t hr__reader_read_cached(int fd, char *data, size_t bytes, size_t at);
/* A buffer that shows `bytes` bytes and has the slack behind them. */
enum hr_err hr__reader_get_buffer(const struct hr_reader *reader, size_t bytes,
                                  struct hr_buffer **ret_buffer);
/* All of `path` with blocking reads, given up when *stop (or NULL). */
enum hr_err hr__reader_read_file(const struct hr_reader *reader, const char *path,
                                 const atomic_bool *stop, struct hr_buffer **ret_buffer,
                                 bool *ret_waited, struct hr_error *reterr);

/* For backends, lock held. */
struct hr_request *
hr__reader_next_queued(struct hr_reader *reader); /* RUNNING, or NULL */
/* Count `bytes` against the budget; false: over it, or the request is unwanted. */
bool hr__reader_reserve(struct hr_reader *reader, struct hr_request *request,
                        size_t bytes);
/* The request ended; `buffer` (now the request's) or NULL when it failed. */
void hr__reader_complete(struct hr_reader *reader, struct hr_request *request,
                         struct hr_buffer *buffer, bool waited);
/* Any thread, no lock needed. */
void hr__reader_note(struct hr_reader *reader, bool waited);

/* Backends. start leaves nothing behind on failure; stop joins. kick: lock held. */
enum hr_err hr__reader_threads_start(struct hr_reader *reader, struct hr_error *reterr);
void hr__reader_threads_stop(struct hr_reader *reader);
enum hr_err hr__reader_ring_start(struct hr_reader *reader, struct hr_error *reterr);
void hr__reader_ring_kick(struct hr_reader *reader);
void hr__reader_ring_stop(struct hr_reader *reader);

#endif
