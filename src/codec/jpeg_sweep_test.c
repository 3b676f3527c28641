/*
 * codec/jpeg_sweep_test.c - generated photos of all kinds: our JPEG decoder gives windows
 * and planes equal to libjpeg-turbo's, or declines.
 *
 * A normal run takes a small sample. HEADRACE_JPEG_ALL=1 takes every quality, sampling,
 * kind of table and restart interval at each size, and photos up to 8000x6000 (ten
 * minutes).
 */
#include "codec/jpeg_test_util.h"

/* Settings that the library's encoder does not offer. */
struct kind {
    int32_t width, height, channels;
    int quality, h, v;
    unsigned restart; /* in MCUs */
    bool optimise;
    bool coarse; /* steps above 255 at low quality, in 16 bits */
    bool noise;  /* black and white dots: the largest coefficients a picture can have */
};

static void paint(struct bench *bench, const struct hr_pixels *pixels)
{
    uint8_t *data = pixels->data;
    size_t i, count = (size_t)pixels->row_stride * (size_t)pixels->height;

    for (i = 0; i < count; i++)
        data[i] = draw(bench, 2) != 0 ? 255 : 0;
}

static void set_kind(struct jpeg_compress_struct *info, const void *user)
{
    const struct kind *kind = user;

    jpeg_set_quality(info, kind->quality, !kind->coarse);
    info->comp_info[0].h_samp_factor = kind->h;
    info->comp_info[0].v_samp_factor = kind->v;
    info->optimize_coding = kind->optimise;
    info->restart_interval = kind->restart;
}

static struct photo make_kind(struct bench *bench, const struct kind *kind)
{
    struct hr_pixels pixels =
        make_picture(bench, kind->width, kind->height, kind->channels);
    struct photo photo;

    if (kind->noise)
        paint(bench, &pixels);
    photo = make_photo_with(&pixels, set_kind, kind);
    free(pixels.data);
    return photo;
}

static void sweep(struct bench *bench, const struct kind *kind, int windows)
{
    struct photo file = make_kind(bench, kind);
    int k;

    for (k = 0; k < 4; k++) {
        compare_windows(bench, file.data, file.bytes, k, windows);
        compare_planes(bench, file.data, file.bytes, k, windows);
    }
    free(file.data);
}

static bool is_wide(void)
{
    return getenv("HEADRACE_JPEG_ALL") != NULL;
}

TEST(photos_of_all_kinds_equal_libjpeg)
{
    struct bench bench;
    int quality, step = is_wide() ? 1 : 9, kind, i;

    bench_init(&bench);
    for (quality = 1; quality <= 100; quality += step)
        for (kind = 0; kind < 48; kind++) {
            struct kind k = {.quality = quality,
                             .h = 1 + kind % 2,
                             .v = 1 + kind / 2 % 2,
                             .optimise = kind / 4 % 2 == 1,
                             .restart = kind / 8 % 2 == 0 ? 0 : 1 + (unsigned)kind % 7,
                             .channels = kind / 16 == 2 ? 1 : 3,
                             .coarse = kind / 16 == 1 && quality > 1,
                             .noise = (kind + quality) % 5 == 0};

            if (!is_wide() && (kind + quality / step) % 6 != 0)
                continue;
            for (i = 0; i < (is_wide() ? 3 : 1); i++) {
                hr__isa_limit(test_isas[draw(&bench, TEST_ISAS)]);
                k.width = 1 + draw(&bench, i == 0 ? 60 : 300);
                k.height = 1 + draw(&bench, i == 0 ? 60 : 200);
                sweep(&bench, &k, 2);
            }
        }
    hr__isa_limit(HR_ISA_AVX512);
    bench_finish(&bench);
}

TEST(large_photos_equal_libjpeg)
{
    static const struct kind large[] = {
        {.width = 1999, .height = 1501, .channels = 3, .quality = 90, .h = 2, .v = 2},
        {.width = 4001, .height = 33,   .channels = 3, .quality = 75, .h = 2, .v = 1},
        {.width = 17,   .height = 5003, .channels = 3, .quality = 96, .h = 1, .v = 2},
        {.width = 8000, .height = 6000, .channels = 3, .quality = 60, .h = 2, .v = 2},
        {.width = 7999, .height = 5999, .channels = 3, .quality = 40, .h = 1, .v = 1},
        {.width = 7993, .height = 6000, .channels = 3, .quality = 85, .h = 2, .v = 1},
        {.width = 8000, .height = 5991, .channels = 1, .quality = 98, .h = 1, .v = 1},
    };
    size_t i, count = is_wide() ? sizeof large / sizeof large[0] : 3;
    struct bench bench;

    bench_init(&bench);
    for (i = 0; i < count; i++)
        sweep(&bench, &large[i], 2);
    bench_finish(&bench);
}

