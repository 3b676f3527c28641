/*
 * store/store_gluster.c - files of GlusterFS volumes: gluster://HOST[:PORT]/VOLUME/PATH,
 * by libgfapi, without a mount.
 *
 * libgfapi is loaded when the first such object is opened; its functions are declared
 * here, since its ABI is all that is needed. A connection to a volume takes a second and
 * several threads, so each volume has one, which lasts until the process ends. Reads
 * block, and several are in flight by threads (store_threads.c).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/library.h"
#include "store/store_internal.h"
#include "store/walk.h"

#define PORT 24007
#define HOST_MAX 256
#define VOLUMES_MAX 64 /* that one process reads */

/* ---- libgfapi ---- */

struct glfs;
struct glfs_fd;

static struct {
    struct glfs *(*new)(const char *volume);
    int (*set_volfile_server)(struct glfs *fs, const char *transport, const char *host,
                              int port);
    int (*set_logging)(struct glfs *fs, const char *file, int level);
    int (*init)(struct glfs *fs);
    int (*fini)(struct glfs *fs);
    struct glfs_fd *(*open)(struct glfs *fs, const char *path, int flags);
    int (*close)(struct glfs_fd *fd);
    ssize_t (*pread)(struct glfs_fd *fd, void *data, size_t bytes, off_t offset,
                     int flags, void *ret_stat);
    int (*fstat)(struct glfs_fd *fd, struct stat *ret_info);
    int (*stat)(struct glfs *fs, const char *path, struct stat *ret_info);
    struct glfs_fd *(*opendir)(struct glfs *fs, const char *path);
    int (*readdir)(struct glfs_fd *fd, struct stat *ret_info, struct dirent *entry,
                   struct dirent **ret_entry);
    int (*closedir)(struct glfs_fd *fd);
} gf;

static const struct hr_symbol symbols[] = {
    {"glfs_new",                &gf.new               },
    {"glfs_set_volfile_server", &gf.set_volfile_server},
    {"glfs_set_logging",        &gf.set_logging       },
    {"glfs_init",               &gf.init              },
    {"glfs_fini",               &gf.fini              },
    {"glfs_open",               &gf.open              },
    {"glfs_close",              &gf.close             },
    {"glfs_pread",              &gf.pread             },
    {"glfs_fstat",              &gf.fstat             },
    {"glfs_stat",               &gf.stat              },
    {"glfs_opendir",            &gf.opendir           },
    {"glfs_readdirplus_r",      &gf.readdir           },
    {"glfs_closedir",           &gf.closedir          },
};
static struct hr_library library = HR_LIBRARY("libgfapi.so.0", "libgfapi0", symbols);

/* ---- volumes ---- */

struct volume {
    char host[HOST_MAX], name[HOST_MAX];
    int port;
    struct glfs *fs;
};

static struct {
    pthread_mutex_t lock;
    struct volume items[VOLUMES_MAX];
    size_t count;
} volumes = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A URI without its scheme. */
struct place {
    char host[HOST_MAX], volume[HOST_MAX];
    int port;
    const char *path; /* begins with a slash */
};

static enum hr_err wrong_name(const char *name, const char *what, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "gluster://%s %s: it is gluster://HOST/VOLUME/PATH, or "
                    "gluster://HOST:PORT/VOLUME/PATH",
                    name, what);
}

/* Copies what is before the slash at `end`. False if it is empty or too long. */
static bool take_part(const char *from, const char *end, char to[HOST_MAX])
{
    size_t bytes = (size_t)(end - from);

    if (bytes == 0 || bytes >= HOST_MAX)
        return false;
    memcpy(to, from, bytes);
    to[bytes] = '\0';
    return true;
}

/* Cuts the port off behind the host; false if it is none. */
static bool take_port(char *host, int *ret_port)
{
    char *colon = strrchr(host, ':'), *end;
    long port;

    *ret_port = PORT;
    if (colon == NULL)
        return true;
    port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0' || port < 1 || port > 65535)
        return false;
    *colon = '\0';
    *ret_port = (int)port;
    return colon > host;
}

