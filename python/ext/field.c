/*
 * A field of a batch: shape, bytes and the buffer protocol.
 *
 * Read-only, because records may share memory with other batches and fields. writable()
 * returns the memory itself if this field is provably its only holder, else a copy.
 */
#include "ext.h"

#include <string.h>

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are shown as they are");

/* "l", not "q": NumPy's int64 is C's long here, and longlong is treated as a different
 * type in places. bfloat16 has no format. */
static const char *const formats[EXT_DTYPES] = {
    [HR_U8] = "B",   [HR_I16] = "h",  [HR_I32] = "i", [HR_I64] = "l",
    [HR_F16] = "e",  [HR_BF16] = "H", [HR_F32] = "f", [HR_F64] = "d",
    [HR_BOOL] = "?", [HR_I8] = "b",   [HR_U16] = "H",
};

const char *ext_dtype_format(enum hr_dtype dtype)
{
    return (int)dtype > 0 && dtype < EXT_DTYPES ? formats[dtype] : NULL;
}

enum hr_dtype ext_dtype_of_format(const char *format, Py_ssize_t item_bytes)
{
    const char *f = format != NULL ? format : "B";

    if (*f == '@' || *f == '=' || *f == '<' || (item_bytes == 1 && *f != '\0' && f[1]))
        f++;
    if (f[0] == '\0' || f[1] != '\0')
        return HR_DTYPE_NONE;
    switch (f[0]) {
    case 'l':
    case 'q':
        return item_bytes == 8 ? HR_I64 : item_bytes == 4 ? HR_I32 : HR_DTYPE_NONE;
    case 'H':
        return HR_U16;
    }
    for (int i = 1; i < EXT_DTYPES; i++)
        if (formats[i] != NULL && formats[i][0] == f[0] &&
            (Py_ssize_t)hr_dtype_size(i) == item_bytes)
            return i;
    return HR_DTYPE_NONE;
}

PyObject *ext_field_create(struct ext_state *state, PyObject *name, struct ext_hold *hold,
                           const struct hr_field_view *view, bool writable)
{
    struct ext_field *field = (struct ext_field *)PyType_GenericAlloc(state->field, 0);

    if (field == NULL)
        return NULL;
    field->name = Py_NewRef(name);
    field->hold = ext_hold_ref(hold);
    field->view = *view;
    field->view.name = NULL;
    field->writable = writable;
    ext_count(EXT_FIELD, 1);
    return (PyObject *)field;
}

static void field_dealloc(PyObject *self)
{
    struct ext_field *field = (struct ext_field *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (field->weak != NULL)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(field->name);
    ext_hold_unref(field->hold);
    ext_count(EXT_FIELD, -1);
    PyObject_Free(self);
    Py_DECREF(type);
}

static struct ext_field *of(PyObject *self)
{
    return (struct ext_field *)self;
}

/* ---- the buffer protocol ---- */

static int refuse(Py_buffer *view, const char *why)
{
    PyErr_SetString(PyExc_BufferError, why);
    view->obj = NULL;
    return -1;
}

static int field_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    struct ext_field *field = of(self);
    bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;

    if (field->view.dtype == HR_DTYPE_NONE)
        return refuse(view, "byte strings are no array: use strings(), or values() and "
                            "offsets()");
    if (field->view.offsets != NULL)
        return refuse(view, "a ragged field is no array: use values() and offsets()");
    if ((flags & PyBUF_WRITABLE) && !field->writable)
        return refuse(view, "the field is read-only: use writable()");
    view->buf = (void *)(uintptr_t)field->view.data;
    view->itemsize = (Py_ssize_t)hr_dtype_size(field->view.dtype);
    view->readonly = !field->writable;
    view->ndim = field->view.ndim;
    view->format = (char *)(uintptr_t)ext_dtype_format(field->view.dtype);
    view->shape = view->ndim > 0 ? (Py_ssize_t *)field->view.dims : NULL;
    view->strides = view->ndim > 0 ? (Py_ssize_t *)field->view.strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    view->len = view->itemsize;
    for (int i = 0; i < view->ndim; i++)
        view->len *= view->shape[i];
    if (!PyBuffer_IsContiguous(view, 'C') &&
        (!strided || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS))
        return refuse(view, "the field is not contiguous");
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS &&
        !PyBuffer_IsContiguous(view, 'F'))
        return refuse(view, "the field is not in Fortran order");
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    if (!(flags & PyBUF_ND))
        view->shape = NULL;
    if (!strided)
        view->strides = NULL;
    view->obj = Py_NewRef(self);
    atomic_fetch_add(&field->exports, 1);
    return 0;
}

