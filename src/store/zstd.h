/*
 * store/zstd.h - compressing with libzstd, which is loaded when it is first needed;
 * store/unpack.h decompresses.
 */
#ifndef HR_STORE_ZSTD_H
#define HR_STORE_ZSTD_H

#include "headrace/base.h"

#define HR_ZSTD_LEVEL_MAX 19 /* higher ones need more memory to decompress */

/* Writes the version of libzstd, which is loaded. HR_ERR_STATE if the build is without
 * it, HR_ERR_UNSUPPORTED if it is not installed. */
HR_CHECK enum hr_err hr__zstd_version(char *text, size_t room, struct hr_error *reterr);

struct hr_zstd; /* used by one thread at a time */

/* `level`: 1 to HR_ZSTD_LEVEL_MAX. HR_ERR_UNSUPPORTED if the build has no zstd, or
 * libzstd is not there. */
HR_CHECK enum hr_err
hr__zstd_create(int level, struct hr_zstd **ret_zstd, struct hr_error *reterr);
void hr__zstd_destroy(struct hr_zstd *zstd); /* NULL is fine */

/* A frame of zstd with `data`, in memory that is valid until the next call. One version
 * of libzstd gives equal data the same bytes. */
HR_CHECK enum hr_err
hr__zstd_compress(struct hr_zstd *zstd, const void *data, size_t bytes,
                  const char **ret_frame, size_t *ret_bytes, struct hr_error *reterr);

#endif
