/*
 * ops/video_ops_test.c - which clip of a video the ops choose, and what they say of it.
 * The videos are those of the fuzzer's corpus: 24 frames of 48x32, 12 in a second.
 */
#include "ops/ops_test_util.h"

#include "codec/video.h"

#define FRAMES 24
#define FRAME_BYTES (48 * 32 * 3)

static struct bench b;
static char *file;
static size_t file_bytes;

static void setup(void)
{
    char version[64], path[600];

    if (hr__video_version(version, sizeof version, NULL) != HR_OK)
        SKIP("FFmpeg's libraries are missing");
    bench_init(&b);
    snprintf(path, sizeof path, "%s/fuzz/corpus/video/h264.mkv", check_source_dir());
    CHECK_OK(hr__file_read(path, 1 << 20, &file, &file_bytes, NULL));
}

static void finish(void)
{
    bench_finish(&b);
    hr__free(file);
}

static enum hr_err decode(const char *params)
{
    bench_clear(&b);
    bench_put_bytes(&b, "data", file, file_bytes);
    return bench_op(&b, "video.decode", params);
}

static int64_t start(void)
{
    return *(const int64_t *)bench_value(&b, "start")->data;
}

TEST(a_clip_is_chosen_by_place)
{
    setup();
    CHECK_OK(decode("{frames: 4, stride: 2, at: start, start: 3, start_to: start}"));
    CHECK_EQ_INT(start(), 3);
    CHECK_OK(decode("{frames: 4, stride: 2, at: center, start_to: start}"));
    CHECK_EQ_INT(start(), (FRAMES - 7) / 2);
    CHECK_OK(decode("{frames: 4, stride: 2, at: end, start_to: start}"));
    CHECK_EQ_INT(start(), FRAMES - 7);
    finish();
}

TEST(random_clips_start_everywhere)
{
    bool seen[FRAMES] = {false};

    setup();
    for (int i = 0; i < 200; i++) {
        b.id.index = (uint64_t)i;
        CHECK_OK(decode("{frames: 20, size: 4, start: 1, start_to: start}"));
        CHECK(start() >= 1 && start() <= 4);
        seen[start()] = true;
    }
    CHECK(seen[1] && seen[2] && seen[3] && seen[4]);
    finish();
}

TEST(a_clip_starts_where_a_field_says)
{
    int64_t from = 9;
    unsigned char *whole, *clip;
    size_t bytes;

    setup();
    CHECK_OK(decode("{frames: 24, at: start}"));
    whole = bench_bytes(&b, "video", &bytes);
    CHECK_EQ_INT(bytes, FRAMES * FRAME_BYTES);
    bench_clear(&b);
    bench_put_bytes(&b, "data", file, file_bytes);
    hr__value_set_tensor(bench_put(&b, "from"), HR_I64, 0, NULL, &from, NULL);
    bench_field(&b, "from")->dtype = HR_I64;
    CHECK_OK(bench_op(&b, "video.decode", "{frames: 2, stride: 5, start_from: from}"));
    clip = bench_bytes(&b, "video", &bytes);
    CHECK_EQ_INT(bytes, 2 * FRAME_BYTES);
    CHECK_BYTES(clip, whole + 9 * FRAME_BYTES, FRAME_BYTES);
    CHECK_BYTES(clip + FRAME_BYTES, whole + 14 * FRAME_BYTES, FRAME_BYTES);
    free(whole);
    free(clip);
    finish();
}

TEST(a_video_says_its_rate_and_duration)
{
    setup();
    CHECK_OK(decode("{frames: 1, fps_to: fps, duration_to: duration}"));
    CHECK_NEAR(*(const double *)bench_value(&b, "fps")->data, 12, 0.02);
    CHECK_NEAR(*(const double *)bench_value(&b, "duration")->data, 2, 0.003);
    finish();
}

TEST(a_short_video_is_refused_or_its_last_frame_repeats)
{
    unsigned char *clip;
    size_t bytes;

    setup();
    CHECK_ERR(HR_ERR_RANGE, decode("{frames: 30}"));
    CHECK_HAS(b.error.message,
              "the video has 24 frames from frame 0 on, and a clip spans 30");
    CHECK_ERR(HR_ERR_RANGE, decode("{frames: 1, start: 24}"));
    CHECK_HAS(b.error.message, "24 frames, and the clip starts at frame 24");
    CHECK_OK(decode("{frames: 30, too_short: last}"));
    clip = bench_bytes(&b, "video", &bytes);
    CHECK_EQ_INT(bytes, 30 * FRAME_BYTES);
    CHECK_BYTES(clip + 29 * FRAME_BYTES, clip + 23 * FRAME_BYTES, FRAME_BYTES);
    free(clip);
    finish();
}

TEST(a_clip_that_takes_too_much_memory_is_refused)
{
    setup();
    CHECK_ERR(HR_ERR_LIMIT, decode("{frames: 2, bytes_max: 9215}"));
    CHECK_HAS(b.error.message,
              "2 frames of 48x32 take more than the limit of 9215 bytes");
    CHECK_OK(decode("{frames: 2, bytes_max: 9216}"));
    CHECK_ERR(HR_ERR_LIMIT, decode("{frames: 2, pixels_max: 100}"));
    finish();
}
