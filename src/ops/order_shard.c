/*
 * order.shard - this rank's share of the records.
 *
 * Rank r of w takes positions r, r + w, r + 2w, ..., so that w ranks together visit the
 * epoch in its order. Neither rank nor world changes any record, so the fingerprint
 * includes neither.
 */
#include "op/share.h"
#include "ops/ordinal.h"

struct shard {
    int64_t rank, world;
    int even;
};

static const char *const evens[] = {
    [HR_EVEN_NONE] = "none",
    [HR_EVEN_DROP] = "drop",
    [HR_EVEN_REPEAT] = "repeat",
    NULL,
};

static const struct hr_param shard_params[] = {
    HR_P_INT(struct shard, rank, .required = true, HR_RANGE(0, 1000000),
             .not_identity = true, .help = "number of this process, from 0"),
    HR_P_INT(struct shard, world, .required = true, HR_RANGE(1, 1000000),
             .not_identity = true, .help = "number of processes that divide the records"),
    HR_P_ENUM(struct shard, even, .fallback = "none", .names = evens,
              .help =
                  "if the records do not divide evenly: none (some ranks get one more), "
                  "drop the rest, or repeat records from the beginning"),
};

static uint64_t shard_count(const void *params, const void *state, uint64_t n)
{
    const struct shard *p = params;

    (void)state;
    return hr__share_count(n, (uint64_t)p->rank, (uint64_t)p->world,
                           (enum hr_even)p->even);
}

static enum hr_err shard_infer(struct hr_infer *infer)
{
    const struct shard *p = infer->params;

    if (p->rank >= p->world)
        return hr__infer_fail(infer, "rank", HR_ERR_RANGE,
                              "rank %lld of a world of %lld: ranks count from 0",
                              (long long)p->rank, (long long)p->world);
    if (infer->output->records >= 0)
        infer->output->records =
            (int64_t)shard_count(p, NULL, (uint64_t)infer->output->records);
    return HR_OK;
}

static uint64_t shard_map(const void *params, void *state, uint64_t n, uint64_t at,
                          struct hr_record_id *id, uint64_t draw_id)
{
    const struct shard *p = params;

    (void)state, (void)id, (void)draw_id;
    return (at * (uint64_t)p->world + (uint64_t)p->rank) % n;
}

static void shard_share(const void *params, uint64_t *ret_rank, uint64_t *ret_world)
{
    const struct shard *p = params;

    *ret_rank = (uint64_t)p->rank;
    *ret_world = (uint64_t)p->world;
}

static enum hr_err
shard_add(void *sequencer, struct hr_sequence_record *record,
          enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct hr_ordinal *o = sequencer;
    const struct shard *p = o->params;

    (void)record, (void)error;
    *ret_verdict = o->next++ % (uint64_t)p->world == (uint64_t)p->rank ? HR_SEQUENCE_PASS
                                                                       : HR_SEQUENCE_DROP;
    return HR_OK;
}

const struct hr_op hr_op_order_shard = {
    .name = "order.shard",
    .summary = "this process's share of the records",
    .doc =
        "Every rank must use the same graph and seed. After an op that drops records "
        "the epoch's length is unknown: shares may differ by one whatever `even` says, "
        "and every rank runs all records up to here.",
    .version = 1,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS | HR_TRAIT_SHARDS,
    HR_PARAMS(shard_params, struct shard),
    .infer = shard_infer,
    .order.count = shard_count,
    .order.map = shard_map,
    .order.share = shard_share,
    HR_ORDINAL,
    .sequence.add = shard_add,
};
