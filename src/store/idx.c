/*
 * store/idx.c - IDX files, plain or gzipped. A compressed file is inflated at once, into
 * exactly as much memory as its header implies; a header that implies more than deflate
 * could have stored in the file is refused before memory is allocated.
 */
#include "store/idx.h"

#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/store.h"

#define HEADER_MAX (4 + 4 * (HR_MAX_DIMS + 1))
/* Deflate expands one byte to at most 1032. */
#define RATIO_MAX 1032

struct hr_idx {
    struct hr_idx_header header;
    struct hr_store_map file; /* all of it; {0} once it is inflated */
    const unsigned char *map; /* its bytes, NULL when empty */
    size_t map_bytes;
    unsigned char *inflated; /* elements of a compressed file, else NULL */
    const unsigned char *data;
};

/* ---- the header ---- */

static enum hr_dtype element_type(unsigned char code)
{
    static const enum hr_dtype types[] = {HR_U8,  HR_I8,  HR_DTYPE_NONE, HR_I16,
                                          HR_I32, HR_F32, HR_F64};

    return code >= 8 && code <= 14 ? types[code - 8] : HR_DTYPE_NONE;
}

static int64_t big_endian(const unsigned char *at)
{
    return (int64_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
                     (uint32_t)at[2] << 8 | at[3]);
}

static enum hr_err read_header(const char *path, const unsigned char *bytes, size_t count,
                               struct hr_idx_header *header, struct hr_error *reterr)
{
    int dims = count >= 4 ? bytes[3] : 0;
    size_t item;

    if (count < 4 || bytes[0] != 0 || bytes[1] != 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "%s is not an IDX file: it does not begin with two zero bytes",
                        path);
    header->dtype = element_type(bytes[2]);
    if (header->dtype == HR_DTYPE_NONE)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: IDX has no element type 0x%02x", path,
                        bytes[2]);
    if (dims < 1 || dims > HR_MAX_DIMS)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: %d dimensions; 1 to %d are possible",
                        path, dims, HR_MAX_DIMS);
    header->header_bytes = 4 + 4 * (size_t)dims;
    if (count < header->header_bytes)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s ends inside its header", path);
    header->items = big_endian(bytes + 4);
    header->ndim = dims - 1;
    item = hr_dtype_size(header->dtype);
    for (int i = 0; i < header->ndim; i++) {
        header->dims[i] = big_endian(bytes + 8 + 4 * i);
        if (__builtin_mul_overflow(item, (size_t)header->dims[i], &item))
            return hr__fail(reterr, HR_ERR_FORMAT, "%s: its dimensions overflow", path);
    }
    header->item_bytes = item;
    if (__builtin_mul_overflow(item, (size_t)header->items, &header->data_bytes) ||
        header->data_bytes > SIZE_MAX / 2)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: its dimensions overflow", path);
    return HR_OK;
}

/* ---- the file ---- */

static bool is_gzip(const struct hr_idx *idx)
{
    return idx->map_bytes >= 2 && idx->map[0] == 0x1f && idx->map[1] == 0x8b;
}

/* Inflates up to `room` bytes; returns how many, or -1 if the stream is damaged. */
static ptrdiff_t inflate_some(z_stream *stream, unsigned char *to, size_t room, bool *end)
{
    size_t done = 0;
    int code = Z_OK;

    while (done < room && code == Z_OK) {
        size_t part = room - done < (1u << 30) ? room - done : (1u << 30);

        stream->next_out = to + done;
        stream->avail_out = (uInt)part;
        code = inflate(stream, Z_NO_FLUSH);
        done += part - stream->avail_out;
    }
    *end = code == Z_STREAM_END;
    return code == Z_OK || code == Z_STREAM_END ? (ptrdiff_t)done : -1;
}

static enum hr_err inflate_data(const char *path, struct hr_idx *idx, z_stream *stream,
                                struct hr_error *reterr)
{
    size_t bytes = idx->header.data_bytes;
    unsigned char more;
    ptrdiff_t got;
    bool end;

    if (bytes / RATIO_MAX > idx->map_bytes)
        return hr__fail(
            reterr, HR_ERR_FORMAT,
            "%s: its header implies %zu bytes, more than a file of %zu can hold", path,
            bytes, idx->map_bytes);
    idx->inflated = hr__malloc(bytes > 0 ? bytes : 1);
    if (idx->inflated == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for the %zu bytes of %s", bytes,
                        path);
    got = inflate_some(stream, idx->inflated, bytes, &end);
    if (got == (ptrdiff_t)bytes && !end)
        got += inflate_some(stream, &more, 1, &end);
    if (got != (ptrdiff_t)bytes || !end)
        return hr__fail(
            reterr, HR_ERR_FORMAT,
            "%s: its compressed data is damaged, or is not the %zu bytes that "
            "its header implies",
            path, bytes);
    idx->data = idx->inflated;
    return HR_OK;
}

