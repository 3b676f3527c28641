/*
 * core/crc32c.h - CRC-32C (Castagnoli), as in iSCSI, ext4 and TFRecord.
 */
#ifndef HR_CORE_CRC32C_H
#define HR_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of bytes whose beginning has the CRC `crc`; 0 for none. */
uint32_t hr__crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
