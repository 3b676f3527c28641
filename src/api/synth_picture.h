/*
 * api/synth_picture.h - scenes that cost as much to decode as photos.
 */
#ifndef HR_API_SYNTH_PICTURE_H
#define HR_API_SYNTH_PICTURE_H

#include "core/arena.h"
#include "core/rng.h"
#include "kernel/pixels.h"

/* What stands in front in the photos of a class. */
struct hr_synth_front {
    char name[32]; /* of the class's folder: "balloon", or "balloon_2" if there are
                      several; names sort as the numbers of their classes do */
    int thing;     /* which of the ten */
    float hue;     /* its colour, from 0 on, in turns of the colour wheel */
};
void hr__synth_front(int class, int classes, struct hr_synth_front *ret_front);

/* Draws a scene of the given size from `rng` as u8 RGB in the arena. Returns false when
 * out of memory. Uses only integer and exactly rounded arithmetic: the same bytes on
 * every machine. */
bool hr__synth_picture(struct hr_rng *rng, const struct hr_synth_front *front,
                       int32_t width, int32_t height, struct hr_arena *arena,
                       struct hr_pixels *ret_pixels);

#endif
