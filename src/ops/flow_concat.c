/*
 * flow.concat - the records of several inputs, one input after the other.
 */
#include "op/op.h"

struct concat {
    char unused;
};

static enum hr_err concat_count(const void *params, const struct hr_merge_inputs *inputs,
                                uint64_t *ret_count, struct hr_error *error)
{
    uint64_t count = 0;

    (void)params;
    for (size_t i = 0; i < inputs->count; i++)
        count += inputs->counts[i];
    if (count >= HR_COUNT_UNKNOWN)
        return hr__fail(error, HR_ERR_LIMIT, "its inputs have too many records");
    *ret_count = count;
    return HR_OK;
}

static size_t concat_map(const void *params, const struct hr_merge_inputs *inputs,
                         uint64_t n, uint64_t passes, uint64_t at,
                         struct hr_record_id *id, uint64_t draw_id, uint64_t *ret_at)
{
    size_t input = 0;

    (void)params, (void)n, (void)passes, (void)id, (void)draw_id;
    while (input + 1 < inputs->count && at >= inputs->counts[input])
        at -= inputs->counts[input++];
    *ret_at = at;
    return input;
}

const struct hr_op hr_op_flow_concat = {
    .name = "flow.concat",
    .summary = "the records of several inputs, one input after the other",
    .doc =
        "The result is like one source: shuffle, split, take, shard and resume see all "
        "records. All inputs must have the same fields, of the same types, in any order; "
        "sizes may differ, and so do class numbers: inputs that number classes by their "
        "own folders give one number to different classes unless they name the same "
        "`classes`. How many records each has must be known beforehand: filters, "
        "expansions and batches come after it. What is done to one input only, such as "
        "a resize, comes before it. Errors and the ledger name a record by its number "
        "and file in its own input; functions and draws after it number the records of "
        "the inputs in turn.",
    .version = 1,
    .kind = HR_OP_MERGE,
    .traits = HR_TRAIT_PURE,
    .inputs_min = 2,
    .inputs_max = 8,
    .params_size = sizeof(struct concat),
    .infer = hr__infer_merge,
    .merge = {.count = concat_count, .map = concat_map},
};
