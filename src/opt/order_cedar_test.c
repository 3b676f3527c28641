/*
 * opt/order_cedar_test.c - the order that cedar takes, against a list of all orders made
 * as cedar makes it.
 */
#include "tests/support/check.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "opt/order.h"

#define STEPS 6
#define ORDERS_MAX 720

struct list {
    uint8_t orders[ORDERS_MAX][STEPS];
    size_t count;
};

static bool may_swap(const struct hr_order_step *steps, uint8_t a, uint8_t b)
{
    return a < b ? (steps[b].after >> a & 1) == 0 : (steps[a].after >> b & 1) == 0;
}

static void add(struct list *list, const uint8_t *order, size_t count, uint8_t last)
{
    CHECK(list->count < ORDERS_MAX);
    memcpy(list->orders[list->count], order, count);
    list->orders[list->count++][count] = last;
}

/* cedar's recursion as it is. */
static void list_orders(const struct hr_order_step *steps, const uint8_t *sequence,
                        size_t count, struct list *ret_list)
{
    struct list *rest = malloc(sizeof *rest), *more = malloc(sizeof *more);
    uint8_t last = sequence[count - 1];
    unsigned seen = 0;

    ret_list->count = 0;
    if (count == 1)
        add(ret_list, sequence, 0, last);
    else
        list_orders(steps, sequence, count - 1, rest);
    for (size_t i = 0; count > 1 && i < rest->count; i++) {
        uint8_t tail = rest->orders[i][count - 2];

        add(ret_list, rest->orders[i], count - 1, last);
        if ((seen >> tail & 1) != 0)
            continue;
        seen |= 1U << tail;
        if (!may_swap(steps, tail, last))
            continue;
        rest->orders[i][count - 2] = last;
        list_orders(steps, rest->orders[i], count - 1, more);
        for (size_t k = 0; k < more->count; k++)
            add(ret_list, more->orders[k], count - 1, tail);
    }
    free(rest);
    free(more);
}

/* Powers of two, so that sums are exact and many orders cost the same. */
static void draw(struct hr_rng *rng, struct hr_order_step *steps, size_t count)
{
    static const double growths[] = {0.5, 1, 1, 1, 2, 4}, prices[] = {1, 1, 2, 4, 0};

    for (size_t i = 0; i < count; i++) {
        steps[i] = (struct hr_order_step){.ns = prices[hr__rng_below(rng, 5)],
                                          .bytes_in = 1,
                                          .growth = growths[hr__rng_below(rng, 6)],
                                          .kept = 1};
        for (size_t k = 0; k < i; k++)
            if (hr__rng_below(rng, 5) == 0)
                steps[i].after |= (uint64_t)1 << k;
        for (size_t k = 0; k < i; k++) /* what it comes after has its own */
            if ((steps[i].after >> k & 1) != 0)
                steps[i].after |= steps[k].after;
    }
}

TEST(of_equal_orders_the_one_that_cedar_lists_first_is_taken)
{
    struct hr_rng rng;
    struct list *list = malloc(sizeof *list);
    size_t tied = 0;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 1000; round++) {
        static const uint8_t written[STEPS] = {0, 1, 2, 3, 4, 5};
        size_t count = 1 + hr__rng_below(&rng, STEPS), first = 0, equal = 0;
        struct hr_order_step steps[STEPS];
        struct hr_order_chain chain = {steps, count, 64};
        struct hr_order order;
        double orders;

        draw(&rng, steps, count);
        list_orders(steps, written, count, list);
        CHECK_OK(hr__order_count(&chain, &orders, NULL));
        CHECK_EQ_INT(list->count, (int64_t)orders);
        for (size_t i = list->count; i-- > 0;)
            if (hr__order_ns(&chain, list->orders[i]) <=
                hr__order_ns(&chain, list->orders[first]))
                first = i;
        for (size_t i = 0; i < list->count; i++)
            equal += hr__order_ns(&chain, list->orders[i]) ==
                     hr__order_ns(&chain, list->orders[first]);
        tied += equal > 1;
        CHECK_OK(hr__order_cedar(&chain, &order, NULL));
        CHECK(order.best);
        CHECK_BYTES(order.steps, list->orders[first], count);
        CHECK(order.ns == hr__order_ns(&chain, list->orders[first]));
    }
    CHECK(tied > 100);
    free(list);
}

TEST(many_equal_steps_and_long_chains_take_no_longer)
{
    struct hr_order_step steps[HR_ORDER_STEPS_MAX];
    struct hr_order_chain chain = {steps, 20, 1};
    struct hr_order order;

    for (size_t i = 0; i < HR_ORDER_STEPS_MAX; i++)
        steps[i] = (struct hr_order_step){1, 0, 1, i % 3 == 0 ? 2 : 1, 1, 0};
    CHECK_OK(hr__order_cedar(&chain, &order, NULL));
    CHECK(order.best && hr__order_is_legal(&chain, order.steps));
    chain.step_count = 40; /* too many in a row */
    CHECK_OK(hr__order_cedar(&chain, &order, NULL));
    CHECK(!order.best && hr__order_is_legal(&chain, order.steps));
    chain.step_count = 0;
    CHECK_OK(hr__order_cedar(&chain, &order, NULL));
    CHECK(order.ns == 0);
}

TEST(an_order_without_memory_is_an_error)
{
    struct hr_order_step steps[4];
    struct hr_order_chain chain = {steps, 4, 1};
    struct hr_order order;

    for (size_t i = 0; i < 4; i++) /* a barrier between the second and the third */
        steps[i] = (struct hr_order_step){1, 0, 1, 1, 1, i < 2 ? 0 : 3};
    for (uint64_t nth = 1; nth <= 2; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        CHECK_ERR(HR_ERR_MEMORY, hr__order_cedar(&chain, &order, NULL));
        hr__fault_arm(0, 0);
    }
}
