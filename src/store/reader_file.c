/*
 * store/reader_file.c - reading one file: open, fstat, read, close, and nothing else when
 * it is cached.
 *
 * O_NONBLOCK keeps a FIFO from hanging in open. The first read asks for what is in the
 * page cache only; that it gives less than the file is how a cold file is known. Where
 * the kernel or the file system cannot answer that, the time of a plain read tells.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "store/reader_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)8 << 20) /* between two looks at the stop flag */
#define SLOW_READ_NS 300000u          /* a cached photo takes a tenth of this */

static void note_file(struct hr_error *error, const char *path)
{
    if (error == NULL)
        return;
    strncpy(error->file, path, sizeof error->file - 1);
    error->file[sizeof error->file - 1] = '\0';
}

enum hr_err hr__reader_open_failed(int errnum, const char *path, struct hr_error *reterr)
{
    note_file(reterr, path);
    return hr__fail_errno(
        reterr, errnum == ENOENT || errnum == ENOTDIR ? HR_ERR_NOT_FOUND : HR_ERR_IO,
        errnum, "cannot open %s", path);
}

enum hr_err hr__reader_open_file(const char *path, int *ret_fd, struct hr_error *reterr)
{
    int fd = -1;

    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return hr__reader_open_failed(errno, path, reterr);
    *ret_fd = fd;
    return HR_OK;
}

static enum hr_err read_failed(int errnum, const char *path, struct hr_error *reterr)
{
    note_file(reterr, path);
    return hr__fail_errno(reterr, HR_ERR_IO, errnum, "cannot read %s", path);
}

enum hr_err
hr__reader_check_file(const struct hr_reader *reader, int fd, const char *path,
                      size_t *ret_bytes, struct hr_error *reterr)
{
    struct stat info;

    errno = EIO;
    if (hr__fault(HR_FAULT_READ) || fstat(fd, &info) != 0)
        return read_failed(errno, path, reterr);
    if (!S_ISREG(info.st_mode)) {
        note_file(reterr, path);
        return hr__fail(reterr, HR_ERR_TYPE, "%s is %s, not a file", path,
                        S_ISDIR(info.st_mode)    ? "a folder"
                        : S_ISFIFO(info.st_mode) ? "a pipe"
                                                 : "a device");
    }
    if ((uint64_t)info.st_size > reader->file_bytes_max) {
        note_file(reterr, path);
        return hr__fail(
            reterr, HR_ERR_LIMIT, "%s has %llu bytes, more than the limit of %llu", path,
            (unsigned long long)info.st_size, (unsigned long long)reader->file_bytes_max);
    }
    *ret_bytes = (size_t)info.st_size;
    return HR_OK;
}

int64_t hr__reader_read_cached(int fd, char *data, size_t bytes, size_t at)
{
    struct iovec part = {data, bytes};
    ssize_t got;

    if (hr__fault(HR_FAULT_READ))
        return 0; /* as if it were not cached */
    got = preadv2(fd, &part, 1, (off_t)at, RWF_NOWAIT);
    if (got >= 0)
        return got;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* The rest, from `at`, waiting for the disk. */
static enum hr_err read_rest(int fd, const char *path, char *data, size_t bytes,
                             size_t at, const atomic_bool *stop, struct hr_error *reterr)
{
    while (at < bytes) {
        size_t most = bytes - at;
        ssize_t got = -1;

        if (stop != NULL) {
            if (atomic_load_explicit(stop, memory_order_relaxed))
                return hr__fail(reterr, HR_ERR_CANCELLED, "reading %s was cancelled",
                                path);
            most = most < CHUNK_BYTES ? most : CHUNK_BYTES;
        }
        errno = EIO;
        if (!hr__fault(HR_FAULT_READ))
            got = pread(fd, data + at, most, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return read_failed(errno, path, reterr);
        if (got == 0) {
            note_file(reterr, path);
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "%s became shorter while it was read: %zu of %zu bytes", path,
                            at, bytes);
        }
        at += (size_t)got;
    }
    return HR_OK;
}

static enum hr_err
read_all(int fd, const char *path, char *data, size_t bytes, const atomic_bool *stop,
         bool *ret_waited, struct hr_error *reterr)
{
    int64_t cached = bytes > 0 ? hr__reader_read_cached(fd, data, bytes, 0) : 0;
    uint64_t begin;
    enum hr_err err;

    *ret_waited = cached >= 0 && (uint64_t)cached < bytes;
    if ((uint64_t)(cached < 0 ? 0 : cached) == bytes)
        return HR_OK;
    if (cached >= 0)
        return read_rest(fd, path, data, bytes, (size_t)cached, stop, reterr);
    begin = hr__now_ns();
    err = read_rest(fd, path, data, bytes, 0, stop, reterr);
    *ret_waited = hr__now_ns() - begin > SLOW_READ_NS + bytes;
    return err;
}

enum hr_err hr__reader_get_buffer(const struct hr_reader *reader, size_t bytes,
                                  struct hr_buffer **ret_buffer)
{
    struct hr_buffer *whole, *view;

    if (bytes > SIZE_MAX - HR_READER_SLACK_BYTES)
        return HR_ERR_MEMORY;
    HR_TRY(hr_pool_get(reader->pool, bytes + HR_READER_SLACK_BYTES, &whole));
    memset((char *)hr_buffer_data(whole) + bytes, 0, HR_READER_SLACK_BYTES);
    view = hr_buffer_view(whole, 0, bytes); /* the pool keeps heads of views: 40 ns */
    hr_buffer_unref(whole);
    if (view == NULL)
        return HR_ERR_MEMORY;
    *ret_buffer = view;
    return HR_OK;
}

enum hr_err hr__reader_read_file(const struct hr_reader *reader, const char *path,
                                 const atomic_bool *stop, struct hr_buffer **ret_buffer,
                                 bool *ret_waited, struct hr_error *reterr)
{
    struct hr_buffer *buffer = NULL;
    bool waited = false;
    size_t bytes = 0;
    enum hr_err err;
    int fd = -1;

    HR_TRY(hr__reader_open_file(path, &fd, reterr));
    err = hr__reader_check_file(reader, fd, path, &bytes, reterr);
    if (err == HR_OK) {
        err = hr__reader_get_buffer(reader, bytes, &buffer);
        if (err != HR_OK) {
            note_file(reterr, path);
            hr__fail(reterr, err, "no room for the %zu bytes of %s: %s", bytes, path,
                     err == HR_ERR_LIMIT ? "the pool's limit is reached"
                                         : hr_err_text(err));
        }
    }
    if (err == HR_OK)
        err = read_all(fd, path, hr_buffer_data(buffer), bytes, stop, &waited, reterr);
    close(fd);
    if (err != HR_OK) {
        hr_buffer_unref(buffer);
        return err;
    }
    *ret_buffer = buffer;
    *ret_waited = waited;
    return HR_OK;
}
