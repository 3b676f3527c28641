/*
 * debug.spin - uses a processor for a while, to stand for an expensive op.
 */
#include "core/clock.h"
#include "op/op.h"

struct spin {
    double us;
};

static const struct hr_param spin_params[] = {
    HR_P_FLOAT(struct spin, us, .required = true, HR_RANGE(0, 1e9), .unit = "us",
               .help = "CPU time that each record costs"),
};

static enum hr_err spin_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static enum hr_err spin_apply(struct hr_op_ctx *ctx)
{
    const struct spin *p = ctx->params;
    uint64_t until = hr__cpu_thread_ns() + (uint64_t)(p->us * 1000);

    while (hr__cpu_thread_ns() < until)
        continue;
    return HR_OK;
}

const struct hr_op hr_op_debug_spin = {
    .name = "debug.spin",
    .summary = "use a processor for some time",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_TEST_ONLY,
    HR_PARAMS(spin_params, struct spin),
    .infer = spin_infer,
    .apply = spin_apply,
};
