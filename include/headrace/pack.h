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
    int zstd_level;         /* HR_PACK_RECORDS: 1 to 19: records are compressed where that
                               saves space; 0: they are not. Equal files need an equal
                               version of libzstd then */
    hr_progress_fn
        *progress; /* called with records; `all` is 0 if not known. NULL: none */
    void *user;
    bool append;          /* add to the shards that are there */
    int lz4_level;        /* HR_PACK_RECORDS: 1 to 12: the same by LZ4, which unpacks
                             faster and saves less; one of both levels is 0 */
    uint64_t reserved[7]; /* zero */
};

/* Defaults: 256 MiB, the container. */
HR_API void hr_pack_options_init(struct hr_pack_options *options);

struct hr_pack_result {
    uint64_t shards, records, bytes; /* of all shards, those of earlier calls included */
    uint64_t records_now;            /* written by this call */
    uint64_t errors;          /* bad records, skipped or substituted, of this call of
                                 hr_pack(); a packer has 0: its iterator counts them */
    bool resumed;             /* an earlier call had begun */
    uint64_t records_earlier; /* of `records`, those that were there before an append */
    uint64_t reserved[3];     /* zero */
};

/*
 * Runs the graph, which must end in records, not batches, and writes them in order.
 * `options` are those of hr_iter_open; batches must be ordered. Equal graphs, options and
 * shard sizes give equal files, whatever the number of threads.
 *
 * Each shard appears under its name when it is complete; PREFIX.json then says how far
 * the work has got. If a call was stopped, by `progress` (HR_ERR_CANCELLED), an error or
 * a kill, the same call continues after the last complete shard. HR_ERR_STATE if the
 * folder holds something else under that prefix, or other work is writing it;
 * HR_ERR_UNSUPPORTED if the format cannot hold the fields, or there is no zstd or LZ4;
 * HR_ERR_ARGUMENT. *ret_result is set on success and when stopped.
 *
 * With `append` the records follow those that are there, which may be none: in the last
 * shard, if the container has room in it, then in further shards. They must have the same
 * fields (HR_ERR_TYPE); shard sizes and compression may differ. The last shard is read
 * and must be whole (HR_ERR_FORMAT), and the work before must be finished (HR_ERR_STATE).
 * No file is changed in place: whatever happens, the older records can be read. After a
 * kill the same call continues, with `append` or without. Once all is written, a call
 * with `append` appends the records once more, and one without does nothing. One process
 * at a time may write under a prefix.
 */
HR_API HR_CHECK enum hr_err
hr_pack(struct hr_graph *graph, const struct hr_iter_options *options,
        const struct hr_pack_options *pack, struct hr_pack_result *ret_result,
        struct hr_error *reterr);

/*
 * The same for records of an iterator that the caller runs. One thread at a time.
 *
 *     hr_packer_open(graph, &options, &pack, &packer, &error);
 *     options.state = hr_packer_state(packer);
 *     if (!hr_packer_complete(packer))
 *         hr_iter_open(graph, &options, &iter, &error);
 *     while (hr_iter_next(iter, &batch, &error) == HR_OK) {
 *         hr_packer_add(packer, batch, &mark, &error);
 *         if (mark)
 *             hr_packer_mark(packer, state = hr_iter_save(iter ...), &error);
 *     }
 *     hr_packer_finish(packer, &error);
 *     hr_packer_close(packer);
 */
struct hr_packer;

/* Opens the folder as hr_pack() does; `options` and `pack` are not kept, and
 * pack->progress is not called. */
HR_API HR_CHECK enum hr_err
hr_packer_open(struct hr_graph *graph, const struct hr_iter_options *options,
               const struct hr_pack_options *pack, struct hr_packer **ret_packer,
               struct hr_error *reterr);

/* Where the iterator must start; NULL: at the beginning. The packer's, until it is
 * closed. */
HR_API const char *hr_packer_state(const struct hr_packer *packer);

/* Whether nothing is left to do. */
HR_API bool hr_packer_complete(const struct hr_packer *packer);

/* Writes the iterator's next batch, a record. *ret_mark is set when that ended a shard:
 * then hr_packer_mark() comes first, with the state of the iterator. HR_ERR_STATE if it
 * did not come or nothing is left to do. After any other failure: close. */
HR_API HR_CHECK enum hr_err
hr_packer_add(struct hr_packer *packer, const struct hr_batch *batch, bool *ret_mark,
              struct hr_error *reterr);
HR_API HR_CHECK enum hr_err
hr_packer_mark(struct hr_packer *packer, const char *state, struct hr_error *reterr);

/* All records have been added. */
HR_API HR_CHECK enum hr_err
hr_packer_finish(struct hr_packer *packer, struct hr_error *reterr);

/* What is written so far; records of a shard that has not ended do not count, but for
 * records_now. */
HR_API void
hr_packer_result(const struct hr_packer *packer, struct hr_pack_result *ret_result);

/* Drops a shard that has not ended. NULL is allowed. */
HR_API void hr_packer_close(struct hr_packer *packer);

HR_END_DECLS

#endif
