/*
 * fleet/compressed.c - see compressed.h.
 */
#include "fleet/compressed.h"

#include <assert.h>
#include <string.h>

#include "codec/lz.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "store/unpack.h"

#define ZSTD_LEVEL 1 /* the fastest */
#define LZ4_LEVEL 2  /* the default of LZ4 */
#define SAMPLE_BYTES ((size_t)64 << 10)
#define SAMPLES 4u

/* The struct is the format: little-endian, without padding. Sizes of 4 bytes follow, one
 * for each block, then the blocks. */
struct head {
    uint32_t kind, zero;
    uint64_t bytes; /* of the parcel */
};

_Static_assert(sizeof(struct head) == 16, "no padding");

static size_t count_blocks(size_t bytes)
{
    return (bytes + HR_COMPRESSED_BLOCK - 1) / HR_COMPRESSED_BLOCK;
}

/* The bytes of block `at` before compression. */
static size_t block_bytes(size_t bytes, size_t at)
{
    size_t left = bytes - at * HR_COMPRESSED_BLOCK;

    return left < HR_COMPRESSED_BLOCK ? left : HR_COMPRESSED_BLOCK;
}

/* ---- writing ---- */

unsigned hr__compressed_writes(void)
{
    unsigned kinds = HR_COMPRESSION_BIT(HR_COMPRESSION_NONE);
    char version[64];

    if (hr__zstd_version(version, sizeof version, NULL) == HR_OK)
        kinds |= HR_COMPRESSION_BIT(HR_COMPRESSION_ZSTD);
    if (hr__lz4_version(version, sizeof version, NULL) == HR_OK)
        kinds |= HR_COMPRESSION_BIT(HR_COMPRESSION_LZ4);
    return kinds;
}

unsigned hr__compressed_reads(void)
{
    unsigned kinds =
        HR_COMPRESSION_BIT(HR_COMPRESSION_NONE) | HR_COMPRESSION_BIT(HR_COMPRESSION_LZ4);
    struct hr_unpack *unpack;

    if (hr__unpack_create(HR_PACKING_ZSTD, &unpack, NULL) == HR_OK) {
        hr__unpack_destroy(unpack);
        kinds |= HR_COMPRESSION_BIT(HR_COMPRESSION_ZSTD);
    }
    return kinds;
}

void hr__squeezer_finish(struct hr_squeezer *squeezer)
{
    for (size_t i = 0; i < HR_COMPRESSION_KINDS; i++)
        hr__compressor_destroy(squeezer->compressors[i]);
    hr__free(squeezer->block);
    *squeezer = (struct hr_squeezer){0};
}

static enum hr_err
prepare(struct hr_squeezer *s, enum hr_compression kind, struct hr_error *reterr)
{
    assert(kind != HR_COMPRESSION_NONE && kind < HR_COMPRESSION_KINDS);
    if (s->block == NULL)
        s->block = hr__malloc(HR_COMPRESSED_BLOCK);
    if (s->block == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (s->compressors[kind] != NULL)
        return HR_OK;
    return hr__compressor_create(kind,
                                 kind == HR_COMPRESSION_ZSTD ? ZSTD_LEVEL : LZ4_LEVEL,
                                 &s->compressors[kind], reterr);
}

/* These bytes of the parcel, in one place. */
static const char *gather(const struct hr_squeezer *s,
                          const struct hr_parcel_pieces *pieces, size_t at, size_t bytes)
{
    return hr__net_gather(pieces->parts, pieces->count, at, bytes, s->block);
}

/* Writes a block to `to`, which has room for it as it is; returns its size there. */
static enum hr_err
write_block(const struct hr_squeezer *s, enum hr_compression kind, const char *from,
            size_t bytes, char *to, uint32_t *ret_size, struct hr_error *reterr)
{
    const char *packed = NULL;
    size_t size = 0;

    HR_TRY(hr__compress(s->compressors[kind], from, bytes, &packed, &size, reterr));
    if (size == 0 || size >= bytes) {
        packed = from;
        size = bytes;
    }
    memcpy(to, packed, size);
    *ret_size = (uint32_t)size;
    return HR_OK;
}

static enum hr_err write_blocks(const struct hr_squeezer *s, enum hr_compression kind,
                                const struct hr_parcel_pieces *pieces, char *to,
                                size_t *ret_bytes, struct hr_error *reterr)
{
    struct head head = {.kind = kind, .bytes = pieces->bytes};
    size_t count = count_blocks(pieces->bytes), at = sizeof head + count * 4;

    memcpy(to, &head, sizeof head);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = block_bytes(pieces->bytes, i);
        const char *from = gather(s, pieces, i * HR_COMPRESSED_BLOCK, bytes);
        uint32_t size = 0;

        HR_TRY(write_block(s, kind, from, bytes, to + at, &size, reterr));
        memcpy(to + sizeof head + 4 * i, &size, sizeof size);
        at += size;
    }
    *ret_bytes = at;
    return HR_OK;
}

