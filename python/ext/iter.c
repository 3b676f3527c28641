/*
 * Iterators: next with signals served, and an end that always comes.
 *
 * An iterator is for one thread at a time; a lock makes that so, and lets close() come
 * from another one. Closing joins the engine's threads. These may be in user code that
 * does not return, so a thread of its own closes the handle; whoever asked waits for it,
 * serving signals, and gives up waiting when one of them raises. User code that closes or
 * drops the iterator it runs for cannot wait for itself: it only cancels.
 *
 * After a fork the child has the handle but not its threads: it is told so, and leaves
 * the memory alone.
 */
#include "ext.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long a wait lasts before signals are looked at. */
#define SLICE_MS 40
/* Of user code after Ctrl-C, and at the end of the interpreter. */
#define PATIENCE_MS 1000

/* A handle that is being closed; two references, the closer's and the waiter's. */
struct closing {
    atomic_int refs;
    atomic_bool done;
    struct hr_iter *iter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct ext_iter {
    PyObject_HEAD PyObject *weak;
    struct ext_graph *graph;
    struct hr_iter *iter; /* NULL once it is closed */
    unsigned forks;
    PyThread_type_lock lock; /* who is in the handle */
    unsigned long owner;     /* that thread, 0: none */
    bool cancelled;          /* close it as soon as nobody is in it */
    char *saved;             /* of the handle when it was closed, or NULL */
    struct hr_iter_stats stats;
    struct ext_iter *next_open, **prev_open; /* list in the module's state */
};

static struct ext_iter *of(PyObject *self)
{
    return (struct ext_iter *)self;
}

static struct ext_state *state_of(struct ext_iter *iter)
{
    return iter->graph->home.state;
}

/* ---- closing ---- */

static void closing_unref(struct closing *closing)
{
    if (atomic_fetch_sub(&closing->refs, 1) > 1)
        return;
    pthread_cond_destroy(&closing->changed);
    pthread_mutex_destroy(&closing->lock);
    free(closing);
}

static void *close_thread(void *user)
{
    struct closing *closing = user;

    hr_iter_close(closing->iter);
    pthread_mutex_lock(&closing->lock);
    atomic_store(&closing->done, true);
    pthread_cond_signal(&closing->changed);
    pthread_mutex_unlock(&closing->lock);
    closing_unref(closing);
    return NULL;
}

static struct closing *closing_create(struct hr_iter *iter)
{
    struct closing *closing = calloc(1, sizeof *closing);
    pthread_condattr_t monotonic;