/* Reads the header, and with `all` the elements too. */
static enum hr_err
inflate_file(const char *path, struct hr_idx *idx, bool all, struct hr_error *reterr)
{
    unsigned char bytes[HEADER_MAX];
    z_stream stream = {0};
    ptrdiff_t count;
    enum hr_err code;
    bool end;

    if (idx->map_bytes > UINT32_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%s: compressed files of 4 GiB and more are not read; gunzip it",
                        path);
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    stream.next_in = (unsigned char *)(uintptr_t)idx->map; /* only read */
    stream.avail_in = (uInt)idx->map_bytes;
    count = inflate_some(&stream, bytes, 4, &end);
    if (count == 4 && bytes[3] <= HR_MAX_DIMS) {
        ptrdiff_t rest = inflate_some(&stream, bytes + 4, 4 * (size_t)bytes[3], &end);

        count = rest < 0 ? rest : count + rest;
    }
    code = count < 0 ? hr__fail(reterr, HR_ERR_FORMAT,
                                "%s: its compressed data is damaged", path)
                     : read_header(path, bytes, (size_t)count, &idx->header, reterr);
    if (code == HR_OK && all)
        code = inflate_data(path, idx, &stream, reterr);
    inflateEnd(&stream);
    return code;
}

static enum hr_err
read_plain(const char *path, struct hr_idx *idx, bool all, struct hr_error *reterr)
{
    HR_TRY(read_header(path, idx->map, idx->map_bytes, &idx->header, reterr));
    if (all && idx->map_bytes - idx->header.header_bytes != idx->header.data_bytes)
        return hr__fail(
            reterr, HR_ERR_FORMAT, "%s has %zu bytes after its header, which implies %zu",
            path, idx->map_bytes - idx->header.header_bytes, idx->header.data_bytes);
    idx->data = idx->map + idx->header.header_bytes;
    return HR_OK;
}

static enum hr_err
read_file(const char *path, struct hr_idx *idx, bool all, struct hr_error *reterr)
{
    HR_TRY(hr__store_map(path, &idx->file, reterr));
    idx->map = idx->file.data;
    idx->map_bytes = idx->file.bytes;
    return is_gzip(idx) ? inflate_file(path, idx, all, reterr)
                        : read_plain(path, idx, all, reterr);
}

static void finish(struct hr_idx *idx)
{
    hr__store_unmap(&idx->file);
    hr__free(idx->inflated);
}

enum hr_err
hr__idx_peek(const char *path, struct hr_idx_header *ret_header, struct hr_error *reterr)
{
    struct hr_idx idx = {0};
    enum hr_err code = read_file(path, &idx, false, reterr);

    finish(&idx);
    if (code == HR_OK)
        *ret_header = idx.header;
    return code;
}

enum hr_err
hr__idx_open(const char *path, struct hr_idx **ret_idx, struct hr_error *reterr)
{
    struct hr_idx *idx = hr__calloc(1, sizeof *idx);
    enum hr_err code;

    if (idx == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = read_file(path, idx, true, reterr);
    if (code != HR_OK) {
        hr__idx_close(idx);
        return code;
    }
    if (idx->inflated != NULL) {
        hr__store_unmap(&idx->file);
        idx->map = NULL;
    }
    *ret_idx = idx;
    return HR_OK;
}

void hr__idx_close(struct hr_idx *idx)
{
    if (idx == NULL)
        return;
    finish(idx);
    hr__free(idx);
}

/* ---- items ---- */

const struct hr_idx_header *hr__idx_header(const struct hr_idx *idx)
{
    return &idx->header;
}

const void *hr__idx_data(const struct hr_idx *idx)
{
    return idx->data;
}

void hr__idx_item(const struct hr_idx *idx, int64_t at, void *to)
{
    const unsigned char *from = idx->data + (size_t)at * idx->header.item_bytes;
    size_t element = hr_dtype_size(idx->header.dtype);
    unsigned char *out = to;

    memcpy(to, from, idx->header.item_bytes);
    for (size_t i = 0; element > 1 && i < idx->header.item_bytes; i += element)
        for (size_t k = 0; k < element; k++)
            out[i + k] = from[i + element - 1 - k];
}
