/*
 * opt/order.c - orders of a chain: what one costs, how many there are, the cheapest.
 */
#include "opt/order_sets.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* Windows of sections that are too long for an exact order, and how far apart they begin.
 * With those of 20 steps the orders of 150 random chains of 24 to 64 steps were cheaper
 * by 0.04 % on average, and took 11 times as long to find. */
#define WINDOW_STEPS 16
#define WINDOW_STEP (WINDOW_STEPS / 2)

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

double hr__order_ns(const struct hr_order_chain *chain, const uint8_t *order)
{
    struct hr_order_flow flow = {1, chain->bytes};
    double ns = 0;

    assert(hr__order_is_legal(chain, order));
    for (size_t i = 0; i < chain->step_count; i++) {
        const struct hr_order_step *step = &chain->steps[order[i]];

        ns += hr__order_step_ns(step, &flow);
        hr__order_pass(&flow, step);
    }
    return ns;
}

void hr__order_parts(const struct hr_order_chain *chain, const uint8_t *order,
                     double *ret_ns)
{
    struct hr_order_flow flow = {1, chain->bytes};

    assert(hr__order_is_legal(chain, order));
    for (size_t i = 0; i < chain->step_count; i++) {
        const struct hr_order_step *step = &chain->steps[order[i]];

        ret_ns[order[i]] =
            flow.records > 0 ? hr__order_step_ns(step, &flow) / flow.records : 0;
        hr__order_pass(&flow, step);
    }
}

/* ---- sections ---- */

/* Puts [from, to) of the order into its cheapest order; *ret_gained if that is cheaper.
 * Adds the sets that it looked at. */
static enum hr_err
order_window(const struct hr_order_chain *chain, struct hr_order *order, size_t from,
             size_t to, bool *ret_gained, struct hr_error *reterr)
{
    double was = hr__order_ns(chain, order->steps);
    uint8_t found[HR_ORDER_STEPS_MAX];
    struct hr_order_window window;
    struct hr_order_sets sets;

    hr__order_window(chain, order->steps, from, to, &window);
    HR_TRY(hr__order_sets(&window, &sets, reterr));
    memcpy(found, order->steps, sizeof found);
    for (uint32_t set = ((uint32_t)1 << window.count) - 1, i = (uint32_t)to; set != 0;) {
        found[--i] = order->steps[from + sets.last[set]];
        set &= ~(1U << sets.last[set]);
    }
    order->sets += sets.count;
    hr__order_sets_finish(&sets);
    assert(hr__order_is_legal(chain, found));
    *ret_gained = hr__order_ns(chain, found) < was - HR_ORDER_SAME * was;
    if (*ret_gained)
        memcpy(order->steps, found, sizeof found);
    return HR_OK;
}

/* Orders [from, to) in windows that overlap by half, each again when one beside it has
 * changed. */
static enum hr_err
order_windows(const struct hr_order_chain *chain, struct hr_order *order, size_t from,
              size_t to, struct hr_error *reterr)
{
    bool known[HR_ORDER_STEPS_MAX / WINDOW_STEP + 1] = {false}, gained;
    size_t count = (to - from - 1) / WINDOW_STEP, at = count;

    while (at-- > 0) {
        size_t begin = from + at * WINDOW_STEP;
        size_t end = begin + WINDOW_STEPS < to ? begin + WINDOW_STEPS : to;

        if (known[at])
            continue;
        HR_TRY(order_window(chain, order, begin, end, &gained, reterr));
        known[at] = true;
        if (!gained || count == 1)
            continue;
        if (at > 0)
            known[at - 1] = false;
        if (at + 1 < count) {
            known[at + 1] = false;
            at += 2;
        }
    }
    return HR_OK;
}

/* Moves the step at `place` to where the order is cheapest within [from, to), past steps
 * that it may pass. */
static bool move_step(const struct hr_order_chain *chain, struct hr_order *order,
                      size_t place, size_t from, size_t to)
{
    double least = hr__order_ns(chain, order->steps);
    uint8_t best[HR_ORDER_STEPS_MAX], tried[HR_ORDER_STEPS_MAX];
    bool gained = false;

    least -= HR_ORDER_SAME * least;
    for (int forward = 0; forward < 2; forward++) {
        memcpy(tried, order->steps, sizeof tried);
        for (size_t at = place; forward ? at + 1 < to : at > from;) {
            size_t other = forward ? at + 1 : at - 1;
            uint8_t step = tried[at];
            double ns;

            if ((chain->steps[step].after & bit(tried[other])) != 0 ||
                (chain->steps[tried[other]].after & bit(step)) != 0)
                break;
            tried[at] = tried[other];
            tried[other] = step;
            at = other;
            ns = hr__order_ns(chain, tried);
            if (ns >= least)
                continue;
            least = ns;
            memcpy(best, tried, sizeof best);
            gained = true;
        }
    }
    if (gained)
        memcpy(order->steps, best, sizeof best);
    return gained;
}

/* Moves single steps until none gains. */
static bool move_steps(const struct hr_order_chain *chain, struct hr_order *order,
                       size_t from, size_t to)
{
    bool gained = false, one = true;

    while (one) {
        one = false;
        for (size_t i = from; i < to; i++)
            one = move_step(chain, order, i, from, to) || one;
        gained = gained || one;
    }
    return gained;
}

static enum hr_err
order_section(const struct hr_order_chain *chain, struct hr_order *order, size_t from,
              size_t to, struct hr_error *reterr)
{
    bool gained;

    if (to - from <= HR_ORDER_EXACT_MAX)
        return order_window(chain, order, from, to, &gained, reterr);
    order->best = false;
    move_steps(chain, order, from, to);
    do
        HR_TRY(order_windows(chain, order, from, to, reterr));
    while (move_steps(chain, order, from, to));
    return HR_OK;
}

enum hr_err hr__order_find(const struct hr_order_chain *chain, struct hr_order *ret_order,
                           struct hr_error *reterr)
{
    struct hr_order made = {.best = true};

    for (size_t i = 0; i < chain->step_count; i++)
        made.steps[i] = (uint8_t)i;
    for (size_t from = 0, to; from < chain->step_count; from = to) {
        to = hr__order_section_end(chain, from);
        HR_TRY(order_section(chain, &made, from, to, reterr));
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
    struct hr_order_window window;
    double *orders;

    if (to - from > HR_ORDER_EXACT_MAX) {
        *ret_count = HUGE_VAL;
        return HR_OK;
    }
    for (size_t i = 0; i < chain->step_count; i++)
        written[i] = (uint8_t)i;
    hr__order_window(chain, written, from, to, &window);
    orders = hr__malloc(((size_t)1 << window.count) * sizeof *orders);
    if (orders == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY,
                        "no memory to count the orders of %zu "
                        "steps",
                        window.count);
    orders[0] = 1;
    for (uint32_t set = 1; set < (uint32_t)1 << window.count; set++) {
        double sum = 0;

        for (uint32_t left = set; left != 0; left &= left - 1) {
            uint32_t at = (uint32_t)__builtin_ctz(left), rest = set & ~(1U << at);

            sum += (window.after[at] & ~rest) == 0 ? orders[rest] : 0;
        }
        orders[set] = sum;
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

        to = hr__order_section_end(chain, from);
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
