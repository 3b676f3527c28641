/*
 * codec/jpeg_test.c - our JPEG decoder against libjpeg-turbo: equal bytes or declined.
 */
#include "codec/jpeg_test_util.h"
#include "core/file.h"

#include <dirent.h>

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
    for (isa = 0; isa < TEST_ISAS; isa++) {
        hr__isa_limit(test_isas[isa]);
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

TEST(planes_equal_those_of_libjpeg)
{
    struct bench bench;
    int i, k;

    bench_init(&bench);
    for (i = 0; i < 24; i++) {
        struct hr_jpeg_options options = {.quality = 1 + draw(&bench, 100),
                                          .sampling_x = 1 + i % 2,
                                          .sampling_y = 1 + i / 2 % 2};
        int32_t width = 1 + draw(&bench, i % 4 == 0 ? 400 : 60);
        struct hr_pixels pixels =
            make_picture(&bench, width, 1 + draw(&bench, 90), i % 8 == 7 ? 1 : 3);
        struct hr_error error = {0};
        void *data = NULL;
        size_t bytes;

        CHECK_OK(hr__image_encode_jpeg(&pixels, &options, &data, &bytes, &error));
        for (k = 0; k < 4; k++)
            compare_planes(&bench, data, bytes, k, 5);
        hr__free(data);
        free(pixels.data);
    }
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

/* A generated file, and our decoder's result for all of it: HR_OK or
 * HR_ERR_UNSUPPORTED. */
struct made {
    uint8_t *data;
    size_t bytes;
};

static struct made make(struct bench *bench, struct hr_jpeg_options options)
{
    struct hr_pixels pixels = make_picture(bench, 70, 50, 3);
    struct hr_error error = {0};
    struct made made;
    void *data = NULL;

    CHECK_OK(hr__image_encode_jpeg(&pixels, &options, &data, &made.bytes, &error));
    free(pixels.data);
    made.data = data;
    return made;
}

static enum hr_err answer(struct bench *bench, const struct made *made)
{
    struct hr_image_part part;
    struct hr_error error = {0};
    enum hr_err err;

    hr__jpeg_path_force(HR_JPEG_OWN);
    err = decode_whole(bench, made->data, made->bytes, HR_CHANNELS_RGB, &part, &error);
    hr__jpeg_path_force(HR_JPEG_AUTO);
    hr__arena_reset(&bench->arena);
    return err;
}

static size_t marker_at(const struct made *made, int marker)
{
    size_t i;

    for (i = 0; i + 1 < made->bytes; i++)
        if (made->data[i] == 0xFF && made->data[i + 1] == marker)
            return i;
    CHECK(false);
    return 0;
}

TEST(odd_files_are_declined_and_good_ones_are_not)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 2, .sampling_y = 2},
                           restarts = options, progressive = options;
    struct bench bench;
    struct made made;
    size_t at;

    restarts.restart_rows = 1;
    progressive.progressive = true;
    bench_init(&bench);
    made = make(&bench, options);
    CHECK_OK(answer(&bench, &made));
    made.bytes -= 2; /* no end marker */
    CHECK_ERR(HR_ERR_UNSUPPORTED, answer(&bench, &made));
    made.bytes -= 300;
    memcpy(made.data + made.bytes - 2, "\xFF\xD9", 2); /* ends early */
    CHECK_ERR(HR_ERR_UNSUPPORTED, answer(&bench, &made));
    hr__free(made.data);

    made = make(&bench, options);
    at = marker_at(&made, 0xE0);
    made.data[at + 1] = 0xE5; /* no JFIF marker: the ids decide */
    CHECK_OK(answer(&bench, &made));
    at = marker_at(&made, 0xC0);
    made.data[at + 10] = 'R';
    made.data[at + 13] = 'G';
    made.data[at + 16] = 'B';
    at = marker_at(&made, 0xDA);
    made.data[at + 5] = 'R';
    made.data[at + 7] = 'G';
    made.data[at + 9] = 'B';
    CHECK_ERR(HR_ERR_UNSUPPORTED, answer(&bench, &made));
    at = marker_at(&made, 0xE5);
    made.data[at + 1] = 0xE0;
    CHECK_OK(answer(&bench, &made)); /* JFIF means YCbCr, whatever the ids */
    made.data[at + 1] = 0xEE;
    memcpy(made.data + at + 4, "Adobe\0d\0\0\0\0", 11);
    made.data[at + 15] = 0; /* RGB */
    CHECK_ERR(HR_ERR_UNSUPPORTED, answer(&bench, &made));
    made.data[at + 15] = 1;
    CHECK_OK(answer(&bench, &made));
    hr__free(made.data);

    made = make(&bench, restarts);
    CHECK_OK(answer(&bench, &made));
    at = marker_at(&made, 0xD1);
    made.data[at + 1] = 0xD3;
    CHECK_ERR(HR_ERR_UNSUPPORTED, answer(&bench, &made));
    hr__free(made.data);

    made = make(&bench, progressive);
    CHECK_ERR(HR_ERR_UNSUPPORTED, answer(&bench, &made));
    hr__free(made.data);
    bench_finish(&bench);
}

