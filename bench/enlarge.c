/*
 * enlarge.c - see enlarge.h. Decodes, enlarges (bicubic) and encodes with the library's
 * own functions. The folder's name encodes its settings; a file next to it marks it as
 * complete.
 */
#include "enlarge.h"

#include "codec/image.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct maker {
    const struct photos *from;
    const struct enlarge *set;
    struct hr_image_decoder *decoder;
    struct hr_arena arena;
};

/* Decodes the photo to RGB in the arena. */
static struct hr_pixels decode(struct maker *maker, const struct photo *photo)
{
    struct hr_error error = {0};
    struct hr_image_info info;
    struct hr_image_request whole = {0};
    struct hr_image_part part;

    bench_must(hr__image_probe(photo->data, photo->bytes, &info, &error), &error);
    whole.width = info.width;
    whole.height = info.height;
    whole.channels = HR_CHANNELS_RGB;
    bench_must(hr__image_decode(maker->decoder, &maker->arena, photo->data, photo->bytes,
                                &info, &whole, &part, &error),
               &error);
    return part.pixels;
}

static void
enlarge(struct maker *maker, const struct hr_pixels *from, const struct hr_pixels *to)
{
    struct hr_resample spec = {.in_width = from->width,
                               .in_height = from->height,
                               .box_width = from->width,
                               .box_height = from->height,
                               .out_width = to->width,
                               .out_height = to->height,
                               .filter = HR_FILTER_BICUBIC,
                               .antialias = true};
    struct hr_resample_plan *plan;
    struct hr_error error = {.message = "out of memory"};

    bench_must(hr__resample_plan(&maker->arena, &spec, &plan), &error);
    bench_must(hr__resample_run(plan, &maker->arena, from, to, true, NULL, 0), &error);
}

/* The part of the canvas for tile `at`. */
static struct hr_pixels tile_of(const struct hr_pixels *whole, int32_t tiles, int32_t at)
{
    struct hr_pixels tile = *whole;

    tile.width = whole->width / tiles;
    tile.height = whole->height / tiles;
    tile.data = (uint8_t *)whole->data + (at / tiles) * tile.height * whole->row_stride +
                (int64_t)3 * (at % tiles) * tile.width;
    return tile;
}

static void
write_photo(struct maker *maker, const struct hr_pixels *pixels, const char *path)
{
    struct hr_jpeg_options options = {
        .quality = maker->set->quality, .sampling_x = 2, .sampling_y = 2};
    struct hr_error error = {0};
    size_t bytes;
    void *data;

    bench_must(hr__image_encode_jpeg(pixels, &options, &data, &bytes, &error), &error);
    bench_must(hr__file_replace(path, data, bytes, &error), &error);
    hr__free(data);
}

/* Makes photo `at` of the set. */
static void make_photo(struct maker *maker, size_t at, const char *path)
{
    const struct enlarge *set = maker->set;
    size_t each = (size_t)set->tiles * (size_t)set->tiles;
    struct hr_pixels whole = {0};
    uint8_t *data = NULL;

    for (size_t t = 0; t < each; t++) {
        size_t from = set->count > 0 ? at * each + t : at * 2;
        struct hr_pixels pixels =
            decode(maker, &maker->from->list[from % maker->from->count]);
        struct hr_pixels tile;

        if (t == 0) {
            int32_t width = set->width > 0 ? set->width : 2 * pixels.width;
            int32_t height = set->height > 0 ? set->height : 2 * pixels.height;

            data = malloc((size_t)3 * (size_t)width * (size_t)height);
            if (data == NULL)
                bench_die("out of memory");
            whole = hr__pixels_u8(data, width, height, 3);
        }
        tile = tile_of(&whole, set->tiles, (int32_t)t);
        enlarge(maker, &pixels, &tile);
        hr__arena_reset(&maker->arena);
    }
    write_photo(maker, &whole, path);
    free(data);
}

/* A hash of the photos and of the set's settings. */
static uint64_t identity(const struct photos *from, const struct enlarge *set)
{
    struct hr_hash128 hash = {0};
    char text[200];

    for (size_t i = 0; i < from->count; i++) {
        const struct photo *photo = &from->list[i];
        struct hr_hash128 one = hr__hash128(photo->data, photo->bytes);

        hash.low += one.low; /* independent of the order of the files */
        hash.high += one.high;
    }
    snprintf(text, sizeof(text), "%zu %d %d %d %d", set->count, set->width, set->height,
             set->tiles, set->quality);
    return hr__hash64(text, strlen(text), hash.low ^ hash.high);
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        bench_die("cannot make the folder %s: %s", path, strerror(errno));
}

static void make_set(struct maker *maker, const char *dir)
{
    size_t count = maker->set->count;
    struct hr_error error = {0};
    char path[4300];

    if (count == 0)
        count = (maker->from->count + 1) / 2;
    fprintf(stderr, "bench: making %zu photos in %s, once\n", count, dir);
    bench_must(hr__image_decoder_create(&maker->decoder), &error);
    hr__arena_init(&maker->arena);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%04zu.jpg", dir, i);
        make_photo(maker, i, path);
    }
    hr__arena_finish(&maker->arena);
    hr__image_decoder_destroy(maker->decoder);
}

void enlarge_set(const struct photos *from, const struct enlarge *set, char *path,
                 size_t room)
{
    struct maker maker = {.from = from, .set = set};
    struct hr_error error = {0};
    char mark[4200];

    bench_path(path, room, "../bench-data");
    make_folder(path);
    if (strlen(path) + strlen(set->name) + 30 > sizeof(mark))
        bench_die("the build folder's path is too long");
    snprintf(path + strlen(path), room - strlen(path), "/%s-%08x", set->name,
             (unsigned)identity(from, set));
    snprintf(mark, sizeof(mark), "%s.made", path);
    if (access(mark, F_OK) == 0)
        return;
    make_folder(path);
    make_set(&maker, path);
    bench_must(hr__file_replace(mark, "", 0, &error), &error);
}
