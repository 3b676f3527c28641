/*
 * store/hdf5_arrays.c - chunks that are listed in arrays: of fixed size, or growing.
 *
 * Arrays number chunks by the largest shape that the dataset may get, and begin with the
 * dimension that may grow without end. All blocks have checksums.
 */
#include "store/hdf5_internal.h"

#include <string.h>

#include "core/error.h"

/* Sets max_grid and slowest; false: there is nothing to number. */
static bool set_numbering(struct hr_hdf5_listing *listing)
{
    const struct hr_hdf5_object *object = listing->object;
    const struct hr_hdf5_dataset *dataset = &object->dataset;

    listing->slowest = 0;
    for (int i = dataset->ndim; i-- > 0;) {
        uint64_t chunk = (uint64_t)dataset->chunk_dims[i], most = object->max_dims[i];

        listing->max_grid[i] = most / chunk + (most % chunk > 0);
        if (listing->max_grid[i] == 0)
            return false;
        if (most == HR_HDF5_NONE)
            listing->slowest = i;
    }
    return true;
}

/* The dimension that is `at`-th, the slowest first. */
static int dimension(const struct hr_hdf5_listing *listing, int at)
{
    return at == 0 ? listing->slowest : at <= listing->slowest ? at - 1 : at;
}

/* The number of a chunk that an array numbers otherwise. HR_HDF5_NONE: outside. */
static uint64_t renumber(const struct hr_hdf5_listing *listing, uint64_t index)
{
    const struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    uint64_t place[HR_MAX_DIMS] = {0}, number = 0;

    for (int i = dataset->ndim; i-- > 0;) {
        int at = dimension(listing, i);

        place[at] = i > 0 ? index % listing->max_grid[at] : index;
        index /= listing->max_grid[at];
        if (place[at] >= (uint64_t)dataset->grid[at])
            return HR_HDF5_NONE;
    }
    for (int i = 0; i < dataset->ndim; i++)
        number = number * (uint64_t)dataset->grid[i] + place[i];
    return number;
}

/* An index after those of all chunks that the dataset has. */
static uint64_t index_end(const struct hr_hdf5_listing *listing)
{
    uint64_t end = (uint64_t)listing->object->dataset.grid[listing->slowest];

    for (int i = 0; i < listing->object->dataset.ndim; i++)
        if (i != listing->slowest &&
            __builtin_mul_overflow(end, listing->max_grid[i], &end))
            return UINT64_MAX;
    return end;
}

/* Elements of an array of chunks, `count` from index `first` on. */
static enum hr_err read_elements(struct hr_hdf5_listing *listing, uint64_t at,
                                 uint64_t first, uint64_t count)
{
    const struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    const uint8_t *data;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t address, bytes = dataset->chunk_bytes;
        struct hr_hdf5_in in;
        uint32_t mask = 0;

        HR_TRY(hr__hdf5_get(listing->file, at + i * listing->element, listing->element,
                            &data));
        in = (struct hr_hdf5_in){data, listing->element, false};
        address = hr__hdf5_take(&in, 8);
        if (listing->filtered) {
            bytes = hr__hdf5_take(&in, listing->element - 12);
            mask = (uint32_t)hr__hdf5_take(&in, 4);
        }
        HR_TRY(hr__hdf5_add_chunk(listing, renumber(listing, first + i), address, bytes,
                                  mask));
    }
    return HR_OK;
}

static enum hr_err damaged_index(const struct hr_hdf5_listing *listing, uint64_t at)
{
    return hr__hdf5_damaged(listing->file, at, "an index of chunks");
}

/* The kind of elements that a header says; false: it is not one. */
static bool take_kind(struct hr_hdf5_listing *listing, unsigned client, size_t element)
{
    listing->filtered = client == 1;
    listing->element = element;
    return listing->filtered ? element >= 13 && element <= 20 : element == 8;
}

