/*
 * codec/jpeg_scan.h - entropy decoding (T.81, F.2.2), included once per instruction set.
 *
 * The reader holds up to 63 bits; a refill leaves at least 56 with one unaligned load. A
 * look-up consumes at most 11 bits, so one refill serves the DC value and four
 * coefficients. If code and value do not fit in 11 bits (5 % of the symbols), that path
 * does its own refill. There are no bounds checks inside an MCU: the data ends in zero
 * padding, and one comparison follows each MCU.
 *
 * Skipped blocks use `skip`, several symbols per look-up. A look-up may run past the end
 * of a full block, which has no end code: the sum of the steps then reveals it, and the
 * block is read again symbol by symbol. A block that needs only low frequencies is
 * decoded up to them and then skipped.
 */
#include "codec/jpeg_priv.h"

#include <string.h>

#define SCAN_INLINE static inline __attribute__((always_inline))
#define RARE(x) __builtin_expect(!!(x), 0)
#define STEP_LAST 63

/* Kept in registers: never pass its address to a function that is not inlined. */
struct reader {
    uint64_t bits, left;
    const uint8_t *at;
};

SCAN_INLINE void refill(struct reader *r)
{
    uint64_t next;

    memcpy(&next, r->at, sizeof next);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    next = __builtin_bswap64(next);
#endif
    r->bits |= next >> (r->left & 63);
    r->at += (63 - (r->left & 63)) >> 3;
    r->left = (r->left & 63) | 56;
}

/* Only the low six bits of `left` count, so a whole entry may be subtracted. */
SCAN_INLINE void take(struct reader *r, uint64_t entry)
{
    r->bits <<= entry & 63;
    r->left -= entry;
}

static int32_t extend(uint64_t bits, int size)
{
    int32_t v = (int32_t)(bits >> 1 >> (63 - size));

    return v < 1 << (size - 1) ? v - (1 << size) + 1 : v;
}

/* Reads a symbol whose code is longer than the index, after a refill; false if there is
 * no such code. The step of a DC value is 1. */
static __attribute__((noinline)) bool
read_long(struct reader *r, const struct hr_jpeg_table *table, bool is_ac,
          int32_t *ret_step, int32_t *ret_value)
{
    uint32_t next = (uint32_t)(r->bits >> 48);
    int length = HR_JPEG_BITS + 1, symbol, size;

    while (length <= 16 && next >= table->limit[length])
        length++;
    if (length > 16 || next < table->limit[HR_JPEG_BITS])
        return false;
    symbol = table->symbols[table->offset[length] + (int)(next >> (16 - length))];
    size = symbol & 15;
    take(r, (uint64_t)length);
    *ret_value = size != 0 ? extend(r->bits, size) : 0;
    take(r, (uint64_t)size);
    *ret_step = is_ac ? (symbol >> 4) + 1 : 1;
    if (is_ac && symbol == 0)
        *ret_step = HR_JPEG_END;
    return !is_ac || size != 0 || symbol == 0 || symbol == 0xF0;
}

SCAN_INLINE bool read_long_inline(struct reader *r, const struct hr_jpeg_table *table,
                                  bool is_ac, int32_t *step, int32_t *value)
{
    struct reader copy = *r;
    int32_t s = 0, v = 0;
    bool good = read_long(&copy, table, is_ac, &s, &v);

    *r = copy;
    *step = s;
    *value = v;
    return good;
}

/* Leaves at least 45 bits. */
SCAN_INLINE bool
read_dc(struct reader *r, const struct hr_jpeg_table *table, int32_t *ret_difference)
{
    uint32_t entry;
    int32_t step;

    refill(r);
    entry = table->look[r->bits >> (64 - HR_JPEG_BITS)];
    if (RARE((entry & 255) == 0)) {
        if (entry != 0) {
            take(r, entry >> 8 & 255);
            *ret_difference = extend(r->bits, (int)(entry >> 16));
            take(r, entry >> 16);
        } else if (!read_long_inline(r, table, false, &step, ret_difference)) {
            return false;
        }
        refill(r);
        return true;
    }
    take(r, entry);
    *ret_difference = (int32_t)entry >> 16;
    return true;
}

/* Where coefficient k is stored, relative to its block in the group; unwanted ones go to
 * the margin. */
