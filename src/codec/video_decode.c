/*
 * codec/video_decode.c - decodes the frames of a clip and converts them to RGB.
 *
 * From the last key frame before the clip to its last frame; frames in between that
 * nothing refers to are skipped. Colours follow what the file says of its matrix and
 * range; without a word they are those of BT.601, as by the ffmpeg command. All flags ask
 * for results that do not depend on the machine.
 */
#include "codec/video_priv.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define SCALE_FLAGS (SWS_BICUBIC | SWS_ACCURATE_RND | SWS_BITEXACT | SWS_FULL_CHR_H_INT)

/* A clip that is being decoded. */
struct work {
    struct hr_video *v;
    const struct hr_video_clip *clip;
    uint8_t *to;
    int64_t done; /* frames of the clip that are written */
    AVCodecContext *decoder;
    AVFrame *frame;
    struct SwsContext *scaler;
    uint8_t *rows; /* a frame with room after its rows, which swscale writes to */
    struct hr_error *error;
};

/* The number in the video of frame i of the clip. */
static int64_t number_of(const struct work *w, int64_t i)
{
    int64_t last = (int64_t)w->v->frames - 1, number;

    if (__builtin_mul_overflow(i, w->clip->stride, &number) ||
        __builtin_add_overflow(number, w->clip->start, &number) || number > last)
        return last;
    return number;
}

static int64_t time_of(const struct work *w, int64_t i)
{
    return w->v->times[number_of(w, i)];
}

static enum hr_err open_decoder(struct work *w)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    int code;

    w->decoder = hr__av.alloc_decoder(w->v->codec);
    w->frame = hr__av.alloc_frame();
    if (w->decoder == NULL || w->frame == NULL)
        return hr__fail(w->error, HR_ERR_MEMORY, "out of memory");
    code = hr__av.parameters_to_context(w->decoder, w->v->stream->codecpar);
    w->decoder->thread_count = 1;
    w->decoder->flags |= AV_CODEC_FLAG_BITEXACT;
    w->decoder->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
    w->decoder->error_concealment = 0;
    w->decoder->max_pixels = w->v->limits.pixels_max;
    w->decoder->pkt_timebase = w->v->stream->time_base;
    if (code == 0)
        code = hr__av.open_decoder(w->decoder, w->v->codec, NULL);
    if (code < 0)
        return hr__fail(w->error, code == AVERROR(ENOMEM) ? HR_ERR_MEMORY : HR_ERR_FORMAT,
                        "the decoder of %s cannot begin: %s",
                        hr__av.codec_name(w->v->stream->codecpar->codec_id),
                        hr__av_problem(code, text));
    return HR_OK;
}

/* ---- colours ---- */

static size_t row_bytes(const struct work *w)
{
    return ((size_t)w->clip->width * 3 + 127) & ~(size_t)63;
}

static bool is_full_range(const AVFrame *f)
{
    return f->color_range == AVCOL_RANGE_JPEG || f->format == AV_PIX_FMT_YUVJ420P ||
           f->format == AV_PIX_FMT_YUVJ422P || f->format == AV_PIX_FMT_YUVJ444P;
}

static enum hr_err prepare_scaler(struct work *w)
{
    const AVFrame *f = w->frame;
    const int *matrix = hr__av.coefficients(
        f->colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : f->colorspace);

    w->scaler =
        hr__av.scaler(w->scaler, f->width, f->height, f->format, w->clip->width,
                      w->clip->height, AV_PIX_FMT_RGB24, SCALE_FLAGS, NULL, NULL, NULL);
    if (w->scaler == NULL)
        return hr__fail(w->error, HR_ERR_UNSUPPORTED,
                        "frames of %dx%d in FFmpeg's format %d cannot become %dx%d RGB",
                        f->width, f->height, f->format, (int)w->clip->width,
                        (int)w->clip->height);
    /* Fails for RGB, which has neither. */
    (void)hr__av.set_colours(w->scaler, matrix, is_full_range(f),
                             hr__av.coefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    return HR_OK;
}

/* Writes the decoded frame as the clip's next one. */
static enum hr_err write_frame(struct work *w)
{
    const AVFrame *f = w->frame;
    size_t width = (size_t)w->clip->width * 3, height = (size_t)w->clip->height;
    size_t stride = row_bytes(w);
    uint8_t *to = w->to + (size_t)w->done * width * height;
    uint8_t *planes[4] = {w->rows};
    int strides[4] = {(int)stride};

    HR_TRY(prepare_scaler(w));
    if (hr__av.scale(w->scaler, (const uint8_t *const *)f->data, f->linesize, 0,
                     f->height, planes, strides) != (int)height)
        return hr__fail(w->error, HR_ERR_FORMAT, "frame %lld cannot be converted to RGB",
                        (long long)number_of(w, w->done));
    for (size_t y = 0; y < height; y++)
        memcpy(to + y * width, w->rows + y * stride, width);
    w->done++;
    return HR_OK;
}

/* ---- frames ---- */

/* The frame that was decoded, if the clip has it: each time that it does. */
static enum hr_err take_frame(struct work *w)
{
    const AVFrame *f = w->frame;
    size_t bytes = (size_t)w->clip->width * (size_t)w->clip->height * 3;
    int64_t time = f->pts != AV_NOPTS_VALUE ? f->pts : f->best_effort_timestamp;

