/*
 * opt/cedar_choose_test.c - order, cache and slices chosen together: never dearer than
 * cedar's choice, and the best there is where that can be tried.
 */
#include "tests/support/check.h"

#include <stdlib.h>

#include "core/rng.h"
#include "opt/cedar_passes.h"
#include "opt/cedar_test_cases.h"

static double drawn(struct hr_rng *rng, double low, double high)
{
    return low * pow(high / low, hr__rng_double(rng));
}

struct drawn {
    struct hr_cedar_pipe pipes[HR_CEDAR_PIPES_MAX];
    struct hr_cedar_stats stats;
    struct hr_cedar_options options;
};

static void draw(struct hr_rng *rng, size_t count, struct drawn *d)
{
    memset(d, 0, sizeof *d);
    for (size_t i = 0; i < count; i++) {
        struct hr_cedar_pipe *pipe = &d->pipes[i];

        pipe->name = "drawn";
        pipe->latency_ns = hr__rng_below(rng, 9) == 0 ? 0 : drawn(rng, 1e3, 1e7);
        pipe->bytes_in = drawn(rng, 1e2, 1e6);
        pipe->bytes_out = pipe->bytes_in;
        if (hr__rng_below(rng, 2) == 0)
            pipe->bytes_out *= drawn(rng, 0.1, 10);
        pipe->variants = MAPS;
        pipe->fusable = hr__rng_below(rng, 6) > 0;
        pipe->fixed = i == 0 || hr__rng_below(rng, 8) == 0;
        pipe->random = hr__rng_below(rng, 6) == 0;
        pipe->kept = hr__rng_below(rng, 9) == 0;
        for (size_t k = 0; k < i; k++)
            if (hr__rng_below(rng, 12) == 0)
                pipe->depends_on |= (uint64_t)1 << k;
        for (int v = HR_CEDAR_SMP; v <= HR_CEDAR_RAY; v++)
            if (hr__rng_below(rng, 5) > 0)
                pipe->rates[v] = drawn(rng, 30, 300);
    }
    d->pipes[0].latency_ns = 1e4;
    d->stats = (struct hr_cedar_stats){
        .pipes = d->pipes, .pipe_count = count, .rate = 100, .disk_read = DISK_READ};
    hr__cedar_options_init(&d->options);
    d->options.offload = hr__rng_below(rng, 3) > 0;
    d->options.fusion = hr__rng_below(rng, 4) > 0;
    d->options.cache_samples = hr__rng_below(rng, 2) == 0 ? 0 : 1000;
    d->options.disk_free = 1e8;
}

TEST(our_plans_never_cost_more_than_cedars)
{
    static const struct hr_cedar_stats *const shipped[] = {
        &cv_torch, &cv_remote, &cv_tf, &nlp_torch, &nlp_tf, &ssd_torch, &ssd_tf, &toy};
    struct hr_cedar_result cedars, ours;
    struct drawn *d = malloc(sizeof *d);
    struct hr_rng rng;
    int cheaper = 0;

    hr__cedar_options_init(&d->options);
    for (size_t i = 0; i < sizeof shipped / sizeof shipped[0]; i++)
        for (int way = 0; way < 4; way++) {
            d->options.offload = way & 1;
            d->options.cache_samples = way >> 1 ? 9472 : 0;
            d->options.joint = false;
            optimize(shipped[i], &d->options, &cedars);
            d->options.joint = true;
            optimize(shipped[i], &d->options, &ours);
            CHECK(ours.cost_ms <= cedars.cost_ms * (1 + 1e-9));
            CHECK(ours.best && ours.orders == cedars.orders);
        }
    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 300; round++) {
        draw(&rng, 1 + hr__rng_below(&rng, round < 250 ? 9 : 24), d);
        optimize(&d->stats, &d->options, &cedars);
        d->options.joint = true;
        optimize(&d->stats, &d->options, &ours);
        CHECK(ours.cost_ms <= cedars.cost_ms * (1 + 1e-9));
        CHECK(cedars.cost_ms <= cedars.order_ms * (1 + 1e-9) &&
              cedars.order_ms <= cedars.written_ms * (1 + 1e-9));
        CHECK(ours.drivers == cedars.drivers);
        cheaper += ours.cost_ms < cedars.cost_ms * (1 - 1e-9);
    }
    CHECK(cheaper > 10);
    free(d);
}

struct walk {
    const struct hr_cedar_model *model;
    const struct hr_cedar_path *path;
    enum hr_cedar_variant variant;
    double least, most_in_process;
};

