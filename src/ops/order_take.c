/*
 * order.take - only the first records of an epoch.
 */
#include "ops/ordinal.h"

struct take {
    int64_t count;
};

static const struct hr_param take_params[] = {
    HR_P_INT(struct take, count, .required = true, HR_RANGE(0, 1e15), .unit = "records",
             .help = "number of records to keep"),
};

static uint64_t take_count(const void *params, const void *state, uint64_t n)
{
    uint64_t count = (uint64_t)((const struct take *)params)->count;

    (void)state;
    return n < count ? n : count;
}

static enum hr_err take_infer(struct hr_infer *infer)
{
    if (infer->output->records >= 0)
        infer->output->records =
            (int64_t)take_count(infer->params, NULL, (uint64_t)infer->output->records);
    return HR_OK;
}

static uint64_t take_map(const void *params, void *state, uint64_t n, uint64_t at,
                         struct hr_record_id *id, uint64_t draw_id)
{
    (void)params, (void)state, (void)n, (void)id, (void)draw_id;
    return at;
}

static enum hr_err take_add(void *sequencer, struct hr_sequence_record *record,
                            enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct hr_ordinal *o = sequencer;
    const struct take *p = o->params;
    uint64_t at = o->next++;

    (void)record, (void)error;
    *ret_verdict = at < (uint64_t)p->count ? hr__ordinal_pass(o, at) : HR_SEQUENCE_DROP;
    return HR_OK;
}

static bool take_ended(const void *sequencer)
{
    const struct hr_ordinal *o = sequencer;

    return o->next >= (uint64_t)((const struct take *)o->params)->count;
}

const struct hr_op hr_op_order_take = {
    .name = "order.take",
    .summary = "keep the first records",
    .doc = "After a shuffle these are different records in every epoch; before it, the "
           "same ones.\n\n" HR_ORDINAL_RANKS_DOC,
    .version = 1,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(take_params, struct take),
    .infer = take_infer,
    .order.count = take_count,
    .order.map = take_map,
    HR_ORDINAL,
    .sequence.add = take_add,
    .sequence.ended = take_ended,
    .sequence.ranks = hr__ordinal_ranks,
};
