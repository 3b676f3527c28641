/*
 * store/hdf5.h - the datasets of HDF5 files, and where their elements are.
 *
 * What HDF5's library writes, from version 1.0 to 2.0: superblocks 0 to 3, old and new
 * object headers, groups as symbol tables, or as links in headers or heaps; data compact,
 * contiguous or in chunks, found by any of the library's indexes; chunks filtered by
 * shuffle, deflate, Fletcher's checksum or LZF. Numbers, arrays of them, fixed or
 * variable texts and bytes, and members of compound types. The format is that of "HDF5
 * File Format Specification 3.0". Nothing is trusted: every address, count and size is
 * compared with the file.
 */
#ifndef HR_STORE_HDF5_H
#define HR_STORE_HDF5_H

#include "store/window.h"

#define HR_HDF5_FILTERS_MAX 8
#define HR_HDF5_CHUNKS_MAX ((uint64_t)1 << 24) /* of a dataset */
#define HR_HDF5_DATASETS_MAX 4096
#define HR_HDF5_FILL_MAX 64
#define HR_HDF5_NONE UINT64_MAX /* an address: nothing is there */

enum hr_hdf5_class {
    HR_HDF5_INTEGER,
    HR_HDF5_FLOAT,
    HR_HDF5_BOOL,  /* an enumeration of FALSE and TRUE */
    HR_HDF5_TEXT,  /* of `bytes` bytes, filled up with zeros or spaces */
    HR_HDF5_BYTES, /* of any length: in a heap, the element says where */
};

struct hr_hdf5_type {
    enum hr_hdf5_class class;
    uint32_t bytes; /* of an element */
    bool is_signed, big_endian, is_brain, is_text, space_padded;
};

enum hr_hdf5_layout { HR_HDF5_CONTIGUOUS, HR_HDF5_CHUNKED };

enum hr_hdf5_filter_id {
    HR_HDF5_DEFLATE = 1,
    HR_HDF5_SHUFFLE = 2,
    HR_HDF5_FLETCHER32 = 3,
    HR_HDF5_LZF = 32000,
};

struct hr_hdf5_chunk {
    uint64_t at;    /* in the file; HR_HDF5_NONE: its elements have the fill value */
    uint32_t bytes; /* as stored */
    uint32_t mask;  /* bit i: filter i was not used */
};

/* A dataset, or the dataset of a member of a compound type: its path is that of the
 * dataset, a dot, and the member's name. */
struct hr_hdf5_dataset {
    char *path; /* from the root group, without a slash before it */
    char *why;  /* it cannot be read, and this is why; or NULL */
    int ndim;
    int64_t dims[HR_MAX_DIMS];
    uint32_t stride; /* bytes of an element */
    /* Of an element: `offset` bytes after its begin, an array of this shape. */
    struct hr_hdf5_type type;
    uint32_t offset;
    int inner_ndim;
    int64_t inner_dims[HR_MAX_DIMS];
    enum hr_hdf5_layout layout;
    uint64_t at, bytes; /* CONTIGUOUS: of all elements; `at` may be HR_HDF5_NONE */
    /* CHUNKED: elements of a chunk, chunks along each dimension, and all of them, the
     * last dimension first */
    int64_t chunk_dims[HR_MAX_DIMS], grid[HR_MAX_DIMS];
    struct hr_hdf5_chunk *chunks;
    bool borrows_chunks; /* of the dataset before it */
    uint64_t chunk_count;
    size_t chunk_bytes; /* unpacked */
    struct {
        uint16_t id;
        uint32_t element; /* SHUFFLE */
    } filters[HR_HDF5_FILTERS_MAX];
    int filter_count;
    unsigned char fill[HR_HDF5_FILL_MAX]; /* of an element, the rest is 0 */
};

struct hr_hdf5 {
    uint64_t base; /* in the file; places in references count from here */
    struct hr_hdf5_dataset *datasets; /* in the order of their paths */
    size_t count, room;
};

/* Whether a file begins as HDF5 files do: `bytes` of 8 bytes. */
bool hr__hdf5_begins(const void *data, size_t bytes);

/* Lists the datasets of the window's object. The caller zeroes *ret_hdf5 and ends with
 * hr__hdf5_finish(), also after a failure. HR_ERR_FORMAT: damaged, or no HDF5 file;
 * HR_ERR_UNSUPPORTED; HR_ERR_LIMIT; HR_ERR_MEMORY; the store's. Messages name the file. A
 * dataset that cannot be read is listed with its reason. */
HR_CHECK enum hr_err hr__hdf5_read(struct hr_window *window, struct hr_hdf5 *ret_hdf5,
                                   struct hr_error *reterr);
void hr__hdf5_finish(struct hr_hdf5 *hdf5);

/* Whether a chunk's stored bytes are its elements. */
bool hr__hdf5_is_plain(const struct hr_hdf5_dataset *dataset,
                       const struct hr_hdf5_chunk *chunk);

/* Unpacks a chunk, `chunk->bytes` bytes at `data`, to `to`. `to` and `scratch` have
 * HR_HDF5_ROOM(dataset) bytes. HR_ERR_FORMAT: damaged; messages name no file. */
#define HR_HDF5_ROOM(dataset) ((dataset)->chunk_bytes + 64)
HR_CHECK enum hr_err
hr__hdf5_unpack(const struct hr_hdf5_dataset *dataset, const struct hr_hdf5_chunk *chunk,
                const void *data, void *to, void *scratch, struct hr_error *reterr);

/* An element of HR_HDF5_BYTES: where the heap lies that has its bytes, and which of the
 * heap's objects they are. `heap` HR_HDF5_NONE: there are none. */
struct hr_hdf5_reference {
    uint64_t heap, bytes;
    uint32_t number;
};
void hr__hdf5_reference(const void *element, struct hr_hdf5_reference *ret_reference);
/* The bytes of a heap, of which the first HR_HDF5_HEAP_HEAD are at `data`; 0: it is none.
 */
#define HR_HDF5_HEAP_HEAD 16
uint64_t hr__hdf5_heap_bytes(const void *data);
/* The bytes of an object of a heap: reference->bytes; NULL: damaged. */
const char *hr__hdf5_heap_object(const void *heap, size_t bytes,
                                 const struct hr_hdf5_reference *reference);

#endif
