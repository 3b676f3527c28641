/*
 * store/store.h - objects by URI: open, size, identity, ranges of bytes, lists.
 *
 * A store holds objects: a file system, memory, a bucket. A source names what it reads by
 * a URI, "scheme://name"; a plain path is a file. One table (store.c) leads from schemes
 * to stores, and nothing else knows which stores there are. The bytes of a name mean
 * themselves: nothing is percent-encoded.
 *
 * A new store is one file with one const struct hr_store (store_memory.c is the example),
 * a line in the table of store.c, and a line in tests/conformance/store_test.c, which
 * checks all that is promised here. Errors of all functions name the URI.
 */
#ifndef HR_STORE_STORE_H
#define HR_STORE_STORE_H

#include "core/hash.h"
#include "headrace/base.h"
#include <stdatomic.h>

#define HR_URI_MAX 4096 /* bytes, with the NUL */

/* ---- objects ---- */

struct hr_store;

/* An open object. The memory is the caller's; opening a file allocates nothing. */
struct hr_object {
    const struct hr_store *store;
    const char *uri; /* the caller's; it must outlive the object */
    uint64_t bytes;
    /* Differs when contents differ, as far as the store can tell without reading them (a
     * file: its size, inode and time). For comparing with earlier opens on this machine;
     * it is no part of a fingerprint. */
    struct hr_hash128 identity;
    /* The identity tells later processes, too, whether the object has changed. Not so of
     * memory, of a file that changed so recently that another change might have the same
     * time, and of a server that gives nothing but times. */
    bool lasting;
    union {
        int fd;
        void *own;
    } as; /* the store's */
};

/* HR_ERR_NOT_FOUND; HR_ERR_TYPE for folders, pipes and devices; HR_ERR_ARGUMENT for an
 * unknown scheme; HR_ERR_IO; HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__store_open(const char *uri, struct hr_object *ret_object, struct hr_error *reterr);
void hr__store_close(struct hr_object *object);
/* Whether an open object is unchanged since then, as far as the store can tell. */
bool hr__store_is_same(const struct hr_object *object);

/* A number that differs when the contents of a local file differ, as far as its size, its
 * time of last modification and its inode tell; nothing is opened. 0 for objects of other
 * stores. HR_STAMP_UNKNOWN if the file cannot be looked at, or if anything about it has
 * changed after `since` (hr__wall_ns): what was read of it may be older. */
#define HR_STAMP_UNKNOWN UINT64_MAX
uint64_t hr__store_stamp(const char *uri, uint64_t since);

/*
 * Exactly `bytes` bytes from `offset` to `data`. A read that fails midway is resumed from
 * where it was, a few times. Stops with HR_ERR_CANCELLED soon after *stop (or NULL)
 * becomes true. HR_ERR_RANGE when the range is not inside the object; HR_ERR_IO names the
 * byte; HR_ERR_FORMAT when the object changed while it was read. *ret_waited: not all of
 * it came from memory. Several threads may read one object.
 */
HR_CHECK enum hr_err
hr__store_read(struct hr_object *object, uint64_t offset, void *data, size_t bytes,
               const atomic_bool *stop, bool *ret_waited, struct hr_error *reterr);

/* All of an object in fresh memory, hr__free it; HR_ERR_LIMIT when it is larger. */
HR_CHECK enum hr_err hr__store_load(const char *uri, size_t bytes_max, char **ret_data,
                                    size_t *ret_bytes, struct hr_error *reterr);

/* All of an object where it lies if the store can show it (files are mapped, and must not
 * be cut shorter meanwhile), else loaded. data is NULL when it is empty. */
struct hr_store_map {
    const void *data;
    size_t bytes;
    void *own;                    /* the store's */
    const struct hr_store *store; /* or NULL: loaded */
};
HR_CHECK enum hr_err
hr__store_map(const char *uri, struct hr_store_map *ret_map, struct hr_error *reterr);
void hr__store_unmap(struct hr_store_map *map); /* of {0} is fine */

