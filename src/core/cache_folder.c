/*
 * core/cache_folder.c - see cache_folder.h.
 */
#include "core/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

#define NAME_BYTES 64 /* of a file, with what a temporary one has in addition */

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool hr__cache_is_off(void)
{
    const char *own = getenv("HEADRACE_CACHE");

    return own != NULL && own[0] == '\0';
}

/* False if no variable gives a folder. */
static bool add_folder(struct hr_str *path)
{
    const char *own = variable("HEADRACE_CACHE"), *all = variable("XDG_CACHE_HOME"),
               *home = variable("HOME");

    if (own != NULL)
        hr__str_add(path, own);
    else if (all != NULL && all[0] == '/')
        hr__str_addf(path, "%s/headrace", all);
    else if (home != NULL && home[0] == '/')
        hr__str_addf(path, "%s/.cache/headrace", home);
    else
        return false;
    return true;
}

static enum hr_err take(struct hr_str *path, char **ret_path, struct hr_error *reterr)
{
    *ret_path = hr__str_take(path);
    hr__str_finish(path);
    return *ret_path != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr__cache_folder(char **ret_path, struct hr_error *reterr)
{
    struct hr_str path;

    hr__str_init(&path);
    if (!add_folder(&path))
        return hr__fail(reterr, HR_ERR_NOT_FOUND,
                        "there is no folder to keep anything in: set HEADRACE_CACHE or "
                        "HOME");
    return take(&path, ret_path, reterr);
}

enum hr_err hr__cache_file(const char *name, char **ret_path, struct hr_error *reterr)
{
    char *folder = NULL, *slash;
    struct hr_str path;
    enum hr_err code;

    HR_TRY(hr__cache_folder(&folder, reterr));
    hr__str_init(&path);
    hr__str_addf(&path, "%s/%s", folder, name);
    hr__free(folder);
    HR_TRY(take(&path, ret_path, reterr));
    slash = strrchr(*ret_path, '/');
    *slash = '\0';
    code = hr__file_make_folder(*ret_path, 0700, reterr);
    *slash = '/';
    if (code != HR_OK) {
        hr__free(*ret_path);
        *ret_path = NULL;
    }
    return code;
}

/* ---- eviction ---- */

struct file {
    char name[NAME_BYTES];
    uint64_t bytes;
    struct timespec changed;
};

static int by_age(const void *a, const void *b)
{
    const struct timespec *x = &((const struct file *)a)->changed;
    const struct timespec *y = &((const struct file *)b)->changed;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* The folder's files; false if they cannot be listed. */
static bool list(DIR *folder, struct file **ret_files, size_t *ret_count)
{
    struct file *files = NULL;
    size_t count = 0, room = 0;
    struct dirent *entry;
    struct stat about;

    while ((entry = readdir(folder)) != NULL) {
        if (strlen(entry->d_name) >= NAME_BYTES ||
            fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(about.st_mode))
            continue;
        if (!hr__array_room(&files, count, &room, 1, sizeof *files)) {
            hr__free(files);
            return false;
        }
        snprintf(files[count].name, NAME_BYTES, "%s", entry->d_name);
        files[count].bytes = (uint64_t)about.st_size;
        files[count++].changed = about.st_mtim;
    }
    *ret_files = files;
    *ret_count = count;
    return true;
}

void hr__evict_files(const char *folder, size_t files_max, uint64_t bytes_max)
{
    DIR *open = opendir(folder);
    struct file *files = NULL;
    size_t count = 0;
    uint64_t bytes = 0;

    if (open == NULL)
        return;
    if (list(open, &files, &count)) {
        for (size_t i = 0; i < count; i++)
            bytes += files[i].bytes;
        if (count > files_max || bytes > bytes_max)
            qsort(files, count, sizeof *files, by_age);
        for (size_t i = 0; count - i > files_max || bytes > bytes_max; i++) {
            (void)unlinkat(dirfd(open), files[i].name, 0);
            bytes -= files[i].bytes;
        }
    }
    hr__free(files);
    closedir(open);
}