/* A table that claims four codes of 2 bits and so leaves no code for longer ones. */
TEST(an_overfull_huffman_table_is_declined)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 1, .sampling_y = 1};
    struct bench bench;
    struct made made;
    size_t at;

    bench_init(&bench);
    made = make(&bench, options);
    at = marker_at(&made, 0xC4);
    CHECK_EQ_INT(made.data[at + 6], 1); /* codes of 2 bits in the standard table */
    made.data[at + 6] = 4;
    made.data[at + 7] -= 3;
    CHECK_ERR(HR_ERR_UNSUPPORTED, answer(&bench, &made));
    hr__free(made.data);
    bench_finish(&bench);
}

/* Changes bytes of the scan: whatever ours still accepts, libjpeg decodes to the same. */
TEST(damaged_scans_are_declined_or_equal_libjpeg)
{
    struct hr_jpeg_options options = {.quality = 60, .sampling_x = 2, .sampling_y = 1};
    struct hr_image_info info;
    struct hr_error error = {0};
    struct bench bench;
    struct made made;
    int i, accepted = 0;
    size_t scan;

    bench_init(&bench);
    made = make(&bench, options);
    CHECK_OK(hr__image_probe(made.data, made.bytes, &info, &error));
    scan = marker_at(&made, 0xDA) + 14;
    for (i = 0; i < 1500; i++) {
        struct hr_image_request request = whole(&info);
        size_t at = scan + (size_t)draw(&bench, (int32_t)(made.bytes - scan));
        uint8_t was = made.data[at];

        request.scale_log2 = i % 4;
        hr__isa_limit(test_isas[i % TEST_ISAS]);
        made.data[at] ^= (uint8_t)(1 + draw(&bench, 255));
        accepted += compare(&bench, made.data, made.bytes, &info, &request);
        made.data[at] = was;
    }
    hr__isa_limit(HR_ISA_AVX512);
    hr__jpeg_path_force(HR_JPEG_AUTO);
    CHECK(accepted > 20);
    hr__free(made.data);
    bench_finish(&bench);
}

TEST(a_warm_decoder_allocates_nothing)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 2, .sampling_y = 2};
    struct bench bench;
    struct made made;
    uint64_t before;
    int i;

    bench_init(&bench);
    made = make(&bench, options);
    for (i = 0; i < 3; i++)
        CHECK_OK(answer(&bench, &made));
    before = hr__alloc_count();
    for (i = 0; i < 9; i++)
        CHECK_OK(answer(&bench, &made));
    CHECK_EQ_INT(hr__alloc_count(), before);
    hr__free(made.data);
    bench_finish(&bench);
}
