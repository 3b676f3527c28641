/*
 * codec/jpeg_passes.h - the inverse transforms and unstuffing, written once for all
 * vector instruction sets; included by jpeg_x86.h and jpeg_kernels_neon.c.
 *
 * A register (VEC) holds the same row of LANES blocks, 8 values each. The includer
 * defines: struct couples, two registers that multiply() multiplies by two constants and
 * adds into struct sums, the 32-bit sums of a register; plus, minus, shifted and narrow
 * on sums; saturating 16-bit additions; struct range for the smallest and largest
 * results; transpose8 and take_row; put_rows8; copy_64.
 */
/* a + b and a - b, descaled. */
VEC_INLINE void
butterfly(struct sums a, struct sums b, int shift, int more, VEC *sum, VEC *difference)
{
    *sum = narrow(plus(a, b), shift, more);
    *difference = narrow(minus(a, b), shift, more);
}

/* One 8-point transform of each column; `more` is added to the results. */
VEC_INLINE void pass8(VEC r[8], int shift, int more)
{
    struct sums low = shifted(add_saturated(r[0], r[4]), 13);
    struct sums high = shifted(subtract_saturated(r[0], r[4]), 13);
    struct couples p = interleave(r[2], r[6]);
    struct sums t2 = multiply(p, F_0_541, F_0_541 - F_1_847);
    struct sums t3 = multiply(p, F_0_541 + F_0_765, F_0_541);
    struct couples z = interleave(add_saturated(r[7], r[3]), add_saturated(r[5], r[1]));
    struct sums s3 = multiply(z, F_1_175 - F_1_961, F_1_175);
    struct sums s4 = multiply(z, F_1_175, F_1_175 - F_0_390);
    struct couples p71 = interleave(r[7], r[1]), p53 = interleave(r[5], r[3]);
    struct sums odd;

    odd = plus(multiply(p71, -F_0_899, F_1_501 - F_0_899), s4);
    butterfly(plus(low, t3), odd, shift, more, &r[0], &r[7]);
    odd = plus(multiply(p53, -F_2_562, F_3_072 - F_2_562), s3);
    butterfly(plus(high, t2), odd, shift, more, &r[1], &r[6]);
    odd = plus(multiply(p53, F_2_053 - F_2_562, -F_2_562), s4);
    butterfly(minus(high, t2), odd, shift, more, &r[2], &r[5]);
    odd = plus(multiply(p71, F_0_298 - F_0_899, -F_0_899), s3);
    butterfly(minus(low, t3), odd, shift, more, &r[3], &r[4]);
}

static bool idct_8(int16_t *groups, const int16_t *quant, int32_t count, uint8_t *out,
                   ptrdiff_t stride)
{
    struct range range = no_range();

    for (; count > 0; count--, groups += HR_JPEG_GROUP, out += 32) {
        for (int b = 0; b < 4; b += LANES) {
            VEC r[8];

            for (int k = 0; k < 8; k++)
                r[k] = take_row(groups, quant, k, b);
            pass8(r, SHIFT_BETWEEN, 0);
            transpose8(r);
            pass8(r, SHIFT_END, MIDDLE);
            for (int k = 0; k < 8; k++)
                widen_range(&range, r[k]);
            transpose8(r);
            for (int k = 0; k < 8; k += 2)
                put_rows8(r[k], r[k + 1], out + k * stride + 8 * b, stride);
        }
    }
    return is_within(&range, RESULT_MAX, MIDDLE);
}

/* A pass of the 4x4 transform; the fifth row is ignored. */
VEC_INLINE void pass4(const VEC r[8], int shift, int more, VEC out[4])
{
    struct sums t0 = shifted(r[0], 14);
    struct sums t2 = multiply(interleave(r[2], r[6]), F_1_847, -F_0_765);
    struct couples p75 = interleave(r[7], r[5]), p31 = interleave(r[3], r[1]);
    struct sums o0 =
        plus(multiply(p75, -F_0_211, F_1_451), multiply(p31, -F_2_172, F_1_061));
    struct sums o2 =
        plus(multiply(p75, -F_0_509, -F_0_601), multiply(p31, F_0_899, F_2_562));

    butterfly(plus(t0, t2), o2, shift, more, &out[0], &out[3]);
    butterfly(minus(t0, t2), o0, shift, more, &out[1], &out[2]);
}

/* A pass of the 2x2 transform; uses the first row and the odd ones. */
VEC_INLINE void pass2(const VEC r[8], int shift, int more, VEC out[2])
{
    struct sums odd = plus(multiply(interleave(r[7], r[5]), -F_0_720, F_0_850),
                           multiply(interleave(r[3], r[1]), -F_1_272, F_3_624));

    butterfly(shifted(r[0], 15), odd, shift, more, &out[0], &out[1]);
}

/* Copies whole registers up to the next 0xFF; bytes stored beyond it are overwritten
 * later. */
static const uint8_t *
unstuff(const uint8_t *from, const uint8_t *end, uint8_t *to, uint8_t **ret_to)
{
    while (end - from > 64) {
        uint64_t ffs = copy_64(from, to);
        int bytes = ffs != 0 ? __builtin_ctzll(ffs) : 64;

        from += bytes;
        to += bytes;
        if (ffs == 0)
            continue;
        if (from[1] != 0) {
            *ret_to = to;
            return from;
        }
        from += 2;
        to++;
    }
    return hr__jpeg_kernels_c.unstuff(from, end, to, ret_to);
}
