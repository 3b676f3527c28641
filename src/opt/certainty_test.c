/*
 * opt/certainty_test.c - hr__certain() on known costs, and on drawn ones against the
 * error of their sum.
 */
#include "opt/certainty.h"

#include <math.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/rng.h"
#include "tests/support/check.h"

#define MANY 1000

static struct hr_certainty nodes[MANY];

static bool certain_of(size_t count, double ns, double width)
{
    for (size_t i = 0; i < count; i++)
        nodes[i] = (struct hr_certainty){ns, width};
    return hr__certain(nodes, count, 0.05);
}

TEST(nothing_is_certain)
{
    CHECK(hr__certain(nodes, 0, 0.05));
    CHECK(certain_of(3, 0, -1));
}

TEST(large_shares_need_an_interval_of_their_own)
{
    CHECK(certain_of(2, 100, 0.049));
    CHECK(!certain_of(2, 100, 0.051));
    CHECK(!certain_of(2, 100, -1));
}

TEST(a_small_share_may_be_off_by_more)
{
    nodes[0] = (struct hr_certainty){980, 0.01};
    nodes[1] = (struct hr_certainty){20, 0.49};
    CHECK(hr__certain(nodes, 2, 0.05)); /* 1 % of the sum */
    nodes[1].width = 0.51;
    CHECK(!hr__certain(nodes, 2, 0.05));
    nodes[1].width = -1;
    CHECK(!hr__certain(nodes, 2, 0.05));
    nodes[1].ns = 2;
    CHECK(hr__certain(nodes, 2, 0.05));
    nodes[1].width = 2;
    CHECK(hr__certain(nodes, 2, 0.05));
}

/* One disturbed node of a hundred kept a profile going until its limit. */
TEST(of_many_nodes_one_may_be_disturbed)
{
    CHECK(certain_of(100, 300, 0.1));
    nodes[17].width = 0.95;
    CHECK(hr__certain(nodes, 100, 0.05));
    nodes[17].width = 1.05;
    CHECK(!hr__certain(nodes, 100, 0.05));
}

TEST(small_shares_add_up)
{
    CHECK(certain_of(MANY, 5, 1.5));
    CHECK(!certain_of(MANY, 5, 1.7));
    CHECK(!certain_of(8, 5, -1));
    CHECK(certain_of(MANY, 5, -1)); /* 3 % of the sum */
}

/* A normal deviate. */
static double deviate(struct hr_rng *rng)
{
    return sqrt(-2 * log(1 - hr__rng_double(rng))) *
           cos(6.28318530718 * hr__rng_double(rng));
}

TEST(the_sum_of_what_is_certain_is_within_the_width)
{
    uint64_t seed = hr__now_ns();
    struct hr_rng rng;
    size_t certain = 0, off = 0;

    printf("# seed %llu\n", (unsigned long long)seed);
    hr__rng_init(&rng, seed, 0, 0);
    for (int draw = 0; draw < 4000; draw++) {
        size_t count = 1 + hr__rng_below(&rng, 60);
        double widest = 0.4 * hr__rng_double(&rng), sum = 0, found = 0;

        for (size_t i = 0; i < count; i++) {
            nodes[i].ns = exp(6 * hr__rng_double(&rng));
            nodes[i].width = widest * hr__rng_double(&rng);
            sum += nodes[i].ns;
            found += nodes[i].ns * (1 + nodes[i].width / 1.96 * deviate(&rng));
        }
        if (!hr__certain(nodes, count, 0.05))
            continue;
        certain++;
        off += fabs(found - sum) > 0.05 * sum;
    }
    CHECK(certain > 400);
    CHECK(off <= certain / 15); /* 5 % at most are expected */
}
