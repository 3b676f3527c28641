/*
 * api/synth_picture.h - pictures that cost a codec what photos cost it.
 */
#ifndef HR_API_SYNTH_PICTURE_H
#define HR_API_SYNTH_PICTURE_H

#include "core/arena.h"
#include "core/rng.h"
#include "kernel/pixels.h"

/* Draw a picture of the given size from `rng`, u8 RGB, in the arena. `hue` in [0, 1)
 * colours its ground, so that a label can be seen. false when out of memory. Integer and
 * exactly rounded arithmetic only: the same bytes on every machine. */
bool hr__synth_picture(struct hr_rng *rng, float hue, int32_t width, int32_t height,
                       struct hr_arena *arena, struct hr_pixels *ret_pixels);

#endif
