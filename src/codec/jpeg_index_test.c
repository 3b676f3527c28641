/*
 * codec/jpeg_index_test.c - seek points change no pixel, whether collected, serialised,
 * used or extended.
 */
#include "codec/jpeg_test_util.h"

static struct hr_image_request draw_window(struct bench *bench, const struct photo *file)
{
    struct hr_image_request request = whole(&file->info);

    request.scale_log2 = draw(bench, 4);
    request.channels = draw(bench, 5) == 4 ? HR_CHANNELS_GRAY : HR_CHANNELS_RGB;
    if (draw(bench, 8) == 0)
        return request;
    request.x = draw(bench, file->info.width);
    request.y = draw(bench, file->info.height);
    request.width = 1 + draw(bench, file->info.width - request.x);
    request.height = 1 + draw(bench, file->info.height - request.y);
    return request;
}

/* Serialises an index. */
static size_t keep(const struct hr_jpeg_index *index, uint8_t **kept)
{
    uint8_t *to = malloc(hr__jpeg_index_room(index));
    size_t bytes;

    CHECK(to != NULL);
    bytes = hr__jpeg_index_pack(index, to);
    CHECK(bytes <= hr__jpeg_index_room(index));
    free(*kept); /* the index may point into it */
    *kept = to;
    return bytes;
}

static void check_index_window(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                               struct hr_jpeg_index *index, bool planar)
{
    struct hr_image_request request = *job->request;
    struct hr_image_job with = *job;
    struct hr_image_part plain, part;
    struct hr_image_planes plain_planes, planes;

    request.index = index;
    with.request = &request;
    if (!planar) {
        CHECK_OK(hr__jpeg_window(jpeg, job, &plain));
        CHECK_OK(hr__jpeg_window(jpeg, &with, &part));
        check_same(&plain.pixels, &part.pixels);
        return;
    }
    CHECK_OK(hr__jpeg_planes(jpeg, job, &plain_planes));
    CHECK_OK(hr__jpeg_planes(jpeg, &with, &planes));
    for (int i = 0; i < (planes.ycc.gray ? 1 : 3); i++)
        check_same(&plain_planes.ycc.plane[i], &planes.ycc.plane[i]);
}

/* One window after another, each with the index as the previous one left it. */
static void check_index_windows(struct bench *bench, const struct photo *file,
                                int32_t step, int count)
{
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_error error = {0};
    uint8_t *kept = NULL;
    size_t bytes = 0;
    int32_t rows = 0;

    CHECK(jpeg != NULL);
    for (int i = 0; i < count; i++) {
        struct hr_image_request request = draw_window(bench, file);
        struct hr_image_job job = {&bench->arena, file->data, file->bytes,
                                   &file->info,   &request,   &error};
        struct hr_jpeg_index index = {.step = step};

        if (kept != NULL)
            CHECK_OK(hr__jpeg_index_unpack(&bench->arena, kept, bytes, &index));
        check_index_window(jpeg, &job, &index, i % 3 == 1);
        CHECK(index.rows >= rows && index.rows > 0);
        if (request.y + request.height == file->info.height)
            CHECK_EQ_INT(index.rows, index.mcus_y);
        rows = index.rows;
        bytes = keep(&index, &kept);
        hr__arena_reset(&bench->arena);
    }
    free(kept);
    hr__jpeg_destroy(jpeg);
}

TEST(an_index_does_not_change_pixels_while_it_grows)
{
    struct bench bench;

    bench_init(&bench);
    for (int i = 0; i < 48; i++) {
        struct hr_jpeg_options options = {.quality = 20 + draw(&bench, 80),
                                          .sampling_x = 1 + i % 2,
                                          .sampling_y = 1 + i / 2 % 2,
                                          .optimise = i % 3 == 0};
        struct photo file = make_photo(&bench, &options, 1 + draw(&bench, 300),
                                       1 + draw(&bench, 90), i % 8 == 7 ? 1 : 3);

        hr__isa_limit(test_isas[i % TEST_ISAS]);
        check_index_windows(&bench, &file, i % 4 == 0 ? 0 : 1 + i % 9, 12);
        hr__free(file.data);
    }
    hr__isa_limit(HR_ISA_AVX512);
    bench_finish(&bench);
}

TEST(one_pass_gives_the_same_index_as_decoding_the_last_row)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 2, .sampling_y = 1};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_jpeg_index made, gathered = {.step = 4};
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    struct hr_image_request request;
    struct hr_image_part part;
    uint8_t *a = NULL, *b = NULL;
    size_t bytes;

    bench_init(&bench);
    file = make_photo(&bench, &options, 200, 100, 3);
    request = (struct hr_image_request){
        .x = 70, .y = 99, .width = 50, .height = 1, .index = &gathered};
    CHECK_OK(hr__jpeg_index_make(jpeg, &bench.arena, file.data, file.bytes, 4, &made));
    CHECK_OK(hr__jpeg_window(jpeg,
                             &(struct hr_image_job){&bench.arena, file.data, file.bytes,
                                                    &file.info, &request, &error},
                             &part));
    CHECK_EQ_INT(made.rows, 13);
    bytes = keep(&made, &a);
    CHECK_EQ_INT(keep(&gathered, &b), bytes);
    CHECK_BYTES(a, b, bytes);
    free(a);
    free(b);
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}