static void release(void *user)
{
    hr_buffer_unref(user);
}

/* The first bytes of a buffer, whose reference it takes over; NULL without memory. */
static struct hr_buffer *first_bytes(struct hr_buffer *buffer, size_t bytes)
{
    struct hr_buffer *first =
        hr_buffer_wrap(hr_buffer_data(buffer), bytes, release, buffer);

    if (first == NULL)
        hr_buffer_unref(buffer);
    return first;
}

enum hr_err
hr__compressed_write(struct hr_squeezer *squeezer, enum hr_compression kind,
                     const struct hr_parcel_pieces *pieces, struct hr_pool *pool,
                     struct hr_buffer **ret_body, struct hr_error *reterr)
{
    size_t room = sizeof(struct head) + 4 * count_blocks(pieces->bytes) + pieces->bytes;
    size_t bytes = 0;
    struct hr_buffer *buffer;
    enum hr_err code;

    *ret_body = NULL;
    HR_TRY(prepare(squeezer, kind, reterr));
    if (hr_pool_get(pool, room, &buffer) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for %zu bytes", room);
    code = write_blocks(squeezer, kind, pieces, hr_buffer_data(buffer), &bytes, reterr);
    if (code != HR_OK || bytes >= pieces->bytes) {
        hr_buffer_unref(buffer);
        return code;
    }
    *ret_body = first_bytes(buffer, bytes);
    return *ret_body != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* ---- reading ---- */

static enum hr_err malformed(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "a worker sent a malformed frame: %s", what);
}

static enum hr_err read_block(struct hr_unpack *zstd, const char *from, size_t size,
                              char *to, size_t bytes, struct hr_error *reterr)
{
    struct hr_unpack_io io = {.in = (const unsigned char *)from,
                              .in_bytes = size,
                              .out = (unsigned char *)to,
                              .out_bytes = bytes};
    enum hr_unpack_event event = HR_UNPACK_MORE;

    if (size == bytes) {
        memcpy(to, from, bytes);
        return HR_OK;
    }
    if (zstd == NULL)
        return hr__lz4_unpack(from, size, to, bytes)
                   ? HR_OK
                   : malformed(reterr, "a block of LZ4 is damaged");
    HR_TRY(hr__unpack_begin(zstd, reterr));
    HR_TRY(hr__unpack_run(zstd, false, &io, &event, reterr));
    if (event != HR_UNPACK_END || io.out_bytes > 0 || io.in_bytes > 0)
        return malformed(reterr, "a block of zstd is of another size");
    return HR_OK;
}

/* Sizes of blocks are checked: they are not larger than before, and fill the body. */
static enum hr_err check(const struct hr_buffer *body, size_t bytes_max,
                         struct head *ret_head, struct hr_error *reterr)
{
    const char *from = hr_buffer_data((struct hr_buffer *)(uintptr_t)body);
    size_t left = hr_buffer_bytes(body), count;

    if (left < sizeof *ret_head)
        return malformed(reterr, "it is shorter than its head");
    memcpy(ret_head, from, sizeof *ret_head);
    if (ret_head->zero != 0 || ret_head->bytes == 0)
        return malformed(reterr, "its head");
    if (ret_head->kind == HR_COMPRESSION_NONE || ret_head->kind >= HR_COMPRESSION_KINDS)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a worker sent a frame with the compression %u, which this "
                        "release does not know",
                        ret_head->kind);
    if (ret_head->bytes > bytes_max)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "a worker's frame decompresses to %llu bytes; at most %zu are "
                        "allowed",
                        (unsigned long long)ret_head->bytes, bytes_max);
    count = count_blocks((size_t)ret_head->bytes);
    left -= sizeof *ret_head;
    if (count > left / 4)
        return malformed(reterr, "it is shorter than its table");
    left -= 4 * count;
    for (size_t i = 0; i < count; i++) {
        uint32_t size;

        memcpy(&size, from + sizeof *ret_head + 4 * i, sizeof size);
        if (size == 0 || size > block_bytes((size_t)ret_head->bytes, i) || size > left)
            return malformed(reterr, "the size of a block");
        left -= size;
    }
    return left == 0 ? HR_OK : malformed(reterr, "its length");
}

