/*
 * store/index.c - the public functions of the index: opening, order, paths, labels.
 *
 * Files are ordered by the bytes of their paths. A folder keeps its own names sorted, and
 * its subfolders fall between them, so the order of all files is a short list of runs,
 * each a range of one folder's names. A position is found by bisecting the runs. Nothing
 * is stored per file.
 */
#include "core/alloc.h"
#include "core/bisect.h"
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
    if (!hr__array_room(&order->runs, order->run_count, &order->run_room, 2,
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
    if (!hr__array_room(&order->stack, order->depth, &order->stack_room, 1,
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
    ok = ok && hr__array_room(&order.runs, order.run_count, &order.run_room, 1,
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

static enum hr_err unknown_folder(const struct hr_index *index, const char *root,
                                  const char *name, struct hr_error *reterr)
{
    struct hr_str what;

    hr__str_init(&what);
    hr__index_class_tail(&index->classes, name, &what);
    hr__fail(reterr, HR_ERR_ARGUMENT, "folder %s%s%s: class %s", root,
             root[0] != '\0' && root[strlen(root) - 1] == '/' ? "" : "/", name,
             hr__str_text(&what));
    hr__str_finish(&what);
    return HR_ERR_ARGUMENT;
}

/* Numbers the folders in root by plain name; paths sort differently ("a-b/" < "a/"). */
static enum hr_err
number_folders(struct hr_index *index, const struct hr_index_options *options,
               struct hr_class_set *set, struct hr_error *reterr)
{
    const struct hr_index_folder *root = index->tree.root;
    bool given = options->class_count > 0;
    uint32_t *ranks = NULL;

    if (given)
        HR_TRY(hr__index_given_classes(options, set, &index->classes, reterr));
    for (uint32_t i = 0; i < root->child_count; i++) {
        struct hr_index_folder *child = root->children[i];
        int64_t number = given ? hr__class_find(set, child->name, child->name_bytes)
                               : hr__class_add(set, child->name, child->name_bytes);

        if (number < 0 && given)
            return unknown_folder(index, options->root, child->name, reterr);
        if (number < 0)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        child->number = (uint32_t)number;
    }
    if (given)
        return HR_OK;
    ranks = hr__malloc(set->count * sizeof *ranks + 1);
    if (ranks == NULL || hr__class_close(set, ranks, &index->classes) != HR_OK) {
        hr__free(ranks);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < root->child_count; i++)
        root->children[i]->number = ranks[root->children[i]->number];
    hr__free(ranks);
    return HR_OK;
}

static enum hr_err
folder_classes(struct hr_index *index, const struct hr_index_options *options,
               struct hr_error *reterr)
{
    const struct hr_index_folder *root = index->tree.root;
    struct hr_class_set set = {0};
    char name[HR_INDEX_PATH_MAX];
    enum hr_err err;

    if (root->names.count > 0) {
        size_t bytes = hr__index_name(&root->names, 0, name);

        return hr__index_unlabelled(name, bytes, options->root, root->names.count,
                                    reterr);
    }
    err = number_folders(index, options, &set, reterr);
    hr__class_set_free(&set);
    return err;
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
                             index->classes.bytes + sizeof *index;
}

/* Whether the given classes are others than those of the folders, in another order, or
 * more: labels are then not what they would be without. */
static bool
renumbers(const struct hr_index *index, const struct hr_index_options *options)
{
    const struct hr_index_folder *root = index->tree.root;
    const char *const *names = options->classes;

    if (options->class_count == 0)
        return false;
    for (size_t i = 1; i < options->class_count; i++) {
        if (strcmp(names[i - 1], names[i]) > 0)
            return true;
    }
    return options->class_count != root->child_count;
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
        HR_TRY(folder_classes(index, options, reterr));
    index->labels_count = options->folder_labels && !renumbers(index, options);
    HR_TRY(hr__index_order(index, reterr));
    if (index->count == 0)
        return no_files(options, pattern, reterr);
    if (index->saved.records != NULL && !index->tree.differs &&
        index->saved.identity_has_labels == index->labels_count)
        index->identity = index->saved.identity;
    else
        HR_TRY(hr__index_identify(index, reterr));
    note_stats(index);
    if (differs)
        index->stats.save_failed = hr__index_save(index, options->saved, NULL) != HR_OK;
    if (index->labels_count == options->folder_labels)
        return HR_OK;
    index->labels_count = true;
    return hr__index_identify(index, reterr);
}

static uint64_t list_bytes(const struct hr_index_list *list)
{
    uint64_t bytes = list->labels != NULL ? list->table.rows * sizeof *list->labels : 0;

    for (size_t i = 0; i < list->table.column_count; i++) {
        const struct hr_table_column *column = &list->table.columns[i];

        if (column->used)
            bytes += column->type == HR_TABLE_TEXT
                         ? column->text_room + column->offset_room * sizeof(uint64_t)
                         : column->cells * sizeof(int64_t);
    }
    return bytes;
}

static enum hr_err
finish_list(struct hr_index *index, const struct hr_index_options *options,
            struct hr_class_set *set, struct hr_error *reterr)
{
    HR_TRY(hr__index_list_labels(&index->list, options, set, &index->classes, reterr));
    index->count = index->list.table.rows;
    index->stats.bytes_resident =
        sizeof *index + list_bytes(&index->list) + index->classes.bytes;
    return hr__index_identify(index, reterr);
}

/* A folder of another store. */
static enum hr_err
open_store(struct hr_index *index, const struct hr_index_options *options,
           const struct hr_index_pattern *pattern, struct hr_error *reterr)
{
    struct hr_class_set set = {0};
    enum hr_err err = make_prefix(index, pattern->base, reterr);

    index->is_list = true;
    if (err == HR_OK)
        err = hr__index_list_store(options, pattern, &index->list, &set,
                                   &index->stats.skipped, reterr);
    if (err == HR_OK && index->list.table.rows == 0)
        err = no_files(options, pattern, reterr);
    if (err == HR_OK)
        err = finish_list(index, options, &set, reterr);
    hr__class_set_free(&set);
    return err;
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
    struct hr_index_list *list = &index->list;
    struct hr_class_set set = {0};
    enum hr_err err;

    if (options->folder_labels && !options->listed)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "labels come from %s or from folders, not from both",
                        list->table.path);
    if (!remote)
        HR_TRY(check_root(options->root, reterr));
    HR_TRY(make_prefix(index, options->root, reterr));
    HR_TRY(hr__index_list_check(list, reterr));
    if (!options->listed)
        HR_TRY(hr__index_list_match(list, options, &index->stats, reterr));
    if (list->table.rows == 0)
        return hr__fail(reterr, HR_ERR_NOT_FOUND, "no files in %s", list->table.path);
    err = finish_list(index, options, &set, reterr);
    hr__class_set_free(&set);
    return err;
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

    index = hr__calloc(1, sizeof *index);
    if (index == NULL) {
        if (options->table != NULL)
            hr__table_finish(options->table);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    atomic_init(&index->refs, 1);
    if (options->table != NULL) {
        index->is_list = true;
        index->list.table = *options->table;
        index->list.path = options->path_column;
        index->list.label = options->label_column;
        *options->table = (struct hr_table){0};
    }
    if (options->root == NULL || options->root[0] == '\0') {
        hr__index_unref(index);
        return hr__fail(reterr, HR_ERR_ARGUMENT, "the name of the folder is missing");
    }
    remote = hr__store_is_remote(options->root, &own.root);
    if (remote)
        own.root = options->root; /* names of its files are URIs */
    err = index->is_list ? open_list(index, &own, remote, reterr)
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
    hr__classes_free(&index->classes);
    hr__free(index->prefix);
    hr__free(index);
}

uint64_t hr__index_count(const struct hr_index *index)
{
    return index->count;
}

static const struct hr_index_run *run_of(const struct hr_index *index, uint64_t at)
{
    return &index->runs[HR_BISECT(index->runs, index->run_count, start, at)];
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

size_t hr__index_root_bytes(const struct hr_index *index, uint64_t at)
{
    size_t bytes;

    if (index->is_list && hr__index_list_path(&index->list, at, &bytes)[0] == '/')
        return 0;
    return index->prefix_bytes;
}

enum hr_err hr__index_path(const struct hr_index *index, uint64_t at, char *path,
                           size_t room, size_t *ret_length)
{
    size_t begin = hr__index_root_bytes(index, at), bytes;

    if (index->is_list) {
        const char *text = hr__index_list_path(&index->list, at, &bytes);

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
    const struct hr_index_list *list = &index->list;

    if (!index->is_list)
        return index->folder_labels ? run_of(index, at)->label : -1;
    if (list->labels != NULL)
        return list->labels[at];
    if (list->label >= 0 && list->table.columns[list->label].type == HR_TABLE_INT)
        return ((const int64_t *)list->table.columns[list->label].numbers)[at];
    return -1;
}

const struct hr_table *hr__index_table(const struct hr_index *index)
{
    return index->is_list ? &index->list.table : NULL;
}

const struct hr_classes *hr__index_classes(const struct hr_index *index)
{
    return &index->classes;
}

struct hr_hash128 hr__index_identity(const struct hr_index *index)
{
    return index->identity;
}

void hr__index_stats(const struct hr_index *index, struct hr_index_stats *ret_stats)
{
    *ret_stats = index->stats;
}
