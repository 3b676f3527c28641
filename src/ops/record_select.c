/*
 * record.select - keeps the named fields, in the named order.
 *
 * It changes schemas only: there is nothing to do per record.
 */
#include "op/op.h"

#include <string.h>

#include "core/alloc.h"

struct select {
    struct hr_names fields;
};

static const struct hr_param select_params[] = {
    HR_P_FIELDS(struct select, fields, .required = true, .access = HR_ACCESS_READ,
                .help = "the fields to keep"),
};

static enum hr_err select_infer(struct hr_infer *infer)
{
    const struct select *p = infer->params;
    size_t count = (size_t)p->fields.count;
    struct hr_field *kept = hr__calloc(count, sizeof *kept);

    if (kept == NULL)
        return hr__infer_fail(infer, NULL, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        kept[i] = *infer->fields[i];
        for (size_t k = 0; k < i; k++) {
            if (strcmp(kept[k].name, kept[i].name) != 0)
                continue;
            hr__free(kept);
            return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                  "field \"%s\" is named twice", p->fields.values[i]);
        }
    }
    memset(infer->output->fields, 0, sizeof infer->output->fields);
    memcpy(infer->output->fields, kept, count * sizeof *kept);
    infer->output->count = count;
    hr__free(kept);
    return HR_OK;
}

static enum hr_err select_apply(struct hr_op_ctx *ctx)
{
    (void)ctx;
    return HR_OK;
}

const struct hr_op hr_op_record_select = {
    .name = "record.select",
    .summary = "keep only some fields",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY | HR_TRAIT_DEFERS,
    HR_PARAMS(select_params, struct select),
    .infer = select_infer,
    .apply = select_apply,
};
