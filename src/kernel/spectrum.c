/*
 * kernel/spectrum.c - tables of transforms, windows and mel bands, and frames in tiles.
 */
#include "kernel/spectrum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/samples.h"
#include "kernel/sound.h"

#define PI 3.14159265358979323846
#define TILE 64 /* frames whose samples are in columns together */

struct hr_spectrum {
    struct hr_spectrum_options options;
    struct hr_fft fft;
    struct hr_mel mel;
    float *tables;
};

/* ---- transform ---- */

/* The next radix for what is left of a length: those with code of their own, then primes;
 * 0 if that is larger than HR_RADIX_MAX. */
static int32_t next_radix(int32_t left)
{
    static const int32_t first[] = {8, 4, 2, 3, 5};

    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (left % first[i] == 0)
            return first[i];
    for (int32_t p = 7; p <= HR_RADIX_MAX && p <= left; p += 2)
        if (left % p == 0)
            return p;
    return 0;
}

static bool choose_stages(struct hr_fft *fft)
{
    int32_t left = fft->points, stride = 1;

    while (left > 1) {
        int32_t radix = next_radix(left);

        if (radix == 0)
            return false;
        assert(fft->stages < HR_FFT_STAGES_MAX);
        left /= radix;
        fft->stage[fft->stages++] =
            (struct hr_fft_stage){.radix = radix, .count = left, .stride = stride};
        stride *= radix;
    }
    return true;
}

/* exp(-2 pi i * at / of) */
static float *put_root(float *to, int64_t at, int64_t of)
{
    double angle = -2 * PI * (double)(at % of) / (double)of;

    to[0] = (float)cos(angle);
    to[1] = (float)sin(angle);
    return to + 2;
}

static size_t table_floats(const struct hr_fft *fft)
{
    size_t floats = (size_t)fft->size + 2 * ((size_t)fft->size / 4 + 1);

    for (int i = 0; i < fft->stages; i++)
        floats += 2 * (size_t)fft->stage[i].radix * ((size_t)fft->stage[i].count + 1);
    return floats;
}

static float *put_stage(struct hr_fft_stage *s, float *to)
{
    s->twiddles = to;
    for (int64_t b = 0; b < s->count; b++)
        for (int64_t k = 1; k < s->radix; k++)
            to = put_root(to, b * k, (int64_t)s->count * s->radix);
    s->roots = to;
    for (int64_t k = 0; k < s->radix; k++)
        to = put_root(to, k, s->radix);
    return to;
}

static double window_at(int window, int32_t at, int32_t width)
{
    double turn = 2 * PI * at / width;

    switch ((enum hr_window)window) {
    case HR_WINDOW_HANN:
        return 0.5 - 0.5 * cos(turn);
    case HR_WINDOW_HAMMING:
        return 0.54 - 0.46 * cos(turn);
    case HR_WINDOW_BLACKMAN:
        return 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn);
    default:
        return 1;
    }
}

static void put_window(struct hr_fft *fft, const struct hr_spectrum_options *o, float *to)
{
    int32_t before = (o->size - o->width) / 2;

    fft->window = to;
    for (int32_t i = 0; i < o->width; i++)
        to[before + i] = (float)window_at(o->window, i, o->width);
}

static enum hr_err make_fft(struct hr_spectrum *s, struct hr_error *reterr)
{
    struct hr_fft *fft = &s->fft;
    float *at;

    fft->size = s->options.size;
    fft->points = fft->size % 2 == 0 ? fft->size / 2 : fft->size;
    if (!choose_stages(fft))
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a transform of %d samples: the largest prime factor that is "
                        "supported is %d",
                        (int)fft->size, HR_RADIX_MAX);
    at = s->tables = hr__calloc(table_floats(fft), sizeof *at);
    if (at == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    put_window(fft, &s->options, at);
    at += fft->size;
    if (fft->size % 2 == 0) {
        fft->halves = at;
        for (int32_t k = 0; k <= fft->size / 4; k++)
            at = put_root(at, k, fft->size);
    }
    for (int i = 0; i < fft->stages; i++)
        at = put_stage(&fft->stage[i], at);
    return HR_OK;
}

/* ---- plan ---- */

enum hr_err
hr__spectrum_create(const struct hr_spectrum_options *options,
                    const struct hr_mel_options *mel, struct hr_spectrum **ret_spectrum,
                    struct hr_error *reterr)
{
    struct hr_spectrum *s = hr__calloc(1, sizeof *s);
    enum hr_err err;

