/*
 * ext.h - the objects of headrace._headrace and the interfaces between its files.
 *
 * One object per handle of the library. Uses only the library's public headers and
 * CPython's limited API. All state is in the module object or in handles, except two
 * things that must outlive both: the counts of live objects and the number of forks
 * (DLPack deleters may run after the interpreter has ended). Every call into the library
 * that can block releases the interpreter's lock.
 */
#ifndef PYTHON_EXT_H
#define PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <structmember.h>

#include "headrace/code.h"
#include "headrace/dataset.h"
#include "headrace/engine.h"
#include "headrace/op.h"
#include "headrace/profile.h"
#include "lock.h"

struct ext_iter;

#define EXT_DTYPES (HR_U16 + 1)

/* What the module owns. */
struct ext_state {
    PyObject *error; /* the class Error */
    PyTypeObject *graph, *iter, *batch, *field, *digest, *tokenizer, *packer;
    atomic_bool numpy;            /* the three below are set: user code needed them */
    PyObject *ndarray, *asarray;  /* of numpy */
    PyObject *dtypes[EXT_DTYPES]; /* numpy's, by enum hr_dtype */
    struct ext_mutex mutex; /* guards the list, and setting the members from numpy */
    struct ext_iter *iters; /* open ones, to close at the interpreter's exit */
    atomic_bool ending;     /* the interpreter is */
};

struct ext_state *ext_state_of(PyObject *module);
/* The state of the module that made the type of `self`. */
struct ext_state *ext_state(PyObject *self);

/* ---- module.c: counts and forks ---- */

enum ext_kind {
    EXT_GRAPH,
    EXT_ITER,
    EXT_BATCH,
    EXT_FIELD,
    EXT_DIGEST,
    EXT_TOKENIZER,
    EXT_PACKER,
    EXT_CODE,   /* functions given to graphs */
    EXT_HOLD,   /* memory of batches, held by views */
    EXT_EXPORT, /* DLPack tensors not yet deleted */
    EXT_KINDS,
};
void ext_count(enum ext_kind kind, int by);

/* Number of forks between the process that imported the module and this one. A handle
 * that was made at a different number refers to threads and locks that do not exist
 * here. */
unsigned ext_forks(void);

/* ---- error.c ---- */

PyObject *ext_error_create(PyObject *module);

/* Raise `error` as Error and return NULL. `detail` may be NULL; `cause` (stolen) becomes
 * __cause__, may be NULL. */
PyObject *ext_raise(struct ext_state *state, const struct hr_error *error,
                    const char *detail, PyObject *cause);

/* Raises Error with a code and a message of this module; returns NULL. */
PyObject *ext_fail(struct ext_state *state, enum hr_err code, const char *param,
                   const char *format, ...);

/* Takes the exception that is set, normalised, with its traceback attached. */
PyObject *ext_exception_take(void);

/* Writes "TypeError: message (file.py:12)"; clears exceptions raised meanwhile. */
void ext_exception_words(PyObject *exception, char *text, size_t room);

/* `text` as bytes in UTF-8, surrogates escaped; NULL without an exception if `text` is
 * NULL or memory is short. */
PyObject *ext_utf8(PyObject *text);

/* Writes the exception's class and its bases up to Exception as hr_error.raised has them;
 * clears exceptions raised meanwhile. */
void ext_exception_classes(PyObject *exception, char *text, size_t room);

/* The whole traceback as text; NULL without an exception if there is none. */
PyObject *ext_exception_text(PyObject *exception);

/* ---- op.c ---- */

PyObject *ext_op_list(PyObject *module, PyObject *unused);
PyObject *ext_arrow_rows(PyObject *module, PyObject *args);
/* If the attribute `arrow` of a source's function is what arrow_rows() made: its code,
 * which needs no interpreter. */
bool ext_arrow_code(PyObject *function, struct hr_code *ret_code);
PyObject *ext_merge_states(PyObject *module, PyObject *states);

