/*
 * flow.interleave - the records of several inputs in turns, a block of each.
 *
 * While all inputs that are left can fill their blocks, a position says by division which
 * turn it is in, whose, and where. The turn in which some input ends is walked through.
 * Each input ends once, so that finding a record takes at most as many rounds as there
 * are inputs. Nothing is buffered.
 */
#include "op/op.h"

struct interleave {
    int64_t block;
};

static const struct hr_param interleave_params[] = {
    HR_P_INT(struct interleave, block, .fallback = "1", HR_RANGE(1, 1LL << 40),
             .unit = "records",
             .help = "consecutive records of an input before it is the next one's turn"),
};

static enum hr_err
interleave_count(const void *params, const struct hr_merge_inputs *inputs,
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

/* Turns, after the first `done`, in which each of the *ret_left inputs that have records
 * left fills its block. */
static uint64_t full_turns(const struct hr_merge_inputs *inputs, uint64_t block,
                           uint64_t done, uint64_t *ret_left)
{
    uint64_t turns = UINT64_MAX;

    *ret_left = 0;
    for (size_t i = 0; i < inputs->count; i++) {
        uint64_t whole = inputs->counts[i] / block;

        if (inputs->counts[i] <= done * block)
            continue;
        ++*ret_left;
        turns = whole - done < turns ? whole - done : turns;
    }
    return turns;
}

/* Whose record *at is, counted from the beginning of turn `turn`; *at becomes its number
 * in the input. SIZE_MAX if it is in a later turn: then *at is counted from the next one.
 */
static size_t
in_turn(const struct hr_merge_inputs *inputs, uint64_t block, uint64_t turn, uint64_t *at)
{
    for (size_t i = 0; i < inputs->count; i++) {
        uint64_t first = turn * block, share;

        if (inputs->counts[i] <= first)
            continue;
        share = inputs->counts[i] - first < block ? inputs->counts[i] - first : block;
        if (*at < share) {
            *at += first;
            return i;
        }
        *at -= share;
    }
    return SIZE_MAX;
}

static size_t interleave_map(const void *params, const struct hr_merge_inputs *inputs,
                             uint64_t n, uint64_t passes, uint64_t at,
                             struct hr_record_id *id, uint64_t draw_id, uint64_t *ret_at)
{
    uint64_t block = (uint64_t)((const struct interleave *)params)->block, turn = 0;

    (void)n, (void)passes, (void)id, (void)draw_id;
    for (;;) {
        uint64_t left, turns = full_turns(inputs, block, turn, &left), skipped;
        size_t input;

        skipped = at / block / left < turns ? at / block / left : turns;
        at -= skipped * block * left;
        turn += skipped;
        input = in_turn(inputs, block, turn, &at);
        if (input != SIZE_MAX) {
            *ret_at = at;
            return input;
        }
        turn++;
    }
}

const struct hr_op hr_op_flow_interleave = {
    .name = "flow.interleave",
    .summary = "the records of several inputs in turns, a block of each",
    .doc =
        "`block` records of the first input, then as many of the second, and so on, "
        "again "
        "and again, as tf.data's `interleave` does with a `cycle_length` of all inputs. "
        "An input without records left is passed over, so that every record comes once. "
        "Each input keeps its order. flow.mix takes records in given proportions "
        "instead. "
        "A run resumes at any position, and ranks divide the result. Fields, classes and "
        "numbers of records are as in flow.concat.",
    .version = 1,
    .kind = HR_OP_MERGE,
    .traits = HR_TRAIT_PURE,
    .inputs_min = 2,
    .inputs_max = 8,
    HR_PARAMS(interleave_params, struct interleave),
    .infer = hr__infer_merge,
    .merge = {.count = interleave_count, .map = interleave_map, .alternates = true},
};
