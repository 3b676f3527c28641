/*
 * Arrays of other libraries, as user code returns them: read through DLPack where an
 * object has no buffer protocol (torch, jax). NumPy could convert most of them, too, but
 * has no bfloat16.
 *
 * The capsule is kept while its bytes are read, and never consumed, so that it deletes
 * its tensor itself.
 */
#include "ext.h"

#include "dlpack_abi.h"

static enum hr_dtype dtype_of(const struct dl_tensor *tensor)
{
    static const struct {
        uint8_t code, bits;
        enum hr_dtype dtype;
    } known[] = {
        {DL_UINT,   8,  HR_U8  },
        {DL_INT,    8,  HR_I8  },
        {DL_INT,    16, HR_I16 },
        {DL_UINT,   16, HR_U16 },
        {DL_INT,    32, HR_I32 },
        {DL_INT,    64, HR_I64 },
        {DL_FLOAT,  16, HR_F16 },
        {DL_FLOAT,  32, HR_F32 },
        {DL_FLOAT,  64, HR_F64 },
        {DL_BOOL,   8,  HR_BOOL},
        {DL_BFLOAT, 16, HR_BF16},
    };

    for (size_t i = 0; tensor->dtype.lanes == 1 && i < sizeof known / sizeof *known; i++)
        if (known[i].code == tensor->dtype.code && known[i].bits == tensor->dtype.bits)
            return known[i].dtype;
    return HR_DTYPE_NONE;
}

/* Fills *ret from a tensor; false if its memory cannot be read here. */
static bool show(const struct dl_tensor *tensor, struct ext_tensor *ret)
{
    Py_buffer *buffer = &ret->buffer;

    ret->dtype = dtype_of(tensor);
    if ((tensor->device.type != DL_CPU && tensor->device.type != DL_PINNED) ||
        ret->dtype == HR_DTYPE_NONE || tensor->ndim < 0 || tensor->ndim > HR_MAX_DIMS)
        return false;
    *buffer = (Py_buffer){.buf = (char *)tensor->data + tensor->byte_offset,
                          .itemsize = (Py_ssize_t)hr_dtype_size(ret->dtype),
                          .format = (char *)(uintptr_t)ext_dtype_format(ret->dtype),
                          .readonly = 1,
                          .ndim = tensor->ndim,
                          .shape = ret->shape,
                          .strides = ret->strides};
    buffer->len = buffer->itemsize;
    for (int i = buffer->ndim - 1; i >= 0; i--) {
        ret->shape[i] = tensor->shape[i];
        /* Without strides it is contiguous. */
        ret->strides[i] =
            tensor->strides != NULL ? tensor->strides[i] * buffer->itemsize : buffer->len;
        buffer->len *= ret->shape[i];
    }
    return true;
}

bool ext_tensor_open(PyObject *value, struct ext_tensor *ret_tensor)
{
    PyObject *capsule;
    struct dl_managed *managed;

    if (!PyObject_HasAttrString(value, "__dlpack__"))
        return false;
    capsule = PyObject_CallMethod(value, "__dlpack__", NULL);
    managed = capsule != NULL ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (managed != NULL && show(&managed->tensor, ret_tensor)) {
        ret_tensor->capsule = capsule;
        return true;
    }
    PyErr_Clear();
    Py_XDECREF(capsule);
    return false;
}

void ext_tensor_close(struct ext_tensor *tensor)
{
    Py_CLEAR(tensor->capsule);
}
