/*
 * kernel/rows_pack.h - how the horizontal pass of the u8 resize packs its weights, 8
 * outputs at a time, for AVX2 and NEON.
 *
 * A 128-bit lane holds 8 words: 4 outputs x 2 taps where outputs are close together
 * (shrinking by at most 2), 2 outputs x 4 taps (at most 4), or 1 output x 8 taps. A byte
 * shuffle, the same for all taps of a group, collects the words; loads advance with the
 * taps. Layout of `packed`: struct across, then per group of 8 outputs a header with the
 * first words of its lanes, the shuffles, and 32 bytes of weights per step.
 */
#ifndef HR_KERNEL_ROWS_PACK_H
#define HR_KERNEL_ROWS_PACK_H

#include "kernel/rows.h"

#include <string.h>

enum { ACROSS_4X2, ACROSS_2X4, ACROSS_1X8, ACROSS_FORMS };

struct across {
    int form;
    char pad[60];
};

/* One group: `form` 4X2 uses 1 register of 2 lanes, 2X4 two, 1X8 four. lane[r][l] begins
 * at base[r][l]. */
struct across_group {
    int32_t base[4][2];
    int32_t steps;
    char pad[28];
    uint8_t shuffle[2][32];
};

static inline int across_taps(int form)
{
    return 2 << form;
}

static inline int across_registers(int form)
{
    return 1 << form;
}

/* The largest distance within any run of `size` starts. */
static int32_t spread_of(const struct hr_axis *x, int32_t size)
{
    int32_t most = 0;

    for (int32_t i = 0; i < x->count; i += size) {
        int32_t last = i + size - 1 < x->count ? i + size - 1 : x->count - 1;
        int32_t d = x->start[last] - x->start[i];

        d = d < 0 ? -d : d; /* starts are monotonic, decreasing on a mirrored axis */
        most = d > most ? d : most;
    }
    return most;
}

static int across_form(const struct hr_axis *x)
{
    return spread_of(x, 4) <= 6   ? ACROSS_4X2
           : spread_of(x, 2) <= 4 ? ACROSS_2X4
                                  : ACROSS_1X8;
}

static size_t across_bytes(const struct hr_axis *x)
{
    size_t groups = ((size_t)x->count + 7) / 8;
    size_t steps = ((size_t)x->stride + 7) / 8;

    /* 8 taps of 8 outputs take 128 bytes in every form */
    return sizeof(struct across) + groups * (sizeof(struct across_group) + steps * 128);
}

/* The output at register r, lane l, position p in the lane, so that the additions at the
 * end restore natural order. */
static inline int32_t across_output(int form, int r, int l, int p)
{
    int per_lane = 4 >> form;

    return 4 * l + r * per_lane + p;
}

static void pack_lane(const struct hr_axis *x, int32_t from, struct across_group *group,
                      int form, int r, int l)
{
    int32_t start[4], base = INT32_MAX;
    int outputs = 4 >> form, taps = across_taps(form);

    for (int p = 0; p < outputs; p++) {
        int32_t i = from + across_output(form, r, l, p);

        i = i < x->count ? i : x->count - 1;
        start[p] = x->start[i] - x->first;
        base = start[p] < base ? start[p] : base;
    }
    group->base[r][l] = base;
    for (int p = 0; p < outputs && form != ACROSS_1X8; p++)
        for (int b = 0; b < 2 * taps; b++)
            group->shuffle[r][16 * l + 2 * taps * p + b] =
                (uint8_t)(2 * (start[p] - base) + b);
}

static void pack_weights(const struct hr_axis *x, int32_t from, int form, int step, int r,
                         int16_t *to)
{
    int taps = across_taps(form);

    for (int l = 0; l < 2; l++)
        for (int p = 0; p < 4 >> form; p++, to += taps) {
            int32_t i = from + across_output(form, r, l, p);
            int32_t left = x->stride - step * taps;
            int32_t count = i >= x->count || left < 0 ? 0 : left < taps ? left : taps;

            memset(to, 0, (size_t)taps * sizeof *to);
            if (count > 0)
                memcpy(to, x->coarse + (size_t)i * (size_t)x->stride + step * taps,
                       (size_t)count * sizeof *to);
        }
}

static void across_pack(struct hr_axis *x, int form)
{
    char *at = (char *)x->packed + sizeof(struct across);
    int taps = across_taps(form), registers = across_registers(form);

    ((struct across *)x->packed)->form = form;
    for (int32_t i = 0; i < x->count; i += 8) {
        struct across_group *group = (struct across_group *)(void *)at;
        int32_t length = 0;

        for (int32_t k = i; k < i + 8 && k < x->count; k++)
            length = x->length[k] > length ? x->length[k] : length;
        group->steps = (length + taps - 1) / taps;
        for (int r = 0; r < registers; r++)
            for (int l = 0; l < 2; l++)
                pack_lane(x, i, group, form, r, l);
        at += sizeof *group;
        for (int step = 0; step < group->steps; step++)
            for (int r = 0; r < registers; r++, at += 32)
                pack_weights(x, i, form, step, r, (int16_t *)(void *)at);
    }
}

#endif