static void field_releasebuffer(PyObject *self, Py_buffer *view)
{
    (void)view;
    atomic_fetch_sub(&of(self)->exports, 1);
}

/* ---- what it is ---- */

static PyObject *field_name(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(of(self)->name);
}

static PyObject *field_dtype(PyObject *self, void *unused)
{
    (void)unused;
    if (of(self)->view.dtype == HR_DTYPE_NONE)
        Py_RETURN_NONE;
    return PyUnicode_FromString(hr_dtype_name(of(self)->view.dtype));
}

static PyObject *int_tuple(const int64_t *values, int count)
{
    PyObject *tuple = PyTuple_New(count);

    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);

        if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *field_shape(PyObject *self, void *unused)
{
    (void)unused;
    return int_tuple(of(self)->view.dims, of(self)->view.ndim);
}

static PyObject *field_strides(PyObject *self, void *unused)
{
    (void)unused;
    return int_tuple(of(self)->view.strides, of(self)->view.ndim);
}

static PyObject *field_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(of(self)->view.bytes);
}

static PyObject *field_text(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(of(self)->view.text);
}

static PyObject *field_ragged(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(of(self)->view.offsets != NULL);
}

/* ---- other sights of it ---- */

struct ext_field *ext_field_copy(struct ext_field *field)
{
    struct hr_field_view view = field->view;
    struct hr_buffer *buffer;
    struct ext_hold *hold;
    PyObject *copy;
    Py_buffer from;
    int code;

    if (PyObject_GetBuffer((PyObject *)field, &from, PyBUF_FULL_RO) < 0)
        return NULL;
    buffer = hr_buffer_create(from.len > 0 ? (size_t)from.len : 1);
    if (buffer == NULL) {
        PyBuffer_Release(&from);
        return (struct ext_field *)PyErr_NoMemory();
    }
    code = PyBuffer_ToContiguous(hr_buffer_data(buffer), &from, from.len, 'C');
    view.data = hr_buffer_data(buffer);
    view.bytes = (size_t)from.len;
    view.buffer = buffer;
    PyBuffer_FillContiguousStrides(view.ndim, (Py_ssize_t *)view.dims,
                                   (Py_ssize_t *)view.strides, (int)from.itemsize, 'C');
    PyBuffer_Release(&from);
    hold = ext_hold_create(NULL, buffer);
    if (hold == NULL || code < 0) {
        ext_hold_unref(hold);
        return NULL;
    }
    copy = ext_field_create(ext_state((PyObject *)field), field->name, hold, &view, true);
    ext_hold_unref(hold);
    return (struct ext_field *)copy;
}

/* Whether this field is the only view of the memory. If so, it takes a second reference
 * to its hold for the caller, so that a thread that asks at the same time gets false.
 * */
static bool claim(struct ext_field *field)
{
    int alone = 1;

    if (!atomic_compare_exchange_strong(&field->hold->refs, &alone, 2))
        return false;
    if (atomic_load(&field->exports) == 0 && field->view.offsets == NULL &&
        field->view.buffer != NULL && hr_buffer_is_writable(field->view.buffer))
        return true;
    ext_hold_unref(field->hold);
    return false;
}

static PyObject *field_writable(PyObject *self, PyObject *unused)
{
    struct ext_field *field = of(self);
    PyObject *shown;

    (void)unused;
    if (!claim(field))
        return (PyObject *)ext_field_copy(field);
    shown =
        ext_field_create(ext_state(self), field->name, field->hold, &field->view, true);
    ext_hold_unref(field->hold);
    return shown;
}