static enum hr_err
find_place(const char *name, struct place *ret_place, struct hr_error *reterr)
{
    const char *slash = strchr(name, '/'), *next;

    if (slash == NULL || !take_part(name, slash, ret_place->host))
        return wrong_name(name, "names no host and volume", reterr);
    if (strpbrk(ret_place->host, "@,") != NULL)
        return wrong_name(name, "has more than a host", reterr);
    if (!take_port(ret_place->host, &ret_place->port))
        return wrong_name(name, "has a port that is none", reterr);
    next = slash + 1 + strcspn(slash + 1, "/");
    if (!take_part(slash + 1, next, ret_place->volume))
        return wrong_name(name, "names no volume", reterr);
    ret_place->path = *next == '/' ? next : "/";
    return HR_OK;
}

static enum hr_err
connect_to(const struct place *place, struct glfs **ret_fs, struct hr_error *reterr)
{
    struct glfs *fs;

    fs = gf.new(place->volume);
    if (fs == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    errno = EIO;
    if (gf.set_volfile_server(fs, "tcp", place->host, place->port) == 0 &&
        gf.set_logging(fs, "/dev/null", 0) == 0 && gf.init(fs) == 0) {
        *ret_fs = fs;
        return HR_OK;
    }
    hr__fail_errno(reterr, HR_ERR_IO, errno,
                   "cannot use volume %s of %s, port %d: check that glusterd runs there, "
                   "the volume is started, and this host may use it",
                   place->volume, place->host, place->port);
    (void)gf.fini(fs);
    return HR_ERR_IO;
}

static bool is_of(const struct volume *volume, const struct place *place)
{
    return strcmp(volume->host, place->host) == 0 && volume->port == place->port &&
           strcmp(volume->name, place->volume) == 0;
}

/* The volume, which is connected to if it is new. */
static enum hr_err
use_volume(const struct place *place, struct glfs **ret_fs, struct hr_error *reterr)
{
    enum hr_err code = HR_OK;
    struct volume *volume;
    size_t at = 0;

    HR_TRY(hr__library_load(&library, reterr));
    pthread_mutex_lock(&volumes.lock);
    while (at < volumes.count && !is_of(&volumes.items[at], place))
        at++;
    volume = &volumes.items[at];
    if (at == VOLUMES_MAX) {
        code = hr__fail(reterr, HR_ERR_LIMIT, "more than %d volumes are read at once",
                        VOLUMES_MAX);
    } else if (at == volumes.count) {
        code = connect_to(place, &volume->fs, reterr);
        if (code == HR_OK) {
            memcpy(volume->host, place->host, sizeof volume->host);
            memcpy(volume->name, place->volume, sizeof volume->name);
            volume->port = place->port;
            volumes.count++;
        }
    }
    if (code == HR_OK)
        *ret_fs = volume->fs;
    pthread_mutex_unlock(&volumes.lock);
    return code;
}

/* ---- objects ---- */

static struct hr_hash128 identity_of(const struct stat *info)
{
    const uint64_t words[4] = {info->st_ino, (uint64_t)info->st_size,
                               (uint64_t)info->st_mtim.tv_sec,
                               (uint64_t)info->st_mtim.tv_nsec};

    return hr__hash128(words, sizeof words);
}

static enum hr_err
look(struct hr_object *object, struct glfs_fd *fd, struct hr_error *reterr)
{
    struct stat info;

    hr__store_note(reterr, object->uri);
    errno = EIO;
    if (hr__fault(HR_FAULT_READ) || gf.fstat(fd, &info) != 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot read %s", object->uri);
    if (!S_ISREG(info.st_mode))
        return hr__fail(reterr, HR_ERR_TYPE,
                        "%s is a folder or a device: only regular files are read",
                        object->uri);
    object->bytes = (uint64_t)info.st_size;
    object->identity = identity_of(&info);
    object->lasting = !hr__store_is_young((int64_t)info.st_mtim.tv_sec * 1000000000 +
                                          info.st_mtim.tv_nsec);
    object->as.own = fd;
    return HR_OK;
}

static enum hr_err
gluster_open(const char *name, struct hr_object *object, struct hr_error *reterr)
{
    struct glfs_fd *fd = NULL;
    struct place place;
    struct glfs *fs;
    enum hr_err code;

    hr__store_note(reterr, object->uri);
    HR_TRY(find_place(name, &place, reterr));
    HR_TRY(use_volume(&place, &fs, reterr));
    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        fd = gf.open(fs, place.path, O_RDONLY);
    if (fd == NULL && errno == EISDIR)
        return hr__fail(reterr, HR_ERR_TYPE,
                        "%s is a folder: only regular files are read", object->uri);
    if (fd == NULL)
        return hr__store_file_open_failed(errno, object->uri, reterr);
    code = look(object, fd, reterr);
    if (code != HR_OK)
        (void)gf.close(fd);
    return code;
}

static void gluster_close(struct hr_object *object)
{
    (void)gf.close(object->as.own);
}

static enum hr_err gluster_read(struct hr_object *object, uint64_t offset, void *data,
                                size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    ssize_t got;

    do
        got = gf.pread(object->as.own, data, bytes, (off_t)offset, 0, NULL);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        hr__store_note(reterr, object->uri);
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot read %s", object->uri);
    }
    *ret_got = (size_t)got;
    return HR_OK;
}

static bool gluster_is_same(const struct hr_object *object)
{
    struct stat info;

    return gf.fstat(object->as.own, &info) == 0 &&
           hr__hash_equal(identity_of(&info), object->identity);
}

/* ---- list ---- */

/* Follows a link. One that leads nowhere is taken for a file, which then cannot be read.
 */
static mode_t
mode_of(struct glfs *fs, const char *folder, const char *name, const struct stat *info)
{
    char path[HR_URI_MAX + NAME_MAX + 2];
    struct stat there;

    if (!S_ISLNK(info->st_mode))
        return info->st_mode;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (gf.stat(fs, path, &there) == 0)
        return there.st_mode;
    return errno == ENOENT ? S_IFREG : 0;
}

static enum hr_err read_entries(struct glfs *fs, struct glfs_fd *fd, const char *path,
                                struct hr_walk_names *names, struct hr_error *reterr)
{
    struct dirent entry, *next;
    struct stat info;

    for (;;) {
        mode_t mode;

        if (gf.readdir(fd, &info, &entry, &next) != 0)
            return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot list %s", path);
        if (next == NULL)
            return HR_OK;
        if (strcmp(entry.d_name, ".") == 0 || strcmp(entry.d_name, "..") == 0)
            continue;
        mode = mode_of(fs, path, entry.d_name, &info);
        if (S_ISREG(mode) || S_ISDIR(mode))
            HR_TRY(hr__walk_add(names, entry.d_name, S_ISDIR(mode)));
    }
}

static enum hr_err read_folder(void *own, const char *path, struct hr_walk_names *names,
                               struct hr_error *reterr)
{
    struct glfs_fd *fd = NULL;
    enum hr_err code;

    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        fd = gf.opendir(own, path);
    if (fd == NULL)
        return hr__store_file_open_failed(errno, path, reterr);
    code = read_entries(own, fd, path, names, reterr);
    (void)gf.closedir(fd);
    return code;
}

static enum hr_err gluster_list(const char *name, hr_store_visit_fn *visit, void *user,
                                struct hr_error *reterr)
{
    struct hr_error why = {0};
    char uri[HR_URI_MAX];
    struct place place;
    struct glfs *fs;
    enum hr_err code;

    snprintf(uri, sizeof uri, "gluster://%s", name);
    hr__store_note(reterr, uri);
    HR_TRY(find_place(name, &place, reterr));
    HR_TRY(use_volume(&place, &fs, reterr));
    code = hr__walk(place.path, read_folder, fs, visit, user, &why);
    return code == HR_OK ? HR_OK : hr__fail(reterr, code, "%s: %s", uri, why.message);
}

static enum hr_err gluster_check(struct hr_error *reterr)
{
    return hr__library_load(&library, reterr);
}

const struct hr_store hr_store_gluster = {
    .scheme = "gluster",
    .gives = "volumes of GlusterFS",
    .check = gluster_check,
    .open = gluster_open,
    .close = gluster_close,
    .read = gluster_read,
    .is_same = gluster_is_same,
    .list = gluster_list,
};
