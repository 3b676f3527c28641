/*
 * codec/parquet_test.c - blocks of Snappy and LZ4, runs and differences as drawn, a
 * footer, and damage to all of them. Files as others write them are read in
 * python/tests/test_parquet.py.
 */
#include "codec/lz.h"
#include "codec/parquet.h"
#include "core/file.h"
#include "core/rng.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hr_rng rng;

static void start(uint64_t number)
{
    hr__rng_init(&rng, check_seed(), 0, number);
}

/* ---- blocks ---- */

struct out {
    uint8_t data[1 << 16];
    size_t bytes;
};

static void put(struct out *out, unsigned byte)
{
    CHECK(out->bytes < sizeof out->data);
    out->data[out->bytes++] = (uint8_t)byte;
}

static void put_little(struct out *out, size_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        put(out, (unsigned)(number >> 8 * i & 255));
}

static void put_varint(struct out *out, uint64_t number)
{
    for (; number >= 128; number >>= 7)
        put(out, (unsigned)(number & 127) | 128);
    put(out, (unsigned)number);
}

/* Literals and copies as drawn: what they unpack to. */
static void copy_back(struct out *plain, size_t offset, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        put(plain, plain->data[plain->bytes - offset]);
}

static void add_literal(struct out *block, struct out *plain, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned byte = (unsigned)hr__rng_below(&rng, 256);

        put(block, byte);
        put(plain, byte);
    }
}

static void snappy_literal(struct out *block, struct out *plain)
{
    size_t bytes = 1 + (size_t)hr__rng_below(&rng, hr__rng_below(&rng, 4) ? 70 : 700);
    unsigned more = bytes > 256  ? 2
                    : bytes > 60 ? 1 + (unsigned)hr__rng_below(&rng, 4)
                                 : 0;

    put(block, (more > 0 ? 59 + more : (unsigned)bytes - 1) << 2);
    put_little(block, bytes - 1, more);
    add_literal(block, plain, bytes);
}

static void snappy_copy(struct out *block, struct out *plain)
{
    size_t offset = 1 + (size_t)hr__rng_below(&rng, plain->bytes);
    size_t bytes = 1 + (size_t)hr__rng_below(&rng, 64);
    unsigned kind = 2 + (unsigned)hr__rng_below(&rng, 2);

    if (hr__rng_below(&rng, 2))
        offset = 1 + offset % 20;
    if (offset > plain->bytes)
        offset = plain->bytes;
    if (offset < 2048 && bytes >= 4 && bytes < 12) {
        put(block, 1 | (unsigned)(bytes - 4) << 2 | (unsigned)(offset >> 8) << 5);
        put(block, (unsigned)offset & 255);
    } else {
        put(block, kind | (unsigned)(bytes - 1) << 2);
        put_little(block, offset, kind == 2 ? 2 : 4);
    }
    copy_back(plain, offset, bytes);
}

static void make_snappy(struct out *block, struct out *plain)
{
    struct out body = {.bytes = 0};

    plain->bytes = block->bytes = 0;
    for (uint64_t n = hr__rng_below(&rng, 40); n > 0; n--)
        if (plain->bytes == 0 || hr__rng_below(&rng, 2))
            snappy_literal(&body, plain);
        else
            snappy_copy(&body, plain);
    put_varint(block, plain->bytes);
    memcpy(block->data + block->bytes, body.data, body.bytes);
    block->bytes += body.bytes;
}

static void lz4_length(struct out *block, size_t length)
{
    if (length < 15)
        return;
    for (length -= 15; length >= 255; length -= 255)
        put(block, 255);
    put(block, (unsigned)length);
}