/* ---- ragged fields ---- */

int64_t ext_ragged_items(const struct hr_field_view *view, int level)
{
    int64_t items = view->dims[0];

    for (int l = 0; l < level; l++)
        items = view->splits[l][items];
    return items;
}

/* Makes the view, whose dims are set, that of a contiguous array. */
static void set_array(struct hr_field_view *view, enum hr_dtype dtype, int ndim)
{
    int64_t step = (int64_t)hr_dtype_size(dtype);

    view->dtype = dtype;
    view->ndim = ndim;
    for (int d = ndim; d-- > 0; step *= view->dims[d])
        view->strides[d] = step;
    view->bytes = (size_t)step;
    view->offsets = view->shapes = NULL;
    view->levels = view->item_ndim = 0;
}

void ext_ragged_values(const struct hr_field_view *view, struct hr_field_view *ret_part)
{
    *ret_part = *view;
    ret_part->dims[0] = ext_ragged_items(view, view->levels);
    set_array(ret_part, view->dtype == HR_DTYPE_NONE ? HR_U8 : view->dtype, 1);
}

void ext_ragged_splits(const struct hr_field_view *view, int level,
                       struct hr_field_view *ret_part)
{
    *ret_part = *view;
    ret_part->data = view->splits[level];
    ret_part->dims[0] = ext_ragged_items(view, level) + 1;
    set_array(ret_part, HR_I64, 1);
}

void ext_ragged_shapes(const struct hr_field_view *view, struct hr_field_view *ret_part)
{
    *ret_part = *view;
    ret_part->data = view->shapes;
    ret_part->dims[0] = ext_ragged_items(view, view->levels - 1);
    ret_part->dims[1] = view->item_ndim;
    set_array(ret_part, HR_I64, 2);
}

static PyObject *need_ragged(PyObject *self)
{
    if (of(self)->view.offsets != NULL)
        return self;
    return ext_fail(ext_state(self), HR_ERR_TYPE, NULL,
                    "the field has records of one shape: it is an array by itself");
}

static PyObject *show_part(PyObject *self, const struct hr_field_view *part)
{
    return ext_field_create(ext_state(self), of(self)->name, of(self)->hold, part, false);
}

static PyObject *field_values(PyObject *self, PyObject *unused)
{
    struct hr_field_view part;

    (void)unused;
    if (need_ragged(self) == NULL)
        return NULL;
    ext_ragged_values(&of(self)->view, &part);
    return show_part(self, &part);
}

static PyObject *field_splits(PyObject *self, PyObject *args)
{
    struct hr_field_view part;
    int level = 0;

    if (!PyArg_ParseTuple(args, "|i:splits", &level) || need_ragged(self) == NULL)
        return NULL;
    if (level < 0 || level >= of(self)->view.levels)
        return ext_fail(ext_state(self), HR_ERR_RANGE, NULL,
                        "level %d: the field has levels 0 to %d", level,
                        of(self)->view.levels - 1);
    ext_ragged_splits(&of(self)->view, level, &part);
    return show_part(self, &part);
}

static PyObject *field_offsets(PyObject *self, PyObject *unused)
{
    struct hr_field_view part;

    (void)unused;
    if (need_ragged(self) == NULL)
        return NULL;
    ext_ragged_splits(&of(self)->view, 0, &part);
    return show_part(self, &part);
}

static PyObject *field_shapes(PyObject *self, PyObject *unused)
{
    struct hr_field_view part;

    (void)unused;
    if (need_ragged(self) == NULL)
        return NULL;
    if (of(self)->view.shapes == NULL)
        return ext_fail(ext_state(self), HR_ERR_TYPE, NULL,
                        "the field's items have %d dimension%s: splits() has their sizes",
                        of(self)->view.item_ndim,
                        of(self)->view.item_ndim == 1 ? "" : "s");
    ext_ragged_shapes(&of(self)->view, &part);
    return show_part(self, &part);
}