/* Elements with a checksum after them. */
static enum hr_err
read_page(struct hr_hdf5_listing *listing, uint64_t at, uint64_t first, uint64_t count)
{
    if (count > listing->file->end / listing->element)
        return damaged_index(listing, at);
    HR_TRY(hr__hdf5_check_sum(listing->file, at, (size_t)count * listing->element));
    return read_elements(listing, at, first, count);
}

/* Pages of `page` elements each; a page whose bit is not set was never written. `bits` is
 * where they are, from bit `bit` on. */
static enum hr_err
read_pages(struct hr_hdf5_listing *listing, uint64_t at, uint64_t first, uint64_t count,
           uint64_t page, uint64_t bits, uint64_t bit)
{
    const uint8_t *data;

    for (uint64_t done = 0; done < count; done += page, bit++) {
        uint64_t items = count - done < page ? count - done : page;

        HR_TRY(hr__hdf5_get(listing->file, bits + bit / 8, 1, &data));
        if ((data[0] & 128 >> bit % 8) != 0)
            HR_TRY(read_page(listing, at, first + done, items));
        at += page * listing->element + 4;
    }
    return HR_OK;
}

/* ---- arrays of fixed size ---- */

static enum hr_err read_fixed(struct hr_hdf5_listing *listing, uint64_t at)
{
    enum { HEAD = 24, BLOCK_HEAD = 14 };

    const struct hr_hdf5_file *file = listing->file;
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint64_t count, block, page, bitmap;

    HR_TRY(hr__hdf5_check_sum(file, at, HEAD));
    HR_TRY(hr__hdf5_get(file, at, HEAD, &data));
    page = data[7] < 32 ? (uint64_t)1 << data[7] : 0;
    in = (struct hr_hdf5_in){data + 8, 16, false};
    count = hr__hdf5_take(&in, 8);
    block = hr__hdf5_take(&in, 8);
    if (memcmp(data, "FAHD\0", 5) != 0 || page == 0 ||
        !take_kind(listing, data[5], data[6]) || count > file->end)
        return damaged_index(listing, at);
    if (block == HR_HDF5_NONE)
        return HR_OK;
    HR_TRY(hr__hdf5_get(file, block, BLOCK_HEAD, &data));
    if (memcmp(data, "FADB\0", 5) != 0)
        return damaged_index(listing, block);
    if (count > page) {
        bitmap = ((count + page - 1) / page + 7) / 8;
        HR_TRY(hr__hdf5_check_sum(file, block, BLOCK_HEAD + (size_t)bitmap));
        return read_pages(listing, block + BLOCK_HEAD + bitmap + 4, 0, count, page,
                          block + BLOCK_HEAD, 0);
    }
    HR_TRY(
        hr__hdf5_check_sum(file, block, BLOCK_HEAD + (size_t)count * listing->element));
    return read_elements(listing, block + BLOCK_HEAD, 0, count);
}

/* ---- arrays that grow ---- */

#define GROW_HEAD 14 /* bytes of a block before its place: signature, kind, header */

/* Blocks of elements get larger, group by group: group s has 2^(s/2) blocks of
 * 2^((s+1)/2) times `block_min` elements. The first groups are listed in the index block,
 * the others in blocks of their own. */
struct grow {
    struct hr_hdf5_listing *listing;
    uint64_t address; /* of the header */
    uint64_t inner;   /* elements in the index block */
    uint64_t block_min, page;
    uint64_t end;       /* indexes from here on are of no interest */
    unsigned groups;    /* all */
    unsigned direct;    /* in the index block */
    size_t place_bytes; /* of the place of a block among the elements */
};

static enum hr_err get_address(const struct grow *grow, uint64_t at, uint64_t *ret)
{
    const uint8_t *data;
    struct hr_hdf5_in in;

    HR_TRY(hr__hdf5_get(grow->listing->file, at, 8, &data));
    in = (struct hr_hdf5_in){data, 8, false};
    *ret = hr__hdf5_take(&in, 8);
    return HR_OK;
}

