/*
 * store/store_internal.h - what store.c, the stores and their channels share.
 */
#ifndef HR_STORE_STORE_INTERNAL_H
#define HR_STORE_STORE_INTERNAL_H

#include "store/store.h"
#include <pthread.h>

extern const struct hr_store hr_store_file, hr_store_memory, hr_store_http,
    hr_store_https, hr_store_s3, hr_store_gluster;
/* Whether libcurl can be used: hr_store.check. */
enum hr_err hr__store_check_http(struct hr_error *reterr);
/* The open of stores that need libcurl, where the build has none. */
enum hr_err hr__store_without_http(const char *name, struct hr_object *object,
                                   struct hr_error *reterr);

/* Set the part of the error that names the object. */
void hr__store_note(struct hr_error *error, const char *uri);
/* HR_ERR_FORMAT: the object ends at byte `at`, before its size. */
enum hr_err hr__store_ended_early(const struct hr_object *object, uint64_t at,
                                  struct hr_error *reterr);
/* Check a range against its object, which is open. */
enum hr_err hr__range_check(const struct hr_range *range, const struct hr_object *object,
                            size_t *ret_bytes, struct hr_error *reterr);

/* Check the range of a read, whose object is open, and ask for memory. */
enum hr_err hr__store_begin(struct hr_store_read *read);

/* Whether something with this time can change again without getting another one (clocks
 * of file systems tick every two seconds at worst). */
bool hr__store_is_young(int64_t mtime_ns);

/* ---- files ---- */

/* Fills in the object of an open descriptor; HR_ERR_TYPE unless it is a regular file. */
enum hr_err hr__store_file_look(struct hr_object *object, struct hr_error *reterr);
enum hr_err
hr__store_file_open_failed(int errnum, const char *uri, struct hr_error *reterr);
/* hr__store_stamp of the file `path`. */
uint64_t hr__store_file_stamp(const char *path, uint64_t since);
#define HR_STORE_FILE_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* ---- channels ---- */

/* How the reads of a channel are done. */
struct hr_channel_kind {
    enum hr_channel_mode mode;
    void (*kick)(struct hr_channel *channel); /* something was queued, or stop; locked */
    void (*stop)(struct hr_channel *channel); /* joins and frees `own` */
};

struct hr_channel {
    const struct hr_store *store;
    const struct hr_channel_kind *kind;
    void *own; /* the kind's */
    uint32_t depth, thread_count;
    atomic_bool stop; /* written under lock, read anywhere */
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct hr_store_read *first, *last; /* queued; under lock */
};

/* The next queued read, or NULL; lock held. */
struct hr_store_read *hr__channel_next(struct hr_channel *channel);

/* Threads that block, for any store. */
enum hr_err
hr__channel_start_threads(struct hr_channel *channel, struct hr_error *reterr);
/* io_uring, for files. */
enum hr_err hr__channel_start_uring(struct hr_channel *channel, struct hr_error *reterr);

#endif
