/*
 * codec/image_test_util.h - shared by the image tests: a decoder with its arena,
 * generated pictures, and comparison of windows with a full decode.
 */
#ifndef HR_CODEC_IMAGE_TEST_UTIL_H
#define HR_CODEC_IMAGE_TEST_UTIL_H

#include "codec/image.h"
#include "core/alloc.h"
#include "tests/support/check.h"

#include <stdlib.h>

struct bench {
    struct hr_arena arena;
    struct hr_image_decoder *decoder;
    uint32_t state; /* of draw() */
};

static inline void bench_init(struct bench *bench)
{
    hr__arena_init(&bench->arena);
    CHECK_OK(hr__image_decoder_create(&bench->decoder));
    bench->state = 1;
}

static inline void bench_finish(struct bench *bench)
{
    hr__image_decoder_destroy(bench->decoder);
    hr__arena_finish(&bench->arena);
}

/* A number below n, from a small generator with a fixed seed. */
static inline int32_t draw(struct bench *bench, int32_t n)
{
    bench->state = bench->state * 1664525U + 1013904223U;
    return (int32_t)((uint64_t)bench->state * (uint64_t)n >> 32);
}

/* A picture of gradients, edges and noise; the caller frees its data with free(). */
static inline struct hr_pixels
make_picture(struct bench *bench, int32_t width, int32_t height, int32_t channels)
{
    size_t count = (size_t)width * (size_t)channels * (size_t)height;
    uint8_t *data = malloc(count);
    struct hr_pixels pixels = hr__pixels_u8(data, width, height, channels);

    CHECK(data != NULL);
    for (size_t i = 0; i < count; i++) {
        size_t x = i % (size_t)pixels.row_stride, y = i / (size_t)pixels.row_stride;

        data[i] =
            (uint8_t)(draw(bench, 4) == 0 ? (size_t)draw(bench, 256) : 7 * x + 5 * y);
    }
    return pixels;
}

static inline struct hr_image_request whole(const struct hr_image_info *info)
{
    return (struct hr_image_request){
        .channels = HR_CHANNELS_UNCHANGED, .width = info->width, .height = info->height};
}

/* Probes and decodes the whole image. */
static inline enum hr_err
decode_whole(struct bench *bench, const void *data, size_t bytes,
             enum hr_image_channels channels, struct hr_image_part *ret_part,
             struct hr_error *reterr)
{
    struct hr_image_info info;
    struct hr_image_request request;
    enum hr_err code = hr__image_probe(data, bytes, &info, reterr);

    if (code != HR_OK)
        return code;
    request = whole(&info);
    request.channels = channels;
    request.pixels_max = 1 << 22;
    return hr__image_decode(bench->decoder, &bench->arena, data, bytes, &info, &request,
                            ret_part, reterr);
}

static inline const uint8_t *
pixel_at(const struct hr_image_part *part, int32_t x, int32_t y)
{
    return (const uint8_t *)part->pixels.data + (y - part->y) * part->pixels.row_stride +
           (x - part->x) * part->pixels.pixel_stride;
}

/* Checks that the part covers the request and equals the full decode. */
static inline void
check_window(const struct hr_image_request *request, const struct hr_image_part *part,
             const struct hr_image_part *full)
{
    int k = request->scale_log2, up = (1 << k) - 1, y;
    int x0 = request->x >> k, x1 = (request->x + request->width + up) >> k;
    int y0 = request->y >> k, y1 = (request->y + request->height + up) >> k;
    size_t bytes = (size_t)(x1 - x0) * (size_t)part->pixels.channels;

    CHECK_EQ_INT(part->pixels.channels, full->pixels.channels);
    CHECK_EQ_INT(part->scale_log2, k);
    CHECK(part->x <= x0 && part->y <= y0);
    CHECK(part->x + part->pixels.width >= x1 && part->y + part->pixels.height >= y1);
    for (y = y0; y < y1; y++)
        CHECK_BYTES(pixel_at(part, x0, y), pixel_at(full, x0, y), bytes);
}