/* Whether a block is one of this array, at this place unless HR_HDF5_NONE. */
static enum hr_err
check_grown(const struct grow *grow, const char *magic, uint64_t at, uint64_t place)
{
    size_t bytes = place != HR_HDF5_NONE ? grow->place_bytes : 0;
    const uint8_t *data;
    struct hr_hdf5_in in;
    bool good;

    HR_TRY(hr__hdf5_get(grow->listing->file, at, GROW_HEAD + bytes, &data));
    in = (struct hr_hdf5_in){data + 6, 8 + bytes, false};
    good = memcmp(data, magic, 5) == 0;
    good = hr__hdf5_take(&in, 8) == grow->address && good;
    good = (bytes == 0 || hr__hdf5_take(&in, bytes) == place) && good;
    return good ? HR_OK : damaged_index(grow->listing, at);
}

/* Blocks of a group: where their addresses are, and the bits of their pages. */
struct group {
    uint64_t blocks, items, pages; /* elements of a block, and its pages if it has any */
    uint64_t first;                /* index of the first element */
    uint64_t place;                /* that the first block says it has */
    uint64_t list, bits;
};

static struct group group_of(const struct grow *grow, unsigned number, uint64_t first)
{
    struct group group = {.blocks = (uint64_t)1 << number / 2,
                          .items = grow->block_min << (number + 1) / 2,
                          .first = first,
                          .place = first - grow->inner};

    group.pages = group.items > grow->page ? group.items / grow->page : 0;
    return group;
}

/* Block `at` of a group. */
static enum hr_err read_grown(const struct grow *grow, const struct group *group,
                              uint64_t at, uint64_t address)
{
    struct hr_hdf5_listing *listing = grow->listing;
    size_t head = GROW_HEAD + grow->place_bytes;
    uint64_t first = group->first + at * group->items;

    HR_TRY(check_grown(grow, "EADB\0", address, group->place + at * group->items));
    if (group->pages > 0) {
        HR_TRY(hr__hdf5_check_sum(listing->file, address, head));
        return read_pages(listing, address + head + 4, first, group->items, grow->page,
                          group->bits, at * group->pages);
    }
    if (group->items > listing->file->end / listing->element)
        return damaged_index(listing, address);
    HR_TRY(hr__hdf5_check_sum(listing->file, address,
                              head + (size_t)group->items * listing->element));
    return read_elements(listing, address + head, first, group->items);
}

static enum hr_err read_blocks(const struct grow *grow, const struct group *group)
{
    for (uint64_t i = 0; i < group->blocks && group->first + i * group->items < grow->end;
         i++) {
        uint64_t address;

        HR_TRY(get_address(grow, group->list + 8 * i, &address));
        if (address != HR_HDF5_NONE)
            HR_TRY(read_grown(grow, group, i, address));
    }
    return HR_OK;
}

/* The blocks of a group that a block at `at` lists. */
static enum hr_err read_group(const struct grow *grow, struct group *group, uint64_t at)
{
    const struct hr_hdf5_file *file = grow->listing->file;
    uint64_t bitmap = group->blocks * ((group->pages + 7) / 8);

    if (at == HR_HDF5_NONE)
        return HR_OK;
    if (group->blocks > file->end / 8 || bitmap > file->end)
        return damaged_index(grow->listing, at);
    group->bits = at + GROW_HEAD + grow->place_bytes;
    group->list = group->bits + bitmap;
    HR_TRY(check_grown(grow, "EASB\0", at, group->place));
    HR_TRY(hr__hdf5_check_sum(file, at, (size_t)(group->list - at + 8 * group->blocks)));
    return read_blocks(grow, group);
}

static enum hr_err read_index_block(const struct grow *grow, uint64_t at)
{
    struct hr_hdf5_listing *listing = grow->listing;
    uint64_t list = at + GROW_HEAD + grow->inner * listing->element;
    uint64_t first = grow->inner, bytes = list - at, listed = 0;

