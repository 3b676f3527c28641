/*
 * enlarge.h - sets of larger photos, made from those of a folder.
 *
 * Enlarged real photos keep the statistics of real photos better than synthetic ones do,
 * though they are smoother than a camera's; mosaics of enlarged photos come closer to a
 * camera's bits per pixel.
 */
#ifndef BENCH_ENLARGE_H
#define BENCH_ENLARGE_H

#include "passes.h"

struct enlarge {
    const char *name;      /* of the folder */
    size_t count;          /* photos to make; 0: one from every second photo */
    int32_t width, height; /* of each; 0: twice the original */
    int32_t tiles;         /* photos per side of a mosaic; 1: a single photo */
    int quality;           /* of the JPEG, 4:2:0 */
};

/* Sets `path` to the set's folder below build/bench-data, which is created if missing or
 * made from other photos. */
void enlarge_set(const struct photos *from, const struct enlarge *set, char *path,
                 size_t room);

#endif
