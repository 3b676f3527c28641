/*
 * codec/npy.h - the header of NumPy's .npy files, versions 1 to 3.
 */
#ifndef HR_CODEC_NPY_H
#define HR_CODEC_NPY_H

#include "headrace/base.h"

struct hr_npy {
    enum hr_dtype dtype;   /* of a tensor: int64 for uint32 and uint64 */
    uint8_t element_bytes; /* in the file */
    bool big_endian;
    bool is_widened; /* uint32 or uint64 */
    bool fortran;    /* the first dimension varies fastest */
    int ndim;
    int64_t dims[HR_MAX_DIMS];
    size_t start, bytes; /* of the elements in the file */
};

#define HR_NPY_HEADER_MAX 65536 /* bytes of the text in a header */

/*
 * Reads the header at the start of a file of `file_bytes` bytes, of which the first
 * `bytes` are at `data`: all, or at least HR_NPY_HEADER_MAX + 16. On success the file has
 * the elements that the header claims. HR_ERR_FORMAT, HR_ERR_UNSUPPORTED for dtypes that
 * tensors do not have, HR_ERR_LIMIT; messages begin with `name`.
 */
HR_CHECK enum hr_err
hr__npy_read(const void *data, size_t bytes, uint64_t file_bytes, const char *name,
             struct hr_npy *ret_npy, struct hr_error *reterr);

/* Whether the elements are as a tensor has them. */
static inline bool hr__npy_is_plain(const struct hr_npy *npy)
{
    return !npy->big_endian && !npy->is_widened;
}

/* Converts `count` elements of a file, which need no alignment, to those of a tensor.
 * False if one is larger than an int64. */
HR_CHECK bool
hr__npy_convert(const struct hr_npy *npy, const void *from, void *to, size_t count);

#endif
