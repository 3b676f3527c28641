/*
 * ops/boxes_test.c - ops on boxes: formats, small boxes, windows that overlap a box.
 */
#include "ops/ops_test_util.h"

#include <math.h>
#include <stdio.h>

#define WIDTH 40
#define HEIGHT 30

static struct bench b;
static uint8_t levels[WIDTH * HEIGHT * 3];

static void put_tensor(const char *name, enum hr_dtype dtype, int64_t rows,
                       int64_t columns, void *data)
{
    int64_t dims[2] = {rows, columns};
    int ndim = columns > 0 ? 2 : 1;
    struct hr_field *field;

    hr__value_set_tensor(bench_put(&b, name), dtype, ndim, dims, data, NULL);
    bench_value(&b, name)->shared = true;
    field = bench_field(&b, name);
    field->dtype = dtype;
    field->ndim = ndim;
    hr__dim_unknown(&field->dims[0], "n");
    if (columns > 0)
        hr__dim_set(&field->dims[1], columns);
}

/* A record with an image, boxes and labels from 0. */
static void put_scene(int64_t count, float *boxes, int64_t *labels)
{
    bench_clear(&b);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        levels[i * 3] = (uint8_t)(i % WIDTH);
        levels[i * 3 + 1] = (uint8_t)(i / WIDTH);
    }
    for (int64_t i = 0; i < count; i++)
        labels[i] = i;
    bench_put_image(&b, "image", HR_U8, HEIGHT, WIDTH, 3, levels);
    put_tensor("boxes", HR_F32, count, 4, boxes);
    put_tensor("labels", HR_I64, count, 0, labels);
    CHECK_OK(bench_op(&b, "record.kind", "{field: boxes, kind: boxes}"));
}

static void check_boxes(const float *wanted, int64_t count)
{
    size_t bytes;
    float *got = bench_bytes(&b, "boxes", &bytes);

    CHECK_EQ_INT(bench_value(&b, "boxes")->dims[0], count);
    for (int64_t i = 0; i < count * 4; i++)
        CHECK_NEAR(got[i], wanted[i], 1e-4);
    free(got);
}

#define BOXES_ARE(...)                                                                   \
    check_boxes((const float[]){__VA_ARGS__},                                            \
                sizeof((const float[]){__VA_ARGS__}) / sizeof(float) / 4)
#define REFUSED(err, name, params, words)                                                \
    do {                                                                                 \
        memset(&b.error, 0, sizeof b.error);                                             \
        CHECK_ERR(err, bench_op(&b, name, params));                                      \
        CHECK_HAS(b.error.message, words);                                               \
    } while (0)

TEST(boxes_are_converted_between_formats)
{
    float boxes[8] = {1, 2, 4, 8, 0.5f, 0.25f, 30, 20.25f};
    int64_t labels[2];

    bench_init(&b);
    put_scene(2, boxes, labels);
    CHECK_OK(bench_op(&b, "boxes.convert", "{to: xywh}"));
    BOXES_ARE(1, 2, 3, 6, 0.5f, 0.25f, 29.5f, 20);
    REFUSED(HR_ERR_TYPE, "boxes.sanitize", NULL, "record.kind");
    CHECK_OK(bench_op(&b, "boxes.convert", "{format: xywh, to: cxcywh}"));
    BOXES_ARE(2.5f, 5, 3, 6, 15.25f, 10.25f, 29.5f, 20);
    CHECK_OK(bench_op(&b, "boxes.convert", "{format: cxcywh, to: xyxy}"));
    BOXES_ARE(1, 2, 4, 8, 0.5f, 0.25f, 30, 20.25f);
    CHECK_OK(bench_op(&b, "boxes.sanitize", NULL));
    CHECK_OK(bench_op(&b, "boxes.convert", "{to: xyxy}"));
    BOXES_ARE(1, 2, 4, 8, 0.5f, 0.25f, 30, 20.25f);
    REFUSED(HR_ERR_ARGUMENT, "boxes.convert", "{format: xywh, to: xyxy}", "are xyxy");
    REFUSED(HR_ERR_TYPE, "boxes.convert", "{to: xywh, field: labels}", "float32 [n, 4]");
    REFUSED(HR_ERR_RANGE, "boxes.convert", "{to: yxyx}", "xyxy");
    put_scene(0, boxes, labels);
    CHECK_OK(bench_op(&b, "boxes.convert", "{to: cxcywh}"));
    check_boxes(NULL, 0);
    bench_finish(&b);
}

