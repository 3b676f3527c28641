/*
 * fuzz/fuzz_npy.c - any bytes as a .npy file: refused with a message, or its elements are
 * within the file.
 */
#include <stdlib.h>

#include "codec/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_npy npy;
    size_t size;

    if (hr__npy_read(data, bytes, bytes, "fuzz.npy", &npy, &error) != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    size = npy.element_bytes;
    if (npy.ndim < 0 || npy.ndim > HR_MAX_DIMS || size == 0 || npy.start > bytes ||
        npy.bytes > bytes - npy.start)
        abort();
    for (int i = 0; i < npy.ndim; i++)
        size *= (size_t)npy.dims[i];
    if (size != npy.bytes)
        abort();
    return 0;
}
