/*
 * store/tfrecord.h - TFRecord files.
 *
 * A record is its length (8 bytes, little-endian), the masked CRC-32C of those, the data,
 * and the masked CRC-32C of the data (tensorflow/core/lib/io/record_writer.h).
 */
#ifndef HR_STORE_TFRECORD_H
#define HR_STORE_TFRECORD_H

#include "store/shard_index.h"

#define HR_TFRECORD_HEAD 12 /* bytes before the data */
#define HR_TFRECORD_TAIL 4  /* and after it */

/*
 * Finds the records of a file, for hr__shard_index_open(): from length to checksum.
 * Hashes lengths and checksums, so the index's identity is that of the contents. What
 * lies between a damaged length and the next one that has the right checksum is a record
 * of its own, so that reading it reports the damage. HR_ERR_FORMAT for a file without a
 * record.
 */
HR_CHECK enum hr_err hr__tfrecord_scan(struct hr_shard_scan *scan);

/* Whether a file begins with a record's length, and its checksum is right. */
bool hr__tfrecord_begins(const void *data, size_t bytes);

/* Checks a record of `bytes` bytes as the scan has found it. Returns what is wrong, or
 * NULL; *ret_data are then its data. */
const char *hr__tfrecord_check(const void *record, uint64_t bytes, const char **ret_data,
                               size_t *ret_bytes);

/* What comes before and after the data of a record. */
void hr__tfrecord_frame(const void *data, size_t bytes, char ret_head[HR_TFRECORD_HEAD],
                        char ret_tail[HR_TFRECORD_TAIL]);

#endif