static void check_labels(const int64_t *wanted, int64_t count)
{
    size_t bytes;
    int64_t *got = bench_bytes(&b, "labels", &bytes);

    CHECK_EQ_INT(bytes, (size_t)count * sizeof *got);
    for (int64_t i = 0; i < count; i++)
        CHECK_EQ_INT(got[i], wanted[i]);
    free(got);
}

TEST(small_boxes_are_dropped_with_their_labels)
{
    float boxes[7 * 4] = {1, 2, 4,  8, 5, 5,   5, 9, 0, 0,  0, 0, 3,   3,
                          9, 4, 30, 2, 3, 1.5, 8, 9, 2, 41, 9, 1, NAN, 5};
    int64_t labels[7];

    bench_init(&b);
    put_scene(7, boxes, labels);
    CHECK_OK(bench_op(&b, "boxes.sanitize", NULL));
    BOXES_ARE(1, 2, 4, 8, 3, 3, 9, 4);
    check_labels((const int64_t[]){0, 3}, 2);
    put_scene(7, boxes, labels);
    CHECK_OK(bench_op(&b, "boxes.sanitize", "{min_area: 7, rows: []}"));
    BOXES_ARE(1, 2, 4, 8);
    check_labels((const int64_t[]){0, 1, 2, 3, 4, 5, 6}, 7);
    put_scene(7, boxes, labels);
    CHECK_OK(bench_op(&b, "boxes.sanitize", "{min_size: 0, min_area: 0}"));
    check_labels((const int64_t[]){0, 1, 2, 3}, 4);
    bench_finish(&b);
}

TEST(boxes_beyond_the_image_are_dropped_when_it_is_given)
{
    float boxes[5 * 4] = {0, 0, WIDTH, HEIGHT, -1,    0,  9, 9, 2,  -0.5f,
                          9, 9, 9,     9,      40.5f, 20, 9, 9, 20, 31};
    int64_t labels[5];

    bench_init(&b);
    put_scene(5, boxes, labels);
    CHECK_OK(bench_op(&b, "boxes.sanitize", NULL));
    check_labels((const int64_t[]){0, 1, 2, 3, 4}, 5);
    CHECK_OK(bench_op(&b, "boxes.sanitize", "{image: image}"));
    check_labels((const int64_t[]){0}, 1);
    put_scene(5, boxes, labels);
    REFUSED(HR_ERR_ARGUMENT, "boxes.sanitize", "{rows: [labels, labels]}", "twice");
    REFUSED(HR_ERR_TYPE, "boxes.sanitize", "{rows: image}", "no rows");
    REFUSED(HR_ERR_TYPE, "boxes.sanitize", "{field: labels, rows: []}", "no boxes");
    REFUSED(HR_ERR_RANGE, "boxes.sanitize", "{min_size: -1}", "min_size");
    put_tensor("others", HR_I64, 3, 0, labels);
    REFUSED(HR_ERR_SHAPE, "boxes.sanitize", "{rows: others}",
            "\"others\" has 3 rows and there are 5 boxes");
    put_scene(0, boxes, labels);
    CHECK_OK(bench_op(&b, "boxes.sanitize", NULL));
    check_labels(NULL, 0);
    bench_finish(&b);
}

/* Where the window was, by the levels of the image. */
static void window_of(double ret[4])
{
    const struct hr_value *value = bench_value(&b, "image");
    uint8_t *got;
    size_t bytes;

    ret[3] = (double)value->dims[0];
    ret[2] = (double)value->dims[1];
    got = bench_bytes(&b, "image", &bytes);
    ret[0] = got[0];
    ret[1] = got[1];
    free(got);
}

static double overlap_of(const double w[4], const float box[4])
{
    double x = fmax(0, fmin(w[0] + w[2], box[2]) - fmax(w[0], box[0]));
    double y = fmax(0, fmin(w[1] + w[3], box[3]) - fmax(w[1], box[1]));

    return x * y / (w[2] * w[3] + (box[2] - box[0]) * (box[3] - box[1]) - x * y);
}

