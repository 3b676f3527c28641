/*
 * Calls of user code: Python functions as struct hr_code.
 *
 * enter and leave take the interpreter's lock for a run of calls. A thread of the engine
 * keeps its thread state from the first call to its end, so that what user code stores in
 * threading.local stays there.
 *
 * A worker process may enter once for several functions (proc/serve.c), so nothing about
 * a function depends on enter: a call registers itself.
 */
#include "user_code.h"

#include <stdio.h>
#include <string.h>

/* Looked up once per call, since the lookup is a function call. */
static _Thread_local struct ext_thread this_thread;

struct ext_call *ext_call_current(void)
{
    return this_thread.current;
}

/* ---- the interpreter's lock ---- */

/* C++'s destructors of thread-local objects: unlike those of pthread keys they run while
 * the interpreter still knows this thread's state. Absent from some C libraries; there a
 * state lives for one run of calls. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *object), void *object,
                                    void *library) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

/* At the end of a thread of the engine: drops what first_enter holds. */
static void forget_thread(void *unused)
{
    (void)unused;
    if (!Py_IsInitialized())
        return;
    PyGILState_Ensure();
    PyGILState_Release(PyGILState_LOCKED);
    PyGILState_Release(PyGILState_UNLOCKED);
}

/* Creates the thread's state, which lives until forget_thread. */
static void first_enter(void)
{
    this_thread.foreign = true;
    if (__cxa_thread_atexit_impl == NULL ||
        __cxa_thread_atexit_impl(forget_thread, NULL, &__dso_handle) != 0)
        return;
    PyGILState_Ensure();
    PyEval_SaveThread();
}

void *ext_code_enter(void *user)
{
    (void)user;
    if (PyGILState_GetThisThreadState() == NULL)
        first_enter();
    return (void *)(intptr_t)(PyGILState_Ensure() == PyGILState_LOCKED);
}

/* With the interpreter's lock. */
static void drop_items(struct ext_thread *thread)
{
    PyObject *items = thread->items;

    free(thread->indices);
    thread->indices = NULL;
    thread->items = NULL;
    thread->maker = NULL;
    thread->next = thread->count = 0;
    Py_XDECREF(items); /* last: it may run code */
}

void ext_code_leave(void *user, void *token)
{
    (void)user;
    if (this_thread.maker != NULL)
        drop_items(&this_thread);
    PyGILState_Release(token != NULL ? PyGILState_LOCKED : PyGILState_UNLOCKED);
}

/* ---- calls ---- */

static void drop_inputs(struct ext_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        Py_DECREF(inputs->items[i]);
        Py_XDECREF(inputs->lists[i]);
    }
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
        PyObject *input = ext_input(state, call, inputs->count), *list = NULL;

        if (input != NULL && PyList_Check(input)) {
            list = ext_list_copy(input);
            if (list == NULL)
                Py_CLEAR(input);
        }
        if (input == NULL) {
            drop_inputs(inputs);
            return -1;
        }
        inputs->items[inputs->count] = input;
        inputs->lists[inputs->count] = list;
    }
    return 0;
}

/* Avoids a tuple for up to three inputs. */
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

/* A dict with a value for each output, and no others. */
static enum hr_err
take_named(struct ext_state *state, struct hr_code_call *call, PyObject *dict,
           const struct ext_inputs *inputs, struct hr_error *reterr)
{
    size_t count = hr_code_output_count(call);
    enum hr_err code = HR_OK;

    for (size_t i = 0; i < count && code == HR_OK; i++) {
        struct hr_field_info info;
        PyObject *item;

        if (hr_code_output(call, i, &info) != HR_OK)
            return HR_ERR_INTERNAL;
        item = PyDict_GetItemString(dict, info.name); /* borrowed */
        if (item == NULL || (size_t)PyDict_Size(dict) != count) {
            PyErr_Format(
                PyExc_KeyError,
                "the function returned a dict with %zd values%s%s: its keys must "
                "be those of outputs, of which there are %zu",
                PyDict_Size(dict), item == NULL ? " and without " : "",
                item == NULL ? info.name : "", count);
            return HR_ERR_TYPE;
        }
        Py_INCREF(item); /* of a dict that another thread may change */
        code = ext_output(state, call, i, item, inputs, reterr);
        Py_DECREF(item);
    }
    return code;
}

