/*
 * ops/move_test.c - an image, its mask, boxes and points move by one draw.
 *
 * Each pixel of the image holds its own place, so a moved image shows where its pixels
 * came from. The points (0, 0), (width, height) and (width, 0) give the map from old to
 * new coordinates; pixels, mask and boxes are checked against it, and it against the
 * pixels.
 */
#include "ops/ops_test_util.h"

#include <math.h>
#include <stdio.h>
#include <sys/random.h>

#define SIDE_MAX 60
#define BOXES 5
#define DRAWS 200

static struct bench b;

static int mask_fill; /* of the op that is tested */

static struct scene {
    int width, height;
    uint8_t image[SIDE_MAX * SIDE_MAX * 3], mask[SIDE_MAX * SIDE_MAX];
    float boxes[BOXES * 4], points[3 * 2];
} scene;

static uint8_t label_at(int x, int y)
{
    static const uint8_t labels[] = {1, 7, 50, 201, 255};

    return labels[(x / 5 * 3 + y / 4) % 5];
}

static void draw_scene(struct hr_rng *rng)
{
    scene.width = 12 + (int)hr__rng_below(rng, SIDE_MAX - 12);
    scene.height = 12 + (int)hr__rng_below(rng, SIDE_MAX - 12);
    for (int y = 0; y < scene.height; y++)
        for (int x = 0; x < scene.width; x++) {
            uint8_t *pixel = &scene.image[(y * scene.width + x) * 3];

            pixel[0] = (uint8_t)(x + 1); /* 0 is padding */
            pixel[1] = (uint8_t)(y + 1);
            pixel[2] = 9;
            scene.mask[y * scene.width + x] = label_at(x, y);
        }
    for (int i = 0; i < BOXES; i++) {
        float *box = &scene.boxes[i * 4];

        box[0] = (float)hr__rng_uniform(rng, 0, scene.width);
        box[1] = (float)hr__rng_uniform(rng, 0, scene.height);
        box[2] = (float)hr__rng_uniform(rng, box[0], scene.width);
        box[3] = (float)hr__rng_uniform(rng, box[1], scene.height);
    }
    scene.points[0] = scene.points[1] = 0;
    scene.points[2] = scene.points[4] = (float)scene.width;
    scene.points[3] = (float)scene.height;
    scene.points[5] = 0;
}

static void put_rows(const char *name, int64_t rows, int64_t columns, float *data)
{
    int64_t dims[2] = {rows, columns};
    struct hr_field *field;

    hr__value_set_tensor(bench_put(&b, name), HR_F32, 2, dims, data, NULL);
    bench_value(&b, name)->shared = true;
    field = bench_field(&b, name);
    field->dtype = HR_F32;
    field->ndim = 2;
    hr__dim_unknown(&field->dims[0], "n");
    hr__dim_set(&field->dims[1], columns);
}

static void put_image(void)
{
    bench_clear(&b);
    bench_put_image(&b, "image", HR_U8, scene.height, scene.width, 3, scene.image);
}

static void put_scene(void)
{
    put_image();
    bench_put_image(&b, "mask", HR_U8, scene.height, scene.width, 1, scene.mask);
    put_rows("boxes", BOXES, 4, scene.boxes);
    put_rows("points", 3, 2, scene.points);
    CHECK_OK(bench_op(&b, "record.kind", "{field: mask, kind: mask}"));
    CHECK_OK(bench_op(&b, "record.kind", "{field: boxes, kind: boxes}"));
    CHECK_OK(bench_op(&b, "record.kind", "{field: points, kind: points}"));
}

/* new = old * scale + shift */
struct map {
    double scale, shift;
    int size; /* of the result */
};

static double clip(double at, double size)
{
    return at < 0 ? 0 : at > size ? size : at;
}

static void check_box(const float *from, const float *to, const struct map map[2])
{
    for (int axis = 0; axis < 2; axis++) {
        double one = from[axis] * map[axis].scale + map[axis].shift;
        double other = from[axis + 2] * map[axis].scale + map[axis].shift;

        CHECK_NEAR(to[axis], clip(fmin(one, other), map[axis].size), 1e-3);
        CHECK_NEAR(to[axis + 2], clip(fmax(one, other), map[axis].size), 1e-3);
    }
}

