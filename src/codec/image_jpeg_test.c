/*
 * codec/image_jpeg_test.c - JPEG: windows equal full decodes, and pixels are correct.
 */
#include "codec/jpeg_test_util.h"

#include <dirent.h>

/* Sampling factors by component that hr__image_encode_jpeg cannot write. */
struct layout {
    int channels; /* 1, 3 or 4 */
    J_COLOR_SPACE space;
    const char *factors; /* "22 11 11": h and v of each component */
    bool progressive;
    const uint8_t
        *flat; /* NULL, or fill with this pixel at quality 100 instead of a picture */
};

static void set_layout(struct jpeg_compress_struct *info, const void *user)
{
    const struct layout *layout = user;

    jpeg_set_colorspace(info, layout->space);
    jpeg_set_quality(info, layout->flat != NULL ? 100 : 85, TRUE);
    for (int i = 0; i < layout->channels; i++) {
        info->comp_info[i].h_samp_factor = layout->factors[3 * i] - '0';
        info->comp_info[i].v_samp_factor = layout->factors[3 * i + 1] - '0';
    }
    if (layout->progressive)
        jpeg_simple_progression(info);
}

static struct photo
make_layout(struct bench *bench, const struct layout *layout, int width, int height)
{
    struct hr_pixels pixels = make_picture(bench, width, height, layout->channels);
    int count = layout->flat != NULL ? width * height * layout->channels : 0;
    struct photo photo;

    for (int i = 0; i < count; i++)
        ((uint8_t *)pixels.data)[i] = layout->flat[i % layout->channels];
    photo = make_photo_with(&pixels, set_layout, layout);
    free(pixels.data);
    return photo;
}

static void
check_layout(struct bench *bench, const struct layout *layout, int rounds, int windows)
{
    int i;

    for (i = 0; i < rounds; i++) {
        int width = 1 + draw(bench, i % 2 == 0 ? 150 : 30);
        int height = 1 + draw(bench, i % 3 == 0 ? 150 : 40);
        struct photo file = make_layout(bench, layout, width, height);

        check_windows(bench, file.data, file.bytes, HR_CHANNELS_UNCHANGED, 4, windows);
        check_windows(bench, file.data, file.bytes, HR_CHANNELS_GRAY, 4, windows / 4);
        free(file.data);
    }
}

TEST(windows_equal_a_full_decode_in_all_samplings_and_scales)
{
    static const char *const factors[] = {"11 11 11", "21 11 11", "12 11 11", "22 11 11",
                                          "41 11 11"};
    struct bench bench;
    size_t i;

    bench_init(&bench);
    for (i = 0; i < 2 * sizeof factors / sizeof factors[0]; i++) {
        struct layout colour = {3, JCS_YCbCr, factors[i / 2], i % 2 == 1};

        check_layout(&bench, &colour, 10, 24);
    }
    bench_finish(&bench);
}

