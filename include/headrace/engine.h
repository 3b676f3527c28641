/*
 * headrace/engine.h - run a graph: iterate over its batches, save and restore the
 * position.
 *
 *     hr_iter_options_init(&options);
 *     hr_iter_open(graph, &options, &iter, &error);
 *     while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
 *         ... hr_batch_field(batch, 0) ...
 *         hr_batch_unref(batch);
 *     }                                  // HR_ERR_END: all epochs are complete
 *     hr_iter_close(iter);
 */
#ifndef HR_ENGINE_H
#define HR_ENGINE_H

#include "headrace/buffer.h"
#include "headrace/graph.h"

HR_BEGIN_DECLS

enum hr_variant {
    HR_VARIANT_THREADS,   /* the engine starts threads of its own */
    HR_VARIANT_INLINE,    /* all work is done in the caller's hr_iter_next */
    HR_VARIANT_PROCESSES, /* as THREADS, with steps in worker processes where they
                             support it; needs hr_graph_code_host */
};

/* What to do on a bad record. */
enum hr_on_error {
    HR_ON_ERROR_FAIL, /* hr_iter_next fails with the record's error */
    HR_ON_ERROR_SKIP, /* the record is skipped, counted, and written to the ledger */
    HR_ON_ERROR_SUBSTITUTE, /* the next good record takes its place (same position,
                               deterministic) */
};

/* What to do if the ranks cannot have equal shares of an epoch. */
enum hr_even {
    HR_EVEN_NONE,   /* some ranks get one record more */
    HR_EVEN_DROP,   /* the remainder is dropped */
    HR_EVEN_REPEAT, /* shares are filled up with records from the beginning; rounds of
                       batch.bucket, with the last record of a bucket */
    HR_EVEN_PAD,    /* the same, and every batch has one more field, HR_PAD_FIELD: bool
                       [records], false for the records that only fill up a share. So all
                       ranks together deliver each record of the epoch once, in equally
                       many batches. Refused where that cannot be (HR_ERR_UNSUPPORTED):
                       after filters and expansions, with drop_last, and with
                       HR_ON_ERROR_SKIP, on more than one rank */
};
#define HR_PAD_FIELD "valid"

struct hr_iter_options {
    uint64_t seed;       /* below 2^63 */
    int64_t epochs;      /* number of epochs; 0: endless */
    int64_t epoch_first; /* number of the first epoch, default 0 */
    int64_t records_max; /* stop after this many records in total; 0: no limit */
    int threads;         /* number of threads; 0: the CPUs this process may use */
    enum hr_variant variant;
    bool ordered; /* deliver batches in order; false: as they complete */
    bool fuse;    /* compose nodes; false runs every node by itself (for comparison)
                     where that changes no byte: not after a decode in mode close or fast */
    uint64_t memory_bytes; /* budget for batches, read-ahead, scratch and worker
                              processes' shared memory; opening looks at up to 640 records
                              to divide it. 0: three batches of output (two if they are
                              large and made in processes), more if these hold fewer
                              than two records per thread */
    uint64_t ahead_bytes;  /* part of it for file read-ahead; 0: automatic */
    enum hr_on_error on_error;
    int64_t errors_max; /* fail after this many bad records; 0: 1 + 1 % of the records, at
                           least 100 */
    /* File to append bad records to, as lines of JSON in the order of records, each once
     * the consumer has passed it (docs/formats/ledger.md); NULL: none. */
    const char *ledger;
    const char *state; /* text from hr_iter_save to resume from; NULL: start */
    bool trace;        /* record spans for hr_iter_trace */
    int64_t rank,
        world; /* of this consumer; 0, 0: as in the graph (order.shard), else 0 of 1 */
    enum hr_even even; /* with rank and world */
    const char *plan;  /* text of hr_graph_plan, possibly edited; NULL: make one. Replaces
                          threads, variant, ordered, fuse, memory_bytes and
                          ahead_bytes, which are then ignored */
    const char *plan_name; /* its file, for messages; NULL: "plan" */
    /* hr_iter_next fails with HR_ERR_TIMEOUT, which names the user code and record that a
     * thread has been at longest, once it has waited this long for a batch; 0: waits for
     * ever. Needs threads; the consumer's thread then makes no batches itself. */
    uint64_t timeout_ns;
    /* Records per second that the run must make, with the fewest threads that can:
     * hr_iter_demand. 0: all threads work. */
    double demand;
    bool uncached; /* caches (flow.cache) are not used, to see what a run takes without */
    /* "host:port" of a dispatcher (headrace/service.h) whose workers make the batches, or
     * several with commas between them, of which the next one is used when one is gone;
     * NULL: this process does. The batches and states are the same; either resumes the
     * other. Workers make whole batches if batches can be made one by one; then threads
     * and variant are theirs, and memory_bytes bounds what is received and not taken.
     * Else (filters, expansions, packers, user code, a ledger, bad records that are
     * skipped) they make the records of the graph's first, one-to-one part, and this
     * process does the rest. HR_ERR_UNSUPPORTED if there is no such part. */
    const char *service;
    /* Name of the node up to which the workers run; NULL: as far as they can. It changes
     * no byte and no state. */
    const char *service_after;
    /* Name of the run there: a second client of a run that has this name and is equal is
     * refused while the first is alive. NULL: a random one. */
    const char *service_job;
    /* File with the token of the service (headrace/service.h); NULL: as the environment
     * says. */
    const char *service_token_file;
    /* TLS of the service (headrace/service.h): PEM files with the CAs that signed its
     * certificates, and with the own certificate and key if it asks for one; the name
     * that its certificates are for if that is not the host of the address. NULL: as the
     * environment says. */
    const char *service_tls_ca;
    const char *service_tls_name;
    const char *service_tls_cert;
    const char *service_tls_key;
    /* How workers may compress what they send over TCP: "auto" or NULL: as they like;
     * "none"; "lz4", "zstd": always so, unless they must not
     * (hr_worker_options.compress). */
    const char *service_compress;
    /* Name of this client among several consumers that share the run service_job: the
     * next batches go to the first one with room, and each batch is committed by exactly
     * one (hr_iter_commit). Must stay the same across restarts. NULL: the run belongs to
     * this client alone. The dispatcher must have a journal (headrace/service.h).
     * HR_ERR_UNSUPPORTED, naming the node, if batches cannot be made one by one. */
    const char *service_consumer;
    /* The run's share of the workers relative to other runs that compete for them: 1 to
     * 100. What a run leaves unused goes to the others. 0: 1. */
    int64_t service_weight;
};

