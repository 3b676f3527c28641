/*
 * api/jpeg_api_test.c - the JPEG decoder through its public header: windows, resizes,
 * seek points, threads.
 */
#include "codec/image.h"
#include "core/alloc.h"
#include "core/file.h"
#include "headrace/jpeg.h"
#include "tests/support/check.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct photo {
    void *data;
    size_t bytes;
    struct hr_jpeg_info info;
};

/* Waves: smooth gradients with no two parts alike. */
static struct photo
make_photo(int32_t width, int32_t height, const struct hr_jpeg_options *options)
{
    uint8_t *p = malloc((size_t)width * (size_t)height * 3);
    struct hr_pixels pixels = hr__pixels_u8(p, width, height, 3);
    struct hr_error error = {0};
    struct photo photo;

    CHECK(p != NULL);
    for (int32_t i = 0; i < width * height; i++) {
        double x = i % width, y = (double)(i / width);

        p[3 * i] = (uint8_t)(128 + 100 * sin(x / 9 + y / 31));
        p[3 * i + 1] = (uint8_t)(128 + 100 * sin(x / 23 - y / 7));
        p[3 * i + 2] = (uint8_t)(128 + 100 * sin((x + y * x / 50) / 17));
    }
    CHECK_OK(hr__image_encode_jpeg(&pixels, options, &photo.data, &photo.bytes, &error));
    free(p);
    CHECK_OK(hr_jpeg_read_info(photo.data, photo.bytes, &photo.info, &error));
    return photo;
}

static const struct hr_jpeg_options usual = {
    .quality = 85, .sampling_x = 2, .sampling_y = 2};

static uint8_t *decode_all(struct hr_jpeg_worker *worker, const struct photo *photo)
{
    struct hr_jpeg_window all = {.x = 0};
    struct hr_error error = {0};
    size_t row = 3 * (size_t)photo->info.width;
    uint8_t *pixels = malloc(row * (size_t)photo->info.height);

    CHECK(pixels != NULL);
    CHECK_OK(
        hr_jpeg_decode(worker, photo->data, photo->bytes, &all, pixels, row, &error));
    return pixels;
}

/* ---- info ---- */

TEST(the_header_is_described)
{
    struct hr_jpeg_options options = usual;
    struct photo photo = make_photo(77, 45, &options);

    CHECK_EQ_INT(photo.info.width, 77);
    CHECK_EQ_INT(photo.info.height, 45);
    CHECK_EQ_INT(photo.info.components, 3);
    CHECK_EQ_INT(photo.info.sampling_x, 2);
    CHECK_EQ_INT(photo.info.sampling_y, 2);
    CHECK_EQ_INT(photo.info.quality, 85);
    CHECK_EQ_INT(photo.info.restart, 0);
    CHECK_EQ_INT(photo.info.orientation, 1);
    CHECK(photo.info.baseline && photo.info.accepted && photo.info.reason[0] == '\0');
    hr__free(photo.data);

    options.progressive = true;
    photo = make_photo(77, 45, &options);
    CHECK(!photo.info.baseline && !photo.info.accepted);
    CHECK_EQ_STR(photo.info.reason, "progressive");
    hr__free(photo.data);

    options.progressive = false;
    options.sampling_x = 4;
    options.sampling_y = 1;
    options.restart_rows = 1;
    photo = make_photo(77, 45, &options);
    CHECK_EQ_STR(photo.info.reason, "unusual chroma sampling");
    CHECK_EQ_INT(photo.info.sampling_x, 4);
    CHECK_EQ_INT(photo.info.restart, 3);
    hr__free(photo.data);
}

TEST(the_quality_of_every_standard_table_is_found)
{
    for (int quality = 1; quality <= 100; quality++) {
        struct hr_jpeg_options options = usual;
        struct photo photo;

        options.quality = quality;
        photo = make_photo(8, 8, &options);
        /* At quality 1 to 3 nearly all steps are 255. */
        CHECK(photo.info.quality == quality || (quality < 4 && photo.info.quality < 4));
        hr__free(photo.data);
    }
}

TEST(data_that_is_not_jpeg_is_refused)
{
    struct hr_jpeg_info info;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_UNSUPPORTED, hr_jpeg_read_info("GIF89a..", 8, &info, &error));
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr_jpeg_read_info("P5 1 1 255 ", 11, &info, &error));
    CHECK_EQ_STR(error.message, "not a JPEG: it is PNM");
    CHECK_ERR(HR_ERR_FORMAT, hr_jpeg_read_info("\xFF\xD8\xFF\xE0", 4, &info, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr_jpeg_read_info(NULL, 4, &info, &error));
}

/* ---- windows ---- */

