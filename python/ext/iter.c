/*
 * Iterators: next() serves signals, and close() returns whatever user code does.
 *
 * An iterator is for one thread at a time; a lock ensures that, and threads wait for
 * their turn. close() ends the wait of another thread and waits for user code for a
 * bounded time. An engine thread that is still in user code is left behind
 * (hr_iter_close); a thread that runs user code inside next() closes the handle when it
 * comes back. User code that closes or drops its own iterator only cancels it.
 *
 * A forked child has the handle but not its threads: calls fail, and the memory is left
 * alone.
 */
#include "ext.h"

#include <string.h>
#include <unistd.h>

/* How long user code may take to end: after close(); where another thread called that,
 * after Ctrl-C, when the iterator is dropped, and at the end of the interpreter. */
#define CLOSE_WAIT_MS 2000
#define END_WAIT_MS 1000

struct ext_iter {
    PyObject_HEAD PyObject *weak;
    struct ext_graph *graph;
    unsigned forks;
    PyThread_type_lock lock; /* who is in the handle */
    atomic_ulong owner;      /* that thread, 0: none */
    atomic_bool cancelled;   /* close() was called; the thread inside closes it */
    atomic_bool abandoned;   /* that thread did not come back in time */
    struct ext_mutex mutex;  /* the five below; they are set by the lock's owner */
    struct hr_iter *iter;    /* NULL once it is closed */
    struct hr_iter *closing; /* what it was, while its threads end */
    PyObject *node_stats;    /* of the handle when it was closed, or NULL */
    char *saved;
    struct hr_iter_stats stats;
    struct ext_iter *next_open,
        **prev_open; /* list in the module's state, by its mutex */
};

static struct ext_iter *of(PyObject *self)
{
    return (struct ext_iter *)self;
}

static struct ext_state *state_of(struct ext_iter *iter)
{
    return iter->graph->registry->state;
}

static bool is_closed(struct ext_iter *iter)
{
    bool closed;

    ext_mutex_lock(&iter->mutex);
    closed = iter->iter == NULL;
    ext_mutex_unlock(&iter->mutex);
    return closed;
}

/* Whether its threads have ended, too, or were left behind. */
static bool is_gone(struct ext_iter *iter)
{
    bool gone;

    ext_mutex_lock(&iter->mutex);
    gone = iter->iter == NULL && iter->closing == NULL;
    ext_mutex_unlock(&iter->mutex);
    return gone;
}

/* ---- closing ---- */

/* The module's list is locked. */
static void unlist(struct ext_iter *iter)
{
    if (iter->prev_open == NULL)
        return;
    *iter->prev_open = iter->next_open;
    if (iter->next_open != NULL)
        iter->next_open->prev_open = iter->prev_open;
    iter->prev_open = NULL;
}

/* Takes the handle out of the object, which keeps its state and statistics. */
static void take_handle(struct ext_iter *iter)
{
    struct hr_iter *handle = iter->iter;
    struct hr_iter_stats stats = {0};
    PyObject *node_stats = NULL;
    char *saved = NULL;

    ext_count(EXT_ITER, -1);
    if (iter->forks == ext_forks()) {
        hr_iter_cancel(handle);
        if (hr_iter_save(handle, &saved, NULL) != HR_OK)
            saved = NULL;
        hr_iter_stats(handle, &stats);
        node_stats = ext_node_stats_list(handle);
        if (node_stats == NULL)
            PyErr_Clear();
    }
    ext_mutex_lock(&iter->mutex);
    iter->closing = handle;
    iter->iter = NULL;
    iter->node_stats = node_stats;
    iter->saved = saved;
    iter->stats = stats;
    ext_mutex_unlock(&iter->mutex);
}

/* The taken handle is to be closed, or belongs to the process that this one was forked
 * from. */
static void drop_handle(struct ext_iter *iter)
{
    struct ext_state *state = state_of(iter);

    ext_mutex_lock(&iter->mutex);
    iter->closing = NULL;
    ext_mutex_unlock(&iter->mutex);
    ext_mutex_lock(&state->mutex);
    unlist(iter);
    ext_mutex_unlock(&state->mutex);
}

/* Says which thread still runs user code. -1 when warnings are errors. */
static int warn_stuck(const struct hr_error *error, const char *owner)
{
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                            "closed a run that has not ended; %s%s. It is left behind "
                            "and ends when the code returns",
                            error->message, owner);
}

