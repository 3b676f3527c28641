/*
 * codec/image_source_test.c - a resize of the decoded part equals, byte for byte, a
 * resize of the whole photo: the part is large enough for every filter. The memory of a
 * decode is known beforehand.
 */
#include "codec/image_source.h"
#include "codec/jpeg_test_util.h"

#include <webp/decode.h>
#include <webp/encode.h>

static const enum hr_filter filters[] = {HR_FILTER_NEAREST, HR_FILTER_BILINEAR,
                                         HR_FILTER_BICUBIC, HR_FILTER_BOX,
                                         HR_FILTER_LANCZOS};
#define FILTERS 5
#define SHOWN 60 /* pixels of width and height at most */

/* A range within [0, size) with fractional ends: where the edge of a box filter meets the
 * centre of a pixel, the result would depend on rounding. */
static void draw_range(struct bench *bench, int32_t size, double *at, double *extent)
{
    *at = (draw(bench, (size - 1) * 1000) + 1 / M_PI) / 1000;
    *extent = (1 + draw(bench, (int32_t)((size - 1 - *at) * 1000) + 1)) / 1000.0;
}

/* A random box in the photo, enlarged or reduced. */
static struct hr_image_view draw_view(struct bench *bench, const struct photo *file)
{
    const struct hr_image_info *info = &file->info;
    struct hr_image_view view = {.clip_width = info->width,
                                 .clip_height = info->height,
                                 .width = 1 + draw(bench, SHOWN),
                                 .height = 1 + draw(bench, SHOWN),
                                 .resampled = true,
                                 .antialias = draw(bench, 4) != 0,
                                 .want = HR_CHANNELS_RGB,
                                 .channels = 3,
                                 .orientation = 1};

    draw_range(bench, info->width, &view.box_x, &view.box_width);
    draw_range(bench, info->height, &view.box_y, &view.box_height);
    return view;
}

static void resample(struct bench *bench, const struct hr_image_source *source,
                     const struct hr_image_view *view, uint8_t *levels)
{
    const struct hr_image_finish finish = {.round_levels = true};
    struct hr_pixels to = hr__pixels_u8(levels, view->width, view->height, 3);

    CHECK_OK(hr__image_source_resample(&bench->arena, source, view, &finish, &to, NULL));
}

/* The whole photo in the form of part `like`: pixels or planes, at its scale. */
static struct hr_image_source
whole_source(struct bench *bench, const struct photo *file,
             const struct hr_image_view *view, const struct hr_image_source *like)
{
    struct hr_image_request request = whole(&file->info);
    struct hr_image_source source = {.planar = like->planar,
                                     .box_width = like->box_width,
                                     .box_height = like->box_height};
    struct hr_image_planes planes;
    struct hr_image_part part;
    double unit = view->box_width / like->box_width;

    request.channels = HR_CHANNELS_RGB;
    request.scale_log2 = (int)log2(unit);
    if (like->planar) {
        CHECK_OK(hr__image_decode_planes(bench->decoder, &bench->arena, file->data,
                                         file->bytes, &file->info, &request, &planes,
                                         NULL));
        source.ycc = planes.ycc;
        source.pixels = planes.ycc.plane[0];
    } else {
        CHECK_OK(hr__image_decode(bench->decoder, &bench->arena, file->data, file->bytes,
                                  &file->info, &request, &part, NULL));
        source.pixels = part.pixels;
    }
    source.box_x = view->box_x / unit;
    source.box_y = view->box_y / unit;
    return source;
}