static void make_lz4(struct out *block, struct out *plain)
{
    plain->bytes = block->bytes = 0;
    for (uint64_t n = hr__rng_below(&rng, 40);; n--) {
        size_t literal = (size_t)hr__rng_below(&rng, hr__rng_below(&rng, 4) ? 20 : 600);
        size_t match = (size_t)hr__rng_below(&rng, hr__rng_below(&rng, 4) ? 20 : 600);
        size_t offset;

        literal += plain->bytes == 0;
        if (n == 0)
            match = 0;
        put(block,
            (unsigned)((literal < 15 ? literal : 15) << 4 | (match < 15 ? match : 15)));
        lz4_length(block, literal);
        add_literal(block, plain, literal);
        if (n == 0)
            return;
        offset = 1 + (size_t)hr__rng_below(&rng, hr__rng_below(&rng, 2) ? 20 : 65535);
        if (offset > plain->bytes)
            offset = plain->bytes;
        put_little(block, offset, 2);
        lz4_length(block, match);
        copy_back(plain, offset, match + 4);
    }
}

typedef bool unpack_fn(const void *data, size_t bytes, void *to, size_t room);

/* In memory of its own, so that sanitizers and valgrind see what lies outside. */
static bool unpacks(unpack_fn *unpack, const struct out *block, size_t bytes, size_t room,
                    const struct out *plain)
{
    uint8_t *in = malloc(bytes + 1), *out = malloc(room + HR_LZ_SLACK);
    bool good;

    CHECK(in != NULL && out != NULL);
    memcpy(in, block->data, bytes);
    good = unpack(in, bytes, out, room);
    if (good && plain != NULL)
        CHECK(memcmp(out, plain->data, room) == 0);
    free(in);
    free(out);
    return good;
}

static void check_blocks(unpack_fn *unpack, void (*make)(struct out *, struct out *))
{
    static struct out block, plain;

    for (int i = 0; i < 300; i++) {
        size_t at;

        make(&block, &plain);
        CHECK(unpacks(unpack, &block, block.bytes, plain.bytes, &plain));
        CHECK(!unpacks(unpack, &block, block.bytes, plain.bytes + 1, NULL));
        if (plain.bytes > 0)
            CHECK(!unpacks(unpack, &block, block.bytes, plain.bytes - 1, NULL));
        CHECK(!unpacks(unpack, &block, (size_t)hr__rng_below(&rng, block.bytes),
                       plain.bytes + (plain.bytes == 0), NULL));
        at = (size_t)hr__rng_below(&rng, block.bytes);
        block.data[at] ^= (uint8_t)(1u << hr__rng_below(&rng, 8));
        if (!unpacks(unpack, &block, block.bytes, plain.bytes, NULL))
            continue; /* or a literal is damaged */
    }
}

TEST(snappy_blocks_unpack_to_what_they_are_made_of)
{
    start(1);
    check_blocks(hr__snappy_unpack, make_snappy);
}

TEST(lz4_blocks_unpack_to_what_they_are_made_of)
{
    start(2);
    check_blocks(hr__lz4_unpack, make_lz4);
}

/* ---- runs ---- */

static void put_bits(uint8_t *to, size_t bit, uint64_t number, unsigned bits)
{
    for (unsigned i = 0; i < bits; i++)
        if ((number >> i & 1) != 0)
            to[(bit + i) / 8] |= (uint8_t)(1u << (bit + i) % 8);
}

/* Runs and groups as drawn; the last group may have more numbers than counted. */
static size_t make_runs(struct out *out, unsigned bits, uint32_t *numbers, size_t most)
{
    uint64_t limit = (uint64_t)1 << bits;
    size_t count = 0;

    out->bytes = 0;
    memset(out->data, 0, sizeof out->data);
    while (count < most) {
        size_t length = 1 + (size_t)hr__rng_below(&rng, 40);
        size_t groups = (length + 7) / 8;
        uint32_t value = (uint32_t)hr__rng_below(&rng, limit);

        if (hr__rng_below(&rng, 2)) {
            put_varint(out, length << 1);
            put_little(out, value, (bits + 7) / 8);
            while (length-- > 0 && count < most)
                numbers[count++] = value;
            continue;
        }
        put_varint(out, groups << 1 | 1);
        for (size_t i = 0; i < 8 * groups; i++) {
            value = (uint32_t)hr__rng_below(&rng, limit);
            put_bits(out->data + out->bytes, i * bits, value, bits);
            if (count < most)
                numbers[count++] = value;
        }
        out->bytes += groups * bits;
    }
    return count;
}

