/*
 * Exceptions of user code: which of them a run reports, and which ends the program.
 *
 * Records run out of order, but the first bad one in order is the one that is reported,
 * so the registry keeps several exceptions until the library has chosen.
 */
#include "user_code.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Exceptions kept for __cause__: those of the first records in order. */
#define KEPT_MAX 16

/* A child path as bytes, which sort like the path. */
static PyObject *path_bytes(const uint32_t *children, size_t depth)
{
    char bytes[4 * HR_CHILD_DEPTH_MAX];

    assert(depth <= HR_CHILD_DEPTH_MAX); /* below again: gcc does not know */
    for (size_t i = 0; i < depth && i < HR_CHILD_DEPTH_MAX; i++)
        for (size_t k = 0; k < 4; k++)
            bytes[4 * i + k] = (char)(children[i] >> (24 - 8 * k));
    return PyBytes_FromStringAndSize(bytes, (Py_ssize_t)(4 * depth));
}

/* Sorts by the order of records; the exception's address comes last but one, so that
 * exceptions are never compared. */
static PyObject *kept_entry(struct ext_call *frame, PyObject *exception)
{
    struct hr_code_record record = {0};

    hr_code_record(frame->call, &record);
    return Py_BuildValue(
        "(KKNsKnO)", (unsigned long long)record.epoch,
        (unsigned long long)record.position, path_bytes(record.children, record.depth),
        record.node, (unsigned long long)record.index, (Py_ssize_t)exception, exception);
}

/* Adds to a list of at most KEPT_MAX entries. Returns a new reference to the entry that
 * was displaced, or NULL. Drops no reference, since the registry is locked. */
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

/* Keeps the exception if there is room or if a kept one is later. */
static void keep(struct ext_call *frame, PyObject *exception)
{
    struct ext_registry *registry = frame->registry;
    PyObject *list, *entry, *last = NULL;

    if (!atomic_load_explicit(&registry->keep, memory_order_relaxed))
        return;
    list = PyList_New(0);
    entry = kept_entry(frame, exception);
    if (list != NULL && entry != NULL) {
        ext_mutex_lock(&registry->mutex);
        if (registry->kept == NULL && !registry->gone)
            registry->kept = Py_NewRef(list);
        if (registry->kept != NULL)
            last = insert_kept(registry->kept, entry);
        ext_mutex_unlock(&registry->mutex);
    }
    Py_XDECREF(list);
    Py_XDECREF(last);
    Py_XDECREF(entry);
    PyErr_Clear();
}

/* Keeps an exception that ends more than the record. */
static void keep_fatal(struct ext_registry *registry, PyObject *exception)
{
    ext_mutex_lock(&registry->mutex);
    if (!registry->gone && registry->fatal == NULL)
        registry->fatal = Py_NewRef(exception);
    ext_mutex_unlock(&registry->mutex);
}

bool ext_fatal_is_due(struct ext_registry *registry)
{
    bool due;

    ext_mutex_lock(&registry->mutex);
    due = ext_registry_is_due(registry);
    ext_mutex_unlock(&registry->mutex);
    return due;
}

PyObject *ext_fatal_take(struct ext_registry *registry)
{
    PyObject *fatal;

    ext_mutex_lock(&registry->mutex);
    fatal = registry->fatal;
    registry->fatal = NULL;
    ext_mutex_unlock(&registry->mutex);
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

PyObject *ext_kept_take(struct ext_registry *registry, const struct hr_error *error)
{
    PyObject *exception = NULL, *kept = NULL;

    ext_mutex_lock(&registry->mutex);
    for (Py_ssize_t i = 0; registry->kept != NULL && i < PyList_Size(registry->kept);
         i++) {
        PyObject *entry = PyList_GetItem(registry->kept, i);

        if (entry_is_of(entry, error)) {
            exception = Py_NewRef(PyTuple_GetItem(entry, 6));
            break;
        }
    }
    if (exception != NULL) {
        kept = registry->kept;
        registry->kept = NULL;
    }
    ext_mutex_unlock(&registry->mutex);
    PyErr_Clear();
    Py_XDECREF(kept);
    return exception;
}

bool ext_raise_failure(struct ext_registry *registry, const struct hr_error *error,
                       const char *detail)
{
    PyObject *fatal = ext_fatal_take(registry);

    if (fatal == NULL) {
        ext_raise(registry->state, error, detail, ext_kept_take(registry, error));
        return false;
    }
    PyErr_SetObject((PyObject *)Py_TYPE(fatal), fatal);
    Py_DECREF(fatal);
    return true;
}

/* Passes the traceback's text on, for hr_iter_detail and worker processes. */
static void tell_detail(struct ext_call *frame, PyObject *exception)
{
    PyObject *text = ext_exception_text(exception), *bytes = ext_utf8(text);

    if (bytes != NULL)
        hr_code_detail(frame->call, PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    Py_XDECREF(text);
}

enum hr_err
ext_call_fail(struct ext_call *frame, enum hr_err code, struct hr_error *reterr)
{
    PyObject *exception;
    char words[640];

    ext_call_end(frame);
    exception = ext_exception_take();
    if (exception == NULL)
        return code;
    ext_exception_words(exception, words, sizeof words);
    snprintf(reterr->message, sizeof reterr->message, "%s", words);
    ext_exception_classes(exception, reterr->raised, sizeof reterr->raised);
    reterr->code = code;
    tell_detail(frame, exception);
    if (!PyErr_GivenExceptionMatches(exception, PyExc_Exception) &&
        !frame->registry->serves) {
        reterr->code = HR_ERR_CANCELLED;
        if (!frame->interrupted) /* by this module */
            keep_fatal(frame->registry, exception);
    } else {
        keep(frame, exception);
    }
    Py_DECREF(exception);
    return reterr->code;
}

enum hr_err ext_key_fail(struct ext_registry *registry, struct hr_error *reterr)
{
    PyObject *exception = ext_exception_take();

    reterr->code = HR_ERR_ARGUMENT;
    if (exception == NULL)
        return reterr->code;
    ext_exception_words(exception, reterr->message, sizeof reterr->message);
    if (!PyErr_GivenExceptionMatches(exception, PyExc_Exception)) {
        reterr->code = HR_ERR_CANCELLED;
        keep_fatal(registry, exception);
    }
    Py_DECREF(exception);
    return reterr->code;
}
