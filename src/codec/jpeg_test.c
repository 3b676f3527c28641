/*
 * codec/jpeg_test.c - our JPEG decoder against libjpeg-turbo: equal bytes or declined.
 */
#include "codec/image_test_util.h"
#include "codec/jpeg.h"
#include "core/cpu.h"
#include "core/file.h"

#include <dirent.h>

static const enum hr_isa isas[] = {HR_ISA_C, HR_ISA_AVX2, HR_ISA_AVX512};
#define ISAS 3

/* Decode one window on both paths. False: ours declined. */
static bool
compare(struct bench *bench, const void *data, size_t bytes,
        const struct hr_image_info *info, const struct hr_image_request *request)
{
    struct hr_image_part own, theirs;
    struct hr_error error = {0};
    enum hr_err err;
    int32_t y;

    hr__jpeg_path_force(HR_JPEG_OWN);
    err = hr__image_decode(bench->decoder, &bench->arena, data, bytes, info, request,
                           &own, &error);
    hr__jpeg_path_force(HR_JPEG_LIBJPEG);
    if (err == HR_ERR_UNSUPPORTED) {
        hr__arena_reset(&bench->arena);
        return false;
    }
    CHECK_OK(err);
    CHECK_OK(hr__image_decode(bench->decoder, &bench->arena, data, bytes, info, request,
                              &theirs, &error));
    hr__jpeg_path_force(HR_JPEG_AUTO);
    CHECK_EQ_INT(own.x, theirs.x);
    CHECK_EQ_INT(own.y, theirs.y);
    CHECK_EQ_INT(own.pixels.width, theirs.pixels.width);
    CHECK_EQ_INT(own.pixels.height, theirs.pixels.height);
    CHECK_EQ_INT(own.pixels.channels, theirs.pixels.channels);
    for (y = 0; y < own.pixels.height; y++)
        CHECK_BYTES((uint8_t *)own.pixels.data + y * own.pixels.row_stride,
                    (uint8_t *)theirs.pixels.data + y * theirs.pixels.row_stride,
                    (size_t)(own.pixels.width * own.pixels.channels));
    hr__arena_reset(&bench->arena);
    return true;
}

/* All of it and `count` random windows, at a scale, with each kind of channels in turn.
 */
static void compare_windows(struct bench *bench, const void *data, size_t bytes,
                            int scale_log2, int count)
{
    struct hr_image_info info;
    struct hr_error error = {0};
    int i;

    CHECK_OK(hr__image_probe(data, bytes, &info, &error));
    for (i = 0; i <= count; i++) {
        struct hr_image_request request = whole(&info);
        int32_t small = draw(bench, 3) == 0 ? 9 : INT32_MAX;

        request.scale_log2 = scale_log2;
        request.channels = i % 4 == 3 ? HR_CHANNELS_GRAY : HR_CHANNELS_RGB;
        if (i > 0) {
            request.x = draw(bench, info.width);
            request.y = draw(bench, info.height);
            request.width = 1 + draw(bench, info.width - request.x) % small;
            request.height = 1 + draw(bench, info.height - request.y) % small;
        }
        CHECK(compare(bench, data, bytes, &info, &request));
    }
}

static void
compare_made(struct bench *bench, int32_t width, int32_t height, int32_t channels,
             const struct hr_jpeg_options *options, int windows)
{
    struct hr_pixels pixels = make_picture(bench, width, height, channels);
    struct hr_error error = {0};
    void *data = NULL;
    size_t bytes;
    int k;

    CHECK_OK(hr__image_encode_jpeg(&pixels, options, &data, &bytes, &error));
    for (k = 0; k < 4; k++)
        compare_windows(bench, data, bytes, k, windows);
    hr__free(data);
    free(pixels.data);
}

TEST(windows_equal_libjpeg_in_all_samplings_scales_and_instruction_sets)
{
    struct bench bench;
    int isa, h, v, i;

    bench_init(&bench);
    for (isa = 0; isa < ISAS; isa++) {
        hr__isa_limit(isas[isa]);
        for (h = 1; h <= 2; h++)
            for (v = 1; v <= 2; v++)
                for (i = 0; i < 12; i++) {
                    struct hr_jpeg_options options = {
                        .quality = 1 + draw(&bench, 100),
                        .sampling_x = h,
                        .sampling_y = v,
                        .optimise = i % 2 == 1,
                        .restart_rows = i % 3 == 2 ? 1 + i % 2 : 0,
                    };
                    int32_t width = 1 + draw(&bench, i % 4 == 0 ? 400 : 60);
                    int32_t height = 1 + draw(&bench, i % 4 == 1 ? 200 : 50);

                    compare_made(&bench, width, height, i % 6 == 5 ? 1 : 3, &options, 9);
                }
    }
    hr__isa_limit(HR_ISA_AVX512);
    bench_finish(&bench);
}

TEST(small_pictures_of_every_size_equal_libjpeg)
{
    struct hr_jpeg_options options = {.quality = 90};
    struct bench bench;
    int32_t width, height;

    bench_init(&bench);
    for (width = 1; width <= 18; width++)
        for (height = 1; height <= 18; height++) {
            options.sampling_x = 1 + (width + height) % 2;
            options.sampling_y = 1 + (width + height) / 2 % 2;
            compare_made(&bench, width, height, 3, &options, 2);
        }
    bench_finish(&bench);
}

TEST(every_quality_equals_libjpeg)
{
    struct bench bench;
    int quality;

    bench_init(&bench);
    for (quality = 1; quality <= 100; quality++) {
        struct hr_jpeg_options options = {.quality = quality,
                                          .sampling_x = 1 + quality % 2,
                                          .sampling_y = 1 + quality / 2 % 2,
                                          .optimise = quality % 3 == 0};

        compare_made(&bench, 97, 65, 3, &options, 1);
    }
    bench_finish(&bench);
}

/* HEADRACE_JPEG_ALL=1 takes every photo instead of every tenth. */
TEST(windows_of_photos_equal_libjpeg)
{
    const char *dir_name = check_data_dir();
    int step = getenv("HEADRACE_JPEG_ALL") != NULL ? 1 : 10, i = 0;
    char path[1400], folder[1100];
    struct dirent *entry;
    struct bench bench;
    DIR *dir;

    if (dir_name == NULL)
        SKIP("no data");
    snprintf(folder, sizeof folder, "%s/images", dir_name);
    dir = opendir(folder);
    CHECK(dir != NULL);
    bench_init(&bench);
    while ((entry = readdir(dir)) != NULL) {
        struct hr_error error = {0};
        char *data;
        size_t bytes;
        int k;

        if (entry->d_name[0] == '.' || i++ % step != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        CHECK_OK(hr__file_read(path, 1 << 24, &data, &bytes, &error));
        for (k = 0; k < 4; k++)
            compare_windows(&bench, data, bytes, k, 5);
        hr__free(data);
    }
    closedir(dir);
    bench_finish(&bench);
}