    if (closing == NULL)
        return NULL;
    atomic_init(&closing->refs, 2);
    closing->iter = iter;
    pthread_mutex_init(&closing->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&closing->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return closing;
}

/* Without the interpreter's lock; true when it is closed. */
static bool wait_slice(struct closing *closing)
{
    struct timespec until;
    bool done;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SLICE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&closing->lock);
    if (!atomic_load(&closing->done))
        pthread_cond_timedwait(&closing->changed, &closing->lock, &until);
    done = atomic_load(&closing->done);
    pthread_mutex_unlock(&closing->lock);
    return done;
}

/* Wait for at most `patience_ms`, serving signals unless `patience_ms` is given. -1 when
 * one of them raised. */
static int wait_closed(struct closing *closing, int patience_ms)
{
    for (int waited = 0; patience_ms <= 0 || waited < patience_ms; waited += SLICE_MS) {
        bool done;

        Py_BEGIN_ALLOW_THREADS;
        done = wait_slice(closing);
        Py_END_ALLOW_THREADS;
        if (done)
            break;
        if (patience_ms <= 0 && PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

/* Close `iter` beside this thread, which waits (see wait_closed) unless `patience_ms` is
 * negative. */
static int close_beside(struct hr_iter *iter, int patience_ms)
{
    struct closing *closing = closing_create(iter);
    pthread_t thread;
    int result = 0;

    if (closing == NULL || pthread_create(&thread, NULL, close_thread, closing) != 0) {
        if (closing != NULL) {
            closing_unref(closing);
            closing_unref(closing);
        }
        if (patience_ms < 0) /* this thread may be one of the iterator's own */
            return 0;
        Py_BEGIN_ALLOW_THREADS;
        hr_iter_close(iter);
        Py_END_ALLOW_THREADS;
        return 0;
    }
    pthread_detach(thread);
    if (patience_ms >= 0)
        result = wait_closed(closing, patience_ms);
    closing_unref(closing);
    return result;
}

static void unlist(struct ext_iter *iter)
{
    if (iter->prev_open == NULL)
        return;
    *iter->prev_open = iter->next_open;
    if (iter->next_open != NULL)
        iter->next_open->prev_open = iter->prev_open;
    iter->prev_open = NULL;
}

/* By whoever has the lock, or when nobody else can be there. -1 when a signal's handler
 * raised meanwhile; the handle is on its way out then, too. */
static int close_handle(struct ext_iter *iter, int patience_ms)
{
    struct hr_iter *handle = iter->iter;
    struct ext_home *home;
    int result = 0;

    if (handle == NULL)
        return 0;
    iter->iter = NULL;
    unlist(iter);
    ext_count(EXT_ITER, -1);
    if (iter->forks != ext_forks())
        return 0;
    hr_iter_cancel(handle);
    if (hr_iter_save(handle, &iter->saved, NULL) != HR_OK)
        iter->saved = NULL;
    hr_iter_stats(handle, &iter->stats);
    home = &iter->graph->home;
    if (home->codes == NULL) { /* nothing of the user's to wait for */
        home->runs--;
        Py_BEGIN_ALLOW_THREADS;
        hr_iter_close(handle);
        Py_END_ALLOW_THREADS;
        return 0;
    }
    ext_home_interrupt(home);
    if (--home->runs == 0)
        Py_CLEAR(home->kept);
    result = close_beside(handle, ext_home_is_here(home) ? -1 : patience_ms);
    return result;
}

/* ---- one thread at a time ---- */

/* -1 with an Error set, unless this thread is in the handle from here on. */
static int enter(struct ext_iter *iter)
{
    if (iter->iter == NULL) {
        ext_fail(state_of(iter), HR_ERR_STATE, NULL, "the iterator is closed");
        return -1;
    }
    if (iter->forks != ext_forks()) {
        ext_fail(state_of(iter), HR_ERR_STATE, NULL,
                 "the iterator was opened before this process was forked; open one in "
                 "the process that uses it");
        return -1;
    }
    if (!PyThread_acquire_lock(iter->lock, NOWAIT_LOCK)) {
        ext_fail(state_of(iter), HR_ERR_STATE, NULL,
                 "the iterator is in use by another thread or further up in this one");
        return -1;
    }
    iter->owner = PyThread_get_thread_ident();
    return 0;
}

/* Whether it was cancelled meanwhile: then it is closed. -1 with an exception set. */
static int leave(struct ext_iter *iter)
{
    int result = iter->cancelled ? close_handle(iter, 0) : 0;

    iter->owner = 0;
    PyThread_release_lock(iter->lock);
    return result;
}

static void cancel(struct ext_iter *iter)
{
    if (iter->iter == NULL || iter->forks != ext_forks())
        return;
    hr_iter_cancel(iter->iter);
    ext_home_interrupt(&iter->graph->home);
}

/* From any thread, also while another one is in next(). */
static int close_iter(struct ext_iter *iter, int patience_ms)
{
    int result;

    if (iter->iter == NULL)
        return 0;
    if (iter->forks != ext_forks())
        return close_handle(iter, 0);
    cancel(iter);
    iter->cancelled = true;
    if (iter->owner == PyThread_get_thread_ident() ||
        ext_home_is_here(&iter->graph->home))
        return 0; /* whoever is in it, or drops it, closes it */
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(iter->lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS;
    iter->owner = PyThread_get_thread_ident();
    result = close_handle(iter, patience_ms);
    iter->owner = 0;
    PyThread_release_lock(iter->lock);
    return result;
}

/* ---- life ---- */

static void list_open(struct ext_iter *iter, struct ext_state *state)
{
    iter->next_open = state->iters;
    iter->prev_open = &state->iters;
    if (state->iters != NULL)
        state->iters->prev_open = &iter->next_open;
    state->iters = iter;
}

/* HR_OK, or an Error set. */
static enum hr_err
open_handle(struct ext_iter *iter, const struct hr_iter_options *options)
{
    struct ext_graph *graph = iter->graph;
    struct hr_error error = {0};
    struct hr_iter *handle = NULL;
    enum hr_err code;

    if (ext_graph_lock(graph) < 0)
        return HR_ERR_STATE;
    ext_home_settle(&graph->home);
    graph->home.keep |= options->on_error == HR_ON_ERROR_FAIL;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_iter_open(graph->graph, options, &handle, &error);
    Py_END_ALLOW_THREADS;
    ext_graph_unlock(graph);
    if (code != HR_OK) {
        ext_raise(state_of(iter), &error, NULL, ext_kept_take(&graph->home, &error));
        return code;
    }
    iter->iter = handle;
    iter->forks = ext_forks();
    ext_count(EXT_ITER, 1);
    graph->home.runs++;
    list_open(iter, state_of(iter));
    return HR_OK;
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

/* Before the collector clears what the user's code needs, and before dealloc. Nobody else
 * is in the handle: they would hold a reference. */
static void iter_finalize(PyObject *self)
{
    PyObject *type, *value, *traceback;

    if (of(self)->iter == NULL)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    if (close_handle(of(self), PATIENCE_MS) < 0)
        PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
}

static int iter_clear(PyObject *self)
{
    (void)self; /* the graph clears what it has; this must keep it until dealloc */
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
    if (iter->lock != NULL)
        PyThread_free_lock(iter->lock);
    Py_XDECREF((PyObject *)iter->graph);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyObject *ext_iters_close(PyObject *module, PyObject *unused)
{
    struct ext_state *state = ext_state_of(module);

    (void)unused;
    state->ending = true;
    while (state->iters != NULL) {
        struct ext_iter *iter = state->iters;

        Py_INCREF((PyObject *)iter);
        unlist(iter);
        if (close_iter(iter, PATIENCE_MS) < 0)
            PyErr_Clear();
        Py_DECREF((PyObject *)iter);
    }
    Py_RETURN_NONE;
}

/* ---- next ---- */

/* A handler of a signal raised: close without waiting for long, keep its exception. */
static void interrupted(struct ext_iter *iter)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (close_handle(iter, PATIENCE_MS) < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static void raise_failure(struct ext_iter *iter, const struct hr_error *error)
{
    struct ext_home *home = &iter->graph->home;
    PyObject *fatal = home->fatal;

    if (fatal == NULL) {
        ext_raise(state_of(iter), error, hr_iter_detail(iter->iter),
                  ext_kept_take(home, error));
        return;
    }
    home->fatal = NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(fatal), fatal);
    Py_DECREF(fatal);
    interrupted(iter);
}

/* The batch, NULL with an exception set, or NULL at the end. */
static struct hr_batch *wait_batch(struct ext_iter *iter)
{
    struct hr_batch *batch = NULL;
    struct hr_error error = {0};
    enum hr_err code = HR_OK;

    while (code == HR_OK && batch == NULL) {
        Py_BEGIN_ALLOW_THREADS;
        code = hr_iter_next_for(iter->iter, SLICE_MS * 1000000u, &batch, &error);
        Py_END_ALLOW_THREADS;
        if (code == HR_OK && batch == NULL && PyErr_CheckSignals() < 0) {
            interrupted(iter);
            return NULL;
        }
    }
    if (code != HR_OK && code != HR_ERR_END)
        raise_failure(iter, &error);
    return batch;
}

/* A daemon thread whose iterator the end of the interpreter cancelled: it must not come
 * back, for what it would print meets an interpreter that is going. */
static void park(void)
{
    PyErr_Clear();
    Py_BEGIN_ALLOW_THREADS;
    for (;;)
        pause();
    Py_END_ALLOW_THREADS;
}

static PyObject *iter_next(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);
    struct hr_batch *batch;
    bool failed;

    (void)unused;
    if (enter(iter) < 0)
        return NULL;
    batch = wait_batch(iter);
    failed = PyErr_Occurred() != NULL;
    if (failed && iter->cancelled)
        interrupted(iter);
    if (leave(iter) < 0 || failed) {
        hr_batch_unref(batch);
        if (state_of(iter)->ending && iter->cancelled)
            park();
        return NULL;
    }
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
    if (close_iter(of(self), 0) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *take_text(char *text)
{
    PyObject *string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    hr_free(text);
    return string;
}

/* What hr_iter_save or hr_iter_trace prints. */
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
    return code == HR_OK ? take_text(text)
                         : ext_raise(state_of(iter), &error, NULL, NULL);
}

static PyObject *iter_save(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);

    (void)unused;
    if (iter->iter == NULL && iter->saved != NULL)
        return PyUnicode_FromString(iter->saved);
    return iter_text(iter, hr_iter_save);
}

static PyObject *iter_stats(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);

    (void)unused;
    if (iter->iter != NULL) {
        if (enter(iter) < 0)
            return NULL;
        Py_BEGIN_ALLOW_THREADS;
        hr_iter_stats(iter->iter, &iter->stats);
        Py_END_ALLOW_THREADS;
        if (leave(iter) < 0)
            return NULL;
    }
    return ext_iter_stats_dict(&iter->stats);
}

static PyObject *iter_node_stats(PyObject *self, PyObject *unused)
{
    struct ext_iter *iter = of(self);
    PyObject *list;

    (void)unused;
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

/* ---- the type ---- */

static PyMethodDef iter_methods[] = {
    {"next",       iter_next,       METH_NOARGS,
     "next() -> Batch | None\n--\n\n"
     "The next batch, None at the end. Signals are served while it waits; when a "
     "handler\n"
     "raises, the iterator is closed and the exception is the handler's."           },
    {"cancel",     iter_cancel,     METH_NOARGS,
     "cancel()\n--\n\nEnd a next() that waits or comes; from any thread."           },
    {"close",      iter_close,      METH_NOARGS,
     "close()\n--\n\n"
     "Stop and free; waits for the workers. Batches stay valid, and save() and stats()\n"
     "tell what was last. From within its own user code it cancels only."           },
    {"save",       iter_save,       METH_NOARGS,
     "save() -> str\n--\n\nWhere the consumer stands, as JSON for the option state."},
    {"stats",      iter_stats,      METH_NOARGS,
     "stats() -> dict\n--\n\nWhat happened; see struct hr_iter_stats."              },
    {"node_stats", iter_node_stats, METH_NOARGS,
     "node_stats() -> list[dict]\n--\n\nWhat happened in each node."                },
    {"trace",      iter_trace,      METH_NOARGS,
     "trace() -> str\n--\n\nThe spans recorded so far, as Chrome trace JSON."       },
    {NULL,         NULL,            0,           NULL                               },
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
