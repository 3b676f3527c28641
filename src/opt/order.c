/*
 * opt/order.c - orders of a chain: search by dynamic programming over sets of steps.
 *
 * A set is worth looking at if it holds all steps that its members must come after. The
 * steps of a set multiply the bytes and the number of records in any order alike, so the
 * cheapest way to run it is that of the set without one last step, and that step. Time is
 * O(2^k k) for k steps, memory 25 bytes a set.
 */
#include "opt/order.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* Costs that differ by less come from rounding. */
#define SAME 1e-12
#define WINDOW_STEP (HR_ORDER_EXACT_MAX / 2)

static uint64_t bit(size_t i)
{
    return (uint64_t)1 << i;
}

/* ---- a chain ---- */

/* Limits that keep every cost finite; false for NaN. */
static bool is_amount(double value)
{
    return value >= 0 && value <= 1e18;
}
#define BYTES_MIN 1e-9
#define GROWTH_MAX 1e60 /* of all steps together */

static enum hr_err
check_step(const struct hr_order_step *step, size_t i, struct hr_error *reterr)
{
    if (!is_amount(step->ns) || !is_amount(step->bytes_in) || !is_amount(step->growth) ||
        !is_amount(step->kept) || !(step->fixed >= 0 && step->fixed <= 1))
        return hr__fail(reterr, HR_ERR_RANGE,
                        "step %zu: a number is negative, too large or none: %g ns, part "
                        "fixed %g, %g bytes in, growth %g, records kept %g",
                        i, step->ns, step->fixed, step->bytes_in, step->growth,
                        step->kept);
    if (step->bytes_in < BYTES_MIN && step->fixed < 1)
        return hr__fail(reterr, HR_ERR_RANGE,
                        "step %zu: time per byte, but its input has no bytes", i);
    if (step->after >> i != 0)
        return hr__fail(reterr, HR_ERR_RANGE,
                        "step %zu comes after itself or a later step", i);
    return HR_OK;
}

enum hr_err hr__order_check(const struct hr_order_chain *chain, struct hr_error *reterr)
{
    double growth = 1;

    if (chain->step_count > HR_ORDER_STEPS_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a chain of %zu steps; at most %d",
                        chain->step_count, HR_ORDER_STEPS_MAX);
    if (!is_amount(chain->bytes))
        return hr__fail(reterr, HR_ERR_RANGE, "a source with records of %g bytes",
                        chain->bytes);
    for (size_t i = 0; i < chain->step_count; i++) {
        HR_TRY(check_step(&chain->steps[i], i, reterr));
        growth *= fmax(1, chain->steps[i].growth) * fmax(1, chain->steps[i].kept);
        if (growth > GROWTH_MAX)
            return hr__fail(reterr, HR_ERR_RANGE,
                            "step %zu: together with the steps before it, it makes more "
                            "than %g bytes of one",
                            i, GROWTH_MAX);
    }
    return HR_OK;
}

void hr__order_from_swaps(struct hr_order_step *steps, size_t count,
                          const uint64_t *swaps)
{
    assert(count <= HR_ORDER_STEPS_MAX);
    for (size_t i = 0; i < count; i++)
        steps[i].after = ~swaps[i] & (bit(i) - 1);
}

bool hr__order_is_legal(const struct hr_order_chain *chain, const uint8_t *order)
{
    uint64_t before = 0;

    for (size_t i = 0; i < chain->step_count; i++) {
        if (order[i] >= chain->step_count || (before & bit(order[i])) != 0 ||
            (chain->steps[order[i]].after & ~before) != 0)
            return false;
        before |= bit(order[i]);
    }
    return true;
}

/* What reaches a step: records for each of the source, and bytes of all of them. */
struct flow {
    double records, bytes;
};

static void pass(struct flow *flow, const struct hr_order_step *step)
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

double hr__order_ns(const struct hr_order_chain *chain, const uint8_t *order)
{
    struct flow flow = {1, chain->bytes};
    double ns = 0;

    assert(hr__order_is_legal(chain, order));
    for (size_t i = 0; i < chain->step_count; i++) {
        const struct hr_order_step *step = &chain->steps[order[i]];

        ns += per_record(step) * flow.records + per_byte(step) * flow.bytes;
        pass(&flow, step);
    }
    return ns;
}

/* ---- sets of the steps of a window ---- */

