/*
 * Values between the engine and user code.
 *
 * User code may keep its arguments forever, but the engine's memory is valid for one call
 * only, and an exported array cannot be moved. So arrays are copies in separate bytes
 * objects (docs/decisions/0012 has the cost). Results are copied into memory that the
 * engine provides, unless they are unchanged inputs.
 */
#include "ext.h"

#include <stdio.h>
#include <string.h>

/* Below this many bytes a copy takes less time than releasing the interpreter's lock. */
#define LONG_BYTES (256 << 10)

/* ---- numpy ---- */

/* Loads what the extension needs of NumPy. */
struct numpy {
    PyObject *ndarray, *asarray, *dtypes[EXT_DTYPES];
};

/* -1 with an exception set; the caller releases in either case. */
static int import_numpy(struct numpy *ret)
{
    PyObject *module = PyImport_ImportModule("numpy");

    if (module == NULL)
        return -1;
    ret->ndarray = PyObject_GetAttrString(module, "ndarray");
    ret->asarray = PyObject_GetAttrString(module, "asarray");
    for (int i = 1; i < EXT_DTYPES && ret->asarray != NULL; i++)
        ret->dtypes[i] = PyObject_CallMethod(module, "dtype", "s", ext_dtype_format(i));
    Py_DECREF(module);
    return PyErr_Occurred() != NULL ? -1 : 0;
}

static void release_numpy(struct numpy *numpy)
{
    Py_XDECREF(numpy->ndarray);
    Py_XDECREF(numpy->asarray);
    for (int i = 0; i < EXT_DTYPES; i++)
        Py_XDECREF(numpy->dtypes[i]);
}

/* The first thread that has loaded everything stores it in the state. */
static int load_numpy(struct ext_state *state)
{
    struct numpy numpy = {NULL};
    int result = 0;

    if (atomic_load_explicit(&state->numpy, memory_order_acquire))
        return 0;
    if (import_numpy(&numpy) < 0) {
        result = -1;
    } else {
        ext_mutex_lock(&state->mutex);
        if (!atomic_load(&state->numpy)) {
            state->ndarray = numpy.ndarray;
            state->asarray = numpy.asarray;
            memcpy(state->dtypes, numpy.dtypes, sizeof state->dtypes);
            memset(&numpy, 0, sizeof numpy);
            atomic_store_explicit(&state->numpy, true, memory_order_release);
        }
        ext_mutex_unlock(&state->mutex);
    }
    release_numpy(&numpy);
    return result;
}

/* ---- inputs ---- */

/* A contiguous copy of a tensor's bytes: a bytearray, which arrays can be written
 * through, or bytes. */
static PyObject *copy_bytes(const struct hr_field_view *view, bool writable)
{
    Py_ssize_t item = (Py_ssize_t)hr_dtype_size(view->dtype);
    Py_buffer from = {
        .buf = (void *)(uintptr_t)view->data,
        .itemsize = item,
        .readonly = 1,
        .ndim = view->ndim,
        .shape = (Py_ssize_t *)(uintptr_t)view->dims,
        .strides = (Py_ssize_t *)(uintptr_t)view->strides,
        .len = item,
    };
    PyObject *copy;
    char *to;

    for (int i = 0; i < view->ndim; i++)
        from.len *= view->dims[i];
    copy = writable ? PyByteArray_FromStringAndSize(NULL, from.len)
                    : PyBytes_FromStringAndSize(NULL, from.len);
    if (copy == NULL)
        return NULL;
    to = writable ? PyByteArray_AsString(copy) : PyBytes_AsString(copy);
    if (from.len >= LONG_BYTES && PyBuffer_IsContiguous(&from, 'C')) {
        Py_BEGIN_ALLOW_THREADS;
        memcpy(to, from.buf, (size_t)from.len);
        Py_END_ALLOW_THREADS;
    } else if (from.len > 0 && PyBuffer_ToContiguous(to, &from, from.len, 'C') < 0) {
        Py_CLEAR(copy);
    }
    return copy;
}

