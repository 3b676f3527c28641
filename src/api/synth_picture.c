/*
 * api/synth_picture.c - generates gradients, five octaves of noise, shapes with edges,
 * and grain.
 *
 * Photos are smooth with edges, textured in places, and noisy everywhere; with less of
 * that a picture would be too cheap to decode. Amplitudes are chosen so that qualities of
 * 70 to 96 give about half a byte per pixel, as for photos on the web.
 */
#include "api/synth_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OCTAVES 5
#define SHAPE_CORNERS 7

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

struct colour {
    float c[3];
};

/* A colour of this hue, lightness and saturation, 0..255. */
static struct colour make_colour(float hue, float light, float strength)
{
    struct colour colour;

    for (int i = 0; i < 3; i++) {
        float at = hue + (float)i / 3.0f;
        float wave = fabsf(2.0f * (at - floorf(at)) -
                           1.0f); /* a triangle wave instead of a cosine */

        colour.c[i] = light + strength * (wave - 0.5f);
    }
    return colour;
}

static struct colour draw_colour(struct hr_rng *rng)
{
    float hue = hr__rng_float(rng);
    float light = (float)hr__rng_uniform(rng, 30, 225);

    return make_colour(hue, light, (float)hr__rng_uniform(rng, 10, 160));
}

static uint8_t level(float value)
{
    return value >= 255.0f ? 255 : value > 0.0f ? (uint8_t)(value + 0.5f) : 0;
}

/* How a region is painted. */
struct paint {
    struct colour corner[4]; /* interpolated over the whole picture */
    float texture;           /* weight of the noise plane */
};

struct canvas {
    uint8_t *pixels;
    const int16_t *noise;
    int32_t width, height;
};

static void paint_run(const struct canvas *canvas, const struct paint *paint, int32_t y,
                      int32_t from, int32_t to)
{
    float v = (float)y / (float)canvas->height;
    uint8_t *out =
        canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)from) * 3;
    const int16_t *noise = canvas->noise + (size_t)y * (size_t)canvas->width;

    for (int32_t x = from; x < to; x++) {
        float u = (float)x / (float)canvas->width;
        float shade = (float)noise[x] * paint->texture;

        for (int c = 0; c < 3; c++) {
            float top = paint->corner[0].c[c] * (1.0f - u) + paint->corner[1].c[c] * u;
            float low = paint->corner[2].c[c] * (1.0f - u) + paint->corner[3].c[c] * u;

            *out++ = level(top * (1.0f - v) + low * v + shade);
        }
    }
}

static void draw_paint(struct hr_rng *rng, struct paint *paint)
{
    struct colour base = draw_colour(rng);

    for (int i = 0; i < 4; i++) {
        float step = (float)hr__rng_uniform(rng, -40, 40);

        for (int c = 0; c < 3; c++)
            paint->corner[i].c[c] = base.c[c] + step;
    }
    paint->texture = (float)hr__rng_uniform(rng, 0.02, 0.11);
}

static void draw_ellipse(struct hr_rng *rng, const struct canvas *canvas)
{
    struct paint paint;
    float cx = hr__rng_float(rng) * (float)canvas->width;
    float cy = hr__rng_float(rng) * (float)canvas->height;
    float rx = (float)hr__rng_uniform(rng, 0.03, 0.35) * (float)canvas->width;
    float ry = (float)hr__rng_uniform(rng, 0.03, 0.35) * (float)canvas->height;

    draw_paint(rng, &paint);
    for (int32_t y = 0; y < canvas->height; y++) {
        float dy = ((float)y - cy) / ry, half;
        int32_t from, to;

        if (dy * dy >= 1.0f)
            continue;
        half = rx * sqrtf(1.0f - dy * dy);
        from = cx - half > 0.0f ? (int32_t)(cx - half) : 0;
        to = cx + half < (float)canvas->width ? (int32_t)(cx + half) : canvas->width;
        if (from < to)
            paint_run(canvas, &paint, y, from, to);
    }
}

