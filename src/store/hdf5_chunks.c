/*
 * store/hdf5_chunks.c - where the chunks of a dataset are, and what they unpack to.
 */
#include "store/hdf5_internal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/unpack.h"

#define TREE_DEPTH_MAX 16
#define FEW_CHUNKS 4096 /* that a file of any size may have */
#define CHUNK_BYTES_MAX ((uint64_t)4 << 30)

/* ---- the index of the chunks ---- */

struct listing {
    const struct hr_hdf5_file *file;
    struct hr_hdf5_object *object;
    uint64_t nodes; /* seen; a tree has no more than fit into the file */
};

static enum hr_err add_chunk(struct listing *listing, uint64_t number, uint64_t address,
                             uint64_t bytes, uint32_t mask)
{
    struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    const struct hr_hdf5_file *file = listing->file;

    if (number >= dataset->chunk_count) /* the dataset has become smaller */
        return HR_OK;
    if (address == HR_HDF5_NONE)
        return HR_OK;
    if (address > file->end || bytes > file->end - address || bytes > UINT32_MAX)
        return hr__fail(file->error, HR_ERR_FORMAT,
                        "%s: it is cut or damaged: a chunk at byte %llu lies outside",
                        file->window->object->uri,
                        (unsigned long long)(file->base + address));
    dataset->chunks[number] =
        (struct hr_hdf5_chunk){file->base + address, (uint32_t)bytes, mask};
    return HR_OK;
}

/* The number of the chunk whose first element is at these places. HR_HDF5_NONE: outside.
 */
static uint64_t number_of(const struct hr_hdf5_dataset *dataset, struct hr_hdf5_in *in)
{
    uint64_t number = 0;

    for (int i = 0; i < dataset->ndim; i++) {
        uint64_t place = hr__hdf5_take(in, 8) / (uint64_t)dataset->chunk_dims[i];

        if (place >= (uint64_t)dataset->grid[i])
            return HR_HDF5_NONE;
        number = number * (uint64_t)dataset->grid[i] + place;
    }
    return number;
}

static enum hr_err read_tree(struct listing *listing, uint64_t at, int depth)
{
    enum { HEAD = 24 };

    const struct hr_hdf5_file *file = listing->file;
    const struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    size_t key = 8 + 8 * (size_t)listing->object->rank, pair = key + 8;
    const uint8_t *data;
    unsigned count, level;

    HR_TRY(hr__hdf5_get(file, at, HEAD, &data));
    level = data[5];
    count = data[6] | (unsigned)data[7] << 8;
    if (memcmp(data, "TREE", 4) != 0 || data[4] != 1 || depth == TREE_DEPTH_MAX ||
        ++listing->nodes > file->end / HEAD)
        return hr__hdf5_damaged(file, at, "the tree of a dataset's chunks");
    for (unsigned i = 0; i < count; i++) {
        struct hr_hdf5_in in;
        uint64_t bytes, number, child;
        uint32_t mask;

        HR_TRY(hr__hdf5_get(file, at + HEAD + i * pair, pair, &data));
        in = (struct hr_hdf5_in){data, pair, false};
        bytes = hr__hdf5_take(&in, 4);
        mask = (uint32_t)hr__hdf5_take(&in, 4);
        number = number_of(dataset, &in);
        in = (struct hr_hdf5_in){data + key, 8, false};
        child = hr__hdf5_take(&in, 8);
        HR_TRY(level == 0 ? add_chunk(listing, number, child, bytes, mask)
                          : read_tree(listing, child, depth + 1));
    }
    return HR_OK;
}

