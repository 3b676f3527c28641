/*
 * What this build and this machine offer, as Python dicts.
 */
#include "ext.h"

#include "headrace/system.h"

/* Loads libraries, which reads files: the interpreter's lock is free meanwhile. */
static enum hr_err part_at(size_t at, struct hr_part_info *ret_info)
{
    enum hr_err code;

    Py_BEGIN_ALLOW_THREADS;
    code = hr_part_info(at, ret_info);
    Py_END_ALLOW_THREADS;
    return code;
}

PyObject *ext_parts(PyObject *module, PyObject *unused)
{
    static const char *const states[] = {
        [HR_PART_READY] = "ready",
        [HR_PART_MISSING] = "missing",
        [HR_PART_NOT_BUILT] = "not built",
    };
    struct hr_part_info info;
    PyObject *all = PyList_New(0);

    (void)module, (void)unused;
    for (size_t i = 0; all != NULL && part_at(i, &info) == HR_OK; i++) {
        PyObject *part =
            Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:s}", "kind", info.kind, "name",
                          info.name, "gives", info.gives, "state", states[info.state],
                          "version", info.version, "problem", info.problem);

        if (part == NULL || PyList_Append(all, part) < 0)
            Py_CLEAR(all);
        Py_XDECREF(part);
    }
    return all;
}

PyObject *ext_free_memory(PyObject *module, PyObject *unused)
{
    struct hr_machine_info machine;

    (void)module, (void)unused;
    hr_machine_info(&machine);
    return PyLong_FromUnsignedLongLong(machine.memory_free_bytes);
}
