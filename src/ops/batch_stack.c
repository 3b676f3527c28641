/*
 * batch.stack - stacks records of one shape into batches: one tensor per field.
 *
 * If the engine knows a record's place in the batch beforehand, it writes the record
 * straight there; otherwise ops/stack.c gathers records.
 */
#include "ops/batch.h"
#include "ops/stack.h"

struct stack {
    int64_t size;
    bool drop_last;
    bool ragged;
};

static const struct hr_param stack_params[] = {
    HR_P_BATCH_SIZE(struct stack),
    HR_P_DROP_LAST(struct stack),
    HR_P_BOOL(
        struct stack, ragged, .fallback = "false",
        .help =
            "tensors whose size differs between records (lists, boxes, images) keep "
            "their sizes and are stored one after the other, with offsets; else they are "
            "refused"),
};

static enum hr_err stack_infer(struct hr_infer *infer)
{
    const struct stack *p = infer->params;

    return hr__infer_batch(infer, p->size, p->drop_last, p->ragged);
}

static struct hr_stack_spec spec_of(const struct stack *p)
{
    return (struct hr_stack_spec){
        .size = p->size, .drop_last = p->drop_last, .ragged = p->ragged};
}

static enum hr_err stack_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct hr_stack_spec spec = spec_of(begin->params);

    return hr__stacker_begin(begin, &spec, sequencer);
}

static enum hr_err
stack_join(const void *params, struct hr_pool *pool, const struct hr_schema *schema,
           int64_t records, struct hr_buffer **columns, const struct hr_value *rows,
           size_t stride, struct hr_value *ret_values, struct hr_error *error)
{
    struct hr_stack_spec spec = spec_of(params);

    return hr__stack_join(pool, schema, records, columns, rows, stride, &spec, ret_values,
                          error);
}

static void stack_runs(const void *params, struct hr_sequence_runs *ret_runs)
{
    const struct stack *p = params;

    *ret_runs = (struct hr_sequence_runs){.size = p->size, .drop_last = p->drop_last};
}

static uint64_t
stack_holds(const void *params, const void *state, const struct hr_schema *input)
{
    (void)state, (void)input;
    return (uint64_t)((const struct stack *)params)->size;
}

static uint64_t stack_count(const void *params, uint64_t n)
{
    const struct stack *p = params;

    return hr__batch_count(n, p->size, p->drop_last);
}

const struct hr_op hr_op_batch_stack = {
    .name = "batch.stack",
    .summary = "stack records of one shape into batches",
    .doc = "Every tensor field gains a first dimension. Shapes must agree within a batch "
           "(see batch.pad). Byte strings become a list of byte strings.",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_BATCHED,
    HR_PARAMS(stack_params, struct stack),
    .infer = stack_infer,
    .sequence =
        {
                   HR_STACKER, .begin = stack_begin,
                   .count = stack_count,
                   .holds = stack_holds,
                   .runs = stack_runs,
                   .join = stack_join,
                   },
};
