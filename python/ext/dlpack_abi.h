/*
 * dlpack_abi.h - the structs of DLPack 1.0, as far as this binding uses them.
 *
 * An ABI, fixed by https://dmlc.github.io/dlpack/latest/.
 */
#ifndef PYTHON_DLPACK_ABI_H
#define PYTHON_DLPACK_ABI_H

#include <stdint.h>

#define DL_MAJOR 1
#define DL_MINOR 0
#define DL_FLAG_READ_ONLY 1u
#define DL_FLAG_IS_COPIED 2u

enum {
    DL_CPU = 1,
    DL_PINNED = 3, /* of the host, too */
};

enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_BOOL = 6,
};

struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
};

struct dl_managed_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dl_managed_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

#endif
