/*
 * batch.pad - stacks records of differing shapes into batches.
 */
#include "ops/batch.h"
#include "ops/padding.h"
#include "ops/stack.h"

struct pad {
    int64_t size;
    struct hr_padding padding;
};

static const struct hr_param pad_params[] = {
    HR_P_BATCH_SIZE(struct pad),
    HR_P_IN(HR_PARAM_BOOL, struct pad, padding, drop_last, .fallback = "false",
            .help = HR_DROP_LAST_HELP),
    HR_P_PADDING(struct pad, padding),
};

static enum hr_err pad_infer(struct hr_infer *infer)
{
    const struct pad *p = infer->params;

    HR_TRY(hr__infer_batch(infer, p->size, p->padding.drop_last, false));
    return hr__infer_padding(infer, &p->padding);
}

static struct hr_stack_spec spec_of(const struct pad *p)
{
    return hr__padding_spec(&p->padding, p->size);
}

static enum hr_err pad_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct hr_stack_spec spec = spec_of(begin->params);

    return hr__stacker_begin(begin, &spec, sequencer);
}

static enum hr_err
pad_join(const void *params, struct hr_pool *pool, const struct hr_schema *schema,
         int64_t records, struct hr_buffer **columns, const struct hr_value *rows,
         size_t stride, struct hr_value *ret_values, struct hr_error *error)
{
    struct hr_stack_spec spec = spec_of(params);

    return hr__stack_join(pool, schema, records, columns, rows, stride, &spec, ret_values,
                          error);
}

static void pad_runs(const void *params, struct hr_sequence_runs *ret_runs)
{
    const struct pad *p = params;

    *ret_runs =
        (struct hr_sequence_runs){.size = p->size, .drop_last = p->padding.drop_last};
}

static uint64_t
pad_holds(const void *params, const void *state, const struct hr_schema *input)
{
    (void)state, (void)input;
    return (uint64_t)((const struct pad *)params)->size;
}

static uint64_t pad_count(const void *params, uint64_t n)
{
    const struct pad *p = params;

    return hr__batch_count(n, p->size, p->padding.drop_last);
}

const struct hr_op hr_op_batch_pad = {
    .name = "batch.pad",
    .summary = "stack records of differing shapes into batches",
    .doc =
        "Each dimension of a field is padded at its end to the largest in the batch, "
        "rounded up to `multiple`. For a field `x` in `lengths` batches have a field "
        "`x_length`, int64: the sizes that its records had, `[batch]` where one of its "
        "dimensions differs between records, else `[batch, n]` for the n that do, in "
        "their order.",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_BATCHED | HR_TRAIT_GROWS,
    HR_PARAMS(pad_params, struct pad),
    .infer = pad_infer,
    .sequence =
        {
                   HR_STACKER, .begin = pad_begin,
                   .count = pad_count,
                   .holds = pad_holds,
                   .runs = pad_runs,
                   .join = pad_join,
                   },
};
