/*
 * codec/parquet_values.c - numbers in runs, in packed bits, and as differences.
 */
#include "codec/parquet.h"

#include <string.h>

static unsigned read_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;

        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *ret_number = number;
            return shift / 7 + 1;
        }
    }
    return 0;
}

/* `bits` (<= 64) bits from bit `bit` of the bytes; those after `end` are 0. */
static uint64_t
read_bits(const uint8_t *data, const uint8_t *end, uint64_t bit, unsigned bits)
{
    const uint8_t *at = data + bit / 8;
    unsigned shift = bit % 8;
    uint64_t word = 0;

    if (end - at >= 9) {
        memcpy(&word, at, 8);
        word >>= shift;
        if (shift + bits > 64)
            word |= (uint64_t)at[8] << (64 - shift);
    } else {
        for (unsigned i = 0; i < 8 && at + i < end; i++)
            word |= (uint64_t)at[i] << 8 * i;
        word >>= shift; /* at[8] is not there */
    }
    return bits == 64 ? word : word & (((uint64_t)1 << bits) - 1);
}

/* ---- runs ---- */

void hr__parquet_runs_begin(struct hr_parquet_runs *runs, unsigned bits, const void *data,
                            size_t bytes)
{
    *runs = (struct hr_parquet_runs){.at = data, .bits = bits};
    runs->end = runs->at + bytes;
}

/* Begins the next run; false if there is none. */
static bool next_run(struct hr_parquet_runs *runs)
{
    unsigned bytes = (runs->bits + 7) / 8;
    uint64_t head, room;

    if (runs->is_packed)
        runs->at += (runs->bit + 7) / 8;
    runs->bit = 0;
    runs->is_packed = false;
    if (read_varint(&runs->at, runs->end, &head) == 0)
        return false;
    runs->left = head >> 1;
    if ((head & 1) != 0) { /* groups of 8; some writers cut the last one */
        room = runs->bits > 0 ? (uint64_t)(runs->end - runs->at) * 8 / runs->bits
                              : UINT64_MAX >> 4;
        runs->left = runs->left > room / 8 ? room : 8 * runs->left;
        runs->is_packed = true;
        return true;
    }
    if ((size_t)(runs->end - runs->at) < bytes)
        return false;
    runs->value = 0;
    for (unsigned i = 0; i < bytes; i++)
        runs->value |= (uint32_t)runs->at[i] << 8 * i;
    runs->at += bytes;
    return true;
}

bool hr__parquet_runs_read(struct hr_parquet_runs *runs, uint32_t *to, size_t count)
{
    while (count > 0) {
        size_t take = count;

        if (runs->left == 0) {
            if (!next_run(runs))
                return false;
            if (runs->left == 0 && runs->is_packed)
                return false;
            continue;
        }
        if (take > runs->left)
            take = (size_t)runs->left;
        for (size_t i = 0; i < take; i++)
            to[i] = runs->is_packed
                        ? (uint32_t)read_bits(runs->at, runs->end,
                                              runs->bit + i * runs->bits, runs->bits)
                        : runs->value;
        runs->bit += take * runs->bits;
        runs->left -= take;
        to += take;
        count -= take;
    }
    return true;
}

bool hr__parquet_runs_are(struct hr_parquet_runs *runs, uint32_t value, uint64_t count)
{
    struct hr_parquet_runs look = *runs;

    if (!next_run(&look))
        return false;
    if (look.is_packed || look.value != value || look.left < count)
        return false;
    look.left -= count;
    *runs = look;
    return true;
}

bool hr__parquet_runs_end(const struct hr_parquet_runs *runs)
{
    uint64_t bits = runs->is_packed ? runs->bit + runs->left * runs->bits : 0;

    return runs->left < (runs->is_packed ? 8 : 1) &&
           (uint64_t)(runs->end - runs->at) == (bits + 7) / 8;
}

/* ---- differences ---- */

#define BLOCK_MAX 65536 /* values; writers use 128 */

struct delta {
    uint64_t block, minis, total, first;
};

static uint64_t unzigzag(uint64_t number)
{
    return number >> 1 ^ (~(number & 1) + 1);
}

static bool read_delta(const uint8_t **at, const uint8_t *end, struct delta *delta)
{
    return read_varint(at, end, &delta->block) != 0 &&
           read_varint(at, end, &delta->minis) != 0 &&
           read_varint(at, end, &delta->total) != 0 &&
           read_varint(at, end, &delta->first) != 0 && delta->block > 0 &&
           delta->block <= BLOCK_MAX && delta->minis > 0 && delta->minis <= 256 &&
           delta->block % delta->minis == 0 && delta->block / delta->minis % 8 == 0;
}

static void put(void *to, size_t at, unsigned width, uint64_t number)
{
    memcpy((char *)to + at * width, &number, width); /* little-endian */
}

/* A block from value `done` on; *ret_done: after it. */
static bool
read_block(const uint8_t **at, const uint8_t *end, const struct delta *delta,
           unsigned width, uint64_t *last, void *to, size_t *done, size_t count)
{
    size_t each = (size_t)(delta->block / delta->minis);
    const uint8_t *widths;
    uint64_t least;

    if (read_varint(at, end, &least) == 0 || (uint64_t)(end - *at) < delta->minis)
        return false;
    least = unzigzag(least);
    widths = *at;
    *at += delta->minis;
    for (size_t i = 0; i < delta->minis && *done < count; i++) {
        unsigned bits = widths[i];
        size_t take = count - *done < each ? count - *done : each;

        if (bits > 64 || (uint64_t)(end - *at) < (uint64_t)each / 8 * bits)
            return false;
        for (size_t k = 0; k < take; k++) {
            *last += least + read_bits(*at, end, (uint64_t)k * bits, bits);
            put(to, *done + k, width, *last);
        }
        *at += each / 8 * bits;
        *done += take;
    }
    return true;
}

bool hr__parquet_delta(const uint8_t **data, const uint8_t *end, unsigned width,
                       size_t count, void *to)
{
    struct delta delta;
    size_t done = 1;
    uint64_t last;

    if (!read_delta(data, end, &delta) || delta.total != count)
        return false;
    if (count == 0)
        return true;
    last = unzigzag(delta.first);
    put(to, 0, width, last);
    while (done < count)
        if (!read_block(data, end, &delta, width, &last, to, &done, count))
            return false;
    return true;
}
