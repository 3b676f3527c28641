/*
 * opt/cedar_model.h - cedar's model of cost: what an order, a cache, and a run of pipes
 * on another backend take.
 */
#ifndef HR_OPT_CEDAR_MODEL_H
#define HR_OPT_CEDAR_MODEL_H

#include "opt/cedar.h"
#include "opt/order.h"

/* Costs that differ by less, as a part of them, come from rounding. */
#define HR_CEDAR_SAME 1e-12

/* Statistics in the terms of the model, per pipe of the written order. */
struct hr_cedar_model {
    const struct hr_cedar_stats *stats;
    const struct hr_cedar_options *options;
    size_t count;
    double parts[HR_CEDAR_PIPES_MAX]; /* of the pipeline's time */
    double ms[HR_CEDAR_PIPES_MAX];    /* of a sample, as written */
    /* Of the pipes behind the source: step i is pipe i + 1, ns are milliseconds. */
    struct hr_order_step steps[HR_CEDAR_PIPES_MAX];
};
HR_CHECK enum hr_err
hr__cedar_model(const struct hr_cedar_stats *stats,
                const struct hr_cedar_options *options, struct hr_cedar_model *ret_model,
                struct hr_error *reterr);
struct hr_order_chain hr__cedar_chain(const struct hr_cedar_model *model);

/* An order with or without a cache; arrays are by place. */
struct hr_cedar_path {
    const uint8_t *order; /* pipes; the source first */
    int cache;            /* place that it is behind, or -1 */
    double bytes_in[HR_CEDAR_PIPES_MAX], bytes_out[HR_CEDAR_PIPES_MAX];
    double ms[HR_CEDAR_PIPES_MAX]; /* 0 before the cache */
    double total_ms;               /* reads of the cache included */
};
void hr__cedar_path(const struct hr_cedar_model *model, const uint8_t *order, int cache,
                    struct hr_cedar_path *ret_path);

/* Whether a cache behind this place gives every epoch the same, and fits. */
bool hr__cedar_may_cache(const struct hr_cedar_model *model, const uint8_t *order,
                         size_t place);

/* Whether the pipe at this place can move to the variant. */
bool hr__cedar_may_offload(const struct hr_cedar_model *model,
                           const struct hr_cedar_path *path, size_t place,
                           enum hr_cedar_variant variant);
/* The end of the run of pipes from `from` on that can be fused there; `from` if none. */
size_t
hr__cedar_run_end(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                  size_t from, enum hr_cedar_variant variant);
/* What of a place's milliseconds is left to this process when it is offloaded. */
double
hr__cedar_left_ms(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                  size_t place, enum hr_cedar_variant variant);
/* The same for places [from, to) as one call. */
double
hr__cedar_slice_ms(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                   size_t from, size_t to, enum hr_cedar_variant variant);
/* A slice with less of the pipeline's time is not offloaded. */
#define HR_CEDAR_PART_MIN 0.05

#endif
