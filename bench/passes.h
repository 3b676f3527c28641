/*
 * passes.h - passes over photos: by libjpeg-turbo alone, which is the line to beat, and
 * by a graph, mostly one of examples/.
 */
#ifndef BENCH_PASSES_H
#define BENCH_PASSES_H

#include "measure.h"

struct photo {
    char *path;
    unsigned char *data;
    size_t bytes;
};

struct photos {
    struct photo *list;
    size_t count;
};

/* All JPEG files of a folder, shuffled; their bytes are kept for decoding without
 * reading. Dies when a file is no JPEG. */
void photos_load(struct photos *photos, const char *dir);
void photos_finish(struct photos *photos);

/* Decode every photo to RGB once, whole, accurate IDCT, smooth upsampling; with `read`
 * its file is opened and read first. Adds the row: photos per second of wall clock and of
 * CPU time. */
void photos_decode(struct bench *bench, const char *row, const struct photos *photos,
                   int threads, bool read);

/* How a graph runs. One thread means one CPU for the whole process, so that the consumer
 * does not help beside it. */
struct pass {
    const char *graph, *dir;
    const char *text; /* or NULL: the graph itself, and `graph` is its name in messages */
    struct hr_graph_param params[4]; /* beside data */
    size_t param_count;
    int threads;
    int round; /* counted from 0; each has crops of its own */
    bool unfused;
    bool avx2; /* as on a machine without AVX-512 */
};

/* One epoch to warm up, so that batch buffers have their pages and what can be learned of
 * the files is known, then one that counts, giving each batch back when it comes. Adds
 * the row as above. `ret_nodes` (may be NULL) gets microseconds of CPU per record, node
 * by node, in words. */
void pass_run(struct bench *bench, const char *row, const struct pass *pass,
              char *ret_nodes, size_t room);

/* The first two epochs of a run, each a row: in the first nothing is known of the photos,
 * the second has what the first learned. The first `warm` records of the first epoch do
 * not count: batch buffers get their pages then, as in the first second of a run of
 * hours.
 */
void pass_run_epochs(struct bench *bench, const char *first, const char *second,
                     const struct pass *pass, int64_t warm);

/* distance.c: how far mode close is from the reference, which is mode exact with every
 * node alone, in grey levels, on all photos of `dir`, same crops, by vision_rrc. Adds a
 * fact, and the claim that the mean is at most `limit`. */
void pass_distance(struct bench *bench, const char *dir, double limit);

#endif