/* The source of a new pixel, -1 for padding, -2 when it lies between two. */
static int source_of(const struct map *map, int at, int size)
{
    double from = (at + 0.5 - map->shift) / map->scale;

    if (fabs(from - rint(from)) < 1e-3)
        return -2;
    return from < 0 || from > size ? -1 : (int)floor(from);
}

static void
check_pixels(const uint8_t *image, const uint8_t *mask, const struct map map[2])
{
    for (int y = 0; y < map[1].size; y++)
        for (int x = 0; x < map[0].size; x++) {
            const uint8_t *pixel = &image[(y * map[0].size + x) * 3];
            int from_x = source_of(&map[0], x, scene.width);
            int from_y = source_of(&map[1], y, scene.height);
            bool padding = from_x == -1 || from_y == -1;

            CHECK_EQ_INT(mask[y * map[0].size + x],
                         pixel[0] == 0 ? mask_fill
                                       : label_at(pixel[0] - 1, pixel[1] - 1));
            if (from_x == -2 || from_y == -2)
                continue;
            CHECK_EQ_INT(pixel[0], padding ? 0 : from_x + 1);
            CHECK_EQ_INT(pixel[1], padding ? 0 : from_y + 1);
        }
}

/* After the op has moved all four. */
static void check_moved(void)
{
    struct hr_value *value = bench_value(&b, "image");
    size_t bytes;
    uint8_t *image = bench_bytes(&b, "image", &bytes);
    uint8_t *mask = bench_bytes(&b, "mask", &bytes);
    float *boxes = bench_bytes(&b, "boxes", &bytes);
    float *points = bench_bytes(&b, "points", &bytes);
    struct map map[2] = {
        {((double)points[2] - points[0]) / scene.width,  points[0], (int)value->dims[1]},
        {((double)points[3] - points[1]) / scene.height, points[1], (int)value->dims[0]},
    };

    CHECK_EQ_INT(bench_value(&b, "mask")->dims[0], map[1].size);
    CHECK_EQ_INT(bench_value(&b, "mask")->dims[1], map[0].size);
    check_pixels(image, mask, map);
    CHECK_EQ_INT(bench_value(&b, "boxes")->dims[0], BOXES);
    for (int i = 0; i < BOXES; i++)
        check_box(&scene.boxes[i * 4], &boxes[i * 4], map);
    free(image);
    free(mask);
    free(boxes);
    free(points);
}

/* old = origin + x * along_x + y * along_y, from the three moved points */
struct affine {
    double origin[2], along_x[2], along_y[2];
    int width, height; /* of the result */
};

static struct affine affine_of(const float *points, int width, int height)
{
    struct affine a = {.width = width, .height = height};

    for (int i = 0; i < 2; i++) {
        a.origin[i] = points[i];
        a.along_x[i] = ((double)points[4 + i] - points[i]) / scene.width;
        a.along_y[i] = ((double)points[2 + i] - points[4 + i]) / scene.height;
    }
    return a;
}

static void check_warped_box(const struct affine *a, const float *from, const float *to)
{
    const int sizes[2] = {a->width, a->height};

    for (int axis = 0; axis < 2; axis++) {
        double low = INFINITY, high = -INFINITY;

        for (int corner = 0; corner < 4; corner++) {
            double at = a->origin[axis] + from[corner % 2 * 2] * a->along_x[axis] +
                        from[corner / 2 * 2 + 1] * a->along_y[axis];

            low = fmin(low, at);
            high = fmax(high, at);
        }
        CHECK_NEAR(to[axis], clip(low, sizes[axis]), 1e-2);
        CHECK_NEAR(to[axis + 2], clip(high, sizes[axis]), 1e-2);
    }
}

