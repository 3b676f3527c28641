/*
 * store/index.c - the public functions of the index: opening, order, paths, labels.
 *
 * Files are ordered by the bytes of their paths. A folder keeps its own names sorted, and
 * its subfolders fall between them, so the order of all files is a short list of runs,
 * each a range of one folder's names. A position is found by bisecting the runs. Nothing
 * is stored per file.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"
#include "store/index_internal.h"
#include "store/store.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct frame {
    const struct hr_index_folder *folder;
    uint32_t child, file;
    int32_t label; /* -1: not known yet */
};

struct order {
    struct hr_index_run *runs;
    size_t run_count, run_room;
    struct frame *stack;
    size_t depth, stack_room;
    uint64_t start;
};

static bool add_run(struct order *order, const struct frame *frame, uint32_t end)
{
    if (end <= frame->file)
        return true;
    if (!hr__index_room(&order->runs, order->run_count, &order->run_room, 2,
                        sizeof *order->runs))
        return false;
    order->runs[order->run_count++] = (struct hr_index_run){
        .start = order->start,
        .folder = frame->folder,
        .first = frame->file,
        .label = frame->label,
    };
    order->start += end - frame->file;
    return true;
}

/* The first file from `from` on that sorts after everything in subfolder `name`. */
static uint32_t first_after(const struct hr_index_names *names, uint32_t from,
                            const char *name, size_t bytes)
{
    char file[HR_INDEX_PATH_MAX];
    uint32_t low = from, high = names->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t file_bytes = hr__index_name(names, middle, file);
        size_t least = file_bytes < bytes ? file_bytes : bytes;
        int order = memcmp(file, name, least);

        if (order == 0) /* no file has that very name; the shorter one comes first */
            order = file_bytes <= bytes ? -1 : (unsigned char)file[bytes] - '/';
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool
push_frame(struct order *order, const struct hr_index_folder *folder, int32_t label)
{
    if (!hr__index_room(&order->stack, order->depth, &order->stack_room, 1,
                        sizeof *order->stack))
        return false;
    order->stack[order->depth++] = (struct frame){.folder = folder, .label = label};
    return true;
}

/* One step of the walk in order. The stack is explicit because trees may be deep. */
static bool step(struct order *order, const struct hr_index *index)
{
    struct frame *top = &order->stack[order->depth - 1];
    const struct hr_index_folder *folder = top->folder, *child;
    int32_t label = top->label;
    uint32_t after;

    if (top->child == folder->child_count) {
        order->depth--;
        return add_run(order, top, folder->names.count);
    }
    child = folder->children[top->child++];
    after = first_after(&folder->names, top->file, child->name, child->name_bytes);
    if (!add_run(order, top, after))
        return false;
    top->file = after;
    if (index->folder_labels && folder->parent == NULL)
        label = (int32_t)child->number;
    return push_frame(order, child, label);
}

enum hr_err hr__index_order(struct hr_index *index, struct hr_error *reterr)
{
    struct order order = {0};
    bool ok = push_frame(&order, index->tree.root, -1);

    while (ok && order.depth > 0)
        ok = step(&order, index);
    ok = ok && hr__index_room(&order.runs, order.run_count, &order.run_room, 1,
                              sizeof *order.runs);
    hr__free(order.stack);
    if (!ok) {
        hr__free(order.runs);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    order.runs[order.run_count] = (struct hr_index_run){.start = order.start};
    index->runs = order.runs;
    index->run_count = order.run_count;
    index->count = order.start;
    index->stats.bytes_resident += order.run_room * sizeof *order.runs;
    return HR_OK;
}

enum hr_err hr__index_unlabelled(const char *name, size_t bytes, const char *root,
                                 uint64_t count, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "%.*s lies in %s itself, so no class folder gives its label "
                    "(%llu such files): move them into class folders, or do without "
                    "folder labels",
                    (int)bytes, name, root, (unsigned long long)count);
}

static int compare_classes(const void *a, const void *b)
{
    const struct hr_index_folder *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* Ranks the folders in root by plain name; paths sort differently ("a-b/" < "a/"). */
static enum hr_err
rank_classes(struct hr_index *index, const struct hr_index_options *options,
             struct hr_error *reterr)
{
    const struct hr_index_folder *root = index->tree.root;
    char name[HR_INDEX_PATH_MAX];

    if (root->names.count > 0) {
        size_t bytes = hr__index_name(&root->names, 0, name);

        return hr__index_unlabelled(name, bytes, options->root, root->names.count,
                                    reterr);
    }
    if (root->child_count == 0)
        return HR_OK;
    index->classes = hr__malloc(root->child_count * sizeof *index->classes);
    if (index->classes == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    memcpy(index->classes, root->children, root->child_count * sizeof *index->classes);
    index->class_count = root->child_count;
    qsort(index->classes, index->class_count, sizeof *index->classes, compare_classes);
    for (size_t i = 0; i < index->class_count; i++)
        index->classes[i]->number = (uint32_t)i;
    return HR_OK;
}

static enum hr_err
no_files(const struct hr_index_options *options, const struct hr_index_pattern *pattern,
         struct hr_error *reterr)
{
    struct hr_str suffixes;

    hr__str_init(&suffixes);
    for (size_t i = 0; i < options->suffix_count; i++) {
        hr__str_add(&suffixes, i == 0 ? ", suffixes looked for: " : " ");
        hr__str_add(&suffixes, options->suffixes[i]);
    }
    hr__fail(reterr, HR_ERR_NOT_FOUND, "no files %s %s%s",
             pattern->is_glob ? "match" : "in", options->root, hr__str_text(&suffixes));
    hr__str_finish(&suffixes);
    return HR_ERR_NOT_FOUND;
}

static enum hr_err
make_prefix(struct hr_index *index, const char *base, struct hr_error *reterr)
{
    size_t bytes = strlen(base);

    index->prefix = hr__malloc(bytes + 2);
    if (index->prefix == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    memcpy(index->prefix, base, bytes + 1);
    if (bytes > 0 && base[bytes - 1] != '/')
        memcpy(index->prefix + bytes++, "/", 2);
    index->prefix_bytes = bytes;
    return HR_OK;
}

/* Walks the folders, with the saved index if it fits. One that turns out to contradict
 * them is dropped, and the walk repeated without it. */
static enum hr_err
find_files(struct hr_index *index, const struct hr_index_options *options,
           const struct hr_index_pattern *pattern, bool *ret_differs,
           struct hr_error *reterr)
{
    struct hr_index_saved *saved = &index->saved;
    bool use = false;

    if (options->saved != NULL) {
        enum hr_err err = hr__index_saved_open(options->saved, saved, NULL);

        if (err == HR_ERR_MEMORY)
            return hr__fail(reterr, err, "out of memory");
        use = err == HR_OK && hr__hash_equal(saved->options, pattern->hash);
        index->stats.saved_damaged = err != HR_OK && err != HR_ERR_NOT_FOUND;
    }
    HR_TRY(hr__index_walk(options, pattern, use ? saved : NULL, &index->tree, reterr));
    if (index->tree.stale) {
        use = false;
        hr__index_tree_finish(&index->tree);
        HR_TRY(hr__index_walk(options, pattern, NULL, &index->tree, reterr));
    }
    index->stats.from_saved = use && index->tree.rescanned < index->tree.folders;
    if (!use)
        hr__index_saved_close(saved);
    *ret_differs = options->saved != NULL && (!use || index->tree.differs);
    return HR_OK;
}

static void note_stats(struct hr_index *index)
{
    struct hr_index_stats *stats = &index->stats;
    const struct hr_index_tree *tree = &index->tree;

    stats->folders = tree->folders;
    stats->folders_rescanned = tree->rescanned;
    stats->skipped = tree->skipped;
    stats->bytes_resident += tree->heap_bytes + index->saved.map.bytes +
                             index->saved.record_count * sizeof(uint32_t) +
                             index->class_count * sizeof *index->classes + sizeof *index;
}

static enum hr_err
open_tree(struct hr_index *index, const struct hr_index_options *options,
          const struct hr_index_pattern *pattern, struct hr_error *reterr)
{
    bool differs = false;

    index->options_hash = pattern->hash;
    index->folder_labels = options->folder_labels;
    HR_TRY(make_prefix(index, pattern->base, reterr));
    HR_TRY(find_files(index, options, pattern, &differs, reterr));
    if (options->folder_labels)
        HR_TRY(rank_classes(index, options, reterr));
    HR_TRY(hr__index_order(index, reterr));
    if (index->count == 0)
        return no_files(options, pattern, reterr);
    if (index->saved.records != NULL && !index->tree.differs &&
        index->saved.identity_has_labels == index->folder_labels)
        index->identity = index->saved.identity;
    else
        HR_TRY(hr__index_identify(index, reterr));
    note_stats(index);
    if (differs)
        index->stats.save_failed = hr__index_save(index, options->saved, NULL) != HR_OK;
    return HR_OK;
}

static enum hr_err finish_list(struct hr_index *index, struct hr_error *reterr)
{
    const struct hr_index_list *list = &index->list;

    index->is_list = true;
    index->count = list->count;
    index->stats.bytes_resident =
        sizeof *index + list->offset[list->count] + (list->count + 1) * sizeof(uint64_t) +
        list->class_bytes + (list->labels != NULL ? list->count * sizeof(int64_t) : 0);
    return hr__index_identify(index, reterr);
}

/* A folder of another store. */
static enum hr_err
open_store(struct hr_index *index, const struct hr_index_options *options,
           const struct hr_index_pattern *pattern, struct hr_error *reterr)
{
    HR_TRY(make_prefix(index, pattern->base, reterr));
    HR_TRY(hr__index_list_store(options, pattern, &index->list, &index->stats.skipped,
                                reterr));
    if (index->list.count == 0)
        return no_files(options, pattern, reterr);
    return finish_list(index, reterr);
}

static enum hr_err check_root(const char *root, struct hr_error *reterr)
{
    struct stat info;

    if (stat(root, &info) != 0)
        return hr__fail_errno(reterr, errno == ENOENT ? HR_ERR_NOT_FOUND : HR_ERR_IO,
                              errno, "cannot read folder %s", root);
    if (!S_ISDIR(info.st_mode))
        return hr__fail(reterr, HR_ERR_ARGUMENT, "%s is a file, not a folder", root);
    return HR_OK;
}

static enum hr_err
open_list(struct hr_index *index, const struct hr_index_options *options, bool remote,
          struct hr_error *reterr)
{
    if (options->folder_labels)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "labels come from %s or from folders, not from both",
                        options->label_file);
    if (!remote)
        HR_TRY(check_root(options->root, reterr));
    HR_TRY(make_prefix(index, options->root, reterr));
    HR_TRY(hr__index_list_read(options->label_file, &index->list, reterr));
    if (index->list.count == 0)
        return hr__fail(reterr, HR_ERR_NOT_FOUND, "no files in %s", options->label_file);
    return finish_list(index, reterr);
}

/* By pattern: from folders, or from another store. */
static enum hr_err
open_pattern(struct hr_index *index, const struct hr_index_options *options, bool remote,
             struct hr_error *reterr)
{
    struct hr_index_pattern pattern;
    enum hr_err err = hr__index_pattern_init(&pattern, options, reterr);

    if (err != HR_OK)
        return err;
    err = remote ? open_store(index, options, &pattern, reterr)
                 : open_tree(index, options, &pattern, reterr);
    hr__index_pattern_finish(&pattern);
    return err;
}

enum hr_err hr__index_open(const struct hr_index_options *options,
                           struct hr_index **ret_index, struct hr_error *reterr)
{
    struct hr_index_options own = *options;
    struct hr_index *index;
    enum hr_err err;
    bool remote;

    if (options->root == NULL || options->root[0] == '\0')
        return hr__fail(reterr, HR_ERR_ARGUMENT, "the name of the folder is missing");
    index = hr__calloc(1, sizeof *index);
    if (index == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    atomic_init(&index->refs, 1);
    remote = hr__store_is_remote(options->root, &own.root);
    if (remote)
        own.root = options->root; /* names of its files are URIs */
    err = options->label_file != NULL ? open_list(index, &own, remote, reterr)
                                      : open_pattern(index, &own, remote, reterr);
    if (err == HR_OK)
        *ret_index = index;
    else
        hr__index_unref(index);
    return err;
}

struct hr_index *hr__index_ref(struct hr_index *index)
{
    atomic_fetch_add_explicit(&index->refs, 1, memory_order_relaxed);
    return index;
}

void hr__index_unref(struct hr_index *index)
{
    if (index == NULL ||
        atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) != 1)
        return;
    hr__index_tree_finish(&index->tree);
    hr__index_saved_close(&index->saved);
    hr__index_list_finish(&index->list);
    hr__free(index->runs);
    hr__free(index->classes);
    hr__free(index->prefix);
    hr__free(index);
}

uint64_t hr__index_count(const struct hr_index *index)
{
    return index->count;
}

static const struct hr_index_run *run_of(const struct hr_index *index, uint64_t at)
{
    size_t low = 0, high = index->run_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (index->runs[middle].start <= at)
            low = middle;
        else
            high = middle;
    }
    return &index->runs[low];
}

/* Copies the path below root of file `i` of `run`; SIZE_MAX if there is no room. */
static size_t
tree_path(const struct hr_index_run *run, uint64_t i, char *path, size_t room)
{
    char name[HR_INDEX_PATH_MAX];
    size_t bytes = hr__index_folder_path(run->folder, path, room);
    size_t name_bytes =
        hr__index_name(&run->folder->names, run->first + (uint32_t)i, name);

    if (bytes == SIZE_MAX || room - bytes < name_bytes + 1)
        return SIZE_MAX;
    if (bytes > 0)
        path[bytes++] = '/';
    memcpy(path + bytes, name, name_bytes);
    return bytes + name_bytes;
}

enum hr_err hr__index_path(const struct hr_index *index, uint64_t at, char *path,
                           size_t room, size_t *ret_length)
{
    size_t begin = index->prefix_bytes, bytes;

    if (index->is_list) {
        const char *text = index->list.pool + index->list.offset[at];

        bytes = index->list.offset[at + 1] - index->list.offset[at];
        if (text[0] == '/')
            begin = 0;
        if (room <= begin || room - begin <= bytes)
            return HR_ERR_LIMIT;
        memcpy(path + begin, text, bytes);
    } else {
        const struct hr_index_run *run = run_of(index, at);

        if (room <= begin)
            return HR_ERR_LIMIT;
        bytes = tree_path(run, at - run->start, path + begin, room - begin - 1);
        if (bytes == SIZE_MAX)
            return HR_ERR_LIMIT;
    }
    memcpy(path, index->prefix, begin);
    path[begin + bytes] = '\0';
    if (ret_length != NULL)
        *ret_length = begin + bytes;
    return HR_OK;
}

int64_t hr__index_label(const struct hr_index *index, uint64_t at)
{
    if (index->is_list)
        return index->list.labels != NULL ? index->list.labels[at] : -1;
    return index->folder_labels ? run_of(index, at)->label : -1;
}

size_t hr__index_label_count(const struct hr_index *index)
{
    return index->is_list ? index->list.class_count : index->class_count;
}

const char *hr__index_label_name(const struct hr_index *index, size_t label)
{
    if (label >= hr__index_label_count(index))
        return NULL;
    return index->is_list ? index->list.classes[label] : index->classes[label]->name;
}

struct hr_hash128 hr__index_identity(const struct hr_index *index)
{
    return index->identity;
}

void hr__index_stats(const struct hr_index *index, struct hr_index_stats *ret_stats)
{
    *ret_stats = index->stats;
}
