/*
 * headrace/engine.h - run a graph: plan it, iterate over its batches, save and restore
 * the place.
 *
 *     hr_iter_options_init(&options);
 *     hr_iter_open(graph, &options, &iter, &error);
 *     while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
 *         ... hr_batch_field(batch, 0) ...
 *         hr_batch_unref(batch);
 *     }                                  // HR_ERR_END: the epochs are over
 *     hr_iter_close(iter);
 */
#ifndef HR_ENGINE_H
#define HR_ENGINE_H

#include "headrace/buffer.h"
#include "headrace/graph.h"

HR_BEGIN_DECLS

enum hr_variant {
    HR_VARIANT_THREADS, /* workers beside the caller */
    HR_VARIANT_INLINE,  /* all work in the caller's hr_iter_next */
};

/* What a bad record leads to. */
enum hr_on_error {
    HR_ON_ERROR_FAIL,       /* hr_iter_next fails with the record's error */
    HR_ON_ERROR_SKIP,       /* the record is left out, counted, written to the ledger */
    HR_ON_ERROR_SUBSTITUTE, /* the next good record by number takes its place (same
                               position, deterministic) */
};

/* What is done when the records of an epoch cannot be shared evenly. */
enum hr_even {
    HR_EVEN_NONE,   /* some ranks get one record more */
    HR_EVEN_DROP,   /* the rest is left out */
    HR_EVEN_REPEAT, /* records from the beginning fill up */
};

struct hr_iter_options {
    uint64_t seed;
    int64_t epochs;      /* passes over the data; 0: without end */
    int64_t epoch_first; /* number of the first epoch, default 0 */
    int64_t records_max; /* stop after so many records in all; 0: no limit */
    int threads;         /* worker threads; 0: as many as the CPUs this process may use */
    enum hr_variant variant;
    bool ordered; /* batches in index order; false: as they are completed */
    bool fuse;    /* compose and fuse; false runs every node alone (for comparison) */
    uint64_t memory_bytes; /* budget for batches, read-ahead, scratch and what worker
                              processes share; 0: three batches of output (two where
                              they are large and made in processes) */
    uint64_t ahead_bytes;  /* of which file read-ahead; 0: chosen */
    enum hr_on_error on_error;
    int64_t errors_max; /* give up after so many bad records; 0: 1 + 1 % of the records,
                           at least 100 */
    const char *ledger; /* JSONL file of bad records, appended; NULL: none */
    const char *state;  /* JSON text of hr_iter_save to go on from; NULL: the beginning */
    bool trace;         /* record spans for hr_iter_trace */
    int64_t rank,
        world; /* of this consumer; 0, 0: as the graph says (order.shard), else 0 of 1 */
    enum hr_even even;    /* with rank and world */
    uint64_t reserved[8]; /* zero */
};

/* Defaults: seed 0, one epoch, ordered, fused, threads, fail. */
HR_API void hr_iter_options_init(struct hr_iter_options *options);

struct hr_iter;
struct hr_batch;

/* Freeze the graph if it is not yet, plan it, start workers. *ret_iter is for one thread
 * at a time. Options are copied. */
HR_API HR_CHECK enum hr_err
hr_iter_open(struct hr_graph *graph, const struct hr_iter_options *options,
             struct hr_iter **ret_iter, struct hr_error *reterr);

/* The next batch (one reference, the caller's), or HR_ERR_END, or the error of a record
 * or of the run; after an error other than END the iterator stays failed. Blocks.
 * HR_ERR_CANCELLED after hr_iter_cancel. Records of a graph without a batch op come as
 * batches of one. */
HR_API HR_CHECK enum hr_err
hr_iter_next(struct hr_iter *iter, struct hr_batch **ret_batch, struct hr_error *reterr);

/* As hr_iter_next, for at most about `timeout_ns` (work that was begun in this thread is
 * finished first): HR_OK and *ret_batch NULL when no batch came in that time. For callers
 * that must look at something else meanwhile, such as signals. */
HR_API HR_CHECK enum hr_err
hr_iter_next_for(struct hr_iter *iter, uint64_t timeout_ns, struct hr_batch **ret_batch,
                 struct hr_error *reterr);

/* Make a blocked or coming hr_iter_next return HR_ERR_CANCELLED soon. From any thread and
 * from signal handlers. */
HR_API void hr_iter_cancel(struct hr_iter *iter);

/* The long text about the error that hr_iter_next gave, from user code (a traceback);
 * "" when there is none. Valid until hr_iter_close. */
HR_API const char *hr_iter_detail(const struct hr_iter *iter);

/* Stop the run and wait up to `timeout_ns` until no thread works for it any more: threads
 * end after the record that they are at, a blocked hr_iter_next with HR_ERR_CANCELLED.
 * HR_ERR_LIMIT when the time is over; *reterr then names a thread that is still busy, and
 * where: its name, node, user code and record. May be called again, and from any thread,
 * until hr_iter_close. Called from the iterator's own user code it does not wait. */
HR_API HR_CHECK enum hr_err
hr_iter_stop(struct hr_iter *iter, uint64_t timeout_ns, struct hr_error *reterr);

