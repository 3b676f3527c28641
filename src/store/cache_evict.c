/*
 * store/cache_evict.c - the caches in one folder: each has a folder of its own, named by
 * what its entries are of.
 *
 * A process holds a shared lock on the file `used` of a cache while it has it open; its
 * time is that of the last opening. A cache is removed only under the exclusive lock, so
 * nobody's values vanish while they are read.
 */
#include "store/cache_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"

#define PREFIX "cache-"

void hr__cache_name(struct hr_hash128 of, char ret_name[HR_CACHE_NAME_BYTES])
{
    char text[HR_HASH_TEXT_BYTES];

    hr__hash_text(of, text);
    snprintf(ret_name, HR_CACHE_NAME_BYTES, "%s%s", PREFIX, text);
}

static bool is_cache(const char *name)
{
    struct hr_hash128 of;

    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           strlen(name) == strlen(PREFIX) + HR_HASH_TEXT_BYTES - 1 &&
           hr__hash_parse(name + strlen(PREFIX), &of);
}

static char *join(const char *folder, const char *name)
{
    struct hr_str path;

    hr__str_init(&path);
    hr__str_addf(&path, "%s/%s", folder, name);
    return hr__str_take(&path);
}

/* ---- locks ---- */

enum hr_err hr__cache_keep(const char *own_folder, int *ret_lock, struct hr_error *reterr)
{
    char *path = join(own_folder, "used");
    enum hr_err code = HR_OK;

    if (path == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a cache");
    for (;;) { /* again if another process removed it meanwhile */
        int fd, locked;

        code = hr__file_make_folder(own_folder, 0777, reterr);
        if (code != HR_OK)
            break;
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0) {
            code = hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot write %s", path);
            break;
        }
        while ((locked = flock(fd, LOCK_SH)) != 0 && errno == EINTR)
            ;
        if (locked != 0 || hr__file_is_at(fd, path)) { /* some file systems have none */
            (void)futimens(fd, NULL);
            *ret_lock = fd;
            break;
        }
        close(fd);
    }
    hr__free(path);
    return code;
}

/* ---- folders ---- */

/* Bytes of the files in a folder; with `remove`, removes them. */
static uint64_t files_of(const char *path, bool remove)
{
    DIR *folder = opendir(path);
    uint64_t bytes = 0;
    struct dirent *item;

    while (folder != NULL && (item = readdir(folder)) != NULL) {
        struct stat info;

        if (fstatat(dirfd(folder), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (!remove || unlinkat(dirfd(folder), item->d_name, 0) == 0)
            bytes += (uint64_t)info.st_size;
    }
    if (folder != NULL)
        closedir(folder);
    return bytes;
}

static bool is_other(const char *name, const char *own_folder)
{
    const char *own = strrchr(own_folder, '/');

    return is_cache(name) && strcmp(name, own + 1) != 0;
}

uint64_t hr__cache_others(const char *folder, const char *own_folder)
{
    DIR *all = opendir(folder);
    uint64_t bytes = 0;
    struct dirent *item;

    while (all != NULL && (item = readdir(all)) != NULL) {
        char *path =
            is_other(item->d_name, own_folder) ? join(folder, item->d_name) : NULL;

        if (path != NULL)
            bytes += files_of(path, false);
        hr__free(path);
    }
    if (all != NULL)
        closedir(all);
    return bytes;
}

/* An exclusive lock on the cache at `path`, or -1 while a process has it open. */
static int lock_all(const char *path, struct timespec *ret_used)
{
    char *used = join(path, "used");
    int fd = used != NULL ? open(used, O_RDWR | O_CLOEXEC) : -1;
    struct stat info;

    hr__free(used);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &info) != 0) {
        close(fd);
        return -1;
    }
    *ret_used = info.st_mtim;
    return fd;
}

static bool earlier(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* The candidate that was used least recently, locked. */
struct victim {
    char *path;
    int lock;
    struct timespec used;
};

static void consider(struct victim *victim, char *path)
{
    struct timespec used;
    int lock = lock_all(path, &used);

    if (lock >= 0 && (victim->lock < 0 || earlier(used, victim->used))) {
        if (victim->lock >= 0)
            close(victim->lock);
        hr__free(victim->path);
        *victim = (struct victim){path, lock, used};
        return;
    }
    if (lock >= 0)
        close(lock);
    hr__free(path);
}

uint64_t hr__cache_evict(const char *folder, const char *own_folder)
{
    struct victim victim = {
        NULL, -1, {0, 0}
    };
    DIR *all = opendir(folder);
    uint64_t bytes = 0;
    struct dirent *item;

    while (all != NULL && (item = readdir(all)) != NULL) {
        char *path =
            is_other(item->d_name, own_folder) ? join(folder, item->d_name) : NULL;

        if (path != NULL)
            consider(&victim, path);
    }
    if (all != NULL)
        closedir(all);
    if (victim.lock >= 0) {
        bytes = files_of(victim.path, true);
        (void)rmdir(victim.path);
        close(victim.lock);
    }
    hr__free(victim.path);
    return bytes;
}