TEST(a_window_equals_that_part_of_the_whole)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(151, 97, &usual);
    uint8_t *all = decode_all(worker, &photo), part[3 * 40 * 30];
    struct hr_jpeg_window window = {.x = 63, .y = 21, .width = 40, .height = 30};
    struct hr_error error = {0};

    CHECK_OK(hr_jpeg_decode(worker, photo.data, photo.bytes, &window, part, 120, &error));
    for (size_t y = 0; y < 30; y++)
        CHECK_BYTES(part + 120 * y, all + 3 * ((21 + y) * 151 + 63), 120);
    free(all);
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

TEST(a_scaled_window_has_the_announced_size)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(101, 59, &usual);
    struct hr_jpeg_window window = {.x = 7, .y = 3, .scale = 4, .gray = true};
    struct hr_error error = {0};
    uint8_t pixels[25 * 16];
    int32_t width, height;

    CHECK_OK(hr_jpeg_window_size(&photo.info, &window, &width, &height, &error));
    CHECK_EQ_INT(width, 25); /* from 1 to 26 */
    CHECK_EQ_INT(height, 15);
    memset(pixels, 77, sizeof pixels);
    CHECK_OK(
        hr_jpeg_decode(worker, photo.data, photo.bytes, &window, pixels, 25, &error));
    CHECK_EQ_INT(pixels[25 * 15], 77); /* nothing after it is written */
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

TEST(wrong_arguments_are_named)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(20, 10, &usual);
    struct hr_jpeg_window window = {.x = 15, .width = 6};
    struct hr_jpeg_resize what = {.out_width = 4, .out_height = 4, .x = 18.5, .width = 2};
    struct hr_error error = {0};
    uint8_t pixels[600];

    CHECK_ERR(HR_ERR_ARGUMENT, hr_jpeg_decode(worker, photo.data, photo.bytes, &window,
                                              pixels, 60, &error));
    CHECK_EQ_STR(error.message, "window 6x0 at (15, 0) is not inside the photo of 20x10");
    window = (struct hr_jpeg_window){.scale = 3};
    CHECK_ERR(HR_ERR_ARGUMENT, hr_jpeg_decode(worker, photo.data, photo.bytes, &window,
                                              pixels, 60, &error));
    window = (struct hr_jpeg_window){.scale = 1};
    CHECK_ERR(HR_ERR_ARGUMENT, hr_jpeg_decode(worker, photo.data, photo.bytes, &window,
                                              pixels, 59, &error));
    window.pixels_max = 199;
    CHECK_ERR(HR_ERR_LIMIT, hr_jpeg_decode(worker, photo.data, photo.bytes, &window,
                                           pixels, 60, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_jpeg_resize(worker, photo.data, photo.bytes, &what, pixels, 48, &error));
    what.x = what.width = 0;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_jpeg_resize(worker, photo.data, photo.bytes, &what, pixels, 47, &error));
    what.dtype = HR_I64;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_jpeg_resize(worker, photo.data, photo.bytes, &what, pixels, 48, &error));
    what.dtype = HR_U8;
    what.y = NAN;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_jpeg_resize(worker, photo.data, photo.bytes, &what, pixels, 48, &error));
    what.y = 0;
    CHECK_OK(hr_jpeg_resize(worker, photo.data, photo.bytes, &what, pixels, 48, &error));
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

/* ---- resizes ---- */

static void resize(struct hr_jpeg_worker *worker, const struct photo *photo,
                   const struct hr_jpeg_resize *what, void *out, size_t bytes)
{
    struct hr_error error = {0};

    CHECK_OK(hr_jpeg_resize(worker, photo->data, photo->bytes, what, out, bytes, &error));
}

/* A resize to the same size equals decoding, in every output format. */
TEST(a_resize_to_the_same_size_changes_nothing_in_any_form)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(33, 21, &usual);
    uint8_t *all = decode_all(worker, &photo), same[3 * 33 * 21];
    float planar[3 * 33 * 21];
    struct hr_jpeg_resize what = {.out_width = 33, .out_height = 21};
    const float scale[3] = {1.f / 255, 1.f / 127, 2}, bias[3] = {-1, 0, 5};

    resize(worker, &photo, &what, same, sizeof same);
    CHECK_BYTES(same, all, sizeof same);
    what.flip = what.planar = what.affine = true;
    what.dtype = HR_F32;
    memcpy(what.scale, scale, sizeof scale);
    memcpy(what.bias, bias, sizeof bias);
    resize(worker, &photo, &what, planar, sizeof planar);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < 21; y++)
            for (int x = 0; x < 33; x++) {
                float level = all[3 * (33 * y + 32 - x) + c];

                CHECK(fabsf(planar[33 * (21 * c + y) + x] -
                            (level * scale[c] + bias[c])) < 1e-4f);
            }
    free(all);
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

