/*
 * record.filter - keeps the records for which a condition holds.
 */
#include "ops/condition.h"

struct filter {
    const char *expr;
};

static const struct hr_param filter_params[] = {
    HR_P_STRING(struct filter, expr, .required = true,
                .help = "the condition, such as \"label < 10 and image.height >= 64\""),
};

static enum hr_err
filter_binds(const void *params, const void *state, const struct hr_schema *input,
             struct hr_bindings *bindings, struct hr_error *error)
{
    enum hr_err code = HR_OK;
    const char *const *names;
    struct hr_expr *expr;
    size_t count;

    (void)state;
    HR_TRY(
        hr__condition_make(((const struct filter *)params)->expr, input, &expr, error));
    names = hr__expr_fields(expr, &count);
    for (size_t i = 0; code == HR_OK && i < count; i++)
        code = hr__bind(bindings, names[i], HR_ACCESS_READ, error);
    hr__expr_destroy(expr);
    return code;
}

static enum hr_err filter_infer(struct hr_infer *infer)
{
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err filter_open(const struct hr_open *open, void **ret_state)
{
    struct hr_expr *expr;

    HR_TRY(hr__condition_make(((const struct filter *)open->params)->expr, open->input,
                              &expr, open->error));
    *ret_state = expr;
    return HR_OK;
}

static void filter_close(void *state)
{
    hr__expr_destroy(state);
}

static enum hr_err filter_apply(struct hr_op_ctx *ctx)
{
    bool holds;

    HR_TRY(hr__condition_holds(ctx, ctx->state, NULL, &holds));
    ctx->drop = !holds;
    return HR_OK;
}

const struct hr_op hr_op_record_filter = {
    .name = "record.filter",
    .summary = "keep the records for which a condition holds",
    .doc =
        "`or`, `and`, `not`, comparisons, `in [..]`, `+ - * / %`; names of fields, and "
        "`f.height`, `f.width`, `f.channels`, `f.length`. Sizes of an image are known "
        "from its header, so filtering by them decodes nothing.",
    .version = 1,
    .kind = HR_OP_FILTER,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DEFERS | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(filter_params, struct filter),
    .infer = filter_infer,
    .binds = filter_binds,
    .open = filter_open,
    .close = filter_close,
    .apply = filter_apply,
};
