/*
 * opt/cedar_choose.c - order, cache and slices chosen together.
 *
 * cedar decides on the order first, so it misses orders that cost a little more in one
 * process and let a longer run of pipes be offloaded. For a given order and cache the
 * best slices follow exactly. All orders are tried where they are few; else single pipes
 * move from the orders found so far while that gains.
 */
#include <string.h>

#include "opt/cedar_passes.h"

#define ORDERS_MAX 5000 /* that are tried: a few milliseconds */

struct search {
    const struct hr_cedar_model *model;
    struct hr_order_chain chain;
    struct hr_cedar_choice *best;
};

/* Takes the order if it gives a cheaper choice, with one of its caches. */
static bool try_order(struct search *s, const uint8_t *order)
{
    double was = s->best->places.ms;
    int last = s->model->options->cache_samples > 0 ? (int)s->model->count - 1 : -1;

    for (int cache = -1; cache <= last; cache++) {
        struct hr_cedar_path path;
        struct hr_cedar_places places;

        if (cache >= 0 && !hr__cedar_may_cache(s->model, order, (size_t)cache))
            continue;
        hr__cedar_path(s->model, order, cache, &path);
        hr__cedar_place_best(s->model, &path, s->best->variant, &places);
        if (places.ms >= s->best->places.ms * (1 - HR_CEDAR_SAME))
            continue;
        s->best->places = places;
        s->best->cache = cache;
        memmove(s->best->order, order, s->model->count);
    }
    return s->best->places.ms < was;
}

/* ---- all orders ---- */

static void try_all(struct search *s, uint8_t *order, size_t count, uint64_t before)
{
    if (count == s->model->count) {
        (void)try_order(s, order);
        return;
    }
    for (size_t step = 0; step < s->chain.step_count; step++) {
        uint64_t bit = (uint64_t)1 << step;

        if ((before & bit) != 0 || (s->chain.steps[step].after & ~before) != 0)
            continue;
        order[count] = (uint8_t)(step + 1);
        try_all(s, order, count + 1, before | bit);
    }
}

/* ---- single moves ---- */

static bool is_legal(const struct search *s, const uint8_t *order)
{
    uint8_t steps[HR_CEDAR_PIPES_MAX];

    for (size_t i = 1; i < s->model->count; i++)
        steps[i - 1] = (uint8_t)(order[i] - 1);
    return hr__order_is_legal(&s->chain, steps);
}

static void move(uint8_t *order, size_t from, size_t to)
{
    uint8_t pipe = order[from];

    if (from < to)
        memmove(order + from, order + from + 1, to - from);
    else
        memmove(order + to + 1, order + to, from - to);
    order[to] = pipe;
}

static bool try_moves(struct search *s)
{
    uint8_t from_order[HR_CEDAR_PIPES_MAX], order[HR_CEDAR_PIPES_MAX];
    bool gained = false;

    memcpy(from_order, s->best->order, s->model->count);
    for (size_t from = 1; from < s->model->count; from++)
        for (size_t to = 1; to < s->model->count; to++) {
            memcpy(order, from_order, s->model->count);
            move(order, from, to);
            if (from != to && is_legal(s, order))
                gained = try_order(s, order) || gained;
        }
    return gained;
}

/* ---- */

void hr__cedar_choose(const struct hr_cedar_model *model, double orders,
                      struct hr_cedar_choice *choice, bool *best)
{
    struct search s = {model, hr__cedar_chain(model), choice};
    uint8_t order[HR_CEDAR_PIPES_MAX];

    memcpy(order, choice->order, model->count);
    (void)try_order(&s, order);
    if (!model->options->reorder)
        return;
    if (orders <= ORDERS_MAX) {
        try_all(&s, order, 1, 0);
    } else if (choice->variant != HR_CEDAR_NONE || model->options->cache_samples > 0) {
        while (try_moves(&s))
            ;
        *best = false;
    }
}
