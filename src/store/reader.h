/*
 * store/reader.h - ranges of objects into pooled buffers, slow ones ahead of time.
 *
 * A range that needs no waiting (a file in the page cache) is read by the thread that
 * wants it. One that does makes the reader cold; then the caller names ranges before it
 * needs them, and a channel of their store (store.h) fetches them meanwhile. After a run
 * of reads without waiting the reader is warm again.
 */
#ifndef HR_STORE_READER_H
#define HR_STORE_READER_H

#include "headrace/buffer.h"
#include "store/store.h"

struct hr_reader;

/* How files are read ahead; objects of other stores as their store does best. */
enum hr_reader_mode {
    HR_READER_AUTO,    /* io_uring where allowed, else threads */
    HR_READER_URING,   /* HR_ERR_UNSUPPORTED where not allowed */
    HR_READER_THREADS, /* a pool of threads */
    HR_READER_NONE,    /* hr__reader_ahead does nothing */
};

struct hr_reader_options {
    struct hr_pool *pool;    /* of the buffers; must outlive the reader */
    size_t ahead_bytes_max;  /* read ahead and not yet taken; 0: 64 MiB */
    int depth;               /* ranges named and not yet taken; 0: 64 */
    int threads;             /* where threads read ahead; 0: 8 */
    uint64_t file_bytes_max; /* larger ranges are HR_ERR_LIMIT; 0: 1 GiB */
    enum hr_reader_mode mode;
};

/* HR_ERR_MEMORY, HR_ERR_UNSUPPORTED (see the mode), or the error of a thread that did not
 * start. */
HR_CHECK enum hr_err
hr__reader_create(const struct hr_reader_options *options, struct hr_reader **ret_reader,
                  struct hr_error *reterr);

/* Cancels what is in flight and frees. No other call may run meanwhile. NULL is fine. */
void hr__reader_destroy(struct hr_reader *reader);

/*
 * Read a range. What an earlier hr__reader_ahead of the same range has read is used;
 * otherwise it is read here, and errors are reported here. Any thread.
 * Errors name the URI: HR_ERR_NOT_FOUND, HR_ERR_IO, HR_ERR_LIMIT (range too large, or the
 * pool has no room now), HR_ERR_TYPE (not a regular file), HR_ERR_FORMAT (changed while
 * it was read), HR_ERR_RANGE and HR_ERR_STATE (hr__range_open), HR_ERR_MEMORY. An empty
 * range gives an empty buffer.
 */
HR_CHECK enum hr_err
hr__reader_take(struct hr_reader *reader, const struct hr_range *range,
                struct hr_buffer **ret_buffer, struct hr_error *reterr);

/* `bytes` bytes of an object that the caller has open, by this thread. The errors of
 * hr__store_read, and HR_ERR_LIMIT as above. */
HR_CHECK enum hr_err
hr__reader_read(struct hr_reader *reader, struct hr_object *object, uint64_t offset,
                size_t bytes, struct hr_buffer **ret_buffer, struct hr_error *reterr);

/* The bytes of a range to `to`, as hr__reader_take(): those that were read ahead, or read
 * by this thread from `object`, which is the range's, open and unchanged. */
HR_CHECK enum hr_err
hr__reader_fill(struct hr_reader *reader, const struct hr_range *range,
                struct hr_object *object, void *to, struct hr_error *reterr);

/* Zero bytes that may be read (not written) after the end of a taken buffer. */
#define HR_READER_SLACK_BYTES 64

/* Whether it is worth naming ranges ahead: one relaxed load. */
bool hr__reader_is_cold(const struct hr_reader *reader);

/* Names a range that will be taken: it is read once the budget has room for it, in the
 * order of naming. A range that cannot be read ahead is ignored. Returns false if `depth`
 * ranges are named and not yet taken: name it again later. Any thread; does not wait. */
bool hr__reader_ahead(struct hr_reader *reader, const struct hr_range *range);

struct hr_reader_stats {
    enum hr_reader_mode mode; /* in use; AUTO before the first range is read ahead */
    uint64_t files, bytes;    /* taken */
    uint64_t cached;          /* read in place without waiting */
    uint64_t waited;          /* read in place, and had to wait */
    uint64_t ahead_started, ahead_dropped;
    uint64_t ahead_ready, ahead_late;  /* taken: was complete; had to be waited for */
    uint64_t ahead_unused;             /* failed, or not begun when taken */
    uint64_t ahead_bytes, ahead_files; /* held now: in flight or complete */
};
void hr__reader_stats(struct hr_reader *reader, struct hr_reader_stats *ret_stats);

#endif
