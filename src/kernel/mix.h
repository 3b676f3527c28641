/*
 * kernel/mix.h - weighted sums of images.
 *
 * Products are rounded before they are added.
 */
#ifndef HR_KERNEL_MIX_H
#define HR_KERNEL_MIX_H

#include <stddef.h>

/* out = x * a + y * b */
void hr__mix_f32(const float *x, float a, const float *y, float b, float *out, size_t n);

#endif
