/*
 * codec/video_test.c - videos that FFmpeg's encoders make here: clips have the frames of
 * the whole, damage and limits are reported, and nothing that a file names is opened.
 */
#include "codec/video.h"

#include "core/error.h"
#include "tests/support/check.h"

#ifndef HR_VIDEO

TEST(a_build_without_ffmpeg_says_so)
{
    const struct hr_video_limits limits = {.pixels_max = 1, .frames_max = 1};
    struct hr_error error = {0};
    struct hr_video *video;

    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__video_open("", 0, &limits, &video, &error));
    CHECK_HAS(error.message, "libavformat-dev");
}

#else

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/video_priv.h"
#include "core/file.h"
#include "core/rng.h"

#define WIDTH 64
#define HEIGHT 48
#define FRAMES 40
#define FRAME_BYTES ((size_t)WIDTH * HEIGHT * 3)

static const struct hr_video_limits limits = {.pixels_max = 1 << 20, .frames_max = 1000};

/* ---- making videos ---- */

static const struct kind {
    const char *name, *format, *encoder;
    enum AVPixelFormat pixels;
    int b_frames, threshold; /* of the levels, which lossy codecs change */
} kinds[] = {
    {"lossless RGB in Matroska", "matroska", "ffv1",       AV_PIX_FMT_BGR0,     0, 0 },
    {"MPEG-4 in MP4",            "mp4",      "mpeg4",      AV_PIX_FMT_YUV420P,  2, 24},
    {"MPEG-2 in a stream",       "mpegts",   "mpeg2video", AV_PIX_FMT_YUV420P,  2, 24},
    {"JPEGs in NUT",             "nut",      "mjpeg",      AV_PIX_FMT_YUVJ420P, 0, 24},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* The level of a frame: the frame's number, far apart. */
static int level_of(int frame)
{
    return 20 + frame * 5;
}

static void fill(AVFrame *f, int number)
{
    bool rgb = f->format == AV_PIX_FMT_BGR0;
    int level = f->format == AV_PIX_FMT_YUV420P ? 16 + level_of(number) * 219 / 255
                                                : level_of(number);

    CHECK(av_frame_make_writable(f) == 0);
    for (int y = 0; y < HEIGHT; y++)
        memset(f->data[0] + y * f->linesize[0], level, rgb ? WIDTH * 4 : WIDTH);
    for (int k = 1; k < 3 && !rgb; k++)
        for (int y = 0; y < HEIGHT / 2; y++)
            memset(f->data[k] + y * f->linesize[k], 128, WIDTH / 2);
    f->pts = number;
}

/* Packets that the encoder has ready; `f` NULL: all that are left. */
static void encode(AVFormatContext *out, AVCodecContext *encoder, const AVFrame *f)
{
    AVPacket *packet = av_packet_alloc();

    CHECK(avcodec_send_frame(encoder, f) == 0);
    while (avcodec_receive_packet(encoder, packet) == 0) {
        packet->duration = 1;
        av_packet_rescale_ts(packet, encoder->time_base, out->streams[0]->time_base);
        packet->stream_index = 0;
        CHECK(av_interleaved_write_frame(out, packet) == 0);
    }
    av_packet_free(&packet);
}

static AVCodecContext *encoder_of(const struct kind *kind)
{
    const AVCodec *codec = avcodec_find_encoder_by_name(kind->encoder);
    AVCodecContext *encoder = avcodec_alloc_context3(codec);

    CHECK(encoder != NULL);
    encoder->width = WIDTH;
    encoder->height = HEIGHT;
    encoder->pix_fmt = kind->pixels;
    encoder->time_base = (AVRational){1, 25};
    encoder->framerate = (AVRational){25, 1};
    encoder->gop_size = 10;
    encoder->max_b_frames = kind->b_frames;
    encoder->thread_count = 1;
    encoder->bit_rate = 2000000;
    encoder->flags |= AV_CODEC_FLAG_BITEXACT;
    if (strcmp(kind->format, "mp4") == 0 || strcmp(kind->format, "matroska") == 0)
        encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    CHECK(avcodec_open2(encoder, codec, NULL) == 0);
    return encoder;
}

/* A file of FRAMES flat frames; av_free() it. */
static uint8_t *make_video(const struct kind *kind, size_t *ret_bytes)
{
    AVCodecContext *encoder = encoder_of(kind);
    AVFrame *f = av_frame_alloc();
    AVFormatContext *out;
    AVStream *stream;
    uint8_t *data;

    CHECK(avformat_alloc_output_context2(&out, NULL, kind->format, NULL) >= 0);
    out->flags |= AVFMT_FLAG_BITEXACT;
    stream = avformat_new_stream(out, NULL);
    CHECK(avcodec_parameters_from_context(stream->codecpar, encoder) == 0);
    stream->time_base = encoder->time_base;
    CHECK(avio_open_dyn_buf(&out->pb) == 0);
    CHECK(avformat_write_header(out, NULL) >= 0);
    f->format = kind->pixels;
    f->width = WIDTH;
    f->height = HEIGHT;
    CHECK(av_frame_get_buffer(f, 0) == 0);
    for (int i = 0; i < FRAMES; i++) {
        fill(f, i);
        encode(out, encoder, f);
    }
    encode(out, encoder, NULL);
    CHECK(av_write_trailer(out) == 0);
    *ret_bytes = (size_t)avio_close_dyn_buf(out->pb, &data);
    avformat_free_context(out);
    av_frame_free(&f);
    avcodec_free_context(&encoder);
    return data;
}

/* ---- reading them ---- */

static enum hr_err read_clip(const void *data, size_t bytes, struct hr_video_clip clip,
                             uint8_t *to, struct hr_error *error)
{
    struct hr_video *video;
    enum hr_err err;

    memset(error, 0, sizeof *error);
    HR_TRY(hr__video_open(data, bytes, &limits, &video, error));
    err = hr__video_decode(video, &clip, to, error);
    hr__video_close(video);
    return err;
}

static struct hr_video_clip clip_of(int64_t start, int64_t count, int64_t stride)
{
    return (struct hr_video_clip){start, count, stride, WIDTH, HEIGHT};
}

static void check_levels(const struct kind *kind, const uint8_t *frames, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < FRAME_BYTES; k += 7)
            if (abs(frames[(size_t)i * FRAME_BYTES + k] - level_of((int)i)) >
                kind->threshold)
                check_failed(__FILE__, __LINE__, "%s: frame %d has level %d, not %d",
                             kind->name, (int)i, frames[(size_t)i * FRAME_BYTES + k],
                             level_of((int)i));
}