/* A pixel shows the old pixel in which its centre was; outside there is fill. */
static void check_warped_pixel(const struct affine *a, int x, int y, const uint8_t *pixel)
{
    double to_x = x + 0.5 - a->origin[0], to_y = y + 0.5 - a->origin[1];
    double det = a->along_x[0] * a->along_y[1] - a->along_x[1] * a->along_y[0];
    double from_x = (a->along_y[1] * to_x - a->along_y[0] * to_y) / det;
    double from_y = (a->along_x[0] * to_y - a->along_x[1] * to_x) / det;

    if (pixel[0] > 0) {
        CHECK(fabs(from_x - (pixel[0] - 0.5)) < 0.51);
        CHECK(fabs(from_y - (pixel[1] - 0.5)) < 0.51);
    } else {
        CHECK(from_x < 0.01 || from_x > scene.width - 0.01 || from_y < 0.01 ||
              from_y > scene.height - 0.01);
    }
}

/* After the op has warped all four. */
static void check_warped(void)
{
    struct hr_value *value = bench_value(&b, "image");
    int width = (int)value->dims[1], height = (int)value->dims[0];
    size_t bytes;
    uint8_t *image = bench_bytes(&b, "image", &bytes);
    uint8_t *mask = bench_bytes(&b, "mask", &bytes);
    float *boxes = bench_bytes(&b, "boxes", &bytes);
    float *points = bench_bytes(&b, "points", &bytes);
    struct affine a = affine_of(points, width, height);

    CHECK_EQ_INT(bench_value(&b, "mask")->dims[0], height);
    CHECK_EQ_INT(bench_value(&b, "mask")->dims[1], width);
    for (int i = 0; i < width * height; i++) {
        const uint8_t *pixel = &image[3 * i];

        check_warped_pixel(&a, i % width, i / width, pixel);
        CHECK_EQ_INT(mask[i],
                     pixel[0] == 0 ? mask_fill : label_at(pixel[0] - 1, pixel[1] - 1));
    }
    for (int i = 0; i < BOXES; i++)
        check_warped_box(&a, &scene.boxes[i * 4], &boxes[i * 4]);
    free(image);
    free(mask);
    free(boxes);
    free(points);
}

static const struct {
    const char *op, *params;
} ops[] = {
    {"image.flip",                 "p: 0.6"                                                 },
    {"image.flip",                 "p: 0.6, direction: vertical"                            },
    {"image.center_crop",          "size: [11, 8]"                                          },
    {"image.center_crop",          "size: [70, 20]"                                         },
    {"image.random_crop",          "size: 12"                                               },
    {"image.random_crop",
     "size: [20, 30], padding: [3, 5], pad_if_needed: true, mask_fill: 255"                 },
    {"image.random_resized_crop",
     "size: [23, 31], interpolation: nearest, scale: [0.1, 1]"                              },
    {"image.resize",               "size: [40, 17], interpolation: nearest"                 },
    {"image.resize_shortest",      "size: 33, interpolation: nearest"                       },
    {"image.random_shortest_size",
     "between: [9, 40], max_size: 45, interpolation: nearest"                               },
    {"image.pad",                  "padding: [1, 2, 3, 4], mask_fill: 255"                  },
    {"image.fixed_size_crop",      "size: [20, 35], mask_fill: 9"                           },
    {"image.scale_jitter",         "size: [33, 31], interpolation: nearest, scale: [0.5, 2]"},
    {"image.zoom_out",             "side_range: [1, 2.5], p: 0.8, mask_fill: 201"           },
};
#define OPS (sizeof ops / sizeof ops[0])

/* The label around masks. */
static int fill_of(const char *params)
{
    const char *at = strstr(params, "mask_fill: ");

    return at != NULL ? atoi(at + strlen("mask_fill: ")) : 0;
}

static uint64_t begin(void)
{
    uint64_t seed;

    CHECK_EQ_INT(getrandom(&seed, sizeof seed, 0), sizeof seed);
    printf("# seed %llu\n", (unsigned long long)seed);
    bench_init(&b);
    return seed;
}

TEST(all_that_moves_with_an_image_moves_by_its_draw)
{
    struct hr_rng rng;

    hr__rng_init(&rng, begin(), 0, 0);
    for (int i = 0; i < DRAWS; i++)
        for (size_t k = 0; k < OPS; k++) {
            char params[200];

            b.id.index = hr__rng_u32(&rng);
            draw_scene(&rng);
            put_scene();
            mask_fill = fill_of(ops[k].params);
            snprintf(params, sizeof params, "{%s, field: [image, mask, boxes, points]}",
                     ops[k].params);
            if (bench_op(&b, ops[k].op, params) != HR_OK)
                check_failed(__FILE__, __LINE__, "%s: %s", ops[k].op, b.error.message);
            check_moved();
        }
    bench_finish(&b);
}