/* Every way to divide the places from `at` on into slices and places without. */
static void divide(struct walk *walk, size_t at, double ms)
{
    size_t end;

    if (at == walk->model->count) {
        walk->least = fmin(walk->least, ms);
        return;
    }
    divide(walk, at + 1, ms + walk->path->ms[at]);
    end = hr__cedar_run_end(walk->model, walk->path, at, walk->variant);
    if (at > 0 && end == at &&
        hr__cedar_may_offload(walk->model, walk->path, at, walk->variant))
        end = at + 1;
    for (size_t to = at + 1; to <= end; to++) {
        double part = 0;
        bool gains = false;

        for (size_t i = at; i < to; i++) {
            part += walk->model->parts[walk->path->order[i]];
            gains = gains || hr__cedar_left_ms(walk->model, walk->path, i,
                                               walk->variant) < walk->path->ms[i];
        }
        if (gains && part >= HR_CEDAR_PART_MIN)
            divide(
                walk, to,
                ms + hr__cedar_slice_ms(walk->model, walk->path, at, to, walk->variant));
    }
}

TEST(our_slices_are_the_best_for_an_order)
{
    struct drawn *d = malloc(sizeof *d);
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    for (int round = 0; round < 500; round++) {
        uint8_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
        struct hr_cedar_places best, greedy;
        struct hr_cedar_model model;
        struct hr_cedar_path path;
        struct walk walk = {&model, &path, HR_CEDAR_RAY, HUGE_VAL, 0};

        draw(&rng, 1 + hr__rng_below(&rng, 9), d);
        d->options.fusion = true;
        CHECK_OK(hr__cedar_model(&d->stats, &d->options, &model, NULL));
        hr__cedar_path(&model, order,
                       (int)hr__rng_below(&rng, 2 * d->stats.pipe_count) -
                           (int)d->stats.pipe_count,
                       &path);
        divide(&walk, 0, 0);
        for (size_t i = 0; i < model.count; i++)
            walk.least -= path.ms[i];
        hr__cedar_place_best(&model, &path, HR_CEDAR_RAY, &best);
        CHECK_NEAR(best.ms, path.total_ms + walk.least, 1e-9 * path.total_ms);
        hr__cedar_place(&model, &path, HR_CEDAR_RAY, &greedy);
        CHECK(best.ms <= greedy.ms + 1e-9 * path.total_ms);
    }
    free(d);
}

TEST(our_plan_is_the_best_of_all_where_orders_are_few)
{
    struct drawn *d = malloc(sizeof *d);
    struct hr_rng rng;
    int moved = 0;

    hr__rng_init(&rng, check_seed(), 2, 0);
    for (int round = 0; round < 60; round++) {
        struct hr_cedar_result ours, one;
        struct hr_cedar_pipe written[6];

        draw(&rng, 6, d);
        for (size_t i = 1; i < 6; i++) {
            d->pipes[i].depends_on = 0;
            d->pipes[i].fixed = false;
        }
        d->options.joint = true;
        d->options.drivers = false;
        d->options.offload = true;
        optimize(&d->stats, &d->options, &ours);
        CHECK(ours.best && ours.orders == 120);
        /* Any other order of them, as written, is no cheaper. Its statistics say the
         * same of each pipe. */
        d->options.reorder = false;
        memcpy(written, d->pipes, sizeof written);
        for (int shuffle = 0; shuffle < 60; shuffle++) {
            for (size_t i = 1; i < 6; i++) {
                size_t k = i + hr__rng_below(&rng, 6 - i);
                struct hr_cedar_pipe pipe = d->pipes[i];

                d->pipes[i] = d->pipes[k];
                d->pipes[k] = pipe;
            }
            optimize(&d->stats, &d->options, &one);
            CHECK(ours.cost_ms <= one.cost_ms * (1 + 1e-9));
            moved += one.cost_ms > ours.cost_ms * (1 + 1e-9);
        }
    }
    CHECK(moved > 0);
    free(d);
}

/* ---- all plans ---- */

