/*
 * codec/video_priv.h - FFmpeg's functions, which are loaded when needed, and an open
 * video.
 */
#ifndef HR_CODEC_VIDEO_PRIV_H
#define HR_CODEC_VIDEO_PRIV_H

#include "codec/video.h"

/* FFmpeg's headers leave some of our warnings to their users. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
#pragma GCC diagnostic pop

struct hr_video_api {
    __typeof__(avformat_alloc_context) *alloc_context;
    __typeof__(avformat_open_input) *open_input;
    __typeof__(avformat_close_input) *close_input;
    __typeof__(avformat_find_stream_info) *find_stream_info;
    __typeof__(av_find_best_stream) *find_best_stream;
    __typeof__(av_read_frame) *read_frame;
    __typeof__(avio_alloc_context) *alloc_io;
    __typeof__(avio_context_free) *free_io;

    __typeof__(avcodec_find_decoder) *find_decoder;
    __typeof__(avcodec_alloc_context3) *alloc_decoder;
    __typeof__(avcodec_free_context) *free_decoder;
    __typeof__(avcodec_parameters_to_context) *parameters_to_context;
    __typeof__(avcodec_open2) *open_decoder;
    __typeof__(avcodec_send_packet) *send_packet;
    __typeof__(avcodec_receive_frame) *receive_frame;
    __typeof__(avcodec_get_name) *codec_name;
    __typeof__(av_packet_alloc) *alloc_packet;
    __typeof__(av_packet_free) *free_packet;

    __typeof__(av_malloc) *malloc;
    __typeof__(av_free) *free;
    __typeof__(av_frame_alloc) *alloc_frame;
    __typeof__(av_frame_free) *free_frame;
    __typeof__(av_opt_set) *opt_set;
    __typeof__(av_strerror) *strerror;
    __typeof__(av_log_get_level) *log_get_level;
    __typeof__(av_log_set_level) *log_set_level;
    __typeof__(av_version_info) *version_info;

    __typeof__(sws_getCachedContext) *scaler;
    __typeof__(sws_freeContext) *free_scaler;
    __typeof__(sws_scale) *scale;
    __typeof__(sws_getCoefficients) *coefficients;
    __typeof__(sws_setColorspaceDetails) *set_colours;
};

extern struct hr_video_api hr__av;

/* Fills hr__av, once. HR_ERR_UNSUPPORTED if a library is not installed. */
HR_CHECK enum hr_err hr__av_load(struct hr_error *reterr);

/* What FFmpeg's error number means. Returns `text`. */
const char *hr__av_problem(int code, char text[static AV_ERROR_MAX_STRING_SIZE]);

/* A packet of the video stream, in the file's order. */
struct hr_video_packet {
    AVPacket *packet; /* owned */
    int64_t time;     /* of its frame, in the stream's units */
};

struct hr_video {
    AVFormatContext *format;
    AVIOContext *io;
    AVStream *stream;
    const AVCodec *codec;
    const uint8_t *data; /* the file */
    int64_t bytes, at;
    struct hr_video_limits limits;
    struct hr_video_packet *packets;
    size_t count, room;
    int64_t *times; /* of the frames that are shown, ascending */
    size_t frames, times_room;
};

#endif
