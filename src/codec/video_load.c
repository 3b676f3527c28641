/*
 * codec/video_load.c - loads FFmpeg's libraries, of the version that the build saw.
 *
 * Its messages go to stderr by a level that the whole process shares; it is set to quiet
 * unless the process has already changed it.
 */
#include "codec/video_priv.h"

#include <stdio.h>

#include "core/error.h"
#include "core/library.h"

struct hr_video_api hr__av;

static const struct hr_symbol util_symbols[] = {
    {"av_malloc",        &hr__av.malloc       },
    {"av_free",          &hr__av.free         },
    {"av_frame_alloc",   &hr__av.alloc_frame  },
    {"av_frame_free",    &hr__av.free_frame   },
    {"av_opt_set",       &hr__av.opt_set      },
    {"av_strerror",      &hr__av.strerror     },
    {"av_log_get_level", &hr__av.log_get_level},
    {"av_log_set_level", &hr__av.log_set_level},
    {"av_version_info",  &hr__av.version_info },
};

static const struct hr_symbol codec_symbols[] = {
    {"avcodec_find_decoder",          &hr__av.find_decoder         },
    {"avcodec_alloc_context3",        &hr__av.alloc_decoder        },
    {"avcodec_free_context",          &hr__av.free_decoder         },
    {"avcodec_parameters_to_context", &hr__av.parameters_to_context},
    {"avcodec_open2",                 &hr__av.open_decoder         },
    {"avcodec_send_packet",           &hr__av.send_packet          },
    {"avcodec_receive_frame",         &hr__av.receive_frame        },
    {"avcodec_get_name",              &hr__av.codec_name           },
    {"av_packet_alloc",               &hr__av.alloc_packet         },
    {"av_packet_free",                &hr__av.free_packet          },
};

static const struct hr_symbol format_symbols[] = {
    {"avformat_alloc_context",    &hr__av.alloc_context   },
    {"avformat_open_input",       &hr__av.open_input      },
    {"avformat_close_input",      &hr__av.close_input     },
    {"avformat_find_stream_info", &hr__av.find_stream_info},
    {"av_find_best_stream",       &hr__av.find_best_stream},
    {"av_read_frame",             &hr__av.read_frame      },
    {"avio_alloc_context",        &hr__av.alloc_io        },
    {"avio_context_free",         &hr__av.free_io         },
};

static const struct hr_symbol scale_symbols[] = {
    {"sws_getCachedContext",     &hr__av.scaler      },
    {"sws_freeContext",          &hr__av.free_scaler },
    {"sws_scale",                &hr__av.scale       },
    {"sws_getCoefficients",      &hr__av.coefficients},
    {"sws_setColorspaceDetails", &hr__av.set_colours },
};

/* Their structs differ between major versions. */
#define OF(name, major, symbols)                                                         \
    HR_LIBRARY("lib" name ".so." AV_STRINGIFY(major), "lib" name AV_STRINGIFY(major),    \
               symbols)

static struct hr_library libraries[] = {
    OF("avutil", LIBAVUTIL_VERSION_MAJOR, util_symbols),
    OF("avcodec", LIBAVCODEC_VERSION_MAJOR, codec_symbols),
    OF("avformat", LIBAVFORMAT_VERSION_MAJOR, format_symbols),
    OF("swscale", LIBSWSCALE_VERSION_MAJOR, scale_symbols),
};

enum hr_err hr__av_load(struct hr_error *reterr)
{
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        HR_TRY(hr__library_load(&libraries[i], reterr));
    if (hr__av.log_get_level() == AV_LOG_INFO)
        hr__av.log_set_level(AV_LOG_QUIET);
    return HR_OK;
}

const char *hr__av_problem(int code, char text[static AV_ERROR_MAX_STRING_SIZE])
{
    if (hr__av.strerror(code, text, AV_ERROR_MAX_STRING_SIZE) < 0)
        snprintf(text, AV_ERROR_MAX_STRING_SIZE, "error %d", code);
    return text;
}

enum hr_err hr__video_version(char *text, size_t room, struct hr_error *reterr)
{
    HR_TRY(hr__av_load(reterr));
    snprintf(text, room, "%s", hr__av.version_info());
    return HR_OK;
}
