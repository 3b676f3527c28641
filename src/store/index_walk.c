/*
 * store/index_walk.c - the walk over all folders, by several threads.
 *
 * Folders wait on one stack under one lock; a thread takes one, reads it (or finds it
 * unchanged with one stat) and pushes its subfolders. The opening thread takes part and
 * alone reports progress; others start when there is more than one folder to read. The
 * result is sorted afterwards, so it does not depend on which thread read what.
 */
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/index_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS_MAX 64

struct walk {
    const struct hr_index_options *options;
    const struct hr_index_pattern *pattern;
    const struct hr_index_saved *saved;
    int root_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under lock */
    struct hr_index_folder *todo;
    size_t todo_count, busy;
    struct hr_index_tree tree;
    enum hr_err err;
    struct hr_error error;
    bool stop;
};

static enum hr_err
make_child(struct walk *walk, struct hr_index_folder *folder, uint32_t record)
{
    size_t bytes;
    const char *name = hr__index_saved_folder_name(walk->saved, record, &bytes);
    struct hr_index_folder *child = hr__index_folder_create(folder, name, bytes);

    if (child == NULL)
        return HR_ERR_MEMORY;
    child->record = record;
    child->states = hr__index_pattern_enter(walk->pattern, folder->states, name, bytes);
    folder->children[folder->child_count++] = child;
    return HR_OK;
}

/* Takes names and subfolders of `folder` from its record. */
static enum hr_err reuse(struct walk *walk, struct hr_index_folder *folder)
{
    const uint32_t *first_child = walk->saved->first_child;
    uint32_t first = first_child[folder->record], end = first_child[folder->record + 1];

    hr__index_saved_names(walk->saved, folder->record, folder);
    if (first == end)
        return HR_OK;
    folder->children = hr__calloc(end - first, sizeof *folder->children);
    if (folder->children == NULL)
        return HR_ERR_MEMORY;
    folder->heap_bytes += (end - first) * sizeof *folder->children;
    for (uint32_t i = first; i < end; i++) {
        if (make_child(walk, folder, i) != HR_OK)
            return HR_ERR_MEMORY;
    }
    return HR_OK;
}

/* Returns whether `folder` is as it was when it was saved; notes inode and time. */
static bool is_unchanged(struct walk *walk, struct hr_index_folder *folder)
{
    char path[HR_INDEX_PATH_MAX];
    size_t bytes = hr__index_folder_path(folder, path, sizeof path - 1);
    struct stat info;

    if (bytes == SIZE_MAX)
        return false;
    path[bytes] = '\0';
    if (fstatat(walk->root_fd, bytes == 0 ? "." : path, &info, 0) != 0 ||
        !S_ISDIR(info.st_mode))
        return false;
    folder->dev = info.st_dev;
    folder->ino = info.st_ino;
    folder->mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return hr__index_saved_is_current(walk->saved, folder->record, folder->ino,
                                      folder->mtime_ns);
}

/* Gives the subfolders of a folder that was read again their old records. */
static void match_children(struct walk *walk, struct hr_index_folder *folder)
{
    for (uint32_t i = 0; i < folder->child_count; i++) {
        struct hr_index_folder *child = folder->children[i];

        child->record = hr__index_saved_find_child(walk->saved, folder->record,
                                                   child->name, child->name_bytes);
    }
}

static enum hr_err visit(struct walk *walk, struct hr_index_lister *lister,
                         struct hr_index_folder *folder, struct hr_error *error)
{
    if (walk->options->cancel != NULL && atomic_load(walk->options->cancel))
        return hr__fail(error, HR_ERR_CANCELLED, "cancelled while listing %s",
                        walk->options->root);
    if (folder->record == HR_INDEX_NO_RECORD)
        return hr__index_list_folder(lister, folder, error);
    if (is_unchanged(walk, folder)) {
        if (reuse(walk, folder) == HR_OK)
            return HR_OK;
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    }
    HR_TRY(hr__index_list_folder(lister, folder, error));
    match_children(walk, folder);
    return HR_OK;
}

