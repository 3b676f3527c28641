/*
 * store/hdf5_unpack.c - what the chunks of a dataset unpack to, and the heaps of items of
 * any length.
 */
#include "store/hdf5_internal.h"

#include <string.h>

#include "core/error.h"
#include "store/unpack.h"

/* ---- unpacking ---- */

bool hr__hdf5_is_plain(const struct hr_hdf5_dataset *dataset,
                       const struct hr_hdf5_chunk *chunk)
{
    uint32_t all = ((uint32_t)1 << dataset->filter_count) - 1;

    return (~chunk->mask & all) == 0;
}

static void unshuffle(const uint8_t *from, size_t bytes, uint32_t element, uint8_t *to)
{
    size_t count = element > 1 ? bytes / element : 0;

    for (size_t k = 0; k < (count > 0 ? element : 0); k++)
        for (size_t i = 0; i < count; i++)
            to[i * element + k] = from[k * count + i];
    memcpy(to + count * element, from + count * element, bytes - count * element);
}

/* HDF5's own Fletcher: of 16-bit words, the high byte first. */
static uint32_t fletcher32(const uint8_t *data, size_t bytes)
{
    uint32_t a = 0, b = 0;
    size_t words = bytes / 2;

    while (words > 0) {
        size_t part = words < 360 ? words : 360;

        words -= part;
        for (; part > 0; part--, data += 2) {
            a += (uint32_t)data[0] << 8 | data[1];
            b += a;
        }
        a = (a & 0xffff) + (a >> 16);
        b = (b & 0xffff) + (b >> 16);
    }
    if (bytes % 2 == 1) {
        a += (uint32_t)data[0] << 8;
        b += a;
        a = (a & 0xffff) + (a >> 16);
        b = (b & 0xffff) + (b >> 16);
    }
    a = (a & 0xffff) + (a >> 16);
    b = (b & 0xffff) + (b >> 16);
    return b << 16 | a;
}

static const char *check_fletcher(const uint8_t *data, size_t *bytes)
{
    struct hr_hdf5_in in;

    if (*bytes < 4)
        return "it is too short for its checksum";
    *bytes -= 4;
    in = (struct hr_hdf5_in){data + *bytes, 4, false};
    return hr__hdf5_take(&in, 4) == fletcher32(data, *bytes) ? NULL
                                                             : "its checksum is wrong";
}

/* False: damaged. */
static bool
unpack_lzf(const uint8_t *from, size_t bytes, uint8_t *to, size_t room, size_t *ret_bytes)
{
    size_t at = 0, out = 0;

    while (at < bytes) {
        size_t head = from[at++], length = head >> 5, back;

        if (head < 32) { /* a run of plain bytes */
            head++;
            if (head > bytes - at || head > room - out)
                return false;
            memcpy(to + out, from + at, head);
            at += head;
            out += head;
            continue;
        }
        if (length == 7 && at < bytes)
            length += from[at++];
        if (at == bytes)
            return false;
        back = ((head & 31) << 8 | from[at++]) + 1;
        length += 2;
        if (back > out || length > room - out)
            return false;
        for (; length > 0; length--, out++)
            to[out] = to[out - back];
    }
    *ret_bytes = out;
    return true;
}

/* What deflate gives, of any size up to `room`. */
static const char *unpack_deflate(const uint8_t *from, size_t bytes, uint8_t *to,
                                  size_t room, size_t *ret_bytes, enum hr_err *ret_code)
{
    struct hr_unpack_io io = {from, bytes, to, room};
    enum hr_unpack_event event = HR_UNPACK_MORE;
    struct hr_unpack *unpack = NULL;

    *ret_code = hr__unpack_create(HR_PACKING_ZLIB, &unpack, NULL);
    if (*ret_code == HR_OK)
        *ret_code = hr__unpack_begin(unpack, NULL);
    if (*ret_code == HR_OK)
        *ret_code = hr__unpack_run(unpack, false, &io, &event, NULL);
    hr__unpack_destroy(unpack);
    *ret_bytes = room - io.out_bytes;
    return *ret_code == HR_OK && event == HR_UNPACK_END
               ? NULL
               : "its deflated bytes are damaged";
}

