/*
 * opt/order_test.c - the cheapest order, against all orders, against cedar's results, and
 * Pecan's rule against its paper.
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

/* ---- cedar ---- */

struct cedar_step {
    double ns, in, out; /* from cedar's statistics: CPU time, bytes */
    bool fixed;
    int depends_on; /* step number; -1: none */
};

struct cedar_case {
    const char *name;
    double rate; /* samples/s of the whole pipeline */
    struct cedar_step steps[12];
    double orders, written_ms, best_ms;
};

/*
 * The statistics that cedar ships, step 0 being the source, and what its optimizer makes
 * of them: Zhao et al., "cedar: Optimized and Unified Machine Learning Input Data
 * Pipelines", VLDB 2024; the results are those of its code.
 */
static const struct cedar_case cedar_cases[] = {
    {"CV-torch",
     40.29777, {{57345.69, 0, 160.4706, true, -1},
      {1986337, 160.4706, 487347.2, true, -1},
      {269284.2, 487347.2, 1949389, false, -1},
      {2029028, 1949389, 714432, false, -1},
      {115993.8, 714432, 714432, false, 3},
      {9055507, 714432, 714432, false, -1},
      {325785, 714432, 238144, false, -1},
      {8262708, 238144, 238144, false, -1},
      {224545, 238144, 238144, false, 2},
      {4717422, 238144, 238144, true, -1}},
     1260, 24.815,
     9.396},
    {"CV-torch, remote",
     39.89594, {{16526.24, 0, 152.8, true, -1},
      {1966147, 152.8, 535453.3, true, -1},
      {334439.6, 535453.3, 2141813, false, -1},
      {2069423, 2141813, 714432, false, -1},
      {121452.4, 714432, 714432, false, 3},
      {9625668, 714432, 714432, false, -1},
      {363186.9, 714432, 238144, false, -1},
      {6194943, 238144, 238144, false, -1},
      {246840, 238144, 238144, false, 2},
      {5126579, 238144, 238144, true, -1}},
     1260, 25.065,
     9.808},
    {"CV-tf",
     65.73627, {{13339.67, 0, 152.3951, true, -1},
      {1.562207e7, 152.3951, 111460, true, -1},
      {1.380033e7, 111460, 533344.7, true, -1},
      {1.297196e7, 533344.7, 2133379, false, -1},
      {8.906746e7, 2133379, 714432, false, -1},
      {4.721822e7, 714432, 714432, false, 4},
      {4.834113e7, 714432, 714432, false, -1},
      {2.231209e7, 714432, 238144, false, -1},
      {5462766, 238144, 238144, false, -1},
      {698793.7, 238144, 238144, false, 3},
      {6385877, 238144, 238144, true, -1}},
     1260, 15.212,
     4.146},
    {"NLP-torch",
     1960.838, {{9096.16, 0, 605.44, true, -1},
      {582709.8, 605.44, 4866.96, true, -1},
      {2190430, 4866.96, 4594.24, true, -1},
      {2016816, 4594.24, 2625.28, true, -1},
      {1957377, 2625.28, 2649.28, false, -1},
      {1968189, 2649.28, 2681.28, false, -1},
      {2026209, 2681.28, 672.32, true, -1},
      {110273.5, 672.32, 256826.2, true, -1},
      {7024.1, 256826.2, 256826.2, true, -1}},
     2,    0.510,
     0.510},
    {"NLP-tf",
     909.1796, {{11435.69, 0, 326.6, true, -1},
      {724025.2, 326.6, 377.68, true, -1},
      {391252, 377.68, 325.48, true, -1},
      {395024.9, 325.48, 249968.6, true, -1}},
     1,    1.100,
     1.100},
    {"SSD-torch",
     4.212811, {{4268438, 0, 819539.9, true, -1},
      {3274151, 819539.9, 5703035, false, -1},
      {1.203695e7, 5703035, 4728173, false, 1},
      {3322530, 4728173, 4728164, false, 2},
      {5214733, 4728164, 4728164, false, 3},
      {1.889007e8, 4728164, 4728164, false, -1},
      {2.649433e7, 4728164, 1.891059e7, false, -1}},
     30,   237.37,
     85.15},
    {"SSD-tf",
     12.77497, {{11876.36, 0, 1054, true, -1},
      {7.832443e7, 1054, 3099054, true, -1},
      {7.599651e7, 3099054, 1193512, false, -1},
      {7.861046e7, 1193512, 2.132273e7, false, 2},
      {9.35559e7, 2.132273e7, 2.132273e7, false, 3},
      {4.760047e7, 2.132273e7, 2.132273e7, false, -1},
      {3.52487e7, 2.132273e7, 2.132273e7, true, -1}},
     4,    78.28,
     69.69},
    {"three steps of cedar's own test",
     10,       {{1, 0, 1, true, -1},
      {1, 1, 10, false, -1},
      {1, 10, 10, false, -1},
      {1, 10, 1, false, -1}},
     6,    100,
     30.25},
};

/* Its model: time is linear in bytes, and each step takes the part of the pipeline's time
 * that its CPU time has of that of all steps. Steps swap unless one is fixed or depends
 * on the other, through others too. */
static size_t
cedar_chain(const struct cedar_case *one, struct hr_order_step *steps, double *ret_source)
{
    uint64_t swaps[HR_ORDER_STEPS_MAX] = {0};
    size_t count = 0;
    double all = 0;

    for (; count < 12 && one->steps[count].ns > 0; count++)
        all += one->steps[count].ns;
    for (size_t i = 0; i < count; i++) {
        const struct cedar_step *step = &one->steps[i];
        double ns = step->ns / all * 1e9 / one->rate;

        if (i == 0) {
            *ret_source = ns;
            continue;
        }
        steps[i - 1] =
            (struct hr_order_step){ns, 0, step->in, step->out / step->in, 1, 0};
        for (size_t k = 1; k < i; k++) {
            int above = (int)i;

            while (above > (int)k)
                above = one->steps[above].depends_on;
            if (above != (int)k && !step->fixed && !one->steps[k].fixed)
                swaps[i - 1] |= (uint64_t)1 << (k - 1);
        }
    }
    hr__order_from_swaps(steps, count - 1, swaps);
    return count - 1;
}

TEST(orders_are_those_of_cedar_under_its_model)
{
    for (size_t i = 0; i < sizeof cedar_cases / sizeof cedar_cases[0]; i++) {
        const struct cedar_case *one = &cedar_cases[i];
        struct hr_order_step steps[12];
        double source = 0, count, digit = one->written_ms < 50 ? 0.0006 : 0.006;
        struct hr_order_chain chain = {steps, cedar_chain(one, steps, &source),
                                       one->steps[0].out};
        uint8_t written[12];
        struct hr_order order;

        for (size_t k = 0; k < chain.step_count; k++)
            written[k] = (uint8_t)k;
        CHECK_OK(hr__order_check(&chain, NULL));
        CHECK_OK(hr__order_count(&chain, &count, NULL));
        CHECK_OK(hr__order_find(&chain, &order, NULL));
        if (count != one->orders)
            check_failed(__FILE__, __LINE__, "%s: %g orders", one->name, count);
        CHECK_NEAR((source + hr__order_ns(&chain, written)) / 1e6, one->written_ms,
                   digit);
        CHECK_NEAR((source + order.ns) / 1e6, one->best_ms, digit);
        CHECK(order.best);
    }
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
