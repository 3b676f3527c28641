/*
 * fuzz/fuzz_entries.c - any bytes as the entry points of a photo: refused, or decoding
 * with them gives pixels, wrong ones perhaps, or declines; and no more.
 *
 * The first byte chooses photo and window. The rest is read as a saved index of the
 * codec, as a file of entry points, and as the index in such a file, of this photo and
 * with right checksums.
 */
#include "codec/jpeg.h"
#include "core/alloc.h"
#include "core/hash.h"
#include "headrace/jpeg.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct photo {
    void *data;
    size_t bytes;
    struct hr_image_info info;
};

static struct photo make(int32_t channels, int sampling)
{
    static uint8_t pixels[3 * 70 * 50];
    struct hr_jpeg_options options = {
        .quality = 80, .sampling_x = sampling, .sampling_y = sampling};
    struct hr_pixels picture = hr__pixels_u8(pixels, 70, 50, channels);
    struct photo photo = {.data = NULL};

    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i >> 7);
    if (hr__image_encode_jpeg(&picture, &options, &photo.data, &photo.bytes, NULL) !=
            HR_OK ||
        hr__image_probe(photo.data, photo.bytes, &photo.info, NULL) != HR_OK)
        abort();
    return photo;
}

static void decode(struct hr_jpeg *jpeg, struct hr_arena *arena,
                   const struct photo *photo, struct hr_jpeg_index *index, int choice)
{
    struct hr_image_request request = {.x = 5 * (choice % 7),
                                       .y = 7 * (choice / 7 % 6),
                                       .width = 30,
                                       .height = 1 + choice % 8,
                                       .scale_log2 = choice % 4,
                                       .index = index};
    struct hr_error error = {0};
    struct hr_image_job job = {arena,        photo->data, photo->bytes,
                               &photo->info, &request,    &error};
    struct hr_image_part part;
    enum hr_err err = hr__jpeg_window(jpeg, &job, &part);

    if (err != HR_OK && err != HR_ERR_UNSUPPORTED)
        abort();
}

/* The windows that a caller may ask about, large numbers included. */
static void parse_file(const void *file, size_t file_bytes, const struct photo *photo)
{
    struct hr_jpeg_entries *entries = NULL;
    const struct hr_jpeg_window windows[] = {
        {.x = 0,         .y = 0,         .width = 0,         .height = 0        },
        {.x = 5,         .y = 20,        .width = 9,         .height = 8        },
        {.x = INT32_MAX, .y = 30,        .width = INT32_MAX, .height = INT32_MAX},
        {.x = 0,         .y = INT32_MAX, .width = 1,         .height = INT32_MAX},
    };

    if (hr_jpeg_entries_parse(file, file_bytes, photo->data, photo->bytes, &entries,
                              NULL) != HR_OK)
        return;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        if (hr_jpeg_entries_skip(entries, &windows[i]) > photo->bytes)
            abort();
    hr_jpeg_entries_destroy(entries);
}

/* See api/jpeg_entries_api.c for the head of the file. */
static void
parse_repaired(const uint8_t *index, size_t index_bytes, const struct photo *photo)
{
    uint64_t size = index_bytes, photo_bytes = photo->bytes;
    struct hr_hash128 hash = hr__hash128(photo->data, photo->bytes), parts[2];
    uint8_t *file = hr__malloc(56 + index_bytes);

    if (file == NULL)
        return;
    memcpy(file, "HRJPEGE1", 8);
    memcpy(file + 8, &photo_bytes, 8);
    memcpy(file + 16, &hash, 16);
    memcpy(file + 32, &size, 8);
    memcpy(file + 56, index, index_bytes);
    parts[0] = hr__hash128(file, 40);
    parts[1] = hr__hash128(file + 56, index_bytes);
    hash = hr__hash128(parts, sizeof parts);
    memcpy(file + 40, &hash, 16);
    parse_file(file, 56 + index_bytes, photo);
    hr__free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct photo photos[3];
    static struct hr_jpeg *jpeg;
    static struct hr_arena arena;
    struct hr_jpeg_index index;
    const struct photo *photo;

    if (jpeg == NULL) {
        jpeg = hr__jpeg_create();
        for (int i = 0; i < 3; i++)
            photos[i] = make(i == 2 ? 1 : 3, 1 + i % 2);
    }
    if (jpeg == NULL || bytes < 1)
        return 0;
    photo = &photos[data[0] % 3];
    if (hr__jpeg_index_unpack(&arena, data + 1, bytes - 1, &index) == HR_OK)
        for (int n = 0; n < 3; n++)
            decode(jpeg, &arena, photo, &index, data[0] / 3 + 17 * n);
    parse_file(data + 1, bytes - 1, photo);
    parse_repaired(data + 1, bytes - 1, photo);
    hr__arena_reset(&arena);
    return 0;
}