static PyObject *
array_object(struct ext_state *state, const struct hr_field_view *view, bool writable)
{
    PyObject *shape, *bytes, *array = NULL;

    if (load_numpy(state) < 0)
        return NULL;
    shape = PyTuple_New(view->ndim);
    for (int i = 0; shape != NULL && i < view->ndim; i++)
        if (PyTuple_SetItem(shape, i, PyLong_FromLongLong(view->dims[i])) < 0)
            Py_CLEAR(shape);
    bytes = copy_bytes(view, writable);
    if (shape != NULL && bytes != NULL)
        array = PyObject_CallFunctionObjArgs(state->ndarray, shape,
                                             state->dtypes[view->dtype], bytes, NULL);
    Py_XDECREF(shape);
    Py_XDECREF(bytes);
    return array;
}

/* Text that is not UTF-8, such as the name of a file, gets surrogates for its bytes, as
 * in os.fsdecode(). */
static const char text_errors[] = "surrogateescape";

/* str or bytes */
static PyObject *string_object(const char *data, int64_t length, bool text)
{
    return text ? PyUnicode_DecodeUTF8(data, (Py_ssize_t)length, text_errors)
                : PyBytes_FromStringAndSize(data, (Py_ssize_t)length);
}

/* Items [from, to) of the first of `levels` levels of strings. */
static PyObject *string_list(const char *data, const int64_t *const *splits, int levels,
                             int64_t from, int64_t to, bool text)
{
    PyObject *list = PyList_New((Py_ssize_t)(to - from));

    for (int64_t i = from; list != NULL && i < to; i++) {
        int64_t begin = splits[0][i], end = splits[0][i + 1];
        PyObject *item = levels > 1
                             ? string_list(data, splits + 1, levels - 1, begin, end, text)
                             : string_object(data + begin, end - begin, text);

        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)(i - from), item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *ext_strings(const struct hr_field_view *view)
{
    return string_list(view->data, view->splits, view->levels, 0, view->dims[0],
                       view->text);
}

PyObject *ext_list_copy(PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    PyObject *copy = PyList_New(count);

    for (Py_ssize_t i = 0; copy != NULL && i < count; i++) {
        PyObject *item = ext_list_item(list, i), *inner;

        if (item != NULL && PyList_Check(item)) {
            inner = ext_list_copy(item);
            Py_DECREF(item);
            item = inner;
        }
        if (item == NULL || PyList_SetItem(copy, i, item) < 0)
            Py_CLEAR(copy);
    }
    return copy;
}

/* (values, splits of each level, shapes if items have more than one dimension):
 * read-only, since a tuple that is returned is passed on without looking into it. */
static PyObject *ragged_object(struct ext_state *state, const struct hr_field_view *view)
{
    int shaped = view->item_ndim > 1, count = 1 + view->levels + shaped;
    PyObject *tuple = PyTuple_New(count);
    struct hr_field_view part;

    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *array;

        if (i == 0)
            ext_ragged_values(view, &part);
        else if (i <= view->levels)
            ext_ragged_splits(view, i - 1, &part);
        else
            ext_ragged_shapes(view, &part);
        array = array_object(state, &part, false);
        if (array == NULL || PyTuple_SetItem(tuple, i, array) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *ext_input(struct ext_state *state, const struct hr_code_call *call, size_t at)
{
    struct hr_field_view view;

    if (hr_code_input(call, at, &view) != HR_OK)
        return PyErr_Format(PyExc_SystemError, "there is no input %zu", at);
    if (view.dtype == HR_DTYPE_NONE)
        return view.offsets != NULL
                   ? ext_strings(&view)
                   : string_object(view.data, (int64_t)view.bytes, view.text);
    if (view.offsets != NULL)
        return ragged_object(state, &view);
    return view.ndim == 0 ? ext_number(view.dtype, view.data)
                          : array_object(state, &view, true);
}

/* ---- outputs ---- */

static bool same_buffer(const Py_buffer *a, const Py_buffer *b)
{
    return a->buf == b->buf && a->len == b->len && a->ndim == b->ndim &&
           strcmp(a->format, b->format) == 0 &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0 &&
           memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof *a->strides) == 0;
}

/* The index of the input that `value` is, or of which it is a complete view (if
 * `buffer` is given), or -1. */
static Py_ssize_t
find_input(PyObject *value, const Py_buffer *buffer, const struct ext_inputs *inputs)
{
    Py_buffer input;

    for (size_t i = 0; i < inputs->count; i++) {
        PyObject *given = inputs->items[i];
        bool same = given == value;

        if (!same && buffer != NULL && buffer->ndim > 0 && PyObject_CheckBuffer(given)) {
            if (PyObject_GetBuffer(given, &input, PyBUF_FULL_RO) == 0) {
                same = same_buffer(&input, buffer);
                PyBuffer_Release(&input);
            }
            PyErr_Clear();
        }
        if (same)
            return (Py_ssize_t)i;
    }
    return -1;
}

/* Whether the copy that the function was given still has the values of the input. */
static bool unchanged(struct hr_code_call *call, size_t input, const Py_buffer *buffer)
{
    struct hr_field_view view;
    int64_t bytes;

    if (hr_code_input(call, input, &view) != HR_OK || view.ndim != buffer->ndim)
        return false;
    bytes = (int64_t)hr_dtype_size(view.dtype);
    for (int i = view.ndim - 1; i >= 0; i--) {
        if (view.strides[i] != bytes && view.dims[i] > 1)
            return false; /* not contiguous: copied out */
        bytes *= view.dims[i];
    }
    return bytes == buffer->len && memcmp(view.data, buffer->buf, (size_t)bytes) == 0;
}

/* Whether a list that the function was given still has the items of its copy. They are
 * usually the same objects, so the strings are compared only where the list was changed.
 */
static bool same_items(PyObject *list, PyObject *copy)
{
    Py_ssize_t count = PyList_Size(copy);
    bool same = PyList_Size(list) == count;

    for (Py_ssize_t i = 0; same && i < count; i++) {
        PyObject *item = ext_list_item(list, i), *old = PyList_GetItem(copy, i);

        if (item == NULL)
            same = false; /* another thread has shortened the list */
        else if (PyList_Check(old))
            same = PyList_Check(item) && same_items(item, old);
        else
            same = item == old || PyObject_RichCompareBool(item, old, Py_EQ) == 1;
        Py_XDECREF(item);
    }
    PyErr_Clear();
    return same;
}

/* True if `value` is an input and was passed on as the output. An array, which the
 * function may have written to, needs its buffer. */
static bool pass(struct hr_code_call *call, size_t at, PyObject *value,
                 const Py_buffer *buffer, const struct ext_inputs *inputs)
{
    Py_ssize_t input = find_input(value, buffer, inputs);

    if (input < 0)
        return false;
    if (buffer == NULL && PyObject_CheckBuffer(value) && !PyBytes_Check(value))
        return false;
    if (buffer != NULL && !buffer->readonly && !unchanged(call, (size_t)input, buffer))
        return false;
    if (inputs->lists[input] != NULL && !same_items(value, inputs->lists[input]))
        return false;
    return hr_code_pass(call, at, (size_t)input, NULL) == HR_OK;
}

static void copy_out(void *to, Py_buffer *from)
{
    if (from->len >= LONG_BYTES && PyBuffer_IsContiguous(from, 'C')) {
        Py_BEGIN_ALLOW_THREADS;
        memcpy(to, from->buf, (size_t)from->len);
        Py_END_ALLOW_THREADS;
    } else if (from->len > 0) {
        PyBuffer_ToContiguous(to, from, from->len, 'C'); /* fails with an exception set */
    }
}

static enum hr_err store_bytes(struct hr_code_call *call, size_t at, const char *data,
                               Py_ssize_t length, struct hr_error *reterr)
{
    int64_t dims[1] = {length};
    void *room;
    enum hr_err code = hr_code_room(call, at, HR_DTYPE_NONE, 1, dims, &room, reterr);

    if (code == HR_OK && length > 0)
        memcpy(room, data, (size_t)length);
    return code;
}

static enum hr_err
store_text(struct hr_code_call *call, size_t at, PyObject *value, struct hr_error *reterr)
{
    PyObject *bytes = NULL;
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    enum hr_err code;

    if (text == NULL) { /* it has surrogates */
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(value, "utf-8", text_errors);
        if (bytes == NULL)
            return HR_ERR_TYPE;
        text = PyBytes_AsString(bytes);
        length = PyBytes_Size(bytes);
    }
    code = store_bytes(call, at, text, length, reterr);
    Py_XDECREF(bytes);
    return code;
}

/* `dtype` is that of the elements of `from`; HR_DTYPE_NONE if it is not one of ours. */
static enum hr_err
store_buffer(struct hr_code_call *call, size_t at, const struct hr_field_info *info,
             enum hr_dtype dtype, Py_buffer *from, struct hr_error *reterr)
{
    void *room;
    enum hr_err code;

    if (info->dtype == HR_DTYPE_NONE && from->itemsize == 1 && from->ndim == 1 &&
        PyBuffer_IsContiguous(from, 'C'))
        return store_bytes(call, at, from->buf, from->len, reterr);
    if (dtype == HR_DTYPE_NONE) {
        PyErr_Format(PyExc_TypeError,
                     "field '%s': no dtype is like the buffer's format \"%s\"",
                     info->name, from->format != NULL ? from->format : "B");
        return HR_ERR_TYPE;
    }
    if (from->ndim > HR_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "field '%s': %d dimensions are too many",
                     info->name, from->ndim);
        return HR_ERR_SHAPE;
    }
    code = hr_code_room(call, at, dtype, from->ndim, (const int64_t *)from->shape, &room,
                        reterr);
    if (code == HR_OK)
        copy_out(room, from);
    return code;
}

/* Whether an array has no elements. */
static bool is_empty(PyObject *array)
{
    PyObject *size = PyObject_GetAttrString(array, "size");
    bool empty = size != NULL && PyLong_AsLong(size) == 0;

    Py_XDECREF(size);
    PyErr_Clear();
    return empty;
}

/* Converts lists, tuples and numbers to an array of the declared dtype. An empty list is
 * of any dtype: NumPy's float64 for it says nothing. */
static PyObject *
cast_array(struct ext_state *state, PyObject *array, PyObject *value, enum hr_dtype dtype)
{
    PyObject *kind = PyObject_GetAttrString(array, "dtype"), *cast = NULL, *name;
    const char *letter = NULL;

    name = kind != NULL ? PyObject_GetAttrString(kind, "kind") : NULL;
    if (name != NULL)
        letter = PyUnicode_AsUTF8AndSize(name, NULL);
    /* Exact for int: out of range is refused. */
    if (letter != NULL && strchr("iu", letter[0]) != NULL && ext_is_int(dtype))
        cast = PyObject_CallFunctionObjArgs(state->asarray, value, state->dtypes[dtype],
                                            NULL);
    else if (letter != NULL)
        cast = PyObject_CallMethod(array, "astype", "Oss", state->dtypes[dtype], "C",
                                   is_empty(array) ? "unsafe" : "same_kind");
    if (cast == NULL && letter != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "NumPy takes %.60R for %S; declare another type in outputs= if it "
                     "is to hold such values",
                     value, kind);
    }
    Py_XDECREF(kind);
    Py_XDECREF(name);
    return cast;
}

