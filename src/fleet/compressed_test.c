/*
 * fleet/compressed_test.c - parcels to compressed bodies and back; bytes that lie.
 */
#include "fleet/compressed.h"

#include <math.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "tests/support/check.h"
#include "wire/frame.h"

static struct hr_pool *pool;
static struct hr_rng rng;
static const enum hr_compression kinds[] = {HR_COMPRESSION_ZSTD, HR_COMPRESSION_LZ4};

static void start(void)
{
    if (pool == NULL)
        pool = hr_pool_create(0);
    hr__rng_init(&rng, check_seed(), 0, 0);
}

/* Any bytes, in several parts: runs of one byte, of few, and of all. */
static void make(struct hr_parcel_pieces *pieces, size_t count, size_t most)
{
    *pieces = (struct hr_parcel_pieces){.count = count};
    for (size_t i = 0; i < count; i++) {
        size_t bytes = 1 + hr__rng_below(&rng, most);
        struct hr_buffer *buffer = hr_buffer_create(bytes);
        uint8_t *to = hr_buffer_data(buffer);

        for (size_t at = 0; at < bytes;) {
            size_t run = 1 + hr__rng_below(&rng, 40000);
            uint32_t values = (uint32_t)(1 + hr__rng_below(&rng, 2) * 255),
                     base = hr__rng_u32(&rng);

            for (; run > 0 && at < bytes; run--)
                to[at++] = (uint8_t)(base + hr__rng_below(&rng, values));
        }
        pieces->parts[i] = (struct hr_net_part){(const char *)to, bytes, buffer};
        pieces->bytes += bytes;
    }
}

static void check_equal(const struct hr_parcel_pieces *pieces, struct hr_buffer *parcel)
{
    const char *at = hr_buffer_data(parcel);

    CHECK_EQ_INT(hr_buffer_bytes(parcel), pieces->bytes);
    for (size_t i = 0; i < pieces->count; i++) {
        CHECK_BYTES(at, pieces->parts[i].data, pieces->parts[i].bytes);
        at += pieces->parts[i].bytes;
    }
}

TEST(parcels_read_back_as_they_were_written)
{
    struct hr_squeezer squeezer = {0};

    start();
    for (int trial = 0; trial < 30; trial++) {
        enum hr_compression kind = kinds[trial % 2];
        size_t most = hr__rng_below(&rng, 2) == 0 ? 3000000 : 5000;
        struct hr_buffer *body, *parcel;
        struct hr_parcel_pieces pieces;
        struct hr_error error = {0};

        if (!(hr__compressed_writes() & HR_COMPRESSION_BIT(kind)))
            continue;
        make(&pieces, 1 + hr__rng_below(&rng, 5), most);
        CHECK_OK(hr__compressed_write(&squeezer, kind, &pieces, pool, &body, &error));
        if (body != NULL) {
            CHECK(hr_buffer_bytes(body) < pieces.bytes);
            CHECK_OK(hr__compressed_read(body, pieces.bytes, pool, &parcel, &error));
            check_equal(&pieces, parcel);
            hr_buffer_unref(parcel);
            CHECK_ERR(HR_ERR_LIMIT,
                      hr__compressed_read(body, pieces.bytes - 1, pool, &parcel, &error));
            CHECK_HAS(error.message, "decompresses to");
        }
        hr_buffer_unref(body);
        hr__parcel_drop(&pieces);
    }
    hr__squeezer_finish(&squeezer);
}

TEST(noise_is_not_made_larger)
{
    struct hr_squeezer squeezer = {0};
    struct hr_parcel_pieces pieces = {.count = 1, .bytes = 100000};
    struct hr_compression_cost cost;
    struct hr_buffer *body, *noise = hr_buffer_create(pieces.bytes);

    start();
    for (size_t i = 0; i < pieces.bytes; i++)
        ((uint8_t *)hr_buffer_data(noise))[i] = (uint8_t)hr__rng_u32(&rng);
    pieces.parts[0] = (struct hr_net_part){hr_buffer_data(noise), pieces.bytes, noise};
    for (size_t i = 0; i < 2; i++) {
        if (!(hr__compressed_writes() & HR_COMPRESSION_BIT(kinds[i])))
            continue;
        CHECK_OK(hr__compressed_write(&squeezer, kinds[i], &pieces, pool, &body, NULL));
        CHECK(body == NULL);
        CHECK_OK(hr__compressed_sample(&squeezer, kinds[i], &pieces, &cost, NULL));
        CHECK(cost.ratio == 1 && cost.pack_ns > 0 && cost.unpack_ns > 0);
    }
    hr_buffer_unref(noise);
    hr__squeezer_finish(&squeezer);
}

