/*
 * fuzz/fuzz_video.c - any bytes as a video file: its first frames, and one of the others.
 * FFmpeg's libraries are not built with the fuzzer's checks, so this finds faults in how
 * they are used rather than in them.
 */
#include "codec/video.h"

#include <math.h>
#include <stdlib.h>

#define SIDE 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct hr_video_limits limits = {.pixels_max = 1 << 16, .frames_max = 200};
    struct hr_video_clip clip = {0, 3, 2, SIDE, SIDE};
    static uint8_t frames[3 * SIDE * SIDE * 3];
    struct hr_error error = {0};
    struct hr_video_info info;
    struct hr_video *video;

    if (hr__video_open(data, bytes, &limits, &video, &error) != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    hr__video_info(video, &info);
    if (info.frames < 1 || info.frames > limits.frames_max || isnan(info.fps) ||
        isnan(info.duration) || (int64_t)info.width * info.height > limits.pixels_max)
        abort();
    for (int round = 0; round < 2; round++) {
        if (hr__video_decode(video, &clip, frames, &error) != HR_OK &&
            error.message[0] == '\0')
            abort();
        clip.start = data[bytes - 1] % info.frames;
    }
    hr__video_close(video);
    return 0;
}