/* The bits of an array of ml_dtypes.bfloat16, which has no buffer protocol; else NULL. */
static PyObject *brain_bits(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype"), *name, *bits = NULL;
    const char *text = NULL;

    name = dtype != NULL ? PyObject_GetAttrString(dtype, "name") : NULL;
    if (name != NULL)
        text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text != NULL && strcmp(text, "bfloat16") == 0)
        bits = PyObject_CallMethod(array, "view", "s", "H");
    Py_XDECREF(dtype);
    Py_XDECREF(name);
    return bits;
}

/* `array` in native byte order; steals the reference. */
static PyObject *native_array(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype"), *native, *made = NULL;
    int same;

    native = dtype != NULL ? PyObject_CallMethod(dtype, "newbyteorder", "s", "=") : NULL;
    same = native != NULL ? PyObject_RichCompareBool(dtype, native, Py_EQ) : -1;
    if (same == 0)
        made = PyObject_CallMethod(array, "astype", "O", native);
    else if (same > 0)
        made = Py_NewRef(array);
    Py_XDECREF(native);
    Py_XDECREF(dtype);
    Py_DECREF(array);
    return made;
}

static bool is_swapped(const Py_buffer *buffer)
{
    return buffer->format != NULL && strchr(">!", buffer->format[0]) != NULL;
}