#define NO_PLACE 256
static const uint16_t places[192] = {
#define P(n) ((n) / 8 * 32 + (n) % 8)
    P(0),  P(1),  P(8),  P(16), P(9),  P(2),  P(3),  P(10), P(17), P(24), P(32),
    P(25), P(18), P(11), P(4),  P(5),  P(12), P(19), P(26), P(33), P(40), P(48),
    P(41), P(34), P(27), P(20), P(13), P(6),  P(7),  P(14), P(21), P(28), P(35),
    P(42), P(49), P(56), P(57), P(50), P(43), P(36), P(29), P(22), P(15), P(23),
    P(30), P(37), P(44), P(51), P(58), P(59), P(52), P(45), P(38), P(31), P(39),
    P(46), P(53), P(60), P(61), P(54), P(47), P(55), P(62), P(63),
#undef P
#define M NO_PLACE
#define M8 M, M, M, M, M, M, M, M
    M8,    M8,    M8,    M8,    M8,    M8,    M8,    M8,    M8,    M8,    M8,
    M8,    M8,    M8,    M8,    M8,
#undef M8
#undef M
};

/* A step past the last coefficient is an error unless it is the end code. */
SCAN_INLINE bool is_end(uint64_t k)
{
    return k == STEP_LAST || k >= HR_JPEG_END;
}

/* One symbol at a time, starting at step k. */
static __attribute__((noinline)) bool
skip_ac_slowly(struct reader *r, const struct hr_jpeg_table *table, uint64_t k)
{
    while (k < STEP_LAST) {
        uint32_t entry;
        int32_t step, value;

        refill(r);
        entry = table->step[r->bits >> (64 - HR_JPEG_BITS)];
        step = (int32_t)(entry >> 8 & 255);
        if (entry != 0)
            take(r, entry);
        else if (!read_long(r, table, true, &step, &value))
            return false;
        k += (uint64_t)step;
    }
    return is_end(k);
}

#define SKIP_ONE                                                                         \
    entry = table->skip[r->bits >> (64 - HR_JPEG_BITS)];                                 \
    if (RARE(entry == 0))                                                                \
        goto rare;                                                                       \
    before = r->bits;                                                                    \
    take(r, entry);                                                                      \
    k += entry >> 8;                                                                     \
    if (k >= STEP_LAST)                                                                  \
        break;

/* Starts at step k. An entry takes at most 15 bits, so a refill suffices for three, even
 * after a DC value. */
SCAN_INLINE bool skip_ac(struct reader *r, const struct hr_jpeg_table *table, uint64_t k)
{
    int32_t step, value;
    uint64_t before;
    uint32_t entry;
    struct reader copy;
    bool good;

    for (;;) {
        SKIP_ONE
        SKIP_ONE
        SKIP_ONE
        refill(r);
        continue;
    rare:
        refill(r);
        entry = table->step[r->bits >> (64 - HR_JPEG_BITS)];
        step = (int32_t)(entry >> 8 & 255);
        if (entry != 0)
            take(r, entry);
        else if (!read_long_inline(r, table, true, &step, &value))
            return false;
        k += (uint64_t)step;
        if (k >= STEP_LAST)
            return is_end(k);
        refill(r);
    }
    if (k == STEP_LAST || k - HR_JPEG_END < STEP_LAST)
        return true;
    /* The last look-up ran past the end of the block: undo it. */
    copy = (struct reader){before, r->left + entry, r->at};
    good = skip_ac_slowly(&copy, table, k - (entry >> 8));
    *r = copy;
    return good;
}
#undef SKIP_ONE

/* True if a value is beyond HR_JPEG_VALUE_MAX; few of the values that get here are long
 * enough to need the check. There is no step beyond the last position. */
SCAN_INLINE bool
is_out_of_range(const struct hr_jpeg_block *block, uint64_t k, int32_t value)
{
    int32_t known = (1 << block->ac->size_max) - 1, place;

    if ((uint32_t)(value + known) <= 2 * (uint32_t)known || k > STEP_LAST)
        return false;
    place = places[k];
    value *= block->quant[(place >> 5) * 8 + (place & 7)];
    return (uint32_t)(value + HR_JPEG_VALUE_MAX) > 2 * HR_JPEG_VALUE_MAX;
}

