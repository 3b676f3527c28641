/*
 * ops/audio_stretch.h - shared by the ops that use a phase vocoder: parameters of its
 * frames.
 */
#ifndef HR_OPS_AUDIO_STRETCH_H
#define HR_OPS_AUDIO_STRETCH_H

#include "kernel/stretch.h"
#include "ops/audio.h"

struct hr_stretch_frames {
    const char *field;
    int64_t n_fft, win, hop;
};

/* The rows of an op whose parameters begin with a struct hr_stretch_frames. */
#define HR_P_STRETCH                                                                     \
    HR_P_INT(struct hr_stretch_frames, n_fft, .fallback = "2048", HR_RANGE(2, 1 << 20),  \
             .unit = "samples", .help = "size of the transform, even"),                  \
        HR_P_INT(struct hr_stretch_frames, win, .fallback = "0", HR_RANGE(0, 1 << 20),   \
                 .unit = "samples",                                                      \
                 .help = "size of the Hann window, in the middle of the transform; 0: "  \
                         "n_fft"),                                                       \
        HR_P_INT(struct hr_stretch_frames, hop, .fallback = "0", HR_RANGE(0, 1 << 20),   \
                 .unit = "samples",                                                      \
                 .help = "from frame to frame; 0: a quarter of the window"),             \
        HR_P_AUDIO(struct hr_stretch_frames)

/* infer: the field is a sound, and the frames cover it. Its length becomes unknown. */
HR_CHECK enum hr_err hr__infer_stretch(struct hr_infer *infer);

HR_CHECK enum hr_err
hr__stretch_open(const struct hr_stretch_frames *frames, struct hr_stretch **ret_stretch,
                 struct hr_error *error);

/* `sound` at `rate`, in the arena: ret->channels runs of ret->frames. */
HR_CHECK enum hr_err
hr__sound_stretch(struct hr_op_ctx *ctx, const struct hr_stretch *stretch,
                  const struct hr_sound *sound, double rate, float **ret_data,
                  int64_t *ret_frames);

#endif
