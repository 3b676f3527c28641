/*
 * store/idx.h - IDX files: the arrays that MNIST and its kin come in.
 *
 * A header (two zero bytes, element type, number of dimensions, each dimension as 4 bytes
 * big endian), then the elements, big endian, last dimension fastest. The first dimension
 * counts the items. A path may be any URI (store.h). A file may be compressed by gzip; it
 * is then held in memory, else it is mapped and must not be cut shorter while in use.
 */
#ifndef HR_STORE_IDX_H
#define HR_STORE_IDX_H

#include "headrace/base.h"

struct hr_idx_header {
    enum hr_dtype dtype;
    int ndim;                         /* of an item */
    int64_t items, dims[HR_MAX_DIMS]; /* of an item */
    size_t item_bytes, data_bytes, header_bytes;
};

/* The header alone. HR_ERR_NOT_FOUND, HR_ERR_IO, or HR_ERR_FORMAT. */
HR_CHECK enum hr_err
hr__idx_peek(const char *path, struct hr_idx_header *ret_header, struct hr_error *reterr);

struct hr_idx;

/* Opens the file, which must have exactly the bytes that its header implies. */
HR_CHECK enum hr_err
hr__idx_open(const char *path, struct hr_idx **ret_idx, struct hr_error *reterr);
void hr__idx_close(struct hr_idx *idx);

const struct hr_idx_header *hr__idx_header(const struct hr_idx *idx);

/* All elements in the file's byte order: items * item_bytes. */
const void *hr__idx_data(const struct hr_idx *idx);

/* Copies item `at` (below items) to `to`, in the machine's byte order. */
void hr__idx_item(const struct hr_idx *idx, int64_t at, void *to);

#endif