TEST(runs_are_read_in_pieces)
{
    static struct out out;
    uint32_t want[400], got[400];

    start(3);
    for (int i = 0; i < 500; i++) {
        unsigned bits = (unsigned)hr__rng_below(&rng, 33);
        size_t count = make_runs(&out, bits, want, (size_t)hr__rng_below(&rng, 400));
        struct hr_parquet_runs runs;

        hr__parquet_runs_begin(&runs, bits, out.data, out.bytes);
        for (size_t at = 0; at < count;) {
            size_t take = 1 + (size_t)hr__rng_below(&rng, count - at);

            CHECK(hr__parquet_runs_read(&runs, got + at, take));
            at += take;
        }
        CHECK(memcmp(got, want, count * sizeof *got) == 0);
        hr__parquet_runs_begin(&runs, bits, out.data,
                               (size_t)hr__rng_below(&rng, out.bytes + 1));
        if (hr__parquet_runs_read(&runs, got, count)) /* zeros need no bytes */
            CHECK(count == 0 || memcmp(got, want, sizeof *got) == 0);
    }
}

/* ---- differences ---- */

static uint64_t zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

/* A block of 4 groups of 32, from number `done` on. */
static void put_block(struct out *out, const uint64_t *numbers, size_t done, size_t count)
{
    size_t taken = count - done < 128 ? count - done : 128;
    uint64_t differences[128] = {0}, least;
    uint8_t widths[4] = {0};

    for (size_t i = 0; i < taken; i++)
        differences[i] = numbers[done + i] - numbers[done + i - 1];
    least = differences[0];
    for (size_t i = 0; i < taken; i++)
        if ((int64_t)differences[i] < (int64_t)least)
            least = differences[i];
    put_varint(out, zigzag((int64_t)least));
    for (size_t i = 0; i < taken; i++) {
        uint64_t number = differences[i] -= least;
        uint8_t bits = number > 0 ? (uint8_t)(64 - __builtin_clzll(number)) : 0;

        if (bits > widths[i / 32])
            widths[i / 32] = bits;
    }
    for (size_t i = 0; i < 4; i++)
        put(out, widths[i]);
    for (size_t i = 0; i * 32 < taken; i++) {
        for (size_t k = 0; k < 32 && i * 32 + k < taken; k++)
            put_bits(out->data + out->bytes, k * widths[i], differences[i * 32 + k],
                     widths[i]);
        out->bytes += 4 * (size_t)widths[i];
    }
}

TEST(differences_are_added_up)
{
    static struct out out;
    uint64_t want[500], got[500];

    start(4);
    for (int i = 0; i < 300; i++) {
        size_t count = 1 + (size_t)hr__rng_below(&rng, 499);
        unsigned shift = (unsigned)hr__rng_below(&rng, 64);
        const uint8_t *at = out.data;

        for (size_t k = 0; k < count; k++)
            want[k] = hr__rng_u64(&rng) >> shift;
        out.bytes = 0;
        memset(out.data, 0, sizeof out.data);
        put_varint(&out, 128);
        put_varint(&out, 4);
        put_varint(&out, count);
        put_varint(&out, zigzag((int64_t)want[0]));
        for (size_t done = 1; done < count; done += 128)
            put_block(&out, want, done, count);
        CHECK(hr__parquet_delta(&at, out.data + out.bytes, 8, count, got));
        CHECK(memcmp(got, want, count * sizeof *got) == 0 && at == out.data + out.bytes);
        at = out.data;
        CHECK(!hr__parquet_delta(&at, out.data + out.bytes, 8, count - 1, got));
        at = out.data;
        CHECK(!hr__parquet_delta(&at, out.data + hr__rng_below(&rng, out.bytes), 8, count,
                                 got));
        out.data[hr__rng_below(&rng, out.bytes)] ^=
            (uint8_t)(1u << hr__rng_below(&rng, 8));
        at = out.data;
        if (hr__parquet_delta(&at, out.data + out.bytes, 8, count, got))
            CHECK(at <= out.data + out.bytes);
    }
}

