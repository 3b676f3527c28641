/*
 * api/dataset_api.c - include/headrace/dataset.h except synth.c: index, digest, PNG.
 */
#include "api/dataset_index.h"
#include "codec/image.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "headrace/dataset.h"
#include "store/index.h"

#include <sys/stat.h>

/* ---- index ---- */

/* The suffixes of source.files; with others, that op would reject the index. */
static const char *const suffixes[] = {".jpg", ".jpeg", ".png", ".webp",
                                       ".ppm", ".pgm",  ".pbm", ".pnm"};

enum hr_err hr__api_index_open(const char *root, const char *path,
                               struct hr_index **ret_index, struct hr_error *reterr)
{
    struct hr_index_options options = {.root = root,
                                       .suffixes = suffixes,
                                       .suffix_count =
                                           sizeof(suffixes) / sizeof(suffixes[0]),
                                       .recursive = true,
                                       .folder_labels = true,
                                       .saved = path};

    if (hr__index_open(&options, ret_index, NULL) == HR_OK)
        return HR_OK;
    options.folder_labels = false;
    return hr__index_open(&options, ret_index, reterr);
}

enum hr_err hr_index_write(const char *root, const char *path,
                           struct hr_index_result *ret_result, struct hr_error *reterr)
{
    struct hr_index *index = NULL;
    struct hr_index_stats stats;
    struct stat info;
    enum hr_err err;

    if (root == NULL || path == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "hr_index_write needs a folder and a path");
    HR_TRY(hr__api_index_open(root, path, &index, reterr));
    hr__index_stats(index, &stats);
    err = stats.save_failed ? hr__index_save(index, path, reterr) : HR_OK;
    if (err == HR_OK && stat(path, &info) != 0)
        err = hr__index_save(index, path, reterr);
    if (err == HR_OK && ret_result != NULL)
        *ret_result = (struct hr_index_result){
            .files = hr__index_count(index),
            .folders = stats.folders,
            .folders_rescanned = stats.folders_rescanned,
            .classes = hr__index_classes(index)->count,
            .bytes = stat(path, &info) == 0 ? (uint64_t)info.st_size : 0,
        };
    hr__index_unref(index);
    return err;
}

/* ---- digest ---- */

struct hr_digest {
    struct hr_hasher *hasher;
};

struct hr_digest *hr_digest_create(void)
{
    struct hr_digest *digest = hr__malloc(sizeof(*digest));

    if (digest == NULL)
        return NULL;
    digest->hasher = hr__hasher_create();
    if (digest->hasher != NULL)
        return digest;
    hr__free(digest);
    return NULL;
}

void hr_digest_add(struct hr_digest *digest, const void *data, size_t bytes)
{
    if (bytes > 0)
        hr__hasher_add(digest->hasher, data, bytes);
}

void hr_digest_text(const struct hr_digest *digest, char ret_text[33])
{
    hr__hash_text(hr__hasher_value(digest->hasher), ret_text);
}

void hr_digest_destroy(struct hr_digest *digest)
{
    if (digest == NULL)
        return;
    hr__hasher_destroy(digest->hasher);
    hr__free(digest);
}

/* ---- PNG ---- */

enum hr_err hr_png_write(const char *path, const uint8_t *pixels, int width, int height,
                         int channels, struct hr_error *reterr)
{
    struct hr_pixels picture = hr__pixels_u8((void *)(uintptr_t)pixels, /* only read */
                                             width, height, channels);
    void *data = NULL;
    size_t bytes = 0;
    enum hr_err err;

    if (path == NULL || pixels == NULL || width < 1 || height < 1 ||
        (channels != 1 && channels != 3))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "hr_png_write needs a path, pixels, a size, and 1 or 3 channels");
    HR_TRY(hr__image_encode_png(&picture, &data, &bytes, reterr));
    err = hr__file_replace(path, data, bytes, reterr);
    hr__free(data);
    return err;
}
