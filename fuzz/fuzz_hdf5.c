/*
 * fuzz/fuzz_hdf5.c - any bytes as an HDF5 file: first as they are, then with the
 * checksums of headers and indexes repaired. Every chunk that is found is unpacked, and
 * every element of any length looked up.
 */
#include "core/alloc.h"
#include "store/hdf5_internal.h"
#include "store/store_memory.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char uri[] = "mem://fuzz.h5";

static void
unpack(const struct hr_hdf5_dataset *dataset, const uint8_t *data, size_t bytes)
{
    char *to, *scratch;

    if (dataset->chunk_bytes > 1 << 20)
        return;
    to = hr__malloc(HR_HDF5_ROOM(dataset));
    scratch = hr__malloc(HR_HDF5_ROOM(dataset));
    for (uint64_t i = 0; i < dataset->chunk_count && i < 100; i++) {
        const struct hr_hdf5_chunk *chunk = &dataset->chunks[i];

        if (chunk->at == HR_HDF5_NONE || to == NULL || scratch == NULL)
            continue;
        if (chunk->at > bytes || chunk->bytes > bytes - chunk->at)
            __builtin_trap();
        (void)!hr__hdf5_unpack(dataset, chunk, data + chunk->at, to, scratch, NULL);
    }
    hr__free(to);
    hr__free(scratch);
}

static void look_up(const struct hr_hdf5 *hdf5, const uint8_t *element,
                    const uint8_t *data, size_t bytes)
{
    struct hr_hdf5_reference reference;
    volatile char sum = 0;
    const char *object;
    uint64_t heap;

    hr__hdf5_reference(element, &reference);
    if (reference.heap == HR_HDF5_NONE || reference.heap > bytes ||
        hdf5->base + reference.heap > bytes - HR_HDF5_HEAP_HEAD)
        return;
    data += hdf5->base + reference.heap;
    bytes -= hdf5->base + reference.heap;
    heap = hr__hdf5_heap_bytes(data);
    if (heap < HR_HDF5_HEAP_HEAD || heap > bytes)
        return;
    object = hr__hdf5_heap_object(data, (size_t)heap, &reference);
    for (uint64_t i = 0; object != NULL && i < reference.bytes; i++)
        sum ^= object[i];
    (void)sum;
}

static void read_file(const uint8_t *data, size_t bytes)
{
    struct hr_window *window = hr__calloc(1, sizeof *window);
    struct hr_hdf5 hdf5 = {0};

    if (window != NULL && hr__memory_put(uri, data, bytes, NULL) == HR_OK &&
        hr__window_open(window, uri, NULL) == HR_OK &&
        hr__hdf5_read(window, &hdf5, NULL) == HR_OK)
        for (size_t i = 0; i < hdf5.count; i++) {
            const struct hr_hdf5_dataset *dataset = &hdf5.datasets[i];

            if (dataset->why != NULL)
                continue;
            unpack(dataset, data, bytes);
            if (dataset->layout != HR_HDF5_CONTIGUOUS || dataset->at == HR_HDF5_NONE)
                continue;
            if (dataset->at > bytes || dataset->bytes > bytes - dataset->at)
                __builtin_trap();
            for (uint64_t at = 0; dataset->type.class == HR_HDF5_BYTES &&
                                  at + 16 <= dataset->bytes && at < 1600;
                 at += 16)
                look_up(&hdf5, data + dataset->at + at, data, bytes);
        }
    hr__hdf5_finish(&hdf5);
    if (window != NULL)
        hr__window_finish(window);
    hr__free(window);
}

static void put32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* Of the superblock, of headers in one block, and of heads of indexes and heaps. */
static void repair(uint8_t *data, size_t bytes)
{
    static const struct {
        char magic[5];
        size_t bytes;
    } heads[] = {
        {"FAHD", 24 },
        {"EAHD", 68 },
        {"FRHP", 142},
        {"BTHD", 34 }
    };

    if (bytes >= 48 && data[8] >= 2)
        put32(data + 44, hr__hdf5_checksum(data, 44));
    for (size_t at = 0; at + 32 <= bytes; at++) {
        uint8_t *head = data + at;
        size_t skip, size = 0;

        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
            if (memcmp(head, heads[i].magic, 4) == 0 && heads[i].bytes + 4 <= bytes - at)
                put32(head + heads[i].bytes, hr__hdf5_checksum(head, heads[i].bytes));
        if (memcmp(head, "OHDR", 4) != 0)
            continue;
        skip = 6 + ((head[5] & 32) != 0 ? 16u : 0u) + ((head[5] & 16) != 0 ? 4u : 0u);
        for (int i = 0; i < 1 << (head[5] & 3) && i < 4 && at + skip + 8 < bytes; i++)
            size |= (size_t)head[skip + (size_t)i] << 8 * i;
        size += skip + ((size_t)1 << (head[5] & 3));
        if (size + 4 <= bytes - at)
            put32(head + size, hr__hdf5_checksum(head, size));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t *copy = hr__malloc(bytes + 1);

    if (copy == NULL)
        return 0;
    if (bytes > 0)
        memcpy(copy, data, bytes);
    read_file(copy, bytes);
    repair(copy, bytes);
    read_file(copy, bytes);
    hr__free(copy);
    return 0;
}
