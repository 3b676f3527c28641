/*
 * User code: Python functions as struct hr_code.
 *
 * enter and leave take the interpreter's lock for a run of calls. A thread of the engine
 * keeps its thread state from the first call to its end, so that what the user's code
 * puts into threading.local stays there.
 *
 * The worker process may enter once for several functions (proc/serve.c), so nothing
 * about a function hangs on enter: a call registers itself.
 */
#include "ext.h"

#include <stdio.h>
#include <string.h>

/* Exceptions kept for __cause__; the first in order of records are what a run ends with.
 */
#define KEPT_MAX 16

/* A call that runs; on the stack of its thread. */
struct ext_call {
    struct ext_call *next, **prev; /* in the home's list */
    struct ext_here *here;         /* of this thread */
    struct ext_call *outer;
    struct ext_home *home; /* kept by the code that is called */
    struct hr_code_call *call;
    unsigned long long number; /* of this thread's calls */
    unsigned forks;
    bool interrupted;
};

/* One object, found once a call: that is a call by itself. */
static _Thread_local struct ext_here {
    struct ext_call *current;
    unsigned long long calls;
    unsigned long thread; /* 0 before its first call */
    bool foreign;         /* the engine made this thread */
} here;

/* ---- the interpreter's lock ---- */

/* C++'s destructors of thread-local objects: unlike those of pthread keys they run while
 * the interpreter still knows this thread's state. Absent from some C libraries; there a
 * state lives for one run of calls. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *object), void *object,
                                    void *library) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* At the end of a thread of the engine: drop the hold of first_enter. */
static void forget_thread(void *unused)
{
    (void)unused;
    if (!Py_IsInitialized())
        return;
    PyGILState_Ensure();
    PyGILState_Release(PyGILState_LOCKED);
    PyGILState_Release(PyGILState_UNLOCKED);
}

/* The thread's state is made here and is alive until forget_thread. */
static void first_enter(void)
{
    here.foreign = true;
    if (__cxa_thread_atexit_impl == NULL ||
        __cxa_thread_atexit_impl(forget_thread, NULL, &__dso_handle) != 0)
        return;
    PyGILState_Ensure();
    PyEval_SaveThread();
}

static void *code_enter(void *user)
{
    (void)user;
    if (PyGILState_GetThisThreadState() == NULL)
        first_enter();
    return (void *)(intptr_t)(PyGILState_Ensure() == PyGILState_LOCKED);
}

static void code_leave(void *user, void *token)
{
    (void)user;
    PyGILState_Release(token != NULL ? PyGILState_LOCKED : PyGILState_UNLOCKED);
}

/* ---- exceptions ---- */

/* A child path as bytes, which sort as the path does. */
static PyObject *path_bytes(const uint32_t *children, size_t depth)
{
    char bytes[4 * HR_CHILD_DEPTH_MAX];

    for (size_t i = 0; i < depth; i++)
        for (size_t k = 0; k < 4; k++)
            bytes[4 * i + k] = (char)(children[i] >> (24 - 8 * k));
    return PyBytes_FromStringAndSize(bytes, (Py_ssize_t)(4 * depth));
}

/* Sorts by the order of records; never as far as to compare exceptions. */
static PyObject *kept_entry(struct ext_call *frame, PyObject *exception)
{
    struct hr_code_record record = {0};

    hr_code_record(frame->call, &record);
    return Py_BuildValue(
        "(KKNsKnO)", (unsigned long long)record.epoch,
        (unsigned long long)record.position, path_bytes(record.children, record.depth),
        record.node, (unsigned long long)record.index, (Py_ssize_t)exception, exception);
}

/* Add to a list of KEPT_MAX at most; a new reference to the entry that is too much, or
 * NULL. Drops nothing: the home is locked. */
static PyObject *insert_kept(PyObject *kept, PyObject *entry)
{
    PyObject *last;

    if (PyList_Append(kept, entry) < 0 || PyList_Size(kept) <= KEPT_MAX ||
        PyList_Sort(kept) < 0)
        return NULL;
    last = Py_XNewRef(PyList_GetItem(kept, KEPT_MAX));
    PyList_SetSlice(kept, KEPT_MAX, KEPT_MAX + 1, NULL);
    return last;
}

