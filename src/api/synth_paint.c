/*
 * api/synth_paint.c - noise, areas with gradients, and grain.
 */
#include "api/synth_paint.h"

#include <math.h>

#define OCTAVES_FINE 3
#define OCTAVES_COARSE 3

/* Lattice noise: a value in -1024..1023 at each lattice point. */
static int32_t lattice(uint32_t seed, int32_t x, int32_t y)
{
    uint32_t h = seed ^ ((uint32_t)x * 0x9e3779b1u) ^ ((uint32_t)y * 0x85ebca77u);

    h = (h ^ (h >> 15)) * 0x2c1b3c6du;
    h = (h ^ (h >> 12)) * 0x297a2d39u;
    h ^= h >> 15;
    return (int32_t)(h & 2047) - 1024;
}

/* Adds one octave with cells of 1 << shift pixels to a plane; weight in 1/1024. */
static void add_octave(int16_t *plane, int32_t width, int32_t height, int shift,
                       int32_t weight, uint32_t seed)
{
    int32_t cell = 1 << shift;

    for (int32_t y = 0; y < height; y++) {
        int32_t fy = y & (cell - 1), ly = y >> shift;
        int16_t *row = plane + (size_t)y * (size_t)width;

        for (int32_t lx = 0; lx << shift < width; lx++) {
            int32_t left =
                lattice(seed, lx, ly) * (cell - fy) + lattice(seed, lx, ly + 1) * fy;
            int32_t right = lattice(seed, lx + 1, ly) * (cell - fy) +
                            lattice(seed, lx + 1, ly + 1) * fy;
            int32_t end = (lx + 1) << shift, x = lx << shift;

            for (int32_t fx = 0; x < end && x < width; x++, fx++) {
                int64_t value = (int64_t)left * (cell - fx) + (int64_t)right * fx;

                row[x] = (int16_t)(row[x] + ((value >> (2 * shift)) * weight >> 10));
            }
        }
    }
}

bool hr__canvas_make(struct hr_canvas *canvas, struct hr_rng *rng, int32_t width,
                     int32_t height, struct hr_arena *arena)
{
    size_t count = (size_t)width * (size_t)height;
    int16_t *fine = hr__arena_zalloc(arena, count * sizeof(*fine));
    int16_t *coarse = hr__arena_zalloc(arena, count * sizeof(*coarse));

    *canvas = (struct hr_canvas){hr__arena_alloc(arena, count * 3), fine, coarse, width,
                                 height};
    if (fine == NULL || coarse == NULL || canvas->pixels == NULL)
        return false;
    for (int i = 0; i < OCTAVES_FINE; i++)
        add_octave(fine, width, height, i + 1, 680, hr__rng_u32(rng));
    for (int i = 0; i < OCTAVES_COARSE; i++)
        add_octave(coarse, width, height, i + 4, 680, hr__rng_u32(rng));
    return true;
}

struct hr_colour hr__colour(float hue, float light, float strength)
{
    struct hr_colour colour;

    for (int i = 0; i < 3; i++) {
        float at = hue + (float)i / 3.0f;
        float wave = fabsf(2.0f * (at - floorf(at)) -
                           1.0f); /* a triangle wave instead of a cosine */

        colour.c[i] = light + strength * (wave - 0.5f);
    }
    return colour;
}

static uint8_t level(float value)
{
    return value >= 255.0f ? 255 : value > 0.0f ? (uint8_t)(value + 0.5f) : 0;
}

/* The area that a gradient spans. */
struct box {
    float left, top, width, height;
};

static void paint_run(const struct hr_canvas *canvas, const struct hr_paint *paint,
                      const struct box *box, int32_t y, int32_t from, int32_t to)
{
    size_t row = (size_t)y * (size_t)canvas->width;
    uint8_t *out = canvas->pixels + (row + (size_t)from) * 3;
    float v = ((float)y - box->top) / box->height;

    for (int32_t x = from; x < to; x++) {
        float u = ((float)x - box->left) / box->width;
        float shade = paint->light * (0.5f - 0.4f * u - 0.6f * v) +
                      paint->fine * (float)canvas->fine[row + (size_t)x] +
                      paint->coarse * (float)canvas->coarse[row + (size_t)x];

        for (int c = 0; c < 3; c++)
            *out++ = level(paint->colour.c[c] + shade);
    }
}

