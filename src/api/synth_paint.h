/*
 * api/synth_paint.h - areas of a picture, painted with a gradient and texture.
 *
 * Only integer and exactly rounded arithmetic: the same bytes on every machine.
 */
#ifndef HR_API_SYNTH_PAINT_H
#define HR_API_SYNTH_PAINT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/rng.h"

#define HR_CORNERS_MAX 8

struct hr_colour {
    float c[3]; /* levels, 0..255 */
};

/* A point, in pixels. */
struct hr_point {
    float x, y;
};

/* How an area is painted. Light falls from the upper left. */
struct hr_paint {
    struct hr_colour colour;
    float light;        /* levels between the lit and the dark corner */
    float fine, coarse; /* weights of the two planes of noise */
};

struct hr_canvas {
    uint8_t *pixels;              /* RGB */
    const int16_t *fine, *coarse; /* noise of small and of large grains, -2048..2047 */
    int32_t width, height;
};

/* An empty canvas with noise of its own; false if out of memory. */
bool hr__canvas_make(struct hr_canvas *canvas, struct hr_rng *rng, int32_t width,
                     int32_t height, struct hr_arena *arena);

/* A colour of this hue (0..1, red at 0), lightness and saturation (0..255). */
struct hr_colour hr__colour(float hue, float light, float strength);

void hr__paint_ellipse(const struct hr_canvas *canvas, const struct hr_paint *paint,
                       struct hr_point centre, float rx, float ry);

/* Up to HR_CORNERS_MAX corners; where edges cross, by the even-odd rule. */
void hr__paint_polygon(const struct hr_canvas *canvas, const struct hr_paint *paint,
                       const struct hr_point *corners, int count);

/* Everything from row `top[x]` of each column down. */
void hr__paint_below(const struct hr_canvas *canvas, const struct hr_paint *paint,
                     const int32_t *top);

/* Adds sensor noise of up to `amount` levels. */
void hr__paint_grain(const struct hr_canvas *canvas, struct hr_rng *rng, int32_t amount);

#endif