/* Calls `visit` for each object below the folder `uri`, at any depth, in the order of the
 * bytes of its name relative to `uri`; visit returns false to stop, and list then returns
 * HR_OK. `bytes` is HR_BYTES_UNKNOWN where the store would have to look. HR_ERR_NOT_FOUND
 * when there is no such folder; in a store without folders, no such object. */
#define HR_BYTES_UNKNOWN UINT64_MAX
typedef bool
hr_store_visit_fn(void *user, const char *name, size_t name_bytes, uint64_t bytes);
HR_CHECK enum hr_err hr__store_list(const char *uri, hr_store_visit_fn *visit, void *user,
                                    struct hr_error *reterr);
/* False: hr__store_list is HR_ERR_UNSUPPORTED for the store of this URI. */
bool hr__store_has_lists(const char *uri);

/* The scheme of the i-th store and what it reads; NULL past the end. */
const char *hr__store_scheme(size_t at, const char **ret_gives);
/* Whether the i-th store can be used; see struct hr_store. */
HR_CHECK enum hr_err hr__store_check(size_t at, struct hr_error *reterr);

/* Whether io_uring may be used: HR_ERR_UNSUPPORTED says why not. */
HR_CHECK enum hr_err hr__store_check_uring(struct hr_error *reterr);
/* Writes the version of libcurl, which is loaded. HR_ERR_STATE if the build is without
 * it, HR_ERR_UNSUPPORTED if it is not installed. */
HR_CHECK enum hr_err
hr__store_curl_version(char *text, size_t room, struct hr_error *reterr);

/* False for a plain path and file://; *ret_path is then the path. */
bool hr__store_is_remote(const char *uri, const char **ret_path);

/* ---- ranges ---- */

#define HR_RANGE_REST UINT64_MAX

/* `bytes` from `offset` of an object; HR_RANGE_REST: all that follow. With an `identity`
 * other than 0 the object must have that one, else HR_ERR_STATE says that it changed. */
struct hr_range {
    uint64_t offset, bytes;
    struct hr_hash128 identity;
    char uri[HR_URI_MAX];
};

/* Sets all but the URI. */
static inline void hr__range_whole(struct hr_range *ret_range)
{
    ret_range->offset = 0;
    ret_range->bytes = HR_RANGE_REST;
    ret_range->identity = (struct hr_hash128){0, 0};
}

/* Open the range's object and check both: *ret_bytes is what the range holds. */
HR_CHECK enum hr_err
hr__range_open(const struct hr_range *range, struct hr_object *ret_object,
               size_t *ret_bytes, struct hr_error *reterr);

/* ---- reads of ranges ---- */

/* One read from opening to closing. The caller sets the first part and leaves it alone
 * until the read ends. */
struct hr_store_read {
    const struct hr_range *range;
    struct hr_error *error; /* or NULL */
    /* Called once the size is known: memory for read->bytes bytes, or an error, which
     * ends the read. */
    enum hr_err (*room)(struct hr_store_read *read, void **ret_data);
    /* Of a channel: called once, last. Both by a thread of the channel, which holds no
     * lock. */
    void (*done)(struct hr_store_read *read, enum hr_err err);
    /* results, from room on */
    size_t bytes;
    bool waited;
    /* private */
    struct hr_store_read *next;
    struct hr_object object;
    char *data;
    size_t got;
};

/* Reads a range and waits for it; `done` is not called. Errors are those of
 * hr__range_open, hr__store_read and room. *stop, or NULL, is as in hr__store_read; a
 * store with a `fetch` of its own finishes the read regardless. */
HR_CHECK enum hr_err hr__store_fetch(struct hr_store_read *read, const atomic_bool *stop);

/* ---- reads in flight ---- */

