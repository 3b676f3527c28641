/*
 * video.decode - makes a clip of frames of a video file's bytes.
 */
#include <stdio.h>
#include <string.h>

#include "ops/image_job.h"
#include "ops/image_size.h"
#include "ops/video.h"

struct decode {
    const char *field, *to, *start_from, *start_to, *fps_to, *duration_to;
    struct hr_clip_params clip;
    int at;
    int64_t start, bytes_max;
    struct hr_ints size;
};

enum { AT_RANDOM, AT_START, AT_CENTER, AT_END };
static const char *const places[] = {"random", "start", "center", "end", NULL};

static const struct hr_param decode_params[] = {
    HR_P_FIELD(struct decode, field, .fallback = "data", .access = HR_ACCESS_TAKE,
               .help = "the field with the encoded bytes; it is dropped"),
    HR_P_FIELD(struct decode, to, .fallback = "video", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the frames"),
    HR_P_CLIP(struct decode),
    HR_P_ENUM(struct decode, at, .fallback = "random", .names = places,
              .help = "which clip of the video"),
    HR_P_INT(struct decode, start, .fallback = "0", HR_RANGE(0, 1e12), .unit = "frames",
             .help = "the first frame that a clip may have"),
    HR_P_FIELD(struct decode, start_from, .access = HR_ACCESS_READ,
               .help = "the field with the clip's first frame, an int64 as video.clips "
                       "gives it; then `at` and `start` do not count"),
    HR_P_INTS(struct decode, size, .items_min = 1, .items_max = 2,
              HR_RANGE(1, HR_IMAGE_SIDE_MAX), .unit = "pixels",
              .help = "[height, width] that frames are scaled to, bicubic, or one number "
                      "for both; absent: as they are"),
    HR_P_FIELD(struct decode, start_to, .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the number of the clip's first frame"),
    HR_P_FIELD(struct decode, fps_to, .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the frames per second of the video"),
    HR_P_FIELD(struct decode, duration_to, .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the duration of the video in seconds"),
    HR_P_VIDEO_LIMITS(struct decode),
    HR_P_BYTES(struct decode, bytes_max, .fallback = "1GiB", HR_RANGE(1, 1LL << 40),
               .help = "refuse clips that would take more memory"),
};

/* The fields as they are bound: those that are not asked for are left out. */
struct bound {
    size_t start_from, start_to, fps_to, duration_to; /* 0: not bound */
};

enum { FIELD_FROM, FIELD_TO, FIELDS };

static struct bound bound_of(const struct decode *p)
{
    size_t count = FIELDS;
    struct bound b = {0};

    b.start_from = p->start_from != NULL ? count++ : 0;
    b.start_to = p->start_to != NULL ? count++ : 0;
    b.fps_to = p->fps_to != NULL ? count++ : 0;
    b.duration_to = p->duration_to != NULL ? count++ : 0;
    return b;
}

/* ---- schema ---- */

static void
set_field(struct hr_field *field, const char *name, enum hr_dtype dtype, int ndim)
{
    int slot = field->slot;

    *field = (struct hr_field){
        .kind = HR_FIELD_TENSOR, .dtype = dtype, .ndim = ndim, .slot = slot};
    snprintf(field->name, sizeof field->name, "%s", name);
}

static enum hr_err infer_numbers(struct hr_infer *infer, const struct bound *b)
{
    const struct decode *p = infer->params;

    if (b->start_from > 0) {
        const struct hr_field *from = infer->fields[b->start_from];

        if (from->kind != HR_FIELD_TENSOR || from->dtype != HR_I64 || from->ndim != 0)
            return hr__infer_fail(infer, "start_from", HR_ERR_TYPE,
                                  "field \"%s\" is no frame number, which is an int64",
                                  from->name);
    }
    if (b->start_to > 0)
        set_field(infer->fields[b->start_to], p->start_to, HR_I64, 0);
    if (b->fps_to > 0)
        set_field(infer->fields[b->fps_to], p->fps_to, HR_F64, 0);
    if (b->duration_to > 0)
        set_field(infer->fields[b->duration_to], p->duration_to, HR_F64, 0);
    return HR_OK;
}

static enum hr_err decode_infer(struct hr_infer *infer)
{
    const struct decode *p = infer->params;
    struct hr_field *to = infer->fields[FIELD_TO];
    struct bound b = bound_of(p);

    for (size_t i = 1; i < infer->field_count; i++)
        for (size_t k = 0; k < i; k++)
            if (infer->fields[i] == infer->fields[k] && i != FIELD_TO)
                return hr__infer_fail(infer, NULL, HR_ERR_ARGUMENT,
                                      "field \"%s\" is named twice",
                                      infer->fields[i]->name);
    if (to != infer->fields[FIELD_FROM])
        HR_TRY(hr__infer_encoded(infer, FIELD_FROM));
    HR_TRY(infer_numbers(infer, &b));
    set_field(to, p->to, HR_U8, 4);
    to->meaning = HR_MEANING_IMAGE_U8;
    to->layout = HR_LAYOUT_HWC;
    hr__dim_set(&to->dims[0], p->clip.frames);
    hr__dim_unknown(&to->dims[1], "height");
    hr__dim_unknown(&to->dims[2], "width");
    hr__dim_set(&to->dims[3], 3);
    if (p->size.count > 0) {
        hr__dim_set(&to->dims[1], hr__size_height(&p->size));
        hr__dim_set(&to->dims[2], hr__size_width(&p->size));
    }
    return HR_OK;
}

/* ---- a record ---- */

/* The clip's first frame. */
static enum hr_err choose(struct hr_op_ctx *ctx, const struct bound *b,
                          const struct hr_video *video, int64_t *ret_start)
{
    const struct decode *p = ctx->params;
    int64_t first = p->start, spare = 0;
    struct hr_rng rng;

    if (b->start_from > 0)
        first = hr__integer_at(HR_I64, ctx->fields[b->start_from]->data);
    HR_TRY(hr__clip_spare(ctx, &p->clip, video, first, &spare));
    *ret_start = first;
    if (b->start_from > 0)
        return HR_OK;
    if (p->at == AT_RANDOM) {
        hr__op_rng(ctx, &rng);
        *ret_start += (int64_t)hr__rng_below(&rng, (uint64_t)spare + 1);
    } else if (p->at != AT_START) {
        *ret_start += p->at == AT_END ? spare : spare / 2;
    }
    return HR_OK;
}

static enum hr_err decode_clip(struct hr_op_ctx *ctx, struct hr_video *video,
                               const struct hr_video_info *info, int64_t start,
                               void **ret_data, int64_t dims[static 4])
{
    const struct decode *p = ctx->params;
    struct hr_video_clip clip = {.start = start,
                                 .count = p->clip.frames,
                                 .stride = p->clip.stride,
                                 .width = info->width,
                                 .height = info->height};
    int64_t bytes;

    if (p->size.count > 0) {
        clip.width = hr__size_width(&p->size);
        clip.height = hr__size_height(&p->size);
    }
    if (__builtin_mul_overflow(clip.count, (int64_t)clip.width * clip.height * 3,
                               &bytes) ||
        bytes > p->bytes_max)
        return hr__fail(ctx->error, HR_ERR_LIMIT,
                        "%lld frames of %dx%d take more than the limit of %lld bytes: "
                        "decode fewer or smaller ones, or raise `bytes_max`",
                        (long long)clip.count, (int)clip.width, (int)clip.height,
                        (long long)p->bytes_max);
    HR_TRY(hr__op_result(ctx, FIELD_TO, (size_t)bytes, ret_data));
    dims[0] = clip.count;
    dims[1] = clip.height;
    dims[2] = clip.width;
    dims[3] = 3;
    return hr__video_decode(video, &clip, *ret_data, ctx->error);
}

static enum hr_err
put_number(struct hr_op_ctx *ctx, size_t field, enum hr_dtype dtype, const void *number)
{
    void *memory;

    if (field == 0)
        return HR_OK;
    HR_TRY(hr__op_alloc(ctx, 8, &memory));
    memcpy(memory, number, 8);
    hr__value_set_tensor(ctx->fields[field], dtype, 0, NULL, memory, NULL);
    return HR_OK;
}

static enum hr_err make(struct hr_op_ctx *ctx, struct hr_video *video)
{
    struct bound b = bound_of(ctx->params);
    struct hr_video_info info;
    int64_t start = 0, dims[4];
    void *data = NULL;

    hr__video_info(video, &info);
    HR_TRY(choose(ctx, &b, video, &start));
    HR_TRY(decode_clip(ctx, video, &info, start, &data, dims));
    HR_TRY(put_number(ctx, b.start_to, HR_I64, &start));
    HR_TRY(put_number(ctx, b.fps_to, HR_F64, &info.fps));
    HR_TRY(put_number(ctx, b.duration_to, HR_F64, &info.duration));
    hr__value_clear(ctx->fields[FIELD_FROM]);
    hr__value_set_tensor(ctx->fields[FIELD_TO], HR_U8, 4, dims, data, NULL);
    ctx->fields[FIELD_TO]->layout = HR_LAYOUT_HWC;
    return HR_OK;
}

static enum hr_err decode_apply(struct hr_op_ctx *ctx)
{
    const struct decode *p = ctx->params;
    struct hr_video *video;
    enum hr_err err;

    HR_TRY(hr__clip_open(ctx, ctx->fields[FIELD_FROM], &p->clip, &video));
    err = make(ctx, video);
    hr__video_close(video);
    return err;
}

const struct hr_op hr_op_video_decode = {
    .name = "video.decode",
    .summary = "decode a clip of a video file to frames",
    .doc =
        "Outputs uint8 `[frames, height, width, 3]`, RGB. The format is found by "
        "content: "
        "MP4, MOV, WebM, Matroska, AVI, MPEG, FLV, Ogg, ASF, NUT and IVF with H.264, "
        "HEVC, VP8, VP9, AV1, MPEG and older codecs, by the machine's FFmpeg libraries, "
        "whose version frames of lossy codecs may depend on. Frame i is the one with the "
        "i-th time of the file, so rates may vary. Decoding starts at the last key frame "
        "before the clip and ends with it, in one thread: threads of the plan decode "
        "different records. Colours are converted by the matrix and range that the file "
        "names, else by BT.601; pixels are taken as square, and a rotation that the file "
        "asks for is not applied. `size` scales frames while they are converted, so that "
        "clips of different videos can be batched. record.flat makes each frame a "
        "record. "
        "For all clips of a video, put video.clips before and give its field as "
        "`start_from`. Damage that the decoder notices, before or within the clip, makes "
        "a bad record.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GROWS,
    HR_PARAMS(decode_params, struct decode),
    .infer = decode_infer,
    .apply = decode_apply,
    .placed = true,
};
