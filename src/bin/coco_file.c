/*
 * coco_file.c - see coco_file.h. A file is known by the words that it holds, wherever
 * they are: tools write the members in any order.
 */
#include "coco_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 32
#define FOLDERS_MAX 64

struct paths {
    char items[FOLDERS_MAX][1280];
    size_t count;
};

static int training_first(const void *a, const void *b)
{
    const char *first = strrchr(a, '/'), *second = strrchr(b, '/');
    bool x = strcasestr(first, "train") != NULL, y = strcasestr(second, "train") != NULL;

    return x != y ? (int)y - (int)x : strcmp(a, b);
}

/* Adds the .json files of a folder, or the folders in it. */
static void add(struct paths *paths, const char *folder, bool files, size_t most)
{
    DIR *opened = opendir(folder);
    const struct dirent *entry;

    while (opened != NULL && paths->count < most && (entry = readdir(opened)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');
        char *path = paths->items[paths->count];
        struct stat info;

        if (entry->d_name[0] == '.' ||
            (files && (dot == NULL || strcasecmp(dot, ".json") != 0)) ||
            (size_t)snprintf(path, sizeof(paths->items[0]), "%s/%s", folder,
                             entry->d_name) >= sizeof(paths->items[0]))
            continue;
        paths->count += stat(path, &info) == 0 && S_ISDIR(info.st_mode) == !files;
    }
    if (opened != NULL)
        closedir(opened);
}

static bool has(const char *data, size_t bytes, const char *word)
{
    return memmem(data, bytes, word, strlen(word)) != NULL;
}

/* Copies the text of the first "file_name"; false if there is none without escapes. */
static bool first_name(const char *data, size_t bytes, char *name, size_t room)
{
    static const char key[] = "\"file_name\"";
    const char *end = data + bytes, *at = memmem(data, bytes, key, sizeof(key) - 1);
    size_t length = 0;

    if (at == NULL)
        return false;
    for (at += sizeof(key) - 1; at < end && strchr(" \t\r\n:", *at) != NULL; at++)
        ;
    if (at == end || *at++ != '"')
        return false;
    for (; at < end && *at != '"' && *at != '\\' && length + 1 < room; at++)
        name[length++] = *at;
    name[length] = '\0';
    return at < end && *at == '"' && length > 0;
}

/* The name of the first photo that the file lists, if the file has boxes. */
static bool look_into(const char *path, char *name, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    char *data = MAP_FAILED;
    size_t bytes = 0;
    bool found = false;

    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        bytes = (size_t)info.st_size;
        data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (data != MAP_FAILED) {
        found = first_name(data, bytes, name, room) && has(data, bytes, "\"images\"") &&
                has(data, bytes, "\"annotations\"") && has(data, bytes, "\"bbox\"");
        munmap(data, bytes);
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* The folder, those in it and those in its "images", the first where the photo is. */
static bool find_photos(const char *folder, const char *name, struct paths *folders,
                        char *to, size_t room)
{
    char path[1280];

    folders->count = 1;
    snprintf(folders->items[0], sizeof(folders->items[0]), "%s", folder);
    add(folders, folder, false, FOLDERS_MAX / 2);
    snprintf(path, sizeof(path), "%s/images", folder);
    add(folders, path, false, FOLDERS_MAX);
    for (size_t i = 0; i < folders->count; i++) {
        char photo[2048];

        snprintf(photo, sizeof(photo), "%s/%s", folders->items[i], name);
        if (access(photo, R_OK) == 0) {
            snprintf(to, room, "%s", folders->items[i]);
            return true;
        }
    }
    return false;
}

bool coco_file_find(const char *folder, struct coco_file *ret_found)
{
    struct paths *paths = calloc(2, sizeof(*paths));
    char path[1280], name[512];
    bool found = false;

    if (paths == NULL)
        return false;
    add(&paths[0], folder, true, FILES_MAX);
    snprintf(path, sizeof(path), "%s/annotations", folder);
    add(&paths[0], path, true, 2 * FILES_MAX);
    qsort(paths[0].items, paths[0].count, sizeof(paths[0].items[0]), training_first);
    for (size_t i = 0; i < paths[0].count && !found; i++) {
        snprintf(ret_found->annotations, sizeof(ret_found->annotations), "%s",
                 paths[0].items[i]);
        found = look_into(paths[0].items[i], name, sizeof(name)) &&
                find_photos(folder, name, &paths[1], ret_found->photos,
                            sizeof(ret_found->photos));
    }
    free(paths);
    return found;
}
