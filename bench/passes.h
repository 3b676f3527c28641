/*
 * passes.h - passes over photos: by libjpeg-turbo alone, the baseline, and by a graph,
 * mostly one of examples/.
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

/* Loads all JPEG files of a folder, shuffled; their bytes are kept for decoding without
 * reading. Exits if a file is not a JPEG. */
void photos_load(struct photos *photos, const char *dir);
void photos_finish(struct photos *photos);

/* Decodes every whole photo to RGB once, with accurate IDCT and smooth upsampling; with
 * `read`, opens and reads its file first. Adds a row: photos per second of wall-clock and
 * of CPU time. */
void photos_decode(struct bench *bench, const char *row, const struct photos *photos,
                   int threads, bool read);

/* How to run a graph. One thread means one CPU for the whole process, so that the
 * consumer cannot run in parallel. */
struct pass {
    const char *graph, *dir;
    const char
        *text; /* or NULL: then `graph` is a file; otherwise its name in messages */
    struct hr_graph_param params[4]; /* in addition to data */
    size_t param_count;
    int threads;
    int round; /* counted from 0; each round has its own crops */
    bool unfused;
    bool avx2; /* as on a machine without AVX-512 */
};

/* Runs one epoch to warm up, which faults in batch buffers and learns about the files,
 * then one that counts, releasing each batch on receipt. Adds a row as above. `ret_nodes`
 * (may be NULL) receives microseconds of CPU per record for each node, as text. */
void pass_run(struct bench *bench, const char *row, const struct pass *pass,
              char *ret_nodes, size_t room);

/* Runs the first two epochs, each a row: the first knows nothing about the photos, the
 * second has what the first learned. The first `warm` records are not counted: they fault
 * in the batch buffers, which in a long run takes place in the first second. */
void pass_run_epochs(struct bench *bench, const char *first, const char *second,
                     const struct pass *pass, int64_t warm);

/* distance.c: how far mode close is from the reference, mode exact without composition,
 * in grey levels, for all photos of `dir`, with the same crops, by vision_rrc. Adds a
 * fact, and the claim that the mean is at most `limit`. */
void pass_distance(struct bench *bench, const char *dir, double limit);

#endif