TEST(windows_equal_a_full_decode_in_gray_rgb_cmyk_and_ycck)
{
    static const struct layout layouts[] = {
        {1, JCS_GRAYSCALE, "11",          false},
        {1, JCS_GRAYSCALE, "22",          false},
        {3, JCS_RGB,       "11 11 11",    false},
        {4, JCS_CMYK,      "11 11 11 11", false},
        {4, JCS_YCCK,      "22 11 11 22", false},
        {4, JCS_YCCK,      "21 11 11 21", true },
    };
    struct bench bench;
    size_t i;

    bench_init(&bench);
    for (i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        check_layout(&bench, &layouts[i], 8, 16);
    bench_finish(&bench);
}

TEST(windows_equal_a_full_decode_in_samplings_that_libjpeg_crops_wrong)
{
    static const struct layout layouts[] = {
        {3, JCS_YCbCr, "22 14 11", false},
        {3, JCS_YCbCr, "42 11 11", false},
        {3, JCS_YCbCr, "11 14 41", true },
    };
    struct bench bench;
    size_t i;

    bench_init(&bench);
    for (i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        check_layout(&bench, &layouts[i], 6, 16);
    bench_finish(&bench);
}

/* An end marker after the first scans of a progressive file: libjpeg smooths the
 * blocks. */
TEST(windows_equal_a_full_decode_when_a_progressive_file_stops_early)
{
    struct layout layout = {3, JCS_YCbCr, "22 11 11", true};
    struct bench bench;
    struct photo file;
    size_t i, scans = 0;

    bench_init(&bench);
    file = make_layout(&bench, &layout, 123, 89);
    for (i = 0; i + 1 < file.bytes; i++)
        if (file.data[i] == 0xFF && file.data[i + 1] == 0xDA && ++scans == 3)
            break;
    while (i > 0 && !(file.data[i] == 0xFF && file.data[i + 1] == 0xC4))
        i--; /* include the tables of the third scan */
    file.data[i + 1] = 0xD9;
    check_windows(&bench, file.data, i + 2, HR_CHANNELS_RGB, 4, 60);
    free(file.data);
    bench_finish(&bench);
}

TEST(windows_of_photos_equal_a_full_decode)
{
    char path[1400], folder[1100];
    struct dirent *entry;
    struct bench bench;
    DIR *dir;
    int i;

    if (check_data_dir() == NULL)
        SKIP("no data");
    snprintf(folder, sizeof folder, "%s/images", check_data_dir());
    dir = opendir(folder);
    CHECK(dir != NULL);
    bench_init(&bench);
    for (i = 0; (entry = readdir(dir)) != NULL && i < 400; i++) {
        uint8_t *data = malloc(1 << 22);
        FILE *stream;
        size_t bytes;

        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (i % 40 == 0 && entry->d_name[0] != '.') {
            stream = fopen(path, "rb");
            CHECK(stream != NULL);
            bytes = fread(data, 1, 1 << 22, stream);
            fclose(stream);
            check_windows(&bench, data, bytes, HR_CHANNELS_RGB, 4, 4);
        }
        free(data);
    }
    closedir(dir);
    bench_finish(&bench);
}

TEST(a_window_says_where_it_starts_in_scaled_pixels)
{
    struct hr_jpeg_options options = {.sampling_x = 2, .sampling_y = 2};
    struct hr_image_request request;
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, &options, 101, 67, 3);
    CHECK_EQ_INT(file.info.format, HR_IMAGE_JPEG);
    CHECK_EQ_INT(file.info.width, 101);
    CHECK_EQ_INT(file.info.height, 67);
    CHECK_EQ_INT(file.info.channels, 3);
    CHECK_EQ_INT(file.info.bit_depth, 8);
    CHECK_EQ_INT(file.info.orientation, 1);
    request = (struct hr_image_request){
        .x = 35, .y = 21, .width = 66, .height = 9, .scale_log2 = 2};
    CHECK_OK(hr__image_decode(bench.decoder, &bench.arena, file.data, file.bytes,
                              &file.info, &request, &part, &error));
    CHECK_EQ_INT(part.x, 8);
    CHECK_EQ_INT(part.y, 5);
    CHECK_EQ_INT(part.pixels.width, 26 - 8);
    CHECK_EQ_INT(part.pixels.height, 8 - 5);
    CHECK_EQ_INT(part.scale_log2, 2);
    hr__free(file.data);
    bench_finish(&bench);
}

TEST(a_window_outside_the_image_is_refused)
{
    static const struct {
        int32_t x, y, width, height, scale_log2;
    } cases[] = {
        {0,  0,  9,         8,         0},
        {1,  0,  8,         8,         0},
        {0,  8,  1,         1,         0},
        {-1, 0,  1,         1,         0},
        {0,  0,  0,         1,         0},
        {7,  7,  INT32_MAX, INT32_MAX, 0},
        {0,  0,  8,         8,         4},
        {0,  -1, 8,         8,         1},
    };
    struct hr_image_part part = {.x = -7};
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    size_t i;

    bench_init(&bench);
    file = make_photo(&bench, NULL, 8, 8, 3);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hr_image_request request = {.x = cases[i].x,
                                           .y = cases[i].y,
                                           .width = cases[i].width,
                                           .height = cases[i].height,
                                           .scale_log2 = cases[i].scale_log2};

        CHECK_ERR(HR_ERR_ARGUMENT,
                  hr__image_decode(bench.decoder, &bench.arena, file.data, file.bytes,
                                   &file.info, &request, &part, &error));
    }
    CHECK_EQ_INT(part.x, -7);
    hr__free(file.data);
    bench_finish(&bench);
}

