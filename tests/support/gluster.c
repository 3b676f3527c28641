/*
 * tests/support/gluster.c - writes to a GlusterFS volume, by libgfapi: as another client
 * than the store that is tested.
 */
#include "tests/support/check.h"
#include "tests/support/server.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct glfs;
struct glfs_fd;

static struct {
    struct glfs *fs;
    struct glfs_fd *(*creat)(struct glfs *fs, const char *path, int flags, mode_t mode);
    ssize_t (*write)(struct glfs_fd *fd, const void *data, size_t bytes, int flags);
    int (*close)(struct glfs_fd *fd);
    int (*mkdir)(struct glfs *fs, const char *path, mode_t mode);
    int (*rename)(struct glfs *fs, const char *from, const char *to);
    int (*unlink)(struct glfs *fs, const char *path);
} gf;

static void find(void *library, const char *name, void *to)
{
    void *found = dlsym(library, name);

    CHECK(found != NULL);
    memcpy(to, &found, sizeof found);
}

/* "gluster://HOST/VOLUME/..." */
static void connect_to(const char *uri)
{
    struct glfs *(*new)(const char *volume);
    int (*set_server)(struct glfs * fs, const char *kind, const char *host, int port);
    int (*set_logging)(struct glfs * fs, const char *file, int level);
    int (*init)(struct glfs * fs);
    void *library = dlopen("libgfapi.so.0", RTLD_NOW);
    char host[256], volume[256];

    CHECK(library != NULL);
    find(library, "glfs_new", &new);
    find(library, "glfs_set_volfile_server", &set_server);
    find(library, "glfs_set_logging", &set_logging);
    find(library, "glfs_init", &init);
    find(library, "glfs_creat", &gf.creat);
    find(library, "glfs_write", &gf.write);
    find(library, "glfs_close", &gf.close);
    find(library, "glfs_mkdir", &gf.mkdir);
    find(library, "glfs_rename", &gf.rename);
    find(library, "glfs_unlink", &gf.unlink);
    CHECK_EQ_INT(sscanf(uri, "gluster://%255[^/]/%255[^/]", host, volume), 2);
    gf.fs = new (volume);
    CHECK(gf.fs != NULL);
    CHECK_EQ_INT(set_server(gf.fs, "tcp", host, 24007), 0);
    CHECK_EQ_INT(set_logging(gf.fs, "/dev/null", 0), 0);
    CHECK_EQ_INT(init(gf.fs), 0);
}

/* The path in the volume. */
static const char *path_of(const char *uri)
{
    const char *at = uri;

    if (gf.fs == NULL)
        connect_to(uri);
    for (int slashes = 0; slashes < 4; at++)
        slashes += *at == '/';
    return at - 1;
}

void gluster_put(const char *uri, const void *data, size_t bytes)
{
    char path[1024], other[1032];
    struct glfs_fd *fd;

    snprintf(path, sizeof path, "%s", path_of(uri));
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)gf.mkdir(gf.fs, path, 0755);
        *slash = '/';
    }
    snprintf(other, sizeof other, "%s.new", path);
    fd = gf.creat(gf.fs, other, O_WRONLY | O_TRUNC, 0644);
    CHECK(fd != NULL);
    for (size_t at = 0; at < bytes;) {
        ssize_t wrote = gf.write(fd, (const char *)data + at, bytes - at, 0);

        CHECK(wrote > 0);
        at += (size_t)wrote;
    }
    CHECK_EQ_INT(gf.close(fd), 0);
    CHECK_EQ_INT(gf.rename(gf.fs, other, path), 0);
}

void gluster_remove(const char *uri)
{
    CHECK_EQ_INT(gf.unlink(gf.fs, path_of(uri)), 0);
}
