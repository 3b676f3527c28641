/*
 * tests/contract/ragged_op.c - values of every rank whose sizes differ between records:
 * text, lists, boxes [n, 4], pictures [h, w, 3]. They go through batches and batches of
 * batches and come back as they were.
 */
#include "tests/contract/contract.h"

#include <stdlib.h>

struct shapes {
    const char *field, *text, *list, *boxes, *picture;
};

static const struct hr_param shapes_params[] = {
    HR_P_FIELD(struct shapes, field, .fallback = "value", .access = HR_ACCESS_READ,
               .help = "a number, from which all follows"),
    HR_P_FIELD(struct shapes, text, .fallback = "text", .access = HR_ACCESS_WRITE,
               .help = "the field for a text"),
    HR_P_FIELD(struct shapes, list, .fallback = "list", .access = HR_ACCESS_WRITE,
               .help = "the field for a list"),
    HR_P_FIELD(struct shapes, boxes, .fallback = "boxes", .access = HR_ACCESS_WRITE,
               .help = "the field for boxes"),
    HR_P_FIELD(struct shapes, picture, .fallback = "picture", .access = HR_ACCESS_WRITE,
               .help = "the field for a picture"),
};

/* Dimensions of the fields after `text`, by the number; those that do not depend on it
 * are known before. */
#define KINDS 3
static const struct {
    enum hr_dtype dtype;
    int ndim;
    int64_t fixed[3]; /* -1: unknown */
} kinds[KINDS] = {
    {HR_I16, 1, {-1}       },
    {HR_F32, 2, {-1, 4}    },
    {HR_U8,  3, {-1, -1, 3}},
};

static void dims_of(int kind, int64_t value, int64_t dims[3])
{
    for (int d = 0; d < kinds[kind].ndim; d++)
        dims[d] =
            kinds[kind].fixed[d] >= 0 ? kinds[kind].fixed[d] : (value + 2 * d) % (5 - d);
}

static int64_t text_bytes(int64_t value)
{
    return value % 4;
}

static uint8_t byte_of(int64_t value, int64_t at)
{
    return (uint8_t)(37 * value + 5 * at);
}

static enum hr_err shapes_infer(struct hr_infer *infer)
{
    infer->fields[1]->kind = HR_FIELD_BYTES;
    for (int k = 0; k < KINDS; k++) {
        struct hr_field *field = infer->fields[2 + k];

        field->dtype = kinds[k].dtype;
        field->ndim = kinds[k].ndim;
        for (int d = 0; d < kinds[k].ndim; d++)
            if (kinds[k].fixed[d] >= 0)
                hr__dim_set(&field->dims[d], kinds[k].fixed[d]);
            else
                hr__dim_unknown(&field->dims[d], "size");
    }
    return HR_OK;
}

static enum hr_err
bytes_of(struct hr_op_ctx *ctx, int64_t value, size_t bytes, void **ret_memory)
{
    HR_TRY(hr__op_alloc(ctx, bytes + 1, ret_memory));
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)*ret_memory)[i] = byte_of(value, (int64_t)i);
    return HR_OK;
}

static enum hr_err shapes_apply(struct hr_op_ctx *ctx)
{
    int64_t value;
    void *memory;

    memcpy(&value, ctx->fields[0]->data, sizeof value);
    HR_TRY(bytes_of(ctx, value, (size_t)text_bytes(value), &memory));
    hr__value_set_bytes(ctx->fields[1], memory, (size_t)text_bytes(value), NULL);
    for (int k = 0; k < KINDS; k++) {
        size_t bytes = hr_dtype_size(kinds[k].dtype);
        int64_t dims[3];

        dims_of(k, value, dims);
        for (int d = 0; d < kinds[k].ndim; d++)
            bytes *= (size_t)dims[d];
        HR_TRY(bytes_of(ctx, value, bytes, &memory));
        hr__value_set_tensor(ctx->fields[2 + k], kinds[k].dtype, kinds[k].ndim, dims,
                             memory, NULL);
    }
    return HR_OK;
}

