/*
 * store/hdf5.c - superblocks, object headers and the walk over groups of HDF5 files.
 *
 * An object header is a list of messages in one or more blocks; its messages say whether
 * the object is a dataset or a group, and what is in it. The walk over groups follows
 * hard links only, and visits a bounded number of objects, so that a file whose groups
 * lead in circles ends.
 */
#include "store/hdf5_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define MAGIC "\x89HDF\r\n\x1a\n"
#define SUPERBLOCKS_UP_TO ((uint64_t)1 << 24) /* bytes of a user block before it */
#define HEADER_MAX ((size_t)1 << 20)          /* bytes of a block of messages */
#define BLOCKS_MAX 256
#define DEPTH_MAX 16     /* of groups */
#define MESSAGE_SHARED 2 /* flag */

/* ---- bytes ---- */

uint64_t hr__hdf5_take(struct hr_hdf5_in *in, size_t bytes)
{
    const uint8_t *at = hr__hdf5_skip(in, bytes);
    uint64_t value = 0;

    for (size_t i = 0; at != NULL && i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

const uint8_t *hr__hdf5_skip(struct hr_hdf5_in *in, size_t bytes)
{
    const uint8_t *at = in->at;

    if (in->bad || bytes > in->left) {
        in->bad = true;
        return NULL;
    }
    in->at += bytes;
    in->left -= bytes;
    return at;
}

enum hr_err
hr__hdf5_damaged(const struct hr_hdf5_file *file, uint64_t at, const char *what)
{
    return hr__fail(file->error, HR_ERR_FORMAT, "%s: byte %llu: damaged: %s",
                    file->window->object->uri, (unsigned long long)(file->base + at),
                    what);
}

enum hr_err hr__hdf5_get(const struct hr_hdf5_file *file, uint64_t at, size_t bytes,
                         const uint8_t **ret_data)
{
    const void *data = NULL;

    *ret_data = NULL;
    if (at > file->end || bytes > file->end - at)
        return hr__fail(file->error, HR_ERR_FORMAT,
                        "%s: it is cut or damaged: it has %llu bytes, and refers to %zu "
                        "bytes at byte %llu",
                        file->window->object->uri,
                        (unsigned long long)file->window->object->bytes, bytes,
                        (unsigned long long)(file->base + at));
    HR_TRY(hr__window_get(file->window, file->base + at, bytes, &data, file->error));
    *ret_data = data;
    return HR_OK;
}

enum hr_err hr__hdf5_check_sum(const struct hr_hdf5_file *file, uint64_t at, size_t bytes)
{
    const uint8_t *data;
    struct hr_hdf5_in in;

    HR_TRY(hr__hdf5_get(file, at, bytes + 4, &data));
    in = (struct hr_hdf5_in){data + bytes, 4, false};
    if (hr__hdf5_take(&in, 4) == hr__hdf5_checksum(data, bytes))
        return HR_OK;
    return hr__hdf5_damaged(file, at, "a checksum is wrong");
}

static inline uint32_t rotate(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static void mix(uint32_t s[3])
{
    static const int bits[6] = {4, 6, 8, 16, 19, 4};

    for (int i = 0; i < 6; i++) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];

        *a -= *c;
        *a ^= rotate(*c, bits[i]);
        *c += *b;
    }
}

static void finish_mix(uint32_t s[3])
{
    static const int bits[7] = {14, 11, 25, 16, 4, 14, 24};

    for (int i = 0; i < 7; i++) {
        uint32_t *to = &s[(i + 2) % 3], from = s[(i + 1) % 3];

        *to ^= from;
        *to -= rotate(from, bits[i]);
    }
}

uint32_t hr__hdf5_checksum(const uint8_t *data, size_t bytes)
{
    uint32_t s[3], first = 0xdeadbeefu + (uint32_t)bytes;

    s[0] = s[1] = s[2] = first;
    for (; bytes > 12; bytes -= 12, data += 12) {
        for (int i = 0; i < 12; i++)
            s[i / 4] += (uint32_t)data[i] << 8 * (i % 4);
        mix(s);
    }
    if (bytes == 0)
        return s[2];
    for (size_t i = 0; i < bytes; i++)
        s[i / 4] += (uint32_t)data[i] << 8 * (i % 4);
    finish_mix(s);
    return s[2];
}

bool hr__hdf5_begins(const void *data, size_t bytes)
{
    return bytes >= 8 && memcmp(data, MAGIC, 8) == 0;
}

/* ---- the superblock ---- */

/* A superblock is at 0, 512, 1024, 2048 and so on. */
static enum hr_err find_superblock(struct hr_hdf5_file *file, uint64_t *ret_at)
{
    uint64_t bytes = file->window->object->bytes;

    file->end = bytes;
    for (uint64_t at = 0; at + 8 <= bytes && at <= SUPERBLOCKS_UP_TO;
         at = at > 0 ? 2 * at : 512) {
        const uint8_t *data;

        HR_TRY(hr__hdf5_get(file, at, 8, &data));
        if (hr__hdf5_begins(data, 8)) {
            *ret_at = at;
            return HR_OK;
        }
    }
    return hr__fail(file->error, HR_ERR_FORMAT, "%s: it is no HDF5 file",
                    file->window->object->uri);
}

static enum hr_err other_sizes(const struct hr_hdf5_file *file)
{
    return hr__fail(file->error, HR_ERR_UNSUPPORTED,
                    "%s: its addresses or sizes do not have 8 bytes: copy it with "
                    "h5repack",
                    file->window->object->uri);
}

/* The address of the root group's header; addresses count from file->base from then on.
 */
static enum hr_err read_superblock(struct hr_hdf5_file *file, uint64_t *ret_root)
{
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint64_t at = 0, base, root;
    size_t bytes;
    unsigned version;
    bool old;

    HR_TRY(find_superblock(file, &at));
    HR_TRY(hr__hdf5_get(file, at, 9, &data));
    version = data[8];
    old = version <= 1;
    bytes = version == 0 ? 96 : version == 1 ? 100 : 48;
    if (version > 3)
        return hr__fail(file->error, HR_ERR_UNSUPPORTED,
                        "%s: version %u of HDF5's superblock; 0 to 3 are read",
                        file->window->object->uri, version);
    HR_TRY(hr__hdf5_get(file, at, bytes, &data));
    if (data[old ? 13 : 9] != 8 || data[old ? 14 : 10] != 8)
        return other_sizes(file);
    in = (struct hr_hdf5_in){data + (old ? bytes - 72 : 12), old ? 72 : 32, false};
    base = hr__hdf5_take(&in, 8);
    (void)hr__hdf5_skip(&in, old ? 32 : 16); /* old: and the name's offset in the entry */
    root = hr__hdf5_take(&in, 8);
    if (!old && hr__hdf5_checksum(data, 44) !=
                    (data[44] | (uint32_t)data[45] << 8 | (uint32_t)data[46] << 16 |
                     (uint32_t)data[47] << 24))
        return hr__hdf5_damaged(file, at, "the superblock's checksum is wrong");
    if (base > file->window->object->bytes)
        return hr__hdf5_damaged(file, at, "the superblock");
    file->base = base;
    file->end = file->window->object->bytes - base;
    *ret_root = root;
    return HR_OK;
}

/* ---- object headers ---- */

/* A block of messages. */
struct block {
    uint64_t at, bytes;
};

struct walk {
    struct hr_hdf5_file file;
    struct hr_hdf5 *found;
    size_t objects;
};

/* A header while it is read. */
struct header {
    struct walk *walk;
    struct hr_hdf5_object *object;
    struct hr_hdf5_links links;
    struct block blocks[BLOCKS_MAX];
    int count;
    bool is_new, has_order; /* version 2; its messages have an order */
};

static enum hr_err no_memory(const struct hr_hdf5_file *file)
{
    return hr__fail(file->error, HR_ERR_MEMORY, "out of memory for %s",
                    file->window->object->uri);
}

static enum hr_err add_block(struct header *header, uint64_t at, uint64_t bytes)
{
    if (header->count == BLOCKS_MAX || bytes > HEADER_MAX)
        return hr__hdf5_damaged(&header->walk->file, at,
                                "an object's header is too long");
    header->blocks[header->count].at = at;
    header->blocks[header->count++].bytes = bytes;
    return HR_OK;
}

static enum hr_err
read_message(struct header *header, unsigned type, struct hr_hdf5_in in, uint64_t at)
{
    struct hr_hdf5_object *object = header->object;

    if (type == HR_HDF5_MESSAGE_MORE) {
        uint64_t to = hr__hdf5_take(&in, 8), bytes = hr__hdf5_take(&in, 8);

        return in.bad ? hr__hdf5_damaged(&header->walk->file, at, "a continuation")
                      : add_block(header, to, bytes);
    }
    if (type == HR_HDF5_MESSAGE_LINK)
        return hr__hdf5_link(&header->walk->file, &header->links, in, at);
    if (type == HR_HDF5_MESSAGE_TABLE) {
        object->tree = hr__hdf5_take(&in, 8);
        object->heap = hr__hdf5_take(&in, 8);
    } else if (type == HR_HDF5_MESSAGE_LINKS) {
        (void)hr__hdf5_skip(&in, 1);
        (void)hr__hdf5_skip(&in, (hr__hdf5_take(&in, 1) & 1) != 0 ? 8 : 0);
        object->dense = hr__hdf5_take(&in, 8);
        object->names = hr__hdf5_take(&in, 8);
    } else if (!hr__hdf5_message(object, type, in, at)) {
        in.bad = true;
    }
    if (object->no_memory)
        return no_memory(&header->walk->file);
    return in.bad ? hr__hdf5_damaged(&header->walk->file, at, "a message of an object")
                  : HR_OK;
}

/* The messages of a block that was copied; `at` is its address. */
static enum hr_err
read_messages(struct header *header, const uint8_t *block, size_t bytes, uint64_t at)
{
    size_t head = header->is_new ? 4 + 2 * (size_t)header->has_order : 8;
    struct hr_hdf5_in in = {block, bytes, false};

    while (in.left >= head) {
        unsigned type = (unsigned)hr__hdf5_take(&in, header->is_new ? 1 : 2);
        size_t size = (size_t)hr__hdf5_take(&in, 2);
        unsigned flags = (unsigned)hr__hdf5_take(&in, 1);
        uint64_t place;
        const uint8_t *data;

        (void)hr__hdf5_skip(&in, header->is_new ? 2 * (size_t)header->has_order : 3);
        place = at + (uint64_t)(in.at - block);
        data = hr__hdf5_skip(&in, size);
        if (data == NULL)
            return hr__hdf5_damaged(&header->walk->file, place, "a message is cut");
        if ((flags & MESSAGE_SHARED) != 0) {
            if (type == HR_HDF5_MESSAGE_TYPE || type == HR_HDF5_MESSAGE_SPACE ||
                type == HR_HDF5_MESSAGE_FILTERS)
                header->object->unsupported = "it shares its description with others "
                                              "(a committed type)";
            header->object->has_type |= type == HR_HDF5_MESSAGE_TYPE;
            header->object->has_space |= type == HR_HDF5_MESSAGE_SPACE;
            continue;
        }
        HR_TRY(read_message(header, type, (struct hr_hdf5_in){data, size, false}, place));
    }
    return HR_OK;
}

/* Checks the frame of a block of a new header, and strips it. */
static enum hr_err
check_block(struct header *header, int at, const uint8_t **block, size_t *bytes)
{
    uint64_t place = header->blocks[at].at;
    const uint8_t *end = *block + *bytes;

    if (!header->is_new)
        return HR_OK;
    if (*bytes < 8 || (at > 0 && memcmp(*block, "OCHK", 4) != 0))
        return hr__hdf5_damaged(&header->walk->file, place, "an object's header");
    if (hr__hdf5_checksum(*block, *bytes - 4) !=
        (end[-4] | (uint32_t)end[-3] << 8 | (uint32_t)end[-2] << 16 |
         (uint32_t)end[-1] << 24))
        return hr__hdf5_damaged(&header->walk->file, place,
                                "the checksum of an object's header is wrong");
    *bytes -= 4;
    if (at > 0) {
        *block += 4;
        *bytes -= 4;
    }
    return HR_OK;
}

/* Reads block `at`, of which `skip` bytes are no messages. Messages read the window, so
 * the block is copied. */
static enum hr_err read_block(struct header *header, int at, size_t skip)
{
    size_t bytes = (size_t)header->blocks[at].bytes;
    uint64_t place = header->blocks[at].at;
    const uint8_t *data, *block;
    uint8_t *copy;
    enum hr_err code;

    HR_TRY(hr__hdf5_get(&header->walk->file, place, bytes, &data));
    copy = hr__malloc(bytes + 1);
    if (copy == NULL)
        return no_memory(&header->walk->file);
    memcpy(copy, data, bytes);
    block = copy;
    code = check_block(header, at, &block, &bytes);
    if (code == HR_OK && skip > bytes)
        code = hr__hdf5_damaged(&header->walk->file, place, "an object's header");
    if (code == HR_OK)
        code = read_messages(header, block + skip, bytes - skip,
                             place + skip + (uint64_t)(block - copy));
    hr__free(copy);
    return code;
}

/* The head of a header at `at`: its first block, and how much of it is no message. */
static enum hr_err begin_header(struct header *header, uint64_t at, size_t *ret_skip)
{
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint64_t bytes;
    unsigned flags;
    size_t head;

    HR_TRY(hr__hdf5_get(&header->walk->file, at, 16, &data));
    header->is_new = memcmp(data, "OHDR", 4) == 0;
    if (!header->is_new) {
        bytes = data[8] | (uint64_t)data[9] << 8 | (uint64_t)data[10] << 16 |
                (uint64_t)data[11] << 24;
        *ret_skip = 0;
        return data[0] == 1
                   ? add_block(header, at + 16, bytes)
                   : hr__hdf5_damaged(&header->walk->file, at, "there is no object");
    }
    if (data[4] != 2)
        return hr__hdf5_damaged(&header->walk->file, at, "an object's header");
    flags = data[5];
    header->has_order = (flags & 4) != 0;
    head = 6 + ((flags & 32) != 0 ? 16u : 0u) + ((flags & 16) != 0 ? 4u : 0u);
    HR_TRY(hr__hdf5_get(&header->walk->file, at, head + 8, &data));
    in = (struct hr_hdf5_in){data + head, 8, false};
    bytes = hr__hdf5_take(&in, (size_t)1 << (flags & 3));
    *ret_skip = head + ((size_t)1 << (flags & 3));
    if (bytes > HEADER_MAX)
        return hr__hdf5_damaged(&header->walk->file, at,
                                "an object's header is too long");
    return add_block(header, at, *ret_skip + bytes + 4);
}

static enum hr_err read_header(struct header *header, uint64_t at)
{
    size_t skip = 0;

    HR_TRY(begin_header(header, at, &skip));
    for (int i = 0; i < header->count; i++)
        HR_TRY(read_block(header, i, i == 0 ? skip : 0));
    return HR_OK;
}

/* ---- objects ---- */

/* Adds a part of the object's elements as a dataset; `first`: it has the chunks. */
static enum hr_err add_part(struct walk *walk, const struct hr_hdf5_object *object,
                            const struct hr_hdf5_part *part, const char *path, bool first)
{
    const char *why = object->unsupported != NULL ? object->unsupported : part->why;
    struct hr_hdf5_dataset made = object->dataset;
    struct hr_hdf5 *found = walk->found;
    size_t room = strlen(path) + 2 + (part->name != NULL ? strlen(part->name) : 0);

    if (found->count == HR_HDF5_DATASETS_MAX)
        return hr__fail(walk->file.error, HR_ERR_LIMIT, "%s: more than %d datasets",
                        walk->file.window->object->uri, HR_HDF5_DATASETS_MAX);
    if (!hr__array_room(&found->datasets, found->count, &found->room, 1, sizeof made))
        return no_memory(&walk->file);
    made.type = part->type;
    made.offset = part->offset;
    made.inner_ndim = part->ndim;
    memcpy(made.inner_dims, part->dims, sizeof made.inner_dims);
    made.borrows_chunks = !first;
    made.path = hr__malloc(room);
    made.why = why != NULL ? hr__strdup(why) : NULL;
    if (made.path == NULL || (why != NULL && made.why == NULL)) {
        hr__free(made.path);
        hr__free(made.why);
        return no_memory(&walk->file);
    }
    snprintf(made.path, room, "%s%s%s", path, part->name != NULL ? "." : "",
             part->name != NULL ? part->name : "");
    found->datasets[found->count++] = made;
    return HR_OK;
}

static enum hr_err
add_dataset(struct walk *walk, struct hr_hdf5_object *object, const char *path)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;

    if (object->unsupported == NULL)
        HR_TRY(hr__hdf5_layout(&walk->file, object));
    if (object->unsupported != NULL) {
        hr__free(dataset->chunks);
        dataset->chunks = NULL;
        dataset->chunk_count = 0;
    }
    if (object->part_count == 0) /* its type is elsewhere */
        return add_part(walk, object, &(struct hr_hdf5_part){0}, path, true);
    for (size_t i = 0; i < object->part_count; i++) {
        HR_TRY(add_part(walk, object, &object->parts[i], path, i == 0));
        if (i == 0)
            object->has_given = true;
    }
    return HR_OK;
}

