/*
 * kernel/vec.h - the few f32 operations of the float kernels, VL lanes wide.
 *
 * The includer defines VL as 1, 4 (NEON), 8 (AVX2) or 16 (AVX-512). With 1 the "vector"
 * is a plain float and the kernel plain C. Both use the operators + - * /. min and max
 * return the second operand if one is NaN, like minps. vf_fma is a * b + c and vf_nfma c
 * - a * b, rounded once.
 */
#ifndef HR_KERNEL_VEC_H
#define HR_KERNEL_VEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if VL == 16
#include <immintrin.h>
typedef __m512 vf;
#define vf_set(x) _mm512_set1_ps(x)
#define vf_load(p) _mm512_loadu_ps(p)
#define vf_store(p, v) _mm512_storeu_ps(p, v)
#define vf_min(a, b) _mm512_min_ps(a, b)
#define vf_max(a, b) _mm512_max_ps(a, b)
#define vf_abs(a) _mm512_abs_ps(a)
#define vf_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define vf_nfma(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define vf_sqrt(a) _mm512_sqrt_ps(a)
#define vf_floor(a) _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define vf_rint(a) _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
/* a == b ? x : y */
#define vf_if_eq(a, b, x, y)                                                             \
    _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), y, x)
#elif VL == 8
#include <immintrin.h>
typedef __m256 vf;
#define vf_set(x) _mm256_set1_ps(x)
#define vf_load(p) _mm256_loadu_ps(p)
#define vf_store(p, v) _mm256_storeu_ps(p, v)
#define vf_min(a, b) _mm256_min_ps(a, b)
#define vf_max(a, b) _mm256_max_ps(a, b)
#define vf_abs(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define vf_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define vf_nfma(a, b, c) _mm256_fnmadd_ps(a, b, c)
#define vf_sqrt(a) _mm256_sqrt_ps(a)
#define vf_floor(a) _mm256_round_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define vf_rint(a) _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define vf_if_eq(a, b, x, y) _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_EQ_OQ))
#elif VL == 4
#include <arm_neon.h>
typedef float32x4_t vf;
#define vf_set(x) vdupq_n_f32(x)
#define vf_load(p) vld1q_f32(p)
#define vf_store(p, v) vst1q_f32(p, v)
/* Not vminq and vmaxq, which return NaN if either operand is NaN. */
#define vf_min(a, b) neon_min(a, b)
#define vf_max(a, b) neon_max(a, b)
#define vf_abs(a) vabsq_f32(a)
#define vf_fma(a, b, c) vfmaq_f32(c, a, b)
#define vf_nfma(a, b, c) vfmsq_f32(c, a, b)
#define vf_sqrt(a) vsqrtq_f32(a)
#define vf_floor(a) vrndmq_f32(a)
#define vf_rint(a) vrndnq_f32(a)
#define vf_if_eq(a, b, x, y) vbslq_f32(vceqq_f32(a, b), x, y)

static inline vf neon_min(vf a, vf b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

static inline vf neon_max(vf a, vf b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
#else
typedef float vf;
#define vf_set(x) (x)
#define vf_load(p) (*(p))
#define vf_store(p, v) (*(p) = (v))
#define vf_min(a, b) ((a) < (b) ? (a) : (b))
#define vf_max(a, b) ((a) > (b) ? (a) : (b))
#define vf_abs(a) fabsf(a)
#define vf_fma(a, b, c) fmaf(a, b, c)
#define vf_nfma(a, b, c) fmaf(-(a), b, c)
#define vf_sqrt(a) sqrtf(a)
#define vf_floor(a) floorf(a)
#define vf_rint(a) rintf(a)
#define vf_if_eq(a, b, x, y) ((a) == (b) ? (x) : (y))
#endif

#endif
