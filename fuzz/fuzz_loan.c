/*
 * fuzz/fuzz_loan.c - any bytes as the body of a SHARED frame, with two empty
 * segments: refused with a message, or batches whose every byte can be read. The first
 * two bytes are the number of positions and of records.
 */
#include "fleet/loan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define SEGMENT_BYTES 131072u

static volatile unsigned sum;

static void wake(void *user)
{
    (void)user;
}

static void map(struct hr_borrower *borrower, uint32_t index)
{
    struct hr_error error;
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, SEGMENT_BYTES) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
        hr__borrow_segment(borrower, index, SEGMENT_BYTES, fd, &error) != HR_OK)
        abort();
}

static void look(const struct hr_batch *batch)
{
    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        struct hr_field_view view;

        if (hr_batch_field(batch, i, &view) != HR_OK)
            abort();
        for (size_t k = 0; k < view.bytes; k += 61)
            sum += ((const uint8_t *)view.data)[k];
    }
}

static void
read_parcel(const struct hr_borrowed *borrowed, uint8_t count, uint8_t records)
{
    struct hr_error error = {0};
    struct hr_parcel *parcel;

    if (hr__parcel_open(borrowed->buffer, count, borrowed->far, borrowed->far_count,
                        &parcel, &error) != HR_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        struct hr_batch *batch = NULL;

        if (hr__parcel_get(parcel, i, records, &batch, &error) == HR_OK) {
            look(batch);
            hr_batch_unref(batch);
        }
    }
    hr__parcel_close(parcel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_desk *desk = hr__desk_create(wake, NULL);
    struct hr_borrower borrower = {0};
    struct hr_borrowed borrowed;
    struct hr_error error = {0};
    struct hr_buffer *body;

    if (desk == NULL || bytes < 3 || (body = hr_buffer_create(bytes - 2)) == NULL) {
        hr__desk_close(desk);
        return 0;
    }
    memcpy(hr_buffer_data(body), data + 2, bytes - 2);
    map(&borrower, 0);
    map(&borrower, 1);
    if (hr__borrow(&borrower, desk, body, &borrowed, &error) == HR_OK) {
        read_parcel(&borrowed, data[0], data[1]);
        hr_buffer_unref(borrowed.buffer);
    } else if (error.message[0] == '\0') {
        abort();
    }
    hr_buffer_unref(body);
    hr__borrow_finish(&borrower);
    hr__desk_close(desk);
    return 0;
}
