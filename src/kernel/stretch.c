/*
 * kernel/stretch.c - the phase vocoder.
 *
 * Spectra of the sound, `hop` samples apart, are read at steps of `rate`. Magnitudes are
 * interpolated between the two nearest spectra; the phase of each bin moves on by the
 * angle between them. Phases are numbers on the unit circle: an angle is added by a
 * multiplication, and no angle is ever computed.
 *
 * Two real frames make one complex transform, there and back. All is in double: a bin
 * that is soft for a while keeps its phase until it is loud.
 */
#include "kernel/stretch.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/dft.h"
#include "kernel/sound.h"

#define PI 3.14159265358979323846

struct hr_stretch {
    int64_t size, hop;
    size_t bins;
    struct hr_dft dft;
    double *window; /* size */
};

enum hr_err hr__stretch_create(int32_t size, int32_t width, int32_t hop,
                               struct hr_stretch **ret_stretch, struct hr_error *reterr)
{
    struct hr_stretch *s = hr__calloc(1, sizeof *s);
    enum hr_err err;

    assert(size >= 2 && size % 2 == 0 && width >= 1 && width <= size);
    assert(hop >= 1 && hop <= width);
    if (s == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    s->size = size;
    s->hop = hop;
    s->bins = (size_t)size / 2 + 1;
    err = hr__dft_create(size, &s->dft, reterr);
    if (err == HR_OK && (s->window = hr__calloc((size_t)size, sizeof(double))) == NULL)
        err = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (err != HR_OK) {
        hr__stretch_destroy(s);
        return err;
    }
    for (int32_t i = 0; i < width; i++)
        s->window[(size - width) / 2 + i] = 0.5 - 0.5 * cos(2 * PI * i / width);
    *ret_stretch = s;
    return HR_OK;
}

void hr__stretch_destroy(struct hr_stretch *s)
{
    if (s == NULL)
        return;
    hr__dft_destroy(&s->dft);
    hr__free(s->window);
    hr__free(s);
}

int64_t hr__stretch_count(int64_t count, double rate)
{
    return (int64_t)rint((double)count / rate);
}

/* ---- spectra of the sound ---- */

/* The spectra of frames 2 * pair and 2 * pair + 1. */
struct pair {
    int64_t number;
    double *magnitude[2], *unit[2];
};

/* A run in progress. */
struct run {
    const struct hr_stretch *s;
    const struct hr_sound_table *table;
    const float *sound;
    int64_t count, frames;
    struct pair pair[2]; /* by the last bit of their numbers */
    double *x, *work;
    double *phase;
    double *sum, *weight; /* of `size` samples that are not complete */
};

static bool alloc(struct hr_arena *arena, size_t doubles, double **ret)
{
    *ret = hr__arena_alloc(arena, doubles * sizeof **ret);
    return *ret != NULL;
}

static enum hr_err begin(struct run *r, struct hr_arena *arena)
{
    size_t size = (size_t)r->s->size, bins = r->s->bins;
    bool ok = alloc(arena, 2 * size, &r->x) && alloc(arena, 2 * size, &r->work) &&
              alloc(arena, 2 * bins, &r->phase) && alloc(arena, size, &r->sum) &&
              alloc(arena, size, &r->weight);