/* As a demand: the records per second that the consumer takes while it does not wait. */
#define HR_DEMAND_CONSUMER (-1.0)

/* Defaults: seed 0, one epoch, ordered, fused, threads, fail. */
HR_API void hr_iter_options_init(struct hr_iter_options *options);

/* What a run delivers in an epoch; -1 where only the data tells (after filters and
 * expansions, and for sources without a length). Bad records that are skipped count, and
 * records_max does not. */
struct hr_epoch_size {
    int64_t records, batches; /* to this rank */
    int64_t batches_least;    /* to the rank that gets the fewest */
    bool shards;              /* the graph has an order.shard: this is its rank's share */
    bool ranks_differ; /* ranks may be at different places in an epoch when they have
                          made equally many steps */
};

/* Freezes the graph if necessary. Fails like hr_iter_open if the options are wrong or do
 * not fit the graph. */
HR_API HR_CHECK enum hr_err
hr_graph_epoch_size(struct hr_graph *graph, const struct hr_iter_options *options,
                    struct hr_epoch_size *ret_size, struct hr_error *reterr);

struct hr_iter;
struct hr_batch;

/* Freezes the graph if necessary, plans it and starts threads. *ret_iter may be used by
 * one thread at a time. Options are copied. */
HR_API HR_CHECK enum hr_err
hr_iter_open(struct hr_graph *graph, const struct hr_iter_options *options,
             struct hr_iter **ret_iter, struct hr_error *reterr);

/* Returns the next batch (the caller owns one reference), HR_ERR_END, or the error of a
 * record or of the run; after an error other than END the iterator stays failed. Blocks.
 * HR_ERR_CANCELLED after hr_iter_cancel. A graph without a batch op delivers batches of
 * one record. */
HR_API HR_CHECK enum hr_err
hr_iter_next(struct hr_iter *iter, struct hr_batch **ret_batch, struct hr_error *reterr);

/* Like hr_iter_next with a timeout: returns HR_OK and sets *ret_batch to NULL if no batch
 * arrived within about `timeout_ns` (work that this thread has started is finished
 * first; it starts none that reads over a network). For callers that must also handle
 * other events, such as signals. */
HR_API HR_CHECK enum hr_err
hr_iter_next_for(struct hr_iter *iter, uint64_t timeout_ns, struct hr_batch **ret_batch,
                 struct hr_error *reterr);