/* Elements of an array of chunks, `count` from number `first` on. */
static enum hr_err read_elements(struct listing *listing, uint64_t at, uint64_t first,
                                 uint64_t count, bool filtered, size_t element)
{
    const struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    const uint8_t *data;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t address, bytes = dataset->chunk_bytes;
        struct hr_hdf5_in in;
        uint32_t mask = 0;

        HR_TRY(hr__hdf5_get(listing->file, at + i * element, element, &data));
        in = (struct hr_hdf5_in){data, element, false};
        address = hr__hdf5_take(&in, 8);
        if (filtered) {
            bytes = hr__hdf5_take(&in, element - 12);
            mask = (uint32_t)hr__hdf5_take(&in, 4);
        }
        HR_TRY(add_chunk(listing, first + i, address, bytes, mask));
    }
    return HR_OK;
}

/* A large array comes in pages, and those without an element were never written. */
static enum hr_err read_pages(struct listing *listing, uint64_t at, uint64_t count,
                              uint64_t page, bool filtered, size_t element)
{
    uint64_t pages = (count + page - 1) / page, bitmap = (pages + 7) / 8;
    uint64_t first_page = at + bitmap + 4;
    const uint8_t *data;

    for (uint64_t i = 0; i < pages; i++) {
        uint64_t items = count - i * page < page ? count - i * page : page;

        HR_TRY(hr__hdf5_get(listing->file, at + i / 8, 1, &data));
        if ((data[0] & 128 >> i % 8) == 0)
            continue;
        HR_TRY(read_elements(listing, first_page + i * (page * element + 4), i * page,
                             items, filtered, element));
    }
    return HR_OK;
}

static enum hr_err check_sum(const struct hr_hdf5_file *file, uint64_t at, size_t bytes)
{
    const uint8_t *data;
    struct hr_hdf5_in in;

    HR_TRY(hr__hdf5_get(file, at, bytes + 4, &data));
    in = (struct hr_hdf5_in){data + bytes, 4, false};
    if (hr__hdf5_take(&in, 4) == hr__hdf5_checksum(data, bytes))
        return HR_OK;
    return hr__hdf5_damaged(file, at, "the checksum of an index of chunks is wrong");
}

static enum hr_err read_array(struct listing *listing, uint64_t at)
{
    enum { HEAD = 24, BLOCK_HEAD = 14 };

    const struct hr_hdf5_file *file = listing->file;
    const struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint64_t count, block, page;
    size_t element;
    bool filtered;

    HR_TRY(check_sum(file, at, HEAD));
    HR_TRY(hr__hdf5_get(file, at, HEAD, &data));
    filtered = data[5] == 1;
    element = data[6];
    page = data[7] < 32 ? (uint64_t)1 << data[7] : 0;
    in = (struct hr_hdf5_in){data + 8, 16, false};
    count = hr__hdf5_take(&in, 8);
    block = hr__hdf5_take(&in, 8);
    if (memcmp(data, "FAHD", 4) != 0 || page == 0 || count > dataset->chunk_count ||
        (filtered ? element < 13 || element > 20 : element != 8))
        return hr__hdf5_damaged(file, at, "an index of chunks");
    if (block == HR_HDF5_NONE)
        return HR_OK;
    HR_TRY(hr__hdf5_get(file, block, BLOCK_HEAD, &data));
    if (memcmp(data, "FADB", 4) != 0)
        return hr__hdf5_damaged(file, block, "an index of chunks");
    if (count > page)
        return read_pages(listing, block + BLOCK_HEAD, count, page, filtered, element);
    HR_TRY(check_sum(file, block, BLOCK_HEAD + (size_t)count * element));
    return read_elements(listing, block + BLOCK_HEAD, 0, count, filtered, element);
}

static enum hr_err list_chunks(struct listing *listing)
{
    struct hr_hdf5_object *object = listing->object;
    struct hr_hdf5_dataset *dataset = &object->dataset;

    if (object->index_at == HR_HDF5_NONE)
        return HR_OK;
    if (object->chunk_index == HR_HDF5_TREE)
        return read_tree(listing, object->index_at, 0);
    if (object->chunk_index == HR_HDF5_ARRAY)
        return read_array(listing, object->index_at);
    if (object->chunk_index == HR_HDF5_SINGLE)
        return add_chunk(listing, 0, object->index_at,
                         dataset->filter_count > 0 ? object->single_bytes
                                                   : dataset->chunk_bytes,
                         object->single_mask);
    for (uint64_t i = 0; i < dataset->chunk_count; i++)
        HR_TRY(add_chunk(listing, i, object->index_at + i * dataset->chunk_bytes,
                         dataset->chunk_bytes, 0));
    return HR_OK;
}

