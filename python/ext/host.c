/*
 * How worker processes are started: three Python functions as struct hr_code_host. Like
 * the functions of user code they belong to the graph; the library may outlive them.
 */
#include "ext.h"

#include <stdio.h>

struct ext_host {
    atomic_int refs;
    struct ext_mutex mutex;
    PyObject *start, *kill, *ended; /* NULL once the graph is gone */
};

/* A new reference to one of the functions; NULL once the graph has dropped them. */
static PyObject *function_of(struct ext_host *host, PyObject *const *which)
{
    PyObject *function;

    ext_mutex_lock(&host->mutex);
    function = Py_XNewRef(*which);
    ext_mutex_unlock(&host->mutex);
    return function;
}

static void host_release(void *user)
{
    struct ext_host *host = user;

    if (atomic_fetch_sub(&host->refs, 1) == 1)
        free(host);
}

/* Turns the exception into an error and clears it. */
static enum hr_err fail(struct hr_error *reterr)
{
    PyObject *exception = ext_exception_take();
    char words[640] = "starting a worker process failed";

    if (exception != NULL)
        ext_exception_words(exception, words, sizeof words);
    Py_XDECREF(exception);
    if (reterr != NULL) {
        reterr->code = HR_ERR_IO;
        snprintf(reterr->message, sizeof reterr->message, "%s", words);
    }
    return HR_ERR_IO;
}

static enum hr_err
host_start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    struct ext_host *host = user;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *start = function_of(host, &host->start), *id = NULL;
    enum hr_err code = HR_OK;
    long long number = -1;

    if (start != NULL)
        id = PyObject_CallFunction(start, "i", fd);
    if (id != NULL)
        number = PyLong_AsLongLong(id);
    if (id == NULL || PyErr_Occurred() != NULL)
        code = fail(reterr);
    else
        *ret_id = number;
    Py_XDECREF(id);
    Py_XDECREF(start);
    PyGILState_Release(lock);
    return code;
}

static void host_kill(void *user, int64_t id)
{
    struct ext_host *host = user;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *kill = function_of(host, &host->kill), *done = NULL;

    if (kill != NULL) {
        done = PyObject_CallFunction(kill, "L", (long long)id);
        if (done == NULL)
            PyErr_WriteUnraisable(kill);
    }
    Py_XDECREF(done);
    Py_XDECREF(kill);
    PyGILState_Release(lock);
}

static void host_ended(void *user, int64_t id, char *text, size_t room)
{
    struct ext_host *host = user;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *ended = function_of(host, &host->ended), *words = NULL, *bytes = NULL;

    if (ended != NULL)
        words = PyObject_CallFunction(ended, "L", (long long)id);
    if (words != NULL)
        bytes = ext_utf8(words);
    if (bytes != NULL)
        snprintf(text, room, "%s", PyBytes_AsString(bytes));
    PyErr_Clear(); /* then it is unknown */
    Py_XDECREF(bytes);
    Py_XDECREF(words);
    Py_XDECREF(ended);
    PyGILState_Release(lock);
}

/* Drops the graph's reference and its functions: later calls find none. */
static void drop(struct ext_host *host)
{
    PyObject *start, *kill, *ended;

    if (host == NULL)
        return;
    ext_mutex_lock(&host->mutex);
    start = host->start;
    kill = host->kill;
    ended = host->ended;
    host->start = host->kill = host->ended = NULL;
    ext_mutex_unlock(&host->mutex);
    Py_XDECREF(start);
    Py_XDECREF(kill);
    Py_XDECREF(ended);
    host_release(host);
}

int ext_host_set(struct ext_graph *graph, PyObject *start, PyObject *kill,
                 PyObject *ended)
{
    struct ext_host *host = calloc(1, sizeof *host), *old = NULL;
    struct hr_error error = {0};
    struct hr_code_host given = {.user = host,
                                 .start = host_start,
                                 .kill = host_kill,
                                 .release = host_release,
                                 .ended = host_ended};
    enum hr_err code;

    if (host == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (ext_graph_lock(graph) < 0) {
        free(host);
        return -1;
    }
    atomic_init(&host->refs, 2);
    code = hr_graph_code_host(graph->graph, &given, &error);
    if (code == HR_OK) {
        host->start = Py_NewRef(start);
        host->kill = Py_NewRef(kill);
        host->ended = Py_NewRef(ended);
        old = graph->host;
        graph->host = host;
    }
    ext_graph_unlock(graph);
    drop(old);
    if (code == HR_OK)
        return 0;
    free(host);
    ext_raise(graph->registry->state, &error, NULL, NULL);
    return -1;
}

int ext_host_visit(struct ext_host *host, visitproc visit, void *arg)
{
    Py_VISIT(host->start);
    Py_VISIT(host->kill);
    Py_VISIT(host->ended);
    return 0;
}

void ext_host_clear(struct ext_graph *graph)
{
    struct ext_host *host = graph->host;

    graph->host = NULL;
    drop(host);
}
