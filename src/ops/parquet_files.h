/*
 * ops/parquet_files.h - the rows of Parquet files, by column.
 *
 * Footers are read when the files are opened. The pages of a column of a row group are
 * found when one of its rows is wanted first. A page is decoded when one of its rows is
 * wanted, and kept in a cache that all threads share, with dictionaries, and with columns
 * of row groups that were fetched from other stores. A list may span pages of the first
 * version: such a column of a row group is decoded as a whole.
 */
#ifndef HR_OPS_PARQUET_FILES_H
#define HR_OPS_PARQUET_FILES_H

#include <pthread.h>

#include "codec/parquet.h"
#include "core/hash.h"
#include "core/lru.h"
#include "headrace/buffer.h"
#include "op/op.h"
#include "ops/columns.h"
#include "store/shards.h"
#include "store/store.h"

struct hr_parquet_file {
    const char *uri; /* of `shards` */
    struct hr_hash128 identity;
    struct hr_store_map map;
    bool is_mapped;
    struct hr_parquet_storage storages[HR_SCHEMA_FIELDS_MAX]; /* by column */
};

/* Something in the cache: the least recently used is dropped first. */
struct hr_parquet_unit {
    struct hr_lru_link link;  /* if `buffer` is set */
    struct hr_buffer *buffer; /* or NULL: it is not in the cache */
    uint64_t bytes;
    bool busy; /* a thread makes it */
};

/* Consecutive pages that are decoded together; nearly always one. */
struct hr_parquet_span {
    uint64_t first; /* its first row in the group */
    uint64_t at;    /* bytes in the chunk: of the first header */
    uint64_t end;
    char *damage; /* why its rows are bad; or NULL: guarded by the mutex */
    struct hr_parquet_unit unit;
};

struct hr_parquet_part { /* a column of a row group */
    struct hr_parquet_chunk chunk;
    atomic_bool is_ready; /* what follows is set */
    struct hr_parquet_span *spans;
    size_t span_count;
    uint64_t readable;                      /* rows before damage */
    char *damage;                           /* of the rows after them; or NULL */
    uint64_t dictionary_at, dictionary_end; /* equal: there is none */
    struct hr_parquet_unit dictionary, raw;
    struct hr_parquet_bounds *bounds; /* or NULL; see hr__parquet_files_skip() */
};

struct hr_parquet_group {
    uint64_t first; /* number of its first record */
    uint64_t rows;
    uint32_t file, number;         /* in the file */
    struct hr_parquet_part *parts; /* one for each column */
};

struct hr_parquet_files {
    struct hr_shards shards;
    struct hr_parquet_file *files; /* one for each shard */
    size_t file_count;
    struct hr_columns columns;
    struct hr_parquet_group *groups;
    size_t group_count, group_room;
    size_t skipped; /* row groups that were removed */
    uint64_t records;
    struct hr_hash128 identity;
    struct hr_pool *pool; /* of unpacked pages */
    uint64_t page_max;    /* bytes that a page, or a fetched column, may take */
    uint64_t cache_bytes; /* the caller sets it before a record is read */
    uint64_t unit_max[HR_SCHEMA_FIELDS_MAX]; /* bytes of each column's largest unit */
    bool strict;                             /* cache_bytes is part of a memory budget */
    bool has_zstd;                           /* libzstd is there */
    pthread_mutex_t mutex;                   /* of the units */
    pthread_cond_t changed;                  /* a unit is no longer busy */
    struct hr_lru cached_units;
    uint64_t cached_bytes;
    size_t cached;
    uint64_t decoded; /* pages; for tests */
};

/* Opens the files that `pattern` means, with these columns (hr__columns_find).
 * `keep_bounds`: hr__parquet_files_skip() follows. */
HR_CHECK enum hr_err
hr__parquet_files_open(const char *pattern, const struct hr_names *columns,
                       uint64_t page_max, bool keep_bounds,
                       struct hr_parquet_files **ret_files, struct hr_error *reterr);
void hr__parquet_files_close(struct hr_parquet_files *files);

/* From now on the cache keeps this much; `strict`: or what a row of one thread takes, if
 * that is more. */
void hr__parquet_files_limit(struct hr_parquet_files *files, uint64_t cache_bytes,
                             bool strict);
/* What the files keep in memory: fixed, and at least for columns and threads. */
void hr__parquet_files_kept(struct hr_parquet_files *files, struct hr_op_kept *ret_kept);

/* Removes row groups, and numbers the records of the others; before any is read. Parts
 * have bounds only until then. */
typedef bool hr_parquet_skips(const struct hr_parquet_group *group, void *user);
void hr__parquet_files_skip(struct hr_parquet_files *files, hr_parquet_skips *skips,
                            void *user);

/* A record: row `row` of its group. */
struct hr_parquet_row {
    uint64_t index;
    const struct hr_parquet_group *group;
    uint64_t row;
    struct hr_thread *thread;
    struct hr_parquet_pins *pins; /* pages that the thread had its last cells from */
    struct hr_buffer *held;       /* without a thread: of the last cell */
};
/* Record `index`, which exists; `thread` is the caller's or NULL. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__parquet_files_row(const struct hr_parquet_files *files, uint64_t index,
                      struct hr_thread *thread, struct hr_parquet_row *ret_row,
                      struct hr_error *reterr);
void hr__parquet_row_finish(struct hr_parquet_row *row);

/* The cell of a column, and the buffer that it lies in, which is valid until the row's
 * next cell. Any thread. HR_ERR_FORMAT if its page is damaged, and the store's. */
HR_CHECK enum hr_err
hr__parquet_files_cell(struct hr_parquet_files *files, struct hr_parquet_row *row,
                       size_t column, struct hr_arrow_cell *ret_cell,
                       struct hr_buffer **ret_owner, struct hr_error *reterr);

/* The numbers of the rows from this one on that lie side by side in its page, as one
 * cell, valid until the row's next cell; *ret_rows of them, 0 if this one is null.
 * Otherwise as hr__parquet_files_cell(). */
HR_CHECK enum hr_err
hr__parquet_files_run(struct hr_parquet_files *files, struct hr_parquet_row *row,
                      size_t column, struct hr_arrow_cell *ret_cell, uint64_t *ret_rows,
                      struct hr_error *reterr);

/* The range that the `part`-th column to be fetched for the record lies in; false: there
 * are no more. */
bool hr__parquet_files_ahead(struct hr_parquet_files *files, uint64_t index, int part,
                             struct hr_range *ret_range);

#endif
