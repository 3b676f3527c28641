/*
 * api/pack_format.h - a shard being written, in one of the formats of hr_pack().
 */
#ifndef HR_API_PACK_FORMAT_H
#define HR_API_PACK_FORMAT_H

#include "headrace/pack.h"
#include "op/schema.h"
#include "op/value.h"
#include "store/records.h"
#include "wire/record.h"

struct hr_pack_shard;

struct hr_pack_class {
    const char *name, *ending; /* "tar", ".tar" */
    /* HR_ERR_UNSUPPORTED if it cannot hold these fields. */
    enum hr_err (*check)(const struct hr_schema *schema, struct hr_error *reterr);
    /* Begins a shard with what is kept of the file there, if anything. */
    enum hr_err (*open)(struct hr_pack_shard *shard, const char *path,
                        struct hr_error *reterr);
    /* Sets `kept` to the first `bytes` bytes of a shard, 0: to all of it, after checking
     * them. NULL: nothing can be added to a shard. */
    enum hr_err (*keep)(struct hr_pack_shard *shard, const char *path, uint64_t bytes,
                        struct hr_error *reterr);
    /* Record `number` of the data set: a value for each field. */
    enum hr_err (*add)(struct hr_pack_shard *shard, uint64_t number,
                       struct hr_value *values, struct hr_error *reterr);
    /* Each ends the shard; abort may follow any failure but commit's. */
    enum hr_err (*commit)(struct hr_pack_shard *shard, struct hr_error *reterr);
    void (*abort)(struct hr_pack_shard *shard);
};
extern const struct hr_pack_class hr__pack_records, hr__pack_tar, hr__pack_tfrecord;

/* Zeroed at first; hr__pack_shard_finish() at last. */
struct hr_pack_shard {
    const struct hr_schema *schema;
    uint64_t bytes; /* so far */
    bool open;
    /* RECORDS */
    struct hr_records_whole kept; /* bytes 0: nothing */
    struct hr_wire_writer wire;
    struct hr_str schema_text; /* what the first frame holds */
    struct hr_records_writer *records;
    struct hr_compressor *compressor; /* or NULL */
    void *block;                      /* a record; aligned */
    size_t room;
    /* TAR, TFRECORD */
    struct hr_file_writer *file;
};

void hr__pack_shard_finish(struct hr_pack_shard *shard);

#endif
