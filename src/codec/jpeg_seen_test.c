/*
 * codec/jpeg_seen_test.c - windows that reuse earlier decodes equal those decoded alone.
 */
#include "codec/jpeg_test_util.h"

static struct hr_image_request
window(const struct photo *file, int32_t x, int32_t y, int32_t width, int32_t height)
{
    struct hr_image_request request = whole(&file->info);

    request.x = x;
    request.y = y;
    request.width = width;
    request.height = height;
    return request;
}

static struct hr_image_request
draw_window(struct bench *bench, const struct photo *file, int scales)
{
    int32_t width = file->info.width, height = file->info.height;
    int32_t x = draw(bench, width), y = draw(bench, height);
    struct hr_image_request request =
        window(file, x, y, 1 + draw(bench, width - x), 1 + draw(bench, height - y));

    if (draw(bench, 8) == 0)
        request = whole(&file->info);
    request.scale_log2 = draw(bench, scales);
    request.channels = draw(bench, 5) == 4 ? HR_CHANNELS_GRAY : HR_CHANNELS_RGB;
    return request;
}

/* Decodes the window alone, and with the parts of earlier ones. */
static void
check_view(struct hr_jpeg *jpeg, struct bench *bench, const struct photo *file,
           struct hr_image_request request, bool planar)
{
    struct hr_image_request alone = request;
    struct hr_image_job job = {&bench->arena, file->data, file->bytes,
                               &file->info,   &request,   NULL};
    struct hr_image_job plain = {&bench->arena, file->data, file->bytes,
                                 &file->info,   &alone,     NULL};
    struct hr_image_planes planes, plain_planes;
    struct hr_image_part part, plain_part;

    alone.index = NULL;
    alone.seen = NULL;
    if (!planar) {
        CHECK_OK(hr__jpeg_window(jpeg, &job, &part));
        CHECK_OK(hr__jpeg_window(jpeg, &plain, &plain_part));
        check_same(&part.pixels, &plain_part.pixels);
        return;
    }
    CHECK_OK(hr__jpeg_planes(jpeg, &job, &planes));
    CHECK_OK(hr__jpeg_planes(jpeg, &plain, &plain_planes));
    CHECK_EQ_INT(planes.ycc.gray, plain_planes.ycc.gray);
    CHECK_EQ_INT(planes.ycc.chroma_x, plain_planes.ycc.chroma_x);
    CHECK_EQ_INT(planes.ycc.chroma_y, plain_planes.ycc.chroma_y);
    for (int i = 0; i < (planes.ycc.gray ? 1 : 3); i++)
        check_same(&planes.ycc.plane[i], &plain_planes.ycc.plane[i]);
}

/* One record after another, each with several windows. */
static void check_records(struct bench *bench, const struct photo *file, int records)
{
    struct hr_jpeg *jpeg = hr__jpeg_create();

    CHECK(jpeg != NULL);
    for (int i = 0; i < records; i++) {
        struct hr_jpeg_index index = {0};
        struct hr_jpeg_seen seen = {0};
        int count = 2 + draw(bench, HR_JPEG_SEEN_MAX + 2);
        int scales = draw(bench, 2) == 0 ? 1 : 4, indexed = draw(bench, 3);

        for (int k = 0; k < count; k++) {
            struct hr_image_request request = draw_window(bench, file, scales);

            request.index = indexed > 0 && (indexed == 1 || k > 0) ? &index : NULL;
            request.seen = &seen;
            check_view(jpeg, bench, file, request, draw(bench, 2) == 0);
            CHECK(seen.count <= HR_JPEG_SEEN_MAX);
        }
        hr__arena_reset(&bench->arena);
    }
    hr__jpeg_destroy(jpeg);
}

TEST(reused_parts_change_no_pixel)
{
    static const int samplings[][2] = {
        {2, 2},
        {1, 1},
        {2, 1},
        {1, 2}
    };
    struct bench bench;

    bench_init(&bench);
    for (int32_t isa = 0; isa < TEST_ISAS; isa++) {
        hr__isa_limit(test_isas[isa]);
        for (int i = 0; i < 12; i++) {
            struct hr_jpeg_options options = {.quality = 30 + draw(&bench, 70),
                                              .sampling_x = samplings[i % 4][0],
                                              .sampling_y = samplings[i % 4][1],
                                              .restart_rows = i % 3 == 2 ? i % 4 : 0};
            struct photo file = make_photo(&bench, &options, 20 + draw(&bench, 300),
                                           20 + draw(&bench, 200), i % 5 == 4 ? 1 : 3);

            check_records(&bench, &file, 6);
            hr__free(file.data);
        }
    }
    hr__isa_limit(HR_ISA_AVX512);
    bench_finish(&bench);
}

TEST(a_window_within_another_is_returned_in_place)
{
    struct hr_jpeg_options options = {.quality = 90, .sampling_x = 2, .sampling_y = 2};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_jpeg_seen seen = {0};
    struct hr_image_planes first, second;
    struct hr_image_request request;
    struct hr_image_job job;
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, &options, 300, 200, 3);
    job = (struct hr_image_job){&bench.arena, file.data, file.bytes,
                                &file.info,   &request,  NULL};
    request = window(&file, 32, 32, 160, 128);
    request.seen = &seen;
    CHECK_OK(hr__jpeg_planes(jpeg, &job, &first));
    request = window(&file, 50, 40, 99, 100);
    request.seen = &seen;
    memset((uint8_t *)file.data + file.bytes / 2, 0,
           file.bytes / 2); /* must not be read */
    CHECK_OK(hr__jpeg_planes(jpeg, &job, &second));
    CHECK((uint8_t *)second.ycc.plane[0].data ==
          (uint8_t *)first.ycc.plane[0].data + 8 * first.ycc.plane[0].row_stride + 18);
    CHECK_EQ_INT(seen.count, 1);
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}

TEST(other_scales_and_colour_after_gray_are_decoded_again)
{
    struct hr_jpeg_options options = {.quality = 90, .sampling_x = 2, .sampling_y = 2};
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct hr_jpeg_seen seen = {0};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, &options, 300, 200, 3);
    for (int i = 0; i < 4; i++) {
        struct hr_image_request request = window(&file, 32, 32, 160, 128);

        request.seen = &seen;
        request.scale_log2 = i / 2;
        request.channels = i % 2 == 0 ? HR_CHANNELS_GRAY : HR_CHANNELS_RGB;
        check_view(jpeg, &bench, &file, request, true);
        CHECK_EQ_INT(seen.count, i + 1);
    }
    hr__free(file.data);
    hr__jpeg_destroy(jpeg);
    bench_finish(&bench);
}
