/*
 * codec/lz.h - blocks of Snappy and LZ4, from bytes to bytes.
 */
#ifndef HR_CODEC_LZ_H
#define HR_CODEC_LZ_H

#include "headrace/base.h"

/* Bytes that may be written after the end of the output. */
#define HR_LZ_SLACK 32

/* Decompresses a block that holds exactly `room` bytes; `to` has HR_LZ_SLACK more. False
 * if the block is damaged; then `to` has any bytes. */
HR_CHECK bool hr__snappy_unpack(const void *data, size_t bytes, void *to, size_t room);
HR_CHECK bool hr__lz4_unpack(const void *data, size_t bytes, void *to, size_t room);

#endif