/* Keep the exception when there is room, or in the place of one that is later. */
static void keep(struct ext_call *frame, PyObject *exception)
{
    struct ext_home *home = frame->home;
    PyObject *list, *entry, *last = NULL;

    if (!atomic_load_explicit(&home->keep, memory_order_relaxed))
        return;
    list = PyList_New(0);
    entry = kept_entry(frame, exception);
    if (list != NULL && entry != NULL) {
        ext_mutex_lock(&home->mutex);
        if (home->kept == NULL && !home->gone)
            home->kept = Py_NewRef(list);
        if (home->kept != NULL)
            last = insert_kept(home->kept, entry);
        ext_mutex_unlock(&home->mutex);
    }
    Py_XDECREF(list);
    Py_XDECREF(last);
    Py_XDECREF(entry);
    PyErr_Clear();
}

/* An exception that ends more than the record, unless this module raised it. */
static void keep_fatal(struct ext_call *frame, PyObject *exception)
{
    struct ext_home *home = frame->home;

    ext_mutex_lock(&home->mutex);
    if (!home->gone && home->fatal == NULL && !frame->interrupted)
        home->fatal = Py_NewRef(exception);
    ext_mutex_unlock(&home->mutex);
}

/* Whether the run is to end with what a call raised; several that share the code are not.
 * The home is locked. */
static bool is_due(const struct ext_home *home)
{
    return home->fatal != NULL && home->runs < 2;
}

bool ext_fatal_is_due(struct ext_home *home)
{
    bool due;

    ext_mutex_lock(&home->mutex);
    due = is_due(home);
    ext_mutex_unlock(&home->mutex);
    return due;
}

PyObject *ext_fatal_take(struct ext_home *home)
{
    PyObject *fatal;

    ext_mutex_lock(&home->mutex);
    fatal = home->fatal;
    home->fatal = NULL;
    ext_mutex_unlock(&home->mutex);
    return fatal;
}

static unsigned long long number_at(PyObject *entry, Py_ssize_t at)
{
    return PyLong_AsUnsignedLongLong(PyTuple_GetItem(entry, at));
}

static bool entry_is_of(PyObject *entry, const struct hr_error *error)
{
    PyObject *path = path_bytes(error->children, error->depth);
    const char *node = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(entry, 3), NULL);
    bool same = path != NULL && node != NULL && strcmp(node, error->node) == 0 &&
                number_at(entry, 0) == (unsigned long long)error->epoch &&
                number_at(entry, 1) == (unsigned long long)error->position &&
                number_at(entry, 4) + 1 == (unsigned long long)error->record &&
                PyObject_RichCompareBool(PyTuple_GetItem(entry, 2), path, Py_EQ) == 1;

    Py_XDECREF(path);
    return same;
}

PyObject *ext_kept_take(struct ext_home *home, const struct hr_error *error)
{
    PyObject *exception = NULL, *kept = NULL;

    ext_mutex_lock(&home->mutex);
    for (Py_ssize_t i = 0; home->kept != NULL && i < PyList_Size(home->kept); i++) {
        PyObject *entry = PyList_GetItem(home->kept, i);

        if (entry_is_of(entry, error)) {
            exception = Py_NewRef(PyTuple_GetItem(entry, 6));
            break;
        }
    }
    if (exception != NULL) {
        kept = home->kept;
        home->kept = NULL;
    }
    ext_mutex_unlock(&home->mutex);
    PyErr_Clear();
    Py_XDECREF(kept);
    return exception;
}

