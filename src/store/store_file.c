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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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
    return HR_OK;
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

#define DEPTH_MAX 64 /* of folders; deeper is a link into itself */

struct name {
    char *text; /* a folder's ends with a slash, so that sorting is by whole paths */
    bool is_folder;
};
struct names {
    struct name *items;
    size_t count, room;
};
struct listing {
    hr_store_visit_fn *visit;
    void *user;
    struct hr_error *error;
    bool stopped;
    int depth;
    size_t base_bytes;     /* of the path, up to the names that are given out */
    char path[HR_URI_MAX]; /* of the folder that is being read */
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        hr__free(names->items[i].text);
    hr__free(names->items);
}

static enum hr_err add_name(struct names *names, const char *text, bool is_folder)
{
    size_t bytes = strlen(text);
    struct name *items = names->items;

    if (names->count == names->room) {
        size_t room = names->room > 0 ? 2 * names->room : 64;

        items = hr__realloc(items, room * sizeof *items);
        if (items == NULL)
            return HR_ERR_MEMORY;
        names->items = items;
        names->room = room;
    }
    items += names->count;
    items->text = hr__malloc(bytes + 2);
    if (items->text == NULL)
        return HR_ERR_MEMORY;
    memcpy(items->text, text, bytes);
    memcpy(items->text + bytes, is_folder ? "/" : "", is_folder ? 2 : 1);
    items->is_folder = is_folder;
    names->count++;
    return HR_OK;
}

/* Files and folders of an open folder; links count as what they lead to. */
static enum hr_err read_names(DIR *folder, struct names *names)
{
    const struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name;
        unsigned char kind = entry->d_type;
        struct stat info;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if ((kind == DT_LNK || kind == DT_UNKNOWN) &&
            fstatat(dirfd(folder), name, &info, 0) == 0)
            kind = S_ISREG(info.st_mode)   ? DT_REG
                   : S_ISDIR(info.st_mode) ? DT_DIR
                                           : DT_UNKNOWN;
        if (kind == DT_REG || kind == DT_DIR)
            HR_TRY(add_name(names, name, kind == DT_DIR));
    }
    return HR_OK;
}

static enum hr_err open_names(struct listing *listing, struct names *names)
{
    DIR *folder = NULL;
    enum hr_err err;

    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        folder = opendir(listing->path);
    if (folder == NULL)
        return hr__store_file_open_failed(errno, listing->path, listing->error);
    err = read_names(folder, names);
    closedir(folder);
    if (err != HR_OK)
        return hr__fail(listing->error, err, "out of memory while listing %s",
                        listing->path);
    qsort(names->items, names->count, sizeof *names->items, compare_names);
    return HR_OK;
}

static enum hr_err list_folder(struct listing *listing);

/* Appends the name to the path, and visits the file or reads the folder. */
static enum hr_err list_name(struct listing *listing, const struct name *name)
{
    size_t at = strlen(listing->path), bytes = strlen(name->text);
    enum hr_err err = HR_OK;

    if (at + bytes + 2 > sizeof listing->path)
        return hr__fail(listing->error, HR_ERR_LIMIT, "a path in %s is too long",
                        listing->path);
    if (at > 0 && listing->path[at - 1] != '/')
        listing->path[at++] = '/';
    memcpy(listing->path + at, name->text, bytes + 1);
    if (name->is_folder)
        err = list_folder(listing);
    else
        listing->stopped =
            !listing->visit(listing->user, listing->path + listing->base_bytes,
                            at + bytes - listing->base_bytes, HR_BYTES_UNKNOWN);
    listing->path[at] = '\0';
    return err;
}

static enum hr_err list_folder(struct listing *listing)
{
    struct names names = {NULL, 0, 0};
    enum hr_err err;

    if (++listing->depth > DEPTH_MAX)
        return hr__fail(listing->error, HR_ERR_LIMIT, "over %d folders inside %s",
                        DEPTH_MAX, listing->path);
    err = open_names(listing, &names);
    for (size_t i = 0; err == HR_OK && i < names.count && !listing->stopped; i++)
        err = list_name(listing, &names.items[i]);
    free_names(&names);
    listing->depth--;
    return err;
}

static enum hr_err
file_list(const char *name, hr_store_visit_fn *visit, void *user, struct hr_error *reterr)
{
    size_t bytes = strlen(name);
    struct listing *listing;
    enum hr_err err;

    if (bytes + 1 >= HR_URI_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "the path of a folder is too long");
    listing = hr__calloc(1, sizeof *listing);
    if (listing == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    *listing = (struct listing){.visit = visit, .user = user, .error = reterr};
    memcpy(listing->path, name, bytes + 1);
    listing->base_bytes = bytes + (bytes > 0 && name[bytes - 1] != '/');
    err = list_folder(listing);
    hr__free(listing);
    return err;
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
    .start = hr__channel_start_uring,
};