static void check_view(struct bench *bench, const struct photo *file,
                       const struct hr_image_view *view)
{
    static uint8_t of_part[SHOWN * SHOWN * 3], of_whole[SHOWN * SHOWN * 3];
    struct hr_image_source part, all;

    CHECK_OK(hr__image_source_decode(bench->decoder, &bench->arena, file->data,
                                     file->bytes, &file->info, view, &part, NULL));
    all = whole_source(bench, file, view, &part);
    resample(bench, &part, view, of_part);
    resample(bench, &all, view, of_whole);
    if (memcmp(of_part, of_whole, (size_t)view->width * (size_t)view->height * 3) != 0)
        check_failed(__FILE__, __LINE__,
                     "filter %d, antialias %d, mode %d: %.17g x %.17g from (%.17g, "
                     "%.17g) to %d x %d",
                     (int)view->filter, view->antialias, (int)view->mode, view->box_width,
                     view->box_height, view->box_x, view->box_y, (int)view->width,
                     (int)view->height);
    hr__arena_reset(&bench->arena);
}

static void check_filters(enum hr_image_mode mode, size_t count)
{
    struct bench bench;

    bench_init(&bench);
    for (int kind = 0; kind < 4; kind++) {
        struct hr_jpeg_options options = {.sampling_x = 1 + kind % 2,
                                          .sampling_y = 1 + kind / 2};
        struct photo file = make_photo(&bench, &options, 120 + draw(&bench, 50),
                                       100 + draw(&bench, 50), 3);

        for (size_t i = 0; i < 100 * count; i++) {
            struct hr_image_view view = draw_view(&bench, &file);

            view.mode = mode;
            view.filter = filters[i % count];
            check_view(&bench, &file, &view);
        }
        hr__free(file.data);
    }
    bench_finish(&bench);
}

TEST(a_part_is_as_wide_as_every_filter_reaches)
{
    check_filters(HR_MODE_EXACT, FILTERS);
}

/* All but the last filter, lanczos: with subsampled chroma it may lack the outermost tap,
 * whose weight is below 0.01. */
TEST(planes_are_as_wide_as_filters_reach_in_luma_and_chroma)
{
    check_filters(HR_MODE_CLOSE, FILTERS - 1);
    check_filters(HR_MODE_FAST, FILTERS - 1);
}

/* ---- memory ---- */

/* Rows and columns that are decoded beyond the part, in whole MCUs. */
#define ROUNDED_BYTES ((uint64_t)400 << 10)

/* A random crop, and mostly a resize of it. */
static struct hr_image_view draw_part(struct bench *bench, const struct photo *file)
{
    bool turned = draw(bench, 2) == 0;
    int32_t width = turned ? file->info.height : file->info.width;
    int32_t height = turned ? file->info.width : file->info.height;
    struct hr_image_view view = {.clip_x = draw(bench, width / 2),
                                 .clip_y = draw(bench, height / 2),
                                 .resampled = draw(bench, 4) != 0,
                                 .filter = filters[draw(bench, FILTERS)],
                                 .antialias = draw(bench, 4) != 0,
                                 .mode = (enum hr_image_mode)draw(bench, 3),
                                 .want = (enum hr_image_channels)draw(bench, 3),
                                 .orientation = turned ? 5 + draw(bench, 4) : 1};

    view.clip_width = 1 + draw(bench, width - view.clip_x);
    view.clip_height = 1 + draw(bench, height - view.clip_y);
    view.box_x = view.clip_x;
    view.box_y = view.clip_y;
    view.box_width = view.clip_width;
    view.box_height = view.clip_height;
    view.width = view.resampled ? 1 + draw(bench, width) : view.clip_width;
    view.height = view.resampled ? 1 + draw(bench, height) : view.clip_height;
    view.channels = hr__image_channels_out(&file->info, view.want);
    return view;
}