/* Stop and free. Returns in bounded time: it waits up to 2 s for threads that are in user
 * code, or not at all after hr_iter_stop. A thread that is still there then is left
 * behind; it runs no further record, and the last one to leave frees the iterator and
 * drops its reference to the graph, so that the code's `release` is called after its last
 * `call`. Batches stay valid. NULL is fine. */
HR_API void hr_iter_close(struct hr_iter *iter);

/* Where the consumer stands, after the last batch that hr_iter_next gave: a small JSON
 * object; hr_free() it. Give it as options.state to go on behind that batch, with any
 * number of threads, and any rank and world when all ranks stood at the same step; where
 * that is not enough it is refused, and hr_state_merge makes one of those of all ranks.
 * HR_ERR_UNSUPPORTED when batches come as completed: then there is no one place. */
HR_API HR_CHECK enum hr_err
hr_iter_save(const struct hr_iter *iter, char **ret_json, struct hr_error *reterr);

/* One state of the states that all ranks of a world saved at the same step, in any order:
 * for graphs whose ranks stand at different places then, because they filter or expand,
 * or bad records were skipped. Ranks of any world go on from it, and what was done ahead
 * of the hindmost is left out. A small JSON object; hr_free() it. HR_ERR_STATE when the
 * states do not belong together, or the graph ties them to their ranks. */
HR_API HR_CHECK enum hr_err hr_state_merge(const char *const *states, size_t count,
                                           char **ret_json, struct hr_error *reterr);

/* ---- batches ---- */

/* A field of a batch. The memory lives as long as the batch. */
struct hr_field_view {
    const char *name;
    enum hr_dtype dtype; /* HR_DTYPE_NONE: byte strings */
    int ndim;            /* dims[0] is the number of records */
    int64_t dims[HR_MAX_DIMS];
    int64_t strides[HR_MAX_DIMS]; /* in bytes */
    const void *data;
    size_t bytes;
    const int64_t *offsets; /* ragged and strings: dims[0] + 1 offsets, in elements or
                               bytes; else NULL */
    struct hr_buffer
        *buffer; /* what holds the memory; take a reference to keep it beyond the batch */
};

/* Add or drop a reference; the last one gives the memory back to the iterator's pool.
 * NULL is fine for unref. Safe from any thread, also when the iterator is closed. */
HR_API struct hr_batch *hr_batch_ref(struct hr_batch *batch);
HR_API void hr_batch_unref(struct hr_batch *batch);

/* Its records, their epoch, and its fields: by number, or by name (HR_ERR_NOT_FOUND). The
 * views hold no reference. HR_ERR_RANGE beyond the last field. */
HR_API int64_t hr_batch_records(const struct hr_batch *batch);
HR_API int64_t hr_batch_epoch(const struct hr_batch *batch);
HR_API size_t hr_batch_field_count(const struct hr_batch *batch);
HR_API HR_CHECK enum hr_err
hr_batch_field(const struct hr_batch *batch, size_t at, struct hr_field_view *ret_view);
HR_API HR_CHECK enum hr_err hr_batch_find(const struct hr_batch *batch, const char *name,
                                          struct hr_field_view *ret_view);

/* ---- what happened ---- */

struct hr_node_stats {
    const char *node, *op;
    uint64_t records, errors,
        dropped; /* records that entered; that failed; that a filter dropped */
    uint64_t bytes_in, bytes_out;
    double seconds;         /* of CPU in this node, estimated from timed records */
    const char *fused_into; /* name of the first node of its composed job or stage; itself
                               when alone */
    /* What the node keeps of what it learnt (image.decode: places inside photos at which
     * decoding can begin), in memory and in its file; how often a record's was there and
     * was not, since the graph was opened. 0 for nodes that keep nothing. */
    uint64_t kept_entries, kept_bytes, kept_hits, kept_misses;
};

struct hr_iter_stats {
    uint64_t records, batches, bytes; /* delivered */
    uint64_t errors, substituted;
    double seconds;                           /* since open */
    double first_batch_seconds;               /* since open; 0 before it */
    double cpu_seconds;                       /* of the workers */
    double wait_seconds;                      /* hr_iter_next waited for a batch */
    double blocked_seconds;                   /* workers waited for the consumer */
    uint64_t memory_bytes, memory_peak_bytes; /* of the budget */
    uint64_t batches_ready;                   /* waiting for the consumer now */
    int64_t epoch,
        epoch_records;  /* epoch that is running, records it has in all (-1: unknown) */
    int64_t epoch_done; /* records of it delivered */
    int threads;
    size_t node_count;
};
HR_API void hr_iter_stats(const struct hr_iter *iter, struct hr_iter_stats *ret_stats);
HR_API HR_CHECK enum hr_err hr_iter_node_stats(const struct hr_iter *iter, size_t at,
                                               struct hr_node_stats *ret_stats);

/* The spans recorded so far as Chrome/Perfetto trace JSON; hr_free() it. */
HR_API HR_CHECK enum hr_err
hr_iter_trace(const struct hr_iter *iter, char **ret_json, struct hr_error *reterr);

/* The plan in words for people, or as JSON: stages, what is composed into what, where
 * pixels are made, and why; hr_free() it. Opens nothing but the graph's sources. */
HR_API HR_CHECK enum hr_err
hr_graph_explain(struct hr_graph *graph, const struct hr_iter_options *options, bool json,
                 char **ret_text, struct hr_error *reterr);

HR_END_DECLS

#endif
