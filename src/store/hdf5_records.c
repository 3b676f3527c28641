/*
 * store/hdf5_records.c - the records of a B-tree of version 2, which lists the links of a
 * group, or the chunks of a dataset that can grow in several dimensions.
 *
 * The sizes of the fields of an inner node follow from how many records its children can
 * have. Each node has a checksum.
 */
#include "store/hdf5_internal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define DEPTH_MAX 16
#define NODE_MAX ((uint64_t)1 << 20)
#define NODE_HEAD 6
#define NODE_FRAME 10 /* head and checksum */

struct level {
    uint64_t most;     /* records of a node */
    uint64_t most_all; /* and of all nodes below it */
    size_t pointer;    /* bytes of what an inner node has of a child */
    size_t all_bytes;  /* of which those of `most_all` of the child */
};

struct tree {
    const struct hr_hdf5_file *file;
    hr_hdf5_record_fn *fn;
    void *user;
    unsigned type, depth;
    uint64_t node_bytes, nodes;
    size_t record_bytes, count_bytes;
    struct level levels[DEPTH_MAX + 1];
};

static enum hr_err damaged(const struct tree *tree, uint64_t at)
{
    return hr__hdf5_damaged(tree->file, at, "a B-tree");
}

/* False: a node has room for no record. */
static bool set_levels(struct tree *tree)
{
    tree->levels[0].most = (tree->node_bytes - NODE_FRAME) / tree->record_bytes;
    tree->levels[0].most_all = tree->levels[0].most;
    tree->count_bytes = hr__hdf5_bytes_for(tree->levels[0].most);
    for (unsigned i = 1; i <= tree->depth; i++) {
        struct level *level = &tree->levels[i];
        const struct level *below = &tree->levels[i - 1];

        level->all_bytes = i > 1 ? hr__hdf5_bytes_for(below->most_all) : 0;
        level->pointer = 8 + tree->count_bytes + level->all_bytes;
        if (tree->node_bytes < NODE_FRAME + level->pointer)
            return false;
        level->most = (tree->node_bytes - NODE_FRAME - level->pointer) /
                      (tree->record_bytes + level->pointer);
        if (__builtin_mul_overflow(level->most + 1, below->most_all, &level->most_all) ||
            __builtin_add_overflow(level->most_all, level->most, &level->most_all))
            return false;
    }
    return tree->levels[tree->depth].most > 0;
}

static enum hr_err
read_node(struct tree *tree, uint64_t at, uint64_t count, unsigned depth);

static enum hr_err
read_children(struct tree *tree, const uint8_t *data, uint64_t count, unsigned depth)
{
    const struct level *level = &tree->levels[depth];

    for (uint64_t i = 0; i <= count; i++) {
        struct hr_hdf5_in in = {data + i * level->pointer, level->pointer, false};
        uint64_t child = hr__hdf5_take(&in, 8);

        HR_TRY(read_node(tree, child, hr__hdf5_take(&in, tree->count_bytes), depth - 1));
    }
    return HR_OK;
}

/* A node with `count` records; it is copied, since the records' function reads, too. */
static enum hr_err
read_node(struct tree *tree, uint64_t at, uint64_t count, unsigned depth)
{
    const struct hr_hdf5_file *file = tree->file;
    size_t records = (size_t)count * tree->record_bytes, bytes;
    enum hr_err code = HR_OK;
    const uint8_t *data;
    uint8_t *copy;

    if (count > tree->levels[depth].most || ++tree->nodes > file->end / NODE_FRAME)
        return damaged(tree, at);
    bytes = NODE_HEAD + records;
    if (depth > 0)
        bytes += (size_t)(count + 1) * tree->levels[depth].pointer;
    HR_TRY(hr__hdf5_check_sum(file, at, bytes));
    HR_TRY(hr__hdf5_get(file, at, bytes, &data));
    if (memcmp(data, depth > 0 ? "BTIN\0" : "BTLF\0", 5) != 0 || data[5] != tree->type)
        return damaged(tree, at);
    copy = hr__malloc(bytes);
    if (copy == NULL)
        return hr__fail(file->error, HR_ERR_MEMORY, "out of memory for %s",
                        file->window->object->uri);
    memcpy(copy, data, bytes);
    for (uint64_t i = 0; i < count && code == HR_OK; i++) {
        struct hr_hdf5_record record = {
            tree->type, copy + NODE_HEAD + i * tree->record_bytes, tree->record_bytes};

        code = tree->fn(tree->user, &record);
    }
    if (code == HR_OK && depth > 0)
        code = read_children(tree, copy + NODE_HEAD + records, count, depth);
    hr__free(copy);
    return code;
}

enum hr_err hr__hdf5_records(const struct hr_hdf5_file *file, uint64_t at,
                             hr_hdf5_record_fn *fn, void *user)
{
    enum { HEAD = 34 };

    struct tree tree = {.file = file, .fn = fn, .user = user};
    const uint8_t *data;
    struct hr_hdf5_in in;
    uint64_t root, count;

    HR_TRY(hr__hdf5_check_sum(file, at, HEAD));
    HR_TRY(hr__hdf5_get(file, at, HEAD, &data));
    if (memcmp(data, "BTHD\0", 5) != 0)
        return damaged(&tree, at);
    in = (struct hr_hdf5_in){data + 5, HEAD - 5, false};
    tree.type = (unsigned)hr__hdf5_take(&in, 1);
    tree.node_bytes = hr__hdf5_take(&in, 4);
    tree.record_bytes = (size_t)hr__hdf5_take(&in, 2);
    tree.depth = (unsigned)hr__hdf5_take(&in, 2);
    (void)hr__hdf5_skip(&in, 2); /* when nodes are split and merged */
    root = hr__hdf5_take(&in, 8);
    count = hr__hdf5_take(&in, 2);
    if (root == HR_HDF5_NONE)
        return HR_OK;
    if (tree.depth > DEPTH_MAX || tree.record_bytes == 0 || tree.node_bytes > NODE_MAX ||
        tree.node_bytes < NODE_FRAME + tree.record_bytes || !set_levels(&tree))
        return damaged(&tree, at);
    return read_node(&tree, root, count, tree.depth);
}
