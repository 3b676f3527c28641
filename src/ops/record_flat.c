/*
 * record.flat - a record for each item of its lists, without a copy.
 */
#include "op/op.h"
#include "op/ragged.h"
#include "ops/batch.h"

#include <string.h>

#include "core/alloc.h"

struct flat {
    struct hr_names fields;
};

static const struct hr_param flat_params[] = {
    HR_P_FIELDS(struct flat, fields, .required = true, .access = HR_ACCESS_UPDATE,
                .items_min = 1,
                .help = "the fields that hold lists, equally long in each record: item i "
                        "of each goes to record i; all other fields go to every record"),
};

/* Which fields of the schema are lists. */
struct state {
    bool is_list[HR_SCHEMA_FIELDS_MAX];
};

/* Whether an item means what its list does. */
static bool keeps_meaning(const struct hr_field *item)
{
    switch (item->meaning) {
    case HR_MEANING_IMAGE_U8:
    case HR_MEANING_IMAGE_UNIT:
    case HR_MEANING_IMAGE_NORMAL:
    case HR_MEANING_MASK:
        return item->ndim == 3;
    case HR_MEANING_BOXES:
    case HR_MEANING_POINTS:
        return item->ndim == 2;
    case HR_MEANING_SAMPLES:
        return item->ndim >= 1;
    default:
        return true;
    }
}

static enum hr_err flat_infer(struct hr_infer *infer)
{
    if (infer->output->batch_rank > 0)
        return hr__infer_fail(infer, NULL, HR_ERR_GRAPH,
                              "these are batches: put it before them, or use "
                              "batch.unbatch");
    for (size_t i = 0; i < infer->field_count; i++) {
        struct hr_field *field = infer->fields[i];

        for (size_t k = 0; k < i; k++)
            if (infer->fields[k] == field)
                return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                      "field \"%s\" is named twice", field->name);
        if (field->kind == HR_FIELD_BYTES || field->ndim < 1)
            return hr__infer_fail(infer, "fields", HR_ERR_SHAPE,
                                  "field \"%s\" is %s, not a list", field->name,
                                  field->kind == HR_FIELD_BYTES ? "a byte string"
                                                                : "a number");
        hr__field_item(field, "items");
        if (keeps_meaning(field))
            continue;
        field->meaning = HR_MEANING_NONE;
        field->layout = HR_LAYOUT_NONE;
    }
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err flat_open(const struct hr_open *open, void **ret_state)
{
    const struct flat *p = open->params;
    struct state *state = hr__calloc(1, sizeof *state);

    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < open->input->count; i++)
        for (int k = 0; k < p->fields.count; k++)
            if (strcmp(open->input->fields[i].name, p->fields.values[k]) == 0)
                state->is_list[i] = true;
    *ret_state = state;
    return HR_OK;
}

static void flat_close(void *state)
{
    hr__free(state);
}

static enum hr_err flat_count(struct hr_op_ctx *ctx, uint64_t *ret_count)
{
    const struct flat *p = ctx->params;
    const struct hr_value *first = ctx->fields[0];
    size_t odd = hr__values_odd(ctx->fields, ctx->field_count);

    if (odd == ctx->field_count) {
        *ret_count = (uint64_t)first->dims[0];
        return HR_OK;
    }
    if (!hr__value_has_items(ctx->fields[odd]))
        return hr__fail(ctx->error, HR_ERR_SHAPE, "field \"%s\" holds no list",
                        p->fields.values[odd]);
    return hr__fail(ctx->error, HR_ERR_SHAPE,
                    "the lists differ in length: \"%s\" has %lld items and \"%s\" %lld",
                    p->fields.values[0], (long long)first->dims[0], p->fields.values[odd],
                    (long long)ctx->fields[odd]->dims[0]);
}

static enum hr_err
flat_child(struct hr_op_ctx *ctx, uint64_t at, const struct hr_value *parents,
           struct hr_value *children, size_t count)
{
    const struct state *state = ctx->state;

    for (size_t i = 0; i < count; i++) {
        if (state->is_list[i]) {
            HR_TRY(hr__batch_item(&parents[i], (int64_t)at, ctx->thread->pool,
                                  &children[i], ctx->error));
            continue;
        }
        children[i] = parents[i];
        children[i].shared = true;
        if (children[i].owner != NULL)
            hr_buffer_ref(children[i].owner);
    }
    return HR_OK;
}

const struct hr_op hr_op_record_flat = {
    .name = "record.flat",
    .summary = "a record for each item of its lists",
    .doc = "Lists are token ids, texts, boxes, frames: item i of each field in `fields` "
           "goes "
           "to record i, and all other fields go to every record, as `explode` of pandas "
           "and "
           "polars, and `flat_map` of tf.data with `from_tensor_slices`. Lists of one "
           "record "
           "that differ in length make it a bad record; one with empty lists gives none. "
           "Record i is child i of the one that held the list, and its identity says so. "
           "`code.expand` makes records by your own code.",
    .version = 1,
    .kind = HR_OP_EXPAND,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(flat_params, struct flat),
    .infer = flat_infer,
    .open = flat_open,
    .close = flat_close,
    .expand.count = flat_count,
    .expand.child = flat_child,
};
