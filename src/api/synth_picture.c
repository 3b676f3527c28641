/*
 * api/synth_picture.c - sky, hills, ground, and something that stands in front.
 *
 * Photos are smooth with edges, textured in places, and noisy everywhere; with less of
 * that a picture would be too cheap to decode. Amplitudes are chosen so that qualities of
 * 70 to 96 give about half a byte per pixel, as for photos on the web. What stands in
 * front depends on the class, so that a model can learn to name it.
 */
#include "api/synth_picture.h"

#include <assert.h>
#include <stdio.h>

#include "api/synth_paint.h"

/* ---- things ---- */

enum tint { MAIN, ROOF, PALE, DARK, WOOD, LEAF, GLASS, GOLD, TINTS };

/* A part of a thing, in hundredths of its size from its lower left corner, y upwards. An
 * ellipse (`count` 0) has its centre and its radii, a polygon its corners. */
struct part {
    enum tint tint;
    int count;
    int16_t at[2 * HR_CORNERS_MAX];
};

#define PARTS_MAX 11

/* clang-format off */
static const struct {
    const char *name;
    struct part parts[PARTS_MAX];
} things[] = { /* in order of name */
    {"balloon", {
       {DARK, 4, {27, 42, 29, 42, 44, 14, 42, 14}},
       {DARK, 4, {73, 42, 71, 42, 56, 14, 58, 14}},
       {MAIN, 0, {50, 64, 34, 36}},
       {PALE, 0, {50, 64, 20, 36}},
       {MAIN, 0, {50, 64, 8, 36}},
       {WOOD, 4, {42, 0, 58, 0, 60, 16, 40, 16}},
    }},
    {"boat", {
       {WOOD, 4, {48, 18, 51, 18, 51, 98, 48, 98}},
       {PALE, 3, {53, 26, 53, 95, 92, 26}},
       {ROOF, 3, {46, 28, 46, 82, 16, 28}},
       {MAIN, 4, {4, 22, 98, 22, 80, 0, 20, 0}},
    }},
    {"car", {
       {MAIN, 4, {20, 34, 34, 60, 68, 60, 82, 34}},
       {MAIN, 6, {0, 12, 100, 12, 99, 30, 82, 37, 18, 37, 1, 31}},
       {GLASS, 4, {27, 37, 37, 56, 50, 56, 50, 37}},
       {GLASS, 4, {53, 37, 53, 56, 66, 56, 75, 37}},
       {DARK, 0, {23, 12, 12, 12}},
       {DARK, 0, {77, 12, 12, 12}},
       {PALE, 0, {23, 12, 5, 5}},
       {PALE, 0, {77, 12, 5, 5}},
       {GOLD, 0, {96, 25, 3, 4}},
    }},
    {"flower", {
       {LEAF, 4, {48, 0, 53, 0, 52, 55, 48, 55}},
       {LEAF, 0, {63, 24, 15, 6}},
       {LEAF, 0, {37, 16, 15, 6}},
       {MAIN, 0, {50, 86, 11, 14}},
       {MAIN, 0, {67, 75, 14, 11}},
       {MAIN, 0, {61, 56, 12, 13}},
       {MAIN, 0, {39, 56, 12, 13}},
       {MAIN, 0, {33, 75, 14, 11}},
       {GOLD, 0, {50, 69, 11, 11}},
    }},
    {"house", {
       {WOOD, 4, {70, 60, 80, 60, 80, 98, 70, 98}},
       {MAIN, 4, {10, 0, 90, 0, 90, 56, 10, 56}},
       {ROOF, 3, {0, 54, 100, 54, 50, 95}},
       {WOOD, 4, {42, 0, 58, 0, 58, 34, 42, 34}},
       {GLASS, 4, {18, 22, 34, 22, 34, 42, 18, 42}},
       {GLASS, 4, {66, 22, 82, 22, 82, 42, 66, 42}},
    }},
    {"lighthouse", {
       {PALE, 4, {35, 0, 65, 0, 58, 78, 42, 78}},
       {MAIN, 4, {36, 15, 64, 15, 62, 32, 38, 32}},
       {MAIN, 4, {39, 48, 61, 48, 59, 64, 41, 64}},
       {DARK, 4, {39, 76, 61, 76, 61, 80, 39, 80}},
       {GOLD, 4, {43, 80, 57, 80, 57, 92, 43, 92}},
       {ROOF, 3, {40, 91, 60, 91, 50, 104}},
       {DARK, 4, {46, 0, 54, 0, 54, 11, 46, 11}},
    }},
    {"mushroom", {
       {PALE, 4, {38, 0, 62, 0, 57, 52, 43, 52}},
       {MAIN, 7, {6, 46, 94, 46, 90, 66, 74, 83, 50, 90, 26, 83, 10, 66}},
       {PALE, 0, {34, 67, 7, 6}},
       {PALE, 0, {60, 75, 8, 6}},
       {PALE, 0, {78, 59, 6, 5}},
       {PALE, 0, {20, 55, 5, 4}},
       {PALE, 0, {52, 57, 6, 5}},
    }},
    {"snowman", {
       {PALE, 0, {50, 22, 25, 23}},
       {PALE, 0, {50, 54, 18, 17}},
       {PALE, 0, {50, 79, 13, 13}},
       {MAIN, 4, {38, 64, 62, 64, 62, 70, 38, 70}},
       {DARK, 4, {34, 87, 66, 87, 66, 91, 34, 91}},
       {DARK, 4, {41, 91, 59, 91, 59, 105, 41, 105}},
       {ROOF, 3, {51, 80, 51, 76, 68, 77}},
       {DARK, 0, {46, 83, 2, 2}},
       {DARK, 0, {56, 83, 2, 2}},
       {DARK, 0, {50, 56, 2, 2}},
       {DARK, 0, {50, 48, 2, 2}},
    }},
    {"tent", {
       {WOOD, 4, {49, 60, 51, 60, 51, 95, 49, 95}},
       {ROOF, 3, {51, 95, 51, 84, 68, 89}},
       {MAIN, 3, {0, 0, 100, 0, 50, 76}},
       {DARK, 3, {36, 0, 64, 0, 50, 50}},
    }},
    {"tree", {
       {WOOD, 4, {43, 0, 57, 0, 53, 50, 47, 50}},
       {LEAF, 0, {30, 52, 22, 19}},
       {LEAF, 0, {70, 52, 22, 19}},
       {LEAF, 0, {50, 78, 24, 20}},
       {LEAF, 0, {49, 60, 28, 22}},
       {MAIN, 0, {36, 50, 5, 5}},
       {MAIN, 0, {63, 58, 5, 5}},
       {MAIN, 0, {50, 76, 5, 5}},
    }},
};
/* clang-format on */

