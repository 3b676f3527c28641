/*
 * headrace/code.h - user code as an op of a graph.
 *
 * A language binding (Python) or a C program registers code with a graph under a name;
 * the ops code.source, code.map, code.filter and code.expand refer to it by that name.
 * The code runs in the engine's threads, or in worker processes that the binding starts
 * and that call hr_code_serve(). Where it runs does not change the output.
 *
 * Freezing a graph that names unregistered code fails with an error that has the name.
 */
#ifndef HR_CODE_H
#define HR_CODE_H

#include "headrace/engine.h"

HR_BEGIN_DECLS

/* One record (after a batch op: one batch) passed to user code. Valid during the call, in
 * the calling thread. */
struct hr_code_call;

/*
 * User code. Copied by hr_graph_code; `user` is used until release.
 *
 * call: processes one record. It reads inputs and fills every output (source, map), sets
 * keep (filter), or makes children (expand). On failure it sets *reterr (code, message)
 * and returns the error: the record is bad, and the on_error policy applies. HR_ERR_END
 * from a source means that there are no records from this index on. HR_ERR_CANCELLED
 * stops the run. Called by several threads at once unless the node says `variant:
 * inline`.
 *
 * enter, leave: called around a sequence of calls in one thread (for an interpreter's
 * lock); may be NULL. The return value of enter is passed to leave. release: called once
 * when the last reference is dropped, from any thread; may be NULL.
 *
 * key: what record `index` is known by before it is made, for steps that choose records
 * by a field (order.split, order.sample, flow.join): the value of the output, a number in
 * decimal or a text. Writes at most `room` bytes, without a NUL, and says how many there
 * are: if these are more than `room`, it is called again with enough. HR_ERR_NOT_FOUND:
 * this record has no such value, and is known by its number. Called while the graph is
 * frozen, by one thread at a time. NULL if `keys` is 0.
 *
 * may_wait: a call may take much longer than most, say because it waits for a socket. The
 * consumer's thread then runs the code for records of its next batch only, so that no
 * batch that is ready waits for a later record.
 */
struct hr_code {
    const char *identity; /* identifies the code in fingerprints: must change if the
                             code's results change. Never NULL */
    void *user;
    enum hr_err (*call)(void *user, struct hr_code_call *call, struct hr_error *reterr);
    void *(*enter)(void *user);
    void (*leave)(void *user, void *token);
    void (*release)(void *user);
    bool may_wait;
    const char *stays; /* why worker processes cannot run it; copied. NULL: they can, if
                          the graph has a host */
    uint64_t keys; /* of a source with a count: bit i says that key() knows output i */
    enum hr_err (*key)(void *user, size_t output, uint64_t index, char *text, size_t room,
                       size_t *ret_bytes, struct hr_error *reterr);
};

/* Registers code as `name` with `graph`. Must precede freeze (HR_ERR_STATE after it);
 * HR_ERR_ARGUMENT if the name is taken or malformed. On failure release is not called. */
HR_API HR_CHECK enum hr_err
hr_graph_code(struct hr_graph *graph, const char *name, const struct hr_code *code,
              struct hr_error *reterr);

/* ---- inside a call ---- */

/* Identifies the record: the same in every run, order, thread and process. A batch has
 * the identity of its first record. */
struct hr_code_record {
    uint64_t seed;
    uint64_t index;    /* in its source; a source makes this record */
    uint64_t position; /* place in the epoch's order, over all ranks */
    uint64_t epoch;
    const char *node; /* name of the node */
    /* The epoch as random draws count it: each pass of order.repeat is one. */
    uint64_t draw_epoch;
    size_t depth; /* expansions that the record has passed: numbers in `children` */
    const uint32_t *children; /* its number among the children of each; for the call */
    /* In a worker process: how many workers ended early in its place before it, so that
     * a replacement can draw other random numbers. 0 elsewhere. */
    uint32_t replaced;
};
HR_API void
hr_code_record(const struct hr_code_call *call, struct hr_code_record *ret_record);
HR_API uint64_t
hr_code_index(const struct hr_code_call *call); /* only that; 0 for NULL */
/* 128 bits that depend only on (seed, epoch, index, children, node name), for random
 * numbers in user code. */
