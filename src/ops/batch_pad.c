/*
 * batch.pad - stacks records of differing shapes into batches.
 */
#include "ops/batch.h"
#include "ops/stack.h"

#include <stdio.h>
#include <string.h>

struct pad {
    int64_t size;
    bool drop_last;
    double value;
    int64_t multiple;
    struct hr_names lengths;
};

#define LENGTH_SUFFIX "_length"

static const struct hr_param pad_params[] = {
    HR_P_BATCH_SIZE(struct pad),
    HR_P_DROP_LAST(struct pad),
    HR_P_FLOAT(struct pad, value, .fallback = "0",
               .help = "value of the padding after shorter records"),
    HR_P_INT(struct pad, multiple, .fallback = "1", HR_RANGE(1, 1 << 20),
             .unit = "elements",
             .help = "round padded dimensions up to a multiple of this"),
    HR_P_FIELDS(struct pad, lengths, .access = HR_ACCESS_READ,
                .help = "the fields whose sizes before padding are wanted: `x` adds "
                        "`x_length`"),
};

/* ---- lengths ---- */

/* `item` is the field before it was batched. */
static enum hr_err infer_length(struct hr_infer *infer, const struct hr_field *item,
                                const struct hr_dim *batch)
{
    char name[HR_FIELD_NAME_MAX + sizeof LENGTH_SUFFIX];
    int dims[HR_MAX_DIMS], count;
    struct hr_field *field;

    if (item->kind != HR_FIELD_TENSOR || item->ndim == 0)
        return hr__infer_fail(
            infer, "lengths", HR_ERR_SHAPE, "field \"%s\" is %s, which is not padded",
            item->name, item->kind == HR_FIELD_TENSOR ? "one number a record" : "a list");
    snprintf(name, sizeof name, "%s" LENGTH_SUFFIX, item->name);
    if (strlen(name) > HR_FIELD_NAME_MAX || hr__schema_find(infer->output, name) != NULL)
        return hr__infer_fail(
            infer, "lengths", HR_ERR_ARGUMENT,
            "the lengths of \"%s\" cannot be called \"%s\", which is %s: "
            "rename it",
            item->name, name, strlen(name) > HR_FIELD_NAME_MAX ? "too long" : "taken");
    field = hr__schema_put(infer->output, name);
    if (field == NULL)
        return hr__infer_fail(infer, "lengths", HR_ERR_LIMIT,
                              "a record has at most %d fields", HR_SCHEMA_FIELDS_MAX);
    field->kind = HR_FIELD_TENSOR;
    field->dtype = HR_I64;
    field->dims[field->ndim++] = *batch;
    count = hr__length_dims(item, dims);
    if (count > 1)
        hr__dim_set(&field->dims[field->ndim++], count);
    return HR_OK;
}

static enum hr_err pad_infer(struct hr_infer *infer)
{
    const struct pad *p = infer->params;

    HR_TRY(hr__infer_batch(infer, p->size, p->drop_last, false));
    for (size_t i = 0; i < infer->field_count; i++) {
        const struct hr_field *batch = infer->fields[i];

        for (size_t f = 0; f < infer->inputs[0].count; f++)
            if (strcmp(infer->inputs[0].fields[f].name, batch->name) == 0)
                HR_TRY(infer_length(infer, &infer->inputs[0].fields[f], &batch->dims[0]));
    }
    return HR_OK;
}

static struct hr_stack_spec spec_of(const struct pad *p)
{
    return (struct hr_stack_spec){.size = p->size,
                                  .drop_last = p->drop_last,
                                  .pad = true,
                                  .pad_value = p->value,
                                  .pad_multiple = p->multiple,
                                  .lengths = &p->lengths};
}

static enum hr_err pad_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct hr_stack_spec spec = spec_of(begin->params);

    return hr__stacker_begin(begin, &spec, sequencer);
}

static enum hr_err
pad_join(const void *params, struct hr_pool *pool, const struct hr_schema *schema,
         int64_t records, struct hr_buffer **columns, const struct hr_value *rows,
         size_t stride, struct hr_value *ret_values, struct hr_error *error)
{
    struct hr_stack_spec spec = spec_of(params);

    return hr__stack_join(pool, schema, records, columns, rows, stride, &spec, ret_values,
                          error);
}

static void pad_runs(const void *params, struct hr_sequence_runs *ret_runs)
{
    const struct pad *p = params;

    *ret_runs = (struct hr_sequence_runs){.size = p->size, .drop_last = p->drop_last};
}

static uint64_t pad_holds(const void *params)
{
    return (uint64_t)((const struct pad *)params)->size;
}

static uint64_t pad_count(const void *params, uint64_t n)
{
    const struct pad *p = params;

    return hr__batch_count(n, p->size, p->drop_last);
}

const struct hr_op hr_op_batch_pad = {
    .name = "batch.pad",
    .summary = "stack records of differing shapes into batches",
    .doc =
        "Each dimension of a field is padded at its end to the largest in the batch, "
        "rounded up to `multiple`. For a field `x` in `lengths` batches have a field "
        "`x_length`, int64: the sizes that its records had, `[batch]` where one of its "
        "dimensions differs between records, else `[batch, n]` for the n that do, in "
        "their order.",
    .version = 1,
    .kind = HR_OP_SEQUENCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_BATCHED | HR_TRAIT_GROWS,
    HR_PARAMS(pad_params, struct pad),
    .infer = pad_infer,
    .sequence =
        {
                   HR_STACKER, .begin = pad_begin,
                   .count = pad_count,
                   .holds = pad_holds,
                   .runs = pad_runs,
                   .join = pad_join,
                   },
};
