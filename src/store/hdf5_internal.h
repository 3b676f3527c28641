/*
 * store/hdf5_internal.h - shared by hdf5.c (object headers), hdf5_links.c (the links of
 * groups), hdf5_message.c (what the messages of a dataset say), hdf5_type.c (types of
 * elements), hdf5_chunks.c and hdf5_arrays.c (where chunks are), hdf5_records.c (B-trees
 * of version 2) and hdf5_unpack.c (filters).
 */
#ifndef HR_STORE_HDF5_INTERNAL_H
#define HR_STORE_HDF5_INTERNAL_H

#include "store/hdf5.h"

/* Bytes that are taken from their beginning; `bad` after too many. */
struct hr_hdf5_in {
    const uint8_t *at;
    size_t left;
    bool bad;
};
uint64_t hr__hdf5_take(struct hr_hdf5_in *in, size_t bytes); /* up to 8, little-endian */
const uint8_t *hr__hdf5_skip(struct hr_hdf5_in *in, size_t bytes); /* NULL: bad */

/* The file while it is read. */
struct hr_hdf5_file {
    struct hr_window *window;
    uint64_t base; /* addresses count from here */
    uint64_t end;  /* bytes from there */
    struct hr_error *error;
};
/* Bytes at an address, valid until the next call. HR_ERR_FORMAT: outside the file. */
HR_CHECK enum hr_err hr__hdf5_get(const struct hr_hdf5_file *file, uint64_t at,
                                  size_t bytes, const uint8_t **ret_data);
/* HR_ERR_FORMAT, "FILE: byte AT: damaged: WHAT". */
enum hr_err
hr__hdf5_damaged(const struct hr_hdf5_file *file, uint64_t at, const char *what);
/* HR_ERR_FORMAT: the 4 bytes after `bytes` bytes are not their checksum. */
HR_CHECK enum hr_err
hr__hdf5_check_sum(const struct hr_hdf5_file *file, uint64_t at, size_t bytes);
/* Bob Jenkins's lookup3, the checksum of newer structures. */
uint32_t hr__hdf5_checksum(const uint8_t *data, size_t bytes);

/* Bytes of a field for numbers up to `most`. */
static inline size_t hr__hdf5_bytes_for(uint64_t most)
{
    size_t bytes = 1;

    while (bytes < 8 && most >> 8 * bytes != 0)
        bytes++;
    return bytes;
}

/* A part of an element that can be a field: a member of a compound type ("a", or "a.b"
 * of a nested one), or all of it. */
struct hr_hdf5_part {
    char *name;             /* NULL: the element */
    const char *why;        /* it is not read; or NULL */
    uint32_t offset, bytes; /* in the element */
    struct hr_hdf5_type type;
    int ndim; /* of an array */
    int64_t dims[HR_MAX_DIMS];
    bool is_compound; /* its members are parts */
};

/* What an object's messages say. */
struct hr_hdf5_object {
    bool has_type, has_space, has_layout;
    struct hr_hdf5_dataset dataset; /* but for its path and chunks */
    const char *unsupported;        /* a reason, or NULL */
    struct hr_hdf5_part *parts;     /* of the type */
    size_t part_count, part_room;
    bool no_memory;
    bool has_given;                 /* the list of chunks is a found dataset's */
    uint64_t max_dims[HR_MAX_DIMS]; /* HR_HDF5_NONE: any */
    /* of the layout */
    int rank;          /* of chunks, with the dimension of the element's bytes */
    int chunk_index;   /* enum hr_hdf5_index */
    uint64_t index_at; /* address */
    uint64_t single_bytes;
    uint32_t single_mask;
    /* of a group */
    uint64_t tree, heap;   /* a symbol table; or HR_HDF5_NONE */
    uint64_t dense, names; /* links in a heap, and their tree; or HR_HDF5_NONE */
};
enum hr_hdf5_index {
    HR_HDF5_TREE,
    HR_HDF5_SINGLE,
    HR_HDF5_IMPLICIT,
    HR_HDF5_ARRAY,
    HR_HDF5_EXTENSIBLE,
    HR_HDF5_TREE2,
};

