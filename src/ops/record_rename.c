/*
 * record.rename - renames fields. It changes schemas only.
 */
#include "op/op.h"

#include <string.h>

struct rename {
    struct hr_pairs fields;
};

static const struct hr_param rename_params[] = {
    HR_P_MAP(struct rename, fields, .required = true,
             .help = "old name: new name; all at once, so two may be swapped"),
};

static enum hr_err check_names(struct hr_infer *infer)
{
    const struct hr_schema *out = infer->output;

    for (size_t i = 0; i < out->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(out->fields[i].name, out->fields[k].name) == 0)
                return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                      "there would be two fields \"%s\"",
                                      out->fields[i].name);
    return HR_OK;
}

static enum hr_err rename_infer(struct hr_infer *infer)
{
    const struct rename *p = infer->params;
    struct hr_field *fields[HR_LIST_MAX];

    for (int i = 0; i < p->fields.count; i++) {
        size_t length = strlen(p->fields.values[i]);
        fields[i] = hr__schema_find(infer->output, p->fields.keys[i]);
        if (fields[i] == NULL)
            return hr__infer_fail(infer, "fields", HR_ERR_NOT_FOUND,
                                  "there is no field \"%s\" to rename",
                                  p->fields.keys[i]);
        if (length == 0 || length > HR_FIELD_NAME_MAX)
            return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                  "a field's name has 1 to %d bytes", HR_FIELD_NAME_MAX);
    }
    for (int i = 0; i < p->fields.count; i++) {
        memset(fields[i]->name, 0, sizeof fields[i]->name);
        memcpy(fields[i]->name, p->fields.values[i], strlen(p->fields.values[i]));
    }
    return check_names(infer);
}

static enum hr_err rename_apply(struct hr_op_ctx *ctx)
{
    (void)ctx;
    return HR_OK;
}

const struct hr_op hr_op_record_rename = {
    .name = "record.rename",
    .summary = "give fields other names",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY | HR_TRAIT_DEFERS,
    HR_PARAMS(rename_params, struct rename),
    .infer = rename_infer,
    .apply = rename_apply,
};
