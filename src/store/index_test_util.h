/*
 * store/index_test_util.h - trees and lists for the tests of the index.
 */
#ifndef HR_STORE_INDEX_TEST_UTIL_H
#define HR_STORE_INDEX_TEST_UTIL_H

#include "core/file.h"
#include "store/index.h"
#include "tests/support/check.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[512]; /* of the tree of the running test */
static char joined[1024];

static inline const char *in_root(const char *path)
{
    snprintf(joined, sizeof joined, "%s/%s", root, path);
    return joined;
}

static inline void begin_tree(const char *name)
{
    snprintf(root, sizeof root, "%s/%s", check_temp_dir(), name);
    CHECK_EQ_INT(mkdir(root, 0755), 0);
}

/* Makes a file and the folders above it; "x/" makes only a folder. */
static inline void put(const char *path)
{
    char whole[1024];
    int fd;

    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        (void)mkdir(whole, 0755);
        *slash = '/';
    }
    if (path[strlen(path) - 1] == '/')
        return;
    fd = open(whole, O_CREAT | O_WRONLY, 0644);
    CHECK(fd >= 0);
    close(fd);
}

static inline void put_all(const char *const *paths)
{
    for (; *paths != NULL; paths++)
        put(*paths);
}

/* Gives a folder an old time, which can be trusted. */
static inline void rest(const char *path)
{
    static int64_t tick = 1000000000;
    struct timespec times[2] = {
        {tick, 7},
        {tick, 7}
    };

    tick++;
    CHECK_EQ_INT(utimensat(AT_FDCWD, in_root(path), times, 0), 0);
}

static inline struct hr_index_options options(void)
{
    return (struct hr_index_options){.root = root, .recursive = true, .threads = 2};
}

static inline struct hr_index *open_ok(const struct hr_index_options *opt)
{
    struct hr_index *index = NULL;
    struct hr_error error = {0};
    enum hr_err err = hr__index_open(opt, &index, &error);

    if (err != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return index;
}

/* All paths below root with labels, one a line. */
static inline char *listing(const struct hr_index *index)
{
    static char text[2][16384];
    static int turn;
    char *to = text[turn ^= 1], path[PATH_MAX];
    size_t used = 0, length;

    to[0] = '\0';
    for (uint64_t i = 0; i < hr__index_count(index); i++) {
        int64_t label = hr__index_label(index, i);

        CHECK_OK(hr__index_path(index, i, path, sizeof path, &length));
        CHECK_EQ_INT(length, strlen(path));
        used += (size_t)snprintf(to + used, sizeof text[0] - used, "%s",
                                 path + strlen(root) + 1);
        if (label >= 0)
            used += (size_t)snprintf(to + used, sizeof text[0] - used, "=%d", (int)label);
        used += (size_t)snprintf(to + used, sizeof text[0] - used, "\n");
    }
    return to;
}

static inline struct hr_index_stats stats_of(const struct hr_index *index)
{
    struct hr_index_stats stats;

    hr__index_stats(index, &stats);
    return stats;
}

static inline const char *list_text(const char *name, const char *text, size_t bytes)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, text, bytes, NULL));
    return path;
}

static char saved_path[600];

/* A tree of old folders: g0..g4 with files, one of them nested. */
static inline void begin_saved(const char *name)
{
    char path[64];

    begin_tree(name);
    for (int folder = 0; folder < 5; folder++) {
        for (int file = 0; file < 7; file++) {
            snprintf(path, sizeof path, "g%d/photo_%d.jpg", folder, file * file);
            put(path);
        }
    }
    put("g3/deep/er/x.jpg");
    for (int folder = 0; folder < 5; folder++) {
        snprintf(path, sizeof path, "g%d", folder);
        rest(path);
    }
    rest("g3/deep/er");
    rest("g3/deep");
    rest("g3");
    rest("");
    snprintf(saved_path, sizeof saved_path, "%s/%s.idx", check_temp_dir(), name);
}

#endif
