/* XXH3-128 over bytes in order, as printed by `headrace run --digest`. Several threads
 * may add to one digest; additions are atomic. */
#include "ext.h"

struct ext_digest {
    PyObject_HEAD struct hr_digest *digest;
    struct ext_mutex mutex;
};

static int digest_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct ext_digest *digest = (struct ext_digest *)self;
    struct hr_digest *fresh;
    bool first;

    if (!PyArg_ParseTuple(args, ":Digest") || (kwargs != NULL && PyDict_Size(kwargs) > 0))
        return PyErr_Occurred() != NULL
                   ? -1
                   : (PyErr_SetString(PyExc_TypeError, "Digest takes no arguments"), -1);
    fresh = hr_digest_create();
    if (fresh == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    ext_mutex_lock(&digest->mutex);
    first = digest->digest == NULL;
    if (first)
        digest->digest = fresh;
    ext_mutex_unlock(&digest->mutex);
    if (first)
        ext_count(EXT_DIGEST, 1);
    else
        hr_digest_destroy(fresh);
    return 0;
}

static void digest_dealloc(PyObject *self)
{
    struct ext_digest *digest = (struct ext_digest *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (digest->digest != NULL)
        ext_count(EXT_DIGEST, -1);
    hr_digest_destroy(digest->digest);
    PyObject_Free(self);
    Py_DECREF(type);
}

static bool ready(const struct ext_digest *digest)
{
    if (digest->digest == NULL)
        PyErr_SetString(PyExc_ValueError, "the digest was not initialised");
    return digest->digest != NULL;
}

static PyObject *digest_add(PyObject *self, PyObject *data)
{
    struct ext_digest *digest = (struct ext_digest *)self;
    Py_buffer buffer;

    if (!ready(digest) || PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    ext_mutex_lock(&digest->mutex);
    hr_digest_add(digest->digest, buffer.buf, (size_t)buffer.len);
    ext_mutex_unlock(&digest->mutex);
    PyBuffer_Release(&buffer);
    Py_RETURN_NONE;
}

static PyObject *digest_hexdigest(PyObject *self, PyObject *unused)
{
    struct ext_digest *digest = (struct ext_digest *)self;
    char text[33];

    (void)unused;
    if (!ready(digest))
        return NULL;
    ext_mutex_lock(&digest->mutex);
    hr_digest_text(digest->digest, text);
    ext_mutex_unlock(&digest->mutex);
    return PyUnicode_FromString(text);
}

/* As little-endian int64. */
static void add_numbers(struct hr_digest *digest, const int64_t *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint8_t bytes[8];

        for (int b = 0; b < 8; b++)
            bytes[b] = (uint8_t)((uint64_t)numbers[i] >> (8 * b));
        hr_digest_add(digest, bytes, sizeof bytes);
    }
}

static void add_ragged(struct hr_digest *digest, const struct hr_field_view *view)
{
    for (int l = 0; l < view->levels; l++)
        add_numbers(digest, view->splits[l], ext_ragged_items(view, l) + 1);
    if (view->shapes != NULL)
        add_numbers(digest, view->shapes,
                    ext_ragged_items(view, view->levels - 1) * view->item_ndim);
}

PyObject *ext_digest_batch(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state_of(module);
    struct ext_digest *digest;
    struct ext_batch *batch;
    struct hr_field_view view;

    if (!PyArg_ParseTuple(args, "O!O!:digest_batch", state->digest, &digest, state->batch,
                          &batch) ||
        !ready(digest))
        return NULL;
    ext_mutex_lock(&digest->mutex);
    for (size_t i = 0; hr_batch_field(batch->hold->batch, i, &view) == HR_OK; i++) {
        hr_digest_add(digest->digest, view.data, view.bytes);
        add_ragged(digest->digest, &view);
    }
    ext_mutex_unlock(&digest->mutex);
    Py_RETURN_NONE;
}

static PyMethodDef digest_methods[] = {
    {"add",       digest_add,       METH_O,      "add(data)\n--\n\nAdd the bytes of a buffer."},
    {"hexdigest", digest_hexdigest, METH_NOARGS,
     "hexdigest() -> str\n--\n\nThe digest of all bytes so far, 32 hex digits."               },
    {NULL,        NULL,             0,           NULL                                         },
};

static PyType_Slot digest_slots[] = {
    {Py_tp_doc,     "Digest()\n--\n\nXXH3-128 over bytes in order."},
    {Py_tp_init,    digest_init                                    },
    {Py_tp_dealloc, digest_dealloc                                 },
    {Py_tp_methods, digest_methods                                 },
    {0,             NULL                                           },
};

PyType_Spec ext_digest_spec = {
    .name = "headrace._headrace.Digest",
    .basicsize = sizeof(struct ext_digest),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = digest_slots,
};
