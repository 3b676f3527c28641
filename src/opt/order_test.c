/* opt/order_test.c - the cheapest order, against all orders, and Pecan's rule against its
 * paper.
 */
#include "tests/support/check.h"

#include <stdlib.h>

#include "core/rng.h"
#include "opt/order.h"

/* ---- random chains ---- */

struct drawn {
    struct hr_rng rng;
    struct hr_order_step steps[HR_ORDER_STEPS_MAX];
    struct hr_order_chain chain;
};

/* Between low and high, evenly by its logarithm. */
static double spread(struct hr_rng *rng, double low, double high)
{
    return low * pow(high / low, hr__rng_double(rng));
}

/* `tied` parts of 8 pairs of steps keep their order. */
static void draw_chain(struct drawn *d, size_t count, uint64_t tied, bool linear)
{
    for (size_t i = 0; i < count; i++) {
        struct hr_order_step *step = &d->steps[i];

        *step = (struct hr_order_step){
            .ns = spread(&d->rng, 10, 1e7),
            .fixed = linear ? 0 : hr__rng_double(&d->rng),
            .bytes_in = spread(&d->rng, 1, 1e7),
            .growth = hr__rng_below(&d->rng, 3) == 0 ? 1 : spread(&d->rng, 0.1, 10),
            .kept = linear || hr__rng_below(&d->rng, 3) > 0 ? 1 : spread(&d->rng, 0.2, 3),
        };
        for (size_t k = 0; k < i; k++)
            if (hr__rng_below(&d->rng, 8) < tied)
                step->after |= (uint64_t)1 << k;
    }
    d->chain = (struct hr_order_chain){d->steps, count, spread(&d->rng, 1, 1e7)};
    CHECK_OK(hr__order_check(&d->chain, NULL));
}

static void find(const struct drawn *d, struct hr_order *ret_order)
{
    CHECK_OK(hr__order_find(&d->chain, ret_order, NULL));
    CHECK(hr__order_is_legal(&d->chain, ret_order->steps));
}

static double ns_as_written(const struct drawn *d)
{
    uint8_t written[HR_ORDER_STEPS_MAX];

    for (size_t i = 0; i < d->chain.step_count; i++)
        written[i] = (uint8_t)i;
    return hr__order_ns(&d->chain, written);
}

/* What records take in the steps that they enter adds up to the order's time. */
static void check_parts(const struct drawn *d, const struct hr_order *order)
{
    double parts[HR_ORDER_STEPS_MAX], records = 1, ns = 0;

    hr__order_parts(&d->chain, order->steps, parts);
    for (size_t i = 0; i < d->chain.step_count; i++) {
        ns += records * parts[order->steps[i]];
        records *= d->steps[order->steps[i]].kept;
    }
    CHECK_NEAR(ns, order->ns, 1e-9 * ns);
}

struct all {
    const struct hr_order_chain *chain;
    uint8_t order[HR_ORDER_STEPS_MAX];
    double count, least;
};

/* Every permutation that begins with `at` steps of the order. */
static void walk(struct all *all, size_t at)
{
    if (at == all->chain->step_count) {
        if (hr__order_is_legal(all->chain, all->order)) {
            all->count++;
            all->least = fmin(all->least, hr__order_ns(all->chain, all->order));
        }
        return;
    }
    for (size_t i = at; i < all->chain->step_count; i++) {
        uint8_t step = all->order[i];

        all->order[i] = all->order[at];
        all->order[at] = step;
        walk(all, at + 1);
        all->order[at] = all->order[i];
        all->order[i] = step;
    }
}