    if (w->done == w->clip->count || time < time_of(w, w->done))
        return HR_OK;
    if (time > time_of(w, w->done))
        return hr__fail(w->error, HR_ERR_FORMAT,
                        "frame %lld of the video is missing: the data before it is "
                        "damaged",
                        (long long)number_of(w, w->done));
    if ((f->flags & AV_FRAME_FLAG_CORRUPT) != 0 || f->decode_error_flags != 0)
        return hr__fail(w->error, HR_ERR_FORMAT, "frame %lld of the video is damaged",
                        (long long)number_of(w, w->done));
    if (f->width <= 0 || f->height <= 0 ||
        (int64_t)f->width * f->height > w->v->limits.pixels_max)
        return hr__fail(w->error, HR_ERR_LIMIT, "frame %lld of the video is %dx%d",
                        (long long)number_of(w, w->done), f->width, f->height);
    HR_TRY(write_frame(w));
    for (; w->done < w->clip->count && time_of(w, w->done) == time; w->done++)
        memcpy(w->to + (size_t)w->done * bytes, w->to + (size_t)(w->done - 1) * bytes,
               bytes);
    return HR_OK;
}

/* All frames that come out of the decoder now. */
static enum hr_err take_frames(struct work *w)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    int code;

    while (w->done < w->clip->count &&
           (code = hr__av.receive_frame(w->decoder, w->frame)) != AVERROR(EAGAIN)) {
        if (code == AVERROR_EOF)
            return HR_OK;
        if (code < 0)
            return hr__fail(w->error,
                            code == AVERROR(ENOMEM) ? HR_ERR_MEMORY : HR_ERR_FORMAT,
                            "the video is damaged before frame %lld: %s",
                            (long long)number_of(w, w->done), hr__av_problem(code, text));
        HR_TRY(take_frame(w));
    }
    return HR_OK;
}

/* NULL: the end. */
static enum hr_err send(struct work *w, const AVPacket *packet)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    int code = hr__av.send_packet(w->decoder, packet);

    if (code < 0)
        return hr__fail(w->error, code == AVERROR(ENOMEM) ? HR_ERR_MEMORY : HR_ERR_FORMAT,
                        "the video is damaged before frame %lld: %s",
                        (long long)number_of(w, w->done), hr__av_problem(code, text));
    return take_frames(w);
}

/* The packet of the last key frame that is not after the clip's first frame. */
static size_t key_packet(const struct work *w)
{
    int64_t first = time_of(w, 0);
    size_t key = 0;

    for (size_t i = 0; i < w->v->count; i++) {
        const struct hr_video_packet *p = &w->v->packets[i];

        if ((p->packet->flags & AV_PKT_FLAG_KEY) != 0 && p->time <= first &&
            p->time >= w->v->packets[key].time)
            key = i;
    }
    return key;
}

/* Whether a frame of the clip from `done` on has this time. */
static bool is_wanted(const struct work *w, int64_t time)
{
    int64_t low = w->done, high = w->clip->count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (time_of(w, middle) < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->clip->count && time_of(w, low) == time;
}

static enum hr_err decode(struct work *w)
{
    HR_TRY(open_decoder(w));
    w->rows = hr__malloc(row_bytes(w) * (size_t)w->clip->height + 64);
    if (w->rows == NULL)
        return hr__fail(w->error, HR_ERR_MEMORY, "out of memory for a frame");
    for (size_t i = key_packet(w); i < w->v->count && w->done < w->clip->count; i++) {
        const struct hr_video_packet *p = &w->v->packets[i];

        if (p->packet->size == 0)
            continue;
        w->decoder->skip_frame =
            is_wanted(w, p->time) ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
        HR_TRY(send(w, p->packet));
    }
    if (w->done < w->clip->count)
        HR_TRY(send(w, NULL));
    if (w->done < w->clip->count)
        return hr__fail(w->error, HR_ERR_FORMAT,
                        "frame %lld of the video is missing: its data is damaged",
                        (long long)number_of(w, w->done));
    return HR_OK;
}

enum hr_err hr__video_decode(struct hr_video *video, const struct hr_video_clip *clip,
                             uint8_t *to, struct hr_error *reterr)
{
    struct work w = {.v = video, .clip = clip, .to = to, .error = reterr};
    enum hr_err err = decode(&w);

    hr__free(w.rows);
    hr__av.free_scaler(w.scaler);
    hr__av.free_frame(&w.frame);
    hr__av.free_decoder(&w.decoder);
    return err;
}