/* Waits until no thread works for the handle, for at most `wait_ms`; then warns. Less
 * than 0: neither waits nor warns. -1 with an exception set. */
static int wait_stopped(struct hr_iter *handle, int wait_ms, bool signals)
{
    struct hr_error error = {0};
    enum hr_err code;

    for (int waited = 0;; waited += EXT_SLICE_MS) {
        uint64_t slice_ns = waited < wait_ms ? EXT_SLICE_MS * (uint64_t)1000000 : 0;

        Py_BEGIN_ALLOW_THREADS;
        code = hr_iter_stop(handle, slice_ns, &error);
        Py_END_ALLOW_THREADS;
        if (code == HR_OK || wait_ms < 0)
            return 0;
        if (slice_ns == 0)
            return warn_stuck(&error, "");
        if (signals && PyErr_CheckSignals() < 0)
            return -1;
    }
}

/* The caller has the lock, or nobody else can have it. Waits for at most `wait_ms` for
 * user code to end, serving signals if asked to. -1 with an exception set: a signal's
 * handler raised, or a warning did. The handle is closed in any case. */
static int close_handle(struct ext_iter *iter, int wait_ms, bool signals)
{
    struct ext_registry *registry = iter->graph->registry;
    struct hr_iter *handle = iter->iter;
    int result;

    if (handle == NULL)
        return 0;
    take_handle(iter);
    if (iter->forks != ext_forks()) {
        drop_handle(iter);
        return 0;
    }
    ext_registry_interrupt(registry);
    ext_registry_end(registry);
    if (ext_registry_is_here(registry))
        wait_ms = -1; /* this thread may be the one to wait for */
    result = wait_stopped(handle, wait_ms, signals);
    drop_handle(iter);
    Py_BEGIN_ALLOW_THREADS;
    hr_iter_close(handle);
    Py_END_ALLOW_THREADS;
    return result;
}

/* ---- one thread at a time ---- */

static int refuse(struct ext_iter *iter, const char *why)
{
    ext_fail(state_of(iter), HR_ERR_STATE, NULL, "%s", why);
    return -1;
}

/* Whether this thread cannot wait for the lock: it holds it, or runs user code that the
 * thread which holds it waits for. */
static bool is_within(const struct ext_iter *iter)
{
    return atomic_load(&iter->owner) == PyThread_get_thread_ident() ||
           ext_registry_is_here(iter->graph->registry);
}

/* The lock is this thread's. */
static void own(struct ext_iter *iter)
{
    atomic_store(&iter->owner, PyThread_get_thread_ident());
}

static void disown(struct ext_iter *iter)
{
    atomic_store(&iter->owner, 0);
    PyThread_release_lock(iter->lock);
}

/* Waits for the lock for at most `wait_ms`, serving signals if asked to. 1 when it is
 * this thread's, 0 when the time is over, -1 when a signal's handler raised. */
static int wait_lock(struct ext_iter *iter, int wait_ms, bool signals)
{
    PyLockStatus got = PyThread_acquire_lock_timed(iter->lock, 0, 0);

    for (int waited = 0; got != PY_LOCK_ACQUIRED && waited < wait_ms;
         waited += EXT_SLICE_MS) {
        Py_BEGIN_ALLOW_THREADS;
        got = PyThread_acquire_lock_timed(iter->lock, EXT_SLICE_MS * 1000, 0);
        Py_END_ALLOW_THREADS;
        if (got != PY_LOCK_ACQUIRED && signals && PyErr_CheckSignals() < 0)
            return -1;
    }
    return got == PY_LOCK_ACQUIRED;
}

/* Waits for the lock, serving signals. -1 with an exception set. */
static int wait_turn(struct ext_iter *iter)
{
    int got = 0;

    while (got == 0 && !atomic_load(&iter->abandoned))
        got = wait_lock(iter, EXT_SLICE_MS, true);
    if (got == 0)
        return refuse(iter, "the iterator is closed");
    return got < 0 ? -1 : 0;
}

/* Takes the lock for a call into the handle; -1 with an exception set. */
static int enter(struct ext_iter *iter)
{
    if (is_closed(iter) || atomic_load(&iter->abandoned))
        return refuse(iter, "the iterator is closed");
    if (iter->forks != ext_forks())
        return refuse(iter, "the iterator was opened before this process was forked; "
                            "open one in the process that uses it");
    if (!PyThread_acquire_lock(iter->lock, NOWAIT_LOCK)) {
        if (is_within(iter))
            return refuse(iter, "the iterator is in use further up in this thread, or "
                                "this is its own user code");
        if (wait_turn(iter) < 0)
            return -1;
    }
    own(iter);
    if (iter->iter != NULL)
        return 0;
    disown(iter);
    return refuse(iter, "the iterator is closed");
}

