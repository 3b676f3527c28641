/*
 * ops/shard_source.h - what sources of records in shards share. Their state begins with a
 * struct hr_shard_source.
 *
 * A small record is read through a window of the thread's, which reads ahead while
 * records follow each other; a large one through the reader, which can fetch it early.
 */
#ifndef HR_OPS_SHARD_SOURCE_H
#define HR_OPS_SHARD_SOURCE_H

#include "op/op.h"
#include "store/shard_index.h"

/* Parameters of such a source: limits of compressed shards, and the saved index. */
struct hr_shard_params {
    int64_t unpacked_max, ratio_max, unpack_cache;
    const char *index;
};
#define HR_P_SHARDS(s)                                                                   \
    HR_P_IN(HR_PARAM_BYTES, s, shards, unpacked_max, .fallback = "64GiB",                \
            HR_RANGE(1, 1LL << 50), .unit = "bytes", .not_identity = true,               \
            .help = "a compressed file that unpacks to more is refused"),                \
        HR_P_IN(HR_PARAM_INT, s, shards, ratio_max, .fallback = "1000",                  \
                HR_RANGE(1, 1 << 30), .not_identity = true,                              \
                .help = "a compressed file that unpacks to more than 64 MiB and more "   \
                        "than this many times its size is refused"),                     \
        HR_P_IN(HR_PARAM_BYTES, s, shards, unpack_cache, .fallback = "64MiB",            \
                HR_RANGE(0, 1LL << 40), .unit = "bytes", .not_identity = true,           \
                .help = "unpacked bytes of compressed files that are kept in memory: "   \
                        "a shuffled epoch is fast where all of them fit"),               \
        HR_P_IN(HR_PARAM_PATH, s, shards, index, .not_identity = true,                   \
                .help = "a file that keeps where the records are, so that the next "     \
                        "start scans only files that have changed; default: one in "     \
                        "the cache folder, for remote files and for 16 MiB or more")

#define HR_SHARD_INDEX_DOC                                                               \
    "Where the records are is found by a scan of the files when the graph is opened, "   \
    "and kept in a saved index ([its format](../formats/source-index.md)): the next "    \
    "start scans only files that have changed since, by their size, inode and time, or " \
    "the ETag that the server gives. Set "                                               \
    "`HEADRACE_CACHE` to nothing to keep no index in the cache folder."

#define HR_UNPACK_DOC                                                                    \
    "Files that are compressed by gzip or zstd are recognised by how they begin, and "   \
    "read as what they unpack to. The first opening decodes and checks each of them. "   \
    "Then records are read in any order: in order without decoding anything twice, "     \
    "otherwise as fast as `unpack_cache` allows "                                        \
    "([compressed files](../formats/compressed.md)). Damage costs the gzip member or "   \
    "zstd frame that it is in; of a file that is cut short, all that comes before is "   \
    "read."

struct hr_shard_source {
    struct hr_shard_index *index;
    struct hr_window *keys; /* of hr__shard_source_peek */
    uint64_t bytes_max;     /* longer records are bad; 0: no limit */
    uint64_t ending_bytes;  /* at the end of a record, that may come on top */
    uint64_t unpack_cache;  /* the parameter: bytes of compressed shards that are kept */
};

/* Makes a state of `bytes` bytes, zeros after its struct hr_shard_source, and opens the
 * shards; `user` is the scan's. */
HR_CHECK enum hr_err
hr__shard_source_open(const char *pattern, const char *ending, hr_shard_scan_fn *scan,
                      void *user, const struct hr_packed_limits *packed,
                      const struct hr_shard_saving *saving, size_t bytes,
                      void **ret_state, struct hr_error *reterr);
/* The limits that the parameters set. */
struct hr_packed_limits hr__unpack_limits(const struct hr_shard_params *params);
void hr__shard_source_close(void *state); /* frees it */
/* hr_op.memory */
void hr__shard_source_kept(const void *params, const void *state, uint64_t budget,
                           struct hr_op_kept *ret_kept);
void hr__shard_source_limit(const void *params, void *state, uint64_t bytes);
#define HR_SHARD_MEMORY                                                                  \
    {                                                                                    \
        .kept = hr__shard_source_kept, .limit = hr__shard_source_limit                   \
    }
void hr__shard_source_identity(const void *params, const void *state,
                               struct hr_hasher *hasher);

