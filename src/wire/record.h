/*
 * wire/record.h - records as bytes: with their identity and schema, readable in place.
 *
 * The one form in which records cross a cut: to a remote worker, into a cache, into a
 * container; worker processes use the same layout, values and identities inside memory
 * of their own (proc/). A block holds any number of records of one schema, which it
 * brings along or names by its hash. Pure functions on bytes: no file, no socket, no
 * compression, no checksum; those belong to whatever carries the block.
 * docs/formats/record.md has the bytes.
 */
#ifndef HR_WIRE_RECORD_H
#define HR_WIRE_RECORD_H

#include "core/hash.h"
#include "wire/layout.h"
#include "wire/schema.h"

#define HR_WIRE_VERSION 1u

/* A record of a schema. Values are made, or described by a class that can be encoded. */
struct hr_wire_record {
    struct hr_record_id id;
    struct hr_value *values; /* one per field, in the schema's order */
};

/* ---- writing ---- */

struct hr_wire_writer {
    const struct hr_schema *schema; /* borrowed */
    struct hr_str schema_bytes;
    struct hr_hash128 hash;
    bool schema_inside; /* blocks bring the schema along */
    struct hr_wire_layout layout;
    /* Set by the caller for a block of one record: contiguous tensors of at least
     * `far_min` bytes are not written. They follow what is, in order. */
    struct hr_wire_far *far; /* room for one per field; NULL: all is written */
    size_t far_min, far_count;
};

/* Whether a payload may be sent from where it lies: a contiguous tensor with an owner, of
 * at least `bytes_min` (more than HR_WIRE_COLUMN_MAX) bytes. */
bool hr__wire_is_far(const struct hr_value *value, size_t bytes_min);

/* HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__wire_writer_init(struct hr_wire_writer *writer, const struct hr_schema *schema,
                     bool schema_inside, struct hr_error *reterr);
void hr__wire_writer_finish(struct hr_wire_writer *writer);

/* Bytes of a block of these records. */
size_t hr__wire_block_bytes(struct hr_wire_writer *writer,
                            const struct hr_wire_record *records, size_t count);

/* Writes a block to `to`, aligned to HR_WIRE_ALIGN, which has room for
 * hr__wire_block_bytes. HR_ERR_TYPE when a value is not what the schema says. */
HR_CHECK enum hr_err
hr__wire_block_write(struct hr_wire_writer *writer, const struct hr_wire_record *records,
                     size_t count, void *to, struct hr_error *reterr);

/* ---- reading ---- */

struct hr_wire_block {
    struct hr_wire_region region;
    struct hr_buffer *owner; /* a reference: values hold one each; NULL: borrowed bytes */
    struct hr_schema *schema;
    const struct hr_field *fields[HR_SCHEMA_FIELDS_MAX];
    struct hr_wire_layout layout;
    size_t count, id_bytes;
};

/*
 * Opens a block of `bytes` bytes at `data`, aligned to HR_WIRE_ALIGN; a longer run of
 * bytes is refused as well. `owner` (or NULL) keeps them alive. `known`: the schema of
 * blocks that bring none (or NULL); those must name its hash. `arena` holds what values
 * need beyond the block. HR_ERR_FORMAT for anything malformed, HR_ERR_UNSUPPORTED for
 * another version. Close it also after failure.
 */
HR_CHECK enum hr_err
hr__wire_block_open(struct hr_wire_block *block, const void *data, size_t bytes,
                    struct hr_buffer *owner, const struct hr_schema *known,
                    struct hr_arena *arena, uint32_t nodes, struct hr_error *reterr);
/* The same for a block that brings its schema and whose last payloads lie elsewhere: at
 * `data` are `bytes` bytes, and `far` continues them without a gap. `far` outlives the
 * block. */
HR_CHECK enum hr_err
hr__wire_block_open_far(struct hr_wire_block *block, const void *data, size_t bytes,
                        const struct hr_wire_far *far, size_t far_count,
                        struct hr_buffer *owner, struct hr_arena *arena,
                        struct hr_error *reterr);
void hr__wire_block_close(struct hr_wire_block *block);

/* Record `at`: its identity, and a value per field, which `values` has room for. They are
 * valid while the block's bytes and arena are; clear them. On failure none is held. */
HR_CHECK enum hr_err hr__wire_block_get(const struct hr_wire_block *block, size_t at,
                                        struct hr_record_id *ret_id,
                                        struct hr_value *values, struct hr_error *reterr);

/* ---- single records of a known schema ---- */

/* Reads blocks of one record that bring no schema, as a container holds: nothing is
 * allocated per block. Read-only once made; any thread. */
#define HR_WIRE_LAYOUTS 2 /* identities take one or two times HR_WIRE_ALIGN */
struct hr_wire_reader {
    struct hr_hash128 hash;
    struct hr_wire_layout layouts[HR_WIRE_LAYOUTS];
};

/* The schema is borrowed. HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__wire_reader_init(struct hr_wire_reader *reader, const struct hr_schema *schema,
                     struct hr_error *reterr);
void hr__wire_reader_finish(struct hr_wire_reader *reader);

struct hr_wire_single {
    struct hr_wire_region region;
    const struct hr_wire_layout *layout;
};

/* Opens a block; data, bytes and errors as in hr__wire_block_open. Deferred values are
 * refused. */
HR_CHECK enum hr_err
hr__wire_reader_open(const struct hr_wire_reader *reader, const void *data, size_t bytes,
                     struct hr_arena *arena, struct hr_wire_single *ret_single,
                     struct hr_error *reterr);

/*
 * Where the value of a field lies in a block of `bytes` bytes: an item of a column, or a
 * byte string. `front` has the first hr__wire_reader_front() bytes of the block, or all
 * if there are fewer. HR_ERR_FORMAT, also for other values.
 */
size_t hr__wire_reader_front(const struct hr_wire_reader *reader);
HR_CHECK enum hr_err
hr__wire_reader_locate(const struct hr_wire_reader *reader, const void *front,
                       size_t bytes, size_t field, uint64_t *ret_at, uint64_t *ret_bytes,
                       struct hr_error *reterr);

/* The value of a field. It is shared, owns nothing, and is valid while the block's bytes
 * and arena are. */
HR_CHECK enum hr_err
hr__wire_single_get(const struct hr_wire_single *single, size_t field,
                    struct hr_value *ret_value, struct hr_error *reterr);

#endif
