/*
 * kernel/rows_across.h - the horizontal pass of the u8 resize on 8 outputs, for AVX2;
 * uses the layout of rows_pack.h.
 */
#ifndef HR_KERNEL_ROWS_ACROSS_H
#define HR_KERNEL_ROWS_ACROSS_H

#include "kernel/rows_pack.h"

#include <immintrin.h>

HR_INLINE void
across_finish(float *out, int32_t count, __m256i sum, const struct hr_finish *finish)
{
    __m256 v;

    if (finish->round) {
        sum = _mm256_add_epi32(sum, _mm256_set1_epi32(1 << (finish->shift - 1)));
        sum = _mm256_sra_epi32(sum, _mm_cvtsi32_si128(finish->shift));
        sum = _mm256_max_epi32(sum, _mm256_setzero_si256());
        sum = _mm256_min_epi32(sum, _mm256_set1_epi32(255));
    }
    v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(finish->scale));
    v = _mm256_add_ps(v, _mm256_set1_ps(finish->bias));
    if (count >= 8) {
        _mm256_storeu_ps(out, v);
    } else {
        float some[8];

        _mm256_storeu_ps(some, v);
        memcpy(out, some, (size_t)count * sizeof *out);
    }
}

static inline __m256i across_load(const int16_t *row, const int32_t base[2])
{
    __m128i low = _mm_loadu_si128((const void *)(row + base[0]));
    __m128i high = _mm_loadu_si128((const void *)(row + base[1]));

    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

HR_INLINE __m256i across_add_up(const __m256i sum[4], int form)
{
    if (form == ACROSS_4X2)
        return sum[0];
    if (form == ACROSS_2X4)
        return _mm256_hadd_epi32(sum[0], sum[1]);
    return _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]),
                             _mm256_hadd_epi32(sum[2], sum[3]));
}

/* `form` and `channels` are constants at each call. */
HR_INLINE void
across_loop(const struct hr_axis *x, const int16_t *const row[], float *const out[],
            const struct hr_finish finish[], int form, int channels)
{
    const char *at = (const char *)x->packed + sizeof(struct across);
    const int taps = across_taps(form), registers = across_registers(form);

    for (int32_t i = 0; i < x->count; i += 8) {
        const struct across_group *group = (const void *)at;
        __m256i sum[3][4];

        for (int c = 0; c < channels; c++)
            for (int r = 0; r < registers; r++)
                sum[c][r] = _mm256_setzero_si256();
        at += sizeof *group;
        for (int32_t k = 0; k < group->steps; k++) {
#pragma GCC unroll 4
            for (int r = 0; r < registers; r++, at += 32) {
                __m256i weight = _mm256_load_si256((const void *)at);

#pragma GCC unroll 3
                for (int c = 0; c < channels; c++) {
                    __m256i v = across_load(row[c] + k * taps, group->base[r]);

                    if (form != ACROSS_1X8)
                        v = _mm256_shuffle_epi8(
                            v, _mm256_load_si256((const void *)group->shuffle[r]));
                    sum[c][r] = _mm256_add_epi32(sum[c][r], _mm256_madd_epi16(v, weight));
                }
            }
        }
#pragma GCC unroll 3
        for (int c = 0; c < channels; c++)
            across_finish(out[c] + i, x->count - i, across_add_up(sum[c], form),
                          &finish[c]);
    }
}

/* Two (chroma) or three channels share weights and shuffles if the sums fit in
 * registers. */
static inline void
across_run(const struct hr_axis *x, const int16_t *const row[], float *const out[],
           const struct hr_finish finish[], int32_t channels, int form)
{
    if (channels == 3 && form == ACROSS_4X2) {
        across_loop(x, row, out, finish, ACROSS_4X2, 3);
        return;
    }
    if (channels == 3 && form == ACROSS_2X4) {
        across_loop(x, row, out, finish, ACROSS_2X4, 3);
        return;
    }
    if (channels == 2 && form == ACROSS_4X2) {
        across_loop(x, row, out, finish, ACROSS_4X2, 2);
        return;
    }
    for (int32_t c = 0; c < channels; c++) {
        if (form == ACROSS_4X2)
            across_loop(x, row + c, out + c, finish + c, ACROSS_4X2, 1);
        else if (form == ACROSS_2X4)
            across_loop(x, row + c, out + c, finish + c, ACROSS_2X4, 1);
        else
            across_loop(x, row + c, out + c, finish + c, ACROSS_1X8, 1);
    }
}

#endif
