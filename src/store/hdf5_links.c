/*
 * store/hdf5_links.c - the links of a group: as messages, in a symbol table of old files,
 * or in a heap with a B-tree of version 2, where new files have more than a few.
 *
 * A fractal heap is an address space that is cut into blocks, which double in size from
 * row to row of a table. Links are looked up in the order of their places there, so that
 * each block is checked once.
 */
#include "store/hdf5_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define DEPTH_MAX 16
#define NAME_MAX_BYTES HR_HDF5_NAME_MAX
#define BLOCK_MAX ((uint64_t)1 << 20) /* bytes of a block of the heap */

void hr__hdf5_links_finish(struct hr_hdf5_links *links)
{
    for (size_t i = 0; i < links->count; i++)
        hr__free(links->items[i].name);
    hr__free(links->items);
    *links = (struct hr_hdf5_links){0};
}

static enum hr_err no_memory(const struct hr_hdf5_file *file)
{
    return hr__fail(file->error, HR_ERR_MEMORY, "out of memory for %s",
                    file->window->object->uri);
}

static enum hr_err add_link(const struct hr_hdf5_file *file, struct hr_hdf5_links *links,
                            const uint8_t *name, size_t bytes, uint64_t at)
{
    struct hr_hdf5_link link = {.at = at};

    if (bytes == 0 || bytes > NAME_MAX_BYTES)
        return hr__hdf5_damaged(file, at, "the name of a link");
    link.name = hr__strndup((const char *)name, bytes);
    if (link.name == NULL ||
        !hr__array_room(&links->items, links->count, &links->room, 1, sizeof link)) {
        hr__free(link.name);
        return no_memory(file);
    }
    links->items[links->count++] = link;
    return HR_OK;
}

enum hr_err hr__hdf5_link(const struct hr_hdf5_file *file, struct hr_hdf5_links *links,
                          struct hr_hdf5_in in, uint64_t at)
{
    unsigned version = (unsigned)hr__hdf5_take(&in, 1);
    unsigned flags = (unsigned)hr__hdf5_take(&in, 1);
    unsigned type = (flags & 8) != 0 ? (unsigned)hr__hdf5_take(&in, 1) : 0;
    const uint8_t *name;
    uint64_t bytes, target;

    (void)hr__hdf5_skip(&in, (flags & 4) != 0 ? 8 : 0);
    (void)hr__hdf5_skip(&in, (flags & 16) != 0 ? 1 : 0);
    bytes = hr__hdf5_take(&in, (size_t)1 << (flags & 3));
    name = bytes <= in.left ? hr__hdf5_skip(&in, (size_t)bytes) : NULL;
    if (version != 1 || name == NULL)
        return hr__hdf5_damaged(file, at, "a link");
    if (type != 0)
        return HR_OK;
    target = hr__hdf5_take(&in, 8);
    if (in.bad)
        return hr__hdf5_damaged(file, at, "a link");
    return add_link(file, links, name, (size_t)bytes, target);
}

/* ---- symbol tables ---- */

struct table {
    const struct hr_hdf5_file *file;
    struct hr_hdf5_links *links;
    uint64_t names, names_bytes; /* the heap's data */
};

static enum hr_err open_names(struct table *table, uint64_t at)
{
    const struct hr_hdf5_file *file = table->file;
    const uint8_t *data;
    struct hr_hdf5_in in;

    HR_TRY(hr__hdf5_get(file, at, 32, &data));
    if (memcmp(data, "HEAP", 4) != 0)
        return hr__hdf5_damaged(file, at, "the names of a group");
    in = (struct hr_hdf5_in){data + 8, 24, false};
    table->names_bytes = hr__hdf5_take(&in, 8);
    (void)hr__hdf5_skip(&in, 8);
    table->names = hr__hdf5_take(&in, 8);
    return HR_OK;
}

static enum hr_err add_symbol(struct table *table, uint64_t name, uint64_t target)
{
    const struct hr_hdf5_file *file = table->file;
    uint64_t left = name <= table->names_bytes ? table->names_bytes - name : 0;
    size_t bytes = left < NAME_MAX_BYTES + 1 ? (size_t)left : NAME_MAX_BYTES + 1, length;
    const uint8_t *text;

    HR_TRY(hr__hdf5_get(file, table->names + name, bytes, &text));
    length = strnlen((const char *)text, bytes);
    if (length == bytes)
        return hr__hdf5_damaged(file, table->names, "the name of a link");
    return add_link(file, table->links, text, length, target);
}

