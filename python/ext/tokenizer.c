/*
 * The tokenizer: headrace/tokenizer.h as an object. It is immutable after __init__, and
 * thread-safe.
 */
#include "headrace/tokenizer.h"
#include "ext.h"

#include <string.h>

/* Up to this many bytes encoding takes less time than releasing the interpreter's lock.
 */
#define SHORT_TEXT 2048

/* More than a text of n bytes usually has ids; then byte-level BPE writes them in place.
 */
#define ROOM(bytes) ((bytes) + 4)

struct ext_tokenizer {
    PyObject_HEAD struct hr_tokenizer *tokenizer;
    struct ext_mutex mutex;
};

static enum hr_err open_files(const char *form, const char *path, const char *other,
                              struct hr_tokenizer **ret, struct hr_error *error)
{
    enum hr_tokenizer_pattern pattern;

    if (strcmp(form, "gpt2") == 0)
        return hr_tokenizer_from_gpt2(path, other, ret, error);
    if (strcmp(form, "json") == 0)
        return hr_tokenizer_from_json(path, ret, error);
    if (strcmp(form, "sentencepiece") == 0)
        return hr_tokenizer_from_sentencepiece(path, ret, error);
    if (hr_tokenizer_pattern_find(other, &pattern))
        return hr_tokenizer_from_tiktoken(path, pattern, ret, error);
    snprintf(error->message, sizeof error->message,
             "there is no pattern \"%.100s\"; the patterns are r50k, cl100k, o200k and "
             "llama3",
             other);
    snprintf(error->param, sizeof error->param, "pattern");
    return error->code = HR_ERR_ARGUMENT;
}

static int tokenizer_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct ext_tokenizer *t = (struct ext_tokenizer *)self;
    struct hr_tokenizer *fresh = NULL;
    struct hr_error error = {0};
    const char *form, *path, *other;
    enum hr_err code;
    bool first;

    if (kwargs != NULL && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Tokenizer takes no keyword arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "sss:Tokenizer", &form, &path, &other))
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    code = open_files(form, path, other, &fresh, &error);
    Py_END_ALLOW_THREADS;
    if (code != HR_OK) {
        ext_raise(ext_state(self), &error, NULL, NULL);
        return -1;
    }
    ext_mutex_lock(&t->mutex);
    first = t->tokenizer == NULL;
    if (first)
        t->tokenizer = fresh;
    ext_mutex_unlock(&t->mutex);
    if (first)
        ext_count(EXT_TOKENIZER, 1);
    else
        hr_tokenizer_destroy(fresh);
    return 0;
}

static void tokenizer_dealloc(PyObject *self)
{
    struct ext_tokenizer *t = (struct ext_tokenizer *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (t->tokenizer != NULL)
        ext_count(EXT_TOKENIZER, -1);
    hr_tokenizer_destroy(t->tokenizer);
    PyObject_Free(self);
    Py_DECREF(type);
}

static struct hr_tokenizer *handle(PyObject *self)
{
    struct hr_tokenizer *t = ((struct ext_tokenizer *)self)->tokenizer;

    if (t == NULL)
        PyErr_SetString(PyExc_ValueError, "the tokenizer was not initialised");
    return t;
}

/* The bytes of a str or bytes object, valid as long as it is; -1 with an exception set.
 */
static int text_of(PyObject *object, struct hr_tokenizer_text *ret_text)
{
    Py_ssize_t bytes;
    char *data;

    if (PyUnicode_Check(object)) {
        ret_text->data = PyUnicode_AsUTF8AndSize(object, &bytes);
        ret_text->bytes = (size_t)bytes;
        return ret_text->data == NULL ? -1 : 0;
    }
    if (PyBytes_Check(object)) {
        if (PyBytes_AsStringAndSize(object, &data, &bytes) < 0)
            return -1;
        *ret_text = (struct hr_tokenizer_text){data, (size_t)bytes};
        return 0;
    }
    PyErr_SetString(PyExc_TypeError, "a text must be str or bytes");
    return -1;
}

static PyObject *raise(PyObject *self, const struct hr_error *error)
{
    return ext_raise(ext_state(self), error, NULL, NULL);
}

/* Encodes into `ids`, a bytearray with room for `room` ids. */
static enum hr_err
encode_into(struct hr_tokenizer *t, const struct hr_tokenizer_text *text, PyObject *ids,
            size_t room, size_t *ret_count, struct hr_error *error)
{
    int32_t *to = (int32_t *)(void *)PyByteArray_AsString(ids);
    enum hr_err code;

    Py_BEGIN_ALLOW_THREADS;
    code = hr_tokenizer_encode(t, text->data, text->bytes, to, room, ret_count, error);
    Py_END_ALLOW_THREADS;
    return code;
}

static PyObject *
encode_long(PyObject *self, struct hr_tokenizer *t, const struct hr_tokenizer_text *text)
{
    struct hr_error error = {0};
    size_t count = 0, room = ROOM(text->bytes);
    PyObject *ids =
        PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(room * sizeof(int32_t)));
    enum hr_err code;

    if (ids == NULL)
        return NULL;
    code = encode_into(t, text, ids, room, &count, &error);
    if (code == HR_ERR_LIMIT && count > room) { /* rules made the text longer */
        if (PyByteArray_Resize(ids, (Py_ssize_t)(count * sizeof(int32_t))) < 0) {
            Py_DECREF(ids);
            return NULL;
        }
        code = encode_into(t, text, ids, count, &count, &error);
    }
    if (code != HR_OK)
        (void)raise(self, &error);
    if (code != HR_OK ||
        PyByteArray_Resize(ids, (Py_ssize_t)(count * sizeof(int32_t))) < 0)
        Py_CLEAR(ids);
    return ids;
}

