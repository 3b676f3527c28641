/*
 * Merges the states of all ranks. Saving an iterator's own state is in iter.c.
 */
#include "ext.h"

/* The texts of a list of str, valid as long as its items. */
static const char **texts_of(PyObject *list, Py_ssize_t count)
{
    const char **texts = PyMem_Malloc(((size_t)count + 1) * sizeof *texts);

    if (texts == NULL)
        return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        texts[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
        if (texts[i] == NULL) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    return texts;
}

PyObject *ext_merge_states(PyObject *module, PyObject *states)
{
    struct hr_error error = {0};
    PyObject *list = PySequence_List(states), *made = NULL;
    Py_ssize_t count = list != NULL ? PyList_Size(list) : 0;
    const char **texts = list != NULL ? texts_of(list, count) : NULL;
    char *text = NULL;

    if (texts != NULL && hr_state_merge(texts, (size_t)count, &text, &error) == HR_OK)
        made = PyUnicode_FromString(text);
    else if (texts != NULL)
        ext_raise(PyModule_GetState(module), &error, NULL, NULL);
    hr_free(text);
    PyMem_Free(texts);
    Py_XDECREF(list);
    return made;
}
