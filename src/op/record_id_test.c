/*
 * op/record_id_test.c - streams of random numbers: one for each name, long enough, and
 * none that meets another.
 */
#include <stdio.h>
#include <stdlib.h>

#include "op/op.h"
#include "tests/support/check.h"

/* What decides which blocks a stream has: everything but the block number. */
struct name {
    uint32_t word[5];
};

static struct name name_of(const struct hr_record_id *id, uint64_t draw_id)
{
    struct hr_rng rng;

    hr__record_rng(id, draw_id, &rng);
    CHECK_EQ_INT(rng.counter[3], 0);
    return (struct name){
        {rng.key[0], rng.key[1], rng.counter[0], rng.counter[1], rng.counter[2]}
    };
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct name));
}

static void check_all_differ(struct name *names, size_t count)
{
    qsort(names, count, sizeof *names, compare);
    for (size_t i = 1; i < count; i++)
        CHECK(compare(&names[i - 1], &names[i]) != 0);
}

static uint64_t node_id(unsigned number)
{
    char name[32];

    snprintf(name, sizeof name, "image.flip%u", number);
    return hr__hash64(name, strlen(name), 0);
}

TEST(only_seed_index_epoch_path_and_node_name_a_stream)
{
    struct hr_record_id id = {.seed = 3, .index = 9, .epoch = 1, .draw_epoch = 1};
    struct hr_op_ctx ctx = {.id = &id, .node = 4, .draw_id = 77};
    struct hr_rng a, b;

    hr__op_rng(&ctx, &a);
    id.position = 1234;
    id.epoch = 5; /* repeat: several epochs of draws in one of the run */
    ctx.node = 6;
    hr__op_rng(&ctx, &b);
    CHECK_EQ_INT(hr__rng_u64(&a), hr__rng_u64(&b));
}

static void add_paths(struct name *names, size_t *count, struct hr_record_id id,
                      uint64_t draw_id, uint32_t depth)
{
    static const uint32_t numbers[] = {0, 1, 2, 3, 255, 256, 65536, UINT32_MAX};

    names[(*count)++] = name_of(&id, draw_id);
    for (size_t i = 0; depth > 0 && i < sizeof numbers / sizeof numbers[0]; i++) {
        struct hr_record_id child = id;

        hr__record_child(&child, numbers[i]);
        add_paths(names, count, child, draw_id, depth - 1);
    }
}

TEST(every_name_has_a_stream_of_its_own)
{
    static const uint32_t epochs[] = {0, 1, 2, HR_EPOCH_SUBSTITUTE,
                                      HR_EPOCH_SUBSTITUTE | 1};
    static const uint64_t indices[] = {0, 1, 2, (uint64_t)1 << 32, HR_INDEX_MAX - 1};
    size_t room = 5 * 5 * 8 * 700, count = 0;
    struct name *names = malloc(room * sizeof *names);

    CHECK(names != NULL);
    for (size_t e = 0; e < 5; e++)
        for (size_t i = 0; i < 5; i++)
            for (unsigned node = 0; node < 8; node++) {
                struct hr_record_id id = {
                    .seed = 42, .index = indices[i], .draw_epoch = epochs[e]};

                add_paths(names, &count, id, node_id(node), 3);
            }
    CHECK(count <= room);
    check_all_differ(names, count);
    free(names);
}

static struct hr_record_id random_id(struct hr_rng *rng)
{
    struct hr_record_id id = {.seed = 42};
    uint64_t depth = hr__rng_below(rng, 4);

    id.index = hr__rng_below(rng, HR_INDEX_MAX) >> hr__rng_below(rng, 62);
    id.draw_epoch = hr__rng_u32(rng) >> hr__rng_below(rng, 32);
    while (depth-- > 0)
        hr__record_child(&id, hr__rng_u32(rng) >> hr__rng_below(rng, 32));
    return id;
}