/* A short text is encoded on the stack. */
static PyObject *tokenizer_encode(PyObject *self, PyObject *object)
{
    struct hr_tokenizer *t = handle(self);
    struct hr_tokenizer_text text;
    struct hr_error error = {0};
    int32_t ids[ROOM(SHORT_TEXT)];
    size_t count = 0;
    enum hr_err code;

    if (t == NULL || text_of(object, &text) < 0)
        return NULL;
    if (text.bytes > SHORT_TEXT)
        return encode_long(self, t, &text);
    code = hr_tokenizer_encode(t, text.data, text.bytes, ids, ROOM(SHORT_TEXT), &count,
                               &error);
    if (code == HR_ERR_LIMIT && count > ROOM(SHORT_TEXT))
        return encode_long(self, t, &text);
    return code == HR_OK ? PyByteArray_FromStringAndSize(
                               (const char *)ids, (Py_ssize_t)(count * sizeof *ids))
                         : raise(self, &error);
}

/* ---- batches ---- */

static void free_tokens(void *user)
{
    hr_tokens_finish(user);
    free(user);
}

/* Takes over `tokens`, which was allocated, as a field [count] of int32. */
static PyObject *tokens_field(struct ext_state *state, struct hr_tokens *tokens)
{
    struct hr_field_view view = {.dtype = HR_I32,
                                 .ndim = 1,
                                 .dims = {(int64_t)tokens->count},
                                 .strides = {sizeof(int32_t)},
                                 .data = tokens->ids,
                                 .bytes = tokens->count * sizeof(int32_t)};
    struct hr_buffer *buffer =
        hr_buffer_wrap(tokens->ids, view.bytes, free_tokens, tokens);
    PyObject *name, *field = NULL;
    struct ext_hold *hold;

    if (buffer == NULL) {
        free_tokens(tokens);
        return PyErr_NoMemory();
    }
    hold = ext_hold_create(NULL, buffer);
    name = hold != NULL ? PyUnicode_FromString("ids") : NULL;
    if (name != NULL)
        field = ext_field_create(state, name, hold, &view, true);
    Py_XDECREF(name);
    ext_hold_unref(hold);
    return field;
}

static PyObject *
encode_texts(PyObject *self, struct hr_tokenizer *t,
             const struct hr_tokenizer_text *texts, size_t count, int threads)
{
    PyObject *offsets =
        PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)((count + 1) * sizeof(int64_t)));
    struct hr_tokens *values = calloc(1, sizeof *values);
    struct hr_error error = {0};
    PyObject *field;
    int64_t *to;
    enum hr_err code;

    if (offsets == NULL || values == NULL) {
        Py_XDECREF(offsets);
        free(values);
        return PyErr_NoMemory();
    }
    to = (int64_t *)(void *)PyByteArray_AsString(offsets);
    Py_BEGIN_ALLOW_THREADS;
    code = hr_tokenizer_encode_batch(t, texts, count, threads, values, to, &error);
    Py_END_ALLOW_THREADS;
    if (code != HR_OK) {
        free_tokens(values);
        Py_DECREF(offsets);
        return ext_raise(ext_state(self), &error, NULL, NULL);
    }
    field = tokens_field(ext_state(self), values);
    if (field == NULL) {
        Py_DECREF(offsets);
        return NULL;
    }
    return Py_BuildValue("(NN)", field, offsets);
}

