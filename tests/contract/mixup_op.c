/*
 * tests/contract/mixup_op.c - an op on whole batches: every record is mixed with another
 * one of its batch. The draws are those of the batch, which has the identity of its first
 * record.
 */
#include "tests/contract/contract.h"

#include <stdlib.h>

#include "core/hash.h"

struct mixup {
    const char *field;
    double most;
};

static const struct hr_param mixup_params[] = {
    HR_P_FIELD(struct mixup, field, .fallback = "value", .access = HR_ACCESS_UPDATE,
               .help = "float32 records"),
    HR_P_FLOAT(struct mixup, most, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "largest part of the other record"),
};

static enum hr_err mixup_infer(struct hr_infer *infer)
{
    const struct hr_field *field = infer->fields[0];

    if (infer->output->batch_rank < 1 || field->kind != HR_FIELD_TENSOR ||
        field->dtype != HR_F32)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" is no batch of float32: put batch.stack "
                              "before this",
                              field->name);
    return HR_OK;
}

struct draw {
    float part;
    int64_t shift;
};

static struct draw draw_of(struct hr_rng *rng, double most, int64_t records)
{
    struct draw d;

    d.part = (float)hr__rng_uniform(rng, 0, most);
    d.shift = (int64_t)hr__rng_below(rng, (uint64_t)records);
    return d;
}

static enum hr_err mixup_apply(struct hr_op_ctx *ctx)
{
    const struct mixup *p = ctx->params;
    struct hr_value *value = ctx->fields[0];
    int64_t records = value->dims[0], all = hr__value_count(value), each,
            dims[HR_MAX_DIMS];
    void *in, *out;
    struct hr_rng rng;
    struct draw d;

    if (records == 0)
        return HR_OK;
    each = all / records;
    hr__op_rng(ctx, &rng);
    d = draw_of(&rng, p->most, records);
    HR_TRY(hr__op_alloc(ctx, (size_t)all * sizeof(float), &in));
    HR_TRY(hr__op_alloc(ctx, (size_t)all * sizeof(float), &out));
    hr__value_copy(value, in);
    for (int64_t i = 0; i < all; i++) {
        int64_t other = (i + d.shift * each) % all;

        ((float *)out)[i] =
            (1 - d.part) * ((float *)in)[i] + d.part * ((float *)in)[other];
    }
    memcpy(dims, value->dims, sizeof dims);
    hr__value_set_tensor(value, HR_F32, value->ndim, dims, out, NULL);
    return HR_OK;
}

static const struct hr_op mixup_op = {
    .name = "test.mixup",
    .summary = "records mixed with others of their batch",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_BATCHED,
    HR_PARAMS(mixup_params, struct mixup),
    .infer = mixup_infer,
    .apply = mixup_apply,
};
CONTRACT_OP(mixup_op)

#define HEAD "headrace: 1\npipeline:\n  - source.range: {n: 61}\n"
#define FAIL "  - debug.fail: {probability: 0.1}\n"
#define CAST "  - tensor.cast: {field: value, dtype: float32}\n"
#define BATCH "  - batch.stack: {size: 7}\n"
#define MIXUP "  - test.mixup: {}\n"

TEST(mixed_batches_have_one_digest)
{
    outcome_free(contract_check(
        contract_job(HEAD "  - order.shuffle: {}\n" FAIL CAST BATCH MIXUP MIXUP)));
}

TEST(mixed_batches_of_filtered_records_are_taken_apart)
{
    outcome_free(contract_check(contract_job(
        HEAD "  - record.filter: {expr: \"value % 5 != 3\"}\n" CAST BATCH MIXUP
             "  - batch.unbatch: {}\n" FAIL "  - batch.stack: {size: 4}\n" MIXUP)));
}

TEST(the_draws_of_a_batch_are_those_of_its_first_record)
{
    struct outcome_job job = contract_job(HEAD CAST BATCH MIXUP);
    struct contract_batches batches;
    uint64_t draw_id = hr__hash64("test.mixup", strlen("test.mixup"), 0);

    job.options.epochs = 1;
    contract_take(&job, &batches);
    CHECK_EQ_INT(batches.count, 9);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_record_id id = {
            .seed = job.options.seed, .position = 7 * b, .index = 7 * b};
        struct hr_field_view values = contract_field(batches.items[b], "value");
        int64_t records = values.dims[0];
        struct hr_rng rng;
        struct draw d;

        hr__record_rng(&id, draw_id, &rng);
        d = draw_of(&rng, 0.5, records);
        for (int64_t i = 0; i < records; i++) {
            float own = (float)(7 * (int64_t)b + i);
            float other = (float)(7 * (int64_t)b + (i + d.shift) % records);

            CHECK_NEAR(((const float *)values.data)[i],
                       (1 - d.part) * own + d.part * other, 0);
        }
    }
    contract_drop(&batches);
}

TEST(single_records_are_refused)
{
    struct outcome_job job = contract_job(HEAD CAST MIXUP BATCH);
    struct outcome *o = outcome_run(&job);

    CHECK_ERR(HR_ERR_TYPE, o->code);
    CHECK_HAS(o->error.message, "is no batch of float32");
    outcome_free(o);
}