static const struct hr_op shapes_op = {
    .name = "test.shapes",
    .summary = "values of every rank",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(shapes_params, struct shapes),
    .infer = shapes_infer,
    .apply = shapes_apply,
};
CONTRACT_OP(shapes_op)

#define HEAD                                                                             \
    "headrace: 1\npipeline:\n  - source.range: {n: 47}\n  - order.shuffle: {}\n"         \
    "  - test.shapes: {}\n"
#define FAIL "  - debug.fail: {probability: 0.1}\n"
#define RAGGED(size) "  - batch.stack: {size: " #size ", ragged: true}\n"
#define UNBATCH "  - batch.unbatch: {}\n"

static void check(const char *text)
{
    outcome_free(contract_check(contract_job(text)));
}

TEST(ragged_values_of_every_rank_have_one_digest)
{
    check(HEAD FAIL RAGGED(4));
}

TEST(nested_batches_have_one_digest)
{
    check(HEAD FAIL RAGGED(3) RAGGED(2));
    check(HEAD FAIL RAGGED(3) RAGGED(2) RAGGED(2));
}

TEST(unbatched_batches_have_one_digest)
{
    check(HEAD RAGGED(3) RAGGED(2) UNBATCH UNBATCH FAIL RAGGED(5));
    check(HEAD RAGGED(2) UNBATCH RAGGED(3) RAGGED(2) UNBATCH RAGGED(2));
}

TEST(what_was_nested_and_taken_apart_is_what_it_was)
{
    struct outcome_job plain = contract_job(HEAD RAGGED(5));
    struct outcome_job nested =
        contract_job(HEAD RAGGED(3) RAGGED(2) UNBATCH UNBATCH RAGGED(5));
    struct outcome *whole = outcome_run(&plain), *other = outcome_run(&nested);

    CHECK_ERR(HR_ERR_END, whole->code);
    outcome_check_same(whole, other, 0, "nested and taken apart");
    outcome_free(whole);
    outcome_free(other);
}

/* Item `at` of the last level is the record of this value. */
static void check_item(const struct hr_batch *batch, int kind, int64_t at, int64_t value)
{
    static const char *const names[KINDS] = {"list", "boxes", "picture"};
    struct hr_field_view view = contract_field(batch, kind < 0 ? "text" : names[kind]);
    size_t size = kind < 0 ? 1 : hr_dtype_size(view.dtype);
    const int64_t *splits = view.splits[view.levels - 1];
    int64_t dims[3], count = kind < 0 ? text_bytes(value) : 1;

    for (int d = 0; kind >= 0 && d < kinds[kind].ndim; d++) {
        dims_of(kind, value, dims);
        count *= dims[d];
        if (view.item_ndim > 1)
            CHECK_EQ_INT(view.shapes[at * view.item_ndim + d], dims[d]);
    }
    CHECK_EQ_INT(view.item_ndim, kind < 0 ? 0 : kinds[kind].ndim);
    CHECK_EQ_INT(splits[at + 1] - splits[at], count);
    for (int64_t i = 0; i < count * (int64_t)size; i++)
        CHECK_EQ_INT(((const uint8_t *)view.data)[splits[at] * (int64_t)size + i],
                     byte_of(value, i));
}

TEST(a_nested_batch_holds_every_record_in_its_shape)
{
    struct outcome_job job = contract_job(
        "headrace: 1\npipeline:\n  - source.range: {n: 47}\n  - test.shapes: {}\n" RAGGED(
            3) RAGGED(4));
    struct contract_batches batches;
    int64_t value = 0;

    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_field_view text = contract_field(batches.items[b], "text");
        int64_t inner = text.splits[0][text.dims[0]];

        CHECK_EQ_INT(text.levels, 2);
        for (int64_t i = 0; i < inner; i++, value++)
            for (int k = -1; k < KINDS; k++)
                check_item(batches.items[b], k, i, value);
    }
    CHECK_EQ_INT(value, 47);
    contract_drop(&batches);
}