#define THINGS ((int)(sizeof things / sizeof *things))
#define BALLOON 0

/* Where a thing stands. */
struct stand {
    struct hr_point foot; /* the middle of its lower edge, in pixels */
    float size;           /* pixels */
    bool mirrored;
};

static struct hr_point place(const struct stand *stand, const int16_t *at)
{
    float x = (float)at[0] / 100.0f - 0.5f;

    return (struct hr_point){
        stand->foot.x + (stand->mirrored ? -x : x) * stand->size,
        stand->foot.y - (float)at[1] / 100.0f * stand->size,
    };
}

static void draw_part(const struct hr_canvas *canvas, const struct part *part,
                      const struct hr_paint *paint, const struct stand *stand)
{
    struct hr_point corners[HR_CORNERS_MAX];

    if (part->count == 0) {
        hr__paint_ellipse(canvas, paint, place(stand, part->at),
                          (float)part->at[2] / 100.0f * stand->size,
                          (float)part->at[3] / 100.0f * stand->size);
        return;
    }
    for (int i = 0; i < part->count; i++)
        corners[i] = place(stand, part->at + 2 * i);
    hr__paint_polygon(canvas, paint, corners, part->count);
}

/* The paints of a thing: each of them a little different in every picture. */
static void mix_paints(struct hr_rng *rng, float hue, struct hr_paint *ret_paints)
{
    struct hr_colour colours[TINTS] = {
        [MAIN] = hr__colour(hue, 130, 190), [ROOF] = hr__colour(hue + 0.45f, 110, 150),
        [PALE] = {{228, 226, 218}},         [DARK] = {{44, 40, 44}},
        [WOOD] = {{112, 78, 48}},           [LEAF] = {{64, 122, 52}},
        [GLASS] = {{116, 158, 190}},        [GOLD] = {{240, 200, 76}},
    };

    for (int i = 0; i < TINTS; i++) {
        float step = (float)hr__rng_uniform(rng, -18, 18);

        for (int c = 0; c < 3; c++)
            colours[i].c[c] += step;
        ret_paints[i] = (struct hr_paint){colours[i], i == DARK ? 24.0f : 70.0f,
                                          i == LEAF ? 0.05f : 0.016f, 0.006f};
    }
}