/* The result of numpy.asarray for objects without a buffer or in foreign byte order.
 * *ret_brain is set if it holds the bits of bfloat16. */
static PyObject *
make_array(struct ext_state *state, PyObject *value, enum hr_dtype dtype, bool *ret_brain)
{
    PyObject *array, *better;

    if (load_numpy(state) < 0)
        return NULL;
    array = PyObject_CallFunctionObjArgs(state->asarray, value, NULL);
    if (array != NULL)
        array = native_array(array);
    if (array == NULL)
        return NULL;
    if (dtype == HR_BF16 || dtype == HR_DTYPE_NONE) {
        better = brain_bits(array);
        *ret_brain = better != NULL;
        PyErr_Clear();
    } else if (!(PyList_Check(value) || PyTuple_Check(value) || PyNumber_Check(value)) ||
               PyObject_HasAttrString(value, "__array__")) {
        return array;
    } else {
        better = cast_array(state, array, value, dtype);
        if (better == NULL)
            Py_CLEAR(array);
    }
    if (better == NULL)
        return array;
    Py_DECREF(array);
    return better;
}

/* Adds the field to what NumPy says of a value. What Python code raised, such as a method
 * __array__ of the user's, stays as it is. An exception is set. */
static enum hr_err name_field(const struct hr_field_info *info)
{
    PyObject *exception = ext_exception_take();
    PyObject *kind = (PyObject *)Py_TYPE(exception);
    PyObject *traceback = PyException_GetTraceback(exception);
    enum hr_err code = kind == PyExc_OverflowError ? HR_ERR_RANGE : HR_ERR_TYPE;

