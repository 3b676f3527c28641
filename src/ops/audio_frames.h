/*
 * ops/audio_frames.h - shared by the ops that make spectra: parameters of the frames, and
 * a run.
 */
#ifndef HR_OPS_AUDIO_FRAMES_H
#define HR_OPS_AUDIO_FRAMES_H

#include "kernel/spectrum.h"
#include "ops/audio.h"

struct hr_frames {
    const char *field;
    int64_t n_fft, win, hop, power;
    int window, pad;
    bool center;
};

extern const char *const hr__window_names[], *const hr__frames_pads[]; /* end with NULL */

/* The rows of an op whose parameters begin with a struct hr_frames. */
#define HR_P_FRAMES                                                                      \
    HR_P_INT(struct hr_frames, n_fft, .fallback = "400", HR_RANGE(2, 1 << 20),           \
             .unit = "samples", .help = "size of the transform"),                        \
        HR_P_INT(struct hr_frames, win, .fallback = "0", HR_RANGE(0, 1 << 20),           \
                 .unit = "samples",                                                      \
                 .help = "size of the window, in the middle of the transform; 0: "       \
                         "n_fft"),                                                       \
        HR_P_INT(struct hr_frames, hop, .fallback = "0", HR_RANGE(0, 1 << 20),           \
                 .unit = "samples", .help = "from frame to frame; 0: half the window"),  \
        HR_P_ENUM(struct hr_frames, window, .fallback = "hann",                          \
                  .names = hr__window_names, .help = "the window, periodic"),            \
        HR_P_INT(struct hr_frames, power, .fallback = "2", HR_RANGE(1, 2),               \
                 .help = "exponent of the magnitude: 2 gives power, 1 magnitude"),       \
        HR_P_BOOL(struct hr_frames, center, .fallback = "true",                          \
                  .help = "frame t has sample t * hop in its middle; false: it begins "  \
                          "there"),                                                      \
        HR_P_ENUM(struct hr_frames, pad, .fallback = "reflect",                          \
                  .names = hr__frames_pads,                                              \
                  .help = "with center, what lies beyond the ends: the sound mirrored, " \
                          "or zeros"),                                                   \
        HR_P_FIELD(struct hr_frames, field, .fallback = "audio",                         \
                   .access = HR_ACCESS_UPDATE,                                           \
                   .help = "the field with the sound; it becomes the spectrum")

/* Mel bands: what the struct's member `in_` says. */
struct hr_mel_bands {
    int64_t n_mels;
    double f_min, f_max;
    int scale;
    bool norm;
};

extern const char *const hr__mel_scales[];

#define HR_P_MEL(struct_, in_)                                                           \
    HR_P_IN(HR_PARAM_INT, struct_, in_, n_mels, .fallback = "80", HR_RANGE(1, 4096),     \
            .help = "number of bands"),                                                  \
        HR_P_IN(HR_PARAM_FLOAT, struct_, in_, f_min, .fallback = "0",                    \
                HR_RANGE(0, HR_RATE_MAX), .unit = "Hz",                                  \
                .help = "lower end of the first band"),                                  \
        HR_P_IN(HR_PARAM_FLOAT, struct_, in_, f_max, .fallback = "0",                    \
                HR_RANGE(0, HR_RATE_MAX), .unit = "Hz",                                  \
                .help = "upper end of the last band; 0: half the rate"),                 \
        HR_P_IN(HR_PARAM_ENUM, struct_, in_, scale, .fallback = "htk",                   \
                .names = hr__mel_scales, .help = "the mel scale"),                       \
        HR_P_IN(HR_PARAM_BOOL, struct_, in_, norm, .fallback = "false",                  \
                .help = "divide each band by its width (slaney's norm)")

/* The bands of sounds of this rate. */
struct hr_mel_options hr__mel_options(const struct hr_mel_bands *bands, int32_t rate);
/* infer: the bands are not empty. */
HR_CHECK enum hr_err
hr__infer_mel(struct hr_infer *infer, const struct hr_mel_options *options);

/* infer: checks the parameters; the field becomes float32 [..., rows, time]. `mel` has no
 * bands for a spectrum of all bins. */
HR_CHECK enum hr_err
hr__infer_frames(struct hr_infer *infer, const struct hr_mel_options *mel);

/* open, close and apply. */
HR_CHECK enum hr_err hr__frames_open(const struct hr_open *open,
                                     const struct hr_mel_options *mel, void **ret_state);
void hr__frames_close(void *state);
HR_CHECK enum hr_err hr__frames_apply(struct hr_op_ctx *ctx);

#endif