#define READ_ONE                                                                         \
    entry = table->look[r->bits >> (64 - HR_JPEG_BITS)];                                 \
    if (RARE((entry & 255) == 0))                                                        \
        goto rare;                                                                       \
    take(r, entry);                                                                      \
    k += entry >> 8 & 255;                                                               \
    to[low && k > last ? NO_PLACE : places[k]] = (int16_t)(entry >> 16);                 \
    if (k >= last)                                                                       \
        goto end;

/* Decodes the whole block, or with `low` only up to index block->last. `low` is a
 * constant at each call, so that the compiler makes two functions. */
SCAN_INLINE bool
read_ac(struct reader *r, const struct hr_jpeg_block *block, int16_t *to, bool low)
{
    const struct hr_jpeg_table *table = block->ac;
    const uint64_t last = low ? block->last : STEP_LAST;
    int32_t step, value;
    uint32_t entry;
    uint64_t k = 0;

    for (;;) {
        READ_ONE
        READ_ONE
        READ_ONE
        READ_ONE
        refill(r);
        continue;
    rare:
        refill(r);
        if (entry != 0) { /* the code fits, only its value is long */
            int size = (int)(entry >> 16 & 15);

            take(r, entry >> 8 & 255);
            value = extend(r->bits, size);
            take(r, (uint64_t)size);
            step = (int32_t)(entry >> 20) + 1;
        } else if (!read_long_inline(r, table, true, &step, &value)) {
            return false;
        }
        k += (uint64_t)step;
        if (RARE(is_out_of_range(block, k, value)))
            return false;
        to[low && k > last ? NO_PLACE : places[k]] = (int16_t)value;
        if (k >= last)
            goto end;
        refill(r);
    }
end:
    if (!low || k >= STEP_LAST)
        return is_end(k);
    refill(r);
    return skip_ac(r, table, k);
}
#undef READ_ONE

SCAN_INLINE struct reader load_reader(const struct hr_jpeg_scan *scan)
{
    return (struct reader){scan->bits, scan->left, scan->at};
}

SCAN_INLINE void store_reader(struct hr_jpeg_scan *scan, const struct reader *r)
{
    scan->bits = r->bits;
    scan->left = r->left & 63;
    scan->at = r->at;
}

/* The block's mean; false if it exceeds what a picture can have. */
SCAN_INLINE bool add_dc(struct hr_jpeg_scan *scan, const struct hr_jpeg_block *block,
                        int32_t difference, int32_t *ret_dc)
{
    int32_t max = scan->dc_max[block->component];
    int32_t dc = scan->predictor[block->component] + difference;

    scan->predictor[block->component] = dc;
    *ret_dc = dc;
    return (uint32_t)(dc + max) <= 2 * (uint32_t)max;
}

static bool skip_mcus(struct hr_jpeg_scan *scan, int32_t count)
{
    struct reader r = load_reader(scan);

    for (; count > 0; count--) {
        for (int32_t b = 0; b < scan->block_count; b++) {
            const struct hr_jpeg_block *block = &scan->block[b];
            int32_t dc;

            if (!read_dc(&r, block->dc, &dc) || !add_dc(scan, block, dc, &dc) ||
                !skip_ac(&r, block->ac, 0))
                return false;
        }
        if (RARE(r.at > scan->end + sizeof r.bits))
            return false;
    }
    store_reader(scan, &r);
    return true;
}

static bool decode_mcus(struct hr_jpeg_scan *scan, int32_t count)
{
    struct reader r = load_reader(scan);

    for (int32_t m = 0; m < count; m++) {
        for (int32_t b = 0; b < scan->block_count; b++) {
            const struct hr_jpeg_block *block = &scan->block[b];
            int32_t x = block->x + (scan->first + m) * block->step_x, dc;
            int16_t *to =
                block->groups + (ptrdiff_t)(x >> 2) * HR_JPEG_GROUP + 8 * (x & 3);

            if (!read_dc(&r, block->dc, &dc) || !add_dc(scan, block, dc, &dc))
                return false;
            if (block->want != HR_JPEG_NOTHING)
                to[0] = (int16_t)dc;
            if (!(block->want == HR_JPEG_ALL   ? read_ac(&r, block, to, false)
                  : block->want == HR_JPEG_LOW ? read_ac(&r, block, to, true)
                                               : skip_ac(&r, block->ac, 0)))
                return false;
        }
        if (RARE(r.at > scan->end + sizeof r.bits))
            return false;
    }
    store_reader(scan, &r);
    return true;
}
