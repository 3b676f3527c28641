/* Errors of the library as exceptions, and exceptions of user code as text. */
#include "ext.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char error_doc[] =
    "What went wrong: a message and its parts; see struct hr_error.";

PyObject *ext_error_create(PyObject *module)
{
    PyObject *parts =
        Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:L,s:i,s:i,s:(),s:s,s:s}",
                      "code", "", "message", "", "node", "", "op", "", "param", "",
                      "file", "", "line", 0, "column", 0, "record", (long long)-1,
                      "epoch", 0, "position", 0, "children", "detail", "", "raised", "");
    PyObject *class = NULL;

    (void)module;
    if (parts != NULL)
        class =
            PyErr_NewExceptionWithDoc("headrace._headrace.Error", error_doc, NULL, parts);
    Py_XDECREF(parts);
    return class;
}

/* Sets an attribute; steals `value`. On failure only that attribute is missing. */
static void set_part(PyObject *error, const char *name, PyObject *value)
{
    if (value == NULL || PyObject_SetAttrString(error, name, value) < 0)
        PyErr_Clear();
    Py_XDECREF(value);
}

static PyObject *children_of(const struct hr_error *error)
{
    PyObject *children = PyTuple_New((Py_ssize_t)error->depth);

    for (uint32_t i = 0; children != NULL && i < error->depth; i++) {
        PyObject *number = PyLong_FromUnsignedLong(error->children[i]);

        if (number == NULL || PyTuple_SetItem(children, (Py_ssize_t)i, number) < 0)
            Py_CLEAR(children);
    }
    return children;
}

static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *ext_raise(struct ext_state *state, const struct hr_error *error,
                    const char *detail, PyObject *cause)
{
    const char *words =
        error->message[0] != '\0' ? error->message : hr_err_text(error->code);
    PyObject *text = text_of(words), *exception = NULL;

    if (text != NULL)
        exception = PyObject_CallFunctionObjArgs(state->error, text, NULL);
    if (exception == NULL) {
        Py_XDECREF(text);
        Py_XDECREF(cause);
        return NULL;
    }
    set_part(exception, "message", text);
    set_part(exception, "code", text_of(hr_err_name(error->code)));
    set_part(exception, "node", text_of(error->node));
    set_part(exception, "op", text_of(error->op));
    set_part(exception, "param", text_of(error->param));
    set_part(exception, "file", PyUnicode_DecodeFSDefault(error->file));
    set_part(exception, "line", PyLong_FromLong(error->line));
    set_part(exception, "column", PyLong_FromLong(error->column));
    set_part(exception, "record", PyLong_FromLongLong(error->record - 1));
    set_part(exception, "epoch", PyLong_FromLongLong(error->epoch));
    set_part(exception, "position", PyLong_FromLongLong(error->position));
    set_part(exception, "children", children_of(error));
    set_part(exception, "raised", text_of(error->raised));
    if (detail != NULL)
        set_part(exception, "detail", text_of(detail));
    if (cause != NULL)
        PyException_SetCause(exception, cause);
    PyErr_SetObject(state->error, exception);
    Py_DECREF(exception);
    return NULL;
}

PyObject *ext_fail(struct ext_state *state, enum hr_err code, const char *param,
                   const char *format, ...)
{
    struct hr_error error = {.code = code};
    va_list args;

    va_start(args, format);
    vsnprintf(error.message, sizeof error.message, format, args);
    va_end(args);
    if (param != NULL)
        snprintf(error.param, sizeof error.param, "%s", param);
    return ext_raise(state, &error, NULL, NULL);
}

/* ---- exceptions of user code ---- */

PyObject *ext_exception_take(void)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value != NULL && traceback != NULL)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* Follows a chain of attributes; steals `object`, which may be NULL. */
static PyObject *attribute(PyObject *object, const char *name)
{
    PyObject *value = object != NULL ? PyObject_GetAttrString(object, name) : NULL;

    Py_XDECREF(object);
    return value;
}

/* Whether a frame of a traceback is of the package itself. */
static bool is_ours(PyObject *traceback)
{
    PyObject *frame = PyObject_GetAttrString(traceback, "tb_frame");
    PyObject *globals = attribute(frame, "f_globals"), *name = NULL;
    const char *module = NULL;
    bool ours;

    if (globals != NULL)
        name = PyDict_GetItemString(globals, "__name__"); /* borrowed */
    if (name != NULL && PyUnicode_Check(name))
        module = PyUnicode_AsUTF8AndSize(name, NULL);
    ours = module != NULL && strncmp(module, "headrace.", 9) == 0;
    Py_XDECREF(globals);
    PyErr_Clear();
    return ours;
}