TEST(the_cheapest_of_all_legal_orders_is_found)
{
    struct drawn d;

    hr__rng_init(&d.rng, check_seed(), 0, 0);
    for (int round = 0; round < 400; round++) {
        struct all all = {.chain = &d.chain, .least = HUGE_VAL};
        struct hr_order order;
        double count;

        draw_chain(&d, hr__rng_below(&d.rng, 8), hr__rng_below(&d.rng, 9), false);
        for (size_t i = 0; i < d.chain.step_count; i++)
            all.order[i] = (uint8_t)i;
        walk(&all, 0);
        find(&d, &order);
        CHECK(order.best);
        CHECK_NEAR(order.ns, all.least, 1e-9 * all.least);
        check_parts(&d, &order);
        CHECK_OK(hr__order_count(&d.chain, &count, NULL));
        CHECK_EQ_INT((int64_t)count, (int64_t)all.count);
        if (ns_as_written(&d) <= all.least)
            for (size_t i = 0; i < d.chain.step_count; i++)
                CHECK_EQ_INT(order.steps[i], i);
    }
}

/* Two neighbours whose costs are linear in bytes belong in the order of (growth - 1) by
 * time, wherever they are; without ties that decides the whole order. */
static const struct drawn *sorted;

static int by_exchange(const void *a, const void *b)
{
    const struct hr_order_step *x = &sorted->steps[*(const uint8_t *)a];
    const struct hr_order_step *y = &sorted->steps[*(const uint8_t *)b];
    double first = (x->growth - 1) * x->bytes_in / x->ns;
    double second = (y->growth - 1) * y->bytes_in / y->ns;

    return (first > second) - (first < second);
}

TEST(twenty_free_steps_are_ordered_exactly)
{
    struct drawn d;

    hr__rng_init(&d.rng, check_seed(), 1, 0);
    for (int round = 0; round < 3; round++) {
        uint8_t best[HR_ORDER_STEPS_MAX];
        struct hr_order order;
        double count;

        draw_chain(&d, 20, 0, true);
        for (size_t i = 0; i < 20; i++)
            best[i] = (uint8_t)i;
        sorted = &d;
        qsort(best, 20, 1, by_exchange);
        find(&d, &order);
        CHECK(order.best);
        CHECK_NEAR(order.ns, hr__order_ns(&d.chain, best), 1e-9 * order.ns);
        CHECK_OK(hr__order_count(&d.chain, &count, NULL));
        CHECK(count == 2432902008176640000.0);
    }
}

TEST(long_chains_get_no_dearer_and_barriers_divide_them)
{
    struct drawn d;
    struct hr_order order;
    double count;

    hr__rng_init(&d.rng, check_seed(), 2, 0);
    draw_chain(&d, 30, 1, false);
    d.steps[0].after = 0;
    find(&d, &order);
    CHECK(order.ns <= ns_as_written(&d));
    draw_chain(&d, 64, 0, false);
    for (size_t i = 0; i < 64; i++) /* every eighth step is one */
        d.steps[i].after =
            i % 8 == 7 ? ((uint64_t)1 << i) - 1 : ((uint64_t)1 << (i & ~(size_t)7)) - 1;
    find(&d, &order);
    CHECK(order.best && order.ns <= ns_as_written(&d));
    for (size_t i = 0; i < 64; i++)
        CHECK(order.steps[i] / 8 == i / 8 && (i % 8 != 7 || order.steps[i] == i));
    CHECK_OK(hr__order_count(&d.chain, &count, NULL));
    CHECK_NEAR(count, pow(5040, 8), 1e-12 * count);
    draw_chain(&d, 21, 0, true);
    find(&d, &order);
    CHECK(!order.best && order.ns <= ns_as_written(&d));
    CHECK_OK(hr__order_count(&d.chain, &count, NULL));
    CHECK(count == HUGE_VAL);
}

