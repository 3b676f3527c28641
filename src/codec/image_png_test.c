/*
 * codec/image_png_test.c - PNG: windows equal full decodes in all kinds, damage is
 * detected, and encoded files read back.
 */
#include "codec/image_test_util.h"

#include <png.h>

struct sink {
    uint8_t data[65536];
    size_t bytes;
};

static void sink_put(png_structp png, png_bytep data, size_t bytes)
{
    struct sink *sink = png_get_io_ptr(png);

    CHECK(sizeof sink->data - sink->bytes >= bytes);
    memcpy(sink->data + sink->bytes, data, bytes);
    sink->bytes += bytes;
}

static void sink_flush(png_structp png)
{
    (void)png;
}

struct kind {
    int colour, depth, interlace;
    bool transparent;
};

/* Writes a PNG of any kind with rows of random samples. */
static void write_kind(struct bench *bench, struct sink *sink, struct kind kind,
                       int width, int height)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_color palette[256];
    png_byte alpha[256], *rows[64], bytes[64 * 512];
    png_color_16 key = {.gray = 1};
    int i;

    for (i = 0; i < 256; i++) {
        palette[i] =
            (png_color){(png_byte)(3 * i), (png_byte)(255 - i), (png_byte)(i / 2)};
        alpha[i] = (png_byte)i;
    }
    for (i = 0; i < (int)sizeof bytes; i++)
        bytes[i] = (png_byte)draw(bench, 256);
    for (i = 0; i < 64; i++)
        rows[i] = bytes + 512 * i;
    sink->bytes = 0;
    png_set_write_fn(png, sink, sink_put, sink_flush);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, kind.depth,
                 kind.colour, kind.interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (kind.colour == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 1 << kind.depth);
    if (kind.transparent)
        png_set_tRNS(png, info, alpha,
                     kind.colour == PNG_COLOR_TYPE_PALETTE ? 1 << kind.depth : 0, &key);
    png_write_info(png, info);
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

