/*
 * codec/video.c - opens videos from memory: demuxes them and numbers their frames.
 *
 * Only formats and codecs of the lists below are read. Some of FFmpeg's demuxers open
 * what a file names (playlists, references), so nothing but the memory can be opened.
 */
#include "codec/video_priv.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define IO_BYTES 32768
#define FORMATS "mov,matroska,avi,mpegts,mpeg,flv,ogg,asf,nut,ivf"
#define FORMATS_TEXT "MP4, MOV, WebM, Matroska, AVI, MPEG, FLV, Ogg, ASF, NUT and IVF"

static const enum AVCodecID codecs[] = {
    AV_CODEC_ID_H264,       AV_CODEC_ID_HEVC,       AV_CODEC_ID_VP8,
    AV_CODEC_ID_VP9,        AV_CODEC_ID_AV1,        AV_CODEC_ID_MPEG4,
    AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MJPEG,
    AV_CODEC_ID_H263,       AV_CODEC_ID_MSMPEG4V3,  AV_CODEC_ID_WMV1,
    AV_CODEC_ID_WMV2,       AV_CODEC_ID_WMV3,       AV_CODEC_ID_VC1,
    AV_CODEC_ID_THEORA,     AV_CODEC_ID_FLV1,       AV_CODEC_ID_FFV1,
    AV_CODEC_ID_PRORES,     AV_CODEC_ID_DNXHD,      AV_CODEC_ID_RAWVIDEO,
};

/* ---- the file, as FFmpeg asks for it ---- */

static int io_read(void *user, uint8_t *to, int room)
{
    struct hr_video *v = user;
    int64_t left = v->bytes - v->at;

    if (left <= 0)
        return AVERROR_EOF;
    room = room < left ? room : (int)left;
    memcpy(to, v->data + v->at, (size_t)room);
    v->at += room;
    return room;
}

static int64_t io_seek(void *user, int64_t offset, int whence)
{
    struct hr_video *v = user;
    int64_t at;

    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE)
        return v->bytes;
    if (__builtin_add_overflow(whence == SEEK_SET   ? 0
                               : whence == SEEK_CUR ? v->at
                                                    : v->bytes,
                               offset, &at) ||
        at < 0 || at > v->bytes)
        return AVERROR(EINVAL);
    v->at = at;
    return at;
}

/* AVFormatContext.io_open: no file may name others. */
static int refuse(struct AVFormatContext *format, AVIOContext **ret_io, const char *url,
                  int flags, AVDictionary **options)
{
    (void)format;
    (void)ret_io;
    (void)url;
    (void)flags;
    (void)options;
    return AVERROR(EACCES);
}

static enum hr_err begin(struct hr_video *v, struct hr_error *reterr)
{
    uint8_t *buffer = hr__av.malloc(IO_BYTES);

    if (buffer != NULL)
        v->io = hr__av.alloc_io(buffer, IO_BYTES, 0, v, io_read, NULL, io_seek);
    if (v->io == NULL) {
        hr__av.free(buffer);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    v->format = hr__av.alloc_context();
    if (v->format == NULL ||
        hr__av.opt_set(v->format, "format_whitelist", FORMATS, 0) < 0 ||
        hr__av.opt_set(v->format, "protocol_whitelist", "none", 0) < 0)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    v->format->pb = v->io;
    v->format->io_open = refuse;
    v->format->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_GENPTS;
    return HR_OK;
}

/* ---- streams ---- */

static enum hr_err check_codec(struct hr_video *v, struct hr_error *reterr)
{
    const AVCodecParameters *p = v->stream->codecpar;
    bool known = false;

    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        known = known || codecs[i] == p->codec_id;
    v->codec = known ? hr__av.find_decoder(p->codec_id) : NULL;
    if (v->codec == NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the video is encoded by %s, which is not decoded here",
                        hr__av.codec_name(p->codec_id));
    if (p->width < 1 || p->height < 1)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the file says that its frames are %dx%d pixels", p->width,
                        p->height);
    if ((int64_t)p->width * p->height > v->limits.pixels_max)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "frames of %dx%d have more than the limit of %lld pixels: raise "
                        "`pixels_max`",
                        p->width, p->height, (long long)v->limits.pixels_max);
    return HR_OK;
}

/* The headers of MP4 and Matroska say all that is needed for most codecs; of other files
 * packets are looked at. */
static bool headers_suffice(const AVFormatContext *format)
{
    const char *name = format->iformat->name;

    if (strncmp(name, "mov,", 4) != 0 && strncmp(name, "matroska,", 9) != 0)
        return false;
    for (unsigned i = 0; i < format->nb_streams; i++) {
        const AVCodecParameters *p = format->streams[i]->codecpar;

        if (p->codec_type == AVMEDIA_TYPE_VIDEO && (p->width < 1 || p->height < 1))
            return false;
    }
    return true;
}

static enum hr_err find_video(struct hr_video *v, struct hr_error *reterr)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    int code = hr__av.open_input(&v->format, NULL, NULL, NULL);

    if (code < 0) /* v->format is freed */
        return hr__fail(reterr, code == AVERROR(ENOMEM) ? HR_ERR_MEMORY : HR_ERR_FORMAT,
                        "the data is no video file that can be read (%s); " FORMATS_TEXT
                        " are",
                        hr__av_problem(code, text));
    if (!headers_suffice(v->format)) {
        code = hr__av.find_stream_info(v->format, NULL);
        if (code < 0)
            return hr__fail(reterr, HR_ERR_FORMAT, "the streams of the %s file: %s",
                            v->format->iformat->name, hr__av_problem(code, text));
    }
    code = hr__av.find_best_stream(v->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (code < 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the %s file has %u streams, and none is video",
                        v->format->iformat->name, v->format->nb_streams);
    v->stream = v->format->streams[code];
    for (unsigned i = 0; i < v->format->nb_streams; i++)
        if ((int)i != code)
            v->format->streams[i]->discard = AVDISCARD_ALL;
    return check_codec(v, reterr);
}

