/*
 * lock.h - guards the extension's own state if the interpreter has no lock.
 *
 * With the interpreter's lock, C code between two calls that release it is atomic, and
 * everything here is empty. A free-threaded CPython has no such lock; there a mutex
 * guards what several threads may change. Only a thread attached to the interpreter may
 * take it, and while holding it runs no Python code, drops no reference and waits for
 * nothing. So no thread holds one while the world is stopped, for the collector or for a
 * fork.
 */
#ifndef PYTHON_LOCK_H
#define PYTHON_LOCK_H

#include <Python.h>
#include <stdbool.h>

#ifdef Py_GIL_DISABLED

#if PY_VERSION_HEX < 0x030E0000
#error "a free-threaded build needs CPython 3.14: older ones lack PyUnstable_TryIncRef"
#endif

struct ext_mutex {
    PyMutex mutex;
};

static inline void ext_mutex_lock(struct ext_mutex *mutex)
{
    PyMutex_Lock(&mutex->mutex);
}

static inline void ext_mutex_unlock(struct ext_mutex *mutex)
{
    PyMutex_Unlock(&mutex->mutex);
}

/* Takes a reference to an object that another thread may be freeing; false if it is.
 * Its memory must still exist, and ext_allow_try_ref must have been called after its
 * creation. */
static inline bool ext_try_ref(PyObject *object)
{
    return PyUnstable_TryIncRef(object) != 0;
}

static inline void ext_allow_try_ref(PyObject *object)
{
    PyUnstable_EnableTryIncRef(object);
}

/* A new reference to an item of a list that other threads may change. */
static inline PyObject *ext_list_item(PyObject *list, Py_ssize_t at)
{
    return PyList_GetItemRef(list, at);
}

#else

struct ext_mutex {
    char unused;
};

static inline void ext_mutex_lock(struct ext_mutex *mutex)
{
    (void)mutex;
}

static inline void ext_mutex_unlock(struct ext_mutex *mutex)
{
    (void)mutex;
}

static inline bool ext_try_ref(PyObject *object)
{
    Py_INCREF(object);
    return true;
}

static inline void ext_allow_try_ref(PyObject *object)
{
    (void)object;
}

static inline PyObject *ext_list_item(PyObject *list, Py_ssize_t at)
{
    return Py_XNewRef(PyList_GetItem(list, at));
}

#endif

#endif