/* What the traceback says, for hr_iter_detail and worker processes. */
static void tell_detail(struct ext_call *frame, PyObject *exception)
{
    PyObject *text = ext_exception_text(exception), *bytes = ext_utf8(text);

    if (bytes != NULL)
        hr_code_detail(frame->call, PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    Py_XDECREF(text);
}

/* The exception that is set ends the call. */
static enum hr_err fail(struct ext_call *frame, enum hr_err code, struct hr_error *reterr)
{
    PyObject *exception = ext_exception_take();
    char words[640];

    if (exception == NULL)
        return code;
    ext_exception_words(exception, words, sizeof words);
    snprintf(reterr->message, sizeof reterr->message, "%s", words);
    reterr->code = code;
    tell_detail(frame, exception);
    if (!PyErr_GivenExceptionMatches(exception, PyExc_Exception) &&
        !frame->home->serves) {
        reterr->code = HR_ERR_CANCELLED;
        keep_fatal(frame, exception);
    } else {
        keep(frame, exception);
    }
    Py_DECREF(exception);
    return reterr->code;
}

/* ---- calls ---- */

static void drop_inputs(struct ext_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        Py_DECREF(inputs->items[i]);
}

static int make_inputs(struct ext_state *state, const struct hr_code_call *call,
                       struct ext_inputs *inputs)
{
    size_t count = hr_code_input_count(call);

    inputs->count = 0;
    if (count > EXT_INPUTS_MAX) {
        PyErr_Format(PyExc_SystemError, "%zu inputs", count);
        return -1;
    }
    for (; inputs->count < count; inputs->count++) {
        PyObject *input = ext_input(state, call, inputs->count);

        if (input == NULL) {
            drop_inputs(inputs);
            return -1;
        }
        inputs->items[inputs->count] = input;
    }
    return 0;
}

/* Few inputs go without a tuple around them. */
static PyObject *call_with(PyObject *function, const struct ext_inputs *inputs)
{
    PyObject *const *items = inputs->items;
    PyObject *tuple, *value = NULL;

    switch (inputs->count) {
    case 1:
        return PyObject_CallFunctionObjArgs(function, items[0], NULL);
    case 2:
        return PyObject_CallFunctionObjArgs(function, items[0], items[1], NULL);
    case 3:
        return PyObject_CallFunctionObjArgs(function, items[0], items[1], items[2], NULL);
    default:
        tuple = PyTuple_New((Py_ssize_t)inputs->count);
    }
    for (size_t i = 0; tuple != NULL && i < inputs->count; i++)
        if (PyTuple_SetItem(tuple, (Py_ssize_t)i, Py_NewRef(items[i])) < 0)
            Py_CLEAR(tuple);
    if (tuple != NULL)
        value = PyObject_CallObject(function, tuple);
    Py_XDECREF(tuple);
    return value;
}

/* A value, or a tuple with one per output. */
static enum hr_err
take_outputs(struct ext_state *state, struct hr_code_call *call, PyObject *value,
             const struct ext_inputs *inputs, struct hr_error *reterr)
{
    size_t count = hr_code_output_count(call);
    bool tuple = PyTuple_Check(value) && (count != 1 || PyTuple_Size(value) == 1);
    enum hr_err code = HR_OK;

    if (count > 1 && (!tuple || (size_t)PyTuple_Size(value) != count)) {
        PyErr_Format(PyExc_TypeError,
                     "the function must return a tuple of %zu values, one per output; "
                     "it returned %R%s",
                     count, (PyObject *)Py_TYPE(value),
                     tuple ? " of another length" : "");
        return HR_ERR_TYPE;
    }
    for (size_t i = 0; i < count && code == HR_OK; i++)
        code = ext_output(state, call, i,
                          tuple ? PyTuple_GetItem(value, (Py_ssize_t)i) : value, inputs,
                          reterr);
    return code;
}

static enum hr_err
take_children(struct ext_state *state, struct hr_code_call *call, PyObject *value,
              const struct ext_inputs *inputs, struct hr_error *reterr)
{
    PyObject *iterator = PyObject_GetIter(value), *child;
    enum hr_err code = iterator != NULL ? HR_OK : HR_ERR_TYPE;

    while (code == HR_OK && (child = PyIter_Next(iterator)) != NULL) {
        code = hr_code_child(call, reterr);
        if (code == HR_OK)
            code = take_outputs(state, call, child, inputs, reterr);
        Py_DECREF(child);
    }
    Py_XDECREF(iterator);
    return code == HR_OK && PyErr_Occurred() != NULL ? HR_ERR_ARGUMENT : code;
}

/* The end of the data, as the sequence and the iterator protocol have it. An IndexError
 * out of deeper frames is a mistake in there. */
static bool says_end(void)
{
    PyObject *type, *value, *traceback, *deeper = NULL;
    bool end = PyErr_ExceptionMatches(PyExc_StopIteration);

    if (!end && PyErr_ExceptionMatches(PyExc_IndexError)) {
        PyErr_Fetch(&type, &value, &traceback);
        if (traceback != NULL)
            deeper = PyObject_GetAttrString(traceback, "tb_next");
        PyErr_Clear();
        end = traceback == NULL || deeper == Py_None;
        Py_XDECREF(deeper);
        PyErr_Restore(type, value, traceback);
    }
    if (end)
        PyErr_Clear();
    return end;
}

/* A new reference to an item of `list`; NULL, with no exception, when there is no list or
 * no such item. */
static PyObject *list_item(PyObject *list, uint64_t index)
{
    PyObject *item = NULL;

    if (list != NULL && index < (uint64_t)PyList_Size(list)) {
        item = ext_list_item(list, (Py_ssize_t)index);
        if (item == NULL) /* another thread has shortened it */
            PyErr_Clear();
    }
    return item;
}

/* An item of a list needs no call; any other code has no list. */
static PyObject *make_record(PyObject *function, PyObject *list, uint64_t index)
{
    PyObject *number, *value = list_item(list, index);

    if (value != NULL)
        return value;
    number = PyLong_FromUnsignedLongLong(index);
    if (number == NULL)
        return NULL;
    value = PyObject_CallFunctionObjArgs(function, number, NULL);
    Py_DECREF(number);
    return value;
}

static enum hr_err
call_source(struct ext_call *frame, struct ext_state *state, PyObject *function,
            PyObject *list, struct hr_error *reterr)
{
    static const struct ext_inputs nothing = {0};
    PyObject *value = make_record(function, list, hr_code_index(frame->call));
    enum hr_err code;

    if (value == NULL)
        return says_end() ? HR_ERR_END : HR_ERR_ARGUMENT;
    code = take_outputs(state, frame->call, value, &nothing, reterr);
    Py_DECREF(value);
    return code;
}

static enum hr_err
call_record(struct ext_call *frame, struct ext_state *state, enum ext_code_kind kind,
            PyObject *function, struct hr_error *reterr)
{
    struct ext_inputs inputs;
    enum hr_err code = HR_OK;
    PyObject *value;
    int truth;

    if (make_inputs(state, frame->call, &inputs) < 0) /* our memory, no record's fault */
        return PyErr_ExceptionMatches(PyExc_MemoryError) ? HR_ERR_MEMORY
                                                         : HR_ERR_ARGUMENT;
    value = call_with(function, &inputs);
    if (value == NULL) {
        code = HR_ERR_ARGUMENT;
    } else if (kind == EXT_FILTER) {
        truth = PyObject_IsTrue(value);
        hr_code_keep(frame->call, truth > 0);
        code = truth < 0 ? HR_ERR_ARGUMENT : HR_OK;
    } else if (kind == EXT_EXPAND) {
        code = take_children(state, frame->call, value, &inputs, reterr);
    } else {
        code = take_outputs(state, frame->call, value, &inputs, reterr);
    }
    Py_XDECREF(value);
    drop_inputs(&inputs);
    return code;
}

/* In a forked child, forget the calls and runs of the parent: their threads are not here,
 * and calls lie on stacks that new threads are given. The home is locked. */
static void settle(struct ext_home *home)
{
    if (home->forks == ext_forks())
        return;
    home->forks = ext_forks();
    home->calls = NULL;
    home->runs = 0;
}

/* A call begins. A new reference to the function, or NULL when the home is gone, or when
 * its run is about to end with what another call raised: no more code is to run then. */
static PyObject *
push(struct ext_call *frame, struct ext_code *code, struct hr_code_call *call)
{
    struct ext_here *thread = &here;
    struct ext_home *home = code->home;
    PyObject *function;

    if (thread->thread == 0)
        thread->thread = PyThread_get_thread_ident();
    frame->here = thread;
    frame->home = home;
    frame->call = call;
    frame->number = ++thread->calls;
    frame->forks = ext_forks();
    frame->interrupted = false;
    frame->outer = thread->current;
    ext_mutex_lock(&home->mutex);
    settle(home);
    function = is_due(home) ? NULL : Py_XNewRef(code->function);
    if (function != NULL) {
        frame->next = home->calls;
        frame->prev = &home->calls;
        if (home->calls != NULL)
            home->calls->prev = &frame->next;
        home->calls = frame;
        thread->current = frame;
    }
    ext_mutex_unlock(&home->mutex);
    return function;
}

static void pop(struct ext_call *frame)
{
    frame->here->current = frame->outer;
    if (frame->forks != ext_forks())
        return;
    ext_mutex_lock(&frame->home->mutex);
    *frame->prev = frame->next;
    if (frame->next != NULL)
        frame->next->prev = frame->prev;
    ext_mutex_unlock(&frame->home->mutex);
}

static bool is_plain(PyObject *item)
{
    return PyLong_CheckExact(item) || PyFloat_CheckExact(item) ||
           PyUnicode_CheckExact(item) || PyBytes_CheckExact(item);
}

/* An item of a list that is converted without anybody's code: no call to register. What
 * does not work out is done again as one, for its words. */
static bool take_plain(struct ext_code *code, struct hr_code_call *call)
{
    static const struct ext_inputs nothing = {0};
    struct ext_home *home = code->home;
    uint64_t index = hr_code_index(call);
    PyObject *list, *item;
    bool taken = false;

    ext_mutex_lock(&home->mutex);
    list = Py_XNewRef(code->list);
    ext_mutex_unlock(&home->mutex);
    item = list_item(list, index);
    if (item != NULL && is_plain(item) && hr_code_output_count(call) == 1)
        taken = ext_output(home->state, call, 0, item, &nothing, NULL) == HR_OK;
    if (!taken)
        PyErr_Clear();
    Py_XDECREF(item);
    Py_XDECREF(list);
    return taken;
}

/* Under the interpreter's lock, by enter. */
static enum hr_err
code_call(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    struct ext_code *code = user;
    struct ext_call frame;
    struct ext_state *state = code->home->state;
    PyObject *function;
    enum hr_err result;

    if (code->list != NULL && take_plain(code, call))
        return HR_OK;
    function = push(&frame, code, call);
    if (function == NULL) {
        snprintf(reterr->message, sizeof reterr->message, "the run was given up");
        return HR_ERR_CANCELLED;
    }
    if (code->kind == EXT_SOURCE)
        result = call_source(&frame, state, function, code->list, reterr);
    else
        result = call_record(&frame, state, code->kind, function, reterr);
    if (PyErr_Occurred() != NULL)
        result = fail(&frame, result != HR_OK ? result : HR_ERR_ARGUMENT, reterr);
    pop(&frame);
    Py_DECREF(function);
    return result;
}

/* ---- homes ---- */

struct ext_home *ext_home_create(struct ext_state *state)
{
    struct ext_home *home = calloc(1, sizeof *home);

    if (home == NULL)
        return PyErr_NoMemory(), NULL;
    atomic_init(&home->refs, 1);
    home->state = state;
    home->forks = ext_forks();
    return home;
}

void ext_home_unref(struct ext_home *home)
{
    if (home != NULL && atomic_fetch_sub(&home->refs, 1) == 1)
        free(home);
}

static void code_release(void *user)
{
    struct ext_code *code = user;

    if (atomic_fetch_sub(&code->refs, 1) > 1)
        return;
    ext_home_unref(code->home);
    ext_count(EXT_CODE, -1);
    free(code);
}

static int kind_of(const char *name)
{
    static const char *const kinds[] = {"source", "map", "filter", "expand"};

    for (int i = 0; i < 4; i++)
        if (strcmp(kinds[i], name) == 0)
            return i;
    PyErr_Format(PyExc_ValueError,
                 "kind is \"source\", \"map\", \"filter\" or \"expand\", not \"%s\"",
                 name);
    return -1;
}

/* The list whose __getitem__ `function` is, borrowed from it, or NULL. */
static PyObject *list_of(PyObject *function)
{
    PyObject *list, *own;
    bool same;

    if (!PyObject_TypeCheck(function, &PyCFunction_Type))
        return NULL;
    list = PyCFunction_GetSelf(function);
    if (list == NULL || !PyList_CheckExact(list))
        return NULL;
    own = PyObject_GetAttrString(list, "__getitem__");
    same = own != NULL && PyObject_RichCompareBool(own, function, Py_EQ) == 1;
    Py_XDECREF(own);
    PyErr_Clear();
    return same ? list : NULL;
}

int ext_code_create(struct ext_home *home, const char *kind, PyObject *function,
                    struct hr_code *ret_code)
{
    int number = kind_of(kind);
    struct ext_code *code;

    if (number < 0)
        return -1;
    code = calloc(1, sizeof *code);
    if (code == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    atomic_init(&code->refs, 2);
    code->kind = (enum ext_code_kind)number;
    code->list = code->kind == EXT_SOURCE ? list_of(function) : NULL;
    code->home = home;
    atomic_fetch_add(&home->refs, 1);
    ext_mutex_lock(&home->mutex);
    code->function = Py_NewRef(function);
    code->next = home->codes;
    home->codes = code;
    ext_mutex_unlock(&home->mutex);
    ext_count(EXT_CODE, 1);
    *ret_code = (struct hr_code){.identity = "",
                                 .user = code,
                                 .call = code_call,
                                 .enter = code_enter,
                                 .leave = code_leave,
                                 .release = code_release};
    return 0;
}

int ext_home_visit(struct ext_home *home, visitproc visit, void *arg)
{
    for (struct ext_code *code = home->codes; code != NULL; code = code->next)
        Py_VISIT(code->function);
    Py_VISIT(home->kept);
    Py_VISIT(home->fatal);
    return 0;
}

/* Take a function off the list, and the code that it is of. */
static struct ext_code *take_code(struct ext_home *home, PyObject **ret_function)
{
    struct ext_code *code;

    ext_mutex_lock(&home->mutex);
    code = home->codes;
    if (code != NULL) {
        home->codes = code->next;
        *ret_function = code->function;
        code->function = code->list = NULL;
    }
    ext_mutex_unlock(&home->mutex);
    return code;
}

void ext_home_clear(struct ext_home *home)
{
    PyObject *kept, *function;
    struct ext_code *code;

    ext_mutex_lock(&home->mutex);
    home->gone = true;
    kept = home->kept;
    home->kept = NULL;
    ext_mutex_unlock(&home->mutex);
    Py_XDECREF(kept);
    Py_XDECREF(ext_fatal_take(home));
    while ((code = take_code(home, &function)) != NULL) {
        code_release(code);
        Py_DECREF(function);
    }
}

void ext_home_begin(struct ext_home *home)
{
    ext_mutex_lock(&home->mutex);
    settle(home);
    home->runs++;
    ext_mutex_unlock(&home->mutex);
}

void ext_home_end(struct ext_home *home)
{
    PyObject *kept = NULL, *fatal = NULL;

    ext_mutex_lock(&home->mutex);
    if (--home->runs == 0) {
        kept = home->kept;
        fatal = home->fatal; /* nobody asked for it */
        home->kept = home->fatal = NULL;
    }
    ext_mutex_unlock(&home->mutex);
    Py_XDECREF(kept);
    Py_XDECREF(fatal);
}

void ext_home_interrupt(struct ext_home *home)
{
    ext_mutex_lock(&home->mutex);
    settle(home);
    for (struct ext_call *frame = home->calls; home->runs < 2 && frame != NULL;
         frame = frame->next)
        if (frame->here->foreign && frame != here.current) {
            frame->interrupted = true;
            PyThreadState_SetAsyncExc(frame->here->thread, PyExc_KeyboardInterrupt);
        }
    ext_mutex_unlock(&home->mutex);
}

bool ext_home_is_here(const struct ext_home *home)
{
    for (const struct ext_call *frame = here.current; frame != NULL; frame = frame->outer)
        if (frame->home == home)
            return true;
    return false;
}

PyObject *ext_current_record(PyObject *module, PyObject *unused)
{
    struct hr_code_record record = {0};

    (void)module, (void)unused;
    if (here.current == NULL)
        Py_RETURN_NONE;
    hr_code_record(here.current->call, &record);
    return Py_BuildValue(
        "(KKKKKsK)", (unsigned long long)record.seed,
        (unsigned long long)record.draw_epoch, (unsigned long long)record.index,
        (unsigned long long)record.key[0], (unsigned long long)record.key[1], record.node,
        here.current->number);
}