/* A hand-made file with one 8x8 gray block of value 128. */
TEST(a_known_block_has_known_pixels)
{
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    uint8_t file[400];
    size_t n = 0;
    static const uint8_t frame[] = {0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0},
                         scan[] = {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 0x3F, 0xFF, 0xD9};
    int table;

    bench_init(&bench);
    memcpy(file, "\xFF\xD8\xFF\xDB\0\x43\0", 7);
    memset(file + 7, 1, 64);
    n = 71;
    memcpy(file + n, frame, sizeof frame);
    n += sizeof frame;
    for (table = 0; table < 2; table++) { /* one 1-bit code: DC size 0, AC end */
        memset(file + n, 0, 22);
        memcpy(file + n, "\xFF\xC4\0\x14", 4);
        file[n + 4] = (uint8_t)(table << 4);
        file[n + 5] = 1;
        n += 22;
    }
    memcpy(file + n, scan, sizeof scan);
    n += sizeof scan;
    CHECK_OK(decode_whole(&bench, file, n, HR_CHANNELS_RGB, &part, &error));
    CHECK_EQ_INT(part.pixels.channels, 3);
    CHECK_EQ_INT(pixel_at(&part, 0, 0)[0], 128);
    CHECK_EQ_INT(pixel_at(&part, 7, 7)[2], 128);
    bench_finish(&bench);
}

/* Expected values are from Pillow 13's convert("RGB") and convert("L"), with and without
 * an Adobe marker. */
TEST(cmyk_becomes_rgb_as_in_pillow)
{
    static const uint8_t stored[] = {200, 100, 50, 220};
    struct layout layout = {4, JCS_CMYK, "11 11 11 11", false, stored};
    struct hr_image_part part, gray;
    struct hr_image_info info;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    const uint8_t *p;

    bench_init(&bench);
    file = make_layout(&bench, &layout, 9, 9);
    CHECK_OK(hr__image_probe(file.data, file.bytes, &info, &error));
    CHECK(info.cmyk);
    CHECK_EQ_INT(info.channels, 4);
    CHECK_OK(decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_UNCHANGED, &part,
                          &error));
    CHECK_OK(
        decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_GRAY, &gray, &error));
    CHECK_EQ_INT(part.pixels.channels, 3);
    CHECK_EQ_INT(gray.pixels.channels, 1);
    p = pixel_at(&part, 4, 4);
    CHECK_EQ_INT(p[0], 173);
    CHECK_EQ_INT(p[1], 86);
    CHECK_EQ_INT(p[2], 43);
    CHECK_EQ_INT(pixel_at(&gray, 4, 4)[0], 107);
    free(file.data);
    bench_finish(&bench);
}

TEST(gray_of_a_colour_photo_is_its_luma)
{
    struct hr_jpeg_options options = {.sampling_x = 2, .sampling_y = 2};
    struct hr_image_part gray, colour;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    int x, y, i, worst = 0;

    bench_init(&bench);
    file = make_photo(&bench, &options, 33, 21, 3);
    CHECK_OK(
        decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_GRAY, &gray, &error));
    CHECK_OK(
        decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &colour, &error));
    for (y = 0; y < 21; y++)
        for (x = 0; x < 33; x++) {
            const uint8_t *p = pixel_at(&colour, x, y);
            int luma = (19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 0x8000) >> 16;
            bool clipped = false;

            for (i = 0; i < 3; i++)
                clipped |= p[i] == 0 || p[i] == 255;
            if (!clipped && abs(luma - pixel_at(&gray, x, y)[0]) > worst)
                worst = abs(luma - pixel_at(&gray, x, y)[0]);
        }
    CHECK(worst <= 1);
    hr__free(file.data);
    bench_finish(&bench);
}

TEST(the_encoder_keeps_pixels_and_refuses_wrong_options)
{
    struct hr_jpeg_options options = {
        .quality = 100, .sampling_x = 1, .sampling_y = 1, .optimise = true};
    struct hr_image_part part;
    struct hr_error error = {0};
    struct hr_pixels pixels;
    struct bench bench;
    void *data = NULL;
    size_t bytes = 0;
    int i, worst = 0;

    bench_init(&bench);
    pixels = make_picture(&bench, 40, 30, 1);
    CHECK_OK(hr__image_encode_jpeg(&pixels, &options, &data, &bytes, &error));
    CHECK_OK(decode_whole(&bench, data, bytes, HR_CHANNELS_UNCHANGED, &part, &error));
    for (i = 0; i < 40 * 30; i++) {
        int off = abs(((uint8_t *)pixels.data)[i] - pixel_at(&part, i % 40, i / 40)[0]);

        worst = off > worst ? off : worst;
    }
    CHECK(worst <= 2);
    hr__free(data);
    data = NULL;
    options.quality = 0;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr__image_encode_jpeg(&pixels, &options, &data, &bytes, &error));
    options.quality = 90;
    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK_ERR(HR_ERR_MEMORY,
              hr__image_encode_jpeg(&pixels, &options, &data, &bytes, &error));
    hr__fault_arm(HR_FAULT_ALLOC, 0);
    CHECK(data == NULL);
    free(pixels.data);
    bench_finish(&bench);
}
