/*
 * headrace/code.h - the user's own code as an op of a graph.
 *
 * A binding (Python) or a C program gives a graph a piece of code under a name; the ops
 * code.source, code.map, code.filter and code.expand refer to it by that name. The code
 * runs in the engine's threads, or in worker processes that the binding starts and
 * hr_code_serve() runs. Where it runs changes no byte of what comes out.
 *
 * A graph file that names code which nobody gave is refused at freeze, with the name.
 */
#ifndef HR_CODE_H
#define HR_CODE_H

#include "headrace/engine.h"

HR_BEGIN_DECLS

/* One record (behind a batch op: one batch) in the hands of user code. Valid during the
 * call, in the thread that was called. */
struct hr_code_call;

/*
 * A piece of user code. Copied by hr_graph_code; `user` is shared until release.
 *
 * call: do one record. Reads inputs, fills every output (source, map), sets keep
 * (filter), or makes children (expand). On failure it sets *reterr (code, message) and
 * returns the code: the record is bad and meets the user's policy. HR_ERR_END from a
 * source means that there are no records from this index on. HR_ERR_CANCELLED stops the
 * run. Called by several threads at once unless the node says `variant: inline`.
 *
 * enter, leave: around a run of calls in one thread (an interpreter's lock); may be NULL.
 * What enter returns goes to leave. release: once, by whoever drops the last reference,
 * from any thread; may be NULL.
 */
struct hr_code {
    const char *identity; /* stands for the code in fingerprints: other text, other
                             records. Never NULL */
    void *user;
    enum hr_err (*call)(void *user, struct hr_code_call *call, struct hr_error *reterr);
    void *(*enter)(void *user);
    void (*leave)(void *user, void *token);
    void (*release)(void *user);
};

/* Give `graph` the code that nodes call `name`. Before freeze (HR_ERR_STATE after);
 * HR_ERR_ARGUMENT when the name is taken or malformed. On failure release is not called.
 */
HR_API HR_CHECK enum hr_err
hr_graph_code(struct hr_graph *graph, const char *name, const struct hr_code *code,
              struct hr_error *reterr);

/* ---- inside a call ---- */

/* Who the record is. index: a source makes this record; elsewhere the identity of the
 * record, the same in every run and order. key: 128 bits that depend on (seed, epoch,
 * record, node) only, for the code's own random numbers. */
struct hr_code_record {
    uint64_t seed, index, position;
    uint64_t epoch;
    uint64_t key[2];
    const char *node; /* name of the node */
};
HR_API void
hr_code_record(const struct hr_code_call *call, struct hr_code_record *ret_record);
/* Its index alone: the key costs 40 ns. 0 for NULL. */
HR_API uint64_t hr_code_index(const struct hr_code_call *call);

/* The fields that the code reads, in the order of the node's `fields`. Views are of one
 * record: dims of the tensor itself (behind a batch op: of the batch's column), `buffer`
 * NULL. The bytes may be read until the call ends; writing to them is forbidden. */
HR_API size_t hr_code_input_count(const struct hr_code_call *call);
HR_API HR_CHECK enum hr_err
hr_code_input(const struct hr_code_call *call, size_t at, struct hr_field_view *ret_view);

/* The fields that it makes, in the order of the node's `outputs`: what was declared.
 * dims of -1 are free. */
HR_API size_t hr_code_output_count(const struct hr_code_call *call);
HR_API HR_CHECK enum hr_err hr_code_output(const struct hr_code_call *call, size_t at,
                                           struct hr_field_info *ret_info);

/* Memory for output `at`, to be filled before the call returns: a contiguous tensor
 * of this shape, or (HR_DTYPE_NONE, ndim 1) a byte string of dims[0] bytes. Refuses what
 * differs from the declaration with HR_ERR_TYPE or HR_ERR_SHAPE and words that name the
 * field, what was declared and what came. When the place in the batch is known it is
 * that place. For an expansion: of the child begun last. */
HR_API HR_CHECK enum hr_err
hr_code_room(struct hr_code_call *call, size_t at, enum hr_dtype dtype, int ndim,
             const int64_t *dims, void **ret_memory, struct hr_error *reterr);

/* Output `at` is input `input`, unchanged: nothing is copied. */
HR_API HR_CHECK enum hr_err
hr_code_pass(struct hr_code_call *call, size_t at, size_t input, struct hr_error *reterr);

/* code.filter: whether the record stays. Default: it does not. */
HR_API void hr_code_keep(struct hr_code_call *call, bool keep);

/* code.expand: begin the next child; its outputs are those asked for from here on. */
HR_API HR_CHECK enum hr_err
hr_code_child(struct hr_code_call *call, struct hr_error *reterr);

/* A long text about the failure that is coming (a traceback), copied: hr_iter_detail()
 * and the ledger give it back. Lost when memory is short. */
HR_API void hr_code_detail(struct hr_code_call *call, const char *text);

/* ---- worker processes ---- */

/*
 * How to get worker processes; the binding knows its interpreter, the library does not.
 * start: make a process that calls hr_code_serve(fd) on its copy of `fd` (the callee
 * leaves the caller's `fd` open and unchanged). *ret_id names it for kill. Must not fork
 * a process that has threads. kill: make sure the process ends soon; it may have ended
 * already. Both are called from threads of the engine, one at a time.
 */
struct hr_code_host {
    void *user;
    enum hr_err (*start)(void *user, int fd, int64_t *ret_id, struct hr_error *reterr);
    void (*kill)(void *user, int64_t id);
    void (*release)(void *user);
};

/* Where nodes with `variant: processes` run. Before freeze. Without a host such nodes are
 * refused at hr_iter_open. */
HR_API HR_CHECK enum hr_err
hr_graph_code_host(struct hr_graph *graph, const struct hr_code_host *host,
                   struct hr_error *reterr);

/* In the worker process: serve calls that arrive on `fd` until it is closed by the other
 * side (HR_OK) or breaks. `find` gives the code of a name, NULL when there is none; it is
 * asked once per name. Runs in the calling thread. */
HR_API HR_CHECK enum hr_err
hr_code_serve(int fd, const struct hr_code *(*find)(void *user, const char *name),
              void *user, struct hr_error *reterr);

HR_END_DECLS

#endif