/* Makes a blocked or future hr_iter_next return HR_ERR_CANCELLED soon. May be called from
 * any thread and from signal handlers. */
HR_API void hr_iter_cancel(struct hr_iter *iter);

/* Changes the demand of a run (options.demand): records per second, HR_DEMAND_CONSUMER,
 * or 0 for none. The other threads sleep; batches, their order and states are the same
 * for any demand. May be called from any thread until hr_iter_close. */
HR_API HR_CHECK enum hr_err
hr_iter_demand(struct hr_iter *iter, double demand, struct hr_error *reterr);

/* From now on each record that is begun is record 0 of epoch 0 of a run with this seed
 * (below 2^63): what sources give as their record 0, and the numbers that are drawn for
 * it. So the same steps can be applied to one value after the other, which a source of
 * user code hands over, each with draws of its own. Needs HR_VARIANT_INLINE, a plan with
 * blocks of one record, so that none is begun before it is asked for, and no caches
 * (HR_ERR_UNSUPPORTED); after it no state can be saved. Not while another thread is in
 * hr_iter_next. */
HR_API HR_CHECK enum hr_err
hr_iter_seed(struct hr_iter *iter, uint64_t seed, struct hr_error *reterr);

/* The long text about the error that hr_iter_next returned, from user code (a traceback);
 * "" if there is none. Valid until hr_iter_close. */
HR_API const char *hr_iter_detail(const struct hr_iter *iter);

/* Stops the run and waits up to `timeout_ns` until no thread works for it any longer:
 * threads exit after their current record, and a blocked hr_iter_next returns
 * HR_ERR_CANCELLED. HR_ERR_LIMIT on timeout; *reterr then describes a thread that is
 * still busy: its name, node, user code and record. May be called repeatedly, from any
 * thread, until hr_iter_close. If called from the iterator's own user code it does not
 * wait. */
HR_API HR_CHECK enum hr_err
hr_iter_stop(struct hr_iter *iter, uint64_t timeout_ns, struct hr_error *reterr);

/* Stops the run and frees the iterator. Returns in bounded time: it waits up to 2 s for
 * threads that are in user code, or not at all after hr_iter_stop. Threads that are still
 * there continue without it but run no further record; the last one to exit frees the
 * iterator and drops its reference to the graph, so that the code's `release` is called
 * after its last `call`. Batches stay valid. NULL is allowed. */
HR_API void hr_iter_close(struct hr_iter *iter);

/* Returns the position just after the last batch that hr_iter_next returned, as a small
 * JSON object; free it with hr_free(). Pass it as options.state to resume after that
 * batch with any number of threads, and with any rank and world if all ranks saved at the
 * same step. Where one rank's state does not suffice for that, it is rejected;
 * hr_state_merge combines the states of all ranks. HR_ERR_UNSUPPORTED if batches are
 * delivered as they complete: then there is no single position. */
HR_API HR_CHECK enum hr_err
hr_iter_save(const struct hr_iter *iter, char **ret_json, struct hr_error *reterr);

/*
 * A run that is one of several consumers (options.service_consumer) commits what it has
 * consumed, so that trainer and dispatcher agree after any crash:
 *
 *     hr_iter_save(iter, &state, &error);
 *     ... write it aside, with the trainer's own state, and fsync ...
 *     hr_iter_commit(iter, UINT64_MAX, &error);
 *     ... rename it into place ...
 *
 * A trainer that starts again may have a checkpoint in place and another one aside: the
 * number that hr_iter_committed() returns is the one that counts. These functions wait
 * for the dispatcher up to `timeout_ns`, then return HR_ERR_TIMEOUT without a message;
 * call them again. HR_ERR_STATE in runs of another kind. Else they fail as hr_iter_next
 * does.
 *
 * Of what the other consumers take, and when, nothing is known: such a run has no order.
 */

/* The number of the consumer's checkpoint that counts; 0: it has none, and begins. */
HR_API HR_CHECK enum hr_err
hr_iter_committed(struct hr_iter *iter, uint64_t timeout_ns, uint64_t *ret_number,
                  struct hr_error *reterr);

/* As options.state, before the first batch. HR_ERR_STATE if it is another consumer's or
 * run's; hr_iter_next fails with HR_ERR_STATE if it is not the checkpoint that counts. */