static enum hr_err read_symbols(struct table *table, uint64_t at)
{
    enum { HEAD = 8, ENTRY = 40, LINK_SOFT = 2 };

    const struct hr_hdf5_file *file = table->file;
    const uint8_t *data;
    unsigned count;

    HR_TRY(hr__hdf5_get(file, at, HEAD, &data));
    count = data[6] | (unsigned)data[7] << 8;
    if (memcmp(data, "SNOD", 4) != 0)
        return hr__hdf5_damaged(file, at, "a node of a group");
    for (unsigned i = 0; i < count; i++) {
        struct hr_hdf5_in in;
        uint64_t name, target;

        HR_TRY(hr__hdf5_get(file, at + HEAD + (uint64_t)i * ENTRY, ENTRY, &data));
        in = (struct hr_hdf5_in){data, ENTRY, false};
        name = hr__hdf5_take(&in, 8);
        target = hr__hdf5_take(&in, 8);
        if (hr__hdf5_take(&in, 4) != LINK_SOFT)
            HR_TRY(add_symbol(table, name, target));
    }
    return HR_OK;
}

static enum hr_err read_table(struct table *table, uint64_t at, int depth)
{
    enum { HEAD = 24, PAIR = 16 };

    const struct hr_hdf5_file *file = table->file;
    const uint8_t *data;
    unsigned count, level;

    HR_TRY(hr__hdf5_get(file, at, HEAD, &data));
    level = data[5];
    count = data[6] | (unsigned)data[7] << 8;
    if (memcmp(data, "TREE", 4) != 0 || data[4] != 0 || depth == DEPTH_MAX ||
        table->links->count > HR_HDF5_OBJECTS_MAX)
        return hr__hdf5_damaged(file, at, "the tree of a group");
    for (unsigned i = 0; i < count; i++) {
        struct hr_hdf5_in in;
        uint64_t child;

        HR_TRY(hr__hdf5_get(file, at + HEAD + 8 + (uint64_t)i * PAIR, 8, &data));
        in = (struct hr_hdf5_in){data, 8, false};
        child = hr__hdf5_take(&in, 8);
        HR_TRY(level == 0 ? read_symbols(table, child)
                          : read_table(table, child, depth + 1));
    }
    return HR_OK;
}

enum hr_err hr__hdf5_symbols(const struct hr_hdf5_file *file, uint64_t tree,
                             uint64_t heap, struct hr_hdf5_links *links)
{
    struct table table = {.file = file, .links = links};

    HR_TRY(open_names(&table, heap));
    return read_table(&table, tree, 0);
}

/* ---- links in a fractal heap ---- */

/* Where an object is in the heap's address space. */
struct spot {
    uint64_t at;
    uint32_t bytes;
};

struct heap {
    const struct hr_hdf5_file *file;
    struct hr_hdf5_links *links;
    uint64_t address; /* of its header */
    size_t id_bytes, offset_bytes, length_bytes;
    uint64_t width, first_bytes, direct_max; /* entries of a row; bytes of blocks */
    uint64_t root;
    unsigned rows; /* of the root; 0: it is a block of objects */
    bool has_sums; /* in blocks of objects */
    struct spot *spots;
    size_t count, room;
    uint64_t checked;             /* bytes; blocks do not overlap */
    uint64_t tables[DEPTH_MAX];   /* indirect blocks that were checked last */
    uint64_t block, begin, bytes; /* the last block of objects: its address and place */
};

