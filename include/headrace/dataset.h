/*
 * headrace/dataset.h - generate data sets, index them, and hash output.
 */
#ifndef HR_DATASET_H
#define HR_DATASET_H

#include "headrace/base.h"

HR_BEGIN_DECLS

/* Called occasionally during long operations, from the calling thread; return false to
 * stop with HR_ERR_CANCELLED. */
typedef bool hr_progress_fn(void *user, uint64_t done, uint64_t all);

/* Generates `count` JPEG photos in `classes` folders under `dir`, which is created if
 * missing: landscapes. A folder is called after what stands in front: "balloon", "boat",
 * ... "tree", ten things; with more classes the things differ in colour, "balloon_1",
 * "balloon_2". Classes are numbered in the order of these names. Photo i depends only on
 * i and the fields below except `count`. Existing photos of the same set are kept, so an
 * interrupted call can be repeated to continue. */
struct hr_synth_photos {
    uint64_t seed, count;
    int classes; /* default 10 */
    int width,
        height;  /* mean size; photos vary by a factor of 0.6 to 1.6; 0: 500 x 375 */
    int quality; /* 0: a mix of 70 to 96 */
    bool vary;   /* vary sizes, samplings and Huffman tables as on the web */
};
HR_API HR_CHECK enum hr_err
hr_synth_photos(const char *dir, const struct hr_synth_photos *what,
                hr_progress_fn *progress, void *user, struct hr_error *reterr);

/* Creates many empty files in folders, for start-up tests. */
HR_API HR_CHECK enum hr_err
hr_synth_names(const char *dir, uint64_t count, uint64_t folders,
               hr_progress_fn *progress, void *user, struct hr_error *reterr);

/* Scans a folder and saves its index, which source.files uses with `index: PATH`. */
struct hr_index_result {
    uint64_t files, folders, folders_rescanned, classes,
        bytes; /* size of the saved index */
};
HR_API HR_CHECK enum hr_err
hr_index_write(const char *root, const char *path, struct hr_index_result *ret_result,
               struct hr_error *reterr);

/* Reads all JPEGs of a folder and records in its saved index (created if missing) where
 * decoding can start, so that the first epoch seeks as fast as later ones. Photos that
 * have an entry are only hashed. `threads` 0: the CPUs this process may use. If
 * `progress` stops it, the work done so far is saved. */
struct hr_index_seek_result {
    uint64_t files, photos; /* in the folder; with an entry in the saved index */
    uint64_t bytes;         /* of their entries */
};
HR_API HR_CHECK enum hr_err
hr_index_seek(const char *root, const char *path, int threads, hr_progress_fn *progress,
              void *user, struct hr_index_seek_result *ret_result,
              struct hr_error *reterr);

/* XXH3-128 of bytes in order, as hex digits. */
struct hr_digest;
HR_API HR_CHECK struct hr_digest *hr_digest_create(void);
HR_API void hr_digest_add(struct hr_digest *digest, const void *data, size_t bytes);
HR_API void hr_digest_text(const struct hr_digest *digest, char ret_text[33]);
HR_API void hr_digest_destroy(struct hr_digest *digest);

/* Writes interleaved u8 pixels with 1 or 3 channels to a PNG file, atomically. */
HR_API HR_CHECK enum hr_err
hr_png_write(const char *path, const uint8_t *pixels, int width, int height, int channels,
             struct hr_error *reterr);

HR_END_DECLS

#endif
