/*
 * batch.stack - records to batches: one tensor per field, all of one shape.
 *
 * The batcher itself is the engine's, which lets records write straight into their slots;
 * here stands only what is wanted.
 */
#include "op/op.h"
#include "ops/batch.h"

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
            "lists of differing length are put one behind the other, with offsets; else "
            "they are refused"),
};

static enum hr_err stack_infer(struct hr_infer *infer)
{
    const struct stack *p = infer->params;

    return hr__infer_batch(infer, p->size, p->drop_last, p->ragged);
}

static void stack_spec(const void *params, struct hr_batch_spec *ret_spec)
{
    const struct stack *p = params;

    *ret_spec = (struct hr_batch_spec){
        .size = p->size, .drop_last = p->drop_last, .ragged = p->ragged};
}

const struct hr_op hr_op_batch_stack = {
    .name = "batch.stack",
    .summary = "join records of one shape to batches",
    .doc = "Every tensor field gains a first dimension. Shapes must agree within a batch "
           "(see batch.pad). Byte strings become a list of byte strings.",
    .version = 1,
    .kind = HR_OP_BATCH,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(stack_params, struct stack),
    .infer = stack_infer,
    .batch_spec = stack_spec,
};