static bool is_power_of_two(uint64_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

static enum hr_err open_heap(struct heap *heap)
{
    enum { HEAD = 142 };

    const struct hr_hdf5_file *file = heap->file;
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint64_t filters, flags, object_max, bits;

    HR_TRY(hr__hdf5_get(file, heap->address, HEAD, &data));
    if (memcmp(data, "FRHP\0", 5) != 0)
        return hr__hdf5_damaged(file, heap->address, "the heap of a group");
    in = (struct hr_hdf5_in){data + 5, HEAD - 5, false};
    heap->id_bytes = (size_t)hr__hdf5_take(&in, 2);
    filters = hr__hdf5_take(&in, 2);
    flags = hr__hdf5_take(&in, 1);
    object_max = hr__hdf5_take(&in, 4);
    (void)hr__hdf5_skip(&in, 12 * 8); /* statistics, huge objects, free space */
    heap->width = hr__hdf5_take(&in, 2);
    heap->first_bytes = hr__hdf5_take(&in, 8);
    heap->direct_max = hr__hdf5_take(&in, 8);
    bits = hr__hdf5_take(&in, 2);
    (void)hr__hdf5_skip(&in, 2);
    heap->root = hr__hdf5_take(&in, 8);
    heap->rows = (unsigned)hr__hdf5_take(&in, 2);
    heap->has_sums = (flags & 2) != 0;
    if (filters > 0)
        return hr__fail(file->error, HR_ERR_UNSUPPORTED,
                        "%s: byte %llu: the names of a group are compressed: copy it "
                        "with h5repack",
                        file->window->object->uri,
                        (unsigned long long)(file->base + heap->address));
    heap->offset_bytes = (size_t)(bits + 7) / 8;
    heap->length_bytes = hr__hdf5_bytes_for(object_max);
    if (is_power_of_two(heap->direct_max) &&
        hr__hdf5_bytes_for(heap->direct_max - 1) < heap->length_bytes)
        heap->length_bytes = hr__hdf5_bytes_for(heap->direct_max - 1);
    if (bits == 0 || bits > 64 || !is_power_of_two(heap->width) ||
        !is_power_of_two(heap->first_bytes) || !is_power_of_two(heap->direct_max) ||
        heap->direct_max < heap->first_bytes || heap->direct_max > BLOCK_MAX ||
        heap->rows > 64 || heap->id_bytes < 1 + heap->offset_bytes + heap->length_bytes)
        return hr__hdf5_damaged(file, heap->address, "the heap of a group");
    return hr__hdf5_check_sum(file, heap->address, HEAD);
}

/* hr_hdf5_record_fn: a record of the tree that names a link's object. */
static enum hr_err add_spot(void *user, const struct hr_hdf5_record *record)
{
    enum { LINKS_BY_NAME = 5, HASH = 4 };

    struct heap *heap = user;
    struct hr_hdf5_in in = {record->data, record->bytes, false};
    struct spot spot;

    (void)hr__hdf5_skip(&in, HASH);
    if (record->type != LINKS_BY_NAME || record->bytes != HASH + heap->id_bytes ||
        (hr__hdf5_take(&in, 1) & 0xf0) != 0 || heap->count == HR_HDF5_OBJECTS_MAX)
        return hr__hdf5_damaged(heap->file, heap->address, "the links of a group");
    spot.at = hr__hdf5_take(&in, heap->offset_bytes);
    spot.bytes = (uint32_t)hr__hdf5_take(&in, heap->length_bytes);
    if (!hr__array_room(&heap->spots, heap->count, &heap->room, 1, sizeof spot))
        return no_memory(heap->file);
    heap->spots[heap->count++] = spot;
    return HR_OK;
}

/* Counts the bytes of a block before they are read; false if blocks would overlap. */
static bool count_block(struct heap *heap, uint64_t bytes)
{
    heap->checked += bytes;
    return bytes <= BLOCK_MAX && heap->checked <= heap->file->end;
}

static enum hr_err damaged_block(const struct heap *heap, uint64_t at)
{
    return hr__hdf5_damaged(heap->file, at, "a block of the heap of a group");
}

/* Checks the frame of a block: signature, the heap's address, its place in the heap. */
static enum hr_err
check_frame(const struct heap *heap, const char *magic, uint64_t at, uint64_t begin)
{
    const uint8_t *data;
    struct hr_hdf5_in in;
    bool good;

    HR_TRY(hr__hdf5_get(heap->file, at, 13 + heap->offset_bytes, &data));
    in = (struct hr_hdf5_in){data + 5, 8 + heap->offset_bytes, false};
    good = memcmp(data, magic, 5) == 0;
    good = hr__hdf5_take(&in, 8) == heap->address && good;
    good = hr__hdf5_take(&in, heap->offset_bytes) == begin && good;
    return good ? HR_OK : damaged_block(heap, at);
}

/* A block of objects has its own checksum inside, as zero while it was made. */
static enum hr_err check_block(struct heap *heap, uint64_t at)
{
    size_t head = 13 + heap->offset_bytes, bytes = (size_t)heap->bytes;
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint8_t *copy;
    uint32_t sum;

    HR_TRY(check_frame(heap, "FHDB\0", at, heap->begin));
    if (!heap->has_sums)
        return HR_OK;
    if (bytes < head + 4 || !count_block(heap, bytes))
        return damaged_block(heap, at);
    HR_TRY(hr__hdf5_get(heap->file, at, bytes, &data));
    copy = hr__malloc(bytes);
    if (copy == NULL)
        return no_memory(heap->file);
    memcpy(copy, data, bytes);
    in = (struct hr_hdf5_in){data + head, 4, false};
    memset(copy + head, 0, 4);
    sum = hr__hdf5_checksum(copy, bytes);
    hr__free(copy);
    return hr__hdf5_take(&in, 4) == sum ? HR_OK : damaged_block(heap, at);
}

static uint64_t row_bytes(const struct heap *heap, unsigned row)
{
    return row < 2 ? heap->first_bytes : heap->first_bytes << (row - 1);
}

/* Rows of a table that spans `bytes` bytes. */
static unsigned rows_of(const struct heap *heap, uint64_t bytes)
{
    unsigned rows = 1;

    while (rows < 64 && heap->first_bytes * heap->width << (rows - 1) < bytes)
        rows++;
    return rows;
}

/* The entry of a table of blocks that has the place: its address, and where it begins. */
static enum hr_err find_entry(struct heap *heap, uint64_t place, uint64_t *at,
                              uint64_t *begin, uint64_t *bytes, unsigned rows, int depth)
{
    size_t head = 13 + heap->offset_bytes;
    uint64_t first = *begin, size = heap->first_bytes, table = *at, entry;
    const uint8_t *data;
    struct hr_hdf5_in in;
    unsigned row = 0;

    if (heap->tables[depth] != table) {
        size_t all = head + (size_t)(8 * heap->width * rows);

        HR_TRY(check_frame(heap, "FHIB\0", table, first));
        if (!count_block(heap, all))
            return damaged_block(heap, table);
        HR_TRY(hr__hdf5_check_sum(heap->file, table, all));
        heap->tables[depth] = table;
    }
    while (row < rows && size != 0 && place - first >= size * heap->width) {
        first += size * heap->width;
        size = row_bytes(heap, ++row);
    }
    if (row == rows || size == 0)
        return damaged_block(heap, table);
    entry = (place - first) / size;
    HR_TRY(hr__hdf5_get(heap->file, table + head + 8 * (row * heap->width + entry), 8,
                        &data));
    in = (struct hr_hdf5_in){data, 8, false};
    *at = hr__hdf5_take(&in, 8);
    *begin = first + entry * size;
    *bytes = size;
    return HR_OK;
}

/* Makes the block of objects that has the place the current one. */
static enum hr_err find_block(struct heap *heap, uint64_t place)
{
    uint64_t at = heap->root, begin = 0, bytes = heap->first_bytes;
    unsigned rows = heap->rows;

    if (heap->bytes > 0 && place - heap->begin < heap->bytes)
        return HR_OK;
    for (int depth = 0; rows > 0; depth++) {
        if (depth == DEPTH_MAX)
            return damaged_block(heap, at);
        HR_TRY(find_entry(heap, place, &at, &begin, &bytes, rows, depth));
        rows = bytes <= heap->direct_max ? 0 : rows_of(heap, bytes);
    }
    heap->block = at;
    heap->begin = begin;
    heap->bytes = bytes;
    return check_block(heap, at);
}

static enum hr_err read_spot(struct heap *heap, const struct spot *spot)
{
    const uint8_t *data;
    uint64_t at, inside;

    HR_TRY(find_block(heap, spot->at));
    inside = spot->at - heap->begin;
    if (inside >= heap->bytes || spot->bytes > heap->bytes - inside)
        return damaged_block(heap, heap->block);
    at = heap->block + inside;
    HR_TRY(hr__hdf5_get(heap->file, at, spot->bytes, &data));
    return hr__hdf5_link(heap->file, heap->links,
                         (struct hr_hdf5_in){data, spot->bytes, false}, at);
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const struct spot *)a)->at, y = ((const struct spot *)b)->at;

    return x < y ? -1 : x > y;
}

enum hr_err hr__hdf5_dense(const struct hr_hdf5_file *file, uint64_t at, uint64_t names,
                           struct hr_hdf5_links *links)
{
    struct heap heap = {.file = file, .links = links, .address = at};
    enum hr_err code = open_heap(&heap);

    if (code == HR_OK)
        code = hr__hdf5_records(file, names, add_spot, &heap);
    if (heap.count > 1)
        qsort(heap.spots, heap.count, sizeof *heap.spots, by_place);
    for (size_t i = 0; i < heap.count && code == HR_OK; i++)
        code = read_spot(&heap, &heap.spots[i]);
    hr__free(heap.spots);
    return code;
}
