/*
 * opt/order.c - orders of a chain: what one costs, how many there are, the cheapest.
 */
#include "opt/order_sets.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"

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
 */
static enum hr_err
order_window(const struct hr_order_chain *chain, uint8_t *order, size_t from, size_t to,
             bool *ret_gained, struct hr_error *reterr)
{
    double was = hr__order_ns(chain, order);
    uint8_t kept[HR_ORDER_STEPS_MAX], found[HR_ORDER_STEPS_MAX];
    struct hr_order_window window;
    struct hr_order_sets sets;

    hr__order_window(chain, order, from, to, &window);
    HR_TRY(hr__order_sets(&window, &sets, reterr));
    memcpy(kept, order, chain->step_count);
    memcpy(found, order, chain->step_count);
    for (uint32_t set = ((uint32_t)1 << window.count) - 1, i = (uint32_t)to; set != 0;) {
        found[--i] = kept[from + sets.last[set]];
        set &= ~(1U << sets.last[set]);
    }
    hr__order_sets_finish(&sets);
    assert(hr__order_is_legal(chain, found));
    *ret_gained = hr__order_ns(chain, found) < was - HR_ORDER_SAME * was;
    if (*ret_gained)
        memcpy(order, found, chain->step_count);
    return HR_OK;
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
        to = hr__order_section_end(chain, from);
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
