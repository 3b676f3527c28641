/*
 * store/records.h - files of records: Headrace's own container.
 *
 * A file is a run of frames: the schema, records, an index, an end. Frames begin at
 * multiples of 64 bytes and have checksums of their own, and nothing that was written is
 * ever written again: what is appended follows the end, with an index and an end of its
 * own. docs/formats/container.md has the bytes. Contents are not interpreted here: what a
 * schema and a record are is wire/'s business.
 */
#ifndef HR_STORE_RECORDS_H
#define HR_STORE_RECORDS_H

#include "core/str.h"
#include "store/compress.h"
#include "store/shard_index.h"
#include "store/unpack.h"

#define HR_RECORDS_ENDING ".records"
#define HR_RECORDS_MAGIC "HRFRAME" /* with its NUL */
#define HR_RECORDS_ALIGN ((size_t)64)
#define HR_RECORDS_VERSION 1u
#define HR_RECORDS_SCHEMA_MAX ((size_t)64 << 20) /* bytes, with the names of classes */

enum hr_records_kind {
    HR_RECORDS_SCHEMA = 1,
    HR_RECORDS_RECORD,
    HR_RECORDS_INDEX,
    HR_RECORDS_END,
};

/* The head of a frame: the format, little-endian. `bytes` bytes follow it. */
struct hr_records_head {
    char magic[8];
    uint32_t version;
    uint8_t kind, compression; /* enum hr_records_kind, enum hr_compression */
    uint16_t zero;
    uint64_t number; /* RECORD: its own; INDEX: of the first it lists; END: of records */
    uint64_t bytes;  /* as stored, a multiple of HR_RECORDS_ALIGN */
    uint64_t raw_bytes; /* without compression and the zeros that fill them up */
    uint64_t link;      /* INDEX: where the index before it is; END: the last; 0: none */
    uint64_t checksum;  /* XXH3-64 of the bytes that follow the head */
    uint64_t head_checksum; /* XXH3-64 of the head up to here */
};

/* An entry of an index. */
struct hr_records_entry {
    uint64_t at;     /* of the frame */
    uint32_t blocks; /* frame and head, in HR_RECORDS_ALIGN bytes */
    uint32_t check;  /* low half of head.checksum */
};

/* ---- reading ---- */

/* The head at `data`. HR_ERR_FORMAT, HR_ERR_UNSUPPORTED for another version; messages
 * name no file. */
HR_CHECK enum hr_err
hr__records_head_get(const void *data, struct hr_records_head *ret_head,
                     struct hr_error *reterr);

/* What a record holds: `bytes` bytes at `data`; or, if `packed_bytes` is not 0, as many
 * that unpack to `bytes`: a frame of zstd, which may end before them, or a block of LZ4.
 */
struct hr_records_contents {
    const char *data;
    size_t bytes, packed_bytes;
    enum hr_compression compression;
};

/*
 * Checks a record as the scan has found it: `bytes` bytes, aligned to 8. HR_ERR_FORMAT,
 * HR_ERR_UNSUPPORTED for a way of compression that is not known; messages name no file.
 */
HR_CHECK enum hr_err
hr__records_check(const void *frame, uint64_t bytes,
                  struct hr_records_contents *ret_contents, struct hr_error *reterr);

/* Unpacks contents of zstd to `to`, which has room for contents->bytes. `unpack` is one
 * for zstd. Those of LZ4 are for hr__lz4_unpack() (codec/lz.h).
 * HR_ERR_FORMAT if they do not unpack to as many. */
HR_CHECK enum hr_err
hr__records_unpack(struct hr_unpack *unpack, const struct hr_records_contents *contents,
                   void *to, struct hr_error *reterr);

/* The bytes of a file's schema: from its beginning, or from its index if those are
 * damaged (*ret_damaged). *schema is initialised by the caller. Messages name the file.
 */
HR_CHECK enum hr_err hr__records_schema(struct hr_window *window, struct hr_str *schema,
                                        bool *ret_damaged, struct hr_error *reterr);

/*
 * Finds the records of a file, for hr__shard_index_open(): by its indexes; if those are
 * missing or damaged, by the heads of all frames. What lies between a damaged head and
 * the next that is whole is a record of its own, so that reading it reports the damage; a
 * file without an end has one more record, which says so. Hashes sizes and checksums, so
 * the index's identity is that of the contents. `user` is a struct hr_records_scan.
 */
struct hr_records_scan {
    const struct hr_str *schema; /* each file must have this one */
    uint64_t damaged; /* counts files whose schema or index is; nothing is lost by that */
};
HR_CHECK enum hr_err hr__records_scan(struct hr_shard_scan *scan);

/* A run of frames, from the schema to an end. */
struct hr_records_whole {
    uint64_t bytes, records, index; /* index: where the last one is; 0: there is none */
};

/*
 * Checks every byte of a file whose first `bytes` bytes (0: all) are to end with an end:
 * what may be appended to. HR_ERR_FORMAT says which byte is damaged or that the end is
 * missing, HR_ERR_TYPE that the schema is another; messages name the file.
 */
HR_CHECK enum hr_err
hr__records_verify(struct hr_window *window, const struct hr_str *schema, uint64_t bytes,
                   struct hr_records_whole *ret_whole, struct hr_error *reterr);

/* ---- writing ---- */

struct hr_records_writer;

/* Begins a new file, which appears under its name when it is complete. Records are
 * compressed by `compressor` where that saves space; NULL: none is. It is the caller's,
 * and outlives the writer. */
HR_CHECK enum hr_err
hr__records_create(const char *path, const void *schema, size_t schema_bytes,
                   struct hr_compressor *compressor,
                   struct hr_records_writer **ret_writer, struct hr_error *reterr);

/* The same for a file that begins with what is whole of the file at `path`; that one
 * stays as it is until the new one takes its name. */
HR_CHECK enum hr_err
hr__records_extend(const char *path, const struct hr_records_whole *whole,
                   const void *schema, size_t schema_bytes,
                   struct hr_compressor *compressor,
                   struct hr_records_writer **ret_writer, struct hr_error *reterr);

/* Bytes of the file so far, without its index. */
uint64_t hr__records_written(const struct hr_records_writer *writer);

/* Adds a record: a multiple of HR_RECORDS_ALIGN bytes. HR_ERR_LIMIT from 256 GiB on. */
HR_CHECK enum hr_err hr__records_add(struct hr_records_writer *writer, const void *data,
                                     size_t bytes, struct hr_error *reterr);

/* Writes index and end, flushes, renames; frees the writer, also on failure. *ret_bytes:
 * those of the whole file. */
HR_CHECK enum hr_err hr__records_commit(struct hr_records_writer *writer,
                                        uint64_t *ret_bytes, struct hr_error *reterr);
void hr__records_abort(struct hr_records_writer *writer); /* NULL is fine */

#endif