/* What statistics of real pipelines seldom have. */
static void twist(struct hr_rng *rng, struct drawn *d)
{
    uint64_t way = hr__rng_below(rng, 6);

    for (size_t i = 1; i < d->stats.pipe_count; i++) {
        struct hr_cedar_pipe *pipe = &d->pipes[i], *first = &d->pipes[1];

        if (way == 0 && i > 1) { /* ties */
            *pipe = *first;
        } else if (way == 1) { /* most cost nothing */
            pipe->latency_ns = hr__rng_below(rng, 3) == 0 ? pipe->latency_ns : 0;
        } else if (way == 2) { /* inflation by up to a million, and back */
            pipe->bytes_out = pipe->bytes_in * drawn(rng, 1e-6, 1e6);
        } else if (way == 3) { /* nothing ties them */
            pipe->fixed = false;
            pipe->depends_on = 0;
        } else if (way == 4) { /* all rates are those of one process */
            for (int v = HR_CEDAR_SMP; v <= HR_CEDAR_RAY; v++)
                pipe->rates[v] = d->stats.rate;
        }
    }
}

/* Whether pipe k, written after pipe i, must stay after it. */
static bool stays_after(const struct drawn *d, size_t i, size_t k)
{
    return d->pipes[i].fixed || d->pipes[k].fixed || (d->pipes[k].depends_on >> i & 1);
}

/* The least of all legal orders that begin with `count` pipes of this one, with each
 * place of a cache, divided into slices in all ways. */
static void try_orders(const struct drawn *d, struct walk *walk, uint8_t *order,
                       size_t count, size_t *orders)
{
    const struct hr_cedar_model *model = walk->model;

    for (size_t pipe = 1; count < model->count && pipe < model->count; pipe++) {
        bool legal = true;

        for (size_t i = 1; i < count; i++)
            legal = legal && order[i] != pipe &&
                    (order[i] < pipe || !stays_after(d, pipe, order[i]));
        order[count] = (uint8_t)pipe;
        if (legal)
            try_orders(d, walk, order, count + 1, orders);
    }
    if (count < model->count)
        return;
    ++*orders;
    for (int cache = -1; cache < (int)count; cache++) {
        struct hr_cedar_path path;
        double shared;

        if (cache >= 0 && (model->options->cache_samples == 0 ||
                           !hr__cedar_may_cache(model, order, (size_t)cache)))
            continue;
        hr__cedar_path(model, order, cache, &path);
        shared = path.total_ms; /* and what does not depend on slices */
        for (size_t i = 0; i < count; i++)
            shared -= path.ms[i];
        walk->path = &path;
        walk->most_in_process = fmax(walk->most_in_process, path.total_ms);
        divide(walk, 0, shared);
    }
}

TEST(no_plan_of_all_orders_caches_and_slices_is_cheaper_than_ours)
{
    struct drawn *d = malloc(sizeof *d);
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 4, 0);
    for (int round = 0; round < 200; round++) {
        uint8_t order[HR_CEDAR_PIPES_MAX] = {0};
        struct hr_cedar_result ours;
        struct hr_cedar_model model;
        struct walk walk = {&model, NULL, HR_CEDAR_NONE, HUGE_VAL, 0};
        size_t orders = 0;

        draw(&rng, 2 + hr__rng_below(&rng, 5), d);
        twist(&rng, d);
        d->options.joint = true;
        d->options.drivers = false;
        d->options.offload = hr__rng_below(&rng, 4) > 0;
        d->options.fusion = true;
        if (d->options.offload)
            walk.variant = HR_CEDAR_RAY;
        optimize(&d->stats, &d->options, &ours);
        CHECK_OK(hr__cedar_model(&d->stats, &d->options, &model, NULL));
        try_orders(d, &walk, order, 1, &orders);
        CHECK_EQ_INT((int64_t)orders, (int64_t)ours.orders);
        /* Gains are subtracted from what all takes in one process. */
        CHECK_NEAR(ours.cost_ms, walk.least,
                   1e-9 * walk.least + 1e-13 * walk.most_in_process);
    }
    free(d);
}

TEST(twenty_free_pipes_with_a_cache_and_slices_are_planned)
{
    struct drawn *d = malloc(sizeof *d);
    struct hr_cedar_result cedars, ours;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 3, 0);
    draw(&rng, 21, d);
    for (size_t i = 1; i < 21; i++) {
        d->pipes[i].depends_on = 0;
        d->pipes[i].fixed = d->pipes[i].random = false;
    }
    d->options.offload = d->options.fusion = true;
    d->options.cache_samples = 1;
    optimize(&d->stats, &d->options, &cedars);
    CHECK(cedars.best && cedars.orders == 2432902008176640000.0);
    d->options.joint = true;
    optimize(&d->stats, &d->options, &ours);
    CHECK(ours.cost_ms <= cedars.cost_ms * (1 + 1e-9) && !ours.best);
    free(d);
}
