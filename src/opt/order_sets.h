/*
 * opt/order_sets.h - the sets of steps that may run first, and what each takes at least:
 * the tables of the dynamic programming behind opt/order.h.
 */
#ifndef HR_OPT_ORDER_SETS_H
#define HR_OPT_ORDER_SETS_H

#include "opt/order.h"

/* Costs that differ by less, as a part of them, come from rounding. */
#define HR_ORDER_SAME 1e-12

/* What reaches a step: records for each of the source, and bytes of all of them. */
struct hr_order_flow {
    double records, bytes;
};
void hr__order_pass(struct hr_order_flow *flow, const struct hr_order_step *step);
/* Nanoseconds of the step for all that reaches it. */
double
hr__order_step_ns(const struct hr_order_step *step, const struct hr_order_flow *flow);

/* Steps of an order in a row. A set has bit i for the step at place i of the window. */
struct hr_order_window {
    size_t count;
    const struct hr_order_step *steps[HR_ORDER_EXACT_MAX];
    uint32_t after[HR_ORDER_EXACT_MAX];
    struct hr_order_flow flow; /* into it */
};
/* Places [from, to) of the order, at most HR_ORDER_EXACT_MAX. */
void hr__order_window(const struct hr_order_chain *chain, const uint8_t *order,
                      size_t from, size_t to, struct hr_order_window *ret_window);

/* Of sets that hold all that their members must come after; entries of other sets are not
 * set. */
struct hr_order_sets {
    const struct hr_order_window *window;
    uint32_t before[HR_ORDER_EXACT_MAX]; /* by step: those that come after it */
    uint32_t *legal;                     /* these sets, in ascending order */
    size_t count;                        /* of them */
    /* By set. */
    double *ns;                 /* least */
    struct hr_order_flow *flow; /* after them */
    uint8_t *last; /* the step that the cheapest order ends with; of equal ones the last
                      of the window */
    void *memory;
};
/* `window` must outlive the sets; hr__order_sets_finish() them. */
HR_CHECK enum hr_err
hr__order_sets(const struct hr_order_window *window, struct hr_order_sets *ret_sets,
               struct hr_error *reterr);
void hr__order_sets_finish(struct hr_order_sets *sets);

/* Whether a cheapest order of a legal set ends with the step at this place. */
bool hr__order_sets_may_end(const struct hr_order_sets *sets, uint32_t set, uint32_t at);

/* The end of the section that begins at step `from`: the first place of the written order
 * that no step can cross. */
size_t hr__order_section_end(const struct hr_order_chain *chain, size_t from);

#endif