/* Our decoder handles luma of at most two blocks; libjpeg-turbo does the rest. */
TEST(four_luma_blocks_per_chroma_are_left_to_libjpeg)
{
    const struct kind kind = {
        .width = 77, .height = 41, .channels = 3, .quality = 80, .h = 4, .v = 1};
    struct hr_image_part own, part;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_kind(&bench, &kind);
    hr__jpeg_path_force(HR_JPEG_OWN);
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &own, &error));
    hr__jpeg_path_force(HR_JPEG_AUTO);
    CHECK_OK(decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &part, &error));
    CHECK_EQ_INT(part.pixels.width, 77);
    check_windows(&bench, file.data, file.bytes, HR_CHANNELS_RGB, 4, 5);
    free(file.data);
    bench_finish(&bench);
}

/* ---- out-of-range coefficients ---- */

/* Multiplies the steps of a file of quality 100, all 1, as damage might. */
static void set_steps(const struct photo *file, int step)
{
    size_t i;

    for (i = 0; i + 69 < file->bytes; i++)
        if (memcmp(file->data + i, "\xFF\xDB\0C", 4) == 0)
            memset(file->data + i + 5, step, 64);
}

/* Checks that all instruction sets agree, and that libjpeg-turbo gives the same if ours
 * accepts. Returns whether it accepts. */
static bool answer(struct bench *bench, const struct photo *file, int scale_log2)
{
    struct hr_image_info info;
    struct hr_image_request request;
    struct hr_error error = {0};
    bool accepted[TEST_ISAS];
    int i;

    CHECK_OK(hr__image_probe(file->data, file->bytes, &info, &error));
    request = whole(&info);
    request.scale_log2 = scale_log2;
    for (i = 0; i < TEST_ISAS; i++) {
        hr__isa_limit(test_isas[i]);
        accepted[i] = compare(bench, file->data, file->bytes, &info, &request);
        CHECK(accepted[i] == accepted[0]);
    }
    hr__isa_limit(HR_ISA_AVX512);
    hr__jpeg_path_force(HR_JPEG_AUTO);
    return accepted[0];
}

TEST(out_of_range_coefficients_are_declined_and_others_equal_libjpeg)
{
    int step, k, count[2][4] = {{0}};
    struct bench bench;

    bench_init(&bench);
    for (step = 1; step <= 255; step += step < 32 ? 1 : 17) {
        struct kind kind = {.width = 1 + draw(&bench, 40),
                            .height = 1 + draw(&bench, 40),
                            .channels = step % 3 == 0 ? 1 : 3,
                            .quality = 100,
                            .h = 1 + step % 2,
                            .v = 1 + step / 2 % 2,
                            .optimise = step % 5 == 0,
                            .noise = step % 4 == 0};
        struct photo file = make_kind(&bench, &kind);

        set_steps(&file, step);
        for (k = 0; k < 4; k++)
            count[answer(&bench, &file, k)][k]++;
        free(file.data);
    }
    for (k = 0; k < 4; k++)
        CHECK(count[0][k] > 5 && count[1][k] > 2);
    bench_finish(&bench);
}

/* Black and white dots at any quality are a valid picture, however large the
 * coefficients. */
TEST(extreme_pictures_are_accepted)
{
    struct bench bench;
    int quality, k;

    bench_init(&bench);
    for (quality = 1; quality <= 100; quality += 3) {
        struct kind kind = {.width = 64,
                            .height = 48,
                            .channels = 1 + 2 * (quality % 2),
                            .quality = quality,
                            .h = 1,
                            .v = 1,
                            .noise = true};
        struct photo file = make_kind(&bench, &kind);

        for (k = 0; k < 4; k++)
            CHECK(answer(&bench, &file, k));
        free(file.data);
    }
    bench_finish(&bench);
}