/* Cuts a run from `from` to `to` to the canvas, and paints it. */
static void paint_span(const struct hr_canvas *canvas, const struct hr_paint *paint,
                       const struct box *box, int32_t y, float from, float to)
{
    int32_t left = from > 0.0f ? (int32_t)from : 0;
    int32_t right = to < (float)canvas->width ? (int32_t)to : canvas->width;

    if (left < right)
        paint_run(canvas, paint, box, y, left, right);
}

void hr__paint_ellipse(const struct hr_canvas *canvas, const struct hr_paint *paint,
                       struct hr_point centre, float rx, float ry)
{
    struct box box = {centre.x - rx, centre.y - ry, 2.0f * rx, 2.0f * ry};

    for (int32_t y = 0; y < canvas->height; y++) {
        float dy = ((float)y + 0.5f - centre.y) / ry, half;

        if (!(dy * dy < 1.0f))
            continue;
        half = rx * sqrtf(1.0f - dy * dy);
        paint_span(canvas, paint, &box, y, centre.x - half + 0.5f,
                   centre.x + half + 0.5f);
    }
}

/* Intersections of row y with the polygon's edges, ascending; for even-odd filling. */
static int crossings(const struct hr_point *p, int count, float y, float *ret)
{
    int found = 0;

    for (int i = 0; i < count; i++) {
        int j = (i + 1) % count;

        if ((p[i].y <= y) == (p[j].y <= y))
            continue;
        ret[found++] = p[i].x + (y - p[i].y) / (p[j].y - p[i].y) * (p[j].x - p[i].x);
    }
    for (int i = 1; i < found; i++)
        for (int j = i; j > 0 && ret[j - 1] > ret[j]; j--) {
            float swap = ret[j];

            ret[j] = ret[j - 1];
            ret[j - 1] = swap;
        }
    return found;
}

static struct box box_of(const struct hr_point *corners, int count)
{
    float right = corners[0].x, bottom = corners[0].y;
    struct box box = {right, bottom, 0, 0};

    for (int i = 1; i < count; i++) {
        box.left = corners[i].x < box.left ? corners[i].x : box.left;
        box.top = corners[i].y < box.top ? corners[i].y : box.top;
        right = corners[i].x > right ? corners[i].x : right;
        bottom = corners[i].y > bottom ? corners[i].y : bottom;
    }
    box.width = right - box.left + 1.0f;
    box.height = bottom - box.top + 1.0f;
    return box;
}

void hr__paint_polygon(const struct hr_canvas *canvas, const struct hr_paint *paint,
                       const struct hr_point *corners, int count)
{
    struct box box = box_of(corners, count);
    float at[HR_CORNERS_MAX];

    for (int32_t y = 0; y < canvas->height; y++) {
        int found = crossings(corners, count, (float)y + 0.5f, at);

        for (int i = 0; i + 1 < found; i += 2)
            paint_span(canvas, paint, &box, y, at[i] + 0.5f, at[i + 1] + 0.5f);
    }
}

void hr__paint_below(const struct hr_canvas *canvas, const struct hr_paint *paint,
                     const int32_t *top)
{
    int32_t highest = canvas->height;
    struct box box;

    for (int32_t x = 0; x < canvas->width; x++)
        highest = top[x] < highest ? top[x] : highest;
    highest = highest < 0 ? 0 : highest;
    box = (struct box){0, (float)highest, (float)canvas->width,
                       (float)(canvas->height - highest) + 1.0f};
    for (int32_t y = highest; y < canvas->height; y++)
        for (int32_t x = 0, from; x < canvas->width; x++) {
            for (; x < canvas->width && top[x] > y; x++)
                ;
            for (from = x; x < canvas->width && top[x] <= y; x++)
                ;
            paint_run(canvas, paint, &box, y, from, x);
        }
}

void hr__paint_grain(const struct hr_canvas *canvas, struct hr_rng *rng, int32_t amount)
{
    size_t bytes = (size_t)canvas->width * (size_t)canvas->height * 3;
    uint32_t state = hr__rng_u32(rng) | 1u;

    for (size_t i = 0; i < bytes; i++) {
        int32_t value;

        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        value =
            canvas->pixels[i] +
            (((int32_t)(state & 255) + (int32_t)((state >> 8) & 255) - 255) * amount >>
             8);
        canvas->pixels[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}
