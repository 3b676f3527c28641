/*
 * fuzz/fuzz_compressed.c - any bytes as the body of a COMPRESSED frame: refused with a
 * message, or a parcel of at most the allowed size, which is opened in turn. The first
 * byte is the number of positions.
 */
#include "fleet/compressed.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define BYTES_MAX ((size_t)3 << 20)

static volatile unsigned sum;

static void look(struct hr_buffer *buffer, size_t count)
{
    struct hr_error error = {0};
    struct hr_parcel *parcel;

    if (hr_buffer_bytes(buffer) == 0 || hr_buffer_bytes(buffer) > BYTES_MAX)
        abort();
    for (size_t i = 0; i < hr_buffer_bytes(buffer); i++)
        sum += ((const uint8_t *)hr_buffer_data(buffer))[i];
    if (hr__parcel_open(buffer, count, NULL, 0, &parcel, &error) != HR_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        struct hr_batch *batch = NULL;

        if (hr__parcel_get(parcel, i, 1, &batch, &error) == HR_OK)
            hr_batch_unref(batch);
    }
    hr__parcel_close(parcel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_buffer *body, *parcel;
    struct hr_pool *pool;

    if (bytes < 2 || (body = hr_buffer_create(bytes - 1)) == NULL)
        return 0;
    pool = hr_pool_create(0);
    if (pool == NULL)
        abort();
    memcpy(hr_buffer_data(body), data + 1, bytes - 1);
    if (hr__compressed_read(body, BYTES_MAX, pool, &parcel, &error) == HR_OK) {
        look(parcel, data[0]);
        hr_buffer_unref(parcel);
    } else if (error.message[0] == '\0') {
        abort();
    }
    hr_buffer_unref(body);
    hr_pool_unref(pool);
    return 0;
}
