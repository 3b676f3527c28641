/*
 * kernel/polyphase.c - the filters' tables, and sounds in tiles of blocks.
 *
 * A block of `in` samples becomes one of `out`. With one block per lane all lanes have
 * the same phase, so a coefficient is broadcast and the sum of an output stays in its
 * lane.
 */
#include "kernel/polyphase.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/samples.h"
#include "kernel/shape.h"
#include "kernel/sound.h"

#define PI 3.14159265358979323846
#define WEIGHTS_MAX ((int64_t)16 << 20)
#define TILE_FLOATS 24576

struct hr_polyphase {
    struct hr_fir fir;
    int32_t lead;  /* blocks before one that its outputs reach into */
    int32_t after; /* blocks from there to the last that they reach into */
    int32_t tile;  /* blocks that are done together */
    struct hr_fir_group *groups;
    float *weights;
};

static int32_t gcd(int32_t a, int32_t b)
{
    while (b != 0) {
        int32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* First and last input that output `phase` of a block takes. */
static void reach(const struct hr_fir *fir, double half, int32_t phase,
                  int64_t *ret_first, int64_t *ret_last)
{
    double centre = (double)phase * fir->in / fir->out;

    *ret_first = (int64_t)ceil(centre - half);
    *ret_last = (int64_t)floor(centre + half);
}

/* `shapes` has room for the group's taps: the shape costs 60 ns each time. */
static void
fill_phase(const struct hr_fir *fir, const struct hr_shape *shape, int32_t phase,
           const struct hr_fir_group *g, double *shapes, float *weights)
{
    double centre = (double)phase * fir->in / fir->out, sum = 0, gain;

    for (int32_t t = 0; t < g->taps; t++) {
        shapes[t] = hr__shape_at(shape, (double)(g->start + t) - centre);
        sum += shapes[t];
    }
    gain = shape->filter == HR_RATE_HQ ? 1 / sum : 1;
    for (int32_t t = 0; t < g->taps; t++)
        weights[t * HR_SOUND_PHASES] = (float)(shapes[t] * gain);
}

/* The last output of group i. */
static int32_t last_phase(const struct hr_fir *fir, int32_t i)
{
    int32_t last = (i + 1) * HR_SOUND_PHASES - 1;

    return last < fir->out ? last : fir->out - 1;
}

static void
fill_groups(struct hr_polyphase *p, const struct hr_shape *shape, double *shapes)
{
    float *weights = p->weights;
    int64_t first, last, from, unused;

    for (int32_t i = 0; i < p->fir.groups; i++) {
        struct hr_fir_group *g = &p->groups[i];

        reach(&p->fir, shape->half, i * HR_SOUND_PHASES, &first, &unused);
        reach(&p->fir, shape->half, last_phase(&p->fir, i), &from, &last);
        g->start = (int32_t)first;
        g->taps = (int32_t)(last - first) + 1;
        g->weights = weights;
        for (int32_t k = i * HR_SOUND_PHASES; k <= last_phase(&p->fir, i); k++)
            fill_phase(&p->fir, shape, k, g, shapes, weights + k % HR_SOUND_PHASES);
        weights += (size_t)g->taps * HR_SOUND_PHASES;
    }
    assert(p->fir.groups > 0);
    reach(&p->fir, shape->half, p->fir.out - 1, &unused, &last);
    p->after = p->lead + (int32_t)(last / p->fir.in);
}

/* Floats of all groups, and the taps of the longest. */
static int64_t count_weights(const struct hr_fir *fir, const struct hr_shape *shape,
                             int64_t *ret_longest)
{
    int64_t sum = 0, first, last, unused;

    *ret_longest = 0;
    for (int32_t i = 0; i < fir->groups && sum <= WEIGHTS_MAX; i++) {
        reach(fir, shape->half, i * HR_SOUND_PHASES, &first, &unused);
        reach(fir, shape->half, last_phase(fir, i), &unused, &last);
        sum += (last - first + 1) * HR_SOUND_PHASES;
        if (last - first + 1 > *ret_longest)
            *ret_longest = last - first + 1;
    }
    return sum;
}

enum hr_err
hr__polyphase_create(int32_t from, int32_t to, enum hr_rate_filter filter,
                     struct hr_polyphase **ret_polyphase, struct hr_error *reterr)
{
    int32_t common = gcd(from, to), in = from / common, out = to / common, periods = 1;
    struct hr_shape shape = hr__shape_of((double)out / in, filter);
    struct hr_polyphase *p;
    int64_t weights, longest;
    double *shapes;

    assert(from > 0 && to > 0);
    if (out < 8 * HR_SOUND_PHASES) /* few phases: whole groups of several periods */
        periods = HR_SOUND_PHASES / gcd(out, HR_SOUND_PHASES);
    p = hr__calloc(1, sizeof *p);
    if (p == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    p->fir.in = in * periods;
    p->fir.out = out * periods;
    p->fir.groups = (p->fir.out + HR_SOUND_PHASES - 1) / HR_SOUND_PHASES;
    weights = count_weights(&p->fir, &shape, &longest);
    if (weights > WEIGHTS_MAX) {
        hr__free(p);
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "from %d to %d Hz is a ratio of %d to %d, whose filter would "
                        "take more than 64 MiB",
                        (int)from, (int)to, (int)in, (int)out);
    }
    p->groups = hr__calloc((size_t)p->fir.groups, sizeof *p->groups);
    p->weights = hr__calloc((size_t)weights, sizeof *p->weights);
    shapes = hr__calloc((size_t)longest, sizeof *shapes);
    if (p->groups == NULL || p->weights == NULL || shapes == NULL) {
        hr__free(shapes);
        hr__polyphase_destroy(p);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    p->lead = (int32_t)ceil(shape.half / p->fir.in);
    fill_groups(p, &shape, shapes);
    hr__free(shapes);
    p->fir.group = p->groups;
    p->tile = TILE_FLOATS / (p->fir.in > p->fir.out ? p->fir.in : p->fir.out);
    p->tile = p->tile > 1024 ? 1024 : p->tile > 32 ? (p->tile + 63) & ~63 : 16;
    *ret_polyphase = p;
    return HR_OK;
}

void hr__polyphase_destroy(struct hr_polyphase *p)
{
    if (p == NULL)
        return;
    hr__free(p->groups);
    hr__free(p->weights);
    hr__free(p);
}

static int64_t block_count(const struct hr_polyphase *p, int64_t count)
{
    return (count + p->fir.in - 1) / p->fir.in;
}

int64_t hr__polyphase_count(const struct hr_polyphase *p, int64_t count)
{
    int64_t whole = count / p->fir.in, rest = count % p->fir.in;

    return whole * p->fir.out + (rest * p->fir.out + p->fir.in - 1) / p->fir.in;
}

int64_t hr__polyphase_room(const struct hr_polyphase *p, int64_t count)
{
    return block_count(p, count) * p->fir.out;
}

static size_t lanes(int64_t columns)
{
    return ((size_t)columns + HR_SOUND_LANES - 1) & ~(size_t)(HR_SOUND_LANES - 1);
}

enum hr_err hr__polyphase_run(const struct hr_polyphase *p, struct hr_arena *arena,
                              const float *in, int64_t count, float *out)
{
    const struct hr_sound_table *table = hr__sound_table();
    int64_t blocks = block_count(p, count);
    size_t tile = blocks < p->tile ? lanes(blocks) : (size_t)p->tile;
    size_t stride = lanes((int64_t)tile + p->after + 1);
    float *x = hr__arena_alloc(arena, stride * (size_t)p->fir.in * sizeof *x);
    float *y = hr__arena_alloc(arena, tile * (size_t)p->fir.out * sizeof *y);

    if (x == NULL || y == NULL)
        return HR_ERR_MEMORY;
    for (int64_t b = 0; b < blocks; b += (int64_t)tile) {
        size_t left = (size_t)(blocks - b) < tile ? (size_t)(blocks - b) : tile;

        hr__sound_columns(in, count, HR_EDGE_ZERO, (b - p->lead) * p->fir.in,
                          (size_t)p->fir.in, (size_t)p->fir.in, x, stride,
                          left + (size_t)p->after);
        table->fir(&p->fir, x, stride, (size_t)p->lead, y, tile, lanes((int64_t)left));
        table->transpose(y, tile, out + b * p->fir.out, (size_t)p->fir.out,
                         (size_t)p->fir.out, left);
    }
    return HR_OK;
}