static void draw_thing(struct hr_rng *rng, const struct hr_canvas *canvas, int thing,
                       float hue, const struct stand *stand)
{
    struct hr_paint paints[TINTS];

    mix_paints(rng, hue, paints);
    for (int i = 0; i < PARTS_MAX; i++) {
        const struct part *part = &things[thing].parts[i];

        if (part->at[2] != 0)
            draw_part(canvas, part, &paints[part->tint], stand);
    }
}

/* ---- scene ---- */

static float between(struct hr_rng *rng, float low, float high)
{
    return (float)hr__rng_uniform(rng, low, high);
}

static void draw_clouds(struct hr_rng *rng, const struct hr_canvas *canvas, float horizon)
{
    struct hr_paint white = {{{238, 238, 240}}, 36, 0.006f, 0.012f};
    int clouds = (int)hr__rng_below(rng, 4);
    float width = (float)canvas->width;

    for (int i = 0; i < clouds; i++) {
        float x = between(rng, 0, width), y = between(rng, 0.05f, 0.6f) * horizon;
        float size = between(rng, 0.05f, 0.12f) * width;

        for (int puff = -1; puff <= 1; puff++) {
            float tall = between(rng, 0.35f, 0.6f) * (puff == 0 ? 1.3f : 1.0f);

            hr__paint_ellipse(canvas, &white,
                              (struct hr_point){x + (float)puff * size * 0.8f, y}, size,
                              size * tall);
        }
    }
}

/* Rows of a range of hills: smooth noise along x around `level`. */
static void make_ridge(struct hr_rng *rng, const struct hr_canvas *canvas, float level,
                       float rise, int32_t *ret_top)
{
    float knots[8];

    for (int i = 0; i < 8; i++)
        knots[i] = between(rng, -rise, rise);
    for (int32_t x = 0; x < canvas->width; x++) {
        float at = (float)x * 6.0f / (float)canvas->width;
        int knot = (int)at;
        float t = at - (float)knot, smooth = t * t * (3.0f - 2.0f * t);

        ret_top[x] =
            (int32_t)(level + knots[knot] * (1.0f - smooth) + knots[knot + 1] * smooth);
    }
}

/* Fir trees along the horizon. */
static void draw_firs(struct hr_rng *rng, const struct hr_canvas *canvas, float horizon)
{
    static const struct part fir = {
        LEAF, 7, {8, 8, 92, 8, 66, 40, 78, 40, 50, 100, 22, 40, 34, 40}
    };
    int count = (int)hr__rng_below(rng, 7);

    for (int i = 0; i < count; i++) {
        float dark = between(rng, -24, 8);
        struct hr_paint green = {{{58 + dark, 92 + dark, 62 + dark}}, 30, 0.02f, 0.006f};
        float x = between(rng, 0, (float)canvas->width);
        float drop = between(rng, 0.01f, 0.07f);
        struct stand stand = {
            .foot = {x, horizon + drop * (float)canvas->height},
            .size = (0.08f + drop) * (float)canvas->height,
        };

        draw_part(canvas, &fir, &green, &stand);
    }
}

