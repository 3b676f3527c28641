/*
 * store/index_folder.c - one folder: its entries, and the names of its files.
 *
 * getdents64 with a large buffer gives names and types without a stat per file; only
 * links, and entries of file systems that do not report types, are stat'ed one by one.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "store/index_internal.h"
#include "store/store_internal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DENTS_BYTES ((size_t)256 << 10)

struct hr_index_folder *
hr__index_folder_create(struct hr_index_folder *parent, const char *name, size_t bytes)
{
    struct hr_index_folder *folder = hr__calloc(1, sizeof *folder + bytes + 1);

    if (folder == NULL)
        return NULL;
    folder->parent = parent;
    folder->record = HR_INDEX_NO_RECORD;
    folder->name_bytes = bytes;
    folder->heap_bytes = sizeof *folder + bytes + 1;
    memcpy(folder->name, name, bytes);
    return folder;
}

void hr__index_folder_destroy(struct hr_index_folder *folder)
{
    if (folder == NULL)
        return;
    hr__free(folder->children);
    hr__free(folder->block);
    hr__free(folder);
}

int hr__index_compare_folders(const char *a, size_t a_bytes, const char *b,
                              size_t b_bytes)
{
    size_t least = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = memcmp(a, b, least);
    unsigned char a_next, b_next;

    if (order != 0 || a_bytes == b_bytes)
        return order;
    a_next = least < a_bytes ? (unsigned char)a[least] : '/';
    b_next = least < b_bytes ? (unsigned char)b[least] : '/';
    return a_next - b_next;
}

size_t
hr__index_folder_path(const struct hr_index_folder *folder, char *path, size_t room)
{
    size_t bytes = 0, at;

    for (const struct hr_index_folder *f = folder; f->parent != NULL; f = f->parent)
        bytes += f->name_bytes + (f->parent->parent != NULL);
    if (bytes > room)
        return SIZE_MAX;
    at = bytes;
    for (const struct hr_index_folder *f = folder; f->parent != NULL; f = f->parent) {
        at -= f->name_bytes;
        memcpy(path + at, f->name, f->name_bytes);
        if (f->parent->parent != NULL)
            path[--at] = '/';
    }
    return bytes;
}

size_t hr__index_name(const struct hr_index_names *names, uint32_t at, char *name)
{
    size_t begin = names->offset[at], end = names->offset[at + 1];
    size_t prefix = names->prefix_bytes, suffix = names->suffix_bytes;

    /* Checked when loaded, and again in case another process has written to the file. */
    if (begin > end || end > names->pool_bytes ||
        end - begin + prefix + suffix >= HR_INDEX_PATH_MAX)
        return 0;
    memcpy(name, names->pool, prefix);
    memcpy(name + prefix, names->pool + begin, end - begin);
    memcpy(name + prefix + (end - begin), names->pool + prefix, suffix);
    return prefix + (end - begin) + suffix;
}