enum {
    HR_HDF5_MESSAGE_SPACE = 1,
    HR_HDF5_MESSAGE_LINKS = 2,
    HR_HDF5_MESSAGE_TYPE = 3,
    HR_HDF5_MESSAGE_FILL_OLD = 4,
    HR_HDF5_MESSAGE_FILL = 5,
    HR_HDF5_MESSAGE_LINK = 6,
    HR_HDF5_MESSAGE_FILES = 7, /* External File List */
    HR_HDF5_MESSAGE_LAYOUT = 8,
    HR_HDF5_MESSAGE_FILTERS = 11,
    HR_HDF5_MESSAGE_MORE = 16,
    HR_HDF5_MESSAGE_TABLE = 17,
};

/* Takes a message of a dataset into account, at address `at`; others are ignored. False:
 * it is malformed, or object->no_memory. */
bool hr__hdf5_message(struct hr_hdf5_object *object, unsigned type, struct hr_hdf5_in in,
                      uint64_t at);

/* The type of elements, as hr__hdf5_message(); replaces the object's parts. */
bool hr__hdf5_type(struct hr_hdf5_object *object, struct hr_hdf5_in in);
void hr__hdf5_parts_finish(struct hr_hdf5_object *object);

/* Hard links of a group. */
#define HR_HDF5_OBJECTS_MAX 65536
#define HR_HDF5_NAME_MAX 1024 /* bytes */
struct hr_hdf5_link {
    char *name;
    uint64_t at;
};
struct hr_hdf5_links {
    struct hr_hdf5_link *items;
    size_t count, room;
};
void hr__hdf5_links_finish(struct hr_hdf5_links *links);
/* Adds the link of a message at `at`; soft and external ones are not followed. */
HR_CHECK enum hr_err
hr__hdf5_link(const struct hr_hdf5_file *file, struct hr_hdf5_links *links,
              struct hr_hdf5_in in, uint64_t at);
/* Adds those of a symbol table: its tree, and the heap of its names. */
HR_CHECK enum hr_err hr__hdf5_symbols(const struct hr_hdf5_file *file, uint64_t tree,
                                      uint64_t heap, struct hr_hdf5_links *links);
/* Adds those in the fractal heap at `at`; `names` is the tree of their names. */
HR_CHECK enum hr_err hr__hdf5_dense(const struct hr_hdf5_file *file, uint64_t at,
                                    uint64_t names, struct hr_hdf5_links *links);

/* Calls `fn` for each record of a B-tree of version 2; its data are valid during the
 * call. */
struct hr_hdf5_record {
    unsigned type;
    const uint8_t *data;
    size_t bytes;
};
typedef enum hr_err hr_hdf5_record_fn(void *user, const struct hr_hdf5_record *record);
HR_CHECK enum hr_err hr__hdf5_records(const struct hr_hdf5_file *file, uint64_t at,
                                      hr_hdf5_record_fn *fn, void *user);

/* The chunks of a dataset while they are listed. */
struct hr_hdf5_listing {
    const struct hr_hdf5_file *file;
    struct hr_hdf5_object *object;
    uint64_t nodes; /* seen; a tree has no more than fit into the file */
    /* Of arrays: whether elements have a size and a mask, and their bytes. */
    bool filtered;
    size_t element;
    /* Chunks along each dimension of the largest shape that the dataset may get; arrays
     * number chunks by them, with dimension `slowest` first. */
    uint64_t max_grid[HR_MAX_DIMS];
    int slowest;
};
/* Enters a chunk; a number outside the dataset, or HR_HDF5_NONE for its address, is
 * ignored. HR_ERR_FORMAT: it lies outside the file. */
HR_CHECK enum hr_err hr__hdf5_add_chunk(struct hr_hdf5_listing *listing, uint64_t number,
                                        uint64_t address, uint64_t bytes, uint32_t mask);
/* Enters those of an array: HR_HDF5_ARRAY, HR_HDF5_EXTENSIBLE, HR_HDF5_IMPLICIT. */
HR_CHECK enum hr_err hr__hdf5_read_array(struct hr_hdf5_listing *listing);

/* Completes a dataset whose messages were all read: sizes, and the list of its chunks. */
HR_CHECK enum hr_err
hr__hdf5_layout(const struct hr_hdf5_file *file, struct hr_hdf5_object *object);

#endif