/* What the codec allocates itself is not in the arena. */
static void check_bytes(struct bench *bench, const struct photo *file,
                        const struct hr_image_view *view)
{
    const struct hr_image_info *info = &file->info;
    uint64_t own = info->held_bytes + (info->format == HR_IMAGE_JPEG ? file->bytes : 0);
    uint64_t bytes = hr__image_source_bytes(info, view, file->bytes, false) - own;
    uint64_t drawn = hr__image_source_bytes(info, view, file->bytes, true) - own;
    struct hr_image_source part;
    uint64_t used;

    CHECK_OK(hr__image_source_decode(bench->decoder, &bench->arena, file->data,
                                     file->bytes, info, view, &part, NULL));
    used = bench->arena.used_bytes;
    if (used > bytes + ROUNDED_BYTES || bytes > 2 * used + ROUNDED_BYTES ||
        used > drawn + ROUNDED_BYTES)
        check_failed(__FILE__, __LINE__,
                     "format %d, %dx%d, mode %d, filter %d, want %d, orientation %d: "
                     "%dx%d at (%d, %d) to %dx%d took %llu bytes, not %llu or %llu",
                     (int)info->format, (int)info->width, (int)info->height,
                     (int)view->mode, view->resampled ? (int)view->filter : -1,
                     (int)view->want, view->orientation, (int)view->clip_width,
                     (int)view->clip_height, (int)view->clip_x, (int)view->clip_y,
                     (int)view->width, (int)view->height, (unsigned long long)used,
                     (unsigned long long)bytes, (unsigned long long)drawn);
    hr__arena_reset(&bench->arena);
}

static struct photo make_webp(struct bench *bench, int32_t width, int32_t height)
{
    struct hr_pixels pixels = make_picture(bench, width, height, 4);
    struct photo photo = {NULL};

    photo.bytes = WebPEncodeRGBA(pixels.data, width, height, (int)pixels.row_stride, 75,
                                 &photo.data);
    CHECK(photo.bytes > 0);
    CHECK_OK(hr__image_probe(photo.data, photo.bytes, &photo.info, NULL));
    free(pixels.data);
    return photo;
}

static struct photo make_png(struct bench *bench, int32_t width, int32_t height)
{
    struct hr_pixels pixels = make_picture(bench, width, height, 3);
    struct photo photo = {NULL};
    void *data;

    CHECK_OK(hr__image_encode_png(&pixels, &data, &photo.bytes, NULL));
    CHECK_OK(hr__image_probe(data, photo.bytes, &photo.info, NULL));
    photo.data = data;
    free(pixels.data);
    return photo;
}

static struct photo make_any(struct bench *bench, int kind, int32_t width, int32_t height)
{
    struct hr_jpeg_options options = {.sampling_x = 1 + kind % 2,
                                      .sampling_y = 1 + kind / 2 % 2,
                                      .progressive = kind == 4};

    if (kind == 6)
        return make_png(bench, width, height);
    return kind == 7 ? make_webp(bench, width, height)
                     : make_photo(bench, &options, width, height, kind == 5 ? 1 : 3);
}

TEST(the_memory_of_a_decode_is_known_from_the_header_and_the_view)
{
    uint64_t seed = check_seed();
    struct bench bench;

    bench_init(&bench);
    bench.state = (uint32_t)seed;
    for (int kind = 0; kind < 8; kind++) {
        struct photo file =
            make_any(&bench, kind, 700 + draw(&bench, 500), 500 + draw(&bench, 700));

        for (int i = 0; i < 12; i++) {
            struct hr_image_view view = draw_part(&bench, &file);

            check_bytes(&bench, &file, &view);
        }
        if (kind == 7)
            WebPFree(file.data);
        else
            hr__free(file.data);
    }
    bench_finish(&bench);
}

TEST(coefficients_are_held_where_they_come_in_many_scans)
{
    struct hr_jpeg_options options = {.sampling_x = 2, .sampling_y = 2};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, &options, 640, 480, 3);
    CHECK_EQ_INT(file.info.held_bytes, 0);
    CHECK(file.info.samples == 1.5);
    hr__free(file.data);
    options.progressive = true;
    file = make_photo(&bench, &options, 640, 480, 3);
    CHECK_EQ_INT(file.info.held_bytes, 640 * 480 * 3);
    hr__free(file.data);
    file = make_photo(&bench, NULL, 640, 480, 1);
    CHECK_EQ_INT(file.info.held_bytes, 0);
    CHECK(file.info.samples == 1);
    hr__free(file.data);
    bench_finish(&bench);
}
