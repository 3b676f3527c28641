/*
 * store/hdf5_internal.h - shared by hdf5.c (groups and object headers), hdf5_message.c
 * (what the messages of a dataset say) and hdf5_chunks.c (where chunks are).
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
/* Bob Jenkins's lookup3, the checksum of newer structures. */
uint32_t hr__hdf5_checksum(const uint8_t *data, size_t bytes);

/* What an object's messages say. */
struct hr_hdf5_object {
    bool has_type, has_space, has_layout;
    struct hr_hdf5_dataset dataset; /* but for its path and chunks */
    const char *unsupported;        /* a reason, or NULL */
    /* of the layout */
    int rank;          /* of chunks, with the dimension of the element's bytes */
    int chunk_index;   /* enum hr_hdf5_index */
    uint64_t index_at; /* address */
    uint64_t single_bytes;
    uint32_t single_mask;
    /* of a group */
    uint64_t tree, heap; /* a symbol table; or HR_HDF5_NONE */
    uint64_t dense;      /* links in a heap; or HR_HDF5_NONE */
};
enum hr_hdf5_index {
    HR_HDF5_TREE,
    HR_HDF5_SINGLE,
    HR_HDF5_IMPLICIT,
    HR_HDF5_ARRAY,
};

enum {
    HR_HDF5_MESSAGE_SPACE = 1,
    HR_HDF5_MESSAGE_LINKS = 2,
    HR_HDF5_MESSAGE_TYPE = 3,
    HR_HDF5_MESSAGE_FILL_OLD = 4,
    HR_HDF5_MESSAGE_FILL = 5,
    HR_HDF5_MESSAGE_LINK = 6,
    HR_HDF5_MESSAGE_LAYOUT = 8,
    HR_HDF5_MESSAGE_FILTERS = 11,
    HR_HDF5_MESSAGE_MORE = 16,
    HR_HDF5_MESSAGE_TABLE = 17,
};

/* Takes a message of a dataset into account, at address `at`; others are ignored. False:
 * it is malformed. */
bool hr__hdf5_message(struct hr_hdf5_object *object, unsigned type, struct hr_hdf5_in in,
                      uint64_t at);

/* Completes a dataset whose messages were all read: sizes, and the list of its chunks. */
HR_CHECK enum hr_err
hr__hdf5_layout(const struct hr_hdf5_file *file, struct hr_hdf5_object *object);

#endif