    for (int i = 0; i < 4 && ok; i++)
        ok = alloc(arena, bins, &r->pair[i / 2].magnitude[i % 2]) &&
             alloc(arena, 2 * bins, &r->pair[i / 2].unit[i % 2]);
    if (!ok)
        return HR_ERR_MEMORY;
    r->pair[0].number = r->pair[1].number = -1;
    memset(r->sum, 0, size * sizeof *r->sum);
    memset(r->weight, 0, size * sizeof *r->weight);
    return HR_OK;
}

/* A frame of the sound times the window; 0 beyond its ends. */
static void read_frame(const struct run *r, int64_t frame, double *to)
{
    int64_t size = r->s->size, at = frame * r->s->hop - size / 2, from = 0, end = size;

    if (frame >= r->frames)
        end = 0;
    from = at < 0 ? -at : 0;
    end = at + end > r->count ? r->count - at : end;
    end = end < from ? from : end;
    from = from > size ? size : from;
    end = end > size ? size : end;
    memset(to, 0, (size_t)size * sizeof *to);
    for (int64_t i = from; i < end; i++)
        to[i] = r->s->window[i] * (double)r->sound[at + i];
}

/* The spectra of two real frames from that of one as the real part, the other as the
 * imaginary part, of `size` numbers. */
static void split(const double *z, size_t size, double *a, double *b, size_t bins)
{
    for (size_t k = 0; k < bins; k++) {
        size_t other = k == 0 ? 0 : size - k;
        double re = z[k], im = z[k + size], re2 = z[other], im2 = z[other + size];

        a[k] = (re + re2) / 2;
        a[k + bins] = (im - im2) / 2;
        b[k] = (im + im2) / 2;
        b[k + bins] = (re2 - re) / 2;
    }
}

/* Spectrum `frame`; 0 from the number of frames on. */
static void
spectrum(struct run *r, int64_t frame, double **ret_magnitude, double **ret_unit)
{
    struct pair *pair = &r->pair[frame / 2 % 2];
    size_t size = (size_t)r->s->size, bins = r->s->bins;

    if (pair->number != frame / 2) {
        double *z, *other;

        pair->number = frame / 2;
        read_frame(r, frame / 2 * 2, r->x);
        read_frame(r, frame / 2 * 2 + 1, r->x + size);
        z = r->table->dft(&r->s->dft, r->x, r->work);
        other = z == r->x ? r->work : r->x;
        /* `units` hold the spectra until polar() has read them. */
        split(z, size, pair->unit[0], pair->unit[1], bins);
        for (int i = 0; i < 2; i++) {
            memcpy(other, pair->unit[i], 2 * bins * sizeof *other);
            r->table->polar(other, bins, bins, pair->magnitude[i], pair->unit[i]);
        }
    }
    *ret_magnitude = pair->magnitude[frame % 2];
    *ret_unit = pair->unit[frame % 2];
}

/* ---- frames of the result ---- */

/* The spectrum at `step`: real parts, then imaginary ones. The phase then moves on. */
static void put_spectrum(struct run *r, double step, double *to)
{
    size_t bins = r->s->bins;
    int64_t frame = (int64_t)step;
    double part = step - (double)frame, *mag[2], *unit[2];

    spectrum(r, frame, &mag[0], &unit[0]);
    spectrum(r, frame + 1, &mag[1], &unit[1]);
    if (step <= 0)
        memcpy(r->phase, unit[0], 2 * bins * sizeof *r->phase);
    for (size_t k = 0; k < bins; k++) {
        double magnitude = (1 - part) * mag[0][k] + part * mag[1][k];

        to[k] = magnitude * r->phase[k];
        to[k + bins] = magnitude * r->phase[k + bins];
    }
    r->table->turn(r->phase, unit[0], unit[1], bins);
}

/* Two frames, times the size: that of spectrum `a` and that of `b`, which are `size`
 * numbers long each, of which the first half is set. */
static void
inverse(struct run *r, const double *a, const double *b, double **ret_a, double **ret_b)
{
    size_t size = (size_t)r->s->size, bins = r->s->bins;
    double *z;

    /* a + i * b, mirrored; real and imaginary parts are swapped. */
    for (size_t k = 0; k < bins; k++) {
        r->x[k + size] = a[k] - b[k + bins];
        r->x[k] = a[k + bins] + b[k];
    }
    for (size_t k = 1; k < bins - 1; k++) {
        r->x[2 * size - k] = a[k] + b[k + bins];
        r->x[size - k] = b[k] - a[k + bins];
    }
    z = r->table->dft(&r->s->dft, r->x, r->work);
    *ret_a = z + size;
    *ret_b = z;
}

/* Adds a frame to the samples that are not complete. */
static void add_frame(struct run *r, const double *frame)
{
    double scale = 1 / (double)r->s->size;

    for (int64_t i = 0; i < r->s->size; i++) {
        double window = r->s->window[i];

        r->sum[i] += window * (frame[i] * scale);
        r->weight[i] += window * window;
    }
}

/* Moves `done` samples to the result, the first of them to place `at`. */
static void
put_samples(struct run *r, int64_t done, int64_t at, float *out, int64_t out_count)
{
    size_t rest = (size_t)(r->s->size - done);

    for (int64_t i = at < 0 ? -at : 0; i < done && at + i < out_count; i++)
        out[at + i] = (float)(r->weight[i] > (double)FLT_MIN ? r->sum[i] / r->weight[i]
                                                             : r->sum[i]);
    memmove(r->sum, r->sum + done, rest * sizeof *r->sum);
    memmove(r->weight, r->weight + done, rest * sizeof *r->weight);
    memset(r->sum + rest, 0, (size_t)done * sizeof *r->sum);
    memset(r->weight + rest, 0, (size_t)done * sizeof *r->weight);
}

enum hr_err hr__stretch_run(const struct hr_stretch *s, struct hr_arena *arena,
                            const float *sound, int64_t count, double rate, float *out)
{
    int64_t out_count = hr__stretch_count(count, rate), half = s->size / 2, frames;
    struct run r = {.s = s, .table = hr__sound_table(), .sound = sound, .count = count};
    double *spectra[2], *frame[2];

    r.frames = 1 + count / s->hop;
    frames = (int64_t)ceil((double)r.frames / rate);
    if (frames > (out_count + s->size + s->hop - 1) / s->hop)
        frames = (out_count + s->size + s->hop - 1) / s->hop;
    HR_TRY(begin(&r, arena));
    if (!alloc(arena, 2 * s->bins, &spectra[0]) ||
        !alloc(arena, 2 * s->bins, &spectra[1]))
        return HR_ERR_MEMORY;
    memset(out, 0, (size_t)out_count * sizeof *out);
    for (int64_t t = 0; t < frames; t += 2) {
        for (int i = 0; i < 2; i++)
            if (t + i < frames)
                put_spectrum(&r, (double)(t + i) * rate, spectra[i]);
            else
                memset(spectra[i], 0, 2 * s->bins * sizeof *spectra[i]);
        inverse(&r, spectra[0], spectra[1], &frame[0], &frame[1]);
        for (int64_t i = 0; i < 2 && t + i < frames; i++) {
            add_frame(&r, frame[i]);
            put_samples(&r, s->hop, (t + i) * s->hop - half, out, out_count);
        }
    }
    put_samples(&r, s->size, frames * s->hop - half, out, out_count);
    return HR_OK;
}