/* ---- packets ---- */

/* Whether a frame comes out of the packet. VP8 has packets of frames that are only
 * referred to. */
static bool is_shown(const struct hr_video *v, const AVPacket *packet)
{
    if (packet->size == 0 || (packet->flags & AV_PKT_FLAG_DISCARD) != 0)
        return false;
    return v->stream->codecpar->codec_id != AV_CODEC_ID_VP8 ||
           (packet->data[0] & 0x10) != 0;
}

/* Takes over the packet. */
static enum hr_err
add_packet(struct hr_video *v, AVPacket *packet, struct hr_error *reterr)
{
    int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;

    if (!hr__array_room(&v->packets, v->count, &v->room, 1, sizeof *v->packets) ||
        !hr__array_room(&v->times, v->frames, &v->times_room, 1, sizeof *v->times)) {
        hr__av.free_packet(&packet);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    v->packets[v->count].packet = packet;
    v->packets[v->count++].time = time;
    if (time == AV_NOPTS_VALUE)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "packet %zu of the video has no time: write the file again with "
                        "another program",
                        v->count - 1);
    if ((int64_t)v->count > v->limits.frames_max)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "the video has more than the limit of %lld frames: raise "
                        "`frames_max`",
                        (long long)v->limits.frames_max);
    if (is_shown(v, packet))
        v->times[v->frames++] = time;
    return HR_OK;
}

static enum hr_err read_packets(struct hr_video *v, struct hr_error *reterr)
{
    char text[AV_ERROR_MAX_STRING_SIZE];

    for (;;) {
        AVPacket *packet = hr__av.alloc_packet();
        int code;

        if (packet == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        code = hr__av.read_frame(v->format, packet);
        if (code == 0 && packet->stream_index == v->stream->index) {
            HR_TRY(add_packet(v, packet, reterr));
            continue;
        }
        hr__av.free_packet(&packet);
        if (code == AVERROR_EOF)
            return HR_OK;
        if (code < 0)
            return hr__fail(reterr,
                            code == AVERROR(ENOMEM) ? HR_ERR_MEMORY : HR_ERR_FORMAT,
                            "the file is damaged or cut short after %zu frames: %s",
                            v->frames, hr__av_problem(code, text));
    }
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static enum hr_err number_frames(struct hr_video *v, struct hr_error *reterr)
{
    size_t kept = 0;

    if (v->frames == 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "the video has no frames");
    qsort(v->times, v->frames, sizeof *v->times, compare_times);
    for (size_t i = 0; i < v->frames; i++)
        if (i == 0 || v->times[i] != v->times[i - 1])
            v->times[kept++] = v->times[i];
    v->frames = kept;
    return HR_OK;
}

enum hr_err
hr__video_open(const void *data, size_t bytes, const struct hr_video_limits *limits,
               struct hr_video **ret_video, struct hr_error *reterr)
{
    struct hr_video *v;
    enum hr_err err;

    HR_TRY(hr__av_load(reterr));
    v = hr__calloc(1, sizeof *v);
    if (v == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    v->data = data;
    v->bytes = (int64_t)bytes;
    v->limits = *limits;
    err = begin(v, reterr);
    if (err == HR_OK)
        err = find_video(v, reterr);
    if (err == HR_OK)
        err = read_packets(v, reterr);
    if (err == HR_OK)
        err = number_frames(v, reterr);
    if (err != HR_OK) {
        hr__video_close(v);
        return err;
    }
    *ret_video = v;
    return HR_OK;
}

void hr__video_close(struct hr_video *v)
{
    if (v == NULL)
        return;
    for (size_t i = 0; i < v->count; i++)
        hr__av.free_packet(&v->packets[i].packet);
    hr__free(v->packets);
    hr__free(v->times);
    hr__av.close_input(&v->format);
    if (v->io != NULL)
        hr__av.free(v->io->buffer);
    hr__av.free_io(&v->io);
    hr__free(v);
}

/* ---- what is known of it ---- */

double hr__video_time(const struct hr_video *v, int64_t frame)
{
    AVRational unit = v->stream->time_base;

    return ((double)v->times[frame] - (double)v->times[0]) * unit.num / unit.den;
}

void hr__video_info(const struct hr_video *v, struct hr_video_info *ret_info)
{
    AVRational rate = v->stream->avg_frame_rate;
    double last = hr__video_time(v, (int64_t)v->frames - 1);

    *ret_info = (struct hr_video_info){.frames = (int64_t)v->frames,
                                       .width = v->stream->codecpar->width,
                                       .height = v->stream->codecpar->height};
    if (last > 0)
        ret_info->fps = (double)(v->frames - 1) / last;
    else if (rate.num > 0 && rate.den > 0)
        ret_info->fps = (double)rate.num / rate.den;
    if (ret_info->fps > 0)
        ret_info->duration = last + 1 / ret_info->fps;
}