    assert(options->size >= 2 && options->hop >= 1);
    assert(options->width >= 1 && options->width <= options->size);
    if (s == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    s->options = *options;
    err = make_fft(s, reterr);
    if (err == HR_OK && mel->count > 0)
        err = hr__mel_create(mel, options->size, &s->mel, reterr);
    if (err != HR_OK) {
        hr__spectrum_destroy(s);
        return err;
    }
    *ret_spectrum = s;
    return HR_OK;
}

void hr__spectrum_destroy(struct hr_spectrum *s)
{
    if (s == NULL)
        return;
    hr__free(s->tables);
    hr__mel_destroy(&s->mel);
    hr__free(s);
}

int32_t hr__spectrum_rows(const struct hr_spectrum_options *options,
                          const struct hr_mel_options *mel)
{
    return mel->count > 0 ? mel->count : options->size / 2 + 1;
}

int64_t hr__spectrum_frames(const struct hr_spectrum_options *options, int64_t count)
{
    if (count < 1 || (!options->centre && count < options->size))
        return 0;
    return 1 + (options->centre ? count : count - options->size) / options->hop;
}

/* Copies the columns of HR_SOUND_LANES frames to their places. */
static void
put_frames(const float *from, size_t rows, size_t left, int64_t frames, float *to)
{
    if (left >= HR_SOUND_LANES)
        for (size_t r = 0; r < rows; r++)
            memcpy(to + r * (size_t)frames, from + r * HR_SOUND_LANES,
                   HR_SOUND_LANES * sizeof *to);
    else
        for (size_t r = 0; r < rows; r++)
            memcpy(to + r * (size_t)frames, from + r * HR_SOUND_LANES, left * sizeof *to);
}

/* Memory of a run. */
struct scratch {
    size_t stride, rows;
    float *x, *work, *bins, *bands;
    int32_t *place; /* of each sample of a frame in x */
};

static enum hr_err
make_scratch(const struct hr_spectrum *s, struct hr_arena *arena, struct scratch *m)
{
    size_t size = (size_t)s->options.size, hop = (size_t)s->options.hop;
    size_t lanes = HR_SOUND_LANES;

    m->rows = hop < size ? hop : size;
    m->stride = (TILE + size / hop + lanes) & ~(lanes - 1);
    m->x = hr__arena_alloc(arena, m->stride * m->rows * sizeof *m->x);
    m->work = hr__arena_alloc(arena, 4 * (size + 1) * lanes * sizeof *m->work);
    m->bins = hr__arena_alloc(arena, (size / 2 + 1) * lanes * sizeof *m->bins);
    m->bands =
        hr__arena_alloc(arena, ((size_t)s->mel.bands + 1) * lanes * sizeof *m->bands);
    m->place = hr__arena_alloc(arena, size * sizeof *m->place);
    if (m->x == NULL || m->work == NULL || m->bins == NULL || m->bands == NULL ||
        m->place == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < size; i++)
        m->place[i] = (int32_t)(i % hop * m->stride + i / hop);
    return HR_OK;
}

enum hr_err hr__spectrum_run(const struct hr_spectrum *s, struct hr_arena *arena,
                             const float *sound, int64_t count, float *out)
{
    const struct hr_sound_table *table = hr__sound_table();
    const struct hr_spectrum_options *o = &s->options;
    int64_t frames = hr__spectrum_frames(o, count), before = o->centre ? o->size / 2 : 0;
    enum hr_sound_edge edge = o->reflect ? HR_EDGE_REFLECT : HR_EDGE_ZERO;
    struct scratch m;

    HR_TRY(make_scratch(s, arena, &m));
    for (int64_t f = 0; f < frames; f += HR_SOUND_LANES) {
        int64_t at = f % TILE;

        if (at == 0)
            hr__sound_columns(sound, count, edge, f * o->hop - before, (size_t)o->hop,
                              m.rows, m.x, m.stride,
                              (size_t)(frames - f < TILE ? frames - f : TILE) +
                                  (size_t)((o->size - 1) / o->hop));
        table->spectrum(&s->fft, m.x + at, m.place, o->magnitude, m.work, m.bins);
        if (s->mel.bands > 0)
            table->bands(s->mel.band, (size_t)s->mel.bands, m.bins, m.bands);
        put_frames(s->mel.bands > 0 ? m.bands : m.bins,
                   s->mel.bands > 0 ? (size_t)s->mel.bands : (size_t)o->size / 2 + 1,
                   (size_t)(frames - f), frames, out + f);
    }
    return HR_OK;
}
