/*
 * core/lru_test.c - the list keeps the order of the last uses.
 */
#include "core/lru.h"

#include <stdbool.h>

#include "core/rng.h"
#include "tests/support/check.h"

#define ITEMS 9

struct item {
    struct hr_lru_link link;
    uint64_t used; /* 0: not in the list */
};

/* The list has exactly the items with a time, the latest first, in both directions. */
static void check_order(const struct hr_lru *lru, const struct item *items)
{
    const struct hr_lru_link *newer = NULL;
    uint64_t last = UINT64_MAX;
    int wanted = 0;

    for (int i = 0; i < ITEMS; i++)
        wanted += items[i].used > 0;
    for (const struct hr_lru_link *at = lru->newest; at != NULL; at = at->older) {
        const struct item *item = (const void *)at;

        CHECK(at->newer == newer && item->used > 0 && item->used < last);
        last = item->used;
        newer = at;
        wanted--;
    }
    CHECK_EQ_INT(wanted, 0);
    CHECK(lru->oldest == newer);
}

TEST(items_are_in_the_order_of_their_last_use)
{
    struct item items[ITEMS] = {0};
    struct hr_lru lru = {0};
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (uint64_t now = 1; now < 2000; now++) {
        struct item *item = &items[hr__rng_below(&rng, ITEMS)];

        if (item->used == 0)
            hr__lru_add(&lru, &item->link);
        else if (hr__rng_below(&rng, 3) == 0)
            hr__lru_remove(&lru, &item->link);
        else
            hr__lru_use(&lru, &item->link);
        item->used = item->link.newer != NULL || item->link.older != NULL ||
                             lru.newest == &item->link
                         ? now
                         : 0;
        check_order(&lru, items);
    }
}
