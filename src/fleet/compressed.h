/*
 * fleet/compressed.h - the bodies of COMPRESSED frames: a parcel in blocks of 1 MiB, each
 * compressed by itself, or as it is where that is not larger.
 * docs/formats/parcel.md has the bytes.
 */
#ifndef HR_FLEET_COMPRESSED_H
#define HR_FLEET_COMPRESSED_H

#include "fleet/parcel.h"
#include "store/compress.h"
#include "svc/compression.h"

#define HR_COMPRESSED_BLOCK ((size_t)1 << 20)

/* ---- the worker: one thread at a time ---- */

struct hr_squeezer {
    struct hr_compressor *compressors[HR_COMPRESSION_KINDS]; /* made when first needed */
    char *block;                                             /* that lies in pieces */
};

/* The kinds that this process can write, or read; none of it always. */
unsigned hr__compressed_writes(void);
unsigned hr__compressed_reads(void);

void hr__squeezer_finish(struct hr_squeezer *squeezer);

/* Compresses a parcel; a buffer of the pool, which the caller owns, with the body. No
 * buffer if the body would not be smaller. HR_ERR_MEMORY, HR_ERR_UNSUPPORTED (the
 * library is gone). */
HR_CHECK enum hr_err
hr__compressed_write(struct hr_squeezer *squeezer, enum hr_compression kind,
                     const struct hr_parcel_pieces *pieces, struct hr_pool *pool,
                     struct hr_buffer **ret_body, struct hr_error *reterr);

/* Compresses some of the parcel and decompresses it again, to see what that costs.
 * HR_ERR_MEMORY, HR_ERR_UNSUPPORTED. */
HR_CHECK enum hr_err
hr__compressed_sample(struct hr_squeezer *squeezer, enum hr_compression kind,
                      const struct hr_parcel_pieces *pieces,
                      struct hr_compression_cost *ret_cost, struct hr_error *reterr);

/* ---- the client ---- */

/* The parcel in a body, as a buffer that the caller owns: of at most `bytes_max` bytes,
 * which is checked before anything is allocated. HR_ERR_FORMAT, HR_ERR_LIMIT,
 * HR_ERR_UNSUPPORTED (a kind that this process does not read), HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__compressed_read(const struct hr_buffer *body, size_t bytes_max, struct hr_pool *pool,
                    struct hr_buffer **ret_parcel, struct hr_error *reterr);

#endif