/* A wrong index gives wrong pixels or an error, and nothing worse. */
TEST(any_index_is_safe)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 2, .sampling_y = 2};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_error error = {0};
    struct hr_jpeg_index index;
    struct bench bench;
    struct photo file;
    uint8_t *kept = NULL;
    size_t bytes;

    bench_init(&bench);
    file = make_photo(&bench, &options, 150, 140, 3);
    CHECK_OK(hr__jpeg_index_make(jpeg, &bench.arena, file.data, file.bytes, 2, &index));
    index.rows -= 2;
    bytes = keep(&index, &kept);
    for (int i = 0; i < 4000; i++) {
        struct hr_image_request request = draw_window(&bench, &file);
        struct hr_image_job job = {&bench.arena, file.data, file.bytes,
                                   &file.info,   &request,  &error};
        uint8_t *copy = malloc(bytes);
        struct hr_image_part part;
        enum hr_err err;

        CHECK(copy != NULL);
        memcpy(copy, kept, bytes);
        copy[draw(&bench, (int32_t)bytes)] = (uint8_t)draw(&bench, 256);
        if (i % 4 == 0)
            copy[draw(&bench, 60)] ^= (uint8_t)(1 << draw(&bench, 8));
        request.index = &index;
        if (hr__jpeg_index_unpack(&bench.arena, copy,
                                  i % 16 == 3 ? (size_t)draw(&bench, (int32_t)bytes)
                                              : bytes,
                                  &index) == HR_OK) {
            err = hr__jpeg_window(jpeg, &job, &part);
            CHECK(err == HR_OK || err == HR_ERR_UNSUPPORTED);
        }
        free(copy);
        hr__arena_reset(&bench.arena);
    }
    free(kept);
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}

/* Rows with decreasing offsets, as only a hostile index has: the difference of two would
 * point outside the photo's data. */
TEST(an_index_whose_offsets_decrease_is_refused)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 2, .sampling_y = 2};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_error error = {0};
    struct hr_jpeg_index index, back;
    struct bench bench;
    struct photo file;
    uint8_t *kept = NULL;
    size_t bytes;

    bench_init(&bench);
    file = make_photo(&bench, &options, 150, 140, 3);
    CHECK_OK(hr__jpeg_index_make(jpeg, &bench.arena, file.data, file.bytes, 2, &index));
    index.rows = 3;
    index.points_bytes = index.row[3].points_at;
    for (int lie = 0; lie < 3; lie++) {
        struct hr_jpeg_row honest = index.row[1];
        struct hr_image_request request = {
            .x = 100, .y = 20, .width = 20, .height = 80, .index = &back};
        struct hr_image_job job = {&bench.arena, file.data, file.bytes,
                                   &file.info,   &request,  &error};
        struct hr_image_part part;
        enum hr_err err;

        if (lie == 0)
            index.row[1].unstuffed = index.row[2].unstuffed + 5000;
        if (lie == 1)
            index.row[1].at = index.row[2].at + 5000;
        if (lie == 2)
            index.row[1].points_at = index.row[2].points_at + 5000;
        bytes = keep(&index, &kept);
        err = hr__jpeg_index_unpack(&bench.arena, kept, bytes, &back);
        if (err == HR_OK && hr__jpeg_window(jpeg, &job, &part) != HR_OK)
            err = HR_ERR_UNSUPPORTED;
        CHECK_ERR(HR_ERR_FORMAT, err);
        index.row[1] = honest;
    }
    free(kept);
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}

TEST(a_declined_decode_adds_nothing_to_an_index)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 2, .sampling_y = 2};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_jpeg_index index = {0};
    struct hr_error error = {0};
    struct hr_image_request request;
    struct hr_image_job job;
    struct hr_image_part part;
    struct bench bench;
    struct photo file;
    size_t bytes_before;

    bench_init(&bench);
    file = make_photo(&bench, &options, 150, 140, 3);
    request = whole(&file.info);
    request.height = 40;
    request.index = &index;
    job = (struct hr_image_job){&bench.arena, file.data, file.bytes,
                                &file.info,   &request,  &error};
    CHECK_OK(hr__jpeg_window(jpeg, &job, &part));
    CHECK_EQ_INT(index.rows, 3);
    bytes_before = index.points_bytes;
    request.height = 140;
    job.bytes -= file.bytes / 8;
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__jpeg_window(jpeg, &job, &part));
    CHECK_EQ_INT(index.rows, 3);
    CHECK_EQ_INT(index.points_bytes, bytes_before);
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}

TEST(files_with_restart_markers_have_no_index)
{
    struct hr_jpeg_options options = {
        .quality = 80, .sampling_x = 2, .sampling_y = 2, .restart_rows = 1};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_jpeg_index index;
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, &options, 150, 140, 3);
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              hr__jpeg_index_make(jpeg, &bench.arena, file.data, file.bytes, 0, &index));
    check_index_windows(&bench, &file, 0, 0);
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}

/* hr__jpeg_decode retries without the faulty index and records points again. */
TEST(a_faulty_index_is_dropped)
{
    struct hr_jpeg_options options = {.quality = 80, .sampling_x = 2, .sampling_y = 2};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_jpeg_index index;
    struct hr_error error = {0};
    struct hr_image_request request;
    struct hr_image_planes plain, planes;
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, &options, 150, 140, 3);
    request = (struct hr_image_request){.x = 20, .y = 50, .width = 60, .height = 40};
    CHECK_OK(hr__image_decode_planes(bench.decoder, &bench.arena, file.data, file.bytes,
                                     &file.info, &request, &plain, &error));
    CHECK_OK(hr__jpeg_index_make(jpeg, &bench.arena, file.data, file.bytes, 2, &index));
    for (int32_t my = 0; my < index.rows; my++)
        index.row[my].at = UINT32_MAX;
    request.index = &index;
    CHECK_OK(hr__image_decode_planes(bench.decoder, &bench.arena, file.data, file.bytes,
                                     &file.info, &request, &planes, &error));
    for (int i = 0; i < 3; i++)
        check_same(&plain.ycc.plane[i], &planes.ycc.plane[i]);
    CHECK_EQ_INT(index.rows, 6);
    CHECK(index.row[5].at < file.bytes);
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}