static enum hr_err visit(struct walk *walk, uint64_t at, const char *path, int depth);

static enum hr_err
visit_links(struct walk *walk, const struct header *header, const char *path, int depth)
{
    size_t room = strlen(path) + HR_HDF5_NAME_MAX + 2;
    char *below = hr__malloc(room);
    enum hr_err code = below != NULL ? HR_OK : no_memory(&walk->file);

    for (size_t i = 0; i < header->links.count && code == HR_OK; i++) {
        snprintf(below, room, "%s%s%s", path, path[0] != '\0' ? "/" : "",
                 header->links.items[i].name);
        code = visit(walk, header->links.items[i].at, below, depth + 1);
    }
    hr__free(below);
    return code;
}

static enum hr_err
visit_object(struct walk *walk, struct header *header, const char *path, int depth)
{
    struct hr_hdf5_object *object = header->object;
    const struct hr_hdf5_file *file = &walk->file;

    if (object->has_type && object->has_space && object->has_layout)
        return add_dataset(walk, object, path);
    if (object->dense != HR_HDF5_NONE)
        HR_TRY(hr__hdf5_dense(file, object->dense, object->names, &header->links));
    if (object->tree != HR_HDF5_NONE)
        HR_TRY(hr__hdf5_symbols(file, object->tree, object->heap, &header->links));
    return visit_links(walk, header, path, depth);
}

