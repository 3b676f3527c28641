/*
 * store/compress.h - compressing blocks of bytes with libzstd or liblz4, which are loaded
 * when they are first needed; store/unpack.h and codec/lz.h decompress.
 */
#ifndef HR_STORE_COMPRESS_H
#define HR_STORE_COMPRESS_H

#include "headrace/base.h"

/* The numbers are those of docs/formats/container.md. */
enum hr_compression { HR_COMPRESSION_NONE, HR_COMPRESSION_ZSTD, HR_COMPRESSION_LZ4 };

#define HR_ZSTD_LEVEL_MAX 19 /* higher ones need more memory to decompress */
#define HR_LZ4_LEVEL_MAX 12

struct hr_compressor; /* used by one thread at a time */

/* `level`: 1 to the kind's LEVEL_MAX. HR_ERR_UNSUPPORTED if the library is not there, or
 * the build has no zstd. */
HR_CHECK enum hr_err
hr__compressor_create(enum hr_compression kind, int level,
                      struct hr_compressor **ret_compressor, struct hr_error *reterr);
void hr__compressor_destroy(struct hr_compressor *compressor); /* NULL is fine */
enum hr_compression hr__compressor_kind(const struct hr_compressor *compressor);

/* A frame of zstd or a block of LZ4 with `data`, in memory that is valid until the next
 * call; *ret_bytes is 0 for data that is too long for one. One version of a library gives
 * equal data the same bytes. */
HR_CHECK enum hr_err
hr__compress(struct hr_compressor *compressor, const void *data, size_t bytes,
             const char **ret_packed, size_t *ret_bytes, struct hr_error *reterr);

/* Writes the version of the library, which is loaded. HR_ERR_UNSUPPORTED if it is not
 * installed, HR_ERR_STATE if the build has no zstd. */
HR_CHECK enum hr_err hr__zstd_version(char *text, size_t room, struct hr_error *reterr);
HR_CHECK enum hr_err hr__lz4_version(char *text, size_t room, struct hr_error *reterr);

#endif
