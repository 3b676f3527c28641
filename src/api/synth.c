/*
 * api/synth.c - hr_synth_photos and hr_synth_names: data sets generated from a seed.
 *
 * A folder of photos contains a small file .headrace-synth with its settings. A later
 * call with the same settings continues; one with other settings fails, so that two sets
 * are never mixed. An existing photo that ends like a JPEG is kept: photos are created by
 * rename, so only a crash of the machine can leave a truncated one.
 */
#include "api/synth_picture.h"
#include "codec/image.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "headrace/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 4096
#define MARK ".headrace-synth"

static enum hr_err make_folder(const char *path, struct hr_error *reterr)
{
    size_t length = strlen(path);

    if (length == 0 || length >= PATH_ROOM)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "the folder's path is empty or too long");
    return hr__file_make_folder(path, 0777, reterr);
}

/* ---- photos ---- */

/* The parameters of photo `at`. */
struct photo {
    int32_t width, height;
    struct hr_jpeg_options jpeg;
};

static int class_of(const struct hr_synth_photos *what, uint64_t at)
{
    return (int)(at % (uint64_t)what->classes);
}

static void
choose_photo(const struct hr_synth_photos *what, struct hr_rng *rng, struct photo *ret)
{
    double factor = what->vary ? hr__rng_uniform(rng, 0.6, 1.6) : 1;
    uint64_t sampling = hr__rng_below(rng, 20), turned = hr__rng_below(rng, 4);
    int quality = 70 + (int)hr__rng_below(rng, 27);
    bool optimise = hr__rng_below(rng, 2) == 0;

    *ret = (struct photo){
        .width = (int32_t)(what->width * factor + 0.5),
        .height = (int32_t)(what->height * factor + 0.5),
        .jpeg = {.quality = what->quality > 0 ? what->quality : quality,
                 .sampling_x = 2,
                 .sampling_y = 2}
    };
    if (!what->vary)
        return;
    if (turned == 0) {
        int32_t width = ret->width;

        ret->width = ret->height;
        ret->height = width;
    }
    /* mostly 4:2:0, some 4:4:4, few 4:2:2, as on the web */
    ret->jpeg.sampling_x = sampling >= 16 && sampling < 19 ? 1 : 2;
    ret->jpeg.sampling_y = sampling >= 16 ? 1 : 2;
    ret->jpeg.optimise = optimise;
}

static enum hr_err
encode_photo(const struct hr_synth_photos *what, uint64_t at, struct hr_arena *arena,
             void **ret_data, size_t *ret_bytes, struct hr_error *reterr)
{
    struct hr_synth_front front;
    struct hr_pixels pixels;
    struct hr_rng rng;
    struct photo shot;

    hr__rng_init(&rng, what->seed, 0, at);
    choose_photo(what, &rng, &shot);
    hr__synth_front(class_of(what, at), what->classes, &front);
    if (!hr__synth_picture(&rng, &front, shot.width, shot.height, arena, &pixels))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return hr__image_encode_jpeg(&pixels, &shot.jpeg, ret_data, ret_bytes, reterr);
}

static bool is_whole_jpeg(const char *path)
{
    uint8_t end[2] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool whole;

    if (fd < 0)
        return false;
    whole = lseek(fd, -2, SEEK_END) > 0 && read(fd, end, 2) == 2 && end[0] == 0xff &&
            end[1] == 0xd9;
    close(fd);
    return whole;
}

/* Renames without fsync: thousands of fsyncs would take longer than generating the
 * photos. */
static enum hr_err
write_photo(const char *path, const void *data, size_t bytes, struct hr_error *reterr)
{
    char temp[PATH_ROOM + 8];
    int fd, error = 0;
    size_t done = 0;

    snprintf(temp, sizeof(temp), "%s.part", path);
    errno = EIO; /* for faults injected by tests */
    fd = hr__fault(HR_FAULT_OPEN)
             ? -1
             : open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot write %s", path);
    while (done < bytes && error == 0) {
        ssize_t n = hr__fault(HR_FAULT_WRITE)
                        ? -1
                        : write(fd, (const char *)data + done, bytes - done);

        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            error = errno != 0 ? errno : EIO;
    }
    if (close(fd) != 0 && error == 0)
        error = errno;
    if (error == 0 && rename(temp, path) != 0)
        error = errno;
    if (error == 0)
        return HR_OK;
    unlink(temp);
    return hr__fail_errno(reterr, HR_ERR_IO, error, "cannot write %s", path);
}

static enum hr_err
make_photo(const char *dir, const struct hr_synth_photos *what, uint64_t at,
           struct hr_arena *arena, struct hr_error *reterr)
{
    struct hr_synth_front front;
    char path[PATH_ROOM];
    void *data = NULL;
    size_t bytes = 0;
    enum hr_err err;

    hr__synth_front(class_of(what, at), what->classes, &front);
    snprintf(path, sizeof(path), "%s/%s/photo_%08llu.jpg", dir, front.name,
             (unsigned long long)at);
    if (is_whole_jpeg(path))
        return HR_OK;
    hr__arena_reset(arena);
    err = encode_photo(what, at, arena, &data, &bytes, reterr);
    if (err == HR_OK)
        err = write_photo(path, data, bytes, reterr);
    hr__free(data);
    return err;
}

