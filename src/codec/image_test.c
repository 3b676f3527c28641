/*
 * codec/image_test.c - format detection, EXIF orientation, WebP and PNM.
 */
#include "codec/image_priv.h"
#include "codec/image_test_util.h"

#include <webp/encode.h>

/* ---- format detection ---- */

TEST(formats_are_detected_by_their_first_bytes)
{
    CHECK_EQ_INT(hr__image_sniff("\xFF\xD8\xFF\xE0", 4), HR_IMAGE_JPEG);
    CHECK_EQ_INT(hr__image_sniff("\x89PNG\r\n\x1A\n", 8), HR_IMAGE_PNG);
    CHECK_EQ_INT(hr__image_sniff("RIFF\1\2\3\4WEBPVP8 ", 16), HR_IMAGE_WEBP);
    CHECK_EQ_INT(hr__image_sniff("RIFF\1\2\3\4WAVEfmt ", 16), HR_IMAGE_UNKNOWN);
    CHECK_EQ_INT(hr__image_sniff("P6\n1 1 255\n", 11), HR_IMAGE_PNM);
    CHECK_EQ_INT(hr__image_sniff("P1#", 3), HR_IMAGE_PNM);
    CHECK_EQ_INT(hr__image_sniff("P7\n", 3), HR_IMAGE_UNKNOWN);
    CHECK_EQ_INT(hr__image_sniff("\xFF\xD8", 2), HR_IMAGE_UNKNOWN);
    CHECK_EQ_INT(hr__image_sniff("", 0), HR_IMAGE_UNKNOWN);
    CHECK_EQ_STR(hr__image_format_name(HR_IMAGE_WEBP), "WebP");
}

TEST(a_file_of_another_kind_is_named)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *text;
    } files[] = {
        {"",                      0,  "empty file"             },
        {"\0\0\0\0\0\0\0\0",      8,  "all 8 bytes are zero"   },
        {"GIF89a..",              8,  "looks like GIF"         },
        {"BM......",              8,  "looks like BMP"         },
        {"II*\0....",             8,  "looks like TIFF"        },
        {"MM\0*....",             8,  "looks like TIFF"        },
        {"\0\0\0\x20"
         "ftypavif....", 16, "looks like AVIF"        },
        {"\0\0\0\x20"
         "ftypheic....", 16, "looks like HEIC"        },
        {"\n <!DOCTYPE html>",    17, "looks like an HTML page"},
        {"<HTML><head>",          12, "looks like an HTML page"},
        {"\x12\x34\x56",          3,  "starts with 12 34"      },
        {"\x12",                  1,  "starts with 12"         },
    };
    struct hr_image_info info;
    size_t i;

    for (i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct hr_error error = {0};

        CHECK_ERR(HR_ERR_UNSUPPORTED,
                  hr__image_probe(files[i].bytes, files[i].count, &info, &error));
        CHECK_HAS(error.message, files[i].text);
    }
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__image_probe("GIF89a", 6, &info, NULL));
}

/* ---- EXIF ---- */

static const uint8_t tiff_big[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, /* one entry */
                                   1,   18,  0, 3,  0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0};
static const uint8_t tiff_little[] = {
    'I',  'I', 42, 0, 10, 0, 0, 0, 9, 9,             /* gap */
    2,    0,   0,  1, 3,  0, 1, 0, 0, 0, 7, 0, 0, 0, /* another tag */
    0x12, 1,   3,  0, 1,  0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0};

TEST(orientation_is_read_in_both_byte_orders)
{
    uint8_t prefixed[6 + sizeof tiff_big];

    CHECK_EQ_INT(hr__exif_orientation(tiff_big, sizeof tiff_big), 8);
    CHECK_EQ_INT(hr__exif_orientation(tiff_little, sizeof tiff_little), 3);
    memcpy(prefixed, "Exif\0\0", 6);
    memcpy(prefixed + 6, tiff_big, sizeof tiff_big);
    CHECK_EQ_INT(hr__exif_orientation_prefixed(prefixed, sizeof prefixed), 8);
    CHECK_EQ_INT(hr__exif_orientation_prefixed(tiff_big, sizeof tiff_big), 8);
}

TEST(malformed_exif_means_upright)
{
    static const uint8_t places[] = {0, 2, 4, 7, 10, 13, 15, 19};
    uint8_t tiff[sizeof tiff_big];
    size_t i;

    for (i = 0; i < sizeof places; i++) {
        memcpy(tiff, tiff_big, sizeof tiff);
        tiff[places[i]] = (uint8_t)(tiff[places[i]] + 0x41);
        CHECK_EQ_INT(hr__exif_orientation(tiff, sizeof tiff), 1);
    }
    memcpy(tiff, tiff_big, sizeof tiff);
    tiff[19] = 0;
    CHECK_EQ_INT(hr__exif_orientation(tiff, sizeof tiff), 1);
    for (i = 0; i < 22; i++) { /* the entry ends at byte 22 */
        uint8_t *copy = malloc(i + 1);

        CHECK(copy != NULL);
        memcpy(copy, tiff_big, i);
        CHECK_EQ_INT(hr__exif_orientation(copy, i), 1);
        free(copy);
    }
}