HR_API HR_CHECK enum hr_err
hr_iter_resume(struct hr_iter *iter, const char *state, struct hr_error *reterr);

/* Whether no batch comes before the taken ones are committed: others may wait for that,
 * and hr_iter_next would fail with HR_ERR_STATE. Waits until that or a batch is there. */
HR_API HR_CHECK enum hr_err hr_iter_commit_due(struct hr_iter *iter, uint64_t timeout_ns,
                                               bool *ret_due, struct hr_error *reterr);

/* Commits all batches that hr_iter_next has returned. After HR_ERR_TIMEOUT the commit may
 * count or not: a further call waits on for the same. HR_ERR_CANCELLED if the consumer
 * was evicted or replaced: its process goes back to its committed checkpoint. */
HR_API HR_CHECK enum hr_err
hr_iter_commit(struct hr_iter *iter, uint64_t timeout_ns, struct hr_error *reterr);

/* Merges the states that all ranks of a world saved at the same step, in any order: for
 * graphs whose ranks are at different positions because they filter, expand or skip bad
 * records. Ranks of any world can resume from the result, which starts at the slowest
 * rank and lists what the others have already consumed. A small JSON object; free it with
 * hr_free(). HR_ERR_STATE if the states do not belong together, or if the graph binds
 * them to their ranks. */
HR_API HR_CHECK enum hr_err hr_state_merge(const char *const *states, size_t count,
                                           char **ret_json, struct hr_error *reterr);

/* ---- batches ---- */

#define HR_RAGGED_LEVELS 4

/* A field of a batch. The memory lives as long as the batch. */
struct hr_field_view {
    const char *name;
    enum hr_dtype dtype; /* HR_DTYPE_NONE: byte strings */
    bool text;           /* as in struct hr_field_info */
    int ndim;            /* dims[0] is the number of records */
    int64_t dims[HR_MAX_DIMS];
    int64_t strides[HR_MAX_DIMS]; /* in bytes */
    const void *data;
    size_t bytes;
    const int64_t *offsets; /* ragged fields and strings: splits[0]; else NULL */
    /* Ragged fields and strings: a batch of items that differ in size (levels 1), or of
     * batches of them (levels 2), and so on. splits[i] has one number more than level i
     * has items; item k of a level is [splits[k], splits[k + 1]) of the next level, of
     * the elements (bytes for strings) in the last. Level 0 has dims[0] items. Items of
     * two or more dimensions have their sizes in `shapes`, item_ndim for each. */
    int levels, item_ndim;
    const int64_t *splits[HR_RAGGED_LEVELS];
    const int64_t *shapes; /* NULL when item_ndim is at most 1 */
    struct hr_buffer
        *buffer; /* owner of the memory; take a reference to keep it after the batch */
};

/* Add or drop a reference; the last one returns the memory to the iterator's pool. NULL
 * is allowed for unref. Thread-safe, also after the iterator is closed. */
HR_API struct hr_batch *hr_batch_ref(struct hr_batch *batch);
HR_API void hr_batch_unref(struct hr_batch *batch);

/* Number of records, epoch, and fields by number (HR_ERR_RANGE past the last) or by name
 * (HR_ERR_NOT_FOUND). Views hold no reference. */
HR_API int64_t hr_batch_records(const struct hr_batch *batch);
HR_API int64_t hr_batch_epoch(const struct hr_batch *batch);
HR_API size_t hr_batch_field_count(const struct hr_batch *batch);
HR_API HR_CHECK enum hr_err
hr_batch_field(const struct hr_batch *batch, size_t at, struct hr_field_view *ret_view);
HR_API HR_CHECK enum hr_err hr_batch_find(const struct hr_batch *batch, const char *name,
                                          struct hr_field_view *ret_view);

/* ---- what happened ---- */

/*
 * Records and times are exact up to the last 100 us of each thread; how the time of a
 * stage divides over its nodes, bytes, variance and slope come from records sampled at
 * random. Times of all nodes together are the CPU time of all threads that worked for the
 * iterator and of its worker processes, without starting them.
 */
