/*
 * ops/video.c - see video.h.
 */
#include "ops/video.h"

const char *const hr__shorts[] = {"error", "last", NULL};

enum hr_err hr__clip_open(struct hr_op_ctx *ctx, const struct hr_value *from,
                          const struct hr_clip_params *clip, struct hr_video **ret_video)
{
    const struct hr_video_limits limits = {.pixels_max = clip->pixels_max,
                                           .frames_max = clip->frames_max};

    if (from->kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field has no bytes to decode");
    return hr__video_open(from->data, from->bytes, &limits, ret_video, ctx->error);
}

enum hr_err
hr__clip_spare(struct hr_op_ctx *ctx, const struct hr_clip_params *clip,
               const struct hr_video *video, int64_t first, int64_t *ret_spare)
{
    int64_t span = (clip->frames - 1) * clip->stride + 1;
    struct hr_video_info info;

    hr__video_info(video, &info);
    if (first < 0 || first >= info.frames)
        return hr__fail(ctx->error, HR_ERR_RANGE,
                        "the video has %lld frames, and the clip starts at frame %lld",
                        (long long)info.frames, (long long)first);
    *ret_spare = info.frames - first - span;
    if (*ret_spare >= 0)
        return HR_OK;
    *ret_spare = 0;
    if (clip->too_short == HR_SHORT_LAST)
        return HR_OK;
    return hr__fail(ctx->error, HR_ERR_RANGE,
                    "the video has %lld frames from frame %lld on, and a clip spans "
                    "%lld: take fewer `frames`, a smaller `stride`, or `too_short: last`",
                    (long long)(info.frames - first), (long long)first, (long long)span);
}

enum hr_err hr__infer_encoded(struct hr_infer *infer, size_t field)
{
    const struct hr_field *from = infer->fields[field];

    if (from->kind == HR_FIELD_BYTES)
        return HR_OK;
    return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                          "field \"%s\" has no bytes to decode", from->name);
}