static void check_clips(const struct kind *kind, const uint8_t *data, size_t bytes,
                        const uint8_t *whole)
{
    uint8_t *clip = malloc(FRAMES * FRAME_BYTES);
    struct hr_error error;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 25; round++) {
        int64_t start = (int64_t)hr__rng_below(&rng, FRAMES);
        int64_t count = 1 + (int64_t)hr__rng_below(&rng, 9);
        int64_t stride = 1 + (int64_t)hr__rng_below(&rng, 6);

        if (read_clip(data, bytes, clip_of(start, count, stride), clip, &error) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s, %d + %d * %d: %s", kind->name,
                         (int)start, (int)count, (int)stride, error.message);
        for (int64_t i = 0; i < count; i++) {
            int64_t at = start + i * stride < FRAMES ? start + i * stride : FRAMES - 1;

            CHECK_BYTES(clip + (size_t)i * FRAME_BYTES, whole + (size_t)at * FRAME_BYTES,
                        FRAME_BYTES);
        }
    }
    free(clip);
}

TEST(clips_have_the_frames_of_the_whole)
{
    for (size_t k = 0; k < KINDS; k++) {
        uint8_t *whole = malloc(FRAMES * FRAME_BYTES), *data;
        struct hr_error error;
        size_t bytes;

        data = make_video(&kinds[k], &bytes);
        if (read_clip(data, bytes, clip_of(0, FRAMES, 1), whole, &error) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s: %s", kinds[k].name, error.message);
        check_levels(&kinds[k], whole, FRAMES);
        check_clips(&kinds[k], data, bytes, whole);
        free(whole);
        av_free(data);
    }
}

TEST(a_video_knows_its_frames_rate_and_duration)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct hr_video_info info;
        struct hr_video *video;
        size_t bytes;
        uint8_t *data = make_video(&kinds[k], &bytes);

        CHECK_OK(hr__video_open(data, bytes, &limits, &video, NULL));
        hr__video_info(video, &info);
        CHECK_EQ_INT(info.frames, FRAMES);
        CHECK_EQ_INT(info.width, WIDTH);
        CHECK_EQ_INT(info.height, HEIGHT);
        CHECK_NEAR(info.fps, 25, 0.01);
        CHECK_NEAR(info.duration, FRAMES / 25.0, 0.002);
        CHECK_NEAR(hr__video_time(video, 10), 0.4, 0.002);
        hr__video_close(video);
        av_free(data);
    }
}

TEST(frames_are_scaled)
{
    struct hr_video_clip clip = {.start = 3, .count = 2, .stride = 1, 10, 7};
    uint8_t small[2 * 10 * 7 * 3], *data;
    struct hr_error error;
    size_t bytes;

    data = make_video(&kinds[0], &bytes);
    CHECK_OK(read_clip(data, bytes, clip, small, &error));
    for (size_t i = 0; i < sizeof small; i++)
        CHECK_EQ_INT(small[i], level_of(i < sizeof small / 2 ? 3 : 4));
    av_free(data);
}

/* ---- what ffmpeg's command gives ---- */

