/*
 * kernel/dft.c - tables of transforms in double precision.
 */
#include "kernel/dft.h"

#include <assert.h>
#include <math.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/sound.h"

#define PI 3.14159265358979323846

/* The next radix for what is left of a size; 0 if that is larger than HR_RADIX_MAX. */
static size_t next_radix(size_t left)
{
    static const size_t first[] = {4, 2, 3, 5};

    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (left % first[i] == 0)
            return first[i];
    for (size_t p = 7; p <= HR_RADIX_MAX && p <= left; p += 2)
        if (left % p == 0)
            return p;
    return 0;
}

static bool choose_stages(struct hr_dft *dft, size_t *ret_pairs)
{
    size_t left = dft->size, stride = 1, pairs = 1;

    while (left > 1) {
        size_t radix = next_radix(left);

        if (radix == 0)
            return false;
        assert(dft->stages < HR_DFT_STAGES_MAX);
        left /= radix;
        dft->stage[dft->stages++] =
            (struct hr_dft_stage){.radix = radix, .count = left, .stride = stride};
        pairs += (radix - 1) * left + radix;
        stride *= radix;
    }
    *ret_pairs = pairs;
    return true;
}

/* exp(-2 pi i * at / of) */
static double *put_root(double *to, size_t at, size_t of)
{
    double angle = -2 * PI * (double)(at % of) / (double)of;

    to[0] = cos(angle);
    to[1] = sin(angle);
    return to + 2;
}

enum hr_err hr__dft_create(int32_t size, struct hr_dft *ret_dft, struct hr_error *reterr)
{
    struct hr_dft dft = {.size = (size_t)size};
    size_t pairs;
    double *at;

    assert(size > 0);
    if (!choose_stages(&dft, &pairs))
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a transform of %d samples: the largest prime factor that is "
                        "supported is %d",
                        (int)size, HR_RADIX_MAX);
    at = dft.tables = hr__calloc(2 * pairs, sizeof *at);
    if (at == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (int i = 0; i < dft.stages; i++) {
        struct hr_dft_stage *s = &dft.stage[i];

        s->twiddles = at;
        for (size_t b = 0; b < s->count; b++)
            for (size_t k = 1; k < s->radix; k++)
                at = put_root(at, b * k, s->count * s->radix);
        s->roots = at;
        for (size_t k = 0; k < s->radix; k++)
            at = put_root(at, k, s->radix);
    }
    *ret_dft = dft;
    return HR_OK;
}

void hr__dft_destroy(struct hr_dft *dft)
{
    hr__free(dft->tables);
    *dft = (struct hr_dft){0};
}
