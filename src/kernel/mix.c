/*
 * kernel/mix.c - weighted sums of images, in plain C: memory is the limit.
 */
#include "kernel/mix.h"

void hr__mix_f32(const float *x, float a, const float *y, float b, float *restrict out,
                 size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * a + y[i] * b;
}
