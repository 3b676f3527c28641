/*
 * passes.h - passes over photos: by libjpeg-turbo alone, which is the line to beat, and
 * by a graph of examples/.
 */
#ifndef BENCH_PASSES_H
#define BENCH_PASSES_H

#include "measure.h"

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
    struct hr_graph_param params[4]; /* beside data */
    size_t param_count;
    int threads;
    bool unfused;
};

/* One epoch to warm up, so that batch buffers have their pages, then one that counts,
 * giving each batch back when it comes. Adds the row as above. `ret_nodes` (may be NULL)
 * gets microseconds of CPU per record, node by node, in words. */
void pass_run(struct bench *bench, const char *row, const struct pass *pass,
              char *ret_nodes, size_t room);

#endif
