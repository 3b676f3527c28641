/*
 * debug.spin - uses the CPU for a while, to simulate an expensive op.
 */
#include "core/clock.h"
#include "op/op.h"

struct spin {
    double us, factor;
    int64_t every;
};

static const struct hr_param spin_params[] = {
    HR_P_FLOAT(struct spin, us, .required = true, HR_RANGE(0, 1e9), .unit = "us",
               .help = "CPU time that each record costs"),
    HR_P_INT(struct spin, every, .fallback = "0", HR_RANGE(0, 1e15),
             .help = "every n-th record by source index costs more; 0: none"),
    HR_P_FLOAT(struct spin, factor, .fallback = "1", HR_RANGE(0, 1e6),
               .help = "how many times as much"),
};

static enum hr_err spin_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static enum hr_err spin_apply(struct hr_op_ctx *ctx)
{
    const struct spin *p = ctx->params;
    bool more = p->every > 0 && ctx->id->index % (uint64_t)p->every == 0;
    uint64_t until =
        hr__cpu_thread_ns() + (uint64_t)(p->us * 1000 * (more ? p->factor : 1));

    while (hr__cpu_thread_ns() < until)
        continue;
    return HR_OK;
}

const struct hr_op hr_op_debug_spin = {
    .name = "debug.spin",
    .summary = "use the CPU for some time",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_TEST_ONLY,
    HR_PARAMS(spin_params, struct spin),
    .infer = spin_infer,
    .apply = spin_apply,
};
