/*
 * Batches, and what keeps their memory alive.
 *
 * A hold is a C object, not a Python one: DLPack tensors release it without the
 * interpreter's lock, and its count shows whether a field is the last view of the memory.
 */
#include "ext.h"

#include <string.h>

struct ext_hold *ext_hold_create(struct hr_batch *batch, struct hr_buffer *buffer)
{
    struct ext_hold *hold = malloc(sizeof *hold);

    if (hold == NULL) {
        hr_batch_unref(batch);
        hr_buffer_unref(buffer);
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&hold->refs, 1);
    hold->forks = ext_forks();
    hold->batch = batch;
    hold->buffer = buffer;
    ext_count(EXT_HOLD, 1);
    return hold;
}

struct ext_hold *ext_hold_ref(struct ext_hold *hold)
{
    atomic_fetch_add_explicit(&hold->refs, 1, memory_order_relaxed);
    return hold;
}

void ext_hold_unref(struct ext_hold *hold)
{
    if (hold == NULL ||
        atomic_fetch_sub_explicit(&hold->refs, 1, memory_order_acq_rel) > 1)
        return;
    /* The pool's lock may have been held by a thread that a fork did not copy. */
    if (hold->forks == ext_forks()) {
        hr_batch_unref(hold->batch);
        hr_buffer_unref(hold->buffer);
    }
    ext_count(EXT_HOLD, -1);
    free(hold);
}

PyObject *ext_batch_create(struct ext_state *state, struct hr_batch *batch)
{
    struct ext_hold *hold = ext_hold_create(batch, NULL);
    struct ext_batch *self;

    if (hold == NULL)
        return NULL;
    self = (struct ext_batch *)PyType_GenericAlloc(state->batch, 0);
    if (self == NULL) {
        ext_hold_unref(hold);
        return NULL;
    }
    self->hold = hold;
    ext_count(EXT_BATCH, 1);
    return (PyObject *)self;
}

static void batch_dealloc(PyObject *self)
{
    struct ext_batch *batch = (struct ext_batch *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (batch->weak != NULL)
        PyObject_ClearWeakRefs(self);
    ext_hold_unref(batch->hold);
    ext_count(EXT_BATCH, -1);
    PyObject_Free(self);
    Py_DECREF(type);
}

static struct hr_batch *handle(PyObject *self)
{
    return ((struct ext_batch *)self)->hold->batch;
}

static PyObject *batch_records(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(hr_batch_records(handle(self)));
}

static PyObject *batch_epoch(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(hr_batch_epoch(handle(self)));
}

static PyObject *batch_names(PyObject *self, void *unused)
{
    size_t count = hr_batch_field_count(handle(self));
    PyObject *names = PyTuple_New((Py_ssize_t)count);
    struct hr_field_view view;

    (void)unused;
    for (size_t i = 0; names != NULL && i < count; i++) {
        PyObject *name = hr_batch_field(handle(self), i, &view) == HR_OK
                             ? PyUnicode_FromString(view.name)
                             : PyErr_Format(PyExc_SystemError, "no field %zu", i);

        if (name == NULL || PyTuple_SetItem(names, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

/* "image, label", for messages. */
static void list_names(struct hr_batch *batch, char *text, size_t room)
{
    struct hr_field_view view;
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; hr_batch_field(batch, i, &view) == HR_OK && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "",
                                 view.name);
}

static PyObject *by_name(PyObject *self, PyObject *key)
{
    const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
    struct ext_batch *batch = (struct ext_batch *)self;
    struct hr_field_view view;
    char names[256];

    if (name == NULL)
        return NULL;
    if (hr_batch_find(handle(self), name, &view) == HR_OK)
        return ext_field_create(ext_state(self), key, batch->hold, &view, false);
    list_names(handle(self), names, sizeof names);
    return ext_fail(ext_state(self), HR_ERR_NOT_FOUND, name,
                    "the batch has no field %s; it has %s", name, names);
}

static PyObject *by_number(PyObject *self, PyObject *key)
{
    Py_ssize_t count = (Py_ssize_t)hr_batch_field_count(handle(self));
    Py_ssize_t at = PyNumber_AsSsize_t(key, PyExc_IndexError);
    struct ext_batch *batch = (struct ext_batch *)self;
    struct hr_field_view view;
    PyObject *name, *field;

    if (at == -1 && PyErr_Occurred() != NULL)
        return NULL;
    if (hr_batch_field(handle(self), (size_t)(at < 0 ? at + count : at), &view) != HR_OK)
        return ext_fail(ext_state(self), HR_ERR_RANGE, NULL,
                        "there is no field %zd in a batch of %zd fields", at, count);
    name = PyUnicode_FromString(view.name);
    if (name == NULL)
        return NULL;
    field = ext_field_create(ext_state(self), name, batch->hold, &view, false);
    Py_DECREF(name);
    return field;
}

static PyObject *batch_field(PyObject *self, PyObject *key)
{
    if (PyUnicode_Check(key))
        return by_name(self, key);
    if (PyIndex_Check(key))
        return by_number(self, key);
    return PyErr_Format(PyExc_TypeError, "a field is named by str or int, not %R",
                        (PyObject *)Py_TYPE(key));
}

static PyMethodDef batch_methods[] = {
    {"field", batch_field, METH_O,
     "field(key) -> Field\n--\n\nA field by name or by number."},
    {NULL,    NULL,        0,      NULL                        },
};

static PyGetSetDef batch_getset[] = {
    {"records", batch_records, NULL, "How many records it has.",       NULL},
    {"epoch",   batch_epoch,   NULL, "The epoch that they belong to.", NULL},
    {"names",   batch_names,   NULL, "Names of its fields, in order.", NULL},
    {NULL,      NULL,          NULL, NULL,                             NULL},
};

static PyMemberDef batch_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct ext_batch, weak), READONLY,                NULL},
    {NULL,                    0,                           0,                                0,          NULL},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_doc,     "A batch of records. Immutable; fields keep its memory alive."},
    {Py_tp_dealloc, batch_dealloc                                                 },
    {Py_tp_methods, batch_methods                                                 },
    {Py_tp_getset,  batch_getset                                                  },
    {Py_tp_members, batch_members                                                 },
    {0,             NULL                                                          },
};

PyType_Spec ext_batch_spec = {
    .name = "headrace._headrace.Batch",
    .basicsize = sizeof(struct ext_batch),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = batch_slots,
};
