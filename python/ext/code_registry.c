/*
 * Registries: the Python functions of a graph or of a run of serve(), the calls that are
 * in progress in them, and how these are asked to end.
 */
#include "user_code.h"

#include <string.h>

void ext_registry_settle(struct ext_registry *registry)
{
    if (registry->forks == ext_forks())
        return;
    registry->forks = ext_forks();
    registry->calls = NULL;
    registry->runs = 0;
}

struct ext_registry *ext_registry_create(struct ext_state *state)
{
    struct ext_registry *registry = calloc(1, sizeof *registry);

    if (registry == NULL)
        return PyErr_NoMemory(), NULL;
    atomic_init(&registry->refs, 1);
    registry->state = state;
    registry->forks = ext_forks();
    return registry;
}

struct ext_registry *ext_registry_ref(struct ext_registry *registry)
{
    atomic_fetch_add(&registry->refs, 1);
    return registry;
}

void ext_registry_unref(struct ext_registry *registry)
{
    if (registry != NULL && atomic_fetch_sub(&registry->refs, 1) == 1)
        free(registry);
}

static void code_release(void *user)
{
    struct ext_code *code = user;

    if (atomic_fetch_sub(&code->refs, 1) > 1)
        return;
    ext_registry_unref(code->registry);
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

/* The list whose __getitem__ `function` is (borrowed), or NULL. */
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

/* A new reference to its attribute, if it has one that is not None. */
static PyObject *attribute_of(PyObject *function, const char *name)
{
    PyObject *value = PyObject_GetAttrString(function, name);

    if (value == Py_None)
        Py_CLEAR(value);
    PyErr_Clear();
    return value;
}

/* Its attribute `keys`: the outputs that its attribute `key` knows, as bits. */
static uint64_t keys_of(PyObject *function)
{
    PyObject *number = attribute_of(function, "keys");
    unsigned long long bits = 0;

    if (number != NULL && PyLong_Check(number))
        bits = PyLong_AsUnsignedLongLong(number);
    Py_XDECREF(number);
    PyErr_Clear();
    return bits;
}

int ext_code_create(struct ext_registry *registry, const char *kind, PyObject *function,
                    struct hr_code *ret_code)
{
    int number = kind_of(kind);
    struct ext_code *code;

    if (number < 0)
        return -1;
    if (number == EXT_SOURCE && ext_arrow_code(function, ret_code))
        return 0;
    code = calloc(1, sizeof *code);
    if (code == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    atomic_init(&code->refs, 2);
    code->kind = (enum ext_code_kind)number;
    code->list = code->kind == EXT_SOURCE ? list_of(function) : NULL;
    if (code->kind == EXT_SOURCE) {
        code->several = attribute_of(function, "several");
        code->key = attribute_of(function, "key");
    }
    code->registry = registry;
    ext_registry_ref(registry);
    ext_mutex_lock(&registry->mutex);
    code->function = Py_NewRef(function);
    code->next = registry->codes;
    registry->codes = code;
    ext_mutex_unlock(&registry->mutex);
    ext_count(EXT_CODE, 1);
    *ret_code = (struct hr_code){.identity = "",
                                 .user = code,
                                 .call = ext_code_call,
                                 .enter = ext_code_enter,
                                 .leave = ext_code_leave,
                                 .release = code_release,
                                 .may_wait = code->list == NULL,
                                 .keys = code->key != NULL ? keys_of(function) : 0,
                                 .key = ext_code_key};
    return 0;
}

int ext_registry_visit(struct ext_registry *registry, visitproc visit, void *arg)
{
    for (struct ext_code *code = registry->codes; code != NULL; code = code->next) {
        Py_VISIT(code->function);
        Py_VISIT(code->several);
        Py_VISIT(code->key);
    }
    Py_VISIT(registry->kept);
    Py_VISIT(registry->fatal);
    return 0;
}

/* Removes code from the registry, and drops what it called. */
static struct ext_code *take_code(struct ext_registry *registry)
{
    PyObject *function = NULL, *several = NULL, *key = NULL;
    struct ext_code *code;

    ext_mutex_lock(&registry->mutex);
    code = registry->codes;
    if (code != NULL) {
        registry->codes = code->next;
        function = code->function;
        several = code->several;
        key = code->key;
        code->function = code->list = code->several = code->key = NULL;
    }
    ext_mutex_unlock(&registry->mutex);
    Py_XDECREF(function);
    Py_XDECREF(several);
    Py_XDECREF(key);
    return code;
}

void ext_registry_clear(struct ext_registry *registry)
{
    struct ext_code *code;
    PyObject *kept;

    ext_mutex_lock(&registry->mutex);
    registry->gone = true;
    kept = registry->kept;
    registry->kept = NULL;
    ext_mutex_unlock(&registry->mutex);
    Py_XDECREF(kept);
    Py_XDECREF(ext_fatal_take(registry));
    while ((code = take_code(registry)) != NULL)
        code_release(code);
}

void ext_registry_begin(struct ext_registry *registry)
{
    ext_mutex_lock(&registry->mutex);
    ext_registry_settle(registry);
    registry->runs++;
    ext_mutex_unlock(&registry->mutex);
}

void ext_registry_end(struct ext_registry *registry)
{
    PyObject *kept = NULL, *fatal = NULL;

    ext_mutex_lock(&registry->mutex);
    if (--registry->runs == 0) {
        kept = registry->kept;
        fatal = registry->fatal; /* nobody asked for it */
        registry->kept = registry->fatal = NULL;
    }
    ext_mutex_unlock(&registry->mutex);
    Py_XDECREF(kept);
    Py_XDECREF(fatal);
}

void ext_registry_interrupt(struct ext_registry *registry)
{
    ext_mutex_lock(&registry->mutex);
    ext_registry_settle(registry);
    for (struct ext_call *frame = registry->calls; registry->runs < 2 && frame != NULL;
         frame = frame->next)
        if (frame->thread->foreign && !frame->ended && frame != ext_call_current()) {
            frame->interrupted = true;
            PyThreadState_SetAsyncExc(frame->thread->ident, PyExc_KeyboardInterrupt);
        }
    ext_mutex_unlock(&registry->mutex);
}

void ext_call_end(struct ext_call *frame)
{
    bool others = false;

    ext_mutex_lock(&frame->registry->mutex);
    frame->ended = true;
    ext_mutex_unlock(&frame->registry->mutex);
    for (struct ext_call *outer = frame->outer; outer != NULL; outer = outer->outer)
        others = others || outer->interrupted;
    if (frame->interrupted && !others)
        PyThreadState_SetAsyncExc(frame->thread->ident, NULL); /* a second one */
}

bool ext_registry_is_here(const struct ext_registry *registry)
{
    for (const struct ext_call *frame = ext_call_current(); frame != NULL;
         frame = frame->outer)
        if (frame->registry == registry)
            return true;
    return false;
}