TEST(all_that_is_warped_with_an_image_is_warped_by_its_draw)
{
    static const struct {
        const char *op, *params;
    } warps[] = {
        {"image.rotate", "degrees: 180"                                           },
        {"image.rotate", "degrees: 120, center: [9, -3]"                          },
        {"image.rotate", "degrees: 50, expand: true, mask_fill: 255"              },
        {"image.affine", "degrees: 0, translate: [0.4, 0.2]"                      },
        {"image.affine",
         "degrees: 90, scale: [0.4, 2.5], shear: [-30, 30, -20, 20], mask_fill: 3"},
    };
    struct hr_rng rng;

    hr__rng_init(&rng, begin(), 0, 0);
    for (int i = 0; i < DRAWS; i++)
        for (size_t k = 0; k < sizeof warps / sizeof warps[0]; k++) {
            char params[200];

            b.id.index = hr__rng_u32(&rng);
            draw_scene(&rng);
            put_scene();
            mask_fill = fill_of(warps[k].params);
            snprintf(params, sizeof params, "{%s, field: [image, mask, points, boxes]}",
                     warps[k].params);
            CHECK_OK(bench_op(&b, warps[k].op, params));
            check_warped();
        }
    bench_finish(&b);
}

TEST(moves_follow_one_another)
{
    struct hr_rng rng;

    hr__rng_init(&rng, begin(), 0, 0);
    mask_fill = 255;
    for (int i = 0; i < DRAWS; i++) {
        b.id.index = hr__rng_u32(&rng);
        draw_scene(&rng);
        put_scene();
        CHECK_OK(bench_op(&b, "image.flip", "{field: [image, points, boxes, mask]}"));
        CHECK_OK(bench_op(
            &b, "image.pad",
            "{padding: 4, mask_fill: 255, field: [image, points, boxes, mask]}"));
        CHECK_OK(bench_op(&b, "image.flip",
                          "{direction: vertical, field: [image, mask, points, boxes]}"));
        CHECK_OK(bench_op(&b, "image.resize",
                          "{size: [50, 41], interpolation: nearest, field: [image, mask, "
                          "boxes, points]}"));
        check_moved();
    }
    bench_finish(&b);
}

TEST(an_image_has_the_same_bytes_with_or_without_what_follows_it)
{
    struct hr_rng rng;

    hr__rng_init(&rng, begin(), 0, 0);
    for (int i = 0; i < 20; i++)
        for (size_t k = 0; k < OPS; k++) {
            char params[200];
            size_t alone_bytes, bytes;
            uint8_t *alone, *image;

            b.id.index = hr__rng_u32(&rng);
            draw_scene(&rng);
            put_scene(); /* beside an image more: else it could not move alone */
            bench_put_image(&b, "other", HR_U8, 1, 1, 3, scene.image);
            snprintf(params, sizeof params, "{%s}", ops[k].params);
            CHECK_OK(bench_op(&b, ops[k].op, params));
            alone = bench_bytes(&b, "image", &alone_bytes);
            put_scene();
            snprintf(params, sizeof params, "{%s, field: [image, mask, boxes, points]}",
                     ops[k].params);
            CHECK_OK(bench_op(&b, ops[k].op, params));
            image = bench_bytes(&b, "image", &bytes);
            CHECK_EQ_INT(bytes, alone_bytes);
            CHECK_BYTES(image, alone, bytes);
            free(alone);
            free(image);
        }
    bench_finish(&b);
}

#define REFUSED(err, name, params, words)                                                \
    do {                                                                                 \
        put_scene();                                                                     \
        CHECK_ERR(err, bench_op(&b, name, params));                                      \
        CHECK_HAS(b.error.message, words);                                               \
    } while (0)