/* Sky, hills and ground; returns the row of the horizon, or -1 when out of memory. */
static float
draw_land(struct hr_rng *rng, const struct hr_canvas *canvas, struct hr_arena *arena)
{
    int32_t *top = hr__arena_zalloc(arena, (size_t)canvas->width * sizeof(*top));
    float height = (float)canvas->height;
    float horizon = between(rng, 0.45f, 0.65f) * height;
    float dusk = between(rng, 0, 1), sand = between(rng, 0, 1);
    struct hr_paint sky = {
        {{120 + 90 * dusk * dusk, 166 - 16 * dusk, 214 - 60 * dusk * dusk}},
        -70,
        0.012f,
        0.010f};
    struct hr_paint hill = {{{96, 118 - 10 * dusk, 128 - 20 * dusk}}, 50, 0.05f, 0.012f};
    struct hr_paint ground = {
        {{84 + 96 * sand, 122 + 34 * sand, 62 + 56 * sand}}, 60, 0.09f, 0.012f};

    if (top == NULL)
        return -1;
    hr__paint_below(canvas, &sky, top);
    draw_clouds(rng, canvas, horizon);
    make_ridge(rng, canvas, horizon - 0.08f * height, 0.09f * height, top);
    hr__paint_below(canvas, &hill, top);
    make_ridge(rng, canvas, horizon, 0.012f * height, top);
    hr__paint_below(canvas, &ground, top);
    draw_firs(rng, canvas, horizon);
    return horizon;
}

void hr__synth_front(int class, int classes, struct hr_synth_front *ret_front)
{
    int each = (classes + THINGS - 1) / THINGS, thing = class / each, kind = class % each;
    char number[16];
    int digits = snprintf(number, sizeof number, "%d", each);

    assert(class >= 0 && class < classes && thing < THINGS);
    ret_front->thing = thing;
    ret_front->hue = (float)kind / (float)each + (float)thing / (float)THINGS;
    if (each == 1)
        snprintf(ret_front->name, sizeof ret_front->name, "%s", things[thing].name);
    else
        snprintf(ret_front->name, sizeof ret_front->name, "%s_%0*d", things[thing].name,
                 digits, kind + 1);
}

bool hr__synth_picture(struct hr_rng *rng, const struct hr_synth_front *front,
                       int32_t width, int32_t height, struct hr_arena *arena,
                       struct hr_pixels *ret_pixels)
{
    struct hr_paint shadow = {{{56, 64, 46}}, 16, 0.04f, 0.006f};
    float side = (float)(width < height ? width : height), horizon;
    struct hr_canvas canvas;
    struct stand stand;

    if (!hr__canvas_make(&canvas, rng, width, height, arena))
        return false;
    horizon = draw_land(rng, &canvas, arena);
    if (horizon < 0)
        return false;
    stand.size = between(rng, 0.45f, 0.75f) * side;
    stand.foot.x = between(rng, 0.3f, 0.7f) * (float)width;
    stand.foot.y = horizon + between(rng, 0.12f, 0.3f) * (float)height;
    stand.mirrored = hr__rng_below(rng, 2) == 0;
    hr__paint_ellipse(&canvas, &shadow, stand.foot, 0.5f * stand.size,
                      0.05f * stand.size);
    if (front->thing == BALLOON)
        stand.foot.y -= between(rng, 0.1f, 0.3f) * (float)height;
    draw_thing(rng, &canvas, front->thing, front->hue + between(rng, -0.04f, 0.04f),
               &stand);
    hr__paint_grain(&canvas, rng, 24 + (int32_t)hr__rng_below(rng, 36));
    *ret_pixels = hr__pixels_u8(canvas.pixels, width, height, 3);
    return true;
}
