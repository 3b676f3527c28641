/*
 * debug.inflate - repeats bytes, to simulate preprocessing that makes records larger.
 */
#include <string.h>

#include "op/op.h"

struct inflate {
    const char *field;
    double factor;
};

static const struct hr_param inflate_params[] = {
    HR_P_FLOAT(struct inflate, factor, .fallback = "2.5", HR_RANGE(0, 1e6),
               .help = "how many times as many bytes, rounded down"),
    HR_P_FIELD(struct inflate, field, .fallback = "data", .access = HR_ACCESS_UPDATE,
               .help = "the field with the bytes"),
};

static enum hr_err inflate_infer(struct hr_infer *infer)
{
    struct hr_field *field = infer->fields[0];

    if (field->kind != HR_FIELD_BYTES)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" has no bytes to repeat", field->name);
    field->meaning = HR_MEANING_NONE;
    return HR_OK;
}

static enum hr_err inflate_apply(struct hr_op_ctx *ctx)
{
    const struct inflate *p = ctx->params;
    struct hr_value *value = ctx->fields[0];
    size_t bytes = (size_t)((double)value->bytes * p->factor), done = 0;
    void *memory;

    if (value->kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field has no bytes to repeat");
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    while (done < bytes) {
        size_t part = bytes - done < value->bytes ? bytes - done : value->bytes;

        memcpy((char *)memory + done, value->data, part);
        done += part;
    }
    hr__value_clear(value);
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}

const struct hr_op hr_op_debug_inflate = {
    .name = "debug.inflate",
    .summary = "repeat a record's bytes",
    .doc = "With `factor: 2.5` the bytes twice, then their first half.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS | HR_TRAIT_TEST_ONLY,
    HR_PARAMS(inflate_params, struct inflate),
    .infer = inflate_infer,
    .apply = inflate_apply,
};