/* Intersections of row y with the polygon's edges, ascending; for even-odd filling. */
static int crossings(const float *px, const float *py, int count, float y, float *ret)
{
    int found = 0;

    for (int i = 0; i < count; i++) {
        int j = (i + 1) % count;

        if ((py[i] <= y) == (py[j] <= y))
            continue;
        ret[found++] = px[i] + (y - py[i]) / (py[j] - py[i]) * (px[j] - px[i]);
    }
    for (int i = 1; i < found; i++)
        for (int j = i; j > 0 && ret[j - 1] > ret[j]; j--) {
            float swap = ret[j];

            ret[j] = ret[j - 1];
            ret[j - 1] = swap;
        }
    return found;
}

static void draw_polygon(struct hr_rng *rng, const struct canvas *canvas)
{
    struct paint paint;
    float px[SHAPE_CORNERS], py[SHAPE_CORNERS], at[SHAPE_CORNERS];
    int count = 3 + (int)hr__rng_below(rng, SHAPE_CORNERS - 2);
    float cx = hr__rng_float(rng) * (float)canvas->width;
    float cy = hr__rng_float(rng) * (float)canvas->height;
    float size = (float)hr__rng_uniform(rng, 0.06, 0.4);

    for (int i = 0; i < count; i++) {
        px[i] = cx + (float)hr__rng_uniform(rng, -1, 1) * size * (float)canvas->width;
        py[i] = cy + (float)hr__rng_uniform(rng, -1, 1) * size * (float)canvas->height;
    }
    draw_paint(rng, &paint);
    for (int32_t y = 0; y < canvas->height; y++) {
        int found = crossings(px, py, count, (float)y + 0.5f, at);

        for (int i = 0; i + 1 < found; i += 2) {
            float left = at[i] > 0.0f ? at[i] : 0.0f;
            float right =
                at[i + 1] < (float)canvas->width ? at[i + 1] : (float)canvas->width;

            if (left < right)
                paint_run(canvas, &paint, y, (int32_t)left, (int32_t)right);
        }
    }
}

/* Sensor noise, of a different strength in each picture. */
static void add_grain(struct hr_rng *rng, const struct canvas *canvas)
{
    size_t bytes = (size_t)canvas->width * (size_t)canvas->height * 3;
    uint32_t state = hr__rng_u32(rng) | 1u;
    int32_t amount = (int32_t)hr__rng_below(rng, 32);

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

static void draw_ground(struct hr_rng *rng, float hue, const struct canvas *canvas)
{
    struct paint ground;

    for (int i = 0; i < 4; i++) {
        /* in variables: argument evaluation order is unspecified */
        float light = (float)hr__rng_uniform(rng, 60, 200);
        float step = (float)hr__rng_uniform(rng, -0.06, 0.06);

        ground.corner[i] = make_colour(hue + step, light, 150);
    }
    ground.texture = (float)hr__rng_uniform(rng, 0.03, 0.1);
    for (int32_t y = 0; y < canvas->height; y++)
        paint_run(canvas, &ground, y, 0, canvas->width);
}

bool hr__synth_picture(struct hr_rng *rng, float hue, int32_t width, int32_t height,
                       struct hr_arena *arena, struct hr_pixels *ret_pixels)
{
    size_t count = (size_t)width * (size_t)height;
    int16_t *noise = hr__arena_zalloc(arena, count * sizeof(*noise));
    struct canvas canvas = {hr__arena_alloc(arena, count * 3), noise, width, height};
    int shapes;

    if (noise == NULL || canvas.pixels == NULL)
        return false;
    for (int i = 0; i < OCTAVES; i++)
        add_octave(noise, width, height, i + 1, 1000, hr__rng_u32(rng));
    draw_ground(rng, hue, &canvas);
    shapes = 5 + (int)hr__rng_below(rng, 16);
    for (int i = 0; i < shapes; i++) {
        if (hr__rng_below(rng, 2) == 0)
            draw_ellipse(rng, &canvas);
        else
            draw_polygon(rng, &canvas);
    }
    add_grain(rng, &canvas);
    *ret_pixels = hr__pixels_u8(canvas.pixels, width, height, 3);
    return true;
}
