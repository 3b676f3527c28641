/*
 * codec/jpeg_table.c - Huffman tables: run, size and value of a coefficient in one
 * look-up (T.81, annex C and F.2.2).
 *
 * Most photos have their own tables, so building one must take about a microsecond;
 * photos with the same tables as the previous one only pay for a comparison.
 */
#include "codec/jpeg_priv.h"

#include <string.h>

#define SIZE_DC_MAX 11 /* bits of a value; larger ones are declined */
#define SIZE_AC_MAX 10

static void fill(uint32_t *entries, int log2, uint32_t value)
{
    int i;

    for (i = 0; i < 1 << log2; i++)
        entries[i] = value;
}

/* Entries of a code whose value fits in the index after it: a run of entries per
 * value. */
static void fill_values(uint32_t *entries, int log2, int size, uint32_t rest)
{
    int32_t half = 1 << (size - 1), v;

    for (v = 0; v < 2 * half; v++) {
        int32_t value = v < half ? v - 2 * half + 1 : v;

        fill(entries + ((ptrdiff_t)v << log2), log2, (uint32_t)value << 16 | rest);
    }
}

/* A symbol whose code of `length` bits starts at index `first`. */
static void
add_short(struct hr_jpeg_table *table, uint32_t first, int length, int symbol, bool is_ac)
{
    int size = symbol & 15, room = HR_JPEG_BITS - length, bits = length + size;
    uint32_t *look = table->look + first;
    uint32_t step = is_ac ? (uint32_t)(symbol >> 4) + 1 : 1;

    if (is_ac && symbol == 0)
        step = HR_JPEG_END;
    if (is_ac && size == 0 && symbol != 0 && symbol != 0xF0) {
        fill(look, room, 0); /* invalid, like a pattern without a code */
        fill(table->step + first, room, 0);
        return;
    }
    if (is_ac)
        fill(table->step + first, room,
             (uint32_t)length << 16 | step << 8 | (uint32_t)bits);
    if (size == 0)
        fill(look, room, step << 8 | (uint32_t)bits);
    else if (bits <= HR_JPEG_BITS && (!is_ac || size <= table->size_max))
        fill_values(look, room - size, size, step << 8 | (uint32_t)bits);
    else
        fill(look, room, (uint32_t)symbol << 16 | (uint32_t)length << 8);
}

/* Assigns the codes in order. False if there are too many of a length; the all-ones
 * pattern must stay unused. */
static bool assign(struct hr_jpeg_table *table, bool is_ac)
{
    uint32_t code = 0, end;
    int length, i, index = 0;

    for (length = 1; length <= 16; length++) {
        int count = table->counts[length - 1];

        if (code + (uint32_t)count >= 1U << length)
            return false;
        table->offset[length] = index - (int32_t)code;
        if (length <= HR_JPEG_BITS)
            for (i = 0; i < count; i++)
                add_short(table, (code + (uint32_t)i) << (HR_JPEG_BITS - length), length,
                          table->symbols[index + i], is_ac);
        index += count;
        code += (uint32_t)count;
        table->limit[length] = code << (16 - length);
        code <<= 1;
    }
    end = table->limit[HR_JPEG_BITS] >> (16 - HR_JPEG_BITS);
    memset(table->look + end, 0, (HR_JPEG_LOOKS - end) * sizeof table->look[0]);
    if (is_ac)
        memset(table->step + end, 0, (HR_JPEG_LOOKS - end) * sizeof table->step[0]);
    return index > 0;
}

static bool are_sizes_known(const struct hr_jpeg_table *table, int count, bool is_ac)
{
    int i;

    for (i = 0; i < count; i++)
        if ((is_ac ? table->symbols[i] & 15 : table->symbols[i]) >
            (is_ac ? SIZE_AC_MAX : SIZE_DC_MAX))
            return false;
    return true;
}

bool hr__jpeg_table_make(struct hr_jpeg_table *table, const uint8_t *code, int size_max)
{
    bool is_ac = size_max > 0;
    int count = 0, i;

    for (i = 0; i < 16; i++)
        count += code[i];
    if (table->made && table->size_max == size_max &&
        memcmp(table->counts, code, 16) == 0 &&
        memcmp(table->symbols, code + 16, (size_t)count) == 0)
        return true;
    memcpy(table->counts, code, 16);
    memcpy(table->symbols, code + 16, (size_t)count);
    table->size_max = size_max;
    table->skips = false;
    table->made = are_sizes_known(table, count, is_ac) && assign(table, is_ac);
    return table->made;
}