TEST(halving_averages_and_the_modes_stay_close)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(640, 480, &usual);
    float exact[3 * 100 * 80], other[3 * 100 * 80];
    struct hr_jpeg_resize what = {.x = 20.25,
                                  .y = 10.5,
                                  .width = 500.5,
                                  .height = 400,
                                  .out_width = 100,
                                  .out_height = 80,
                                  .dtype = HR_F32};

    resize(worker, &photo, &what, exact, sizeof exact);
    for (what.mode = HR_JPEG_MODE_CLOSE; what.mode <= HR_JPEG_MODE_FAST; what.mode++) {
        double sum = 0;

        resize(worker, &photo, &what, other, sizeof other);
        for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
            sum += fabs((double)exact[i] - (double)other[i]);
        CHECK(sum / (sizeof exact / sizeof exact[0]) <
              2.5); /* would be 4 if shifted by half a pixel */
        CHECK(sum > 0);
    }
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

TEST(half_floats_are_the_rounded_floats_and_gray_is_luma)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(64, 48, &usual);
    struct hr_jpeg_resize what = {
        .out_width = 20, .out_height = 10, .gray = true, .dtype = HR_F32};
    uint16_t bf16[200];
    float f32[200];
    uint8_t u8[200];

    resize(worker, &photo, &what, f32, sizeof f32);
    what.dtype = HR_BF16;
    resize(worker, &photo, &what, bf16, sizeof bf16);
    what.dtype = HR_DTYPE_NONE;
    resize(worker, &photo, &what, u8, sizeof u8);
    for (int i = 0; i < 200; i++) {
        uint32_t bits = (uint32_t)bf16[i] << 16;
        float back;

        memcpy(&back, &bits, sizeof back);
        CHECK(fabsf(back - f32[i]) <= f32[i] / 256);
        CHECK(fabsf((float)u8[i] - f32[i]) <= 0.5f);
    }
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

/* ---- seek points ---- */

struct part {
    const struct photo *photo;
    struct hr_jpeg_window window;
    uint8_t *pixels;
    size_t row_bytes;
    enum hr_err err;
};

static void *decode_part(void *user)
{
    struct part *part = user;
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();

    CHECK(worker != NULL);
    part->err = hr_jpeg_decode(worker, part->photo->data, part->photo->bytes,
                               &part->window, part->pixels, part->row_bytes, NULL);
    hr_jpeg_worker_destroy(worker);
    return NULL;
}