static const struct kind kinds[] = {
    {PNG_COLOR_TYPE_GRAY,       1,  0, false},
    {PNG_COLOR_TYPE_GRAY,       2,  1, false},
    {PNG_COLOR_TYPE_GRAY,       4,  0, true },
    {PNG_COLOR_TYPE_GRAY,       8,  0, false},
    {PNG_COLOR_TYPE_GRAY,       16, 1, true },
    {PNG_COLOR_TYPE_PALETTE,    1,  1, false},
    {PNG_COLOR_TYPE_PALETTE,    2,  0, false},
    {PNG_COLOR_TYPE_PALETTE,    4,  0, true },
    {PNG_COLOR_TYPE_PALETTE,    8,  1, true },
    {PNG_COLOR_TYPE_RGB,        8,  0, false},
    {PNG_COLOR_TYPE_RGB,        8,  1, true },
    {PNG_COLOR_TYPE_RGB,        16, 0, false},
    {PNG_COLOR_TYPE_GRAY_ALPHA, 8,  1, false},
    {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 0, false},
    {PNG_COLOR_TYPE_RGB_ALPHA,  8,  0, false},
    {PNG_COLOR_TYPE_RGB_ALPHA,  16, 1, false},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

TEST(png_windows_equal_a_full_decode_in_all_kinds)
{
    static struct sink sink;
    struct hr_image_info info;
    struct bench bench;
    size_t i;
    int channels;

    bench_init(&bench);
    for (i = 0; i < KINDS; i++) {
        bool colour = (kinds[i].colour & PNG_COLOR_MASK_COLOR) != 0;
        bool alpha = (kinds[i].colour & PNG_COLOR_MASK_ALPHA) != 0;

        write_kind(&bench, &sink, kinds[i], 1 + draw(&bench, 60), 1 + draw(&bench, 60));
        CHECK_OK(hr__image_probe(sink.data, sink.bytes, &info, NULL));
        CHECK_EQ_INT(info.bit_depth, kinds[i].depth);
        CHECK_EQ_INT(info.channels, (colour ? 3 : 1) + (alpha || kinds[i].transparent));
        for (channels = HR_CHANNELS_RGB; channels <= HR_CHANNELS_UNCHANGED; channels++)
            check_windows(&bench, sink.data, sink.bytes, (enum hr_image_channels)channels,
                          1, 12);
    }
    bench_finish(&bench);
}

/* The samples as they lie in the file: write_kind() writes them packed. */
TEST(labels_are_the_numbers_in_the_file)
{
    static struct sink sink;
    struct hr_image_info info;
    struct hr_image_part part, whole;
    struct hr_error error = {0};
    struct bench bench;

    bench_init(&bench);
    for (size_t i = 0; i < KINDS; i++) {
        bool palette = kinds[i].colour == PNG_COLOR_TYPE_PALETTE;
        bool labels = palette || (kinds[i].colour == PNG_COLOR_TYPE_GRAY &&
                                  kinds[i].depth <= 8 && !kinds[i].transparent);

        write_kind(&bench, &sink, kinds[i], 1 + draw(&bench, 60), 1 + draw(&bench, 60));
        CHECK_OK(hr__image_probe(sink.data, sink.bytes, &info, NULL));
        CHECK_EQ_INT(info.palette, palette);
        if (!labels) {
            CHECK_ERR(HR_ERR_UNSUPPORTED,
                      decode_whole(&bench, sink.data, sink.bytes, HR_CHANNELS_LABELS,
                                   &part, &error));
            CHECK_HAS(error.message, kinds[i].depth == 16 && info.channels == 1
                                         ? "has 16 bits per pixel"
                                         : "has colours or transparency");
            continue;
        }
        check_windows(&bench, sink.data, sink.bytes, HR_CHANNELS_LABELS, 1, 12);
        CHECK_OK(decode_whole(&bench, sink.data, sink.bytes, HR_CHANNELS_LABELS, &part,
                              &error));
        CHECK_OK(
            decode_whole(&bench, sink.data, sink.bytes, HR_CHANNELS_RGB, &whole, &error));
        CHECK_EQ_INT(part.pixels.channels, 1);
        for (int32_t y = 0; y < info.height; y++)
            for (int32_t x = 0; x < info.width; x++) {
                const uint8_t *label =
                    (const uint8_t *)part.pixels.data + y * part.pixels.row_stride + x;
                const uint8_t *colour = (const uint8_t *)whole.pixels.data +
                                        y * whole.pixels.row_stride + 3 * x;
                int step = 255 / ((1 << kinds[i].depth) - 1);

                CHECK(*label < 1 << kinds[i].depth);
                CHECK_EQ_INT(colour[0], palette ? (3 * *label) % 256 : *label * step);
                if (palette)
                    CHECK_EQ_INT(colour[1], 255 - *label);
            }
    }
    bench_finish(&bench);
}

/* One row, 16-bit gray and alpha: 0x1234 0xFFFE, 0x80FF 0x0001. */
TEST(sixteen_bits_are_cut_and_alpha_is_dropped)
{
    static const uint8_t deep[] = {0x12, 0x34, 0xFF, 0xFE, 0x80, 0xFF, 0x00, 0x01};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    static struct sink sink;
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;

    bench_init(&bench);
    sink.bytes = 0;
    png_set_write_fn(png, &sink, sink_put, sink_flush);
    png_set_IHDR(png, info, 2, 1, 16, PNG_COLOR_TYPE_GRAY_ALPHA, 0, 0, 0);
    png_write_info(png, info);
    png_write_row(png, deep);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    CHECK_OK(decode_whole(&bench, sink.data, sink.bytes, HR_CHANNELS_UNCHANGED, &part,
                          &error));
    CHECK_EQ_INT(part.pixels.channels, 2);
    CHECK_BYTES(part.pixels.data, "\x12\xFF\x80\x00", 4);
    CHECK_OK(decode_whole(&bench, sink.data, sink.bytes, HR_CHANNELS_RGB, &part, &error));
    CHECK_BYTES(part.pixels.data, "\x12\x12\x12\x80\x80\x80", 6);
    CHECK_OK(
        decode_whole(&bench, sink.data, sink.bytes, HR_CHANNELS_GRAY, &part, &error));
    CHECK_BYTES(part.pixels.data, "\x12\x80", 2);
    bench_finish(&bench);
}

TEST(png_round_trips_in_one_to_four_channels)
{
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    int32_t channels, y;

    bench_init(&bench);
    for (channels = 1; channels <= 4; channels++) {
        struct hr_pixels pixels = make_picture(&bench, 150, 90, channels);
        void *data = NULL;
        size_t bytes;

        CHECK_OK(hr__image_encode_png(&pixels, &data, &bytes, &error));
        CHECK_OK(decode_whole(&bench, data, bytes, HR_CHANNELS_UNCHANGED, &part, &error));
        CHECK_EQ_INT(part.pixels.channels, channels);
        for (y = 0; y < 90; y++)
            CHECK_BYTES(pixel_at(&part, 0, y),
                        (uint8_t *)pixels.data + y * pixels.row_stride,
                        (size_t)pixels.row_stride);
        hr__free(data);
        free(pixels.data);
    }
    bench_finish(&bench);
}

TEST(a_wrong_bit_anywhere_in_a_png_is_detected)
{
    static struct sink sink;
    struct kind kind = {PNG_COLOR_TYPE_PALETTE, 4, 0, true};
    struct hr_image_request request;
    struct hr_image_part part;
    struct hr_image_info info;
    struct bench bench;
    size_t i;

    bench_init(&bench);
    write_kind(&bench, &sink, kind, 13, 9);
    for (i = 0; i < sink.bytes; i++) {
        enum hr_err code;

        sink.data[i] ^= 0x10;
        code = hr__image_probe(sink.data, sink.bytes, &info, NULL);
        if (code == HR_OK) {
            request = whole(&info);
            request.pixels_max = 10000;
            request.height = 1;
            code = hr__image_decode(bench.decoder, &bench.arena, sink.data, sink.bytes,
                                    &info, &request, &part, NULL);
        }
        CHECK(code != HR_OK);
        sink.data[i] ^= 0x10;
    }
    bench_finish(&bench);
}

TEST(every_prefix_of_a_png_is_refused)
{
    static struct sink sink;
    struct bench bench;
    size_t i;

    bench_init(&bench);
    for (i = 0; i < KINDS; i += 5) {
        write_kind(&bench, &sink, kinds[i], 7, 5);
        check_prefixes(&bench, sink.data, sink.bytes);
        check_allocations(sink.data, sink.bytes);
    }
    bench_finish(&bench);
}

TEST(a_png_bomb_is_refused_before_memory_is_allocated)
{
    static struct sink sink;
    struct kind kind = {PNG_COLOR_TYPE_RGB, 8, 0, false};
    struct hr_image_request request;
    struct hr_image_part part;
    struct hr_image_info info;
    struct hr_error error = {0};
    struct bench bench;
    uint32_t crc;
    int i, k;

    bench_init(&bench);
    write_kind(&bench, &sink, kind, 4, 4);
    sink.data[17] = sink.data[21] = 1; /* 65540 x 65540 */
    for (crc = ~0U, i = 12; i < 29; i++)
        for (crc ^= sink.data[i], k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
    for (i = 0; i < 4; i++)
        sink.data[29 + i] = (uint8_t)(~crc >> (24 - 8 * i));
    CHECK_OK(hr__image_probe(sink.data, sink.bytes, &info, &error));
    CHECK_EQ_INT(info.width, 65540);
    request = whole(&info);
    CHECK_ERR(HR_ERR_LIMIT, hr__image_decode(bench.decoder, &bench.arena, sink.data,
                                             sink.bytes, &info, &request, &part, &error));
    request.pixels_max = UINT64_MAX;
    CHECK_ERR(HR_ERR_FORMAT,
              hr__image_decode(bench.decoder, &bench.arena, sink.data, sink.bytes, &info,
                               &request, &part, &error));
    CHECK_HAS(error.message, "too short for its dimensions");
    bench_finish(&bench);
}

TEST(the_png_encoder_survives_failing_allocations)
{
    struct bench bench;
    struct hr_pixels pixels;
    enum hr_err code = HR_ERR_MEMORY;
    uint64_t nth;

    bench_init(&bench);
    pixels = make_picture(&bench, 9, 9, 3);
    for (nth = 1; code != HR_OK; nth++) {
        void *data = NULL;
        size_t bytes;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr__image_encode_png(&pixels, &data, &bytes, NULL);
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        CHECK(code == HR_OK || (code == HR_ERR_MEMORY && data == NULL));
        hr__free(data);
    }
    CHECK(nth > 3);
    pixels.channels = 5;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__image_encode_png(&pixels, NULL, NULL, NULL));
    free(pixels.data);
    bench_finish(&bench);
}