struct hr_node_stats {
    const char *node, *op;
    uint64_t records, errors,
        dropped;          /* records that entered; that failed; that a filter dropped */
    uint64_t records_out; /* children, batches; else records that went on */
    /* Bytes of the fields that are read, taken or about to be updated; of those that are
     * written or were updated. Of a value that is not made yet: what it would have. */
    uint64_t bytes_in, bytes_out;
    uint64_t bytes_read, bytes_taken, bytes_updated, bytes_written; /* updated: after */
    double seconds;        /* of CPU in this node, in worker processes included */
    double worker_seconds; /* of those, in worker processes */
    /* Of those, with records in order, which one thread at a time does: a batch op's
     * joining, not what threads write into its batches themselves. Of the graph's output
     * with what belongs to no record. 0 for nodes that do not see records in order. */
    double ordered_seconds;
    double wait_seconds; /* of wall time without CPU: files, processes, locks, cores */
    double record_ns, record_ns_variance; /* CPU time per record */
    double byte_ns; /* change of record_ns per byte of bytes_in (of bytes_out where that
                       is 0); 0 where sizes do not vary */
    const char *fused_into; /* name of the first node of its composed job or stage; itself
                               when alone */
    /* What the node keeps of what it learnt (image.decode: places inside photos at which
     * decoding can begin; flow.cache: records), in memory and in its file; how often a
     * record's was there and was not, since the graph was opened. 0 for nodes that keep
     * nothing. */
    uint64_t kept_entries, kept_bytes, kept_hits, kept_misses;
    char note[256]; /* what a user should know of it, such as a cache that is full; or ""
                     */
    uint64_t reserved[8]; /* zero */
};

struct hr_iter_stats {
    uint64_t records, batches, bytes; /* delivered */
    uint64_t errors, substituted;
    double seconds;             /* since open */
    double first_batch_seconds; /* since open; 0 before it */
    double cpu_seconds;         /* of this process, all its threads, and of the run's
                                   worker processes at work, since open */
    double worker_seconds;      /* of those, in worker processes */
    double wait_seconds;        /* time hr_iter_next waited for a batch */
    double blocked_seconds;     /* time the threads waited for the consumer */
    uint64_t memory_bytes, memory_peak_bytes; /* charged to the budget */
    uint64_t batches_ready;                   /* ready for the consumer now */
    int64_t epoch,
        epoch_records;  /* current epoch, and its number of records (-1: unknown) */
    int64_t epoch_done; /* records of it delivered so far */
    int threads;
    int threads_used;   /* fewer, while the others would queue for a lock of user code, or
                           while the demand needs fewer */
    int processes;      /* worker processes that the run may have: one for each thread and
                           run of steps that are there; 0: no step is */
    int processes_used; /* those of threads_used; the others get no records */
    int processes_alive; /* those that were started and have not ended: without records
                            they stay for half a minute or more */
    uint32_t thread_changes; /* for the demand, since it was first given */
    double demand;
    char threads_reason[128]; /* of the last change; "" before the first */
    size_t node_count;
    char waits_for[384]; /* with a service: why no batches can come now, such as a full
                            dispatcher or no worker; else "" */
    char cut[384]; /* with a service that makes only the graph's first part: up to which
                      node, and why no further; else "" */
};
HR_API void hr_iter_stats(const struct hr_iter *iter, struct hr_iter_stats *ret_stats);
HR_API HR_CHECK enum hr_err hr_iter_node_stats(const struct hr_iter *iter, size_t at,
                                               struct hr_node_stats *ret_stats);

/* The spans recorded so far as Chrome/Perfetto trace JSON; free with hr_free(). There is
 * one for each record in a stage, for each node's part of it, and for each time that the
 * consumer waits. Their "args" have the op, the thread, the number of the batch in the
 * run, if it is known when the record runs, and the record's identity. A thread records
 * up to 100000 of them. */
HR_API HR_CHECK enum hr_err
hr_iter_trace(const struct hr_iter *iter, char **ret_json, struct hr_error *reterr);

/* The plan that hr_iter_open would run with these options: stages, steps, where each
 * runs, how memory is divided, and why; free with hr_free(). Pass it as options.plan,
 * unchanged or edited; docs/formats/plan.md says what may be changed. Freezes the graph
 * if necessary, and opens only its sources. */
HR_API HR_CHECK enum hr_err
hr_graph_plan(struct hr_graph *graph, const struct hr_iter_options *options,
              enum hr_graph_format format, char **ret_text, struct hr_error *reterr);

/* The same plan as readable text: what is composed, where pixels are decoded, and why; or
 * as JSON, like hr_graph_plan. Free with hr_free(). */
HR_API HR_CHECK enum hr_err
hr_graph_explain(struct hr_graph *graph, const struct hr_iter_options *options, bool json,
                 char **ret_text, struct hr_error *reterr);

HR_END_DECLS

#endif
