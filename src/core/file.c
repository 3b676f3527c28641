/*
 * core/file.c - reading and atomically replacing whole files.
 *
 * When commit returns, the file is on disk: first its data, then the rename. A crash
 * leaves either the old or the new file, and at worst a temporary file next to it.
 */
#include "core/file.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/kill_point.h"
#include "core/str.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file is written in pieces of this size, at multiples of it: fewer system calls, and
 * the page cache keeps them in large folios, from which reads are faster. */
#define GATHER_BYTES ((size_t)256 << 10)

struct hr_file_writer {
    int fd;
    bool broken;            /* a write failed */
    char *path, *temporary; /* NULL: the path itself is written, a device or a pipe */
    char *gathered;
    size_t used;
};

static enum hr_err err_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return HR_ERR_NOT_FOUND;
    case ENOMEM:
        return HR_ERR_MEMORY;
    default:
        return HR_ERR_IO;
    }
}

static enum hr_err fail_at(struct hr_error *reterr, const char *what, const char *path)
{
    int errnum = errno;

    hr__fail_errno(reterr, err_of_errno(errnum), errnum, "cannot %s %s", what, path);
    if (reterr != NULL)
        snprintf(reterr->file, sizeof reterr->file, "%s", path);
    return err_of_errno(errnum);
}

static enum hr_err no_memory(struct hr_error *reterr, const char *what, const char *path)
{
    errno = ENOMEM;
    return fail_at(reterr, what, path);
}

