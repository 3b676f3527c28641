/*
 * kernel/spectrum.h - short-time spectra of a sound, and mel bands of them.
 *
 * A plan has the tables for one set of options; it is read-only once made, and shared
 * between threads.
 */
#ifndef HR_KERNEL_SPECTRUM_H
#define HR_KERNEL_SPECTRUM_H

#include "core/arena.h"
#include "headrace/base.h"
#include "kernel/mel.h"

enum hr_window {
    HR_WINDOW_HANN, /* all are periodic, as torch and librosa have them */
    HR_WINDOW_HAMMING,
    HR_WINDOW_BLACKMAN,
    HR_WINDOW_RECTANGULAR,
};

struct hr_spectrum_options {
    int32_t size;   /* samples of a transform, at least 2 */
    int32_t width;  /* of the window, which lies in its middle; at most `size` */
    int32_t hop;    /* from frame to frame */
    int window;     /* enum hr_window */
    bool centre;    /* frame f is about sample f * hop; else it begins there */
    bool reflect;   /* centred: what is beyond the ends is mirrored; else zeros */
    bool magnitude; /* else power */
};

struct hr_spectrum;

/* HR_ERR_UNSUPPORTED if the size has a prime factor above HR_RADIX_MAX, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__spectrum_create(const struct hr_spectrum_options *options,
                    const struct hr_mel_options *mel, struct hr_spectrum **ret_spectrum,
                    struct hr_error *reterr);
void hr__spectrum_destroy(struct hr_spectrum *spectrum); /* NULL is allowed */

/* Rows of the result: bands or bins. */
int32_t hr__spectrum_rows(const struct hr_spectrum_options *options,
                          const struct hr_mel_options *mel);

/* Frames that `count` samples give; 0 if there are too few for one. */
int64_t hr__spectrum_frames(const struct hr_spectrum_options *options, int64_t count);

/* out[row * frames + frame], for the frames that hr__spectrum_frames returns. Scratch
 * comes from the arena. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__spectrum_run(const struct hr_spectrum *spectrum, struct hr_arena *arena,
                 const float *sound, int64_t count, float *out);

#endif
