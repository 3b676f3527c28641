/*
 * codec/jpeg_rows.h - upsampling and colour conversion, included once per instruction
 * set; the loops are written for auto-vectorisation.
 */
#include "codec/jpeg_priv.h"

#include <string.h>

/* Two adjacent bytes as one store. */
static inline uint16_t pair(unsigned first, unsigned second)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (uint16_t)(first | second << 8);
#else
    return (uint16_t)(first << 8 | second);
#endif
}

/* sums[1 .. n] hold the inputs. Weights are one quarter for the neighbour and three for
 * the pixel; `shift` and the biases must match. */
static inline __attribute__((always_inline)) void
widen(uint16_t *restrict sums, uint8_t *restrict out, int32_t n, unsigned bias_left,
      unsigned bias_right, int shift)
{
    sums[0] = sums[1];
    sums[n + 1] = sums[n];
    for (int32_t i = 0; i < n; i++) {
        unsigned here = 3U * sums[i + 1];
        uint16_t left = (uint16_t)((uint16_t)(here + sums[i] + bias_left) >> shift);
        uint16_t right = (uint16_t)((uint16_t)(here + sums[i + 2] + bias_right) >> shift);
        uint16_t both = pair(left, right);

        memcpy(out + 2 * i, &both, sizeof both);
    }
}

static void wider(const uint8_t *restrict in, uint16_t *restrict sums,
                  uint8_t *restrict out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        sums[i + 1] = in[i];
    widen(sums, out, n, 1, 2, 2);
}

static void wider_between(const uint8_t *restrict near, const uint8_t *restrict far,
                          uint16_t *restrict sums, uint8_t *restrict out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        sums[i + 1] = (uint16_t)(3 * near[i] + far[i]);
    widen(sums, out, n, 8, 7, 4);
}

static void between(const uint8_t *restrict near, const uint8_t *restrict far, int bias,
                    uint8_t *restrict out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        out[i] = (uint8_t)((uint16_t)(3 * near[i] + far[i] + bias) >> 2);
}

static inline uint8_t clamp8(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Coefficients are round(x * 2^16): 91881 for 1.402, 116130 for 1.772, 22554 for 0.34414,
 * 46802 for 0.71414. */
static inline void rgb_scalar(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                              uint8_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++, out += 3) {
        int32_t b = cb[i] - 128, r = cr[i] - 128;

        out[0] = clamp8(y[i] + ((91881 * r + 32768) >> 16));
        out[1] = clamp8(y[i] + ((-22554 * b - 46802 * r + 32768) >> 16));
        out[2] = clamp8(y[i] + ((116130 * b + 32768) >> 16));
    }
}
