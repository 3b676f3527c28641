/*
 * headrace/pack.h - writes the records of a graph into shards.
 *
 *     struct hr_pack_options pack;
 *     hr_pack_options_init(&pack);
 *     pack.folder = "packed";
 *     hr_pack(graph, &options, &pack, &result, &error);   // "packed/part-000000.records"
 *
 * source.records, source.tar and source.tfrecord read them.
 */
#ifndef HR_PACK_H
#define HR_PACK_H

#include "headrace/dataset.h"
#include "headrace/engine.h"

HR_BEGIN_DECLS

enum hr_pack_format {
    HR_PACK_RECORDS,  /* docs/formats/container.md: all fields with their types */
    HR_PACK_TAR,      /* WebDataset's convention: byte strings and whole numbers; a member
                         is named after its record's number and its field, "cls" for
                         numbers: "00000017.label.cls" */
    HR_PACK_TFRECORD, /* graphs with one field, a byte string */
};

struct hr_pack_options {
    enum hr_pack_format format;
    const char *folder;     /* must exist */
    const char *prefix;     /* shards are PREFIX-000000.records and so on; NULL: "part" */
    uint64_t shard_bytes;   /* a shard ends with the record that makes it as large; 0: 256
                               MiB */
    uint64_t shard_records; /* or with this many records; 0: no limit */
    hr_progress_fn
        *progress; /* called with records; `all` is 0 if not known. NULL: none */
    void *user;
    uint64_t reserved[8]; /* zero */
};

/* Defaults: 256 MiB, the container. */
HR_API void hr_pack_options_init(struct hr_pack_options *options);

struct hr_pack_result {
    uint64_t shards, records, bytes; /* of all shards, those of earlier calls included */
    uint64_t records_now;            /* written by this call */
    uint64_t errors;      /* bad records, skipped or substituted, of this call */
    bool resumed;         /* an earlier call had begun */
    uint64_t reserved[4]; /* zero */
};

/*
 * Runs the graph, which must end in records, not batches, and writes them in order.
 * `options` are those of hr_iter_open; batches must be ordered. Equal graphs, options and
 * shard sizes give equal files, whatever the number of threads.
 *
 * Each shard appears under its name when it is complete; PREFIX.json then says how far
 * the work has got. If a call was stopped, by `progress` (HR_ERR_CANCELLED), an error or
 * a kill, the same call continues after the last complete shard. HR_ERR_STATE if the
 * folder holds something else under that prefix; HR_ERR_UNSUPPORTED if the format cannot
 * hold the fields; HR_ERR_ARGUMENT. *ret_result is set on success and when stopped.
 */
HR_API HR_CHECK enum hr_err
hr_pack(struct hr_graph *graph, const struct hr_iter_options *options,
        const struct hr_pack_options *pack, struct hr_pack_result *ret_result,
        struct hr_error *reterr);

HR_END_DECLS

#endif
