/*
 * ops/image_cut_test.c - a record that crosses a cut after every op gives the bytes of
 * one that never does, in every mode; a description that was tampered with is refused or
 * gives some image, and never reads beyond its source.
 */
#include "ops/image_edit_test_util.h"

#include <time.h>

#include "wire/record.h"

/* Blocks of the record that is under way. */
static void *blocks[64];
static size_t block_count;

static void free_blocks(void)
{
    while (block_count > 0)
        free(blocks[--block_count]);
}

static uint64_t fresh_seed(void)
{
    struct timespec now;
    uint64_t seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    printf("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

/* Carries the record's fields over a cut: nothing of them is left but the bytes. */
static void cut(struct bench *b)
{
    struct hr_value values[HR_SCHEMA_FIELDS_MAX];
    struct hr_wire_record record = {b->id, values};
    struct hr_wire_writer writer;
    struct hr_wire_block block;
    struct hr_record_id id;
    size_t bytes;

    CHECK_OK(hr__wire_writer_init(&writer, &b->schema, true, &b->error));
    for (size_t i = 0; i < b->schema.count; i++)
        values[i] = b->values[b->schema.fields[i].slot];
    bytes = hr__wire_block_bytes(&writer, &record, 1);
    CHECK(block_count < 64);
    CHECK(posix_memalign(&blocks[block_count], 64, bytes) == 0);
    CHECK_OK(hr__wire_block_write(&writer, &record, 1, blocks[block_count], &b->error));
    hr__wire_writer_finish(&writer);
    if (hr__wire_block_open(&block, blocks[block_count++], bytes, NULL, NULL,
                            &b->thread.arena, 1000, &b->error) != HR_OK ||
        hr__wire_block_get(&block, 0, &id, values, &b->error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", b->error.message);
    CHECK(id.index == b->id.index && id.seed == b->id.seed);
    for (size_t i = 0; i < b->schema.count; i++) {
        struct hr_value *value = &b->values[b->schema.fields[i].slot];

        hr__value_clear(value);
        *value = values[i];
    }
    hr__wire_block_close(&block);
}

static void run_edits(struct bench *b, uint64_t seed, uint64_t chain, uint32_t most)
{
    struct hr_rng rng;

    hr__rng_init(&rng, seed, 0, chain);
    random_edits(b, &rng, most, NULL);
}

static void *run_photo(struct bench *b, const void *data, size_t bytes, uint64_t seed,
                       uint64_t chain, const char *mode, bool cuts, size_t *ret_bytes)
{
    char text[64];

    bench_clear(b);
    free_blocks();
    b->after_each = cuts ? cut : NULL;
    b->id = (struct hr_record_id){.seed = seed, .index = chain};
    bench_put_bytes(b, "data", data, bytes);
    snprintf(text, sizeof text, "{mode: %s, orientation: true}", mode);
    CHECK_OK(bench_op(b, "image.decode", text));
    run_edits(b, seed, chain, 7);
    return bench_bytes(b, "image", ret_bytes);
}

/* The labels of a mask that was moved with its image. */
static void *run_mask(struct bench *b, const void *data, size_t bytes, uint64_t index,
                      bool cuts, size_t *ret_bytes)
{
    static const struct {
        const char *op, *params;
    } steps[] = {
        {"image.decode",          "{}"                                               },
        {"image.decode",          "{field: labels, to: mask, color: labels}"         },
        {"image.random_crop",     "{size: [30, 41], field: [image, mask]}"           },
        {"image.flip",            "{p: 0.5, field: [image, mask]}"                   },
        {"image.scale_jitter",    "{size: 40, scale: [0.4, 2], field: [image, mask]}"},
        {"image.fixed_size_crop", "{size: 50, mask_fill: 255, field: [image, mask]}" },
    };

    bench_clear(b);
    free_blocks();
    b->after_each = cuts ? cut : NULL;
    b->id = (struct hr_record_id){.seed = 1, .index = index};
    bench_put_bytes(b, "data", data, bytes);
    bench_put_bytes(b, "labels", data, bytes);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        CHECK_OK(bench_op(b, steps[i].op, steps[i].params));
    return bench_bytes(b, "mask", ret_bytes);
}

TEST(masks_cut_after_every_op_give_the_same_labels)
{
    uint8_t levels[60 * 50];
    struct hr_pixels pixels = hr__pixels_u8(levels, 60, 50, 1);
    struct bench b;
    size_t bytes;
    void *data;

    for (size_t i = 0; i < sizeof levels; i++)
        levels[i] = (uint8_t)(i * i >> 4);
    CHECK_OK(hr__image_encode_png(&pixels, &data, &bytes, NULL));
    bench_init(&b);
    for (uint64_t i = 0; i < 60; i++) {
        size_t whole_bytes, cut_bytes;
        void *whole = run_mask(&b, data, bytes, i, false, &whole_bytes);
        void *parts = run_mask(&b, data, bytes, i, true, &cut_bytes);

        CHECK_EQ_INT(whole_bytes, 50 * 50);
        CHECK_EQ_INT(cut_bytes, 50 * 50);
        CHECK_BYTES(parts, whole, whole_bytes);
        free(whole);
        free(parts);
    }
    b.after_each = NULL;
    bench_finish(&b);
    free_blocks();
    hr__free(data);
}

TEST(photos_cut_after_every_op_give_the_same_bytes)
{
    static const char *const modes[] = {"exact", "close", "fast"};
    uint64_t seed = fresh_seed();
    struct bench b;

    bench_init(&b);
    for (int kind = 0; kind < 4; kind++) {
        size_t bytes;
        void *data = jpeg(kind % 2 ? 131 : 256, kind % 2 ? 90 : 328, 1 + kind / 2,
                          kind == 3, &bytes);

        for (uint64_t i = 0; i < 240; i++) {
            size_t whole_bytes, cut_bytes;
            void *whole =
                run_photo(&b, data, bytes, seed, i, modes[i % 3], false, &whole_bytes);
            void *parts =
                run_photo(&b, data, bytes, seed, i, modes[i % 3], true, &cut_bytes);

            CHECK_EQ_INT(whole_bytes, cut_bytes);
            if (memcmp(whole, parts, whole_bytes) != 0)
                check_failed(__FILE__, __LINE__, "photo %d, chain %llu, mode %s", kind,
                             (unsigned long long)i, modes[i % 3]);
            free(whole);
            free(parts);
        }
        bench_clear(&b);
        hr__free(data);
    }
    free_blocks();
    bench_finish(&b);
}

static void *run_pixels(struct bench *b, void *pixels, enum hr_dtype dtype, uint64_t seed,
                        uint64_t chain, bool cuts, size_t *ret_bytes)
{
    bench_clear(b);
    free_blocks();
    b->after_each = cuts ? cut : NULL;
    b->id = (struct hr_record_id){.seed = seed, .index = chain};
    bench_put_image(b, "image", dtype, 61, 84, 3, pixels);
    run_edits(b, seed, chain, 6);
    return bench_bytes(b, "image", ret_bytes);
}

TEST(pixel_tensors_cut_after_every_op_give_the_same_bytes)
{
    static uint8_t levels[61 * 84 * 3];
    static float units[61 * 84 * 3];
    uint64_t seed = fresh_seed();
    struct hr_rng rng;
    struct bench b;

    bench_init(&b);
    for (size_t i = 0; i < sizeof levels; i++) {
        if (i % 1000 == 0)
            hr__rng_init(&rng, seed, 1, i);
        levels[i] = (uint8_t)pick(&rng, 256);
        units[i] = (float)levels[i] / 255.0f;
    }
    for (uint64_t i = 0; i < 400; i++) {
        enum hr_dtype dtype = i % 2 ? HR_F32 : HR_U8;
        void *pixels = i % 2 ? (void *)units : levels;
        size_t whole_bytes, cut_bytes;
        void *whole = run_pixels(&b, pixels, dtype, seed, i, false, &whole_bytes);
        void *parts = run_pixels(&b, pixels, dtype, seed, i, true, &cut_bytes);

        CHECK_EQ_INT(whole_bytes, cut_bytes);
        if (memcmp(whole, parts, whole_bytes) != 0)
            check_failed(__FILE__, __LINE__, "chain %llu", (unsigned long long)i);
        free(whole);
        free(parts);
    }
    bench_clear(&b);
    free_blocks();
    bench_finish(&b);
}

/* ---- descriptions that were tampered with ---- */

/* One random byte of the description changes; then the image is forced. */
static void tamper(struct bench *b, struct hr_rng *rng, const struct hr_lazy *lazy)
{
    uint8_t bytes[HR_IMAGE_ENCODED_BYTES];
    struct hr_lazy_decode decode = {
        .arena = &b->thread.arena, .bytes = bytes, .nodes = 1000};
    struct hr_value value = {0};
    enum hr_err code;

    lazy->class->source(lazy, &decode.source);
    lazy->class->encode(lazy, bytes);
    for (uint32_t i = 0; i < 1 + pick(rng, 2); i++)
        bytes[pick(rng, sizeof bytes)] ^= (uint8_t)(1 + pick(rng, 255));
    if (lazy->class->decode(&decode, &value, &b->error) != HR_OK)
        return;
    CHECK_EQ_INT(value.kind, HR_VALUE_DEFERRED);
    if (hr__value_count(&value) > 1 << 22)
        return; /* large, and allowed to be */
    code = hr__value_force(&b->thread, &value, NULL, &b->error);
    CHECK(code == HR_OK || code < 0);
}

TEST(descriptions_that_were_tampered_with_do_no_harm)
{
    uint64_t seed = fresh_seed();
    struct hr_rng rng;
    struct bench b;
    size_t bytes;
    void *data = jpeg(131, 90, 2, false, &bytes);

    bench_init(&b);
    for (uint64_t i = 0; i < 60; i++) {
        size_t size;

        hr__rng_init(&rng, seed, 2, i);
        free(
            run_photo(&b, data, bytes, seed, i, i % 2 ? "close" : "exact", false, &size));
        for (int k = 0; k < 40; k++) {
            const struct hr_value *value = bench_value(&b, "image");

            if (value->kind == HR_VALUE_DEFERRED)
                tamper(&b, &rng, value->u.lazy);
        }
    }
    hr__free(data);
    bench_finish(&b);
}

TEST(descriptions_of_nodes_that_do_not_exist_are_refused)
{
    uint8_t bytes[HR_IMAGE_ENCODED_BYTES];
    struct hr_lazy_decode decode = {.bytes = bytes};
    struct hr_value value = {0};
    struct bench b;
    size_t photo_bytes;
    void *data = jpeg(64, 64, 1, false, &photo_bytes);
    const struct hr_lazy *lazy;

    bench_init(&b);
    bench_put_bytes(&b, "data", data, photo_bytes);
    b.node = 7;
    CHECK_OK(bench_op(&b, "image.decode", NULL));
    lazy = bench_value(&b, "image")->u.lazy;
    lazy->class->source(lazy, &decode.source);
    lazy->class->encode(lazy, bytes);
    decode.arena = &b.thread.arena;
    decode.nodes = 7;
    CHECK_ERR(HR_ERR_FORMAT, lazy->class->decode(&decode, &value, &b.error));
    decode.nodes = 8;
    CHECK_OK(lazy->class->decode(&decode, &value, &b.error));
    hr__free(data);
    bench_finish(&b);
}