static enum hr_err visit(struct walk *walk, uint64_t at, const char *path, int depth)
{
    struct header *header;
    enum hr_err code = HR_ERR_MEMORY;

    if (depth > DEPTH_MAX || ++walk->objects > HR_HDF5_OBJECTS_MAX)
        return hr__fail(walk->file.error, HR_ERR_LIMIT,
                        "%s: its groups are nested too deep or lead in circles: "
                        "\"/%.80s\"",
                        walk->file.window->object->uri, path);
    header = hr__calloc(1, sizeof *header);
    if (header == NULL)
        return no_memory(&walk->file);
    header->walk = walk;
    header->object = hr__calloc(1, sizeof *header->object);
    if (header->object != NULL) {
        header->object->tree = header->object->dense = HR_HDF5_NONE;
        header->object->index_at = HR_HDF5_NONE;
        code = read_header(header, at);
    } else {
        code = no_memory(&walk->file);
    }
    if (code == HR_OK)
        code = visit_object(walk, header, path, depth);
    hr__hdf5_links_finish(&header->links);
    if (header->object != NULL) {
        if (!header->object->has_given)
            hr__free(header->object->dataset.chunks);
        hr__hdf5_parts_finish(header->object);
    }
    hr__free(header->object);
    hr__free(header);
    return code;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct hr_hdf5_dataset *)a)->path,
                  ((const struct hr_hdf5_dataset *)b)->path);
}

enum hr_err
hr__hdf5_read(struct hr_window *window, struct hr_hdf5 *ret_hdf5, struct hr_error *reterr)
{
    struct walk walk = {
        .file = {.window = window, .error = reterr},
          .found = ret_hdf5
    };
    uint64_t root = 0;

    HR_TRY(read_superblock(&walk.file, &root));
    ret_hdf5->base = walk.file.base;
    HR_TRY(visit(&walk, root, "", 0));
    if (ret_hdf5->count > 1) /* new groups have their links in any order */
        qsort(ret_hdf5->datasets, ret_hdf5->count, sizeof *ret_hdf5->datasets, by_path);
    return HR_OK;
}

void hr__hdf5_finish(struct hr_hdf5 *hdf5)
{
    for (size_t i = 0; i < hdf5->count; i++) {
        hr__free(hdf5->datasets[i].path);
        hr__free(hdf5->datasets[i].why);
        if (!hdf5->datasets[i].borrows_chunks)
            hr__free(hdf5->datasets[i].chunks);
    }
    hr__free(hdf5->datasets);
    *hdf5 = (struct hr_hdf5){0};
}