static PyObject *field_levels(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(of(self)->view.levels);
}

static PyObject *field_item_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(of(self)->view.item_ndim);
}

static PyObject *field_strings(PyObject *self, PyObject *unused)
{
    const struct hr_field_view *view = &of(self)->view;

    (void)unused;
    if (view->dtype != HR_DTYPE_NONE || view->offsets == NULL)
        return ext_fail(ext_state(self), HR_ERR_TYPE, NULL,
                        "the field holds no byte strings but %s",
                        hr_dtype_name(view->dtype));
    return ext_strings(view);
}

/* ---- the type ---- */

static PyMethodDef field_methods[] = {
    {"writable",          field_writable,                                METH_NOARGS,
     "writable() -> Field\n--\n\n"
     "The same memory, writable, while nothing else holds it; else a copy."                },
    {"values",            field_values,                                  METH_NOARGS,
     "values() -> Field\n--\n\nAll elements of a ragged field, stored contiguously."       },
    {"offsets",           field_offsets,                                 METH_NOARGS,
     "offsets() -> Field\n--\n\n"
     "splits(0): where records begin in values() if levels is 1."                          },
    {"splits",            field_splits,                                  METH_VARARGS,
     "splits(level=0) -> Field\n--\n\n"
     "Where the items of a level begin in the next level, in values() for the last: "
     "int64, "
     "one more than the level has items."                                                  },
    {"shapes",            field_shapes,                                  METH_NOARGS,
     "shapes() -> Field\n--\n\n"
     "Sizes of items of two or more dimensions: int64 [items, item_ndim]."                 },
    {"strings",           field_strings,                                 METH_NOARGS,
     "strings() -> list[str] | list[bytes]\n--\n\nText as str, other byte strings as "
     "bytes; of nested batches lists of lists."                                            },
    {"__dlpack__",        (PyCFunction)(void (*)(void))ext_field_dlpack,
     METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule that keeps the memory alive."                                       },
    {"__dlpack_device__", ext_field_dlpack_device,                       METH_NOARGS,
     "__dlpack_device__() -> tuple[int, int]\n--\n\n(1, 0): memory of the host."           },
    {NULL,                NULL,                                          0,            NULL},
};

static PyGetSetDef field_getset[] = {
    {"name",      field_name,      NULL, "Its name.",                                    NULL},
    {"dtype",     field_dtype,     NULL, "\"float32\"; None for byte strings.",          NULL},
    {"shape",     field_shape,     NULL, "Sizes; the first is the number of records.",   NULL},
    {"strides",   field_strides,   NULL, "Steps in bytes.",                              NULL},
    {"nbytes",    field_nbytes,    NULL, "Bytes of all its elements.",                   NULL},
    {"text",      field_text,      NULL, "Whether its byte strings are text.",           NULL},
    {"ragged",    field_ragged,    NULL, "Whether records differ in length.",            NULL},
    {"levels",    field_levels,    NULL,
     "Batches that a ragged field is nested in; 0 for others.",                          NULL},
    {"item_ndim", field_item_ndim, NULL, "Dimensions of its items; 0 for byte strings.",
     NULL                                                                                    },
    {NULL,        NULL,            NULL, NULL,                                           NULL},
};

static PyMemberDef field_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct ext_field, weak), READONLY,                NULL},
    {NULL,                    0,                           0,                                0,          NULL},
};

static PyType_Slot field_slots[] = {
    {Py_tp_doc,           "A field of a batch: buffer protocol and DLPack without a copy."},
    {Py_tp_dealloc,       field_dealloc                                                   },
    {Py_tp_methods,       field_methods                                                   },
    {Py_tp_getset,        field_getset                                                    },
    {Py_tp_members,       field_members                                                   },
    {Py_bf_getbuffer,     field_getbuffer                                                 },
    {Py_bf_releasebuffer, field_releasebuffer                                             },
    {0,                   NULL                                                            },
};

PyType_Spec ext_field_spec = {
    .name = "headrace._headrace.Field",
    .basicsize = sizeof(struct ext_field),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = field_slots,
};