/* Whether some legal order with one step elsewhere is cheaper. */
static bool one_move_gains(const struct drawn *d, const struct hr_order *order)
{
    for (size_t i = 0; i < d->chain.step_count; i++)
        for (size_t k = 0; k < d->chain.step_count; k++) {
            uint8_t other[HR_ORDER_STEPS_MAX], step = order->steps[i];

            memcpy(other, order->steps, sizeof other);
            if (k > i)
                memmove(other + i, other + i + 1, k - i);
            else
                memmove(other + k + 1, other + k, i - k);
            other[k] = step;
            if (hr__order_is_legal(&d->chain, other) &&
                hr__order_ns(&d->chain, other) < order->ns * (1 - 1e-9))
                return true;
        }
    return false;
}

TEST(no_step_of_a_long_chain_moves_alone)
{
    struct hr_order order;
    struct drawn d;

    hr__rng_init(&d.rng, check_seed(), 3, 0);
    for (int round = 0; round < 10; round++) {
        draw_chain(&d, 21 + hr__rng_below(&d.rng, 25), hr__rng_below(&d.rng, 3), false);
        find(&d, &order);
        CHECK(!one_move_gains(&d, &order));
    }
}

/* Only sets that may run first are looked at, and long chains in few windows. */
TEST(the_work_is_bounded)
{
    struct hr_order order;
    struct drawn d;

    hr__rng_init(&d.rng, check_seed(), 4, 0);
    draw_chain(&d, 20, 0, false);
    for (size_t i = 2; i < 20; i++) /* two chains of ten that do not mind each other */
        d.steps[i].after = (uint64_t)1 << (i - 2);
    find(&d, &order);
    CHECK(order.best);
    CHECK_EQ_INT((int64_t)order.sets, 11 * 11);
    for (int round = 0; round < 10; round++) {
        draw_chain(&d, 45, 0, false);
        find(&d, &order);
        CHECK(!order.best);
        CHECK(order.sets <= (uint64_t)40 << 16);
    }
}

TEST(numbers_that_make_no_sense_are_refused)
{
    struct hr_order_step steps[2] = {
        {10, 0, 5, 1, 1, 0},
        {10, 0, 5, 1, 1, 1}
    };
    struct hr_order_chain chain = {steps, 2, 5};
    struct hr_error error = {0};
    double *numbers[] = {&steps[1].ns,     &steps[1].fixed, &steps[1].bytes_in,
                         &steps[1].growth, &steps[1].kept,  &chain.bytes};
    double wrong[] = {-1, NAN, INFINITY, 1e19};

    CHECK_OK(hr__order_check(&chain, &error));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            double was = *numbers[i];

            *numbers[i] = wrong[k];
            CHECK_ERR(HR_ERR_RANGE, hr__order_check(&chain, &error));
            CHECK_HAS(error.message, i < 5 ? "step 1" : "source");
            *numbers[i] = was;
        }
    steps[1].bytes_in = 0;
    CHECK_ERR(HR_ERR_RANGE, hr__order_check(&chain, &error));
    steps[1].fixed = 1;
    CHECK_OK(hr__order_check(&chain, &error));
    steps[0].growth = steps[1].kept = 1e18;
    steps[0].kept = steps[1].growth = 1e18;
    CHECK_ERR(HR_ERR_RANGE, hr__order_check(&chain, &error));
    steps[0].kept = steps[1].growth = 1;
    CHECK_OK(hr__order_check(&chain, &error));
    steps[1].after = 2;
    CHECK_ERR(HR_ERR_RANGE, hr__order_check(&chain, &error));
    chain.step_count = HR_ORDER_STEPS_MAX + 1;
    CHECK_ERR(HR_ERR_LIMIT, hr__order_check(&chain, &error));
}

/* ---- Pecan ---- */

