/*
 * kernel/mix.h - weighted sums of images.
 *
 * Products are rounded before they are added.
 */
#ifndef HR_KERNEL_MIX_H
#define HR_KERNEL_MIX_H

#include <stddef.h>
#include <stdint.h>

/* out = x * a + y * b */
void hr__mix_f32(const float *x, float a, const float *y, float b, float *out, size_t n);

/* sum = level * weight, or added to it. */
void hr__mix_begin(const uint8_t *levels, float weight, float *sum, size_t n);
void hr__mix_add(const uint8_t *levels, float weight, float *sum, size_t n);
/* Truncated to levels. */
void hr__mix_end(const float *sum, uint8_t *out, size_t n);

#endif
