/*
 * ops/arrow_files.h - the record batches of Arrow files and streams.
 *
 * Messages are walked once, when the files are opened. The buffers of a batch are used
 * where a mapped file has them; those of objects in other stores, and compressed ones,
 * are loaded when a record of the batch is wanted, and kept in a cache.
 */
#ifndef HR_OPS_ARROW_FILES_H
#define HR_OPS_ARROW_FILES_H

#include <pthread.h>

#include "codec/arrow_ipc.h"
#include "core/hash.h"
#include "headrace/buffer.h"
#include "op/op.h"
#include "ops/columns.h"
#include "store/shards.h"
#include "store/window.h"

struct hr_arrow_file {
    const char *uri; /* of `shards` */
    struct hr_hash128 identity;
    struct hr_store_map map;
    bool is_mapped;
    size_t leaves[HR_SCHEMA_FIELDS_MAX]; /* of its schema, by column */
};

struct hr_arrow_group { /* a record batch */
    uint64_t first;     /* number of its first record */
    uint64_t body;      /* where its body begins in the file */
    uint32_t file;
    enum hr_arrow_codec codec;
    char *damage;        /* its only record is bad, and why; or NULL */
    size_t places;       /* number of its first place; one for each column follows */
    size_t dictionaries; /* how many were read before it */
};

struct hr_arrow_dictionary {
    uint32_t file;
    size_t column;
    struct hr_buffer *buffer; /* loaded; or NULL: in the map */
    struct hr_arrow_view view;
};

struct hr_arrow_loaded {
    size_t group;
    struct hr_buffer *buffer; /* its places, one for each column, and their buffers */
    uint64_t used;
};
#define HR_ARROW_LOADED_MAX 64

struct hr_arrow_files {
    struct hr_shards shards;
    struct hr_arrow_file *files; /* one for each shard */
    size_t file_count;
    struct hr_columns columns;
    struct hr_arrow_group *groups;
    struct hr_arrow_place *places;
    struct hr_arrow_dictionary *dictionaries;
    size_t group_count, group_room, place_count, place_room, dictionary_count,
        dictionary_room;
    uint64_t records;
    struct hr_hash128 identity;
    uint64_t batch_max;    /* bytes that a batch may take in memory */
    uint64_t cache_bytes;  /* the caller sets it before a record is read */
    pthread_mutex_t mutex; /* of the cache */
    struct hr_arrow_loaded loaded[HR_ARROW_LOADED_MAX];
    uint64_t loaded_bytes, uses;
    uint64_t loaded_max;  /* bytes of the largest so far */
    struct hr_pool *pool; /* of loaded batches */
};

/* Opens the files that `pattern` means, with these columns: names, "struct.child", a
 * struct's for all of its children, or "*". */
HR_CHECK enum hr_err
hr__arrow_files_open(const char *pattern, const struct hr_names *columns,
                     uint64_t batch_max, struct hr_arrow_files **ret_files,
                     struct hr_error *reterr);
void hr__arrow_files_close(struct hr_arrow_files *files);

/* From now on the cache keeps this much, or one batch; `strict`: and little memory is
 * kept for later use. */
void hr__arrow_files_limit(struct hr_arrow_files *files, uint64_t cache_bytes,
                           bool strict);
/* What the files keep in memory: fixed, and at least. */
void hr__arrow_files_kept(struct hr_arrow_files *files, struct hr_op_kept *ret_kept);

/* The batch of record `index`, which exists. */
const struct hr_arrow_group *
hr__arrow_files_group(const struct hr_arrow_files *files, uint64_t index);

/* A record: row `row` of the batch's views. */
struct hr_arrow_row {
    const struct hr_arrow_group *group;
    const struct hr_arrow_file *file;
    int64_t row;
    struct hr_buffer *buffer; /* of a loaded batch, with a reference; or NULL */
    const struct hr_arrow_place *places;
    const void *body;
};
/* HR_ERR_FORMAT if the batch is damaged; any thread. */
HR_CHECK enum hr_err
hr__arrow_files_row(struct hr_arrow_files *files, uint64_t index,
                    struct hr_arrow_row *ret_row, struct hr_error *reterr);
/* The cell of a column. */
HR_CHECK enum hr_err
hr__arrow_files_cell(const struct hr_arrow_files *files, const struct hr_arrow_row *row,
                     size_t column, struct hr_arrow_cell *ret_cell,
                     struct hr_error *reterr);
/* The bytes of the cells of record `index`, which exists, by their offsets: of a batch
 * that is used in place, else 0. */
uint64_t hr__arrow_files_size(const struct hr_arrow_files *files, uint64_t index);
/* The numbers of the rows from this one on that lie side by side, as one cell; *ret_rows
 * of them, 0 if this one must be read by itself. */
void hr__arrow_files_run(const struct hr_arrow_files *files,
                         const struct hr_arrow_row *row, size_t column,
                         struct hr_arrow_cell *ret_cell, uint64_t *ret_rows);

#endif