HR_API void hr_code_key(const struct hr_code_call *call, uint64_t ret_key[2]);
/* The records that this thread calls the code for next, unless the run ends before: their
 * indices in order, this record's first, at most `room` of them. For a source that makes
 * several at once. Returns how many there are, even if that is more than `room`; 0 for
 * NULL. */
HR_API size_t hr_code_following(const struct hr_code_call *call, uint64_t *ret_indices,
                                size_t room);

/* The fields that the code reads, in the order of the node's `fields`. A view is of one
 * record: dims are those of the tensor (after a batch op: of the batch's column),
 * `buffer` is NULL. The bytes are read-only and valid until the call returns. */
HR_API size_t hr_code_input_count(const struct hr_code_call *call);
HR_API HR_CHECK enum hr_err
hr_code_input(const struct hr_code_call *call, size_t at, struct hr_field_view *ret_view);

/* The declared output fields, in the order of the node's `outputs`. A dimension of -1 may
 * have any size. */
HR_API size_t hr_code_output_count(const struct hr_code_call *call);
HR_API HR_CHECK enum hr_err hr_code_output(const struct hr_code_call *call, size_t at,
                                           struct hr_field_info *ret_info);

/* Returns memory for output `at`, to be filled before the call returns: a contiguous
 * tensor of this shape, or for HR_DTYPE_NONE with ndim 1 a byte string of dims[0] bytes.
 * HR_ERR_TYPE or HR_ERR_SHAPE if it does not match the declaration; the message names the
 * field, what was declared and what was given. The memory is in the batch itself if the
 * record's place in it is known. For an expansion, the output belongs to the child
 * started last. */
HR_API HR_CHECK enum hr_err
hr_code_room(struct hr_code_call *call, size_t at, enum hr_dtype dtype, int ndim,
             const int64_t *dims, void **ret_memory, struct hr_error *reterr);

/* Makes output `at` the unchanged input `input`, without a copy. */
HR_API HR_CHECK enum hr_err
hr_code_pass(struct hr_code_call *call, size_t at, size_t input, struct hr_error *reterr);

/* code.filter: whether to keep the record. The default is false. */
HR_API void hr_code_keep(struct hr_code_call *call, bool keep);

/* code.expand: starts the next child; outputs requested from now on belong to it. */
HR_API HR_CHECK enum hr_err
hr_code_child(struct hr_code_call *call, struct hr_error *reterr);

/* Attaches a long text (a traceback) to the failure that the call is about to return. The
 * text is copied; hr_iter_detail() and the ledger return it. Ignored if out of memory. */
HR_API void hr_code_detail(struct hr_code_call *call, const char *text);

/* ---- worker processes ---- */

/*
 * How to start worker processes: the binding knows its interpreter, the library does not.
 * start: creates a process that calls hr_code_serve(fd) on its copy of `fd`, and leaves
 * the caller's `fd` open and unchanged. *ret_id identifies the process for kill. It must
 * not fork a process that has threads. kill: makes the process exit soon; it may have
 * exited already. ended: writes how a process that closed its end has done so, as "was
 * killed by SIGSEGV"; leaves the text as it is if that is unknown. May be NULL. All are
 * called from the engine's threads, one at a time.
 */
struct hr_code_host {
    void *user;
    enum hr_err (*start)(void *user, int fd, int64_t *ret_id, struct hr_error *reterr);
    void (*kill)(void *user, int64_t id);
    void (*release)(void *user);
    void (*ended)(void *user, int64_t id, char *text, size_t room);
};

/* Sets the host for steps that run in worker processes: nodes with `variant: processes`,
 * and any step that a plan puts there. Must precede freeze. Without a host, hr_iter_open
 * fails for such steps. */
HR_API HR_CHECK enum hr_err
hr_graph_code_host(struct hr_graph *graph, const struct hr_code_host *host,
                   struct hr_error *reterr);

/* Serves calls that arrive on `fd`, in the calling thread of the worker process, until
 * the other side closes it (HR_OK) or it fails. `find` returns the code registered under
 * a name, or NULL; it is called once per name. */
HR_API HR_CHECK enum hr_err
hr_code_serve(int fd, const struct hr_code *(*find)(void *user, const char *name),
              void *user, struct hr_error *reterr);

HR_END_DECLS

#endif