/* ---- footers ---- */

static char *load(const char *name, size_t *ret_bytes)
{
    char path[600], *data = malloc(100000);
    FILE *file;

    snprintf(path, sizeof path, "%s/fuzz/corpus/parquet/%s", check_source_dir(), name);
    file = fopen(path, "rb");
    CHECK(file != NULL && data != NULL);
    *ret_bytes = fread(data, 1, 100000, file);
    CHECK(*ret_bytes > 0 && *ret_bytes < 100000);
    fclose(file);
    return data;
}

TEST(a_footer_names_columns_and_row_groups)
{
    static const char *const names[] = {"id",    "text", "ids",         "half",
                                        "class", "odd",  "image.bytes", "image.path"};
    struct hr_parquet_meta meta = {0};
    size_t bytes;
    char *data = load("footer-plain", &bytes);

    CHECK_OK(hr__parquet_meta_read(data, bytes, 1 << 20, &meta, NULL));
    CHECK_EQ_INT(meta.leaf_count, 8);
    CHECK_EQ_INT(meta.column_count, 8);
    for (size_t i = 0; i < 8; i++) {
        CHECK_EQ_STR(meta.leaves[i].column.name, names[i]);
        CHECK(meta.leaves[i].reason == NULL && meta.leaves[i].node == (int)i);
        CHECK(meta.storages[i].is_list == (i == 2));
    }
    CHECK(meta.rows == 24 && meta.group_count == 3 && meta.groups[2] == 4);
    hr__parquet_meta_finish(&meta);
    CHECK_ERR(HR_ERR_FORMAT, hr__parquet_meta_read(data, bytes, 100, &meta, NULL));
    hr__parquet_meta_finish(&meta);
    free(data);
}

TEST(what_cannot_be_a_field_has_a_reason)
{
    struct hr_parquet_meta meta = {0};
    size_t bytes;
    char *data = load("footer-nested", &bytes);

    CHECK_OK(hr__parquet_meta_read(data, bytes, 1 << 20, &meta, NULL));
    CHECK_EQ_INT(meta.leaf_count, 5);
    CHECK_EQ_INT(meta.column_count, 6); /* a map has two */
    CHECK_EQ_STR(meta.leaves[1].reason, "a map");
    CHECK_EQ_STR(meta.leaves[2].reason, "a list of what is not a number");
    CHECK_EQ_STR(meta.leaves[3].column.name, "c.x.y");
    CHECK(meta.leaves[3].reason == NULL && meta.leaves[3].node == 4);
    CHECK_EQ_STR(meta.leaves[4].reason, "decimal");
    hr__parquet_meta_finish(&meta);
    free(data);
}

TEST(a_damaged_footer_is_refused_or_read)
{
    size_t bytes, room;
    char *data = load("footer-plain", &bytes), *copy = malloc(bytes);

    start(5);
    CHECK(copy != NULL);
    for (int i = 0; i < 2000; i++) {
        struct hr_parquet_meta meta = {0};
        struct hr_error error = {0};

        memcpy(copy, data, bytes);
        for (uint64_t n = 1 + hr__rng_below(&rng, 3); n > 0; n--)
            copy[hr__rng_below(&rng, bytes)] = (char)hr__rng_below(&rng, 256);
        room = hr__rng_below(&rng, 2) ? bytes : (size_t)hr__rng_below(&rng, bytes);
        if (hr__parquet_meta_read(copy, room, 1 << 20, &meta, &error) != HR_OK)
            CHECK(error.message[0] != '\0');
        hr__parquet_meta_finish(&meta);
    }
    free(copy);
    free(data);
}
