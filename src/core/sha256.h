/*
 * core/sha256.h - SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for signatures of requests.
 */
#ifndef HR_CORE_SHA256_H
#define HR_CORE_SHA256_H

#include <stddef.h>

#define HR_SHA256_BYTES 32
#define HR_SHA256_TEXT_BYTES 65 /* 64 hex digits and the terminating NUL */

void hr__sha256(const void *data, size_t bytes, unsigned char ret_hash[HR_SHA256_BYTES]);
void hr__hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                     unsigned char ret_hash[HR_SHA256_BYTES]);
/* In lower case. */
void hr__sha256_text(const unsigned char hash[HR_SHA256_BYTES],
                     char ret_text[HR_SHA256_TEXT_BYTES]);

#endif
