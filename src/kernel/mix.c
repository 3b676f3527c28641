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

void hr__mix_begin(const uint8_t *levels, float weight, float *restrict sum, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = (float)levels[i] * weight;
}

void hr__mix_add(const uint8_t *levels, float weight, float *restrict sum, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += (float)levels[i] * weight;
}

void hr__mix_end(const float *sum, uint8_t *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float level = sum[i] < 255 ? sum[i] : 255;

        out[i] = (uint8_t)(int)(level > 0 ? level : 0);
    }
}