/* Algorithm 2 as the paper has it: lists that grow at either end. */
static void
pecan_of_the_paper(const struct hr_pecan_step *steps, size_t count, uint8_t *ret_order)
{
    uint8_t prefix[HR_ORDER_STEPS_MAX], suffix[HR_ORDER_STEPS_MAX], casts[64];
    size_t prefixes = 0, suffixes = 0, ends = 0, made = 0;

    for (size_t i = 0; i <= count; i++) {
        if (i < count && !steps[i].fixed) {
            if (steps[i].last)
                casts[ends++] = (uint8_t)i;
            else if (steps[i].inflation < 1) {
                memmove(prefix + 1, prefix, prefixes++);
                prefix[0] = (uint8_t)i;
            } else if (steps[i].inflation > 1)
                suffix[suffixes++] = (uint8_t)i;
            else
                prefix[prefixes++] = (uint8_t)i;
            continue;
        }
        memcpy(ret_order + made, prefix, prefixes);
        memcpy(ret_order + made + prefixes, suffix, suffixes);
        memcpy(ret_order + made + prefixes + suffixes, casts, ends);
        made += prefixes + suffixes + ends;
        prefixes = suffixes = ends = 0;
        if (i < count)
            ret_order[made++] = (uint8_t)i;
    }
}

TEST(ten_thousand_chains_follow_pecans_rule)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 3, 0);
    for (int round = 0; round < 10000; round++) {
        size_t count = hr__rng_below(&rng, HR_ORDER_STEPS_MAX + 1);
        uint8_t order[HR_ORDER_STEPS_MAX], want[HR_ORDER_STEPS_MAX];
        struct hr_pecan_step steps[HR_ORDER_STEPS_MAX];

        for (size_t i = 0; i < count; i++)
            steps[i] = (struct hr_pecan_step){
                .inflation = hr__rng_below(&rng, 3) == 0 ? 1 : spread(&rng, 0.01, 100),
                .fixed = hr__rng_below(&rng, 5) == 0,
                .last = hr__rng_below(&rng, 10) == 0};
        hr__order_pecan(steps, count, order);
        pecan_of_the_paper(steps, count, want);
        CHECK_BYTES(order, want, count);
        for (size_t i = 0; i < count; i++) /* nothing crosses a barrier */
            CHECK(!steps[i].fixed || order[i] == i);
    }
}

static void check_pecan(const struct hr_pecan_step *steps, const char *want)
{
    uint8_t order[HR_ORDER_STEPS_MAX];
    size_t count = strlen(want);

    hr__order_pecan(steps, count, order);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_INT(order[i], want[i] - '0');
}

TEST(pecan_moves_what_its_paper_says)
{
    /* decode, flip, rotate, shear, resize, subtract the mean, cast, batch */
    check_pecan(
        (struct hr_pecan_step[]){
            {8.67, true,  false},
            {1,    false, false},
            {1,    false, false},
            {1,    false, false},
            {0.61, false, false},
            {1,    false, false},
            {0.5,  false, true },
            {128,  true,  false}
    },
        "04123567");
    /* crop, flip, jitter, blur, clip, grayscale, batch */
    check_pecan(
        (struct hr_pecan_step[]){
            {0.4,     true,  false},
            {1,       false, false},
            {1,       false, false},
            {1,       false, false},
            {1,       false, false},
            {1.0 / 3, false, false},
            {64,      true,  false}
    },
        "0512346");
    /* decode, cast and normalise, flip, labels, batch */
    check_pecan(
        (struct hr_pecan_step[]){
            {4.91, true,  false},
            {4,    false, false},
            {1,    false, false},
            {2.33, true,  false},
            {64,   true,  false}
    },
        "02134");
    /* decode, spectrum, pad, mask, speed, pitch, reverb, batch */
    check_pecan(
        (struct hr_pecan_step[]){
            {8,   true,  false},
            {2,   true,  false},
            {3.9, false, false},
            {1,   false, false},
            {1,   false, false},
            {1,   false, false},
            {1,   false, false},
            {32,  true,  false}
    },
        "01345627");
    /* the same, with reverb pinned: pad stays before it */
    check_pecan(
        (struct hr_pecan_step[]){
            {8,   true,  false},
            {3.9, false, false},
            {1,   false, false},
            {1,   true,  false},
            {1,   false, false}
    },
        "02134");
}