/* ---- WebP ---- */

static size_t encode_webp(struct bench *bench, int width, int height, int channels,
                          bool lossless, uint8_t **ret_data)
{
    struct hr_pixels pixels = make_picture(bench, width, height, channels);
    int stride = (int)pixels.row_stride;
    size_t bytes;

    if (lossless && channels == 3)
        bytes = WebPEncodeLosslessRGB(pixels.data, width, height, stride, ret_data);
    else if (lossless)
        bytes = WebPEncodeLosslessRGBA(pixels.data, width, height, stride, ret_data);
    else if (channels == 3)
        bytes = WebPEncodeRGB(pixels.data, width, height, stride, 75, ret_data);
    else
        bytes = WebPEncodeRGBA(pixels.data, width, height, stride, 75, ret_data);
    free(pixels.data);
    CHECK(bytes > 0);
    return bytes;
}

TEST(webp_windows_equal_a_full_decode)
{
    struct bench bench;
    int i;

    bench_init(&bench);
    for (i = 0; i < 16; i++) {
        uint8_t *data = NULL;
        int width = 1 + draw(&bench, 90), height = 1 + draw(&bench, 90);
        size_t bytes = encode_webp(&bench, width, height, 3 + i % 2, i % 4 >= 2, &data);
        struct hr_image_info info;

        CHECK_OK(hr__image_probe(data, bytes, &info, NULL));
        CHECK_EQ_INT(info.width, width);
        CHECK_EQ_INT(info.channels, 3 + i % 2);
        check_windows(&bench, data, bytes, HR_CHANNELS_RGB, 1, 40);
        check_windows(&bench, data, bytes, HR_CHANNELS_GRAY, 1, 10);
        check_windows(&bench, data, bytes, HR_CHANNELS_UNCHANGED, 1, 40);
        WebPFree(data);
    }
    bench_finish(&bench);
}

TEST(every_prefix_of_a_webp_is_refused_or_right)
{
    struct bench bench;
    int i;

    bench_init(&bench);
    for (i = 0; i < 3; i++) {
        uint8_t *data = NULL;
        size_t bytes = encode_webp(&bench, 21, 17, 3 + i % 2, i == 2, &data);

        check_prefixes(&bench, data, bytes);
        check_allocations(data, bytes);
        WebPFree(data);
    }
    bench_finish(&bench);
}

/* A RIFF with VP8X (EXIF flag), a lossless image and an EXIF chunk. */
TEST(webp_orientation_comes_from_its_exif_chunk)
{
    struct hr_image_info info;
    struct bench bench;
    uint8_t file[4096], *data = NULL;
    size_t bytes, n;

    bench_init(&bench);
    bytes = encode_webp(&bench, 9, 5, 3, true, &data);
    memcpy(file, "RIFF\0\0\0\0WEBPVP8X\x0A\0\0\0\x08\0\0\0\x08\0\0\x04\0\0", 30);
    CHECK(bytes < 3000);
    memcpy(file + 30, data + 12, bytes - 12);
    n = 30 + bytes - 12;
    memcpy(file + n, "EXIF\0\0\0\0", 8);
    file[n + 4] = sizeof tiff_big;
    memcpy(file + n + 8, tiff_big, sizeof tiff_big);
    n += 8 + sizeof tiff_big;
    file[4] = (uint8_t)(n - 8);
    file[5] = (uint8_t)((n - 8) >> 8);
    CHECK_OK(hr__image_probe(file, n, &info, NULL));
    CHECK_EQ_INT(info.orientation, 8);
    file[20] |= 2; /* the animation flag */
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__image_probe(file, n, &info, NULL));
    WebPFree(data);
    bench_finish(&bench);
}

/* ---- PNM ---- */

#define CHECK_PNM(bench, text, channels, expected)                                       \
    check_pnm(bench, text, sizeof(text) - 1, channels, expected, sizeof(expected) - 1)

static void check_pnm(struct bench *bench, const char *text, size_t bytes,
                      enum hr_image_channels channels, const char *expected, size_t count)
{
    struct hr_image_part part;
    struct hr_error error = {0};

    CHECK_OK(decode_whole(bench, text, bytes, channels, &part, &error));
    CHECK_EQ_INT((long long)part.pixels.width * part.pixels.height * part.pixels.channels,
                 count);
    CHECK_BYTES(part.pixels.data, expected, count);
}

