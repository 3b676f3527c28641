/*
 * ops/video.h - shared by the ops on encoded video: clips and limits.
 */
#ifndef HR_OPS_VIDEO_H
#define HR_OPS_VIDEO_H

#include "codec/video.h"
#include "op/op.h"

/* Which frames a clip has, and what to do with videos that are too short. */
struct hr_clip_params {
    int64_t frames, stride;
    int too_short; /* enum hr_short */
    int64_t pixels_max, frames_max;
};

enum hr_short { HR_SHORT_ERROR, HR_SHORT_LAST };
extern const char *const hr__shorts[];

/* Rows of the members of `struct_`.clip. */
#define HR_P_CLIP(struct_)                                                               \
    HR_P_IN(HR_PARAM_INT, struct_, clip, frames, .fallback = "16", HR_RANGE(1, 1 << 20), \
            .unit = "frames", .help = "frames of a clip"),                               \
        HR_P_IN(HR_PARAM_INT, struct_, clip, stride, .fallback = "1",                    \
                HR_RANGE(1, 1 << 20), .unit = "frames",                                  \
                .help = "from each frame of a clip to its next, in frames of the "       \
                        "video"),                                                        \
        HR_P_IN(HR_PARAM_ENUM, struct_, clip, too_short, .fallback = "error",            \
                .names = hr__shorts,                                                     \
                .help = "what becomes of a video that is shorter than a clip: error, a " \
                        "bad record; last, its last frame again and again")
#define HR_P_VIDEO_LIMITS(struct_)                                                       \
    HR_P_IN(HR_PARAM_INT, struct_, clip, pixels_max, .fallback = "67108864",             \
            HR_RANGE(1, 1LL << 30), .unit = "pixels",                                    \
            .help = "refuse videos whose frames have more"),                             \
        HR_P_IN(HR_PARAM_INT, struct_, clip, frames_max, .fallback = "1000000",          \
                HR_RANGE(1, 1LL << 32), .unit = "frames",                                \
                .help = "refuse videos that have more")

/* Opens the video in the bytes of a field. Close it. */
HR_CHECK enum hr_err
hr__clip_open(struct hr_op_ctx *ctx, const struct hr_value *from,
              const struct hr_clip_params *clip, struct hr_video **ret_video);

/* Frames of the video that may come before a clip, of those from `first` on: 0 if it just
 * fits, or does not and `too_short` allows it. */
HR_CHECK enum hr_err
hr__clip_spare(struct hr_op_ctx *ctx, const struct hr_clip_params *clip,
               const struct hr_video *video, int64_t first, int64_t *ret_spare);

/* infer: the field at `field` holds encoded bytes. */
HR_CHECK enum hr_err hr__infer_encoded(struct hr_infer *infer, size_t field);

#endif