/* Ends a call into the handle; closes it if close() was called meanwhile. -1 with an
 * exception set. */
static int leave(struct ext_iter *iter)
{
    int result =
        atomic_load(&iter->cancelled) ? close_handle(iter, END_WAIT_MS, false) : 0;

    disown(iter);
    return result;
}

static void cancel(struct ext_iter *iter)
{
    bool open;

    if (iter->forks != ext_forks())
        return;
    ext_mutex_lock(&iter->mutex);
    open = iter->iter != NULL;
    if (open)
        hr_iter_cancel(iter->iter);
    ext_mutex_unlock(&iter->mutex);
    if (open)
        ext_registry_interrupt(iter->graph->registry);
}

/* "; next() was called in thread 'MainThread'", as threading names it; clears errors. */
static void owner_words(struct ext_iter *iter, char *words, size_t room)
{
    PyObject *threading = PyImport_ImportModule("threading"), *active = NULL;
    PyObject *ident = PyLong_FromUnsignedLong(atomic_load(&iter->owner)), *thread = NULL;
    PyObject *name = NULL;

    if (threading != NULL)
        active = PyObject_GetAttrString(threading, "_active");
    if (active != NULL && ident != NULL)
        thread = PyObject_GetItem(active, ident);
    if (thread != NULL)
        name = PyObject_GetAttrString(thread, "name");
    if (name != NULL && PyUnicode_Check(name))
        snprintf(words, room, "; next() was called in thread '%.60s'",
                 PyUnicode_AsUTF8AndSize(name, NULL));
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(thread);
    Py_XDECREF(ident);
    Py_XDECREF(active);
    Py_XDECREF(threading);
}

/* Another thread runs user code inside next(), and closes the handle when that returns,
 * or waits for the threads of the handle that it closes. -1 when warnings are errors. */
static int leave_to_owner(struct ext_iter *iter)
{
    struct hr_error error = {0};
    struct hr_iter *handle;
    enum hr_err code = HR_OK;
    char words[128] = "";

    ext_mutex_lock(&iter->mutex);
    handle = iter->iter != NULL ? iter->iter : iter->closing;
    if (handle != NULL)
        code = hr_iter_stop(handle, 0, &error);
    ext_mutex_unlock(&iter->mutex);
    atomic_store(&iter->abandoned, true);
    if (code == HR_OK)
        return 0;
    owner_words(iter, words, sizeof words);
    return warn_stuck(&error, words);
}

/* From any thread, also while another one is in next(). Returns after about `wait_ms`
 * whatever user code does. */
static int close_iter(struct ext_iter *iter, int wait_ms, bool signals)
{
    int got;

    if (is_gone(iter))
        return 0;
    if (iter->forks != ext_forks())
        return close_handle(iter, 0, false);
    atomic_store(&iter->cancelled, true); /* first: for the thread that wakes up */
    cancel(iter);
    if (is_within(iter))
        return 0; /* the call that it is in, or the one that drops it, closes it */
    got = wait_lock(iter, wait_ms, signals);
    if (got == 0 && is_closed(iter)) /* its owner is waiting for other threads */
        got = wait_lock(iter, wait_ms, signals);
    if (got <= 0)
        return got < 0 ? -1 : leave_to_owner(iter);
    own(iter);
    got = close_handle(iter, wait_ms, signals);
    disown(iter);
    return got;
}

/* ---- life ---- */

static void list_open(struct ext_iter *iter, struct ext_state *state)
{
    ext_allow_try_ref((PyObject *)iter);
    ext_mutex_lock(&state->mutex);
    iter->next_open = state->iters;
    iter->prev_open = &state->iters;
    if (state->iters != NULL)
        state->iters->prev_open = &iter->next_open;
    state->iters = iter;
    ext_mutex_unlock(&state->mutex);
}

/* Removes an iterator from the list; a new reference, or NULL if the list is empty. */
static struct ext_iter *pop_open(struct ext_state *state)
{
    struct ext_iter *iter;

