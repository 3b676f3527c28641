/*
 * store/store_file.c - files: open, fstat, read, close, and nothing else when a file is
 * cached.
 *
 * O_NONBLOCK keeps a FIFO from hanging in open. The first read asks for what is in the
 * page cache only; that it gives less than the file is how a cold file is known. Where
 * the kernel or the file system cannot answer that, the time of a plain read tells. A
 * file has the identity of its inode, size and time; a change within the resolution of
 * the clock that keeps the size goes unnoticed.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "store/store_internal.h"
#include "store/walk.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- open ---- */

enum hr_err
hr__store_file_open_failed(int errnum, const char *uri, struct hr_error *reterr)
{
    hr__store_note(reterr, uri);
    return hr__fail_errno(
        reterr, errnum == ENOENT || errnum == ENOTDIR ? HR_ERR_NOT_FOUND : HR_ERR_IO,
        errnum, "cannot open %s", uri);
}

static struct hr_hash128 identity_of(const struct stat *info)
{
    const uint64_t words[5] = {info->st_dev, info->st_ino, (uint64_t)info->st_size,
                               (uint64_t)info->st_mtim.tv_sec,
                               (uint64_t)info->st_mtim.tv_nsec};

    return hr__hash128(words, sizeof words);
}

static enum hr_err
read_failed(int errnum, const struct hr_object *object, struct hr_error *reterr)
{
    hr__store_note(reterr, object->uri);
    return hr__fail_errno(reterr, HR_ERR_IO, errnum, "cannot read %s", object->uri);
}

enum hr_err hr__store_file_look(struct hr_object *object, struct hr_error *reterr)
{
    struct stat info;

    errno = EIO;
    if (hr__fault(HR_FAULT_READ) || fstat(object->as.fd, &info) != 0)
        return read_failed(errno, object, reterr);
    if (!S_ISREG(info.st_mode)) {
        hr__store_note(reterr, object->uri);
        return hr__fail(reterr, HR_ERR_TYPE,
                        "%s is %s, not a file: only regular files are read", object->uri,
                        S_ISDIR(info.st_mode)    ? "a folder"
                        : S_ISFIFO(info.st_mode) ? "a pipe"
                                                 : "a device");
    }
    object->bytes = (uint64_t)info.st_size;
    object->identity = identity_of(&info);
    object->lasting = !hr__store_is_young((int64_t)info.st_mtim.tv_sec * 1000000000 +
                                          info.st_mtim.tv_nsec);
    return HR_OK;
}

static uint64_t ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

uint64_t hr__store_file_stamp(const char *path, uint64_t since)
{
    struct stat info;
    uint64_t words[3], stamp;

    if (hr__fault(HR_FAULT_OPEN) || stat(path, &info) != 0 ||
        ns_of(&info.st_ctim) > since)
        return HR_STAMP_UNKNOWN;
    words[0] = info.st_ino;
    words[1] = (uint64_t)info.st_size;
    words[2] = ns_of(&info.st_mtim);
    stamp = hr__hash64(words, sizeof words, 0);
    return stamp == 0 || stamp == HR_STAMP_UNKNOWN ? 1 : stamp;
}

static enum hr_err
file_open(const char *name, struct hr_object *object, struct hr_error *reterr)
{
    enum hr_err err;
    int fd = -1;

    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        fd = open(name, HR_STORE_FILE_FLAGS);
    if (fd < 0)
        return hr__store_file_open_failed(errno, object->uri, reterr);
    object->as.fd = fd;
    err = hr__store_file_look(object, reterr);
    if (err != HR_OK)
        close(fd);
    return err;
}

static void file_close(struct hr_object *object)
{
    close(object->as.fd);
}

/* ---- read ---- */

static enum hr_err file_read(struct hr_object *object, uint64_t offset, void *data,
                             size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    ssize_t got;

    do
        got = pread(object->as.fd, data, bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return read_failed(errno, object, reterr);
    *ret_got = (size_t)got;
    return HR_OK;
}

static int64_t
file_read_ready(struct hr_object *object, uint64_t offset, void *data, size_t bytes)
{
    struct iovec part = {data, bytes};
    ssize_t got;

    if (hr__fault(HR_FAULT_READ))
        return 0; /* as if it were not cached */
    got = preadv2(object->as.fd, &part, 1, (off_t)offset, RWF_NOWAIT);
    if (got >= 0)
        return got;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static bool file_is_same(const struct hr_object *object)
{
    struct stat info;

    return fstat(object->as.fd, &info) == 0 &&
           hr__hash_equal(identity_of(&info), object->identity);
}

/* ---- map ---- */

static enum hr_err
file_map(struct hr_object *object, struct hr_store_map *map, struct hr_error *reterr)
{
    void *data = NULL;

    if (map->bytes > 0)
        data = mmap(NULL, map->bytes, PROT_READ, MAP_PRIVATE, object->as.fd, 0);
    if (data == MAP_FAILED)
        return read_failed(errno, object, reterr);
    map->data = data;
    return HR_OK;
}

static void file_unmap(struct hr_store_map *map)
{
    if (map->data != NULL)
        munmap((void *)(uintptr_t)map->data, map->bytes);
}

/* ---- list ---- */

static enum hr_err
add_entry(DIR *folder, const struct dirent *entry, struct hr_walk_names *names)
{
    const char *name = entry->d_name;
    unsigned char kind = entry->d_type;
    struct stat info;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return HR_OK;
    if (kind == DT_LNK || kind == DT_UNKNOWN) {
        if (fstatat(dirfd(folder), name, &info, 0) == 0)
            kind = S_ISREG(info.st_mode)   ? DT_REG
                   : S_ISDIR(info.st_mode) ? DT_DIR
                                           : DT_UNKNOWN;
        else if (errno == ENOENT) /* leads nowhere: reading it says so */
            kind = DT_REG;
    }
    return kind == DT_REG || kind == DT_DIR ? hr__walk_add(names, name, kind == DT_DIR)
                                            : HR_OK;
}

static enum hr_err read_folder(void *own, const char *path, struct hr_walk_names *names,
                               struct hr_error *reterr)
{
    const struct dirent *entry;
    enum hr_err err = HR_OK;
    DIR *folder = NULL;

    (void)own;
    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        folder = opendir(path);
    if (folder == NULL)
        return hr__store_file_open_failed(errno, path, reterr);
    while (err == HR_OK && (entry = readdir(folder)) != NULL)
        err = add_entry(folder, entry, names);
    closedir(folder);
    return err;
}

static enum hr_err
file_list(const char *name, hr_store_visit_fn *visit, void *user, struct hr_error *reterr)
{
    return hr__walk(name, read_folder, NULL, visit, user, reterr);
}

const struct hr_store hr_store_file = {
    .scheme = "file",
    .open = file_open,
    .close = file_close,
    .read = file_read,
    .read_ready = file_read_ready,
    .is_same = file_is_same,
    .load = hr__file_read,
    .map = file_map,
    .unmap = file_unmap,
    .list = file_list,
    .gives = "files",
    .start = hr__channel_start_uring,
};