/* ---- system.c ---- */

PyObject *ext_parts(PyObject *module, PyObject *unused);
PyObject *ext_free_memory(PyObject *module, PyObject *unused);

/* ---- graph.c ---- */

struct ext_code;
struct ext_call;

/* The user code of a graph, or of a run of serve(). The registry owns the functions, so
 * that the cycle collector reaches them through the graph's object. Calls in progress
 * and functions registered with the library keep the registry alive after its owner,
 * but then it is empty (`gone`). */
struct ext_registry {
    atomic_int refs;
    struct ext_state *state;
    bool serves;      /* in a worker process, where SystemExit fails a record only */
    atomic_bool keep; /* whether to keep exceptions: an error ends the run */
    struct ext_mutex mutex; /* all below */
    bool gone;
    int runs;       /* iterators that are open */
    unsigned forks; /* that calls and runs are of */
    struct ext_code *codes;
    struct ext_call *calls; /* threads inside of its code */
    PyObject *kept;  /* list of (node, record, order, exception): see ext_kept_take */
    PyObject *fatal; /* KeyboardInterrupt or SystemExit from user code */

    /* In a worker process, which has one thread: called in the first call of its code and
     * in the first of each further epoch; NULL: nothing is. */
    PyObject *begin;
    bool begun;
    uint64_t begun_epoch;
};

struct ext_graph {
    PyObject_HEAD PyObject *weak;
    struct hr_graph *graph;
    struct ext_registry *registry;
    PyObject *origin; /* the graph whose code and host it shares, or NULL */
    struct ext_host *host;
    PyThread_type_lock lock; /* serialises access to the handle */
    atomic_ulong owner;      /* thread that holds the lock, 0 for none */
    unsigned forks;
};

extern PyType_Spec ext_graph_spec;

/* Around everything that changes the graph or reads what freezing writes. -1 with an
 * Error set if this thread already holds the lock. */
int ext_graph_lock(struct ext_graph *graph);
void ext_graph_unlock(struct ext_graph *graph);

/* A graph with the code of `origin`, which it keeps. Takes over `handle`. */
PyObject *ext_graph_reordered(PyObject *origin, struct hr_graph *handle);

/* Converts text of the library to str and frees it. */
PyObject *ext_take_text(char *text);

/* ---- optimize.c ---- */

PyObject *ext_graph_profile(PyObject *self, PyObject *args);
PyObject *ext_graph_profile_save(PyObject *self, PyObject *args);
PyObject *ext_graph_profile_load(PyObject *self, PyObject *args);
PyObject *ext_check_profile(PyObject *module, PyObject *args);
PyObject *ext_graph_optimize(PyObject *self, PyObject *args);
PyObject *ext_graph_caches(PyObject *self, PyObject *args);
PyObject *ext_graph_variants(PyObject *self, PyObject *args);

/* ---- iter.c ---- */

/* Interval at which waits check for signals. */
#define EXT_SLICE_MS 40

extern PyType_Spec ext_iter_spec;

/* ---- options.c ---- */

/* Reads a dict of options. Returns an object that owns the strings of *ret_options, or
 * NULL with an exception set. */
PyObject *ext_options_read(struct ext_state *state, PyObject *dict,
                           struct hr_iter_options *ret_options);

PyObject *ext_iter_stats_dict(const struct hr_iter_stats *stats);
PyObject *ext_node_stats_list(const struct hr_iter *iter);

/* Closes all iterators, at the interpreter's exit. */
PyObject *ext_iters_close(PyObject *module, PyObject *unused);
void ext_iters_forked(void); /* in the child */

/* ---- batch.c, field.c ---- */

/* Keeps bytes alive: a reference to a batch or a buffer. Has its own count, so that
 * Field.writable() can check that there is no other holder. */