static PyObject *tokenizer_encode_batch(PyObject *self, PyObject *args)
{
    struct hr_tokenizer *t = handle(self);
    struct hr_tokenizer_text *texts = NULL;
    PyObject *sequence, *items, *made = NULL;
    Py_ssize_t count, at = 0;
    int threads;

    if (t == NULL || !PyArg_ParseTuple(args, "Oi:encode_batch", &sequence, &threads))
        return NULL;
    /* A tuple keeps the texts alive whatever happens to the list meanwhile. */
    items = PySequence_Tuple(sequence);
    if (items == NULL)
        return NULL;
    count = PyTuple_Size(items);
    texts = malloc(((size_t)count + 1) * sizeof *texts);
    if (texts == NULL)
        PyErr_NoMemory();
    while (texts != NULL && at < count &&
           text_of(PyTuple_GetItem(items, at), &texts[at]) == 0)
        at++;
    if (texts != NULL && at == count)
        made = encode_texts(self, t, texts, (size_t)count, threads);
    free(texts);
    Py_DECREF(items);
    return made;
}

/* ---- decoding ---- */

static PyObject *tokenizer_decode(PyObject *self, PyObject *ids)
{
    struct hr_tokenizer *t = handle(self);
    struct hr_error error = {0};
    PyObject *text = NULL;
    Py_buffer buffer;
    size_t count, bytes;
    enum hr_err code;

    if (t == NULL || PyObject_GetBuffer(ids, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    count = (size_t)buffer.len / sizeof(int32_t);
    code = hr_tokenizer_decode(t, buffer.buf, count, NULL, 0, &bytes, &error);
    if (code == HR_OK || code == HR_ERR_LIMIT) {
        text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
        if (text != NULL)
            code = hr_tokenizer_decode(t, buffer.buf, count, PyBytes_AsString(text),
                                       bytes, &bytes, &error);
    } else {
        ext_raise(ext_state(self), &error, NULL, NULL);
    }
    PyBuffer_Release(&buffer);
    return text;
}

static PyObject *tokenizer_vocab_size(PyObject *self, void *unused)
{
    struct hr_tokenizer *t = handle(self);

    (void)unused;
    return t != NULL ? PyLong_FromLong(hr_tokenizer_vocab_size(t)) : NULL;
}

static PyMethodDef tokenizer_methods[] = {
    {"encode",       tokenizer_encode,       METH_O,
     "encode(text) -> bytearray\n--\n\nThe ids of a str or bytes, as int32."     },
    {"encode_batch", tokenizer_encode_batch, METH_VARARGS,
     "encode_batch(texts, threads) -> tuple[Field, bytearray]\n--\n\n"
     "All ids as int32, and where each text's begin, as int64."                  },
    {"decode",       tokenizer_decode,       METH_O,
     "decode(ids) -> bytes\n--\n\nThe bytes of ids, which are a buffer of int32."},
    {NULL,           NULL,                   0,            NULL                  },
};

static PyGetSetDef tokenizer_getset[] = {
    {"vocab_size", tokenizer_vocab_size, NULL, "The largest id plus one.", NULL},
    {NULL,         NULL,                 NULL, NULL,                       NULL},
};

static PyType_Slot tokenizer_slots[] = {
    {Py_tp_doc,     "Tokenizer(form, path, other)\n--\n\nText to token ids."},
    {Py_tp_init,    tokenizer_init                                          },
    {Py_tp_dealloc, tokenizer_dealloc                                       },
    {Py_tp_methods, tokenizer_methods                                       },
    {Py_tp_getset,  tokenizer_getset                                        },
    {0,             NULL                                                    },
};

PyType_Spec ext_tokenizer_spec = {
    .name = "headrace._headrace.Tokenizer",
    .basicsize = sizeof(struct ext_tokenizer),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = tokenizer_slots,
};
