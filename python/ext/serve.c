/*
 * A worker process: Python functions by name for hr_code_serve.
 */
#include "ext.h"

#define SERVE_CODES_MAX 256

struct serving {
    struct ext_registry *registry;
    PyObject *find;
    PyObject *type, *value, *traceback; /* what find raised */
    struct hr_code codes[SERVE_CODES_MAX];
    size_t count;
};

static const struct hr_code *find_locked(struct serving *serving, const char *name)
{
    PyObject *found = PyObject_CallFunction(serving->find, "s", name), *function;
    struct hr_code *code = &serving->codes[serving->count];
    const char *kind;

    if (found != NULL && found != Py_None && serving->count < SERVE_CODES_MAX &&
        PyArg_ParseTuple(found, "sO", &kind, &function) &&
        ext_code_create(serving->registry, kind, function, code) == 0) {
        serving->count++;
        Py_DECREF(found);
        return code;
    }
    Py_XDECREF(found);
    if (PyErr_Occurred() != NULL && serving->type == NULL)
        PyErr_Fetch(&serving->type, &serving->value, &serving->traceback);
    PyErr_Clear();
    return NULL;
}

static const struct hr_code *find(void *user, const char *name)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    const struct hr_code *code = find_locked(user, name);

    PyGILState_Release(lock);
    return code;
}

static PyObject *
serve_result(struct serving *serving, enum hr_err code, const struct hr_error *error)
{
    PyObject *fatal = ext_fatal_take(serving->registry);

    if (serving->type != NULL) {
        Py_XDECREF(fatal);
        PyErr_Restore(serving->type, serving->value, serving->traceback);
        return NULL;
    }
    if (fatal != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(fatal), fatal);
        Py_DECREF(fatal);
        return NULL;
    }
    if (code != HR_OK)
        return ext_raise(serving->registry->state, error, NULL, NULL);
    Py_RETURN_NONE;
}

PyObject *ext_serve(PyObject *module, PyObject *args)
{
    struct hr_error error = {0};
    struct serving *serving;
    PyObject *function, *begin = NULL, *result;
    enum hr_err code;
    int fd;

    if (!PyArg_ParseTuple(args, "iO|O:serve", &fd, &function, &begin))
        return NULL;
    serving = calloc(1, sizeof *serving);
    if (serving == NULL)
        return PyErr_NoMemory();
    serving->registry = ext_registry_create(ext_state_of(module));
    if (serving->registry == NULL) {
        free(serving);
        return NULL;
    }
    serving->registry->serves = true;
    serving->registry->begin = begin;
    serving->find = function;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_code_serve(fd, find, serving, &error);
    Py_END_ALLOW_THREADS;
    result = serve_result(serving, code, &error);
    ext_registry_clear(serving->registry);
    for (size_t i = 0; i < serving->count; i++)
        serving->codes[i].release(serving->codes[i].user);
    ext_registry_unref(serving->registry);
    free(serving);
    return result;
}