TEST(iou_crop_windows_overlap_a_box_whose_centre_they_contain)
{
    float boxes[12] = {2, 3, 20, 25, 25, 15, 38, 28, 18, 1, 22, 5};
    int64_t labels[3];
    int dropped = 0;

    bench_init(&b);
    for (int i = 0; i < 400; i++) {
        double w[4], best = 0;
        float *got;
        size_t bytes;

        b.id.index = (uint64_t)i;
        put_scene(3, boxes, labels);
        CHECK_OK(bench_op(&b, "image.iou_crop",
                          "{field: [image, boxes], overlaps: 0.5, "
                          "scale: [0.4, 0.9], ratio: [0.6, 1.5]}"));
        window_of(w);
        CHECK(w[2] >= 15 && w[2] <= 36 && w[3] >= 11 && w[3] <= 27);
        CHECK(w[2] / w[3] >= 0.6 && w[2] / w[3] <= 1.5);
        got = bench_bytes(&b, "boxes", &bytes);
        for (int k = 0; k < 3; k++) {
            const float *box = boxes + 4 * k;
            double x = (box[0] + box[2]) / 2, y = (box[1] + box[3]) / 2;
            bool inside = x > w[0] && x < w[0] + w[2] && y > w[1] && y < w[1] + w[3];

            if (inside)
                best = fmax(best, overlap_of(w, box));
            for (int c = 0; c < 4; c++) {
                double at = fmin(fmax(box[c] - w[c % 2], 0), w[2 + c % 2]);

                CHECK_NEAR(got[4 * k + c], inside ? at : 0, 1e-5);
            }
            dropped += !inside;
        }
        CHECK(best >= 0.5);
        free(got);
    }
    CHECK(dropped > 100);
    bench_finish(&b);
}

TEST(iou_crop_leaves_an_image_as_it_is_when_nothing_fits)
{
    static const char *const params[] = {
        "{field: [image, boxes], overlaps: 1}",
        "{field: [image, boxes], overlaps: 0.999}",
        "{field: [image, boxes], overlaps: 0, ratio: [500, 501]}",
        "{field: [image, boxes], overlaps: 0, scale: [0.001, 0.001]}"};
    float boxes[4] = {2, 3, 20, 25};
    int64_t labels[1];

    bench_init(&b);
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
        put_scene(1, boxes, labels);
        CHECK_OK(bench_op(&b, "image.iou_crop", params[i]));
        CHECK_EQ_INT(bench_value(&b, "image")->dims[1], WIDTH);
        BOXES_ARE(2, 3, 20, 25);
    }
    put_scene(0, boxes, labels);
    CHECK_OK(bench_op(&b, "image.iou_crop", "{field: [image, boxes]}"));
    CHECK_EQ_INT(bench_value(&b, "image")->dims[1], WIDTH);
    put_scene(1, boxes, labels);
    REFUSED(HR_ERR_ARGUMENT, "image.iou_crop", NULL, "field: [image, boxes]");
    REFUSED(HR_ERR_RANGE, "image.iou_crop", "{field: [image, boxes], scale: [1, 0.5]}",
            "smaller number");
    REFUSED(HR_ERR_RANGE, "image.iou_crop", "{field: [image, boxes], ratio: [2, 1]}",
            "smaller number");
    REFUSED(HR_ERR_RANGE, "image.iou_crop", "{field: [image, boxes], overlaps: -1}",
            "overlaps");
    bench_finish(&b);
}

/* As often as torchvision would: one of seven options each. */
TEST(iou_crop_draws_its_overlaps_evenly)
{
    float boxes[4] = {0, 0, WIDTH, HEIGHT};
    int64_t labels[1];
    int whole = 0;

    bench_init(&b);
    for (int i = 0; i < 1400; i++) {
        b.id.index = (uint64_t)i;
        put_scene(1, boxes, labels);
        CHECK_OK(bench_op(&b, "image.iou_crop",
                          "{field: [image, boxes], overlaps: [0, 0, 0, 1], "
                          "scale: [0.4, 0.9]}"));
        whole += bench_value(&b, "image")->dims[1] == WIDTH;
    }
    CHECK(whole > 270 && whole < 430);
    bench_finish(&b);
}

TEST(cover_crop_windows_cover_part_of_a_box)
{
    float boxes[12] = {2, 3, 20, 25, 25, 15, 38, 28, 18, 1, 22, 5};
    int64_t labels[3];
    int dropped = 0, kept = 0;

    bench_init(&b);
    for (int i = 0; i < 400; i++) {
        double w[4], best = 0;
        float *got;
        size_t bytes;

        b.id.index = (uint64_t)i;
        put_scene(3, boxes, labels);
        CHECK_OK(bench_op(&b, "image.cover_crop",
                          "{field: [image, boxes], cover: 0.4, scale: [0.1, 0.8], ratio: "
                          "[0.9, 1.2], keep: 0.5}"));
        window_of(w);
        CHECK(w[2] * w[3] >= 120 && w[2] * w[3] <= 960);
        CHECK(fabs(w[2] - w[3]) <= 0.2 * w[3] + 0.5);
        got = bench_bytes(&b, "boxes", &bytes);
        for (int k = 0; k < 3; k++) {
            const float *box = boxes + 4 * k;
            double x = fmax(0, fmin(w[0] + w[2], box[2]) - fmax(w[0], box[0]));
            double y = fmax(0, fmin(w[1] + w[3], box[3]) - fmax(w[1], box[1]));
            double part = x * y / ((box[2] - box[0]) * (box[3] - box[1]));

            best = fmax(best, part);
            for (int c = 0; c < 4; c++) {
                double at = fmin(fmax(box[c] - w[c % 2], 0), w[2 + c % 2]);

                CHECK_NEAR(got[4 * k + c], part > 0.5 ? at : 0, 1e-5);
            }
            dropped += part <= 0.5;
            kept += part > 0.5;
        }
        CHECK(best >= 0.4);
        free(got);
    }
    CHECK(dropped > 100 && kept > 100);
    bench_finish(&b);
}

