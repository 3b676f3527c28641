/*
 * order.skip - all but the first records of an epoch.
 */
#include "ops/ordinal.h"

struct skip {
    int64_t count;
};

static const struct hr_param skip_params[] = {
    HR_P_INT(struct skip, count, .required = true, HR_RANGE(0, 1e15), .unit = "records",
             .help = "number of records to skip"),
};

static uint64_t skip_count(const void *params, const void *state, uint64_t n)
{
    uint64_t count = (uint64_t)((const struct skip *)params)->count;

    (void)state;
    return n > count ? n - count : 0;
}

static enum hr_err skip_infer(struct hr_infer *infer)
{
    if (infer->output->records >= 0)
        infer->output->records =
            (int64_t)skip_count(infer->params, NULL, (uint64_t)infer->output->records);
    return HR_OK;
}

static uint64_t skip_map(const void *params, void *state, uint64_t n, uint64_t at,
                         struct hr_record_id *id, uint64_t draw_id)
{
    (void)state, (void)n, (void)id, (void)draw_id;
    return at + (uint64_t)((const struct skip *)params)->count;
}

static enum hr_err skip_add(void *sequencer, struct hr_sequence_record *record,
                            enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct hr_ordinal *o = sequencer;
    uint64_t count = (uint64_t)((const struct skip *)o->params)->count;
    uint64_t at = o->next++;

    (void)record, (void)error;
    *ret_verdict = at < count ? HR_SEQUENCE_DROP : hr__ordinal_pass(o, at - count);
    return HR_OK;
}

const struct hr_op hr_op_order_skip = {
    .name = "order.skip",
    .summary = "skip the first records",
    .doc = "For the parts of a data set use order.split, whose parts keep their records "
           "when "
           "others are added.\n\n" HR_ORDINAL_RANKS_DOC,
    .version = 1,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(skip_params, struct skip),
    .infer = skip_infer,
    .order.count = skip_count,
    .order.map = skip_map,
    HR_ORDINAL,
    .sequence.add = skip_add,
    .sequence.ranks = hr__ordinal_ranks,
};