/* `count` steps of an order in a row. Numbers below are places in the window. */
struct window {
    size_t count;
    const struct hr_order_step *steps[HR_ORDER_EXACT_MAX];
    uint32_t after[HR_ORDER_EXACT_MAX];
    struct flow flow; /* into it */
};

static void take_window(const struct hr_order_chain *chain, const uint8_t *order,
                        size_t from, size_t to, struct window *ret_window)
{
    struct flow flow = {1, chain->bytes};

    assert(from < to && to - from <= HR_ORDER_EXACT_MAX);
    memset(ret_window, 0, sizeof *ret_window);
    for (size_t i = 0; i < from; i++)
        pass(&flow, &chain->steps[order[i]]);
    ret_window->flow = flow;
    ret_window->count = to - from;
    for (size_t i = from; i < to; i++) {
        ret_window->steps[i - from] = &chain->steps[order[i]];
        for (size_t k = from; k < i; k++)
            if ((chain->steps[order[i]].after & bit(order[k])) != 0)
                ret_window->after[i - from] |= (uint32_t)bit(k - from);
    }
}

/* By set of steps that have run. */
struct sets {
    double *ns;        /* least; HUGE_VAL: the set lacks what a member must come after */
    struct flow *flow; /* behind them */
    uint8_t *last;     /* the step that the cheapest order ends with */
    void *memory;
};

static bool make_sets(size_t steps, struct sets *sets)
{
    size_t count = (size_t)1 << steps;

    sets->memory =
        hr__malloc(count * (sizeof *sets->flow + sizeof *sets->ns + sizeof *sets->last));
    if (sets->memory == NULL)
        return false;
    sets->flow = sets->memory;
    sets->ns = (double *)(sets->flow + count);
    sets->last = (uint8_t *)(sets->ns + count);
    return true;
}

/* The cheapest last step of a set whose subsets are known. */
static void fill_set(const struct window *window, const double (*price)[2], uint32_t set,
                     const struct sets *sets)
{
    uint32_t first = (uint32_t)__builtin_ctz(set);
    double least = HUGE_VAL;

    sets->flow[set] = sets->flow[set & (set - 1)];
    pass(&sets->flow[set], window->steps[first]);
    sets->last[set] = 0;
    /* From the last step on: of equal costs the one that is as written is found first. */
    for (uint32_t left = set; left != 0;) {
        uint32_t at = 31 - (uint32_t)__builtin_clz(left);
        uint32_t rest = set & ~(1U << at);
        double ns;

        left &= ~(1U << at);
        if ((window->after[at] & ~rest) != 0)
            continue;
        ns = sets->ns[rest] + price[at][0] * sets->flow[rest].records +
             price[at][1] * sets->flow[rest].bytes;
        if (ns < least - SAME * ns) {
            least = ns;
            sets->last[set] = (uint8_t)at;
        }
    }
    sets->ns[set] = least;
}

/* Puts [from, to) of the order into its cheapest order; *ret_gained if that is cheaper.
 */
static enum hr_err
order_window(const struct hr_order_chain *chain, uint8_t *order, size_t from, size_t to,
             bool *ret_gained, struct hr_error *reterr)
{
    double price[HR_ORDER_EXACT_MAX][2], was = hr__order_ns(chain, order);
    uint8_t kept[HR_ORDER_STEPS_MAX], found[HR_ORDER_STEPS_MAX];
    struct window window;
    struct sets sets;

    take_window(chain, order, from, to, &window);
    if (!make_sets(window.count, &sets))
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory to order %zu steps",
                        window.count);
    for (size_t i = 0; i < window.count; i++) {
        price[i][0] = per_record(window.steps[i]);
        price[i][1] = per_byte(window.steps[i]);
    }
    sets.ns[0] = 0;
    sets.flow[0] = window.flow;
    for (uint32_t set = 1; set < (uint32_t)1 << window.count; set++)
        fill_set(&window, (const double(*)[2])price, set, &sets);
    memcpy(kept, order, chain->step_count);
    memcpy(found, order, chain->step_count);
    for (uint32_t set = ((uint32_t)1 << window.count) - 1, i = (uint32_t)to; set != 0;) {
        found[--i] = kept[from + sets.last[set]];
        set &= ~(1U << sets.last[set]);
    }
    hr__free(sets.memory);
    assert(hr__order_is_legal(chain, found));
    *ret_gained = hr__order_ns(chain, found) < was - SAME * was;
    if (*ret_gained)
        memcpy(order, found, chain->step_count);
    return HR_OK;
}

