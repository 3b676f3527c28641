/*
 * order.repeat - several passes over the data in one epoch.
 *
 * For nodes upstream each pass is an epoch of its own (number epoch * count + pass), so
 * shuffles and random ops there differ from pass to pass.
 */
#include "op/op.h"

struct repeat {
    int64_t count;
};

static const struct hr_param repeat_params[] = {
    HR_P_INT(struct repeat, count, .required = true, HR_RANGE(1, 1000000),
             .unit = "passes", .help = "number of passes over the data in an epoch"),
};

static enum hr_err repeat_infer(struct hr_infer *infer)
{
    const struct repeat *p = infer->params;

    if (infer->output->records >= 0)
        infer->output->records *= p->count;
    return HR_OK;
}

static uint64_t repeat_count(const void *params, const void *state, uint64_t n)
{
    (void)state;
    return n * (uint64_t)((const struct repeat *)params)->count;
}

static uint64_t repeat_passes(const void *params)
{
    return (uint64_t)((const struct repeat *)params)->count;
}

static uint64_t repeat_map(const void *params, void *state, uint64_t n, uint64_t at,
                           struct hr_record_id *id, uint64_t draw_id)
{
    uint32_t count = (uint32_t)((const struct repeat *)params)->count;

    (void)state, (void)draw_id;
    id->draw_epoch = id->draw_epoch * count + (uint32_t)(at / n);
    return at % n;
}

const struct hr_op hr_op_order_repeat = {
    .name = "order.repeat",
    .summary = "repeat the data within an epoch",
    .doc = "A shuffle before it gives every pass its own order; a shuffle after it mixes "
           "the "
           "passes. Random ops draw again in every pass.",
    .version = 1,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(repeat_params, struct repeat),
    .infer = repeat_infer,
    .order.count = repeat_count,
    .order.map = repeat_map,
    .order.passes = repeat_passes,
};