static void check_command(const struct kind *kind, const char *path, const uint8_t *whole)
{
    uint8_t *theirs = malloc(FRAMES * FRAME_BYTES + 1);
    char command[2000];
    FILE *pipe;
    size_t got;

    snprintf(command, sizeof command,
             "ffmpeg -v error -flags bitexact -i %s -fps_mode passthrough -sws_flags "
             "bicubic+accurate_rnd+bitexact+full_chroma_int -f rawvideo -pix_fmt rgb24 -",
             path);
    pipe = popen(command, "r"); /* NOLINT(cert-env33-c): a test */
    CHECK(pipe != NULL);
    got = fread(theirs, 1, FRAMES * FRAME_BYTES + 1, pipe);
    CHECK_EQ_INT(pclose(pipe), 0);
    CHECK_EQ_INT(got, FRAMES * FRAME_BYTES);
    if (memcmp(theirs, whole, FRAMES * FRAME_BYTES) != 0)
        check_failed(__FILE__, __LINE__, "%s: ffmpeg's frames differ", kind->name);
    free(theirs);
}

TEST(frames_are_those_of_the_ffmpeg_command)
{
    if (system("command -v ffmpeg >/dev/null") != 0) /* NOLINT(cert-env33-c): a test */
        SKIP("there is no ffmpeg command");
    for (size_t k = 0; k < KINDS; k++) {
        uint8_t *whole = malloc(FRAMES * FRAME_BYTES), *data;
        struct hr_error error;
        char path[600];
        size_t bytes;

        data = make_video(&kinds[k], &bytes);
        snprintf(path, sizeof path, "%s/video.%s", check_temp_dir(), kinds[k].format);
        CHECK_OK(hr__file_replace(path, data, bytes, NULL));
        CHECK_OK(read_clip(data, bytes, clip_of(0, FRAMES, 1), whole, &error));
        check_command(&kinds[k], path, whole);
        free(whole);
        av_free(data);
    }
}

/* ---- what is wrong ---- */

/* A copy that ends where the data does, so that ASan sees what is read after it. */
static enum hr_err
read_copy(const uint8_t *data, size_t bytes, uint8_t *to, struct hr_error *error)
{
    uint8_t *copy = malloc(bytes > 0 ? bytes : 1);
    enum hr_err err;

    memcpy(copy, data, bytes);
    err = read_clip(copy, bytes, clip_of(0, FRAMES, 1), to, error);
    free(copy);
    return err;
}

/* Decoders do not notice all damage; what they notice is an error with a text. */
TEST(a_damaged_file_crashes_nothing)
{
    uint8_t *to = malloc(FRAMES * FRAME_BYTES);
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    for (size_t k = 0; k < KINDS; k++) {
        size_t bytes, refused = 0;
        uint8_t *data = make_video(&kinds[k], &bytes);

        for (int round = 0; round < 60; round++) {
            size_t at = hr__rng_below(&rng, bytes);
            struct hr_error error;

            data[at] ^= 0x10;
            if (read_copy(data, bytes, to, &error) != HR_OK) {
                CHECK(error.message[0] != '\0');
                refused++;
            }
            data[at] ^= 0x10;
        }
        CHECK(refused > 0);
        av_free(data);
    }
    free(to);
}

TEST(a_file_that_is_cut_short_is_refused_or_shorter)
{
    uint8_t *to = malloc(FRAMES * FRAME_BYTES);

    for (size_t k = 0; k < KINDS; k++) {
        size_t bytes;
        uint8_t *data = make_video(&kinds[k], &bytes);

        for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 13) {
            struct hr_error error;

            if (read_copy(data, cut, to, &error) != HR_OK)
                CHECK(error.message[0] != '\0');
        }
        av_free(data);
    }
    free(to);
}

TEST(what_is_no_video_is_refused_and_names_open_nothing)
{
    static const char *const files[] = {
        "",
        "no video at all, but a text that is long enough to be looked at by a demuxer",
        "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n",
        "ffconcat version 1.0\nfile /etc/passwd\n",
        "RIFF\x24\0\0\0WAVEfmt ",
    };

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct hr_error error = {0};
        struct hr_video *video;

        CHECK_ERR(HR_ERR_FORMAT,
                  hr__video_open(files[i], strlen(files[i]), &limits, &video, &error));
        CHECK_HAS(error.message, "the data is no video file that can be read");
    }
}

TEST(limits_are_kept)
{
    struct hr_video_limits small = {.pixels_max = WIDTH * HEIGHT - 1, .frames_max = 1000};
    struct hr_error error = {0};
    struct hr_video *video;
    size_t bytes;
    uint8_t *data = make_video(&kinds[1], &bytes);

    CHECK_ERR(HR_ERR_LIMIT, hr__video_open(data, bytes, &small, &video, &error));
    CHECK_HAS(error.message, "frames of 64x48 have more than the limit of 3071 pixels");
    small = (struct hr_video_limits){.pixels_max = WIDTH * HEIGHT, .frames_max = 39};
    CHECK_ERR(HR_ERR_LIMIT, hr__video_open(data, bytes, &small, &video, &error));
    CHECK_HAS(error.message, "more than the limit of 39 frames");
    small.frames_max = 40;
    CHECK_OK(hr__video_open(data, bytes, &small, &video, &error));
    hr__video_close(video);
    av_free(data);
}

#endif
