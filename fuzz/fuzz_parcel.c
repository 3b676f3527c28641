/*
 * fuzz/fuzz_parcel.c - any bytes as the payload of DATA: refused with a message, or
 * batches and errors whose every byte can be read. The first two bytes are the number of
 * items and of records.
 */
#include "fleet/parcel.h"
#include "op/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct hr_schema schema = {
    .records = -1, .count = 1, .fields = {{.name = "value", .dtype = HR_I64}}};

static volatile unsigned sum;

static void look(const struct hr_batch *batch)
{
    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        struct hr_field_view view;

        if (hr_batch_field(batch, i, &view) != HR_OK)
            abort();
        for (size_t k = 0; k < view.bytes; k += 61)
            sum += ((const uint8_t *)view.data)[k];
        for (int64_t k = 0; view.offsets != NULL && k <= view.dims[0]; k++)
            sum += (unsigned)view.offsets[k];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_parcel *parcel;
    struct hr_buffer *buffer;

    if (bytes < 3 || (buffer = hr_buffer_create(bytes - 2)) == NULL)
        return 0;
    memcpy(hr_buffer_data(buffer), data + 2, bytes - 2);
    if (hr__parcel_open(buffer, data[0], NULL, 0, &parcel, &error) != HR_OK)
        parcel = NULL;
    for (size_t i = 0; parcel != NULL && i < data[0]; i++) {
        struct hr_batch *batch = NULL;
        struct hr_value value = {0};
        bool failed = false;

        if (hr__parcel_get_record(parcel, i, &schema, &value, &failed, &error) == HR_OK) {
            sum += value.data == NULL ? 1u : *(const uint8_t *)value.data;
            hr__value_clear(&value);
        }
        if (hr__parcel_get(parcel, i, data[1], &batch, &error) == HR_OK) {
            look(batch);
            hr_batch_unref(batch);
        } else if (error.message[0] == '\0' && error.code == HR_OK) {
            abort();
        }
    }
    hr__parcel_close(parcel);
    hr_buffer_unref(buffer);
    return 0;
}
