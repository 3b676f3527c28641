/*
 * fuzz/fuzz_idx.c - any bytes as an IDX file, plain or gzipped, and as the contents of a
 * gzipped one, whose checksum is then right. Accepted files are read whole.
 */
#include "core/alloc.h"
#include "store/idx.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void read_all(const char *path)
{
    struct hr_idx_header header;
    struct hr_idx *idx;
    void *item;

    if (hr__idx_open(path, &idx, NULL) != HR_OK)
        return;
    header = *hr__idx_header(idx);
    item = header.items > 0 ? hr__malloc(header.item_bytes + 1) : NULL;
    for (int64_t i = 0; item != NULL && i < header.items && i < 1000; i++)
        hr__idx_item(idx, i, item);
    if (item != NULL)
        hr__idx_item(idx, header.items - 1, item);
    hr__free(item);
    hr__idx_close(idx);
}

static void read_bytes(const void *data, size_t bytes)
{
    int file = memfd_create("idx", MFD_CLOEXEC);
    char path[64];

    if (file < 0 || write(file, data, bytes) != (ssize_t)bytes)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    read_all(path);
    close(file);
}

static void read_gzipped(const uint8_t *data, size_t bytes)
{
    static uint8_t out[1 << 16];
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)data,
                       .avail_in = (unsigned)bytes,
                       .next_out = out,
                       .avail_out = sizeof out};

    if (deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, 0) != Z_OK)
        return;
    if (deflate(&stream, Z_FINISH) == Z_STREAM_END)
        read_bytes(out, stream.total_out);
    deflateEnd(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    read_bytes(data, bytes);
    read_gzipped(data, bytes);
    return 0;
}
