/*
 * codec/video_none.c - video in a build without FFmpeg's libraries.
 */
#include "codec/video.h"

#include "core/error.h"
#include "core/library.h"

enum hr_err hr__video_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__library_left_out("libavformat-dev and libswscale-dev", reterr);
}

enum hr_err
hr__video_open(const void *data, size_t bytes, const struct hr_video_limits *limits,
               struct hr_video **ret_video, struct hr_error *reterr)
{
    (void)data;
    (void)bytes;
    (void)limits;
    (void)ret_video;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this build reads no video: build it with FFmpeg's libraries "
                    "(libavformat-dev, libswscale-dev)");
}

void hr__video_close(struct hr_video *video)
{
    (void)video;
}

void hr__video_info(const struct hr_video *video, struct hr_video_info *ret_info)
{
    (void)video;
    *ret_info = (struct hr_video_info){0};
}

double hr__video_time(const struct hr_video *video, int64_t frame)
{
    (void)video;
    (void)frame;
    return 0;
}

enum hr_err hr__video_decode(struct hr_video *video, const struct hr_video_clip *clip,
                             uint8_t *to, struct hr_error *reterr)
{
    (void)video;
    (void)clip;
    (void)to;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "this build reads no video");
}