TEST(what_cannot_move_together_is_refused)
{
    struct hr_rng rng;
    uint8_t small[4] = {0};

    hr__rng_init(&rng, begin(), 0, 0);
    draw_scene(&rng);
    REFUSED(HR_ERR_TYPE, "image.flip", "{field: [mask, image]}",
            "field \"mask\" is of kind mask, and this needs an image");
    REFUSED(HR_ERR_ARGUMENT, "image.flip", "{field: [image, mask, mask]}",
            "\"mask\" is listed twice");
    REFUSED(HR_ERR_TYPE, "image.color_jitter", "{field: mask, hue: 0.1}", "kind mask");
    REFUSED(HR_ERR_TYPE, "tensor.cast", "{field: mask, dtype: float32}", "integers");
    REFUSED(HR_ERR_TYPE, "record.kind", "{field: boxes, kind: points}",
            "field \"boxes\" is float32 [n, 4]; points wants float32 [n, 2]");
    put_scene();
    put_rows("plain", BOXES, 4, scene.boxes);
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "image.flip", "{field: [image, plain]}"));
    CHECK_HAS(b.error.message, "declare it a mask, boxes or points with record.kind");
    put_image();
    bench_put_image(&b, "other", HR_U8, 2, 2, 1, small);
    CHECK_ERR(HR_ERR_SHAPE, bench_op(&b, "image.flip", "{p: 1, field: [image, other]}"));
    CHECK_HAS(b.error.message, "\"other\" is 2x2: they cannot move together");
    bench_finish(&b);
}

TEST(a_random_move_leaves_nothing_of_the_image_behind)
{
    struct hr_rng rng;

    hr__rng_init(&rng, begin(), 0, 0);
    draw_scene(&rng);
    REFUSED(HR_ERR_ARGUMENT, "image.flip", "{p: 1}",
            "\"mask\" would stay where it is while \"image\" moves at random: add it");
    REFUSED(HR_ERR_ARGUMENT, "image.rotate", "{degrees: 10, field: [image, mask]}",
            "\"boxes\" would stay where it is");
    REFUSED(HR_ERR_ARGUMENT, "image.random_crop",
            "{size: 2, field: [image, mask, boxes]}", "\"points\" would stay");
    put_scene(); /* always the same: results are compared in the first size */
    CHECK_OK(bench_op(&b, "image.resize", "{size: 4}"));
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "image.flip", "{field: [image, boxes]}"));
    CHECK_HAS(b.error.message, "\"boxes\" is where it was before image.resize moved the "
                               "image alone: list it there");
    CHECK_OK(bench_op(&b, "record.kind", "{field: boxes, kind: boxes}"));
    CHECK_OK(bench_op(&b, "record.drop", "{fields: [mask, points]}"));
    CHECK_OK(bench_op(&b, "image.flip", "{field: [image, boxes]}"));
    put_scene(); /* whose the boxes are is not known */
    bench_put_image(&b, "other", HR_U8, 2, 2, 3, scene.image);
    CHECK_OK(bench_op(&b, "image.flip", "{p: 1}"));
    put_scene();
    CHECK_OK(bench_op(&b, "record.drop", "{fields: [mask, boxes, points]}"));
    CHECK_OK(bench_op(&b, "image.flip", "{p: 1}"));
    bench_finish(&b);
}

TEST(a_mask_is_cast_to_integers_as_it_is)
{
    struct hr_rng rng;
    int32_t *labels;
    size_t bytes;

    hr__rng_init(&rng, begin(), 0, 0);
    draw_scene(&rng);
    put_scene();
    CHECK_OK(bench_op(&b, "tensor.cast", "{field: mask, dtype: int32}"));
    labels = bench_bytes(&b, "mask", &bytes);
    for (int i = 0; i < scene.width * scene.height; i++)
        CHECK_EQ_INT(labels[i], scene.mask[i]);
    free(labels);
    bench_finish(&b);
}

TEST(a_list_of_one_is_the_field_itself)
{
    struct hr_rng rng;

    hr__rng_init(&rng, begin(), 0, 0);
    draw_scene(&rng);
    put_image();
    CHECK_OK(bench_op(&b, "image.flip", "{p: 1, field: [image]}"));
    CHECK_EQ_STR(
        hr__doc_get(b.nodes[b.node_count - 1].canonical, "field")->as.string.text,
        "image");
    bench_finish(&b);
}
