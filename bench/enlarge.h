/*
 * enlarge.h - sets of larger photos, made from those of a folder.
 *
 * Real photos enlarged keep the statistics of real photos better than synthesised ones
 * do, though they are smoother than a camera's; mosaics of enlarged photos come nearer to
 * the bits per pixel of a camera.
 */
#ifndef BENCH_ENLARGE_H
#define BENCH_ENLARGE_H

#include "passes.h"

struct enlarge {
    const char *name;      /* of the folder */
    size_t count;          /* photos to make; 0: one of every second */
    int32_t width, height; /* of each; 0: twice its own */
    int32_t tiles;         /* a side is made of so many photos; 1 for one photo */
    int quality;           /* of the JPEG, 4:2:0 */
};

/* The set's folder below build/bench-data, into `path`: made when it is not there, or was
 * made from other photos. */
void enlarge_set(const struct photos *from, const struct enlarge *set, char *path,
                 size_t room);

#endif