    ext_mutex_lock(&state->mutex);
    do {
        iter = state->iters;
        if (iter != NULL)
            unlist(iter);
    } while (iter != NULL && !ext_try_ref((PyObject *)iter));
    ext_mutex_unlock(&state->mutex);
    return iter;
}

/* Iterators that may run already and are not listed yet. */
static atomic_int opening;

void ext_iters_forked(void)
{
    atomic_store(&opening, 0); /* by threads that do not exist here */
}

/* HR_OK, or an Error set. */
static enum hr_err
open_handle(struct ext_iter *iter, const struct hr_iter_options *options)
{
    struct ext_graph *graph = iter->graph;
    struct ext_state *state = state_of(iter);
    struct hr_error error = {0};
    struct hr_iter *handle = NULL;
    enum hr_err code;

    if (ext_graph_lock(graph) < 0)
        return HR_ERR_STATE;
    if (options->on_error == HR_ON_ERROR_FAIL)
        atomic_store(&graph->registry->keep, true);
    atomic_fetch_add(&opening, 1);
    Py_BEGIN_ALLOW_THREADS;
    code = hr_iter_open(graph->graph, options, &handle, &error);
    Py_END_ALLOW_THREADS;
    ext_graph_unlock(graph);
    if (code == HR_OK) {
        iter->iter = handle;
        iter->forks = ext_forks();
        ext_count(EXT_ITER, 1);
        ext_registry_begin(graph->registry);
        list_open(iter, state);
    } else {
        ext_raise_failure(graph->registry, &error, NULL);
    }
    atomic_fetch_sub(&opening, 1);
    return code;
}

static PyObject *iter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"graph", "options", NULL};
    struct ext_state *state = PyType_GetModuleState(type);
    struct hr_iter_options options;
    PyObject *graph, *dict, *copy;
    struct ext_iter *iter;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O:Iter", names, state->graph,
                                     &graph, &dict))
        return NULL;
    copy = ext_options_read(state, dict, &options);
    if (copy == NULL)
        return NULL;
    iter = (struct ext_iter *)PyType_GenericAlloc(type, 0);
    if (iter != NULL) {
        iter->graph = (struct ext_graph *)Py_NewRef(graph);
        iter->lock = PyThread_allocate_lock();
        if (iter->lock == NULL)
            PyErr_NoMemory();
        if (iter->lock == NULL || open_handle(iter, &options) != HR_OK)
            Py_CLEAR(iter);
    }
    Py_DECREF(copy);
    return (PyObject *)iter;
}

static int iter_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)of(self)->graph);
    return 0;
}

/* Runs before the collector clears what user code needs, and before dealloc. No other
 * thread uses the handle, since it would hold a reference, except ext_iters_close,
 * which then closes it. */
static void iter_finalize(PyObject *self)
{
    PyObject *type, *value, *traceback;
    struct ext_iter *iter = of(self);

    if (is_closed(iter))
        return;
    if (iter->forks == ext_forks() && !PyThread_acquire_lock(iter->lock, NOWAIT_LOCK))
        return;
    own(iter);
    PyErr_Fetch(&type, &value, &traceback);
    if (close_handle(iter, END_WAIT_MS, false) < 0)
        PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
    if (iter->forks == ext_forks())
        disown(iter);
}

static int iter_clear(PyObject *self)
{
    (void)self; /* the graph clears its own references; ours must live until dealloc */
    return 0;
}