TEST(threads_split_one_photo_by_its_seek_points)
{
    enum { THREADS = 4 };
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(701, 1003, &usual);
    size_t row = 3 * 701, bytes = row * 1003;
    uint8_t *all = decode_all(worker, &photo), *parts = malloc(bytes);
    struct hr_jpeg_entries *entries = NULL;
    struct hr_error error = {0};
    struct part part[THREADS];
    pthread_t thread[THREADS];

    CHECK(parts != NULL);
    CHECK_OK(hr_jpeg_entries_make(worker, photo.data, photo.bytes, 8, &entries, &error));
    for (int i = 0; i < THREADS; i++) {
        int32_t top = 1003 * i / THREADS, below = 1003 * (i + 1) / THREADS;

        part[i] = (struct part){
            .photo = &photo,
            .window = {.y = top, .height = below - top, .entries = entries},
            .pixels = parts + (size_t)top * row,
            .row_bytes = row
        };
        CHECK(i == 0 || hr_jpeg_entries_skip(entries, &part[i].window) > photo.bytes / 2);
        CHECK_EQ_INT(pthread_create(&thread[i], NULL, decode_part, &part[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ_INT(pthread_join(thread[i], NULL), 0);
        CHECK_OK(part[i].err);
    }
    CHECK_BYTES(parts, all, bytes);
    free(parts);
    free(all);
    hr_jpeg_entries_destroy(entries);
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

TEST(seek_points_change_no_resize)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(500, 400, &usual);
    struct hr_jpeg_entries *entries = NULL;
    struct hr_jpeg_entries_info info;
    struct hr_error error = {0};
    uint8_t plain[3 * 32 * 32], with[3 * 32 * 32];
    struct hr_jpeg_resize what = {.x = 300.5,
                                  .y = 211,
                                  .width = 130,
                                  .height = 99.25,
                                  .out_width = 32,
                                  .out_height = 32,
                                  .mode = HR_JPEG_MODE_CLOSE};

    CHECK_OK(hr_jpeg_entries_make(worker, photo.data, photo.bytes, 0, &entries, &error));
    hr_jpeg_entries_describe(entries, &info);
    CHECK_EQ_INT(info.rows, 25);
    CHECK_EQ_INT(info.step, 32);
    CHECK_EQ_INT(info.mcu_height, 16);
    resize(worker, &photo, &what, plain, sizeof plain);
    what.entries = entries;
    resize(worker, &photo, &what, with, sizeof with);
    CHECK_BYTES(plain, with, sizeof with);
    hr_jpeg_entries_destroy(entries);
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

TEST(damaged_and_stale_seek_points_are_refused)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct photo photo = make_photo(120, 80, &usual);
    struct hr_jpeg_entries *entries = NULL, *again = NULL;
    struct hr_jpeg_window window = {.y = 40};
    struct hr_jpeg_entries_info info;
    struct hr_error error = {0};
    char path[1100];
    uint8_t *saved, *pixels = malloc(3 * 120 * 80);

    CHECK_OK(hr_jpeg_entries_make(worker, photo.data, photo.bytes, 2, &entries, &error));
    hr_jpeg_entries_describe(entries, &info);
    saved = malloc(info.bytes);
    CHECK(saved != NULL && pixels != NULL);
    hr_jpeg_entries_store(entries, saved);
    for (size_t i = 0; i < info.bytes; i++) {
        saved[i] ^= 1;
        CHECK(hr_jpeg_entries_parse(saved, info.bytes, photo.data, photo.bytes, &again,
                                    &error) != HR_OK);
        saved[i] ^= 1;
        CHECK_ERR(HR_ERR_FORMAT, hr_jpeg_entries_parse(saved, i, photo.data, photo.bytes,
                                                       &again, &error));
    }
    snprintf(path, sizeof path, "%s/points", check_temp_dir());
    CHECK_OK(hr_jpeg_entries_save(entries, path, &error));
    CHECK_OK(hr_jpeg_entries_load(path, photo.data, photo.bytes, &again, &error));
    window.entries = again;
    CHECK_OK(
        hr_jpeg_decode(worker, photo.data, photo.bytes, &window, pixels, 360, &error));
    /* Another photo, differing by one byte, with the same seek points. */
    ((uint8_t *)photo.data)[photo.bytes / 2] ^= 1;
    CHECK_ERR(HR_ERR_STATE, hr_jpeg_decode(worker, photo.data, photo.bytes, &window,
                                           pixels, 360, &error));
    hr_jpeg_entries_destroy(again);
    again = NULL;
    CHECK_ERR(HR_ERR_STATE,
              hr_jpeg_entries_load(path, photo.data, photo.bytes, &again, &error));
    CHECK(again == NULL);
    CHECK_EQ_INT(unlink(path), 0);
    CHECK_ERR(HR_ERR_NOT_FOUND,
              hr_jpeg_entries_load(path, photo.data, photo.bytes, &again, &error));
    free(saved);
    free(pixels);
    hr_jpeg_entries_destroy(entries);
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

TEST(photos_without_seek_points_say_why)
{
    struct hr_jpeg_worker *worker = hr_jpeg_worker_create();
    struct hr_jpeg_options options = usual;
    struct hr_jpeg_entries *entries = NULL;
    struct hr_error error = {0};
    struct photo photo;

    options.restart_rows = 1;
    photo = make_photo(40, 40, &options);
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              hr_jpeg_entries_make(worker, photo.data, photo.bytes, 0, &entries, &error));
    CHECK_EQ_STR(error.message,
                 "this photo cannot have seek points: it has restart markers");
    hr__free(photo.data);
    options.progressive = true;
    photo = make_photo(40, 40, &options);
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              hr_jpeg_entries_make(worker, photo.data, photo.bytes, 0, &entries, &error));
    CHECK_EQ_STR(error.message, "this photo cannot have seek points: progressive");
    hr__free(photo.data);
    hr_jpeg_worker_destroy(worker);
}

/* Each allocation fails once; nothing leaks and the next attempt succeeds. */
TEST(out_of_memory_leaves_nothing_behind)
{
    struct photo photo = make_photo(90, 70, &usual);

    for (uint64_t nth = 1;; nth++) {
        struct hr_jpeg_window window = {.y = 30};
        struct hr_jpeg_entries *entries = NULL;
        struct hr_jpeg_worker *worker;
        uint8_t pixels[3 * 90 * 70];
        struct hr_error error = {0};
        enum hr_err err = HR_ERR_MEMORY;
        bool all;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        worker = hr_jpeg_worker_create();
        if (worker != NULL)
            err = hr_jpeg_entries_make(worker, photo.data, photo.bytes, 4, &entries,
                                       &error);
        window.entries = entries;
        if (err == HR_OK)
            err = hr_jpeg_decode(worker, photo.data, photo.bytes, &window, pixels, 270,
                                 &error);
        all = hr__fault_calls() < nth;
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        CHECK_ERR(all ? HR_OK : HR_ERR_MEMORY, err);
        hr_jpeg_entries_destroy(entries);
        hr_jpeg_worker_destroy(worker);
        if (all)
            break;
    }
    hr__free(photo.data);
}