    if (traceback == NULL && (kind == PyExc_OverflowError || kind == PyExc_TypeError ||
                              kind == PyExc_ValueError))
        PyErr_Format(kind, "field '%s' is %s: %S", info->name,
                     info->dtype != HR_DTYPE_NONE ? hr_dtype_name(info->dtype) : "bytes",
                     exception);
    else
        PyErr_SetObject(kind, exception);
    Py_XDECREF(traceback);
    Py_DECREF(exception);
    return code;
}

/* A number that is of another type than its field, whose type the first record decided
 * unless it was declared, or out of its range. An exception is set. */
static enum hr_err refuse_scalar(const struct hr_field_info *info, PyObject *value)
{
    const char *dtype = hr_dtype_name(info->dtype);
    bool is_int = ext_is_int(info->dtype);

    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_OverflowError,
                     "%R does not fit into %s, the type of field '%s'", value, dtype,
                     info->name);
        return HR_ERR_RANGE;
    }
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return HR_ERR_TYPE;
    if (!is_int && info->dtype != HR_BOOL)
        return name_field(info);
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "%R is %s, and field '%s' is %s: declare another type, as in "
                 "outputs={'%s': '%s'}, if it is to hold such values",
                 value, is_int ? "no integer" : "neither True nor False", info->name,
                 dtype, info->name,
                 is_int || !PyIndex_Check(value) ? "float64" : "int64");
    return HR_ERR_TYPE;
}

static enum hr_err
store_scalar(struct hr_code_call *call, size_t at, const struct hr_field_info *info,
             PyObject *value, struct hr_error *reterr)
{
    uint8_t bytes[8] = {0};
    void *room;
    enum hr_err code;

    if (ext_number_store(value, info->dtype, bytes) < 0)
        return refuse_scalar(info, value);
    code = hr_code_room(call, at, info->dtype, 0, NULL, &room, reterr);
    if (code == HR_OK && info->dtype == HR_I64) /* a copy of known size */
        memcpy(room, bytes, sizeof(int64_t));
    else if (code == HR_OK)
        memcpy(room, bytes, hr_dtype_size(info->dtype));
    return code;
}

/* Reads `value` through its buffer, DLPack, or numpy.asarray. */
static enum hr_err
store_shown(struct hr_code_call *call, size_t at, const struct hr_field_info *info,
            enum hr_dtype dtype, PyObject *value, const struct ext_inputs *inputs,
            Py_buffer *buffer, struct hr_error *reterr)
{
    return pass(call, at, value, buffer, inputs)
               ? HR_OK
               : store_buffer(call, at, info, dtype, buffer, reterr);
}

