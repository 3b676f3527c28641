/*
 * codec/image_jpeg_damage_test.c - JPEG files that are truncated, damaged, unusual or
 * hostile: what is rejected, with which message, and what is accepted anyway.
 */
#include "codec/jpeg_test_util.h"

/* Offset of the first marker 0xFF `marker`; SIZE_MAX if there is none. */
static size_t find_marker(const struct photo *file, int marker)
{
    size_t i;

    for (i = 0; i + 1 < file->bytes; i++)
        if (file->data[i] == 0xFF && file->data[i + 1] == marker)
            return i;
    return SIZE_MAX;
}

/* Inserts bytes at `at`; the file is malloc()ed afterwards. */
static void insert(struct photo *file, size_t at, const void *bytes, size_t count)
{
    uint8_t *data = malloc(file->bytes + count);

    CHECK(data != NULL && at <= file->bytes);
    memcpy(data, file->data, at);
    memcpy(data + at, bytes, count);
    memcpy(data + at + count, file->data + at, file->bytes - at);
    free(file->data);
    file->data = data;
    file->bytes += count;
}

TEST(every_prefix_of_a_file_is_refused_or_right)
{
    struct hr_jpeg_options plain = {.sampling_x = 2, .sampling_y = 2},
                           restarts = {.restart_rows = 1},
                           progressive = {
                               .sampling_x = 2, .sampling_y = 1, .progressive = true};
    const struct hr_jpeg_options options[] = {plain, restarts, progressive};
    struct bench bench;
    size_t i;

    bench_init(&bench);
    for (i = 0; i < 3; i++) {
        struct photo file = make_photo(&bench, &options[i], 19, 21, 3);

        check_prefixes(&bench, file.data, file.bytes);
        hr__free(file.data);
    }
    bench_finish(&bench);
}

TEST(damaged_scan_data_is_refused_with_the_words_of_libjpeg)
{
    struct hr_jpeg_options options = {.restart_rows = 1};
    struct hr_image_part part = {.x = -7};
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    size_t at;

    bench_init(&bench);
    file = make_photo(&bench, &options, 64, 64, 3);
    at = find_marker(&file, 0xD2); /* a restart marker */
    CHECK(at != SIZE_MAX);
    file.data[at + 1] = 0xD5;
    CHECK_ERR(HR_ERR_FORMAT, decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB,
                                          &part, &error));
    CHECK_HAS(error.message,
              "JPEG: Corrupt JPEG data: found marker 0xd5 instead of RST2");
    CHECK_EQ_INT(part.x, -7);
    hr__free(file.data);
    bench_finish(&bench);
}

TEST(damage_below_the_window_does_not_matter)
{
    struct hr_image_part part;
    struct hr_image_request request;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, NULL, 64, 64, 3);
    request = whole(&file.info);
    CHECK_ERR(HR_ERR_FORMAT,
              hr__image_decode(bench.decoder, &bench.arena, file.data, file.bytes * 3 / 4,
                               &file.info, &request, &part, &error));
    CHECK_HAS(error.message, "remature end");
    request.height = 24;
    CHECK_OK(hr__image_decode(bench.decoder, &bench.arena, file.data, file.bytes * 3 / 4,
                              &file.info, &request, &part, &error));
    hr__free(file.data);
    bench_finish(&bench);
}

TEST(stray_bytes_between_header_segments_are_accepted)
{
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, NULL, 9, 9, 3);
    insert(&file, find_marker(&file, 0xDB), "\1\2\3\xFF\0\4\xFF\xFF\xFF", 9);
    CHECK_OK(decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &part, &error));
    free(file.data);
    bench_finish(&bench);
}

/* Stray bytes after a scan mean that the decoder went out of sync earlier. libjpeg
 * notices only those beyond the 8 bytes that it reads ahead. */
TEST(stray_bytes_after_a_scan_are_refused_but_not_before_the_end)
{
    struct hr_jpeg_options options = {.progressive = true};
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    size_t at;

    bench_init(&bench);
    file = make_photo(&bench, &options, 19, 19, 3);
    insert(&file, file.bytes - 2, "\1\2\3\4\5\6\7\1\2\3\4\5\6\7\1\2", 16);
    CHECK_OK(decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &part, &error));
    for (at = file.bytes - 1; file.data[at] != 0xFF || file.data[at + 1] != 0xDA; at--)
        ;
    while (file.data[at] != 0xFF || file.data[at + 1] != 0xC4)
        at--; /* the table before the last scan */
    insert(&file, at, "\1\2\3\4\5\6\7\1\2\3\4\5\6\7\1\2", 16);
    CHECK_ERR(HR_ERR_FORMAT, decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB,
                                          &part, &error));
    CHECK_HAS(error.message, "extraneous bytes");
    free(file.data);
    bench_finish(&bench);
}

TEST(an_unknown_jfif_revision_is_accepted)
{
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, NULL, 9, 9, 3);
    CHECK_BYTES(file.data + 6, "JFIF", 5);
    file.data[11] = 9;
    CHECK_OK(decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &part, &error));
    hr__free(file.data);
    bench_finish(&bench);
}

TEST(the_tables_of_one_photo_do_not_leak_into_the_next)
{
    struct hr_image_part part;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    size_t at;

    bench_init(&bench);
    file = make_photo(&bench, NULL, 9, 9, 3);
    CHECK_OK(decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &part, &error));
    at = find_marker(&file, 0xDB);
    file.data[at + 1] = 0xEB; /* the quantisation table becomes an APP11 segment */
    CHECK_ERR(HR_ERR_FORMAT, decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB,
                                          &part, &error));
    CHECK_HAS(error.message, "Quantization table");
    hr__free(file.data);
    bench_finish(&bench);
}

