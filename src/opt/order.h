/*
 * opt/order.h - the order of a chain of steps: how many orders are legal, what one costs,
 * and which is the cheapest. Pure.
 *
 * A step costs a part per record and a part per byte that it reads. So what a step costs
 * depends on which steps come before it, but not on their order; the cheapest order is
 * found exactly by dynamic programming over the sets of steps that come first.
 */
#ifndef HR_OPT_ORDER_H
#define HR_OPT_ORDER_H

#include "core/error.h"

#define HR_ORDER_STEPS_MAX 64
/* Steps in a row that are ordered exactly: 2^20 sets. */
#define HR_ORDER_EXACT_MAX 20

/* A step, as it was measured in the written order. */
struct hr_order_step {
    double ns;       /* that one of its input records takes; >= 0 */
    double fixed;    /* part of `ns` that does not depend on the record's size, 0 to 1 */
    double bytes_in; /* of an input record; > 0 unless fixed is 1 */
    double growth;   /* bytes of an output record by those of its input; >= 0 */
    double kept;     /* output records for each input record; >= 0 */
    uint64_t after;  /* bit i: step i, written before this one, stays before it */
};

/* The steps behind a source, in the written order. */
struct hr_order_chain {
    const struct hr_order_step
        *steps; /* step_count of them, at most HR_ORDER_STEPS_MAX */
    size_t step_count;
    double bytes; /* of a record of the source; >= 0 */
};

struct hr_order {
    uint8_t steps[HR_ORDER_STEPS_MAX]; /* numbers of the chain's steps, first to last */
    double ns;                         /* of all steps, for each record of the source */
    bool best;     /* no legal order is cheaper; false: there were too many to know */
    uint64_t sets; /* of steps that were looked at: the work of finding it */
};

/* Checks every number of the chain; HR_ERR_RANGE or HR_ERR_LIMIT names the step. The
 * functions below need a chain that passed. */
HR_CHECK enum hr_err
hr__order_check(const struct hr_order_chain *chain, struct hr_error *reterr);

/* Sets `after` of each step from what may swap: bit i of swaps[k] says that steps i and k
 * may change places. Steps that may not keep their written order, however far apart. */
void hr__order_from_swaps(struct hr_order_step *steps, size_t count,
                          const uint64_t *swaps);

/* Whether the order holds each step once, none before what it must come after. */
bool hr__order_is_legal(const struct hr_order_chain *chain, const uint8_t *order);

/* Nanoseconds of all steps in this order, for each record of the source. */
double hr__order_ns(const struct hr_order_chain *chain, const uint8_t *order);

/* The number of legal orders, rounded if above 2^53; HUGE_VAL if HR_ORDER_EXACT_MAX steps
 * in a row are not enough to count them. */
HR_CHECK enum hr_err hr__order_count(const struct hr_order_chain *chain,
                                     double *ret_count, struct hr_error *reterr);

/* Nanoseconds that a record takes in each step that it enters: ret_ns[i] is of step i; 0
 * where none arrives. */
void hr__order_parts(const struct hr_order_chain *chain, const uint8_t *order,
                     double *ret_ns);

/*
 * The cheapest legal order. Where orders cost the same, steps stay as written. More than
 * HR_ORDER_EXACT_MAX steps that barriers do not divide are ordered by moves of single
 * steps and exactly in overlapping windows, until neither gains: never dearer than
 * written, perhaps not the best.
 */
HR_CHECK enum hr_err hr__order_find(const struct hr_order_chain *chain,
                                    struct hr_order *ret_order, struct hr_error *reterr);

/*
 * The same, but of the orders that cost the same, the one that cedar (Zhao et al., VLDB
 * 2024) finds first: it lists all legal orders and keeps the first of the cheapest. Falls
 * back to hr__order_find() where barriers leave more than HR_ORDER_EXACT_MAX steps in a
 * row.
 */
HR_CHECK enum hr_err hr__order_cedar(const struct hr_order_chain *chain,
                                     struct hr_order *ret_order, struct hr_error *reterr);

/* What Pecan's rule reads of a step. */
struct hr_pecan_step {
    double inflation; /* bytes after it by bytes before it */
    bool fixed; /* pinned, changes the rank or between numbers and other things, or a
                   barrier */
    bool last;  /* a cast to a type that later steps are slow with: ends its section */
};

/*
 * AutoOrder of Pecan (Graur et al., USENIX ATC 2024, algorithm 2): between fixed steps,
 * those that shrink come first, the last of them first of all; then those that keep the
 * size; then those that grow. `ret_order` has room for `count` numbers.
 */
void hr__order_pecan(const struct hr_pecan_step *steps, size_t count, uint8_t *ret_order);

#endif