enum hr_channel_mode {
    HR_CHANNEL_AUTO,     /* what the store does best */
    HR_CHANNEL_URING,    /* files: io_uring, or HR_ERR_UNSUPPORTED where not allowed */
    HR_CHANNEL_THREADS,  /* threads that block */
    HR_CHANNEL_REQUESTS, /* in use only: requests over HTTP */
};
struct hr_channel_options {
    enum hr_channel_mode mode;
    uint32_t depth;   /* reads in flight at most; others wait in order */
    uint32_t threads; /* HR_CHANNEL_THREADS: how many */
};
struct hr_channel;

/* A way to have several reads of one store in flight: the store of `uri`. HR_ERR_MEMORY,
 * HR_ERR_UNSUPPORTED, or the error of a thread that did not start. */
HR_CHECK enum hr_err
hr__channel_open(const char *uri, const struct hr_channel_options *options,
                 struct hr_channel **ret_channel, struct hr_error *reterr);
/* Is the URI one of this channel's store? */
bool hr__channel_takes(const struct hr_channel *channel, const char *uri);
/* The mode in use: never AUTO. */
enum hr_channel_mode hr__channel_mode(const struct hr_channel *channel);
/* Any thread; does not wait, and calls nothing back. */
void hr__channel_submit(struct hr_channel *channel, struct hr_store_read *read);
/* True when the read had not begun: it is the caller's again, and done is not called. */
bool hr__channel_withdraw(struct hr_channel *channel, struct hr_store_read *read);
/* Cancels the reads in flight; returns after each has been reported. NULL is fine.
 */
void hr__channel_close(struct hr_channel *channel);

/* ---- what a store implements ---- */

struct hr_store {
    const char *scheme; /* "mem" */
    const char *gives;  /* human-readable: what it reads */

    /* HR_ERR_UNSUPPORTED if the machine lacks what the store needs, HR_ERR_STATE if the
     * build does; loads libraries. NULL: it needs nothing. */
    enum hr_err (*check)(struct hr_error *reterr);

    /* `name` is the URI after "scheme://". Sets bytes, identity, lasting and as of
     * *object, whose store and uri are set. */
    enum hr_err (*open)(const char *name, struct hr_object *object,
                        struct hr_error *reterr);
    void (*close)(struct hr_object *object);

    /* Up to `bytes` (at least 1) of a range that lies inside the object. *ret_got of 0 is
     * the object's end, which has then come early. HR_ERR_IO may be tried again, unless
     * the store `retries` by itself. On failure *ret_got is the bytes reached. */
    enum hr_err (*read)(struct hr_object *object, uint64_t offset, void *data,
                        size_t bytes, size_t *ret_got, struct hr_error *reterr);
    bool retries;
    /* A read from opening to closing, of which object.store and object.uri are set, in
     * fewer requests than open and read would take. NULL: by them. */
    enum hr_err (*fetch)(struct hr_store_read *read);
    /* The bytes of the range's beginning that need no waiting; -1: it cannot tell, and
     * the time of a read does. NULL: none do. */
    int64_t (*read_ready)(struct hr_object *object, uint64_t offset, void *data,
                          size_t bytes);
    /* Whether the object is unchanged since it was opened. NULL: it cannot change. */
    bool (*is_same)(const struct hr_object *object);

    /* NULL: by open and read. */
    enum hr_err (*load)(const char *name, size_t bytes_max, char **ret_data,
                        size_t *ret_bytes, struct hr_error *reterr);
    /* Shows all bytes of an open object, which is closed before they are unmapped. NULL:
     * by load. */
    enum hr_err (*map)(struct hr_object *object, struct hr_store_map *map,
                       struct hr_error *reterr);
    void (*unmap)(struct hr_store_map *map);

    /* NULL: there are none. */
    enum hr_err (*list)(const char *name, hr_store_visit_fn *visit, void *user,
                        struct hr_error *reterr);

    /* Starts the store's own way to keep reads in flight (store_internal.h). NULL, or
     * HR_ERR_UNSUPPORTED: threads that call the functions above. */
    enum hr_err (*start)(struct hr_channel *channel, struct hr_error *reterr);
};

#endif
