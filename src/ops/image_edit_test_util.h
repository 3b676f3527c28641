/*
 * ops/image_edit_test_util.h - photos and random edits, for tests that compare chains of
 * them. Included by tests, as ops_test_util.h is.
 */
#ifndef HR_OPS_IMAGE_EDIT_TEST_UTIL_H
#define HR_OPS_IMAGE_EDIT_TEST_UTIL_H

#include "ops/ops_test_util.h"

/* A photo of smooth colours and some grain. */
static inline void *
jpeg(int32_t width, int32_t height, int sampling, bool gray, size_t *bytes)
{
    int32_t channels = gray ? 1 : 3;
    uint8_t *levels = malloc((size_t)(width * height * channels));
    struct hr_pixels pixels = hr__pixels_u8(levels, width, height, channels);
    struct hr_jpeg_options options = {
        .quality = 90, .sampling_x = sampling, .sampling_y = sampling};
    void *data;

    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++)
            for (int32_t c = 0; c < channels; c++)
                levels[(y * width + x) * channels + c] =
                    (uint8_t)(128 + 60 * sin(x * 0.05 + c) + 50 * cos(y * 0.07 - c) +
                              (x * 7 + y * 13) % 11);
    CHECK_OK(hr__image_encode_jpeg(&pixels, &options, &data, bytes, NULL));
    free(levels);
    return data;
}

static inline uint32_t pick(struct hr_rng *rng, uint32_t n)
{
    return (uint32_t)hr__rng_below(rng, n);
}

/* A random edit as text; some are refused by infer, then nothing happens. */
static inline const char *random_edit(struct hr_rng *rng, char *text, size_t room)
{
    static const char *const filters[] = {"nearest", "bilinear", "bicubic", "box",
                                          "lanczos"};
    static const char *const dtypes[] = {"uint8", "float32", "float16", "bfloat16"};
    static const char *const fills[] = {"0", "1", "0.3"}; /* the last not for uint8 */
    unsigned a = 8 + pick(rng, 60), b = 8 + pick(rng, 60), f = pick(rng, 5);
    const char *anti = pick(rng, 4) != 0 ? "true" : "false";

    switch (pick(rng, 11)) {
    case 0:
        snprintf(text, room, "{size: [%u, %u], interpolation: %s, antialias: %s}", a, b,
                 filters[f], anti);
        return "image.resize";
    case 1:
        snprintf(text, room, "{size: %u, interpolation: %s, antialias: %s}", a,
                 filters[f], anti);
        return "image.resize_shortest";
    case 2:
        snprintf(text, room, "{size: [%u, %u], interpolation: %s}", a, b, filters[f]);
        return "image.random_resized_crop";
    case 3:
        snprintf(text, room, "{size: [%u, %u]}", a, b);
        return "image.center_crop";
    case 4:
        snprintf(text, room, "{size: [%u, %u], pad_if_needed: true}", a, b);
        return "image.random_crop";
    case 9:
        snprintf(text, room,
                 "{size: [%u, %u], padding: [%u, %u, %u, %u], fill: %s, "
                 "pad_if_needed: true}",
                 1 + pick(rng, a), 1 + pick(rng, b), pick(rng, 30), pick(rng, 30),
                 pick(rng, 30), pick(rng, 30), fills[pick(rng, 3)]);
        return "image.random_crop";
    case 10:
        snprintf(text, room, "{size: [%u, %u], fill: %s}", a, b, fills[pick(rng, 3)]);
        return "image.fixed_size_crop";
    case 5:
        snprintf(text, room, "{p: 0.7, direction: %s}",
                 pick(rng, 2) ? "horizontal" : "vertical");
        return "image.flip";
    case 6:
        snprintf(text, room, "{dtype: %s}", dtypes[pick(rng, 4)]);
        return "tensor.cast";
    case 7:
        snprintf(text, room, "{mean: half, std: half, dtype: %s}",
                 dtypes[1 + pick(rng, 3)]);
        return "image.normalize";
    default:
        snprintf(text, room, "{order: %s}", pick(rng, 2) ? "chw" : "hwc");
        return "tensor.layout";
    }
}

/* One to `most` random edits of the record; appends them to `trace`, of 2048 bytes, if it
 * is not NULL. */
static inline void
random_edits(struct bench *b, struct hr_rng *rng, uint32_t most, char *trace)
{
    uint32_t count = 1 + pick(rng, most);
    char text[160];

    for (uint32_t i = 0; i < count; i++) {
        const char *op = random_edit(rng, text, sizeof text);
        enum hr_err err;

        b->node = 100 + i;
        err = bench_op(b, op, text);
        if (trace != NULL)
            snprintf(trace + strlen(trace), 2048 - strlen(trace), "%s %s%s; ", op, text,
                     err == HR_OK ? "" : " (refused)");
        CHECK(err == HR_OK || err == HR_ERR_TYPE || err == HR_ERR_RANGE);
        memset(&b->error, 0, sizeof b->error);
    }
}

#endif