/* The innermost frame, where it was raised; "" if that is in the package, which is no
 * place to look for what is wrong with the user's data. */
static void place_of(PyObject *exception, char *text, size_t room)
{
    PyObject *at = PyException_GetTraceback(exception), *next, *line, *file;
    const char *name = NULL;

    text[0] = '\0';
    while (at != NULL) {
        next = PyObject_GetAttrString(at, "tb_next");
        if (next == NULL || next == Py_None) {
            Py_XDECREF(next);
            break;
        }
        Py_DECREF(at);
        at = next;
    }
    if (at == NULL || is_ours(at)) {
        Py_XDECREF(at);
        return;
    }
    line = PyObject_GetAttrString(at, "tb_lineno");
    file = attribute(attribute(attribute(at, "tb_frame"), "f_code"), "co_filename");
    if (file != NULL)
        name = PyUnicode_AsUTF8AndSize(file, NULL);
    if (name != NULL && line != NULL) {
        const char *slash = strrchr(name, '/');

        snprintf(text, room, " (%s:%ld)", slash != NULL ? slash + 1 : name,
                 PyLong_AsLong(line));
    }
    Py_XDECREF(line);
    Py_XDECREF(file);
}

PyObject *ext_utf8(PyObject *text)
{
    PyObject *bytes = text != NULL
                          ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace")
                          : NULL;

    PyErr_Clear();
    return bytes;
}

/* str(exception) in one line; "" if that fails. */
static void said_by(PyObject *exception, char *text, size_t room)
{
    PyObject *words = PyObject_Str(exception), *bytes = ext_utf8(words);
    size_t length = 0;
    char *from;

    if (bytes != NULL) {
        from = PyBytes_AsString(bytes);
        length =
            (size_t)PyBytes_Size(bytes) < room ? (size_t)PyBytes_Size(bytes) : room - 1;
        for (size_t i = 0; i < length; i++)
            text[i] = (unsigned char)from[i] < 0x20 ? ' ' : from[i];
    }
    text[length] = '\0';
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(words);
}

void ext_exception_words(PyObject *exception, char *text, size_t room)
{
    PyObject *class = PyObject_GetAttrString((PyObject *)Py_TYPE(exception), "__name__");
    PyObject *name = ext_utf8(class);
    char said[501], place[160];

    PyErr_Clear();
    said_by(exception, said, sizeof said);
    place_of(exception, place, sizeof place);
    PyErr_Clear();
    snprintf(text, room, "%s%s%s%s", name != NULL ? PyBytes_AsString(name) : "exception",
             said[0] != '\0' ? ": " : "", said, place);
    Py_XDECREF(name);
    Py_XDECREF(class);
}

/* Adds " module:qualname" of a class if there is room for all of it. */
static void add_class(PyObject *class, char *text, size_t room)
{
    PyObject *module = PyObject_GetAttrString(class, "__module__");
    PyObject *name = PyObject_GetAttrString(class, "__qualname__");
    PyObject *words = NULL, *bytes;
    size_t used = strlen(text);
    int length = -1;

    if (module != NULL && name != NULL)
        words = PyUnicode_FromFormat("%s%S:%S", used > 0 ? " " : "", module, name);
    bytes = ext_utf8(words);
    if (bytes != NULL)
        length = snprintf(text + used, room - used, "%s", PyBytes_AsString(bytes));
    if (length < 0 || (size_t)length >= room - used)
        text[used] = '\0';
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(words);
    Py_XDECREF(module);
    Py_XDECREF(name);
}

void ext_exception_classes(PyObject *exception, char *text, size_t room)
{
    PyObject *classes = PyObject_GetAttrString((PyObject *)Py_TYPE(exception), "__mro__");
    Py_ssize_t count =
        classes != NULL && PyTuple_Check(classes) ? PyTuple_Size(classes) : 0;

    text[0] = '\0';
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyTuple_GetItem(classes, i) != PyExc_Exception)
            add_class(PyTuple_GetItem(classes, i), text, room);
        else
            break;
    PyErr_Clear();
    Py_XDECREF(classes);
}

PyObject *ext_exception_text(PyObject *exception)
{
    PyObject *module = PyImport_ImportModule("traceback"), *lines = NULL, *text = NULL;
    PyObject *nothing = PyUnicode_FromString("");

    if (module != NULL && nothing != NULL)
        lines = PyObject_CallMethod(module, "format_exception", "O", exception);
    if (lines != NULL)
        text = PyUnicode_Join(nothing, lines);
    Py_XDECREF(module);
    Py_XDECREF(nothing);
    Py_XDECREF(lines);
    PyErr_Clear();
    return text;
}