static void push_folder(struct walk *walk, struct hr_index_folder *folder)
{
    folder->next = walk->todo;
    walk->todo = folder;
    walk->todo_count++;
}

/* Lock held. Adds a visited folder to the tree and pushes its subfolders so that the
 * first is on top. After a failure too: the tree owns them. */
static void account(struct walk *walk, struct hr_index_folder *folder)
{
    struct hr_index_tree *tree = &walk->tree;

    hr__assert_locked(&walk->lock);
    folder->next = tree->all;
    tree->all = folder;
    tree->folders++;
    tree->files += folder->names.count;
    tree->skipped += folder->skipped;
    tree->heap_bytes += folder->heap_bytes;
    tree->rescanned += folder->rescanned;
    if (folder->rescanned && walk->saved != NULL &&
        (folder->record == HR_INDEX_NO_RECORD ||
         !hr__index_saved_same(walk->saved, folder->record, folder)))
        tree->differs = true;
    if (folder->rescanned &&
        folder->ino == 0) { /* it was gone when it should have been read */
        if (folder->record != HR_INDEX_NO_RECORD)
            tree->stale = true;
        if (folder->parent != NULL)
            folder->parent->unsure = true;
    }
    for (uint32_t i = folder->child_count; i-- > 0;)
        push_folder(walk, folder->children[i]);
    if (tree->folders + walk->todo_count > HR_INDEX_FOLDERS_MAX && walk->err == HR_OK) {
        walk->err = hr__fail(&walk->error, HR_ERR_LIMIT, "over %u folders in %s",
                             HR_INDEX_FOLDERS_MAX, walk->options->root);
    }
}

/* Lock held on entry and exit. */
static void visit_one(struct walk *walk, struct hr_index_lister *lister)
{
    struct hr_index_folder *folder = walk->todo;
    struct hr_error error = {0};
    enum hr_err err;

    walk->todo = folder->next;
    walk->todo_count--;
    walk->busy++;
    pthread_mutex_unlock(&walk->lock);
    err = visit(walk, lister, folder, &error);
    pthread_mutex_lock(&walk->lock);
    walk->busy--;
    if (err != HR_OK && walk->err == HR_OK) {
        walk->err = err;
        walk->error = error;
    }
    account(walk, folder);
    if (walk->err != HR_OK || walk->tree.stale)
        walk->stop = true;
    if (folder->child_count > 0 || walk->stop || (walk->busy == 0 && walk->todo == NULL))
        pthread_cond_broadcast(&walk->changed);
}

static const char *base_of(const struct hr_index_pattern *pattern)
{
    return pattern->base[0] == '\0' && pattern->is_glob ? "." : pattern->base;
}

static struct hr_index_lister lister_of(struct walk *walk)
{
    return (struct hr_index_lister){
        .pattern = walk->pattern,
        .cancel = walk->options->cancel,
        .root_fd = walk->root_fd,
        .root = base_of(walk->pattern),
    };
}

static void *help(void *user)
{
    struct walk *walk = user;
    struct hr_index_lister lister = lister_of(walk);

    if (hr__index_lister_init(&lister, NULL) != HR_OK)
        return NULL; /* the others do the work */
    pthread_mutex_lock(&walk->lock);
    for (;;) {
        while (!walk->stop && walk->todo == NULL && walk->busy > 0)
            pthread_cond_wait(&walk->changed, &walk->lock);
        if (walk->stop || walk->todo == NULL)
            break;
        visit_one(walk, &lister);
    }
    pthread_mutex_unlock(&walk->lock);
    hr__index_lister_finish(&lister);
    return NULL;
}