static void iter_dealloc(PyObject *self)
{
    struct ext_iter *iter = of(self);
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (iter->weak != NULL)
        PyObject_ClearWeakRefs(self);
    iter_finalize(self);
    hr_free(iter->saved);
    Py_XDECREF(iter->node_stats);
    if (iter->lock != NULL)
        PyThread_free_lock(iter->lock);
    Py_XDECREF((PyObject *)iter->graph);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* For at most END_WAIT_MS: a run's threads begin before the thread that opens it is back
 * to list it. */
static void wait_opened(void)
{
    for (int waited = 0; waited < END_WAIT_MS && atomic_load(&opening) > 0; waited++) {
        Py_BEGIN_ALLOW_THREADS;
        usleep(1000);
        Py_END_ALLOW_THREADS;
    }
}

PyObject *ext_iters_close(PyObject *module, PyObject *unused)
{
    struct ext_state *state = ext_state_of(module);
    struct ext_iter *iter;

    (void)unused;
    atomic_store(&state->ending, true);
    wait_opened();
    while ((iter = pop_open(state)) != NULL) {
        if (close_iter(iter, END_WAIT_MS, false) < 0)
            PyErr_Clear();
        Py_DECREF((PyObject *)iter);
    }
    Py_RETURN_NONE;
}

/* ---- next ---- */

/* A signal's handler raised: closes after a short wait, preserving the exception. */
static void interrupted(struct ext_iter *iter)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (close_handle(iter, END_WAIT_MS, false) < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static void raise_failure(struct ext_iter *iter, const struct hr_error *error)
{
    if (ext_raise_failure(iter->graph->registry, error, hr_iter_detail(iter->iter)))
        interrupted(iter);
}

/* The next batch; NULL with an exception set, or without one at the end. */
static struct hr_batch *wait_batch(struct ext_iter *iter)
{
    struct hr_batch *batch = NULL;
    struct hr_error error = {0};
    enum hr_err code = HR_OK;

    while (code == HR_OK && batch == NULL) {
        Py_BEGIN_ALLOW_THREADS;
        code = hr_iter_next_for(iter->iter, EXT_SLICE_MS * 1000000u, &batch, &error);
        Py_END_ALLOW_THREADS;
        if (code == HR_OK && batch == NULL && PyErr_CheckSignals() < 0) {
            interrupted(iter);
            return NULL;
        }
        /* User code raised an exception that ends the program, such as SystemExit:
         * raise it now, without waiting for earlier records. */
        if (batch == NULL && ext_fatal_is_due(iter->graph->registry)) {
            raise_failure(iter, &error);
            return NULL;
        }
    }
    if (code != HR_OK && code != HR_ERR_END)
        raise_failure(iter, &error);
    return batch;
}

/* Never returns: for daemon threads whose iterator was cancelled by the interpreter's
 * exit, during which they must not run Python code. */
static void park(void)
{
    PyErr_Clear();
    Py_BEGIN_ALLOW_THREADS;
    for (;;)
        pause();
    Py_END_ALLOW_THREADS;
}

static PyObject *fail_next(struct ext_iter *iter, struct hr_batch *batch)
{
    hr_batch_unref(batch);
    if (atomic_load(&state_of(iter)->ending) && atomic_load(&iter->cancelled))
        park();
    return NULL;
}

static PyObject *iter_next(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);
    struct hr_batch *batch;
    bool failed;

    (void)unused;
    if (enter(iter) < 0)
        return fail_next(iter, NULL);
    batch = wait_batch(iter);
    failed = PyErr_Occurred() != NULL;
    if (failed && atomic_load(&iter->cancelled))
        interrupted(iter);
    if (leave(iter) < 0 || failed)
        return fail_next(iter, batch);
    if (batch == NULL)
        Py_RETURN_NONE;
    return ext_batch_create(state_of(iter), batch);
}

/* ---- the rest ---- */

static PyObject *iter_cancel(PyObject *self, PyObject *unused)
{
    (void)unused;
    cancel(of(self));
    Py_RETURN_NONE;
}

static PyObject *iter_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (close_iter(of(self), CLOSE_WAIT_MS, true) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The text of hr_iter_save and its like. */
static PyObject *
iter_text(struct ext_iter *iter,
          enum hr_err (*print)(const struct hr_iter *, char **, struct hr_error *))
{
    struct hr_error error = {0};
    char *text = NULL;
    enum hr_err code;

    if (enter(iter) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = print(iter->iter, &text, &error);
    Py_END_ALLOW_THREADS;
    if (leave(iter) < 0) {
        hr_free(text);
        return NULL;
    }
    return code == HR_OK ? ext_take_text(text)
                         : ext_raise(state_of(iter), &error, NULL, NULL);
}

static PyObject *iter_save(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);

    (void)unused;
    if (is_closed(iter) && iter->saved != NULL)
        return PyUnicode_FromString(iter->saved);
    return iter_text(iter, hr_iter_save);
}

/* ---- one of several consumers ---- */

/* What is asked of a dispatcher, and the answer. */
struct question {
    enum hr_err (*ask)(struct hr_iter *iter, struct question *question,
                       struct hr_error *reterr);
    uint64_t number;
    bool yes;
};

#define SLICE_NS (EXT_SLICE_MS * (uint64_t)1000000)

static enum hr_err
ask_committed(struct hr_iter *iter, struct question *question, struct hr_error *reterr)
{
    return hr_iter_committed(iter, SLICE_NS, &question->number, reterr);
}

static enum hr_err
ask_due(struct hr_iter *iter, struct question *question, struct hr_error *reterr)
{
    return hr_iter_commit_due(iter, SLICE_NS, &question->yes, reterr);
}

static enum hr_err
ask_commit(struct hr_iter *iter, struct question *question, struct hr_error *reterr)
{
    (void)question;
    return hr_iter_commit(iter, SLICE_NS, reterr);
}

/* Waits for the answer, serving signals. -1 with an exception set. A time-out with a
 * message is the run's own. */
static int wait_answer(struct ext_iter *iter, struct question *question)
{
    struct hr_error error;
    enum hr_err code;
    bool raised = false;

    if (enter(iter) < 0)
        return -1;
    do {
        error = (struct hr_error){0};
        Py_BEGIN_ALLOW_THREADS;
        code = question->ask(iter->iter, question, &error);
        Py_END_ALLOW_THREADS;
        raised = code == HR_ERR_TIMEOUT && PyErr_CheckSignals() < 0;
    } while (code == HR_ERR_TIMEOUT && error.message[0] == '\0' && !raised &&
             !atomic_load(&iter->cancelled));
    if (!raised && code != HR_OK)
        ext_raise(state_of(iter), &error, NULL, NULL);
    if (leave(iter) < 0 || raised || code != HR_OK)
        return -1;
    return 0;
}

static PyObject *iter_committed(PyObject *self, PyObject *unused)
{
    struct question question = {.ask = ask_committed};

    (void)unused;
    if (wait_answer(of(self), &question) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(question.number);
}

static PyObject *iter_commit_due(PyObject *self, PyObject *unused)
{
    struct question question = {.ask = ask_due};

    (void)unused;
    if (wait_answer(of(self), &question) < 0)
        return NULL;
    return PyBool_FromLong(question.yes);
}

static PyObject *iter_commit(PyObject *self, PyObject *unused)
{
    struct question question = {.ask = ask_commit};

    (void)unused;
    if (wait_answer(of(self), &question) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *iter_resume(PyObject *self, PyObject *text)
{
    struct ext_iter *iter = of(self);
    const char *state = PyUnicode_AsUTF8AndSize(text, NULL);
    struct hr_error error = {0};
    enum hr_err code;

    if (state == NULL || enter(iter) < 0)
        return NULL;
    code = hr_iter_resume(iter->iter, state, &error);
    if (leave(iter) < 0)
        return NULL;
    if (code != HR_OK)
        return ext_raise(state_of(iter), &error, NULL, NULL);
    Py_RETURN_NONE;
}

/* ---- the rest ---- */

static PyObject *iter_seed(PyObject *self, PyObject *number)
{
    struct ext_iter *iter = of(self);
    uint64_t seed = PyLong_AsUnsignedLongLong(number);
    struct hr_error error = {0};
    enum hr_err code;

    if (seed == UINT64_MAX && PyErr_Occurred() != NULL)
        return NULL;
    if (enter(iter) < 0)
        return NULL;
    code = hr_iter_seed(iter->iter, seed, &error);
    if (leave(iter) < 0)
        return NULL;
    if (code != HR_OK)
        return ext_raise(state_of(iter), &error, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *iter_demand(PyObject *self, PyObject *rate)
{
    struct ext_iter *iter = of(self);
    double demand = PyFloat_AsDouble(rate);
    struct hr_error error = {0};
    enum hr_err code;

    if (demand == -1 && PyErr_Occurred() != NULL)
        return NULL;
    if (is_closed(iter))
        Py_RETURN_NONE;
    if (enter(iter) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_iter_demand(iter->iter, demand, &error);
    Py_END_ALLOW_THREADS;
    if (leave(iter) < 0)
        return NULL;
    if (code != HR_OK)
        return ext_raise(state_of(iter), &error, NULL, NULL);
    Py_RETURN_NONE;
}

static PyObject *iter_stats(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);
    struct hr_iter_stats stats;

    (void)unused;
    if (is_closed(iter))
        return ext_iter_stats_dict(&iter->stats);
    if (enter(iter) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    hr_iter_stats(iter->iter, &stats);
    Py_END_ALLOW_THREADS;
    if (leave(iter) < 0)
        return NULL;
    return ext_iter_stats_dict(&stats);
}

static PyObject *iter_node_stats(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);
    PyObject *list;

    (void)unused;
    if (is_closed(iter) && iter->node_stats != NULL)
        return Py_NewRef(iter->node_stats);
    if (enter(iter) < 0)
        return NULL;
    list = ext_node_stats_list(iter->iter);
    if (leave(iter) < 0)
        Py_CLEAR(list);
    return list;
}

static PyObject *iter_trace(PyObject *self, PyObject *unused)
{
    (void)unused;
    return iter_text(of(self), hr_iter_trace);
}

static enum hr_err
print_profile(const struct hr_iter *iter, char **ret_text, struct hr_error *reterr)
{
    struct hr_profile *profile = NULL;
    enum hr_err code = hr_iter_profile(iter, &profile, reterr);

    if (code == HR_OK)
        code = hr_profile_print(profile, ret_text, reterr);
    hr_profile_free(profile);
    return code;
}

static PyObject *iter_profile(PyObject *self, PyObject *unused)
{
    (void)unused;
    return iter_text(of(self), print_profile);
}

/* ---- the type ---- */

static PyMethodDef iter_methods[] = {
    {"next",       iter_next,       METH_NOARGS,
     "next() -> Batch | None\n--\n\n"
     "The next batch, None at the end. Threads take turns. Signals are served while it\n"
     "waits; when a handler raises, the iterator is closed and the exception is the\n"
     "handler's."                                                                    },
    {"cancel",     iter_cancel,     METH_NOARGS,
     "cancel()\n--\n\nEnd a next() that waits or comes; from any thread."            },
    {"close",      iter_close,      METH_NOARGS,
     "close()\n--\n\n"
     "Stop and free; returns within a few seconds whatever user code does, with a\n"
     "RuntimeWarning that names a thread still in it. Batches stay valid; save() and\n"
     "stats() return the last values. From within its own user code it cancels only."},
    {"save",       iter_save,       METH_NOARGS,
     "save() -> str\n--\n\nWhere the consumer stands, as JSON for the option state." },
    {"committed",  iter_committed,  METH_NOARGS,
     "committed() -> int\n--\n\n"
     "The number of the checkpoint that counts; see hr_iter_committed."              },
    {"resume",     iter_resume,     METH_O,
     "resume(state)\n--\n\nFrom that checkpoint; see hr_iter_resume."                },
    {"commit_due", iter_commit_due, METH_NOARGS,
     "commit_due() -> bool\n--\n\nWhether no batch comes before a commit."           },
    {"commit",     iter_commit,     METH_NOARGS,
     "commit()\n--\n\nAll batches of next() so far; see hr_iter_commit."             },
    {"stats",      iter_stats,      METH_NOARGS,
     "stats() -> dict\n--\n\nWhat happened; see struct hr_iter_stats."               },
    {"demand",     iter_demand,     METH_O,
     "demand(rate)\n--\n\nWhat the run is to make; see hr_iter_demand."              },
    {"seed",       iter_seed,       METH_O,
     "seed(seed)\n--\n\nOf the next record; see hr_iter_seed."                       },
    {"node_stats", iter_node_stats, METH_NOARGS,
     "node_stats() -> list[dict]\n--\n\nWhat happened in each node."                 },
    {"profile",    iter_profile,    METH_NOARGS,
     "profile() -> str\n--\n\nWhat its nodes cost so far (hr_iter_profile)."         },
    {"trace",      iter_trace,      METH_NOARGS,
     "trace() -> str\n--\n\nThe spans recorded so far, as Chrome trace JSON."        },
    {NULL,         NULL,            0,           NULL                                },
};

static PyMemberDef iter_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct ext_iter, weak), READONLY,                NULL},
    {NULL,                    0,                           0,                               0,         NULL},
};

static PyType_Slot iter_slots[] = {
    {Py_tp_doc,
     "Iter(graph, options)\n--\n\n"
     "A run of a graph. options: the fields of struct hr_iter_options by name."},
    {Py_tp_new,      iter_new                                                  },
    {Py_tp_dealloc,  iter_dealloc                                              },
    {Py_tp_finalize, iter_finalize                                             },
    {Py_tp_traverse, iter_traverse                                             },
    {Py_tp_clear,    iter_clear                                                },
    {Py_tp_methods,  iter_methods                                              },
    {Py_tp_members,  iter_members                                              },
    {0,              NULL                                                      },
};

PyType_Spec ext_iter_spec = {
    .name = "headrace._headrace.Iter",
    .basicsize = sizeof(struct ext_iter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = iter_slots,
};