    for (unsigned i = 0; i < grow->direct; i++)
        listed += (uint64_t)1 << i / 2;
    bytes += 8 * (listed + grow->groups - grow->direct);
    HR_TRY(check_grown(grow, "EAIB\0", at, HR_HDF5_NONE));
    HR_TRY(hr__hdf5_check_sum(listing->file, at, (size_t)bytes));
    HR_TRY(read_elements(listing, at + GROW_HEAD, 0, grow->inner));
    listed = 0;
    for (unsigned i = 0; i < grow->groups && first < grow->end; i++) {
        struct group group = group_of(grow, i, first);
        uint64_t address;

        if (i < grow->direct) {
            group.list = list;
            group.place += listed * group.items; /* as the library counts them */
            listed += group.blocks;
            HR_TRY(read_blocks(grow, &group));
            list += 8 * group.blocks;
        } else {
            HR_TRY(get_address(grow, list, &address));
            HR_TRY(read_group(grow, &group, address));
            list += 8;
        }
        first += group.blocks * group.items;
    }
    return HR_OK;
}

static unsigned log2_of(uint64_t number)
{
    return 63 - (unsigned)__builtin_clzll(number | 1);
}

static enum hr_err read_extensible(struct hr_hdf5_listing *listing, uint64_t at)
{
    enum { HEAD = 68, GROUPS_MAX = 48 };

    struct grow grow = {.listing = listing, .address = at};
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint64_t block, used;
    unsigned bits, pointers, page;
    bool good;

    HR_TRY(hr__hdf5_check_sum(listing->file, at, HEAD));
    HR_TRY(hr__hdf5_get(listing->file, at, HEAD, &data));
    good = memcmp(data, "EAHD\0", 5) == 0 && take_kind(listing, data[5], data[6]);
    bits = data[7];
    grow.inner = data[8];
    grow.block_min = data[9];
    pointers = data[10];
    page = data[11];
    in = (struct hr_hdf5_in){data + 44, HEAD - 44, false};
    used = hr__hdf5_take(&in, 8);
    (void)hr__hdf5_skip(&in, 8);
    block = hr__hdf5_take(&in, 8);
    grow.end = index_end(listing);
    if (used < grow.end)
        grow.end = used;
    grow.place_bytes = (bits + 7) / 8;
    grow.page = page < 32 ? (uint64_t)1 << page : 0;
    grow.groups = 1 + bits - log2_of(grow.block_min);
    grow.direct = 2 * log2_of(pointers);
    if (!good || bits == 0 || bits > GROUPS_MAX || grow.block_min == 0 || pointers == 0 ||
        (grow.block_min & (grow.block_min - 1)) != 0 ||
        (pointers & (pointers - 1)) != 0 || grow.page == 0 ||
        log2_of(grow.block_min) > bits || grow.direct > grow.groups ||
        (grow.direct > 0 && grow.block_min << grow.direct / 2 > grow.page))
        return damaged_index(listing, at);
    return block != HR_HDF5_NONE ? read_index_block(&grow, block) : HR_OK;
}

/* Chunks that follow each other. */
static enum hr_err add_all(struct hr_hdf5_listing *listing)
{
    const struct hr_hdf5_object *object = listing->object;
    uint64_t bytes = object->dataset.chunk_bytes, end = index_end(listing);

    if (end > listing->file->end)
        return damaged_index(listing, object->index_at);
    for (uint64_t i = 0; i < end; i++)
        HR_TRY(hr__hdf5_add_chunk(listing, renumber(listing, i),
                                  object->index_at + i * bytes, bytes, 0));
    return HR_OK;
}

enum hr_err hr__hdf5_read_array(struct hr_hdf5_listing *listing)
{
    const struct hr_hdf5_object *object = listing->object;

    if (!set_numbering(listing))
        return HR_OK;
    if (object->chunk_index == HR_HDF5_ARRAY)
        return read_fixed(listing, object->index_at);
    if (object->chunk_index == HR_HDF5_EXTENSIBLE)
        return read_extensible(listing, object->index_at);
    return add_all(listing);
}
