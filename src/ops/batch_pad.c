/*
 * batch.pad - records of differing shapes to batches.
 */
#include "op/op.h"
#include "ops/batch.h"

struct pad {
    int64_t size;
    bool drop_last;
    double value;
    int64_t multiple;
};

static const struct hr_param pad_params[] = {
    HR_P_BATCH_SIZE(struct pad),
    HR_P_DROP_LAST(struct pad),
    HR_P_FLOAT(struct pad, value, .fallback = "0",
               .help = "what the space behind shorter records is filled with"),
    HR_P_INT(struct pad, multiple, .fallback = "1", HR_RANGE(1, 1 << 20),
             .unit = "elements",
             .help = "round padded dimensions up to a multiple of it"),
};

static enum hr_err pad_infer(struct hr_infer *infer)
{
    const struct pad *p = infer->params;

    return hr__infer_batch(infer, p->size, p->drop_last, false);
}

static void pad_spec(const void *params, struct hr_batch_spec *ret_spec)
{
    const struct pad *p = params;

    *ret_spec = (struct hr_batch_spec){.size = p->size,
                                       .drop_last = p->drop_last,
                                       .pad = true,
                                       .pad_value = p->value,
                                       .pad_multiple = p->multiple};
}

const struct hr_op hr_op_batch_pad = {
    .name = "batch.pad",
    .summary = "join records of differing shapes to batches",
    .doc = "Each dimension of a field is padded at its end to the largest of the batch, "
           "rounded up to `multiple`.",
    .version = 1,
    .kind = HR_OP_BATCH,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(pad_params, struct pad),
    .infer = pad_infer,
    .batch_spec = pad_spec,
};
