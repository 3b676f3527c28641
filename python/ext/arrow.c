/*
 * Arrow arrays of another library as the code of a source: headrace/arrow.h in a capsule.
 */
#include "headrace/arrow.h"
#include "ext.h"

#define CAPSULE "headrace.arrow"

static void destroy(PyObject *capsule)
{
    hr_arrow_unref(PyCapsule_GetPointer(capsule, CAPSULE));
}

/* arrow_rows(stream, rows): `stream` is what __arrow_c_stream__() gives, and is used up;
 * rows: None, or int64 numbers in contiguous memory. */
PyObject *ext_arrow_rows(PyObject *module, PyObject *args)
{
    struct ArrowArrayStream *stream;
    struct hr_arrow *arrow = NULL;
    struct hr_error error = {0};
    PyObject *capsule, *rows;
    Py_buffer buffer = {0};
    PyObject *made;
    enum hr_err code;

    if (!PyArg_ParseTuple(args, "OO:arrow_rows", &capsule, &rows))
        return NULL;
    stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream == NULL ||
        (rows != Py_None && PyObject_GetBuffer(rows, &buffer, PyBUF_SIMPLE) < 0))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_arrow_create(stream, buffer.buf, (size_t)buffer.len / sizeof(int64_t),
                           &arrow, &error);
    Py_END_ALLOW_THREADS;
    if (buffer.obj != NULL)
        PyBuffer_Release(&buffer);
    if (code != HR_OK)
        return ext_raise(ext_state_of(module), &error, NULL, NULL);
    made = PyCapsule_New(arrow, CAPSULE, destroy);
    if (made == NULL)
        hr_arrow_unref(arrow);
    return made;
}

bool ext_arrow_code(PyObject *function, struct hr_code *ret_code)
{
    PyObject *capsule = PyObject_GetAttrString(function, "arrow");
    bool is_arrow = capsule != NULL && PyCapsule_IsValid(capsule, CAPSULE);

    PyErr_Clear();
    if (is_arrow)
        hr_arrow_code(PyCapsule_GetPointer(capsule, CAPSULE), ret_code);
    Py_XDECREF(capsule);
    return is_arrow;
}
