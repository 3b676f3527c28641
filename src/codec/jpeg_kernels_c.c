/*
 * codec/jpeg_kernels_c.c - the inner loops in plain C, the reference for the others, and
 * the choice of table.
 */
#include "codec/jpeg_idct.h"
#include "codec/jpeg_rows.h"
#include "codec/jpeg_scan.h"
#include "core/cpu.h"

static const uint8_t *
unstuff(const uint8_t *from, const uint8_t *end, uint8_t *to, uint8_t **ret_to)
{
    for (;;) {
        const uint8_t *ff = memchr(from, 0xFF, (size_t)(end - from));
        size_t bytes = (size_t)((ff != NULL ? ff : end) - from);

        memcpy(to, from, bytes);
        to += bytes;
        *ret_to = to;
        if (ff == NULL || ff + 1 == end)
            return NULL;
        if (ff[1] != 0)
            return ff;
        *to++ = 0xFF;
        from = ff + 2;
    }
}

/* Chains symbols while their codes lie within the index, all take at most 15 bits, and
 * the block continues. */
static void make_skip(struct hr_jpeg_table *table)
{
    const uint32_t *steps = table->step;
    uint16_t *skip = table->skip;

    for (uint32_t i = 0; i < HR_JPEG_LOOKS; i++) {
        uint32_t bits = 0, sum = 0;

        for (int round = 0; round < 4; round++) {
            uint32_t step = steps[i << bits & (HR_JPEG_LOOKS - 1)], more = step & 255;

            if (more == 0 || (step >> 16) + bits > HR_JPEG_BITS || bits + more > 15 ||
                sum >= HR_JPEG_END)
                break;
            bits += more;
            sum += step >> 8 & 255;
        }
        skip[i] = (uint16_t)(sum << 8 | bits);
    }
    table->skips = true;
}

static void
rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, int32_t n)
{
    rgb_scalar(y, cb, cr, out, n);
}

const struct hr_jpeg_kernels hr__jpeg_kernels_c = {
    .unstuff = unstuff,
    .make_skip = make_skip,
    .skip = skip_mcus,
    .decode = decode_mcus,
    .idct = {c_idct_1, c_idct_2, c_idct_4, c_idct_8},
    .wider = wider,
    .wider_between = wider_between,
    .between = between,
    .rgb = rgb,
};

const struct hr_jpeg_kernels *hr__jpeg_kernels(void)
{
#ifdef HR_JPEG_X86
    enum hr_isa isa = hr__isa();

    if (isa >= HR_ISA_AVX512)
        return &hr__jpeg_kernels_avx512;
    if (isa >= HR_ISA_AVX2)
        return &hr__jpeg_kernels_avx2;
#elif defined(HR_JPEG_NEON)
    if (hr__isa() >= HR_ISA_NEON)
        return &hr__jpeg_kernels_neon;
#endif
    return &hr__jpeg_kernels_c;
}