/* Lock held. As help(), and starts the helpers when there is work for them. */
static void lead(struct walk *walk, struct hr_index_lister *lister, pthread_t *helpers,
                 int *helper_count, int helpers_wanted)
{
    const struct hr_index_options *options = walk->options;

    for (;;) {
        while (!walk->stop && walk->todo == NULL && walk->busy > 0)
            pthread_cond_wait(&walk->changed, &walk->lock);
        if (walk->stop || walk->todo == NULL)
            return;
        visit_one(walk, lister);
        while (*helper_count < helpers_wanted && walk->todo_count > 1) {
            if (hr__thread_start(&helpers[*helper_count], "hr-index", help, walk, NULL) !=
                HR_OK)
                helpers_wanted = *helper_count;
            else
                ++*helper_count;
        }
        if (options->progress != NULL) {
            uint64_t files = walk->tree.files;

            pthread_mutex_unlock(&walk->lock);
            options->progress(files, options->progress_user);
            pthread_mutex_lock(&walk->lock);
        }
    }
}

static enum hr_err
open_root(const struct hr_index_options *options, const struct hr_index_pattern *pattern,
          int *ret_fd, struct hr_error *reterr)
{
    const char *path = base_of(pattern);
    int fd = -1, errnum;

    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    errnum = errno;
    *ret_fd = fd;
    if (fd >= 0)
        return HR_OK;
    if (errnum == ENOTDIR)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "%s is a file, not a folder: name its folder, or a pattern like "
                        "folder/*.jpg",
                        options->root);
    return hr__fail_errno(reterr, errnum == ENOENT ? HR_ERR_NOT_FOUND : HR_ERR_IO, errnum,
                          "cannot read folder %s", path);
}

static int helpers_for(const struct hr_index_options *options)
{
    int threads = options->threads > 0 ? options->threads : hr__cpu_count();

    return (threads < THREADS_MAX ? threads : THREADS_MAX) - 1;
}

static enum hr_err run_walk(struct walk *walk, struct hr_error *reterr)
{
    pthread_t helpers[THREADS_MAX];
    int helper_count = 0;
    struct hr_index_lister lister = lister_of(walk);
    struct hr_index_folder *root = hr__index_folder_create(NULL, "", 0);

    if (root == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    root->states = hr__index_pattern_start(walk->pattern);
    root->record = walk->saved != NULL ? 0 : HR_INDEX_NO_RECORD;
    walk->tree.root = root;
    push_folder(walk, root);
    walk->err = hr__index_lister_init(&lister, &walk->error);
    pthread_mutex_lock(&walk->lock);
    if (walk->err == HR_OK)
        lead(walk, &lister, helpers, &helper_count, helpers_for(walk->options));
    pthread_mutex_unlock(&walk->lock);
    for (int i = 0; i < helper_count; i++)
        pthread_join(helpers[i], NULL);
    hr__index_lister_finish(&lister);
    while (walk->todo != NULL) { /* after a failure: owned by the tree too */
        struct hr_index_folder *folder = walk->todo;

        walk->todo = folder->next;
        folder->next = walk->tree.all;
        walk->tree.all = folder;
    }
    if (walk->err != HR_OK && reterr != NULL)
        *reterr = walk->error;
    return walk->err;
}

enum hr_err
hr__index_walk(const struct hr_index_options *options,
               const struct hr_index_pattern *pattern, const struct hr_index_saved *saved,
               struct hr_index_tree *ret_tree, struct hr_error *reterr)
{
    struct walk walk = {.options = options, .pattern = pattern, .saved = saved};
    enum hr_err err;

    HR_TRY(open_root(options, pattern, &walk.root_fd, reterr));
    pthread_mutex_init(&walk.lock, NULL);
    pthread_cond_init(&walk.changed, NULL);
    err = run_walk(&walk, reterr);
    pthread_cond_destroy(&walk.changed);
    pthread_mutex_destroy(&walk.lock);
    close(walk.root_fd);
    if (err == HR_OK)
        *ret_tree = walk.tree;
    else
        hr__index_tree_finish(&walk.tree);
    return err;
}

void hr__index_tree_finish(struct hr_index_tree *tree)
{
    while (tree->all != NULL) {
        struct hr_index_folder *folder = tree->all;

        tree->all = folder->next;
        hr__index_folder_destroy(folder);
    }
    memset(tree, 0, sizeof *tree);
}
