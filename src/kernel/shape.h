/*
 * kernel/shape.h - the filters of a change of rate, as functions of time.
 */
#ifndef HR_KERNEL_SHAPE_H
#define HR_KERNEL_SHAPE_H

enum hr_rate_filter {
    /* A Kaiser window: 91.3 % of the lower Nyquist frequency pass, from 100 % on 120 dB
     * are stopped. */
    HR_RATE_HQ,
    /* torchaudio.functional.resample's default: sinc under a Hann window of six zero
     * crossings, rolloff 0.99. */
    HR_RATE_TORCHAUDIO,
};

/* Times are in samples of the input. */
struct hr_shape {
    enum hr_rate_filter filter;
    double half;  /* it is 0 beyond this */
    double scale; /* 2 * cutoff / rate of the input */
    double beta, peak;
};

/* For `ratio` times as many samples. */
struct hr_shape hr__shape_of(double ratio, enum hr_rate_filter filter);
double hr__shape_at(const struct hr_shape *shape, double time);

#endif