/* hr_op.source */
uint64_t hr__shard_source_count(const void *params, const void *state);
bool hr__shard_source_locate(const void *params, const void *state, uint64_t index,
                             char *uri, size_t room, uint64_t *ret_offset);
bool hr__shard_source_ahead(const void *params, const void *state, uint64_t index,
                            int part, struct hr_range *ret_range);
uint64_t hr__shard_source_size(const void *params, const void *state, uint64_t index);

/* The bytes of a record: in `owner`, to which the caller has a reference; or, if that is
 * NULL, valid until the thread's next record. */
struct hr_shard_record {
    struct hr_shard_place place;
    const char *data;
    struct hr_buffer *owner;
};

/* Reads the record of the context. */
HR_CHECK enum hr_err
hr__shard_source_read(struct hr_op_ctx *ctx, struct hr_shard_record *ret_record);

/* Reads record->place, of any source; `data` and `owner` are set. A small one is valid
 * until the next use of `window`, of which each thread has its own; NULL: the thread's.
 */
HR_CHECK enum hr_err hr__shard_read(struct hr_op_ctx *ctx, struct hr_window *window,
                                    struct hr_shard_record *record);
/* The bytes of a place to `to`, through a window or, if they are many, straight from the
 * object: no bytes are valid in the window afterwards. */
HR_CHECK enum hr_err hr__shard_fill(struct hr_op_ctx *ctx, struct hr_window *window,
                                    const struct hr_shard_place *place, void *to);
/* A thread's windows, HR_SHARD_WINDOWS of them: one for each field of a record, so that
 * reads of each go forward, and one more. */
#define HR_SHARD_WINDOWS (HR_SCHEMA_FIELDS_MAX + 1)
HR_CHECK enum hr_err
hr__shard_windows(struct hr_thread *thread, struct hr_window **ret_windows,
                  struct hr_error *error);
/* Whether a record is read through the reader, or is longer than allowed. */
bool hr__shard_is_large(const struct hr_shard_source *source,
                        const struct hr_shard_place *place);
/* The range that hr__shard_read() takes through the reader; false: it does not. */
bool hr__shard_ahead(const struct hr_shard_place *place, struct hr_range *ret_range);
/* Turns the window to the place's object; HR_ERR_STATE if that has changed. */
HR_CHECK enum hr_err
hr__shard_window(struct hr_window *window, const struct hr_shard_place *place,
                 struct hr_error *reterr);

/* The shard of record `at` (< count) through a window, and where the record lies in it:
 * for keys. The window is zeroed before its first use, and finished by the caller. */
HR_CHECK enum hr_err
hr__shard_source_look(const void *state, uint64_t at, struct hr_window *window,
                      struct hr_shard_place *ret_place, struct hr_error *reterr);
/* Returns `code`, the result of looking a key up: a damaged record (HR_ERR_FORMAT) is
 * known by its number. */
HR_CHECK enum hr_err
hr__shard_source_key(enum hr_err code, uint64_t at, struct hr_str *out);

/* HR_ERR_LIMIT if `bytes`, those of a record without its ending, are more than bytes_max.
 */
HR_CHECK enum hr_err hr__shard_source_check(const struct hr_shard_source *source,
                                            const struct hr_shard_place *place,
                                            uint64_t bytes, struct hr_error *error);

/* The bytes of a record, for hr_op_source.key; valid until the next call. One thread at a
 * time: a graph is frozen by one. */
HR_CHECK enum hr_err
hr__shard_source_peek(const void *state, uint64_t index, const char **ret_data,
                      size_t *ret_bytes, struct hr_error *error);

/* The number of the line where a record begins, of formats that set hr_shard_scan.line.
 * With `thread`, bytes of the thread's record are no longer valid afterwards; without, as
 * hr__shard_source_peek. */
struct hr_thread;
HR_CHECK enum hr_err
hr__shard_source_line(const void *state, struct hr_thread *thread, uint64_t index,
                      uint64_t *ret_line, struct hr_error *error);

/* Sets a field to `bytes` of the record's bytes, at `data`. */
HR_CHECK enum hr_err
hr__shard_source_bytes(struct hr_op_ctx *ctx, const struct hr_shard_record *record,
                       const char *data, size_t bytes, struct hr_value *value);

#endif