enum hr_err hr__index_lister_init(struct hr_index_lister *lister, struct hr_error *reterr)
{
    lister->dents = hr__malloc(DENTS_BYTES);
    if (lister->dents == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__index_lister_finish(struct hr_index_lister *lister)
{
    for (size_t i = 0; i < lister->folder_count; i++)
        hr__index_folder_destroy(lister->folders[i]);
    hr__free(lister->folders);
    hr__free(lister->files);
    hr__free(lister->text.data);
    hr__free(lister->dents);
}

static enum hr_err
add_file(struct hr_index_lister *lister, const char *name, size_t bytes)
{
    struct hr_index_bytes *text = &lister->text;

    if (!hr__array_room(&text->data, text->bytes, &text->room, bytes, 1) ||
        !hr__array_room(&lister->files, lister->file_count, &lister->file_room, 1,
                        sizeof *lister->files))
        return HR_ERR_MEMORY;
    if (text->bytes > UINT32_MAX - bytes)
        return HR_ERR_LIMIT;
    memcpy(text->data + text->bytes, name, bytes);
    lister->files[lister->file_count++] = (struct hr_index_entry){
        .at = (uint32_t)text->bytes,
        .bytes = (uint32_t)bytes,
    };
    text->bytes += bytes;
    return HR_OK;
}

static enum hr_err
add_folder(struct hr_index_lister *lister, struct hr_index_folder *parent,
           uint64_t states, const char *name, size_t bytes)
{
    struct hr_index_folder *folder;

    if (!hr__array_room(&lister->folders, lister->folder_count, &lister->folder_room, 1,
                        sizeof *lister->folders))
        return HR_ERR_MEMORY;
    folder = hr__index_folder_create(parent, name, bytes);
    if (folder == NULL)
        return HR_ERR_MEMORY;
    folder->states = states;
    lister->folders[lister->folder_count++] = folder;
    return HR_OK;
}

/* The type of what a link leads to: DT_REG, DT_DIR or neither. One that leads nowhere is
 * taken for a file, which then cannot be read. */
static unsigned char look_at(int fd, const char *name, struct hr_index_folder *folder)
{
    struct stat info;

    if (fstatat(fd, name, &info, 0) != 0) {
        folder->unsure = true; /* its target may appear later */
        return errno == ENOENT ? DT_REG : DT_UNKNOWN;
    }
    return S_ISREG(info.st_mode) ? DT_REG : S_ISDIR(info.st_mode) ? DT_DIR : DT_UNKNOWN;
}

static enum hr_err
take_entry(struct hr_index_lister *lister, int fd, struct hr_index_folder *folder,
           unsigned char kind, const char *name)
{
    size_t bytes = strlen(name);
    bool look = kind == DT_LNK || kind == DT_UNKNOWN;
    uint64_t states = 0;
    bool accept = false;

    if (name[0] == '.' && (bytes == 1 || (bytes == 2 && name[1] == '.')))
        return HR_OK;
    if (kind != DT_DIR)
        accept = hr__index_pattern_accepts(lister->pattern, folder->states, name, bytes);
    if (kind == DT_DIR || look)
        states = hr__index_pattern_enter(lister->pattern, folder->states, name, bytes);
    if (!accept && states == 0)
        return HR_OK;
    if (look)
        kind = look_at(fd, name, folder);
    if (kind == DT_REG)
        return accept ? add_file(lister, name, bytes) : HR_OK;
    if (kind == DT_DIR)
        return states != 0 ? add_folder(lister, folder, states, name, bytes) : HR_OK;
    folder->skipped += accept;
    return HR_OK;
}

/* errno, or 0 */
static int take_all(struct hr_index_lister *lister, int fd,
                    struct hr_index_folder *folder, enum hr_err *ret_err)
{
    for (;;) {
        long got = -1;

        if (lister->cancel != NULL && atomic_load(lister->cancel)) {
            *ret_err = HR_ERR_CANCELLED;
            return 0;
        }
        errno = EIO;
        if (!hr__fault(HR_FAULT_READ))
            got = syscall(SYS_getdents64, fd, lister->dents, DENTS_BYTES);
        if (got == 0)
            return 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        for (long at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(lister->dents + at);

            *ret_err = take_entry(lister, fd, folder, entry->d_type, entry->d_name);
            if (*ret_err != HR_OK)
                return 0;
            at += entry->d_reclen;
        }
    }
}

static void note_times(struct hr_index_folder *folder, const struct stat *info)
{
    folder->dev = info->st_dev;
    folder->ino = info->st_ino;
    folder->mtime_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
    folder->unsure = hr__store_is_young(folder->mtime_ns);
}

static bool is_inside_itself(const struct hr_index_folder *folder)
{
    for (const struct hr_index_folder *f = folder->parent; f != NULL; f = f->parent) {
        if (f->ino == folder->ino && f->dev == folder->dev)
            return true;
    }
    return false;
}

static int compare_found(const void *a, const void *b)
{
    const struct hr_index_folder *const *x = a, *const *y = b;

    return hr__index_compare_folders((*x)->name, (*x)->name_bytes, (*y)->name,
                                     (*y)->name_bytes);
}

static enum hr_err
adopt_children(struct hr_index_lister *lister, struct hr_index_folder *folder)
{
    size_t count = lister->folder_count, bytes = count * sizeof *folder->children;

    if (count == 0)
        return HR_OK;
    if (count > HR_INDEX_FOLDERS_MAX)
        return HR_ERR_LIMIT;
    folder->children = hr__malloc(bytes);
    if (folder->children == NULL)
        return HR_ERR_MEMORY;
    memcpy(folder->children, lister->folders, bytes);
    qsort(folder->children, count, sizeof *folder->children, compare_found);
    folder->child_count = (uint32_t)count;
    folder->heap_bytes += bytes;
    lister->folder_count = 0;
    return HR_OK;
}

static int open_folder(const struct hr_index_lister *lister, const char *path)
{
    if (hr__fault(HR_FAULT_OPEN)) {
        errno = EACCES;
        return -1;
    }
    return openat(lister->root_fd, path[0] == '\0' ? "." : path,
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

enum hr_err hr__index_list_folder(struct hr_index_lister *lister,
                                  struct hr_index_folder *folder, struct hr_error *reterr)
{
    char path[HR_INDEX_PATH_MAX];
    size_t bytes = hr__index_folder_path(folder, path, sizeof path - 1);
    enum hr_err err = HR_OK;
    struct stat info;
    int fd, errnum = 0;

    if (bytes == SIZE_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a path in %s is over %d bytes long",
                        lister->root, HR_INDEX_PATH_MAX - 1);
    path[bytes] = '\0';
    lister->file_count = lister->text.bytes = 0;
    folder->rescanned = true;
    fd = open_folder(lister, path);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && folder->parent != NULL) {
        folder->unsure = true; /* gone since it was listed */
        return HR_OK;
    }
    if (fd < 0 || fstat(fd, &info) != 0) {
        errnum = errno;
    } else {
        note_times(folder, &info);
        if (is_inside_itself(folder))
            folder->skipped = folder->unsure = 1;
        else
            errnum = take_all(lister, fd, folder, &err);
    }
    if (fd >= 0)
        close(fd);
    if (errnum != 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errnum, "cannot read folder %s%s%s",
                              lister->root, bytes > 0 ? "/" : "", path);
    if (err == HR_OK)
        err = adopt_children(lister, folder);
    if (err == HR_OK)
        err = hr__index_pack(lister, folder, reterr);
    if (err == HR_ERR_CANCELLED || err == HR_ERR_MEMORY || err == HR_ERR_LIMIT)
        hr__fail(reterr, err, "reading folder %s%s%s: %s", lister->root,
                 bytes > 0 ? "/" : "", path, hr_err_text(err));
    return err;
}
