/*
 * fleet/shelf_test.c - what a worker keeps of equal jobs, against a plain model.
 */
#include "fleet/shelf.h"

#include "core/alloc.h"
#include "core/rng.h"
#include "engine/batch.h"
#include "tests/support/check.h"

#define BYTES ((size_t)1 << 20)
#define SOME ((size_t)8 << 20)

static struct hr_batch *make(size_t bytes)
{
    const struct hr_schema none = {0};
    struct hr_batch *batch = hr__batch_create(&none, NULL);

    CHECK(batch != NULL);
    batch->bytes = bytes;
    return batch;
}

static bool put(struct hr_shelf *shelf, const struct hr_shelf_budget *budget,
                uint64_t number, uint32_t follower)
{
    struct hr_batch *batch = make(BYTES);
    bool is_kept = hr__shelf_put(shelf, budget, number, follower, batch);

    hr_batch_unref(batch);
    return is_kept;
}

static bool take(struct hr_shelf *shelf, uint64_t number, uint32_t follower)
{
    struct hr_batch *batch = hr__shelf_take(shelf, number, follower);

    hr_batch_unref(batch);
    return batch != NULL;
}

TEST(a_batch_is_kept_until_all_have_it)
{
    struct hr_shelf_budget budget = {.most = SOME};
    struct hr_shelf shelf = {0};
    uint32_t a = hr__shelf_join(&shelf, &budget, 0), b, c;
    CHECK(!put(&shelf, &budget, 0, a)); /* nobody else is there */
    b = hr__shelf_join(&shelf, &budget, 0);
    c = hr__shelf_join(&shelf, &budget, 2);
    CHECK_EQ_INT(budget.jobs, 1);
    CHECK(put(&shelf, &budget, 1, a));
    CHECK(put(&shelf, &budget, 2, a));
    CHECK(!put(&shelf, &budget, 2, b)); /* the first one stays */
    CHECK(take(&shelf, 1, b));
    CHECK(!take(&shelf, 1, b));
    CHECK(hr__shelf_has(&shelf, 2));
    CHECK(take(&shelf, 2, c));
    CHECK_EQ_INT(shelf.bytes, 0);
    hr__shelf_finish(&shelf, &budget);
    CHECK_EQ_INT(budget.jobs, 0);
}

TEST(a_follower_that_moves_or_leaves_needs_nothing)
{
    struct hr_shelf_budget budget = {.most = SOME};
    struct hr_shelf shelf = {0};
    uint32_t a = hr__shelf_join(&shelf, &budget, 0),
             b = hr__shelf_join(&shelf, &budget, 0);

    for (uint64_t i = 0; i < 4; i++)
        CHECK(put(&shelf, &budget, i, a));
    hr__shelf_move(&shelf, b, 2);
    CHECK(!hr__shelf_has(&shelf, 1));
    CHECK(hr__shelf_has(&shelf, 2));
    hr__shelf_leave(&shelf, &budget, b);
    CHECK_EQ_INT(shelf.count, 0);
    CHECK_EQ_INT(budget.jobs, 0);
    b = hr__shelf_join(&shelf, &budget, 3);
    CHECK(!put(&shelf, &budget, 2, a));
    CHECK(put(&shelf, &budget, 3, a));
    hr__shelf_finish(&shelf, &budget);
}

TEST(who_is_far_behind_crowds_out_nobody)
{
    struct hr_shelf_budget budget = {.most = SOME};
    struct hr_shelf shelf = {0};
    uint32_t first = hr__shelf_join(&shelf, &budget, 1000),
             second = hr__shelf_join(&shelf, &budget, 1000);
    uint64_t missed = 0, got_last = 0;
    (void)hr__shelf_join(&shelf, &budget, 0); /* it takes nothing */
    for (uint64_t i = 1000; i < 1100; i++) {
        (void)put(&shelf, &budget, i, first);
        hr__shelf_move(&shelf, first, i + 1);
        CHECK(shelf.bytes <= budget.most);
        if (i < 1003)
            continue;
        missed += !take(&shelf, i - 3, second); /* it is three behind */
        hr__shelf_move(&shelf, second, i - 2);
        got_last = i - 3;
    }
    CHECK_EQ_INT(got_last, 1096);
    CHECK_EQ_INT(missed, 0);
    hr__shelf_finish(&shelf, &budget);
}