static enum hr_err
store_made(struct ext_state *state, struct hr_code_call *call, size_t at,
           const struct hr_field_info *info, PyObject *value,
           const struct ext_inputs *inputs, struct hr_error *reterr)
{
    bool brain = false;
    PyObject *array = make_array(state, value, info->dtype, &brain);
    enum hr_err code;
    enum hr_dtype dtype;
    Py_buffer buffer;

    if (array != NULL && PyObject_GetBuffer(array, &buffer, PyBUF_FULL_RO) == 0) {
        dtype = brain ? HR_BF16 : ext_dtype_of_format(buffer.format, buffer.itemsize);
        code = store_shown(call, at, info, dtype, value, inputs, &buffer, reterr);
        PyBuffer_Release(&buffer);
    } else {
        code = name_field(info);
    }
    Py_XDECREF(array);
    return code;
}

static enum hr_err
store_array(struct ext_state *state, struct hr_code_call *call, size_t at,
            const struct hr_field_info *info, PyObject *value,
            const struct ext_inputs *inputs, struct hr_error *reterr)
{
    struct ext_tensor tensor;
    enum hr_dtype dtype;
    Py_buffer buffer;
    enum hr_err code;

    if (PyObject_CheckBuffer(value) &&
        PyObject_GetBuffer(value, &buffer, PyBUF_FULL_RO) == 0) {
        dtype = ext_dtype_of_format(buffer.format, buffer.itemsize);
        if (dtype == HR_U16 && info->dtype == HR_BF16)
            dtype = HR_BF16; /* its bits; NumPy offers no other way */
        if (buffer.ndim == 0 && info->ndim == 0 && info->dtype != HR_DTYPE_NONE)
            code = store_scalar(call, at, info, value, reterr); /* numpy.int64(3) */
        else if (is_swapped(&buffer))
            code = store_made(state, call, at, info, value, inputs, reterr);
        else
            code = store_shown(call, at, info, dtype, value, inputs, &buffer, reterr);
        PyBuffer_Release(&buffer);
        return code;
    }
    PyErr_Clear();
    if (!ext_tensor_open(value, &tensor))
        return store_made(state, call, at, info, value, inputs, reterr);
    code =
        store_shown(call, at, info, tensor.dtype, value, inputs, &tensor.buffer, reterr);
    ext_tensor_close(&tensor);
    return code;
}

static bool is_number(PyObject *value)
{
    return PyLong_Check(value) || PyFloat_Check(value) ||
           (PyNumber_Check(value) && !PyObject_CheckBuffer(value));
}

/* `value` is not what a field of strings was given, or is nested in more batches than can
 * be declared. */
static enum hr_err refuse_strings(const struct hr_field_info *info, PyObject *value,
                                  const struct ext_inputs *inputs)
{
    Py_ssize_t input = find_input(value, NULL, inputs);
    PyObject *list = input >= 0 ? inputs->lists[input] : NULL;

    if (list != NULL && !same_items(value, list))
        PyErr_Format(PyExc_TypeError,
                     "field '%s' is a list that the function has changed in place, and "
                     "strings can only be returned unchanged: change them with .map "
                     "before .batch()",
                     info->name);
    else if (list != NULL)
        PyErr_Format(PyExc_TypeError,
                     "field '%s' holds the strings of batches of batches, which a "
                     "function cannot return",
                     info->name);
    else
        PyErr_Format(PyExc_TypeError,
                     "field '%s' is a new value, %R, and strings can only be returned "
                     "unchanged, as the list that the function was given: make new "
                     "strings with .map before .batch()",
                     info->name, (PyObject *)Py_TYPE(value));
    return HR_ERR_TYPE;
}

enum hr_err
ext_output(struct ext_state *state, struct hr_code_call *call, size_t at, PyObject *value,
           const struct ext_inputs *inputs, struct hr_error *reterr)
{
    struct hr_field_info info;

    if (pass(call, at, value, NULL, inputs))
        return HR_OK;
    if (hr_code_output(call, at, &info) != HR_OK)
        return HR_ERR_INTERNAL;
    if (info.dtype == HR_DTYPE_NONE && info.ndim > 0)
        return refuse_strings(&info, value, inputs);
    if (PyUnicode_Check(value))
        return store_text(call, at, value, reterr);
    if (value == Py_None) {
        PyErr_Format(
            PyExc_TypeError,
            "None for field '%s', and batches hold none: give a value that stands "
            "for it",
            info.name);
        return HR_ERR_TYPE;
    }
    if (info.dtype != HR_DTYPE_NONE && info.ndim == 0 && is_number(value))
        return store_scalar(call, at, &info, value, reterr);
    return store_array(state, call, at, &info, value, inputs, reterr);
}