/* A value, a tuple with one per output, or a dict of them. */
static enum hr_err
take_outputs(struct ext_state *state, struct hr_code_call *call, PyObject *value,
             const struct ext_inputs *inputs, struct hr_error *reterr)
{
    size_t count = hr_code_output_count(call);
    bool tuple = PyTuple_Check(value) && (count != 1 || PyTuple_Size(value) == 1);
    enum hr_err code = HR_OK;

    if (!tuple && PyDict_Check(value))
        return take_named(state, call, value, inputs, reterr);
    if (count > 1 && (!tuple || (size_t)PyTuple_Size(value) != count)) {
        PyErr_Format(
            PyExc_TypeError,
            "the function must return a tuple of %zu values, one per output, or a "
            "dict of them; it returned %R%s",
            count, (PyObject *)Py_TYPE(value), tuple ? " of another length" : "");
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

/* Whether the exception means the end of the data, by the sequence or iterator
 * protocol; clears it if so. An IndexError from deeper frames is an error. */
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

/* A new reference to an item of `list`; NULL, without an exception, if there is no list
 * or item. */
static PyObject *list_item(PyObject *list, uint64_t index)
{
    PyObject *item = NULL;

    if (list != NULL && index < (uint64_t)PyList_Size(list)) {
        item = ext_list_item(list, (Py_ssize_t)index);
        if (item == NULL) /* another thread has shortened the list */
            PyErr_Clear();
    }
    return item;
}

static PyObject *list_of_numbers(const uint64_t *numbers, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count), *number;

    for (size_t i = 0; list != NULL && i < count; i++) {
        number = PyLong_FromUnsignedLongLong(numbers[i]);
        if (number == NULL || PyList_SetItem(list, (Py_ssize_t)i, number) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* What the data set returns for these records; NULL with an exception. */
static PyObject *call_several(struct ext_call *frame, struct ext_code *code,
                              const uint64_t *indices, size_t count)
{
    PyObject *list = list_of_numbers(indices, count), *function, *items = NULL;

    ext_mutex_lock(&code->registry->mutex);
    function = Py_XNewRef(code->several);
    ext_mutex_unlock(&code->registry->mutex);
    frame->several = true;
    if (list != NULL && function != NULL)
        items = PyObject_CallFunctionObjArgs(function, list, NULL);
    frame->several = false;
    Py_XDECREF(list);
    Py_XDECREF(function);
    return items;
}

/* Takes `items` over: items of these records, or NULL. -1 with an exception if they are
 * not one for each. */
static int
keep_items(struct ext_code *code, PyObject *items, uint64_t *indices, size_t count)
{
    struct ext_thread *thread = &this_thread;

    if (items != NULL && (!PyList_Check(items) || (size_t)PyList_Size(items) != count)) {
        PyErr_Format(
            PyExc_TypeError,
            "__getitems__ must return a list of %zu items; it returned %R of length %zd",
            count, (PyObject *)Py_TYPE(items), PyObject_Size(items));
        Py_DECREF(items);
        return -1;
    }
    drop_items(thread); /* of a pipeline that ran in the call */
    thread->maker = code;
    thread->items = items;
    thread->indices = indices;
    thread->count = count;
    return 0;
}

/* Makes this record and those that follow, if there are any. An exception says nothing
 * about which record is at fault, so they are then made one by one. -1 with an exception
 * that is no record's. */
static int make_several(struct ext_call *frame, struct ext_code *code)
{
    size_t count = hr_code_following(frame->call, NULL, 0);
    uint64_t *indices;
    PyObject *items;

    drop_items(&this_thread);
    if (count < 2)
        return 0;
    indices = malloc(count * sizeof *indices);
    if (indices == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    count = hr_code_following(frame->call, indices, count);
    items = call_several(frame, code, indices, count);
    if (items == NULL && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    if (PyErr_Occurred() == NULL && keep_items(code, items, indices, count) == 0)
        return 0;
    free(indices);
    return -1;
}

/* The record's item if it was made with others; NULL, with or without an exception, if it
 * was not. */
static PyObject *take_item(struct ext_call *frame, struct ext_code *code)
{
    struct ext_thread *thread = &this_thread;
    uint64_t index = hr_code_index(frame->call);
    PyObject *item = NULL;

    if ((thread->maker != code || thread->next == thread->count ||
         thread->indices[thread->next] != index) &&
        make_several(frame, code) < 0)
        return NULL;
    if (thread->maker != code)
        return NULL;
    if (thread->items != NULL)
        item = ext_list_item(thread->items, (Py_ssize_t)thread->next);
    thread->next++;
    return item;
}

/* Takes the record's item if it was made with others, and returns whether it did. An item
 * that does not convert is made again by itself: which items are made with others depends
 * on the threads, and which records are bad must not. False with an exception that is no
 * record's. */
static bool
take_several(struct ext_call *frame, struct ext_state *state, struct ext_code *code)
{
    static const struct ext_inputs nothing = {0};
    PyObject *item = take_item(frame, code);
    bool taken;

    if (item == NULL)
        return false;
    taken = take_outputs(state, frame->call, item, &nothing, NULL) == HR_OK;
    if (!taken && PyErr_Occurred() != NULL && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    Py_DECREF(item);
    return taken;
}

/* Returns an item of a list without a call; other code has no list. */
static PyObject *
make_record(struct ext_call *frame, struct ext_code *code, PyObject *function)
{
    uint64_t index = hr_code_index(frame->call);
    PyObject *number, *value = list_item(code->list, index);

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
call_source(struct ext_call *frame, struct ext_state *state, struct ext_code *code,
            PyObject *function, struct hr_error *reterr)
{
    static const struct ext_inputs nothing = {0};
    PyObject *value;
    enum hr_err result;

    if (code->several != NULL && take_several(frame, state, code))
        return HR_OK;
    if (PyErr_Occurred() != NULL)
        return HR_ERR_ARGUMENT;
    value = make_record(frame, code, function);
    if (value == NULL)
        return says_end() ? HR_ERR_END : HR_ERR_ARGUMENT;
    result = take_outputs(state, frame->call, value, &nothing, reterr);
    Py_DECREF(value);
    return result;
}

static enum hr_err
call_record(struct ext_call *frame, struct ext_state *state, enum ext_code_kind kind,
            PyObject *function, struct hr_error *reterr)
{
    struct ext_inputs inputs;
    enum hr_err code = HR_OK;
    PyObject *value;
    int truth;

    if (make_inputs(state, frame->call, &inputs) < 0) /* no record is at fault */
        return PyErr_ExceptionMatches(PyExc_MemoryError) ? HR_ERR_MEMORY
                                                         : HR_ERR_ARGUMENT;
    value = call_with(function, &inputs);
    if (value == NULL) {
        code = HR_ERR_ARGUMENT;
    } else if (kind == EXT_FILTER && value == Py_None) { /* it forgot to return */
        PyErr_SetString(PyExc_TypeError, "the filter returned None: return True to keep "
                                         "the record, or False");
        code = HR_ERR_TYPE;
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

/* Registers a call. A new reference to the function, or NULL if the registry is gone or
 * the run is about to end because another call raised: then no more code may run. */
static PyObject *
push(struct ext_call *frame, struct ext_code *code, struct hr_code_call *call)
{
    struct ext_thread *thread = &this_thread;
    struct ext_registry *registry = code->registry;
    PyObject *function;

    if (thread->ident == 0)
        thread->ident = PyThread_get_thread_ident();
    frame->thread = thread;
    frame->registry = registry;
    frame->call = call;
    frame->number = ++thread->calls;
    frame->forks = ext_forks();
    frame->interrupted = frame->ended = frame->several = false;
    frame->outer = thread->current;
    ext_mutex_lock(&registry->mutex);
    ext_registry_settle(registry);
    function = ext_registry_is_due(registry) ? NULL : Py_XNewRef(code->function);
    if (function != NULL) {
        frame->next = registry->calls;
        frame->prev = &registry->calls;
        if (registry->calls != NULL)
            registry->calls->prev = &frame->next;
        registry->calls = frame;
        thread->current = frame;
    }
    ext_mutex_unlock(&registry->mutex);
    return function;
}

static void pop(struct ext_call *frame)
{
    frame->thread->current = frame->outer;
    if (frame->forks != ext_forks())
        return;
    ext_mutex_lock(&frame->registry->mutex);
    *frame->prev = frame->next;
    if (frame->next != NULL)
        frame->next->prev = frame->prev;
    ext_mutex_unlock(&frame->registry->mutex);
}

static bool is_plain(PyObject *item)
{
    return PyLong_CheckExact(item) || PyFloat_CheckExact(item) ||
           PyUnicode_CheckExact(item) || PyBytes_CheckExact(item);
}

/* Converts a plain item of a list, which runs no Python code, so that no call has to be
 * registered. On failure the caller repeats it as a call, to get the message. */
static bool take_plain(struct ext_code *code, struct hr_code_call *call)
{
    static const struct ext_inputs nothing = {0};
    struct ext_registry *registry = code->registry;
    uint64_t index = hr_code_index(call);
    PyObject *list, *item;
    bool taken = false;

    ext_mutex_lock(&registry->mutex);
    list = Py_XNewRef(code->list);
    ext_mutex_unlock(&registry->mutex);
    item = list_item(list, index);
    if (item != NULL && is_plain(item) && hr_code_output_count(call) == 1)
        taken = ext_output(registry->state, call, 0, item, &nothing, NULL) == HR_OK;
    if (!taken)
        PyErr_Clear();
    Py_XDECREF(item);
    Py_XDECREF(list);
    return taken;
}

/* In a worker process: announces the first call, and the first of each further epoch.
 * -1 with an exception set. */
static int begin_epoch(struct ext_call *frame)
{
    struct ext_registry *registry = frame->registry;
    struct hr_code_record record = {0};
    PyObject *result;

    if (registry->begin == NULL)
        return 0;
    hr_code_record(frame->call, &record);
    if (registry->begun && registry->begun_epoch == record.draw_epoch)
        return 0;
    result = PyObject_CallNoArgs(registry->begin);
    if (result == NULL)
        return -1;
    Py_DECREF(result);
    registry->begun = true;
    registry->begun_epoch = record.draw_epoch;
    return 0;
}

/* Called with the interpreter's lock, which enter has taken. */
enum hr_err ext_code_call(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    struct ext_code *code = user;
    struct ext_call frame;
    struct ext_state *state = code->registry->state;
    PyObject *function;
    enum hr_err result;

    if (code->list != NULL && take_plain(code, call))
        return HR_OK;
    function = push(&frame, code, call);
    if (function == NULL) {
        snprintf(reterr->message, sizeof reterr->message, "the run was given up");
        return HR_ERR_CANCELLED;
    }
    if (begin_epoch(&frame) < 0)
        result = HR_ERR_ARGUMENT;
    else if (code->kind == EXT_SOURCE)
        result = call_source(&frame, state, code, function, reterr);
    else
        result = call_record(&frame, state, code->kind, function, reterr);
    if (PyErr_Occurred() != NULL)
        result =
            ext_call_fail(&frame, result != HR_OK ? result : HR_ERR_ARGUMENT, reterr);
    pop(&frame);
    Py_DECREF(function);
    return result;
}

/* A key as bytes: those of bytes, else the text of the value, which is a number or a str.
 */
static PyObject *key_bytes(struct ext_code *code, size_t output, uint64_t index)
{
    PyObject *function, *value = NULL, *text = NULL, *bytes = NULL;

    ext_mutex_lock(&code->registry->mutex);
    function = Py_XNewRef(code->key);
    ext_mutex_unlock(&code->registry->mutex);
    if (function != NULL)
        value = PyObject_CallFunction(function, "nK", (Py_ssize_t)output,
                                      (unsigned long long)index);
    if (value != NULL && PyBytes_Check(value))
        bytes = Py_NewRef(value);
    else if (value != NULL && (text = PyObject_Str(value)) != NULL)
        bytes = PyUnicode_AsUTF8String(text);
    Py_XDECREF(text);
    Py_XDECREF(value);
    Py_XDECREF(function);
    return bytes;
}

/* Called with the interpreter's lock, which enter has taken. */
enum hr_err ext_code_key(void *user, size_t output, uint64_t index, char *text,
                         size_t room, size_t *ret_bytes, struct hr_error *reterr)
{
    struct ext_code *code = user;
    PyObject *bytes = key_bytes(code, output, index);

    if (bytes == NULL)
        return ext_key_fail(code->registry, reterr);
    *ret_bytes = (size_t)PyBytes_Size(bytes);
    memcpy(text, PyBytes_AsString(bytes), *ret_bytes < room ? *ret_bytes : room);
    Py_DECREF(bytes);
    return HR_OK;
}

PyObject *ext_current_record(PyObject *module, PyObject *unused)
{
    struct hr_code_record record = {0};
    uint64_t key[2] = {0};

    (void)module, (void)unused;
    if (this_thread.current == NULL || this_thread.current->several)
        Py_RETURN_NONE;
    hr_code_record(this_thread.current->call, &record);
    hr_code_key(this_thread.current->call, key);
    return Py_BuildValue("(KKKKKsKI)", (unsigned long long)record.seed,
                         (unsigned long long)record.draw_epoch,
                         (unsigned long long)record.index, (unsigned long long)key[0],
                         (unsigned long long)key[1], record.node,
                         this_thread.current->number, (unsigned)record.replaced);
}
