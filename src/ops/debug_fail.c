/*
 * debug.fail - fails for chosen records, to test error handling.
 */
#include "op/op.h"

struct fail {
    int64_t every;
    double probability;
    struct hr_ints at;
    const char *message;
};

static const struct hr_param fail_params[] = {
    HR_P_INT(struct fail, every, .fallback = "0", HR_RANGE(0, 1e15), .unit = "records",
             .help = "fail for each n-th record of the source; 0: do not"),
    HR_P_FLOAT(struct fail, probability, .fallback = "0", HR_RANGE(0, 1),
               .help = "fail with this probability, for the same records in every run"),
    HR_P_INTS(struct fail, at, .fallback = "[]", .items_min = 0, .items_max = HR_LIST_MAX,
              HR_MIN(0), .help = "fail for records with these source indices"),
    HR_P_STRING(struct fail, message, .fallback = "made to fail by debug.fail",
                .help = "what the error says"),
};

static enum hr_err fail_infer(struct hr_infer *infer)
{
    (void)infer;
    return HR_OK;
}

static bool chosen(const struct hr_op_ctx *ctx, const struct fail *p)
{
    uint64_t index = ctx->id->index;
    struct hr_rng rng;

    for (int i = 0; i < p->at.count; i++)
        if (index == (uint64_t)p->at.values[i])
            return true;
    if (p->every > 0 && (index + 1) % (uint64_t)p->every == 0)
        return true;
    hr__op_rng(ctx, &rng);
    return hr__rng_double(&rng) < p->probability;
}

static enum hr_err fail_apply(struct hr_op_ctx *ctx)
{
    const struct fail *p = ctx->params;

    if (!chosen(ctx, p))
        return HR_OK;
    return hr__fail(ctx->error, HR_ERR_FORMAT, "%s", p->message);
}

const struct hr_op hr_op_debug_fail = {
    .name = "debug.fail",
    .summary = "fail for chosen records",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_TEST_ONLY,
    HR_PARAMS(fail_params, struct fail),
    .infer = fail_infer,
    .apply = fail_apply,
};
