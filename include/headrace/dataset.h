/*
 * headrace/dataset.h - make data sets, index them, and hash what comes out: the work
 * beside the pipeline.
 */
#ifndef HR_DATASET_H
#define HR_DATASET_H

#include "headrace/base.h"

HR_BEGIN_DECLS

/* Called now and then on long work, from the calling thread; return false to stop
 * (HR_ERR_CANCELLED). */
typedef bool hr_progress_fn(void *user, uint64_t done, uint64_t all);

/* Synthesise `count` JPEG photos in `classes` folders under `dir` (made when absent).
 * Photo i depends on (seed, i) only; files that are there already with the right content
 * are kept, so a cut run goes on. */
struct hr_synth_photos {
    uint64_t seed, count;
    int classes;       /* default 10 */
    int width, height; /* mean size; single photos vary by a factor of 0.6 to 1.6; 0: 500
                          x 375 */
    int quality;       /* 0: mixed 70 to 96 */
    bool vary;         /* sizes, samplings and table optimisation vary as on the web */
};
HR_API HR_CHECK enum hr_err
hr_synth_photos(const char *dir, const struct hr_synth_photos *what,
                hr_progress_fn *progress, void *user, struct hr_error *reterr);

/* Make many empty files in folders, for start-up tests. */
HR_API HR_CHECK enum hr_err
hr_synth_names(const char *dir, uint64_t count, uint64_t folders,
               hr_progress_fn *progress, void *user, struct hr_error *reterr);

/* Scan a folder and save its index; later runs of source.files with `index: PATH` start
 * from it. */
struct hr_index_result {
    uint64_t files, folders, folders_rescanned, classes,
        bytes; /* bytes of the saved index */
};
HR_API HR_CHECK enum hr_err
hr_index_write(const char *root, const char *path, struct hr_index_result *ret_result,
               struct hr_error *reterr);

/* Go through all JPEGs of a folder and note in its saved index (made when absent) where
 * decoding can begin, so that a first epoch starts with what it would note itself.
 * Photos that are noted already are only read. `threads` 0: as many as the CPUs this
 * process may use. When it is stopped by `progress`, what is done is kept. */
struct hr_index_seek_result {
    uint64_t files, photos; /* in the folder; noted in the saved index */
    uint64_t bytes;         /* of their entries */
};
HR_API HR_CHECK enum hr_err
hr_index_seek(const char *root, const char *path, int threads, hr_progress_fn *progress,
              void *user, struct hr_index_seek_result *ret_result,
              struct hr_error *reterr);

/* XXH3-128 over bytes in order, as hex. */
struct hr_digest;
HR_API HR_CHECK struct hr_digest *hr_digest_create(void);
HR_API void hr_digest_add(struct hr_digest *digest, const void *data, size_t bytes);
HR_API void hr_digest_text(const struct hr_digest *digest, char ret_text[33]);
HR_API void hr_digest_destroy(struct hr_digest *digest);

/* u8 pixels, interleaved, 1 or 3 channels, to a PNG file (by rename). */
HR_API HR_CHECK enum hr_err
hr_png_write(const char *path, const uint8_t *pixels, int width, int height, int channels,
             struct hr_error *reterr);

HR_END_DECLS

#endif