/* ---- layout ---- */

static enum hr_err no_sizes(const struct hr_hdf5_file *file)
{
    return hr__fail(file->error, HR_ERR_FORMAT,
                    "%s: damaged: the sizes of a dataset and of its chunks",
                    file->window->object->uri);
}

static enum hr_err
set_contiguous(const struct hr_hdf5_file *file, struct hr_hdf5_dataset *dataset)
{
    uint64_t bytes = dataset->type.bytes;

    for (int i = 0; i < dataset->ndim; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)dataset->dims[i], &bytes))
            return no_sizes(file);
    if (dataset->at == HR_HDF5_NONE || bytes == 0) { /* nothing was written */
        dataset->at = HR_HDF5_NONE;
        dataset->bytes = bytes;
        return bytes <= INT64_MAX ? HR_OK : no_sizes(file);
    }
    if (dataset->bytes < bytes || dataset->at > file->end ||
        bytes > file->end - dataset->at)
        return hr__fail(file->error, HR_ERR_FORMAT,
                        "%s: it is cut or damaged: %llu bytes of a dataset at byte %llu "
                        "lie outside",
                        file->window->object->uri, (unsigned long long)bytes,
                        (unsigned long long)(file->base + dataset->at));
    dataset->bytes = bytes;
    dataset->at += file->base;
    return HR_OK;
}

static enum hr_err
set_grid(const struct hr_hdf5_file *file, struct hr_hdf5_object *object)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;
    uint64_t bytes = dataset->type.bytes, count = 1;

    if (object->rank != dataset->ndim + 1)
        return no_sizes(file);
    for (int i = 0; i < dataset->ndim; i++) {
        uint64_t chunk = (uint64_t)dataset->chunk_dims[i];
        uint64_t places = ((uint64_t)dataset->dims[i] + chunk - 1) / chunk;

        dataset->grid[i] = (int64_t)places;
        if (__builtin_mul_overflow(bytes, chunk, &bytes) ||
            __builtin_mul_overflow(count, places, &count))
            return no_sizes(file);
    }
    if (bytes > CHUNK_BYTES_MAX)
        return no_sizes(file);
    dataset->chunk_bytes = (size_t)bytes;
    dataset->chunk_count = count;
    if (count > HR_HDF5_CHUNKS_MAX)
        object->unsupported = "it has more than 16,777,216 chunks: copy it with larger "
                              "ones, with h5repack -l CHUNK=...";
    else if (count > FEW_CHUNKS && count > file->end)
        object->unsupported = "it has more chunks than its file has bytes";
    return HR_OK;
}

enum hr_err
hr__hdf5_layout(const struct hr_hdf5_file *file, struct hr_hdf5_object *object)
{
    struct listing listing = {.file = file, .object = object};
    struct hr_hdf5_dataset *dataset = &object->dataset;

    if (dataset->layout == HR_HDF5_CONTIGUOUS)
        return set_contiguous(file, dataset);
    HR_TRY(set_grid(file, object));
    if (object->unsupported != NULL)
        return HR_OK;
    dataset->chunks =
        hr__malloc((size_t)dataset->chunk_count * sizeof *dataset->chunks + 1);
    if (dataset->chunks == NULL)
        return hr__fail(file->error, HR_ERR_MEMORY, "out of memory for the chunks of %s",
                        file->window->object->uri);
    for (uint64_t i = 0; i < dataset->chunk_count; i++)
        dataset->chunks[i] = (struct hr_hdf5_chunk){.at = HR_HDF5_NONE};
    return list_chunks(&listing);
}

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