/* The settings as stored in the mark file. Without `count`: a set may grow. */
static void mark_text(const struct hr_synth_photos *what, char *text, size_t room)
{
    snprintf(text, room,
             "{\"synth\": 2, \"seed\": %llu, \"classes\": %d, \"width\": %d, \"height\": "
             "%d, \"quality\": %d, \"vary\": %s}\n",
             (unsigned long long)what->seed, what->classes, what->width, what->height,
             what->quality, what->vary ? "true" : "false");
}

static enum hr_err
check_mark(const char *dir, const struct hr_synth_photos *what, struct hr_error *reterr)
{
    char path[PATH_ROOM], want[256], *have = NULL;
    size_t bytes = 0;
    enum hr_err err;
    bool same;

    snprintf(path, sizeof(path), "%s/" MARK, dir);
    mark_text(what, want, sizeof(want));
    if (access(path, F_OK) != 0)
        return hr__file_replace(path, want, strlen(want), reterr);
    err = hr__file_read(path, 4096, &have, &bytes, reterr);
    if (err != HR_OK)
        return err;
    same = strcmp(have, want) == 0;
    hr__free(have);
    if (same)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "%s has photos made with different settings (see its " MARK
                    "); use another folder or remove it",
                    dir);
}

static enum hr_err check_photos(const char *dir, const struct hr_synth_photos *in,
                                struct hr_synth_photos *ret, struct hr_error *reterr)
{
    *ret = *in;
    if (ret->classes == 0)
        ret->classes = 10;
    if (ret->width == 0 && ret->height == 0) {
        ret->width = 500;
        ret->height = 375;
    }
    if (ret->classes < 1 || ret->classes > 1000000 || ret->width < 8 ||
        ret->width > 16384 || ret->height < 8 || ret->height > 16384 ||
        ret->quality < 0 || ret->quality > 100)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "photos need 1 to 1000000 classes, sides of 8 to 16384 pixels, "
                        "and a quality of 0 to 100");
    if (strlen(dir) > PATH_ROOM - 64)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "the folder's path is too long");
    return HR_OK;
}

enum hr_err hr_synth_photos(const char *dir, const struct hr_synth_photos *what,
                            hr_progress_fn *progress, void *user, struct hr_error *reterr)
{
    struct hr_synth_photos full;
    struct hr_arena arena;
    char path[PATH_ROOM];
    enum hr_err err;

    if (dir == NULL || what == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "hr_synth_photos needs a folder and settings");
    HR_TRY(check_photos(dir, what, &full, reterr));
    HR_TRY(make_folder(dir, reterr));
    HR_TRY(check_mark(dir, &full, reterr));
    for (int i = 0; i < full.classes && (uint64_t)i < full.count; i++) {
        struct hr_synth_front front;

        hr__synth_front(i, full.classes, &front);
        snprintf(path, sizeof(path), "%s/%s", dir, front.name);
        HR_TRY(make_folder(path, reterr));
    }
    hr__arena_init(&arena);
    err = HR_OK;
    for (uint64_t i = 0; i < full.count && err == HR_OK; i++) {
        if (progress != NULL && !progress(user, i, full.count))
            err = hr__fail(reterr, HR_ERR_CANCELLED, "stopped after %llu photos",
                           (unsigned long long)i);
        else
            err = make_photo(dir, &full, i, &arena, reterr);
    }
    hr__arena_finish(&arena);
    return err;
}

/* ---- names ---- */

/* Creates files [from, to) of one folder. */
static enum hr_err make_names(const char *dir, uint64_t folder, uint64_t from,
                              uint64_t to, struct hr_error *reterr)
{
    char path[PATH_ROOM];
    int at, fd;

    snprintf(path, sizeof(path), "%s/n%08llu", dir, (unsigned long long)folder);
    HR_TRY(make_folder(path, reterr));
    at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot open %s", path);
    for (uint64_t i = from; i < to; i++) {
        char name[64];

        snprintf(name, sizeof(name), "n%08llu_%llu.JPEG", (unsigned long long)folder,
                 (unsigned long long)i);
        fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) {
            int error = errno;

            close(at);
            return hr__fail_errno(reterr, HR_ERR_IO, error, "cannot make %s/%s", path,
                                  name);
        }
        close(fd);
    }
    close(at);
    return HR_OK;
}

enum hr_err hr_synth_names(const char *dir, uint64_t count, uint64_t folders,
                           hr_progress_fn *progress, void *user, struct hr_error *reterr)
{
    if (dir == NULL || folders < 1 || folders > 100000000 || count > (uint64_t)1 << 40 ||
        strlen(dir) > PATH_ROOM - 128)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "hr_synth_names needs a folder, 1 to 100000000 subfolders and at most "
            "2^40 files");
    HR_TRY(make_folder(dir, reterr));
    for (uint64_t i = 0; i < folders; i++) {
        uint64_t share = count / folders, more = count % folders;
        uint64_t from = i * share + (i < more ? i : more);
        uint64_t to = from + share + (i < more ? 1 : 0);

        if (progress != NULL && !progress(user, from, count))
            return hr__fail(reterr, HR_ERR_CANCELLED, "stopped after %llu files",
                            (unsigned long long)from);
        if (from < to)
            HR_TRY(make_names(dir, i, from, to, reterr));
    }
    return HR_OK;
}