/* Compares `count` random windows at each scale below `scales` with full decodes. */
static inline void check_windows(struct bench *bench, const void *data, size_t bytes,
                                 enum hr_image_channels channels, int scales, int count)
{
    struct hr_image_info info;
    struct hr_error error = {0};
    int k, i;

    CHECK_OK(hr__image_probe(data, bytes, &info, &error));
    for (k = 0; k < scales; k++) {
        struct hr_image_request request = whole(&info);
        struct hr_image_part full, part;

        request.channels = channels;
        request.scale_log2 = k;
        CHECK_OK(hr__image_decode(bench->decoder, &bench->arena, data, bytes, &info,
                                  &request, &full, &error));
        for (i = 0; i < count; i++) {
            int32_t small = draw(bench, 3) == 0 ? 9 : INT32_MAX;

            request.x = draw(bench, info.width);
            request.y = draw(bench, info.height);
            request.width = 1 + draw(bench, info.width - request.x) % small;
            request.height = 1 + draw(bench, info.height - request.y) % small;
            CHECK_OK(hr__image_decode(bench->decoder, &bench->arena, data, bytes, &info,
                                      &request, &part, &error));
            check_window(&request, &part, &full);
        }
        hr__arena_reset(&bench->arena);
    }
}

/* Checks that every prefix of a file is rejected or decodes to the same pixels. */
static inline void check_prefixes(struct bench *bench, const uint8_t *data, size_t bytes)
{
    struct hr_image_part full, part;
    struct hr_error error = {0};
    size_t length;

    CHECK_OK(decode_whole(bench, data, bytes, HR_CHANNELS_UNCHANGED, &full, &error));
    for (length = 0; length < bytes; length++) {
        uint8_t *copy =
            malloc(length > 0 ? length : 1); /* exact size, so that ASan sees overreads */
        enum hr_err code;
        int32_t y;

        CHECK(copy != NULL);
        memcpy(copy, data, length);
        code = decode_whole(bench, copy, length, HR_CHANNELS_UNCHANGED, &part, &error);
        free(copy);
        if (code != HR_OK) {
            CHECK(code == HR_ERR_FORMAT || code == HR_ERR_UNSUPPORTED);
            continue;
        }
        CHECK_EQ_INT(part.pixels.width, full.pixels.width);
        CHECK_EQ_INT(part.pixels.channels, full.pixels.channels);
        for (y = 0; y < full.pixels.height; y++)
            CHECK_BYTES(pixel_at(&part, 0, y), pixel_at(&full, 0, y),
                        (size_t)(full.pixels.width * full.pixels.channels));
    }
}

/* Decodes with the n-th allocation failing, for every n. */
static inline void check_allocations(const void *data, size_t bytes)
{
    uint64_t nth;

    for (nth = 1;; nth++) {
        struct hr_image_decoder *decoder = NULL;
        struct hr_image_part part = {.x = -7};
        struct hr_image_request request;
        struct hr_image_info info;
        struct hr_error error = {0};
        struct hr_arena arena;
        enum hr_err code;

        CHECK_OK(hr__image_probe(data, bytes, &info, &error));
        request = whole(&info);
        hr__arena_init(&arena);
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr__image_decoder_create(&decoder);
        if (code == HR_OK)
            code = hr__image_decode(decoder, &arena, data, bytes, &info, &request, &part,
                                    &error);
        hr__image_decoder_destroy(decoder);
        hr__arena_finish(&arena);
        if (hr__fault_calls() < nth) {
            hr__fault_arm(HR_FAULT_ALLOC, 0);
            CHECK_OK(code);
            CHECK(nth > 2);
            return;
        }
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        CHECK_ERR(HR_ERR_MEMORY, code);
        CHECK_EQ_INT(part.x, -7);
    }
}

#endif