static int open_file(const char *path, int flags, mode_t mode)
{
    if (hr__fault(HR_FAULT_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return open(path, flags | O_CLOEXEC, mode);
}

static ssize_t read_some(int fd, void *data, size_t bytes)
{
    ssize_t got;

    if (hr__fault(HR_FAULT_READ)) {
        errno = EIO;
        return -1;
    }
    do
        got = read(fd, data, bytes);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Reads to the end of the file into *data, initially `room` bytes, growing as needed. */
static enum hr_err read_all(int fd, size_t room, size_t bytes_max, const char *path,
                            char **data, size_t *bytes, struct hr_error *reterr)
{
    for (;;) {
        ssize_t got;

        if (*data == NULL || *bytes + 1 >= room) {
            char *grown;

            room = *data == NULL ? room : 2 * room;
            grown = hr__realloc(*data, room);
            if (grown == NULL)
                return no_memory(reterr, "read", path);
            *data = grown;
        }
        got = read_some(fd, *data + *bytes, room - 1 - *bytes);
        if (got < 0)
            return fail_at(reterr, "read", path);
        if (got == 0)
            break;
        *bytes += (size_t)got;
        if (*bytes > bytes_max)
            return hr__fail(reterr, HR_ERR_LIMIT, "%s is larger than %zu bytes", path,
                            bytes_max);
    }
    (*data)[*bytes] = '\0';
    return HR_OK;
}

enum hr_err hr__file_read(const char *path, size_t bytes_max, char **ret_data,
                          size_t *ret_bytes, struct hr_error *reterr)
{
    int fd = open_file(path, O_RDONLY, 0);
    size_t bytes = 0, room = 4096;
    char *data = NULL;
    struct stat info;
    enum hr_err err;

    if (fd < 0)
        return fail_at(reterr, "open", path);
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        size_t known = (size_t)info.st_size;

        room = (known < bytes_max ? known : bytes_max) + 2;
        room = room < 64 ? 64 : room;
    }
    err = read_all(fd, room, bytes_max, path, &data, &bytes, reterr);
    close(fd);
    if (err != HR_OK) {
        hr__free(data);
        return err;
    }
    *ret_data = data;
    *ret_bytes = bytes;
    return HR_OK;
}

enum hr_err hr__file_map(const char *path, void **ret_data, size_t *ret_bytes,
                         struct hr_error *reterr)
{
    int fd = open_file(path, O_RDONLY, 0);
    struct stat info;
    void *data = NULL;
    enum hr_err err = HR_OK;

    if (fd < 0)
        return fail_at(reterr, "open", path);
    if (fstat(fd, &info) != 0)
        err = fail_at(reterr, "stat", path);
    else if (!S_ISREG(info.st_mode))
        err = hr__fail(reterr, HR_ERR_TYPE, "%s is not a regular file", path);
    else if (info.st_size > 0)
        data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        err = fail_at(reterr, "map", path);
    close(fd);
    if (err != HR_OK)
        return err;
    *ret_data = data;
    *ret_bytes = (size_t)info.st_size;
    return HR_OK;
}

static void free_writer(struct hr_file_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    hr__free(writer->path);
    hr__free(writer->temporary);
    hr__free(writer->gathered);
    hr__free(writer);
}

/* Creates a temporary file with an unused name in the target's folder, so that the rename
 * stays within one file system. */
static int open_temporary(struct hr_file_writer *writer)
{
    static atomic_uint serial;
    struct hr_str name;
    int fd = -1;

    for (int i = 0; i < 100; i++) {
        hr__str_init(&name);
        hr__str_addf(&name, "%s.tmp-%ld-%u", writer->path, (long)getpid(),
                     atomic_fetch_add(&serial, 1));
        writer->temporary = hr__str_take(&name);
        if (writer->temporary == NULL) {
            hr__str_finish(&name);
            errno = ENOMEM;
            return -1;
        }
        fd = open_file(writer->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd >= 0)
            return fd;
        hr__free(writer->temporary);
        writer->temporary = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* A device, pipe or socket, which no file may replace. */
static bool is_special(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

enum hr_err hr__file_begin(const char *path, struct hr_file_writer **ret_writer,
                           struct hr_error *reterr)
{
    struct hr_file_writer *writer = hr__calloc(1, sizeof *writer);
    struct stat old;

    if (writer == NULL)
        return no_memory(reterr, "write", path);
    writer->fd = -1;
    writer->path = hr__strdup(path);
    if (writer->path == NULL) {
        free_writer(writer);
        return no_memory(reterr, "write", path);
    }
    if (is_special(path))
        writer->fd = open_file(path, O_WRONLY, 0);
    else
        writer->fd = open_temporary(writer);
    if (writer->fd < 0) {
        enum hr_err err = fail_at(reterr, "write", path);

        free_writer(writer);
        return err;
    }
    if (stat(path, &old) == 0 && S_ISREG(old.st_mode))
        (void)fchmod(writer->fd, old.st_mode & 07777);
    *ret_writer = writer;
    return HR_OK;
}

static enum hr_err write_out(struct hr_file_writer *writer, const char *at, size_t bytes,
                             struct hr_error *reterr)
{
    while (bytes > 0) {
        ssize_t done = -1;

        if (hr__fault(HR_FAULT_WRITE))
            errno = ENOSPC;
        else
            done = write(writer->fd, at, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            writer->broken = true;
            return fail_at(reterr, "write", writer->path);
        }
        at += done;
        bytes -= (size_t)done;
    }
    return HR_OK;
}

static enum hr_err flush(struct hr_file_writer *writer, struct hr_error *reterr)
{
    size_t used = writer->used;

    writer->used = 0;
    return write_out(writer, writer->gathered, used, reterr);
}

enum hr_err hr__file_write(struct hr_file_writer *writer, const void *data, size_t bytes,
                           struct hr_error *reterr)
{
    const char *at = data;

    if (writer->gathered == NULL)
        writer->gathered = hr__malloc(GATHER_BYTES);
    if (writer->gathered == NULL) {
        writer->broken = true;
        return no_memory(reterr, "write", writer->path);
    }
    while (bytes > 0) {
        size_t room = GATHER_BYTES - writer->used, part = bytes < room ? bytes : room;

        if (part == GATHER_BYTES) { /* as many whole pieces as there are */
            part = bytes - bytes % GATHER_BYTES;
            HR_TRY(write_out(writer, at, part, reterr));
        } else {
            memcpy(writer->gathered + writer->used, at, part);
            writer->used += part;
        }
        at += part;
        bytes -= part;
        if (writer->used == GATHER_BYTES)
            HR_TRY(flush(writer, reterr));
    }
    return HR_OK;
}

/* Makes the rename durable. Some file systems reject fsync of a folder; they do not need
 * it. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    int fd;

    snprintf(folder, sizeof folder, "%.*s",
             slash == NULL   ? 1
             : slash == path ? 1
                             : (int)(slash - path),
             slash == NULL ? "." : path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

static int sync_and_rename(struct hr_file_writer *writer)
{
    int fd = writer->fd;

    if (hr__fault(HR_FAULT_WRITE)) {
        errno = ENOSPC;
        return -1;
    }
    HR_KILL_POINT("file.written");
    if (writer->temporary != NULL && fsync(fd) != 0)
        return -1;
    writer->fd = -1;
    if (close(fd) != 0)
        return -1;
    HR_KILL_POINT("file.synced");
    return writer->temporary != NULL ? rename(writer->temporary, writer->path) : 0;
}

enum hr_err hr__file_commit(struct hr_file_writer *writer, struct hr_error *reterr)
{
    enum hr_err err = HR_OK;

    if (writer->broken)
        err = hr__fail(reterr, HR_ERR_STATE, "cannot finish %s: an earlier write failed",
                       writer->path);
    else
        err = flush(writer, reterr);
    if (err == HR_OK && sync_and_rename(writer) != 0)
        err = fail_at(reterr, "write", writer->path);
    if (err != HR_OK) {
        hr__file_abort(writer);
        return err;
    }
    HR_KILL_POINT("file.replaced");
    sync_folder(writer->path);
    free_writer(writer);
    return HR_OK;
}

void hr__file_abort(struct hr_file_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->temporary != NULL)
        unlink(writer->temporary);
    free_writer(writer);
}

enum hr_err hr__file_replace(const char *path, const void *data, size_t bytes,
                             struct hr_error *reterr)
{
    struct hr_file_writer *writer;
    enum hr_err err;

    HR_TRY(hr__file_begin(path, &writer, reterr));
    err = hr__file_write(writer, data, bytes, reterr);
    if (err != HR_OK) {
        hr__file_abort(writer);
        return err;
    }
    return hr__file_commit(writer, reterr);
}

/* ---- folders ---- */

static enum hr_err make_folders(char *path, mode_t mode, struct hr_error *reterr)
{
    for (char *at = path + 1;; at++) {
        char end = *at;

        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        if (mkdir(path, mode) != 0 && errno != EEXIST)
            return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot make the folder %s",
                                  path);
        *at = end;
        if (end == '\0')
            return HR_OK;
    }
}

enum hr_err hr__file_make_folder(const char *path, mode_t mode, struct hr_error *reterr)
{
    char *part = hr__strdup(path);
    enum hr_err code;

    assert(path[0] != '\0');
    if (part == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = make_folders(part, mode, reterr);
    hr__free(part);
    return code;
}

/* ---- locks ---- */

bool hr__file_is_at(int fd, const char *path)
{
    struct stat opened, there;

    return fstat(fd, &opened) == 0 && stat(path, &there) == 0 &&
           opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

enum hr_err hr__file_lock(const char *path, int *ret_lock, struct hr_error *reterr)
{
    for (;;) {
        int fd = open_file(path, O_RDWR | O_CREAT, 0666);

        if (fd < 0)
            return fail_at(reterr, "lock", path);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(fd);
            return hr__fail(reterr, HR_ERR_STATE, "%s is locked by other work", path);
        }
        if (hr__file_is_at(fd, path)) {
            *ret_lock = fd;
            return HR_OK;
        }
        close(fd);
    }
}

void hr__file_unlock(const char *path, int lock)
{
    (void)unlink(path); /* while it is locked, so that nobody else's is removed */
    close(lock);
}