TEST(cover_crop_without_boxes_takes_any_window_and_without_a_window_the_image)
{
    float boxes[4] = {2, 3, 20, 25};
    int64_t labels[1];

    bench_init(&b);
    put_scene(0, boxes, labels);
    CHECK_OK(
        bench_op(&b, "image.cover_crop", "{field: [image, boxes], scale: [0.1, 0.2]}"));
    CHECK(bench_value(&b, "image")->dims[1] < WIDTH);
    put_scene(1, boxes, labels);
    CHECK_OK(bench_op(&b, "image.cover_crop",
                      "{field: [image, boxes], scale: [0.1, 0.2], cover: 1}"));
    CHECK_EQ_INT(bench_value(&b, "image")->dims[1], WIDTH);
    BOXES_ARE(2, 3, 20, 25);
    put_scene(1, boxes, labels);
    CHECK_OK(bench_op(&b, "image.cover_crop",
                      "{field: [image, boxes], ratio: [900, 901], scale: [0.9, 1]}"));
    CHECK_EQ_INT(bench_value(&b, "image")->dims[1], WIDTH);
    REFUSED(HR_ERR_ARGUMENT, "image.cover_crop", NULL, "field: [image, boxes]");
    REFUSED(HR_ERR_RANGE, "image.cover_crop", "{field: [image, boxes], cover: 2}",
            "cover");
    REFUSED(HR_ERR_RANGE, "image.cover_crop", "{field: [image, boxes], scale: [1, 0.5]}",
            "smaller number");
    bench_finish(&b);
}

/* ---- anchors ---- */

/* By comparing every anchor with every box. */
struct anchor {
    double x, y, width, height;
};

static double anchor_overlap(const struct anchor *a, const float *box)
{
    double w[4] = {a->x - a->width / 2, a->y - a->height / 2, a->width, a->height};

    return overlap_of(w, box);
}

static int list_anchors(struct anchor *all)
{
    static const double ratios[] = {1, 2, 0.5};
    int count = 0;

    for (int level = 2; level <= 4; level++)
        for (int y = 0; y < (HEIGHT + (1 << level) - 1) >> level; y++)
            for (int x = 0; x < (WIDTH + (1 << level) - 1) >> level; x++)
                for (int scale = 0; scale < 2; scale++)
                    for (int ratio = 0; ratio < 3; ratio++) {
                        double side = 2.5 * (1 << level) * (scale == 0 ? 1 : sqrt(2));

                        all[count++] = (struct anchor){
                            (x + 0.5) * (1 << level), (y + 0.5) * (1 << level),
                            side * sqrt(ratios[ratio]), side / sqrt(ratios[ratio])};
                    }
    return count;
}

static void check_target(const struct anchor *a, const float *box, const float *to)
{
    CHECK_NEAR(to[0] * a->width + a->x, (box[0] + box[2]) / 2, 1e-3);
    CHECK_NEAR(to[1] * a->height + a->y, (box[1] + box[3]) / 2, 1e-3);
    CHECK_NEAR(exp(to[2]) * a->width, box[2] - box[0], 1e-3);
    CHECK_NEAR(exp(to[3]) * a->height, box[3] - box[1], 1e-3);
}

static double most_overlap(const struct anchor *all, int anchors, const float *box)
{
    double most = 0;

    for (int i = 0; i < anchors; i++)
        most = fmax(most, anchor_overlap(&all[i], box));
    return most;
}

/* The class by the thresholds alone; *ret_sure: none is near, and no other box. */
static int class_of(const struct anchor *a, const float *boxes, int count, bool *ret_sure)
{
    double most = 0, second = 0;
    int owner = -1;

    for (int k = 0; k < count; k++) {
        double overlap = anchor_overlap(a, boxes + 4 * k);

        second = fmax(second, fmin(overlap, most));
        if (overlap > most)
            owner = k;
        most = fmax(most, overlap);
    }
    *ret_sure =
        fabs(most - 0.4) > 1e-5 && fabs(most - 0.3) > 1e-5 && most - second > 1e-5;
    return most > 0.4 ? owner : most > 0.3 ? -2 : -1;
}

