/*
 * The table of ops as Python dicts, from which headrace/ derives methods, checks and
 * help.
 */
#include "ext.h"

#define TEXT_ROOM 512

static PyObject *param_dict(size_t op, size_t at)
{
    struct hr_param_info info;
    char range[TEXT_ROOM];

    if (hr_op_param(op, at, &info) != HR_OK)
        return PyErr_Format(PyExc_SystemError, "op %zu has no parameter %zu", op, at);
    hr_op_param_range(op, at, range, sizeof range);
    return Py_BuildValue("{s:s,s:s,s:z,s:z,s:s,s:O,s:s}", "name", info.name, "type",
                         info.type, "fallback", info.fallback, "unit", info.unit, "help",
                         info.help, "required", info.required ? Py_True : Py_False,
                         "range", range);
}

static PyObject *op_dict(size_t at)
{
    struct hr_op_info info;
    char traits[TEXT_ROOM];
    PyObject *params;

    if (hr_op_info(at, &info) != HR_OK)
        return PyErr_Format(PyExc_SystemError, "there is no op %zu", at);
    hr_op_traits(at, traits, sizeof traits);
    params = PyList_New((Py_ssize_t)info.param_count);
    for (size_t i = 0; params != NULL && i < info.param_count; i++) {
        PyObject *param = param_dict(at, i);

        if (param == NULL || PyList_SetItem(params, (Py_ssize_t)i, param) < 0)
            Py_CLEAR(params);
    }
    if (params == NULL)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s,s:z,s:I,s:O,s:s,s:N}", "name", info.name, "kind",
                         info.kind, "summary", info.summary, "doc", info.doc, "version",
                         (unsigned)info.version, "test_only",
                         info.test_only ? Py_True : Py_False, "traits", traits, "params",
                         params);
}

PyObject *ext_op_list(PyObject *module, PyObject *unused)
{
    size_t count = hr_op_count();
    PyObject *list = PyList_New((Py_ssize_t)count);

    (void)module, (void)unused;
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *op = op_dict(i);

        if (op == NULL || PyList_SetItem(list, (Py_ssize_t)i, op) < 0)
            Py_CLEAR(list);
    }
    return list;
}