/* `to` has HR_LZ_SLACK bytes more. */
static enum hr_err read_blocks(const struct head *head, const char *from,
                               struct hr_unpack *zstd, char *to, struct hr_error *reterr)
{
    size_t count = count_blocks((size_t)head->bytes), at = sizeof *head + 4 * count;

    for (size_t i = 0; i < count; i++) {
        uint32_t size;

        memcpy(&size, from + sizeof *head + 4 * i, sizeof size);
        HR_TRY(read_block(zstd, from + at, size, to + i * HR_COMPRESSED_BLOCK,
                          block_bytes((size_t)head->bytes, i), reterr));
        at += size;
    }
    return HR_OK;
}

enum hr_err
hr__compressed_read(const struct hr_buffer *body, size_t bytes_max, struct hr_pool *pool,
                    struct hr_buffer **ret_parcel, struct hr_error *reterr)
{
    const char *from = hr_buffer_data((struct hr_buffer *)(uintptr_t)body);
    struct hr_unpack *zstd = NULL;
    struct hr_buffer *buffer;
    struct head head = {0};
    enum hr_err code;

    HR_TRY(check(body, bytes_max, &head, reterr));
    if (head.kind == HR_COMPRESSION_ZSTD)
        HR_TRY(hr__unpack_create(HR_PACKING_ZSTD, &zstd, reterr));
    code = hr_pool_get(pool, (size_t)head.bytes + HR_LZ_SLACK, &buffer);
    if (code != HR_OK) {
        hr__unpack_destroy(zstd);
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for a frame of %llu bytes",
                        (unsigned long long)head.bytes);
    }
    code = read_blocks(&head, from, zstd, hr_buffer_data(buffer), reterr);
    hr__unpack_destroy(zstd);
    if (code != HR_OK) {
        hr_buffer_unref(buffer);
        return code;
    }
    *ret_parcel = first_bytes(buffer, (size_t)head.bytes);
    return *ret_parcel != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* ---- measuring ---- */

static enum hr_err
sample_block(const struct hr_squeezer *s, enum hr_compression kind, const char *from,
             size_t bytes, struct hr_unpack *zstd, char *packed, char *unpacked,
             struct hr_compression_cost *sum, struct hr_error *reterr)
{
    uint64_t begin = hr__cpu_thread_ns(), middle;
    uint32_t size = 0;

    HR_TRY(write_block(s, kind, from, bytes, packed, &size, reterr));
    middle = hr__cpu_thread_ns();
    HR_TRY(read_block(zstd, packed, size, unpacked, bytes, reterr));
    sum->ratio += size;
    sum->pack_ns += (double)(middle - begin);
    sum->unpack_ns += (double)(hr__cpu_thread_ns() - middle);
    return HR_OK;
}

/* Runs that are spread over the parcel. */
static enum hr_err
sample_all(const struct hr_squeezer *s, enum hr_compression kind,
           const struct hr_parcel_pieces *pieces, struct hr_unpack *zstd, char *room,
           struct hr_compression_cost *ret_cost, struct hr_error *reterr)
{
    bool all = pieces->bytes <= SAMPLES * SAMPLE_BYTES;
    size_t step = pieces->bytes / SAMPLES, total = 0;
    struct hr_compression_cost sum = {0};

    for (size_t i = 0; i < (all ? 1 : SAMPLES); i++) {
        size_t bytes = all ? pieces->bytes : SAMPLE_BYTES;

        HR_TRY(sample_block(s, kind, gather(s, pieces, i * step, bytes), bytes, zstd,
                            room, room + SAMPLES * SAMPLE_BYTES, &sum, reterr));
        total += bytes;
    }
    ret_cost->ratio = sum.ratio / (double)total;
    ret_cost->pack_ns = sum.pack_ns / (double)total;
    ret_cost->unpack_ns = sum.unpack_ns / (double)total;
    return HR_OK;
}

enum hr_err
hr__compressed_sample(struct hr_squeezer *squeezer, enum hr_compression kind,
                      const struct hr_parcel_pieces *pieces,
                      struct hr_compression_cost *ret_cost, struct hr_error *reterr)
{
    struct hr_unpack *zstd = NULL;
    enum hr_err code;
    char *room;

    HR_TRY(prepare(squeezer, kind, reterr));
    if (kind == HR_COMPRESSION_ZSTD)
        HR_TRY(hr__unpack_create(HR_PACKING_ZSTD, &zstd, reterr));
    room = hr__malloc(2 * SAMPLES * SAMPLE_BYTES + HR_LZ_SLACK);
    code = room != NULL ? sample_all(squeezer, kind, pieces, zstd, room, ret_cost, reterr)
                        : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__free(room);
    hr__unpack_destroy(zstd);
    return code;
}
