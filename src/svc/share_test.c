/*
 * svc/share_test.c - shares against a list of all positions.
 */
#include "svc/share.h"

#include "core/rng.h"
#include "tests/support/check.h"

TEST(random_shares_equal_a_list_of_positions)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int trial = 0; trial < 500; trial++) {
        uint64_t end = hr__rng_below(&rng, 200), base = hr__rng_below(&rng, end + 1);
        struct hr_share share = {.base = base,
                                 .end = end,
                                 .split = 1 + hr__rng_below(&rng, 9),
                                 .world = (uint32_t)(1 + hr__rng_below(&rng, 5))};

        share.rank = (uint32_t)hr__rng_below(&rng, share.world);
        uint64_t local = 0, found;

        for (uint64_t p = 0; p <= end; p++) {
            bool owned = p >= base && p < end &&
                         (p - base) / share.split % share.world == share.rank;

            CHECK_EQ_INT(hr__share_below(&share, p), local);
            CHECK_EQ_INT(hr__share_owns(&share, p, 1, &found), owned);
            if (!owned)
                continue;
            CHECK_EQ_INT(found, local);
            CHECK_EQ_INT(hr__share_position(&share, local), p);
            local++;
        }
        CHECK_EQ_INT(hr__share_size(&share), local);
        CHECK_EQ_INT(hr__share_position(&share, local), end);
        for (uint64_t i = 0; i < local; i++) {
            uint64_t run = hr__share_run(&share, i), p = hr__share_position(&share, i);

            CHECK(run > 0 && i + run <= local);
            for (uint64_t k = 0; k < run; k++)
                CHECK_EQ_INT(hr__share_position(&share, i + k), p + k);
            CHECK(hr__share_owns(&share, p, run, &found));
            CHECK(!hr__share_owns(&share, p, run + 1, &found) || share.world == 1);
        }
    }
}

TEST(a_position_of_another_rank_counts_as_the_next_own_one)
{
    const struct hr_share share = {
        .base = 10, .end = 50, .split = 5, .world = 2, .rank = 1};
    uint64_t local;

    CHECK_EQ_INT(hr__share_below(&share, 12), 0);
    CHECK_EQ_INT(hr__share_below(&share, 17), 2);
    CHECK_EQ_INT(hr__share_below(&share, 22), 5);
    CHECK_EQ_INT(hr__share_position(&share, 5), 25);
    CHECK(!hr__share_owns(&share, 18, 3, &local));
    CHECK(hr__share_owns(&share, 18, 2, &local));
}
