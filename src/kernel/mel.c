/*
 * kernel/mel.c - the weights of mel bands.
 */
#include "kernel/mel.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/sound.h"

static double mel_of(int scale, double hz)
{
    if (scale == HR_MEL_HTK)
        return 2595 * log10(1 + hz / 700);
    return hz < 1000 ? hz * 3 / 200 : 15 + log(hz / 1000) * 27 / log(6.4);
}

static double hz_of(int scale, double mel)
{
    if (scale == HR_MEL_HTK)
        return 700 * (pow(10, mel / 2595) - 1);
    return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27);
}

/* Weight of a frequency in the triangle between low and high with its top at mid. */
static double triangle(double hz, double low, double mid, double high)
{
    double up = (hz - low) / (mid - low), down = (high - hz) / (high - mid);

    return fmax(0, fmin(up, down));
}

enum hr_err hr__mel_create(const struct hr_mel_options *mel, int32_t size,
                           struct hr_mel *ret_mel, struct hr_error *reterr)
{
    struct hr_mel s = {.bands = mel->count};
    int32_t bins = size / 2 + 1;
    double low = mel_of(mel->scale, mel->low), high = mel_of(mel->scale, mel->high);
    double step = (high - low) / (mel->count + 1);
    float *at;

    s.band = hr__calloc((size_t)mel->count + 1, sizeof *s.band);
    /* A bin lies in at most two triangles. */
    at = s.weights = hr__calloc(2 * (size_t)bins + 1, sizeof *at);
    if (s.band == NULL || at == NULL) {
        hr__mel_destroy(&s);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    for (int32_t b = 0; b < mel->count; b++) {
        double left = hz_of(mel->scale, low + b * step);
        double mid = hz_of(mel->scale, low + (b + 1) * step);
        double right = hz_of(mel->scale, low + (b + 2) * step);
        double gain = mel->norm ? 2 / (right - left) : 1;

        s.band[b].weights = at;
        for (int32_t k = 0; k < bins; k++) {
            double hz = (double)k * mel->rate / size;
            double weight = triangle(hz, left, mid, right);

            if (weight <= 0)
                continue;
            if (s.band[b].count == 0)
                s.band[b].first = k;
            assert(at < s.weights + 2 * bins && s.band[b].first + s.band[b].count == k);
            s.band[b].count++;
            *at++ = (float)(weight * gain);
        }
    }
    *ret_mel = s;
    return HR_OK;
}

void hr__mel_destroy(struct hr_mel *mel)
{
    hr__free(mel->band);
    hr__free(mel->weights);
    *mel = (struct hr_mel){0};
}

void hr__mel_run(const struct hr_mel *mel, const float *in, int64_t frames, float *out)
{
    memset(out, 0, (size_t)(mel->bands * frames) * sizeof *out);
    for (int32_t b = 0; b < mel->bands; b++)
        for (int32_t k = 0; k < mel->band[b].count; k++) {
            const float *from = in + (mel->band[b].first + k) * frames;
            float weight = mel->band[b].weights[k], *to = out + b * frames;

            for (int64_t t = 0; t < frames; t++)
                to[t] += weight * from[t];
        }
}
