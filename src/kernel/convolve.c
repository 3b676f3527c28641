/*
 * kernel/convolve.c - convolution in blocks (overlap-save).
 *
 * Two blocks make one complex transform: the response is real, so what begins as the real
 * part stays there.
 */
#include "kernel/convolve.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/dft.h"
#include "kernel/sound.h"

#define SMALLEST 10 /* the binary logarithm of the smallest transform's size */
#define LARGEST 24

struct hr_convolver {
    int last;
    struct hr_dft dft[LARGEST + 1]; /* by the logarithm of the size, up to the last */
};

/* The logarithm of the least size that holds `count` numbers. */
static int size_for(int64_t count)
{
    int size = SMALLEST;

    while ((int64_t)1 << size < count)
        size++;
    return size;
}

enum hr_err hr__convolver_create(int64_t longest, struct hr_convolver **ret_convolver,
                                 struct hr_error *reterr)
{
    struct hr_convolver *c = hr__calloc(1, sizeof *c);

    assert(longest >= 1 && longest <= HR_CONVOLVE_MAX);
    if (c == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    c->last = size_for(4 * longest);
    for (int i = SMALLEST; i <= c->last; i++) {
        enum hr_err err = hr__dft_create(1 << i, &c->dft[i], reterr);

        if (err != HR_OK) {
            hr__convolver_destroy(c);
            return err;
        }
    }
    *ret_convolver = c;
    return HR_OK;
}

void hr__convolver_destroy(struct hr_convolver *c)
{
    if (c == NULL)
        return;
    for (int i = SMALLEST; i <= c->last; i++)
        hr__dft_destroy(&c->dft[i]);
    hr__free(c);
}

/* In blocks of four times the response, three quarters are new samples. A short sound is
 * two blocks of half its samples. */
static const struct hr_dft *
choose_dft(const struct hr_convolver *c, int64_t taps, int64_t count)
{
    int64_t half = taps + count / 2;

    assert(4 * taps <= (int64_t)1 << c->last);
    return &c->dft[size_for(half < 4 * taps ? half : 4 * taps)];
}

/* Samples from `at` on; 0 outside. */
static void read_block(const float *in, int64_t count, int64_t at, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = at + i >= 0 && at + i < count ? (double)in[at + i] : 0;
}

/* z * h, with real and imaginary parts swapped for the way back. */
static void multiply(double *z, const double *h, size_t size)
{
    for (size_t k = 0; k < size; k++) {
        double re = z[k] * h[k] - z[k + size] * h[k + size];
        double im = z[k] * h[k + size] + z[k + size] * h[k];

        z[k] = im;
        z[k + size] = re;
    }
}

static void write_block(const double *from, double scale, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(from[i] * scale);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum hr_err hr__convolver_run(const struct hr_convolver *c, struct hr_arena *arena,
                              const float *response, int64_t taps, const float *in,
                              int64_t count, int64_t from, float *out)
{
    const struct hr_sound_table *table = hr__sound_table();
    const struct hr_dft *dft = choose_dft(c, taps, count);
    size_t size = dft->size, bytes = 2 * size * sizeof(double);
    int64_t fresh = (int64_t)size - taps + 1;
    double *h = hr__arena_alloc(arena, bytes), *x = hr__arena_alloc(arena, bytes);
    double *work = hr__arena_alloc(arena, bytes), *at, *other;

    assert(taps >= 1 && fresh >= 1);
    if (h == NULL || x == NULL || work == NULL)
        return HR_ERR_MEMORY;
    read_block(response, taps, 0, h, (int64_t)size);
    memset(h + size, 0, size * sizeof *h);
    at = table->dft(dft, h, work);
    if (at != h)
        memcpy(h, at, bytes);
    for (int64_t b = 0; b < count; b += 2 * fresh) {
        read_block(in, count, b + from - taps + 1, x, (int64_t)size);
        read_block(in, count, b + fresh + from - taps + 1, x + size, (int64_t)size);
        at = table->dft(dft, x, work);
        other = at == x ? work : x;
        multiply(at, h, size);
        at = table->dft(dft, at, other);
        write_block(at + size + taps - 1, 1 / (double)size, out + b,
                    smaller(fresh, count - b));
        if (b + fresh < count)
            write_block(at + taps - 1, 1 / (double)size, out + b + fresh,
                        smaller(fresh, count - b - fresh));
    }
    return HR_OK;
}
