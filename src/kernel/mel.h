/*
 * kernel/mel.h - mel bands: weighted sums of the bins of a spectrum.
 */
#ifndef HR_KERNEL_MEL_H
#define HR_KERNEL_MEL_H

#include "headrace/base.h"

enum hr_mel_scale {
    HR_MEL_HTK,
    HR_MEL_SLANEY,
};

/* Bands of bins; `count` 0: none, the result has all size / 2 + 1 bins. */
struct hr_mel_options {
    int32_t count;
    int32_t rate;
    double low, high; /* Hz */
    int scale;        /* enum hr_mel_scale */
    bool norm;        /* bands have equal areas (slaney) */
};

struct hr_band; /* kernel/sound.h */

/* Tables of bands; read-only once made. */
struct hr_mel {
    int32_t bands;
    struct hr_band *band;
    float *weights;
};

/* For transforms of `size` samples; options->count is positive. HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__mel_create(const struct hr_mel_options *options, int32_t size,
                                    struct hr_mel *ret_mel, struct hr_error *reterr);
void hr__mel_destroy(struct hr_mel *mel); /* of {0} is fine */

/* in[bin * frames + frame] to out[band * frames + frame]. */
void hr__mel_run(const struct hr_mel *mel, const float *in, int64_t frames, float *out);

#endif
