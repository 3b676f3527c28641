/*
 * debug.sleep - waits, to simulate a slow device or network.
 */
#include <errno.h>
#include <math.h>
#include <time.h>

#include "op/op.h"

struct nap {
    double ms;
};

static const struct hr_param sleep_params[] = {
    HR_P_FLOAT(struct nap, ms, .required = true, HR_RANGE(0, 3.6e6), .unit = "ms",
               .help = "how long each record waits"),
};

static enum hr_err sleep_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static enum hr_err sleep_apply(struct hr_op_ctx *ctx)
{
    const struct nap *p = ctx->params;
    double seconds = floor(p->ms / 1000);
    struct timespec left = {(time_t)seconds, (long)((p->ms - seconds * 1000) * 1e6)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
    return HR_OK;
}

const struct hr_op hr_op_debug_sleep = {
    .name = "debug.sleep",
    .summary = "wait without using the CPU",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_TEST_ONLY,
    HR_PARAMS(sleep_params, struct nap),
    .infer = sleep_infer,
    .apply = sleep_apply,
};
