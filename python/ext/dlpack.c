/*
 * Fields as DLPack tensors: the versioned capsule, which can mark memory as read-only,
 * for consumers that ask for it, else the old one, which cannot.
 *
 * A tensor holds the batch, not a Python object: deleters run in any thread, without the
 * interpreter's lock, and even after the interpreter has ended.
 */
#include "ext.h"

#include "dlpack_abi.h"

#include <string.h>

struct export
{
    union {
        struct dl_managed old;
        struct dl_managed_versioned versioned;
    } as;
    struct ext_hold *hold;
    int64_t shape[HR_MAX_DIMS], strides[HR_MAX_DIMS];
};

static void release(struct export *export)
{
    ext_hold_unref(export->hold);
    ext_count(EXT_EXPORT, -1);
    free(export);
}

static void delete_old(struct dl_managed *self)
{
    release(self->context);
}

static void delete_versioned(struct dl_managed_versioned *self)
{
    release(self->context);
}

/* A consumer renames the capsule and deletes the tensor itself. One that refuses the
 * tensor drops the capsule with an exception set, which must be preserved; so the name
 * is compared, not tried. */
static void capsule_destructor(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        delete_old(PyCapsule_GetPointer(capsule, "dltensor"));
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static uint8_t dl_code(enum hr_dtype dtype)
{
    switch (dtype) {
    case HR_U8:
    case HR_U16:
        return DL_UINT;
    case HR_F16:
    case HR_F32:
    case HR_F64:
        return DL_FLOAT;
    case HR_BF16:
        return DL_BFLOAT;
    case HR_BOOL:
        return DL_BOOL;
    default:
        return DL_INT;
    }
}

static struct export *export_create(struct ext_field *field)
{
    size_t item = hr_dtype_size(field->view.dtype);
    struct export *export = calloc(1, sizeof *export);

    if (export == NULL)
        return (struct export *)PyErr_NoMemory();
    export->hold = ext_hold_ref(field->hold);
    for (int i = 0; i < field->view.ndim; i++) {
        export->shape[i] = field->view.dims[i];
        export->strides[i] = field->view.strides[i] / (int64_t)item;
    }
    ext_count(EXT_EXPORT, 1);
    return export;
}

static void
describe(struct export *export, struct ext_field *field, struct dl_tensor *tensor)
{
    tensor->data = (void *)(uintptr_t)field->view.data;
    tensor->device.type = DL_CPU;
    tensor->ndim = field->view.ndim;
    tensor->dtype.code = dl_code(field->view.dtype);
    tensor->dtype.bits = (uint8_t)(8 * hr_dtype_size(field->view.dtype));
    tensor->dtype.lanes = 1;
    tensor->shape = export->shape;
    tensor->strides = export->strides;
}

static PyObject *export_field(struct ext_field *field, bool versioned, bool copied)
{
    struct export *export = export_create(field);
    PyObject *capsule;

    if (export == NULL)
        return NULL;
    if (versioned) {
        struct dl_managed_versioned *managed = &export->as.versioned;

        describe(export, field, &managed->tensor);
        managed->version.major = DL_MAJOR;
        managed->version.minor = DL_MINOR;
        managed->flags =
            (field->writable ? 0 : DL_FLAG_READ_ONLY) | (copied ? DL_FLAG_IS_COPIED : 0);
        managed->context = export;
        managed->deleter = delete_versioned;
    } else {
        describe(export, field, &export->as.old.tensor);
        export->as.old.context = export;
        export->as.old.deleter = delete_old;
    }
    capsule = PyCapsule_New(&export->as, versioned ? "dltensor_versioned" : "dltensor",
                            capsule_destructor);
    if (capsule == NULL)
        release(export);
    return capsule;
}

/* Why this field cannot be a tensor, or NULL. */
static const char *obstacle(const struct ext_field *field)
{
    int64_t item = (int64_t)hr_dtype_size(field->view.dtype);

    if (field->view.dtype == HR_DTYPE_NONE)
        return "byte strings are no tensor: use strings(), or values() and offsets()";
    if (field->view.offsets != NULL)
        return "a ragged field is no tensor: use values() and offsets()";
    for (int i = 0; i < field->view.ndim; i++)
        if (field->view.strides[i] % item != 0)
            return "the field's strides are no multiple of its elements";
    return NULL;
}

/* Whether the consumer supports versioned capsules; -1 with an exception set. */
static int read_version(PyObject *max_version)
{
    PyObject *first;
    long major;

    if (max_version == Py_None)
        return 0;
    first = PySequence_GetItem(max_version, 0);
    major = first != NULL ? PyLong_AsLong(first) : -1;
    Py_XDECREF(first);
    if (major < 0 && PyErr_Occurred() != NULL)
        return -1;
    return major >= DL_MAJOR;
}

/* 0 if `device` is the host's memory or None. */
static int check_device(PyObject *device)
{
    int type = DL_CPU, id = 0;

    if (device != Py_None) {
        if (!PyTuple_Check(device)) {
            PyErr_SetString(PyExc_TypeError, "dl_device is a tuple (type, number)");
            return -1;
        }
        if (!PyArg_ParseTuple(device, "ii;dl_device is a tuple (type, number)", &type,
                              &id))
            return -1;
    }
    if (type == DL_CPU && id == 0)
        return 0;
    PyErr_Format(PyExc_BufferError, "the field is in the host's memory, not on (%d, %d)",
                 type, id);
    return -1;
}

PyObject *ext_field_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None,
             *copy = Py_None;
    struct ext_field *field = (struct ext_field *)self, *shown;
    const char *why = obstacle(field);
    PyObject *capsule;
    int versioned;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream,
                                     &max_version, &device, &copy) ||
        check_device(device) < 0 || (versioned = read_version(max_version)) < 0)
        return NULL;
    if (stream != Py_None)
        why = "memory of the host has no stream: it must be None";
    if (why != NULL)
        return PyErr_SetString(PyExc_BufferError, why), NULL;
    if (copy != Py_True)
        return export_field(field, versioned, false);
    shown = ext_field_copy(field);
    if (shown == NULL)
        return NULL;
    capsule = export_field(shown, versioned, true);
    Py_DECREF(shown);
    return capsule;
}

PyObject *ext_field_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}