TEST(bombs_are_refused_before_memory_is_allocated)
{
    struct hr_jpeg_options options = {.progressive = true};
    struct hr_image_request request;
    struct hr_image_part part;
    struct hr_image_info info;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    size_t at;

    bench_init(&bench);
    file = make_photo(&bench, &options, 16, 16, 3);
    at = find_marker(&file, 0xC2);
    memcpy(file.data + at + 5, "\xFF\0\xFF\0", 4); /* 65280 x 65280 */
    CHECK_OK(hr__image_probe(file.data, file.bytes, &info, &error));
    CHECK_EQ_INT(info.width, 65280);
    request = whole(&info);
    CHECK_ERR(HR_ERR_LIMIT, hr__image_decode(bench.decoder, &bench.arena, file.data,
                                             file.bytes, &info, &request, &part, &error));
    CHECK_HAS(error.message, "JPEG has 65280x65280 pixels, the limit is 268435456");
    request.pixels_max = UINT64_MAX;
    CHECK_ERR(HR_ERR_FORMAT,
              hr__image_decode(bench.decoder, &bench.arena, file.data, file.bytes, &info,
                               &request, &part, &error));
    CHECK_HAS(error.message, "too short for its dimensions");
    hr__free(file.data);
    bench_finish(&bench);
}

static void set_two_scans(struct jpeg_compress_struct *info, const void *user)
{
    static const jpeg_scan_info spectral[] = {
        {1, {0}, 0, 0,  0, 0},
        {1, {0}, 1, 63, 0, 0},
    };

    (void)user;
    info->scan_info = spectral;
    info->num_scans = 2;
}

/* The file's last scan repeated many times: nothing is wrong but their number. */
TEST(a_file_of_very_many_scans_is_refused)
{
    struct hr_image_part part;
    struct hr_pixels pixels;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;
    size_t at, scan = 0, bytes, i;
    uint8_t *tail;

    bench_init(&bench);
    pixels = make_picture(&bench, 16, 16, 1);
    file = make_photo_with(&pixels, set_two_scans, NULL);
    free(pixels.data);
    for (at = 0; at + 1 < file.bytes; at++)
        if (file.data[at] == 0xFF && file.data[at + 1] == 0xDA)
            scan = at;
    bytes = file.bytes - 2 - scan;
    tail = malloc(bytes);
    CHECK(tail != NULL);
    memcpy(tail, file.data + scan, bytes);
    for (i = 2; i < 500; i++)
        insert(&file, file.bytes - 2, tail, bytes);
    CHECK_OK(decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB, &part, &error));
    insert(&file, file.bytes - 2, tail, bytes);
    CHECK_ERR(HR_ERR_LIMIT, decode_whole(&bench, file.data, file.bytes, HR_CHANNELS_RGB,
                                         &part, &error));
    CHECK_EQ_STR(error.message, "JPEG: more than 500 scans");
    free(tail);
    free(file.data);
    bench_finish(&bench);
}

TEST(unsupported_kinds_of_jpeg_are_named)
{
    static const struct {
        int marker, precision, components;
        const char *text;
    } kinds[] = {
        {0xC3, 8,  3, "lossless JPEG"         },
        {0xC9, 8,  3, "arithmetic-coded JPEG" },
        {0xCA, 8,  3, "arithmetic-coded JPEG" },
        {0xC5, 8,  3, "hierarchical JPEG"     },
        {0xC1, 12, 3, "JPEG with 12 bits"     },
        {0xC0, 8,  2, "JPEG with 2 components"},
        {0xC0, 8,  5, "JPEG with 5 components"},
    };
    struct hr_image_info info;
    size_t i;

    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        uint8_t file[64] = {0xFF, 0xD8, 0xFF, (uint8_t)kinds[i].marker};
        struct hr_error error = {0};
        int segment = 8 + 3 * kinds[i].components;

        file[5] = (uint8_t)segment;
        file[6] = (uint8_t)kinds[i].precision;
        file[8] = file[10] = 8;
        file[11] = (uint8_t)kinds[i].components;
        memcpy(file + 4 + segment, "\xFF\xDA", 2);
        CHECK_ERR(HR_ERR_UNSUPPORTED, hr__image_probe(file, sizeof file, &info, &error));
        CHECK_HAS(error.message, kinds[i].text);
    }
}

TEST(each_failing_allocation_leaves_nothing_behind)
{
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, NULL, 9, 9, 3);
    check_allocations(file.data, file.bytes);
    hr__free(file.data);
    bench_finish(&bench);
}

/* Adds an APP1 segment with EXIF orientation 6 just after the start marker. */
TEST(orientation_comes_from_the_exif_segment)
{
    static const uint8_t app1[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,  'M', 'M',
                                   0,    42,   0, 0,  0,   8,   0,   1,   1, 18, 0,   3,
                                   0,    0,    0, 1,  0,   6,   0,   0,   0, 0,  0,   0};
    struct hr_image_info info;
    struct hr_error error = {0};
    struct bench bench;
    struct photo file;

    bench_init(&bench);
    file = make_photo(&bench, NULL, 9, 5, 3);
    insert(&file, 2, app1, sizeof app1);
    CHECK_OK(hr__image_probe(file.data, file.bytes, &info, &error));
    CHECK_EQ_INT(info.orientation, 6);
    CHECK_EQ_INT(info.width, 9);
    free(file.data);
    bench_finish(&bench);
}