TEST(a_sample_says_about_what_the_whole_gives)
{
    struct hr_squeezer squeezer = {0};
    struct hr_parcel_pieces pieces;
    struct hr_compression_cost cost;
    struct hr_buffer *body;

    start();
    for (int trial = 0; trial < 4; trial++) {
        if (!(hr__compressed_writes() & HR_COMPRESSION_BIT(kinds[trial % 2])))
            continue;
        make(&pieces, 3, trial < 2 ? 60000 : 2000000);
        CHECK_OK(
            hr__compressed_sample(&squeezer, kinds[trial % 2], &pieces, &cost, NULL));
        CHECK(cost.ratio > 0 && cost.ratio <= 1);
        CHECK_OK(hr__compressed_write(&squeezer, kinds[trial % 2], &pieces, pool, &body,
                                      NULL));
        if (trial < 2 && body != NULL) /* the sample is all of it */
            CHECK_EQ_INT(llround(cost.ratio * (double)pieces.bytes) + 20,
                         hr_buffer_bytes(body));
        hr_buffer_unref(body);
        hr__parcel_drop(&pieces);
    }
    hr__squeezer_finish(&squeezer);
}

/* A body of LZ4 whose bytes are changed. */
static enum hr_err read_changed(const struct hr_buffer *body, size_t bytes, size_t at,
                                uint32_t value, struct hr_error *error)
{
    struct hr_buffer *copy = hr_buffer_create(bytes), *parcel;
    const char *from = hr_buffer_data((struct hr_buffer *)(uintptr_t)body);
    enum hr_err code;

    memcpy(hr_buffer_data(copy), from, bytes);
    if (at + 4 <= bytes)
        memcpy((char *)hr_buffer_data(copy) + at, &value, 4);
    code = hr__compressed_read(copy, HR_FRAME_DATA_MAX, pool, &parcel, error);
    if (code == HR_OK)
        hr_buffer_unref(parcel);
    hr_buffer_unref(copy);
    return code;
}

TEST(bodies_that_lie_are_refused_with_a_reason)
{
    struct hr_squeezer squeezer = {0};
    struct hr_parcel_pieces pieces = {.count = 1, .bytes = 1500000};
    struct hr_buffer *body, *text = hr_buffer_create(pieces.bytes);
    struct hr_error error = {0};
    size_t bytes;

    start();
    memset(hr_buffer_data(text), 'x', pieces.bytes);
    pieces.parts[0] = (struct hr_net_part){hr_buffer_data(text), pieces.bytes, text};
    for (size_t i = 0; i < 2; i++) {
        if (!(hr__compressed_writes() & HR_COMPRESSION_BIT(kinds[i])))
            continue;
        CHECK_OK(hr__compressed_write(&squeezer, kinds[i], &pieces, pool, &body, NULL));
        bytes = hr_buffer_bytes(body);
        CHECK_OK(read_changed(body, bytes, SIZE_MAX - 4, 0, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, 15, SIZE_MAX - 4, 0, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, 20, SIZE_MAX - 4, 0, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, bytes - 1, SIZE_MAX - 4, 0, &error));
        CHECK_ERR(HR_ERR_UNSUPPORTED, read_changed(body, bytes, 0, 0, &error));
        CHECK_ERR(HR_ERR_UNSUPPORTED, read_changed(body, bytes, 0, 9, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, bytes, 4, 1, &error));
        CHECK_ERR(HR_ERR_LIMIT, read_changed(body, bytes, 8, UINT32_MAX, &error));
        CHECK_ERR(HR_ERR_LIMIT, read_changed(body, bytes, 12, 1, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, bytes, 8, 0, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, bytes, 8, 1 << 30, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, bytes, 16, 0, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, bytes, 16, 1 << 29, &error));
        CHECK_ERR(HR_ERR_FORMAT, read_changed(body, bytes, 24, UINT32_MAX, &error));
        CHECK_HAS(error.message, kinds[i] == HR_COMPRESSION_LZ4 ? "LZ4" : "");
        hr_buffer_unref(body);
    }
    hr_buffer_unref(text);
    hr__squeezer_finish(&squeezer);
}