/* ---- sections ---- */

/* The end of the section that begins at `from`: the first place that no step can cross.
 */
static size_t section_end(const struct hr_order_chain *chain, size_t from)
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

static enum hr_err
order_section(const struct hr_order_chain *chain, uint8_t *order, size_t from, size_t to,
              bool *ret_best, struct hr_error *reterr)
{
    bool gained = true, one;

    if (to - from <= HR_ORDER_EXACT_MAX)
        return order_window(chain, order, from, to, &one, reterr);
    *ret_best = false;
    while (gained) {
        gained = false;
        for (size_t at = from; at + WINDOW_STEP < to; at += WINDOW_STEP) {
            size_t end = at + HR_ORDER_EXACT_MAX < to ? at + HR_ORDER_EXACT_MAX : to;

            HR_TRY(order_window(chain, order, at, end, &one, reterr));
            gained = gained || one;
        }
    }
    return HR_OK;
}

enum hr_err hr__order_find(const struct hr_order_chain *chain, struct hr_order *ret_order,
                           struct hr_error *reterr)
{
    struct hr_order made = {.best = true};

    for (size_t i = 0; i < chain->step_count; i++)
        made.steps[i] = (uint8_t)i;
    for (size_t from = 0, to; from < chain->step_count; from = to) {
        to = section_end(chain, from);
        HR_TRY(order_section(chain, made.steps, from, to, &made.best, reterr));
    }
    made.ns = hr__order_ns(chain, made.steps);
    *ret_order = made;
    return HR_OK;
}

/* Orders of the steps [from, to) of the chain. */
static enum hr_err count_section(const struct hr_order_chain *chain, size_t from,
                                 size_t to, double *ret_count, struct hr_error *reterr)
{
    uint8_t written[HR_ORDER_STEPS_MAX];
    struct window window;
    double *orders;

    if (to - from > HR_ORDER_EXACT_MAX) {
        *ret_count = HUGE_VAL;
        return HR_OK;
    }
    for (size_t i = 0; i < chain->step_count; i++)
        written[i] = (uint8_t)i;
    take_window(chain, written, from, to, &window);
    orders = hr__malloc(((size_t)1 << window.count) * sizeof *orders);
    if (orders == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY,
                        "no memory to count the orders of %zu "
                        "steps",
                        window.count);
    orders[0] = 1;
    for (uint32_t set = 1; set < (uint32_t)1 << window.count; set++) {
        orders[set] = 0;
        for (uint32_t i = 0; i < window.count; i++)
            if ((set & 1U << i) != 0 && (window.after[i] & ~(set & ~(1U << i))) == 0)
                orders[set] += orders[set & ~(1U << i)];
    }
    *ret_count = orders[((uint32_t)1 << window.count) - 1];
    hr__free(orders);
    return HR_OK;
}

enum hr_err hr__order_count(const struct hr_order_chain *chain, double *ret_count,
                            struct hr_error *reterr)
{
    double count = 1;

    for (size_t from = 0, to; from < chain->step_count; from = to) {
        double section;

        to = section_end(chain, from);
        HR_TRY(count_section(chain, from, to, &section, reterr));
        count *= section;
    }
    *ret_count = count;
    return HR_OK;
}

/* ---- Pecan ---- */

/* Where a step goes in its section: 0 to 3, first to last. */
static int pecan_part(const struct hr_pecan_step *step)
{
    if (step->last)
        return 3;
    return step->inflation < 1 ? 0 : step->inflation > 1 ? 2 : 1;
}

void hr__order_pecan(const struct hr_pecan_step *steps, size_t count, uint8_t *ret_order)
{
    size_t made = 0;

    assert(count <= HR_ORDER_STEPS_MAX);
    for (size_t from = 0, to; from < count; from = to + 1) {
        for (to = from; to < count && !steps[to].fixed;)
            to++;
        for (size_t i = to; i-- > from;)
            if (pecan_part(&steps[i]) == 0)
                ret_order[made++] = (uint8_t)i;
        for (int part = 1; part <= 3; part++)
            for (size_t i = from; i < to; i++)
                if (pecan_part(&steps[i]) == part)
                    ret_order[made++] = (uint8_t)i;
        if (to < count)
            ret_order[made++] = (uint8_t)to;
    }
    assert(made == count);
}