/* Anchors as good as the best one of a box are its by a hair: any of them will do. */
static void check_anchors(const float *boxes, int count)
{
    static struct anchor all[1000];
    int anchors = list_anchors(all), got_one[8] = {0};
    size_t bytes;
    int64_t *classes = bench_bytes(&b, "class_targets", &bytes);
    float *targets = bench_bytes(&b, "box_targets", &bytes);
    double most[8];

    CHECK_EQ_INT(bench_value(&b, "class_targets")->dims[0], anchors);
    CHECK_EQ_INT(bytes, (size_t)anchors * 16);
    for (int k = 0; k < count; k++)
        most[k] = most_overlap(all, anchors, boxes + 4 * k);
    for (int i = 0; i < anchors; i++) {
        bool sure, best = false;
        int wanted = class_of(&all[i], boxes, count, &sure);

        for (int k = 0; k < count; k++)
            if (anchor_overlap(&all[i], boxes + 4 * k) > most[k] - 1e-6) {
                best = true;
                got_one[k] |= classes[i] >= 0;
            }
        if (sure && !best)
            CHECK_EQ_INT(classes[i], wanted);
        if (classes[i] >= 0)
            check_target(&all[i], boxes + 4 * classes[i], targets + 4 * i);
        else
            for (int c = 0; c < 4; c++)
                CHECK(targets[4 * i + c] == 0);
    }
    for (int k = 0; k < count; k++)
        CHECK(got_one[k]);
    free(classes);
    free(targets);
}

#define ANCHORS                                                                          \
    "{size: [30, 40], levels: [2, 4], scales: 2, anchor_size: 2.5, match: 0.4, "         \
    "unmatched: 0.3}"

TEST(anchors_stand_for_the_boxes_that_they_overlap_most)
{
    int64_t labels[3];
    struct hr_rng rng;

    bench_init(&b);
    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int i = 0; i < 200; i++) {
        float boxes[12]; /* side by side */

        for (int k = 0; k < 3; k++) {
            float *box = boxes + 4 * k;

            box[0] = (float)hr__rng_uniform(&rng, 13 * k, 13 * k + 5);
            box[2] = (float)hr__rng_uniform(&rng, box[0] + 1, 13 * k + 13);
            box[1] = (float)hr__rng_uniform(&rng, 0, 20);
            box[3] = (float)hr__rng_uniform(&rng, box[1] + 1, HEIGHT);
        }
        put_scene(3, boxes, labels);
        CHECK_OK(bench_op(&b, "boxes.anchors", ANCHORS));
        check_anchors(boxes, 3);
    }
    bench_finish(&b);
}

TEST(anchors_ignore_boxes_of_no_area_and_refuse_what_does_not_fit)
{
    float boxes[12] = {5, 5, 5, 9, NAN, 1, 2, 3, 9, 9, 4, 4};
    int64_t labels[3], *classes;
    size_t bytes;

    bench_init(&b);
    for (int count = 3; count >= 0; count -= 3) {
        put_scene(count, boxes, labels);
        CHECK_OK(bench_op(&b, "boxes.anchors", ANCHORS));
        classes = bench_bytes(&b, "class_targets", &bytes);
        for (size_t i = 0; i < bytes / 8; i++)
            CHECK_EQ_INT(classes[i], -1);
        free(classes);
    }
    put_scene(3, boxes, labels);
    REFUSED(HR_ERR_RANGE, "boxes.anchors", "{size: 64, unmatched: 0.6}", "above match");
    REFUSED(HR_ERR_RANGE, "boxes.anchors", "{size: 64, levels: [5, 3]}",
            "smaller number");
    REFUSED(HR_ERR_LIMIT, "boxes.anchors", "{size: 65535, levels: [0, 3]}", "anchors");
    REFUSED(HR_ERR_TYPE, "boxes.anchors", "{size: 64, labels: boxes}", "int64 [n]");
    REFUSED(HR_ERR_ARGUMENT, "boxes.anchors", "{size: 64, box_targets: class_targets}",
            "different names");
    put_tensor("others", HR_I64, 2, 0, labels);
    REFUSED(HR_ERR_SHAPE, "boxes.anchors", "{size: 64, labels: others}",
            "\"others\" has 2 rows and there are 3 boxes");
    bench_finish(&b);
}