struct ext_hold {
    atomic_int refs;
    unsigned forks;
    struct hr_batch *batch;
    struct hr_buffer *buffer;
};
/* Takes over the reference, also on failure: NULL with MemoryError set. */
struct ext_hold *ext_hold_create(struct hr_batch *batch, struct hr_buffer *buffer);
struct ext_hold *ext_hold_ref(struct ext_hold *hold);
/* Needs no interpreter. */
void ext_hold_unref(struct ext_hold *hold);

struct ext_batch {
    PyObject_HEAD PyObject *weak;
    struct ext_hold *hold;
};

extern PyType_Spec ext_batch_spec;

/* Takes over the reference to `batch`. */
PyObject *ext_batch_create(struct ext_state *state, struct hr_batch *batch);

struct ext_field {
    PyObject_HEAD PyObject *weak;
    PyObject *name;
    struct ext_hold *hold;
    struct hr_field_view view; /* its name is not used */
    bool writable;
    atomic_int exports; /* buffers exported and not yet released */
};

extern PyType_Spec ext_field_spec;

/* `name` and `hold` gain a reference. */
PyObject *ext_field_create(struct ext_state *state, PyObject *name, struct ext_hold *hold,
                           const struct hr_field_view *view, bool writable);

/* The struct-module format of a dtype ("f", "B"); bfloat16 has none and is "H". */
const char *ext_dtype_format(enum hr_dtype dtype);
/* The inverse; HR_DTYPE_NONE if no dtype of ours has this format. */
enum hr_dtype ext_dtype_of_format(const char *format, Py_ssize_t item_bytes);

/* ---- dlpack.c ---- */

PyObject *ext_field_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *ext_field_dlpack_device(PyObject *self, PyObject *unused);

/* A field with a copy of the bytes, contiguous and writable. */
struct ext_field *ext_field_copy(struct ext_field *field);

/* ---- tensor.c ---- */

/* A tensor of another library, and its bytes. */
struct ext_tensor {
    enum hr_dtype dtype;
    Py_buffer buffer; /* not for PyBuffer_Release */
    PyObject *capsule;
    Py_ssize_t shape[HR_MAX_DIMS], strides[HR_MAX_DIMS];
};

/* Reads `value` through DLPack. False, without an exception, if it does not support
 * that or its memory cannot be read by this process. */
bool ext_tensor_open(PyObject *value, struct ext_tensor *ret_tensor);
void ext_tensor_close(struct ext_tensor *tensor);

/* ---- digest.c ---- */

extern PyType_Spec ext_digest_spec;
PyObject *ext_digest_batch(PyObject *module, PyObject *args);

/* ---- tokenizer.c ---- */

extern PyType_Spec ext_tokenizer_spec;

/* ---- packer.c ---- */

extern PyType_Spec ext_packer_spec;

/* ---- code.c ---- */

enum ext_code_kind {
    EXT_SOURCE,
    EXT_MAP,
    EXT_FILTER,
    EXT_EXPAND,
};

/* A function, known to the library by hr_code.user. Once its registry is gone, calls
 * are cancelled. */
struct ext_code {
    atomic_int refs;
    struct ext_code *next;
    struct ext_registry *registry; /* a reference */
    PyObject *function;            /* owned by the registry; NULL once that is gone */
    PyObject *list;    /* the list whose items a source returns (borrowed), or NULL */
    PyObject *several; /* owned by the registry, or NULL: makes a list of items */
    PyObject *key; /* likewise: of (output, index) gives what the record is known by */
    enum ext_code_kind kind;
};

/* A registry with one reference; NULL with MemoryError set. Unref may run without an
 * interpreter. */
struct ext_registry *ext_registry_create(struct ext_state *state);
struct ext_registry *ext_registry_ref(struct ext_registry *registry);
void ext_registry_unref(struct ext_registry *registry);

/* Registers `function`; -1 with an exception set. `ret_code->user` holds a reference,
 * which release drops. */
int ext_code_create(struct ext_registry *registry, const char *kind, PyObject *function,
                    struct hr_code *ret_code);
