/*
 * kernel/sound_log.h - the logarithm to base 2 of positive normal floats, for VL lanes.
 *
 * The exponent is split off at sqrt(1/2), so that logarithms near 0 keep their precision;
 * a polynomial of degree 8 approximates log2(1 + f) / f.
 */
#ifndef HR_KERNEL_SOUND_LOG_H
#define HR_KERNEL_SOUND_LOG_H

#include <string.h>

#include "kernel/vec.h"

#if VL == 1
typedef int32_t vi;
#define VI_SHIFT(a) ((a) >> 23)
#define VI_TO_VF(a) ((float)(a))
#else
typedef int32_t vi __attribute__((vector_size(VL * 4)));
#define VI_SHIFT(a) ((a) >> 23)
#define VI_TO_VF(a) ((vf) __builtin_convertvector(a, vf))
#endif

static inline vf vf_log2(vf x)
{
    static const float c[] = {1.44269502f,   -0.721347332f, 0.480910629f,
                              -0.360703677f, 0.287916243f,  -0.238944814f,
                              0.215715587f,  -0.207269788f, 0.125837103f};
    vi bits, exponent, fraction;
    vf f, sum;

    memcpy(&bits, &x, sizeof bits);
    bits = bits - 0x3f3504f3;
    exponent = VI_SHIFT(bits);
    fraction = (bits & 0x7fffff) + 0x3f3504f3;
    memcpy(&f, &fraction, sizeof f);
    f = f - vf_set(1);
    sum = vf_set(c[8]);
    for (int i = 7; i >= 0; i--)
        sum = vf_fma(sum, f, vf_set(c[i]));
    return vf_fma(f, sum, VI_TO_VF(exponent));
}

#endif
