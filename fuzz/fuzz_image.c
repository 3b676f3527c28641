/*
 * fuzz/fuzz_image.c - any bytes through probe and decode, whole and as a window.
 *
 * Besides not crashing, a window must have the bytes of the whole decode. The last
 * byte of the input chooses channels and scale, the three before it the window. A PNG is
 * decoded again with the checksums of its chunks repaired.
 */
#include "codec/image.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define PIXELS_MAX (1 << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void choose(struct hr_image_request *request, const struct hr_image_info *info,
                   const uint8_t *data, size_t bytes)
{
    uint8_t a = data[bytes - 4], b = data[bytes - 3], c = data[bytes - 2];

    request->x = a % info->width;
    request->y = b % info->height;
    request->width = 1 + c % (info->width - request->x);
    request->height = 1 + (a ^ c) % (info->height - request->y);
}

static void compare(const struct hr_image_part *full, const struct hr_image_part *part)
{
    const struct hr_pixels *p = &part->pixels, *f = &full->pixels;
    int32_t y;

    if (p->channels != f->channels)
        abort();
    for (y = 0; y < p->height; y++)
        if (memcmp((const uint8_t *)p->data + y * p->row_stride,
                   (const uint8_t *)f->data + (part->y + y) * f->row_stride +
                       part->x * f->pixel_stride,
                   (size_t)p->width * (size_t)p->channels) != 0)
            abort();
}

static void decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                   const uint8_t *data, size_t bytes, const struct hr_image_info *info)
{
    struct hr_image_request request = {
        .channels = (enum hr_image_channels)(data[bytes - 1] % 4),
        .width = info->width,
        .height = info->height,
        .scale_log2 = data[bytes - 1] / 4 % 4,
        .pixels_max = PIXELS_MAX,
    };
    struct hr_image_part full, part;
    struct hr_error error = {0};

    if (hr__image_decode(decoder, arena, data, bytes, info, &request, &full, &error) !=
        HR_OK)
        return;
    choose(&request, info, data, bytes);
    if (hr__image_decode(decoder, arena, data, bytes, info, &request, &part, &error) !=
        HR_OK)
        abort();
    compare(&full, &part);
}

static void check(const uint8_t *data, size_t bytes)
{
    struct hr_image_decoder *decoder;
    struct hr_image_info info;
    struct hr_error error = {0};
    struct hr_arena arena;

    if (bytes < 4 || hr__image_probe(data, bytes, &info, &error) != HR_OK)
        return;
    if (hr__image_decoder_create(&decoder) != HR_OK)
        return;
    hr__arena_init(&arena);
    decode(decoder, &arena, data, bytes, &info);
    hr__arena_finish(&arena);
    hr__image_decoder_destroy(decoder);
}

static bool is_png(const uint8_t *data, size_t bytes)
{
    return bytes > 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static void repair_png(uint8_t *data, size_t bytes)
{
    size_t at = 8;

    while (bytes - at >= 12) {
        size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                        (size_t)data[at + 2] << 8 | data[at + 3];
        uint32_t sum;

        if (length > bytes - at - 12)
            return;
        sum = htobe32((uint32_t)crc32(0, data + at + 4, (unsigned)length + 4));
        memcpy(data + at + 8 + length, &sum, sizeof sum);
        at += 12 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t *copy;

    check(data, bytes);
    if (!is_png(data, bytes) || (copy = malloc(bytes)) == NULL)
        return 0;
    memcpy(copy, data, bytes);
    repair_png(copy, bytes);
    check(copy, bytes);
    free(copy);
    return 0;
}