int ext_registry_visit(struct ext_registry *registry, visitproc visit, void *arg);
/* Its owner goes. */
void ext_registry_clear(struct ext_registry *registry);

/* A run begins; a run has ended. */
void ext_registry_begin(struct ext_registry *registry);
void ext_registry_end(struct ext_registry *registry);

/* Asks threads in user code of this registry to end: KeyboardInterrupt is raised in
 * them when they next run Python code. Does nothing while several iterators share the
 * code. */
void ext_registry_interrupt(struct ext_registry *registry);

/* Whether this thread is in user code of this registry. */
bool ext_registry_is_here(const struct ext_registry *registry);

/* The exception that caused an error of the library: a new reference, or NULL. */
PyObject *ext_kept_take(struct ext_registry *registry, const struct hr_error *error);

/* The exception that ended user code without being an error, such as SystemExit: a new
 * reference, or NULL. */
PyObject *ext_fatal_take(struct ext_registry *registry);

/* Raises that exception, and returns true, or the error of the library with its
 * exception and `detail`, which may be NULL. */
bool ext_raise_failure(struct ext_registry *registry, const struct hr_error *error,
                       const char *detail);

/* Whether there is one, and it must be from this run. */
bool ext_fatal_is_due(struct ext_registry *registry);

PyObject *ext_current_record(PyObject *module, PyObject *unused);

/* ---- serve.c ---- */

PyObject *ext_serve(PyObject *module, PyObject *args);

/* ---- host.c ---- */

int ext_host_set(struct ext_graph *graph, PyObject *start, PyObject *kill,
                 PyObject *ended);
int ext_host_visit(struct ext_host *host, visitproc visit, void *arg);
void ext_host_clear(struct ext_graph *graph);

/* ---- number.c ---- */

/* The number at `at` as int, float or bool. NULL with an exception set. */
PyObject *ext_number(enum hr_dtype dtype, const void *at);

/* Stores the number `value` as `dtype` at `at`. -1 with an exception set: OverflowError
 * if it does not fit an integer type. */
int ext_number_store(PyObject *value, enum hr_dtype dtype, void *at);

bool ext_is_int(enum hr_dtype dtype);

/* ---- convert.c ---- */

/* More than a record can have fields. */
#define EXT_INPUTS_MAX 64

/* The arguments of a call of user code; owns a reference to each. `lists` are copies of
 * those that are lists, else NULL: user code may change the list that it was given. */
struct ext_inputs {
    size_t count;
    PyObject *items[EXT_INPUTS_MAX], *lists[EXT_INPUTS_MAX];
};

/* Input `at` of a call as a Python object. NULL with an exception set. */
PyObject *ext_input(struct ext_state *state, const struct hr_code_call *call, size_t at);
/* A copy of a list of strings or of lists of them, which shares the strings. NULL with an
 * exception set. */
PyObject *ext_list_copy(PyObject *list);

/* The byte strings of a field; of nested batches lists of lists. */
PyObject *ext_strings(const struct hr_field_view *view);
/* Parts of a ragged field as arrays: all elements, the splits of a level, the shapes of
 * its items (which have item_ndim > 1). Items of a level. */
int64_t ext_ragged_items(const struct hr_field_view *view, int level);
void ext_ragged_values(const struct hr_field_view *view, struct hr_field_view *ret_part);
void ext_ragged_splits(const struct hr_field_view *view, int level,
                       struct hr_field_view *ret_part);
void ext_ragged_shapes(const struct hr_field_view *view, struct hr_field_view *ret_part);

/* Stores a value that user code returned as output `at`. A value that is one of
 * `inputs` is passed on without a copy. HR_OK, or the code of an error, with *reterr
 * filled or an exception set. */
enum hr_err
ext_output(struct ext_state *state, struct hr_code_call *call, size_t at, PyObject *value,
           const struct ext_inputs *inputs, struct hr_error *reterr);

#endif
