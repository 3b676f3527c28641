/*
 * ops/hdf5_files.h - the items of the datasets of HDF5 files.
 *
 * Items that lie in the file as they are, contiguous or in plain chunks, are read where
 * they are; a filtered chunk is unpacked as a whole, and kept in a cache.
 */
#ifndef HR_OPS_HDF5_FILES_H
#define HR_OPS_HDF5_FILES_H

#include "codec/npy.h"
#include "core/str.h"
#include "op/op.h"
#include "ops/chunk_cache.h"
#include "ops/shard_source.h"
#include "store/hdf5.h"
#include "store/shards.h"

struct hr_hdf5_item { /* of a dataset that is a field */
    const struct hr_hdf5_dataset *dataset;
    struct hr_npy npy; /* of numbers: how elements become a tensor's */
    size_t bytes;      /* of an item in the file */
    size_t elements;   /* of an item there */
    size_t inner;      /* numbers of an element */
    bool scattered;    /* elements have more than these numbers */
    bool whole;        /* in order in the file, or in one chunk */
    size_t slab;       /* CHUNKED: bytes of what a chunk has of an item */
    uint64_t cells;    /* CHUNKED: chunks that an item is spread over */
};

struct hr_hdf5_source {
    const char *uri; /* of `shards` */
    struct hr_hash128 identity;
    struct hr_object object; /* if `open` */
    bool open;
    uint64_t first, count; /* records */
    struct hr_hdf5 hdf5;
    struct hr_hdf5_item *items; /* of hr_hdf5_files.count */
};

struct hr_hdf5_files {
    struct hr_shards shards;
    struct hr_hdf5_source *files; /* one for each shard */
    size_t file_count;
    size_t count; /* fields */
    char names[HR_SCHEMA_FIELDS_MAX][HR_FIELD_NAME_MAX + 1];
    char *paths[HR_SCHEMA_FIELDS_MAX]; /* of the datasets */
    uint64_t records, unpacked_max;
    struct hr_hash128 identity;
    struct hr_str note; /* datasets of the first file that were left out, and why */
    struct hr_chunk_cache *cache;
    struct hr_pool *pool; /* of unpacked chunks */
};

/* `fields` empty: every dataset that can be read. */
HR_CHECK enum hr_err
hr__hdf5_files_open(const char *pattern, const struct hr_pairs *fields,
                    uint64_t unpacked_max, uint64_t cache_bytes,
                    struct hr_hdf5_files **ret_files, struct hr_error *reterr);
void hr__hdf5_files_close(struct hr_hdf5_files *files);

/* From now on the cache keeps this much; `strict`: and no memory is kept for later use.
 */
void hr__hdf5_files_limit(struct hr_hdf5_files *files, uint64_t cache_bytes, bool strict);
/* What the files keep in memory; `least` is 0 if no chunk is unpacked. */
void hr__hdf5_files_kept(const struct hr_hdf5_files *files, struct hr_op_kept *ret_kept);

/* The file of record `index` (< records). */
struct hr_hdf5_source *
hr__hdf5_files_of(const struct hr_hdf5_files *files, uint64_t index);

/* Where an item of a contiguous dataset lies; false: it is in chunks, or nowhere. */
bool hr__hdf5_item_place(struct hr_hdf5_source *file, size_t field, uint64_t index,
                         struct hr_shard_place *ret_place);

/* Who reads, and what for. */
struct hr_hdf5_read {
    struct hr_hdf5_files *files;
    struct hr_hdf5_source *file;
    size_t field;
    uint64_t index;
    uint32_t count; /* of items, from that one on */
    struct hr_window *window;
    struct hr_reader *reader; /* large reads go through it; NULL: none do */
    struct hr_error *error;
};

/* Where what chunk `cell` has of items is: `data`, valid until the window's next use, or,
 * if `owner` is set, as long as that. NULL data: the fill value. `count` of the items are
 * in the chunk. */
struct hr_hdf5_slab {
    const char *data;
    struct hr_buffer *owner;
    uint32_t count;
};
HR_CHECK enum hr_err hr__hdf5_slab(const struct hr_hdf5_read *read, uint64_t cell,
                                   struct hr_hdf5_slab *ret_slab);
/* The range that hr__hdf5_slab() will read for chunk `cell` of an item, and that is worth
 * fetching early; false: none. */
bool hr__hdf5_slab_ahead(struct hr_hdf5_files *files, struct hr_hdf5_source *file,
                         size_t field, uint64_t index, uint64_t cell,
                         struct hr_range *ret_range);
/* Copies it to its place in the item. */
void hr__hdf5_place_slab(const struct hr_hdf5_item *item, uint64_t cell, const char *slab,
                         char *to);
/* Copies the numbers of `count` items, as a tensor has them. False if one is larger than
 * an int64. */
HR_CHECK bool hr__hdf5_convert(const struct hr_hdf5_item *item, const char *from,
                               char *to, size_t count);
/* Fills `bytes` bytes of elements with the fill value. */
void hr__hdf5_fill(const struct hr_hdf5_dataset *dataset, char *to, size_t bytes);

#endif
