/*
 * codec/video.h - encoded video to frames, by FFmpeg's libraries where the build has them
 * (HR_VIDEO), from memory and in one thread.
 *
 * A video is demuxed once, when it is opened: all its frames are numbered by the times
 * that the file gives them, so that a frame's number never depends on how a decoder
 * reaches it. Decoding starts at the last key frame before a clip and ends with the clip.
 */
#ifndef HR_CODEC_VIDEO_H
#define HR_CODEC_VIDEO_H

#include "headrace/base.h"

struct hr_video;

/* What a file may ask for; more gives HR_ERR_LIMIT. */
struct hr_video_limits {
    int64_t pixels_max; /* of a frame */
    int64_t frames_max; /* of the file */
};

struct hr_video_info {
    int64_t frames;
    double fps;      /* mean over the file; of one frame what its header says, or 0 */
    double duration; /* seconds, with the last frame */
    int32_t width, height;
};

/* Frames start, start + stride, ...; past the end the last frame again. */
struct hr_video_clip {
    int64_t start, count, stride;
    int32_t width, height; /* of the result; bicubic unless they are the video's */
};

/* Writes the version of FFmpeg, which is loaded. HR_ERR_STATE if the build is without it,
 * HR_ERR_UNSUPPORTED if it is not installed. */
HR_CHECK enum hr_err hr__video_version(char *text, size_t room, struct hr_error *reterr);

/*
 * Demuxes the file; `data` must outlive the video. HR_ERR_FORMAT if it is damaged or has
 * no video, HR_ERR_UNSUPPORTED for formats and codecs that are not read or a build
 * without FFmpeg, HR_ERR_LIMIT, HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__video_open(const void *data, size_t bytes, const struct hr_video_limits *limits,
               struct hr_video **ret_video, struct hr_error *reterr);
void hr__video_close(struct hr_video *video); /* NULL is allowed */

void hr__video_info(const struct hr_video *video, struct hr_video_info *ret_info);

/* The time of a frame in seconds, from that of the first. */
double hr__video_time(const struct hr_video *video, int64_t frame);

/* Writes the clip's frames, [count, height, width, 3] levels of RGB. HR_ERR_FORMAT if a
 * frame that is needed is damaged, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__video_decode(struct hr_video *video, const struct hr_video_clip *clip, uint8_t *to,
                 struct hr_error *reterr);

#endif