static bool is_same(const struct hr_record_id *a, const struct hr_record_id *b)
{
    return a->index == b->index && a->draw_epoch == b->draw_epoch &&
           a->depth == b->depth && memcmp(a->child, b->child, sizeof a->child) == 0;
}

TEST(random_names_that_differ_have_streams_that_differ)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int i = 0; i < 200000; i++) {
        struct hr_record_id a = random_id(&rng), b = random_id(&rng);
        uint64_t node = hr__rng_below(&rng, 1000), other = hr__rng_below(&rng, 1000);
        struct name x, y;

        if (i % 2 == 0) { /* names as near as can be */
            b = a;
            if (hr__rng_below(&rng, 2) == 0)
                b.index ^= (uint64_t)1 << hr__rng_below(&rng, 62);
            else if (b.depth > 0)
                b.child[b.depth - 1] ^= 1u << hr__rng_below(&rng, 32);
        }
        x = name_of(&a, node_id((unsigned)node));
        y = name_of(&b, node_id((unsigned)other));
        CHECK((compare(&x, &y) == 0) == (node == other && is_same(&a, &b)));
    }
}

#define LONG_DRAWS 1000000
#define BLOCKS (LONG_DRAWS / 4)

struct block {
    uint32_t word[4];
};

static int compare_blocks(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct block));
}

static void draw_blocks(struct hr_rng *rng, struct block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < 4; k++)
            blocks[i].word[k] = hr__rng_u32(rng);
}

/* A node that draws a million numbers, one that is beyond 2^16 blocks and one that is at
 * its last ones, beside their neighbours: nobody reads what another has read. */
TEST(long_streams_meet_no_other)
{
    struct hr_record_id id = {.seed = 1, .index = 5}, next = id, child = id;
    struct block *blocks = malloc(6 * BLOCKS * sizeof *blocks);
    struct hr_rng rng;

    CHECK(blocks != NULL);
    next.index++;
    hr__record_child(&child, 0);
    hr__record_rng(&id, node_id(1), &rng);
    draw_blocks(&rng, blocks, BLOCKS);
    rng.counter[3] = UINT32_MAX - BLOCKS + 1; /* up to the last block of all */
    draw_blocks(&rng, blocks + BLOCKS, BLOCKS);
    CHECK_EQ_INT(rng.counter[3], 0);
    hr__record_rng(&id, node_id(2), &rng);
    draw_blocks(&rng, blocks + 2 * BLOCKS, BLOCKS);
    hr__record_rng(&next, node_id(1), &rng);
    draw_blocks(&rng, blocks + 3 * BLOCKS, BLOCKS);
    hr__record_rng(&child, node_id(1), &rng);
    rng.counter[3] = 1u << 16;
    draw_blocks(&rng, blocks + 4 * BLOCKS, BLOCKS);
    next.draw_epoch++;
    hr__record_rng(&next, node_id(1), &rng);
    draw_blocks(&rng, blocks + 5 * BLOCKS, BLOCKS);
    qsort(blocks, 6 * BLOCKS, sizeof *blocks, compare_blocks);
    for (size_t i = 1; i < 6 * BLOCKS; i++)
        CHECK(compare_blocks(&blocks[i - 1], &blocks[i]) != 0);
    free(blocks);
}

TEST(an_identity_prints_as_members_of_an_object)
{
    struct hr_record_id id = {.position = 7, .index = 8, .epoch = 2};
    struct hr_str text;

    hr__str_init(&text);
    hr__record_json(&id, &text);
    CHECK_EQ_STR(hr__str_text(&text),
                 "\"epoch\":2,\"position\":7,\"record\":8,\"children\":[]");
    hr__str_finish(&text);
    hr__str_init(&text);
    hr__record_child(&id, 3);
    hr__record_child(&id, 0);
    hr__record_json(&id, &text);
    CHECK_EQ_STR(hr__str_text(&text),
                 "\"epoch\":2,\"position\":7,\"record\":8,\"children\":[3,0]");
    hr__str_finish(&text);
}
