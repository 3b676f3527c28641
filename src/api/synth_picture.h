/*
 * api/synth_picture.h - scenes that cost as much to decode as photos.
 */
#ifndef HR_API_SYNTH_PICTURE_H
#define HR_API_SYNTH_PICTURE_H

#include "core/arena.h"
#include "core/rng.h"
#include "kernel/pixels.h"

/* Draws a scene of the given size from `rng` as u8 RGB in the arena. `class` says what
 * stands in front: a house, a tree, a balloon, ... ten in turn; `hue` in [0, 1) colours
 * it. Returns false when out of memory. Uses only integer and exactly rounded arithmetic:
 * the same bytes on every machine. */
bool hr__synth_picture(struct hr_rng *rng, int class, float hue, int32_t width,
                       int32_t height, struct hr_arena *arena,
                       struct hr_pixels *ret_pixels);

#endif