struct unpacking {
    const struct hr_hdf5_dataset *dataset;
    const uint8_t *data;
    size_t bytes;
    uint8_t *next, *other; /* where the next filter writes */
    enum hr_err code;
};

/* Undoes a filter; NULL, or what is wrong. */
static const char *undo(struct unpacking *u, int at)
{
    size_t room = u->dataset->chunk_bytes + 4; /* and a checksum */
    const char *why = NULL;
    size_t bytes = u->bytes;
    uint8_t *to = u->next;

    switch (u->dataset->filters[at].id) {
    case HR_HDF5_FLETCHER32:
        return check_fletcher(u->data, &u->bytes);
    case HR_HDF5_SHUFFLE:
        if (bytes > room)
            return "it is larger than a chunk";
        unshuffle(u->data, bytes, u->dataset->filters[at].element, to);
        break;
    case HR_HDF5_LZF:
        if (!unpack_lzf(u->data, bytes, to, room, &bytes))
            why = "its LZF bytes are damaged";
        break;
    default:
        why = unpack_deflate(u->data, bytes, to, room, &bytes, &u->code);
        break;
    }
    u->data = to;
    u->bytes = bytes;
    u->next = u->other;
    u->other = to;
    return why;
}

enum hr_err
hr__hdf5_unpack(const struct hr_hdf5_dataset *dataset, const struct hr_hdf5_chunk *chunk,
                const void *data, void *to, void *scratch, struct hr_error *reterr)
{
    struct unpacking u = {.dataset = dataset,
                          .data = data,
                          .bytes = chunk->bytes,
                          .next = to,
                          .other = scratch,
                          .code = HR_ERR_FORMAT};
    const char *why = NULL;

    for (int i = dataset->filter_count; i-- > 0 && why == NULL;)
        if ((chunk->mask & 1u << i) == 0)
            why = undo(&u, i);
    if (why == NULL && u.bytes != dataset->chunk_bytes)
        why = "it has another size than the dataset says";
    if (why != NULL)
        return hr__fail(reterr, u.code == HR_ERR_MEMORY ? HR_ERR_MEMORY : HR_ERR_FORMAT,
                        "a chunk is damaged: %s", why);
    if (u.data != to)
        memcpy(to, u.data, u.bytes);
    return HR_OK;
}

/* ---- the heap of items of any length ---- */

void hr__hdf5_reference(const void *element, struct hr_hdf5_reference *ret_reference)
{
    struct hr_hdf5_in in = {element, 16, false};

    ret_reference->bytes = hr__hdf5_take(&in, 4);
    ret_reference->heap = hr__hdf5_take(&in, 8);
    ret_reference->number = (uint32_t)hr__hdf5_take(&in, 4);
    if (ret_reference->bytes == 0 || ret_reference->heap == 0)
        ret_reference->heap = HR_HDF5_NONE;
}

uint64_t hr__hdf5_heap_bytes(const void *data)
{
    struct hr_hdf5_in in = {(const uint8_t *)data + 8, 8, false};

    if (memcmp(data, "GCOL\1", 5) != 0)
        return 0;
    return hr__hdf5_take(&in, 8);
}

const char *hr__hdf5_heap_object(const void *heap, size_t bytes,
                                 const struct hr_hdf5_reference *reference)
{
    struct hr_hdf5_in in = {heap, bytes, false};

    (void)hr__hdf5_skip(&in, HR_HDF5_HEAP_HEAD);
    while (in.left >= 16) {
        uint32_t number = (uint32_t)hr__hdf5_take(&in, 2);
        uint64_t size;
        const uint8_t *data;

        (void)hr__hdf5_skip(&in, 6);
        size = hr__hdf5_take(&in, 8);
        if (number == 0 || size > in.left)
            return NULL;
        data = in.at;
        if (number == reference->number)
            return reference->bytes <= size ? (const char *)data : NULL;
        (void)hr__hdf5_skip(&in, (size_t)(size + 7) / 8 * 8);
        if (in.bad)
            return NULL;
    }
    return NULL;
}
