/*
 * op/when_test.c - which records a node with draws runs for.
 */
#include "op/when.h"

#include "tests/support/check.h"

static struct hr_record_id record(uint64_t index)
{
    return (struct hr_record_id){.seed = 5, .index = index};
}

static enum hr_err count_call(struct hr_op_ctx *ctx)
{
    ++*(int *)ctx->state;
    return HR_ERR_IO;
}

TEST(parts_of_one_draw_share_out_the_records)
{
    uint64_t id = hr__when_draw_id("a");
    const struct hr_when low = {id, 0, 0.25}, high = {id, 0.25, 1};
    int count = 0;

    for (uint64_t i = 0; i < 4000; i++) {
        struct hr_record_id r = record(i);
        bool runs = hr__when_holds(&low, 1, &r);

        CHECK(runs != hr__when_holds(&high, 1, &r));
        count += runs;
    }
    CHECK(count > 850 && count < 1150); /* 5 standard deviations are 137 */
}

TEST(draws_of_several_names_are_independent)
{
    const struct hr_when both[] = {
        {hr__when_draw_id("a"), 0, 0.5},
        {hr__when_draw_id("b"), 0, 0.5}
    };
    int count = 0;

    for (uint64_t i = 0; i < 4000; i++) {
        struct hr_record_id r = record(i);

        count += hr__when_holds(both, 2, &r);
    }
    CHECK(count > 850 && count < 1150);
}

TEST(the_ends_are_never_and_always)
{
    const struct hr_when never = {hr__when_draw_id("a"), 0, 0};
    const struct hr_when always = {hr__when_draw_id("a"), 0, 1};

    for (uint64_t i = 0; i < 1000; i++) {
        struct hr_record_id r = record(i);

        CHECK(!hr__when_holds(&never, 1, &r));
        CHECK(hr__when_holds(&always, 1, &r));
        CHECK(hr__when_holds(NULL, 0, &r));
    }
}

TEST(a_record_skips_the_op_or_gets_its_result)
{
    static const struct hr_op op = {.name = "test.count", .apply = count_call};
    struct hr_record_id r = record(1);
    int calls = 0;
    struct hr_when when = {hr__when_draw_id("a"), 0, 0};
    struct hr_op_ctx ctx = {.state = &calls, .id = &r, .when = &when, .when_count = 1};

    CHECK_OK(hr__op_apply(&op, &ctx));
    CHECK_EQ_INT(calls, 0);
    when.below = 1;
    CHECK_EQ_INT(hr__op_apply(&op, &ctx), HR_ERR_IO);
    ctx.when_count = 0;
    CHECK_EQ_INT(hr__op_apply(&op, &ctx), HR_ERR_IO);
    CHECK_EQ_INT(calls, 2);
}

TEST(a_draw_has_other_numbers_than_a_node_of_its_name)
{
    CHECK(hr__when_draw_id("image.flip") != hr__hash64("image.flip", 10, 0));
}