TEST(jobs_divide_the_budget)
{
    struct hr_shelf_budget budget = {.most = SOME};
    struct hr_shelf one = {0}, other = {0};
    uint32_t a = hr__shelf_join(&one, &budget, 0), c;

    (void)hr__shelf_join(&one, &budget, 0);
    for (uint64_t i = 0; i < 7; i++)
        CHECK(put(&one, &budget, i, a));
    c = hr__shelf_join(&other, &budget, 0);
    (void)hr__shelf_join(&other, &budget, 0);
    hr__shelf_trim(&one, &budget);
    CHECK(one.bytes <= SOME / 2);
    CHECK(hr__shelf_has(&one, 0)); /* what is needed next */
    CHECK(put(&other, &budget, 0, c));
    hr__shelf_finish(&one, &budget);
    hr__shelf_finish(&other, &budget);
}

TEST(a_batch_beyond_the_budget_is_not_kept)
{
    struct hr_shelf_budget none = {0}, little = {.most = BYTES};
    struct hr_shelf shelf = {0};
    uint32_t a = hr__shelf_join(&shelf, &little, 0);

    (void)hr__shelf_join(&shelf, &little, 0);
    CHECK(!put(&shelf, &little, 0, a));
    CHECK(!put(&shelf, &none, 0, a));
    hr__shelf_finish(&shelf, &little);
}

TEST(more_clients_than_count_find_what_is_kept)
{
    struct hr_shelf_budget budget = {.most = SOME};
    struct hr_shelf shelf = {0};
    uint32_t last = 0;
    for (uint32_t i = 0; i < HR_SHELF_FOLLOWERS; i++)
        last = hr__shelf_join(&shelf, &budget, 0);
    CHECK_EQ_INT(last, HR_SHELF_FOLLOWERS - 1);
    CHECK_EQ_INT(hr__shelf_join(&shelf, &budget, 0), HR_SHELF_NOBODY);
    CHECK(put(&shelf, &budget, 0, HR_SHELF_NOBODY));
    CHECK(take(&shelf, 0, HR_SHELF_NOBODY));
    CHECK(take(&shelf, 0, 5));
    hr__shelf_leave(&shelf, &budget, HR_SHELF_NOBODY);
    hr__shelf_finish(&shelf, &budget);
}

/* Followers take batches in order, the first of them makes what is not kept. While all
 * fits nothing is made twice but what a follower that comes late needs. */
TEST(random_followers_make_each_batch_once_while_all_fits)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int trial = 0; trial < 200; trial++) {
        uint32_t count = 2 + (uint32_t)(hr__rng_u64(&rng) % 5), ids[6];
        bool fits = hr__rng_u64(&rng) % 2 == 0;
        struct hr_shelf_budget budget = {.most = (fits ? 400 : 10) * BYTES};
        struct hr_shelf shelf = {0};
        uint64_t at[6] = {0}, made = 0, end = 100;
        uint32_t left = count;

        for (uint32_t i = 0; i < count; i++)
            ids[i] = hr__shelf_join(&shelf, &budget, 0);
        while (left > 0) {
            uint32_t i = (uint32_t)(hr__rng_u64(&rng) % count);
            if (at[i] == end)
                continue;
            if (!take(&shelf, at[i], ids[i])) {
                made++;
                (void)put(&shelf, &budget, at[i], ids[i]);
            }
            hr__shelf_move(&shelf, ids[i], ++at[i]);
            CHECK(shelf.bytes <= budget.most);
            if (at[i] == end) {
                hr__shelf_leave(&shelf, &budget, ids[i]);
                left--;
            }
        }
        CHECK_EQ_INT(shelf.count, 0);
        CHECK_EQ_INT(budget.jobs, 0);
        CHECK(!fits || made == end);
        hr__shelf_finish(&shelf, &budget);
    }
}
