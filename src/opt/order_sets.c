/*
 * opt/order_sets.c - fills the tables of order_sets.h.
 *
 * A set is looked at if it holds all steps that its members must come after. The steps of
 * a set multiply the bytes and the number of records in any order alike, so the cheapest
 * way to run it is that of the set without one last step, and that step. Time is O(n k)
 * for n such sets of k steps. Without constraints n is 2^k; a set takes 29 bytes, and
 * memory of others is not touched.
 */
#include "opt/order_sets.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"

static uint64_t bit(size_t i)
{
    return (uint64_t)1 << i;
}

void hr__order_pass(struct hr_order_flow *flow, const struct hr_order_step *step)
{
    flow->records *= step->kept;
    flow->bytes *= step->kept * step->growth;
}

/* Nanoseconds for each record, and for each byte. */
static double per_record(const struct hr_order_step *step)
{
    return step->ns * step->fixed;
}
static double per_byte(const struct hr_order_step *step)
{
    return step->fixed < 1 ? step->ns * (1 - step->fixed) / step->bytes_in : 0;
}

double
hr__order_step_ns(const struct hr_order_step *step, const struct hr_order_flow *flow)
{
    return per_record(step) * flow->records + per_byte(step) * flow->bytes;
}

void hr__order_window(const struct hr_order_chain *chain, const uint8_t *order,
                      size_t from, size_t to, struct hr_order_window *ret_window)
{
    struct hr_order_flow flow = {1, chain->bytes};

    assert(from < to && to - from <= HR_ORDER_EXACT_MAX);
    memset(ret_window, 0, sizeof *ret_window);
    for (size_t i = 0; i < from; i++)
        hr__order_pass(&flow, &chain->steps[order[i]]);
    ret_window->flow = flow;
    ret_window->count = to - from;
    for (size_t i = from; i < to; i++) {
        ret_window->steps[i - from] = &chain->steps[order[i]];
        for (size_t k = from; k < i; k++)
            if ((chain->steps[order[i]].after & bit(order[k])) != 0)
                ret_window->after[i - from] |= (uint32_t)bit(k - from);
    }
}

static bool allocate(size_t steps, struct hr_order_sets *sets)
{
    size_t count = (size_t)1 << steps;

    sets->memory = hr__malloc(count * (sizeof *sets->flow + sizeof *sets->ns +
                                       sizeof *sets->legal + sizeof *sets->last));
    if (sets->memory == NULL)
        return false;
    sets->flow = sets->memory;
    sets->ns = (double *)(sets->flow + count);
    sets->legal = (uint32_t *)(sets->ns + count);
    sets->last = (uint8_t *)(sets->legal + count);
    return true;
}

/* Lists the sets that hold what their members must come after. Steps come after earlier
 * ones of the window only, so a set whose last member is `at` is one of the earlier steps
 * with `at` added, and the list is in ascending order. */
static void list_sets(const struct hr_order_window *window, struct hr_order_sets *sets)
{
    sets->legal[0] = 0;
    sets->count = 1;
    for (size_t at = 0; at < window->count; at++)
        for (size_t i = 0, known = sets->count; i < known; i++)
            if ((window->after[at] & ~sets->legal[i]) == 0)
                sets->legal[sets->count++] = sets->legal[i] | (uint32_t)bit(at);
}

/* The cheapest last step of a set whose subsets are known. */
static void fill_set(const struct hr_order_window *window, const double (*price)[2],
                     uint32_t set, const struct hr_order_sets *sets)
{
    uint32_t top = 31 - (uint32_t)__builtin_clz(set);
    double least = HUGE_VAL;

    sets->flow[set] = sets->flow[set & ~(1U << top)];
    hr__order_pass(&sets->flow[set], window->steps[top]);
    /* From the last step on: of equal costs the one that is as written is found first. */
    for (uint32_t left = set; left != 0;) {
        uint32_t at = 31 - (uint32_t)__builtin_clz(left);
        uint32_t rest = set & ~(1U << at);
        double ns;

        left &= ~(1U << at);
        if ((sets->before[at] & set) != 0)
            continue;
        ns = sets->ns[rest] + price[at][0] * sets->flow[rest].records +
             price[at][1] * sets->flow[rest].bytes;
        if (ns < least - HR_ORDER_SAME * ns) {
            least = ns;
            sets->last[set] = (uint8_t)at;
        }
    }
    sets->ns[set] = least;
}

enum hr_err hr__order_sets(const struct hr_order_window *window,
                           struct hr_order_sets *ret_sets, struct hr_error *reterr)
{
    double price[HR_ORDER_EXACT_MAX][2];
    struct hr_order_sets sets = {.window = window};

    if (!allocate(window->count, &sets))
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory to order %zu steps",
                        window->count);
    for (size_t i = 0; i < window->count; i++) {
        price[i][0] = per_record(window->steps[i]);
        price[i][1] = per_byte(window->steps[i]);
    }
    for (size_t i = 0; i < window->count; i++)
        for (uint32_t left = window->after[i]; left != 0; left &= left - 1)
            sets.before[__builtin_ctz(left)] |= (uint32_t)bit(i);
    list_sets(window, &sets);
    sets.ns[0] = 0;
    sets.flow[0] = window->flow;
    for (size_t i = 1; i < sets.count; i++)
        fill_set(window, (const double(*)[2])price, sets.legal[i], &sets);
    *ret_sets = sets;
    return HR_OK;
}

void hr__order_sets_finish(struct hr_order_sets *sets)
{
    hr__free(sets->memory);
    *sets = (struct hr_order_sets){0};
}

bool hr__order_sets_may_end(const struct hr_order_sets *sets, uint32_t set, uint32_t at)
{
    uint32_t rest = set & ~(1U << at);
    double ns;

    if (rest == set || (sets->before[at] & set) != 0)
        return false;
    ns = sets->ns[rest] + hr__order_step_ns(sets->window->steps[at], &sets->flow[rest]);
    return ns <= sets->ns[set] * (1 + 2 * HR_ORDER_SAME);
}

size_t hr__order_section_end(const struct hr_order_chain *chain, size_t from)
{
    /* All that the steps from `from` on must come after, steps between included. */
    uint64_t all[HR_ORDER_STEPS_MAX];

    for (size_t i = 0; i < chain->step_count; i++) {
        all[i] = chain->steps[i].after;
        for (size_t k = 0; k < i; k++)
            if ((all[i] & bit(k)) != 0)
                all[i] |= all[k];
    }
    for (size_t end = from + 1; end < chain->step_count; end++) {
        uint64_t section = (bit(end) - 1) & ~(bit(from) - 1);
        bool crossed = false;

        for (size_t i = end; i < chain->step_count && !crossed; i++)
            crossed = (section & ~all[i]) != 0;
        if (!crossed)
            return end;
    }
    return chain->step_count;
}