TEST(pnm_of_all_six_kinds_is_read)
{
    struct bench bench;
    enum hr_image_channels same = HR_CHANNELS_UNCHANGED;

    bench_init(&bench);
    CHECK_PNM(&bench, "P1\n# a\n3 2\n101\n0 1 0", same, "\0\xFF\0\xFF\0\xFF");
    CHECK_PNM(&bench, "P2 2 1 # b\n10\n 0 5\n", same, "\0\x80");
    CHECK_PNM(&bench, "P3\n1 1\n255\n1 2 3", same, "\1\2\3");
    CHECK_PNM(&bench, "P4\n9 1\n\xAA\x80", same, "\0\xFF\0\xFF\0\xFF\0\xFF\0");
    CHECK_PNM(&bench, "P5\n2 1\n65535\n\x12\x34\xFF\xFF", same, "\x12\xFF");
    CHECK_PNM(&bench, "P6\n1 1\n15\n\0\7\17", same, "\0\x77\xFF");
    CHECK_PNM(&bench, "P5\n1 1\n255\n\x40", HR_CHANNELS_RGB, "\x40\x40\x40");
    CHECK_PNM(&bench, "P6\n1 1\n255\n\x40\x40\x40", HR_CHANNELS_GRAY, "\x40");
    bench_finish(&bench);
}

TEST(pnm_windows_prefixes_and_allocations)
{
    static const char plain[] = "P3\n3 3\n9\n1 2 3 4 5 6 7 8 9  1 2 3 4 5 6 7 8 9  9 8 7 "
                                "6 5 4 3 2 1\n",
                      raw[] = "P4\n10 3\n\x12\x40\x56\x80\x9A\xC0";
    struct bench bench;

    bench_init(&bench);
    check_windows(&bench, plain, sizeof plain - 1, HR_CHANNELS_UNCHANGED, 1, 30);
    check_windows(&bench, plain, sizeof plain - 1, HR_CHANNELS_GRAY, 1, 30);
    check_windows(&bench, raw, sizeof raw - 1, HR_CHANNELS_RGB, 1, 30);
    check_prefixes(&bench, (const uint8_t *)plain, sizeof plain - 1);
    check_prefixes(&bench, (const uint8_t *)raw, sizeof raw - 1);
    bench_finish(&bench);
}

TEST(malformed_pnm_is_refused)
{
    static const char *const files[] = {
        "P5\n0 1\n255\nx",
        "P5\n1 1\n0\nx",
        "P5\n1 1\n65536\nxx",
        "P5\n99999999999 1\n255\n",
        "P5\n1 -1\n255\nx",
        "P2\n1 1\n9\n10",
        "P5\n1 1\n9\nx",
        "P5\n30000 300\n255\nx",
        "P1\n1 1\n2",
        "P6\n1 1\n255",
        "P6 #",
    };
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    size_t i;

    bench_init(&bench);
    for (i = 0; i < sizeof files / sizeof files[0]; i++) {
        enum hr_err code = decode_whole(&bench, files[i], strlen(files[i]),
                                        HR_CHANNELS_RGB, &part, &error);

        CHECK(code == HR_ERR_FORMAT || code == HR_ERR_LIMIT);
    }
    bench_finish(&bench);
}

TEST(single_pixels_decode_in_all_formats)
{
    struct hr_jpeg_options options = {.quality = 100, .sampling_x = 2, .sampling_y = 2};
    struct hr_image_part part;
    struct hr_pixels pixels;
    struct bench bench;
    void *jpeg, *png;
    uint8_t *webp;
    size_t jpeg_bytes, png_bytes, webp_bytes;

    bench_init(&bench);
    pixels = make_picture(&bench, 1, 1, 3);
    CHECK_OK(hr__image_encode_jpeg(&pixels, &options, &jpeg, &jpeg_bytes, NULL));
    CHECK_OK(hr__image_encode_png(&pixels, &png, &png_bytes, NULL));
    webp_bytes = encode_webp(&bench, 1, 1, 3, false, &webp);
    CHECK_OK(decode_whole(&bench, jpeg, jpeg_bytes, HR_CHANNELS_RGB, &part, NULL));
    CHECK_OK(decode_whole(&bench, png, png_bytes, HR_CHANNELS_RGB, &part, NULL));
    CHECK_BYTES(part.pixels.data, pixels.data, 3);
    CHECK_OK(decode_whole(&bench, webp, webp_bytes, HR_CHANNELS_RGB, &part, NULL));
    CHECK_EQ_INT(part.pixels.width, 1);
    hr__free(jpeg);
    hr__free(png);
    WebPFree(webp);
    free(pixels.data);
    bench_finish(&bench);
}
