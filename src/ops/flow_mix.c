/*
 * flow.mix - the records of several inputs, interleaved by weights.
 *
 * Of the first t records floor(t * p) are the first input's, with p its part of the
 * weights in units of 2^-32; the next input has its part of the rest in the same way, and
 * so on. So the numbers of an input's records before any position follow from the
 * position alone, and differ from their shares by less than one for each input before it.
 * Within blocks of 4096 positions a permutation makes the order irregular. Nothing is
 * buffered.
 */
#include "core/perm.h"
#include "op/op.h"

#include <math.h>
#include <stdio.h>

#define BLOCK HR_PERM_TABLE /* the least that needs no table */
#define PARTS ((uint64_t)1 << 32)
#define RECORDS_MAX ((uint64_t)1 << 60)

struct mix {
    struct hr_floats weights;
    int until;
    int64_t seed;
};

enum { UNTIL_FIRST, UNTIL_ALL };
static const char *const untils[] = {[UNTIL_FIRST] = "first", [UNTIL_ALL] = "all", NULL};

static const struct hr_param mix_params[] = {
    HR_P_FLOATS(struct mix, weights, .fallback = "[]", .items_min = 0, .items_max = 8,
                .help = "how often each input is read, in order; they need not add up "
                        "to 1; [] for equal parts"),
    HR_P_ENUM(struct mix, until, .required = true, .names = untils,
              .help = "the epoch ends when the first input is exhausted, or when all "
                      "are: shorter ones then begin again"),
    HR_P_INT(struct mix, seed, .fallback = "-1", HR_RANGE(-1, 9e15),
             .help = "decides the order together with the run's seed; -1: the node's "
                     "name does"),
};

static enum hr_err mix_check(const void *params, struct hr_error *error)
{
    const struct mix *p = params;

    snprintf(error->param, sizeof error->param, "weights");
    for (int i = 0; i < p->weights.count; i++)
        if (!(p->weights.values[i] > 0) || !isfinite(p->weights.values[i]))
            return hr__fail(error, HR_ERR_RANGE,
                            "weight %d is %g: weights are positive and finite; leave "
                            "out an input that is not wanted",
                            i + 1, p->weights.values[i]);
    error->param[0] = '\0';
    return HR_OK;
}

static enum hr_err mix_infer(struct hr_infer *infer)
{
    const struct mix *p = infer->params;

    if (p->weights.count != 0 && (size_t)p->weights.count != infer->input_count)
        return hr__infer_fail(infer, "weights", HR_ERR_ARGUMENT,
                              "%d weights for %zu inputs", p->weights.count,
                              infer->input_count);
    return hr__infer_merge(infer);
}

/* Of what the inputs before it leave, the part of this one, of PARTS. */
static uint64_t part_of(const struct mix *p, size_t input, size_t count)
{
    double rest = 0, part;

    if (input + 1 == count)
        return PARTS;
    if (p->weights.count == 0)
        return PARTS / (count - input);
    for (size_t i = count; i-- > input;)
        rest += p->weights.values[i] / 8; /* no sum is infinite */
    part = floor(p->weights.values[input] / 8 / rest * (double)PARTS + 0.5);
    return part < 1 ? 1 : part > (double)(PARTS - 1) ? PARTS - 1 : (uint64_t)part;
}

static uint64_t times(uint64_t n, uint64_t part)
{
    uint64_t high = n / PARTS, low = n % PARTS;

    return high * part + low * part / PARTS;
}

/* The number of the input's records among the first `n`. */
static uint64_t taken(const struct mix *p, size_t count, size_t input, uint64_t n)
{
    for (size_t i = 0; i < input; i++)
        n -= times(n, part_of(p, i, count));
    return times(n, part_of(p, input, count));
}

/* Whether no input has to begin again; whether all are exhausted. */
static bool fits(const struct mix *p, const struct hr_merge_inputs *in, uint64_t n)
{
    for (size_t i = 0; i < in->count; i++)
        if (taken(p, in->count, i, n) > in->counts[i])
            return false;
    return true;
}

static bool covers(const struct mix *p, const struct hr_merge_inputs *in, uint64_t n)
{
    for (size_t i = 0; i < in->count; i++)
        if (taken(p, in->count, i, n) < in->counts[i])
            return false;
    return true;
}

static enum hr_err mix_count(const void *params, const struct hr_merge_inputs *inputs,
                             uint64_t *ret_count, struct hr_error *error)
{
    const struct mix *p = params;
    uint64_t low = 0, high = 0;

    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->counts[i] == 0)
            return hr__fail(error, HR_ERR_GRAPH, "input %zu has no records: leave it out",
                            i + 1);
        if (inputs->counts[i] > RECORDS_MAX / 16)
            return hr__fail(error, HR_ERR_LIMIT, "input %zu has too many records", i + 1);
        high += inputs->counts[i];
    }
    while (p->until == UNTIL_ALL && !covers(p, inputs, high)) {
        low = high;
        high *= 2;
        if (high > RECORDS_MAX)
            return hr__fail(error, HR_ERR_LIMIT,
                            "all inputs are exhausted only after more than 2^60 records: "
                            "give the smallest weight a larger share");
    }
    while (low < high) { /* the most that fits; the least that covers */
        uint64_t middle = low + (high - low + (p->until == UNTIL_FIRST)) / 2;

        if (p->until == UNTIL_FIRST) {
            if (fits(p, inputs, middle))
                low = middle;
            else
                high = middle - 1;
        } else if (covers(p, inputs, middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    *ret_count = low;
    return HR_OK;
}

static uint64_t
mix_passes(const void *params, const struct hr_merge_inputs *inputs, uint64_t n)
{
    uint64_t most = 1;

    for (size_t i = 0; i < inputs->count; i++) {
        uint64_t records = taken(params, inputs->count, i, n);
        uint64_t passes = (records + inputs->counts[i] - 1) / inputs->counts[i];

        most = passes > most ? passes : most;
    }
    return most;
}

static bool mix_draws_by_params(const void *params)
{
    return ((const struct mix *)params)->seed >= 0;
}

/* Takes the place of a node's draw_id. */
static uint64_t seed_id(int64_t seed)
{
    static const char name[] = "flow.mix seed";

    return hr__hash64(&seed, sizeof seed, hr__hash64(name, sizeof name, 0));
}

/* Permutes the positions of a block. The last one is short: numbers beyond its end are
 * mapped again until one is in it. */
static uint64_t permuted(uint64_t n, uint64_t at, uint64_t key, uint32_t epoch)
{
    uint64_t first = at - at % BLOCK, size = n - first < BLOCK ? n - first : BLOCK;
    struct hr_perm perm;
    struct hr_rng rng;

    hr__rng_init(&rng, key, epoch, first / BLOCK);
    hr__perm_init(&perm, BLOCK, &rng, NULL);
    at -= first;
    do
        at = hr__perm_map(&perm, at);
    while (at >= size);
    return first + at;
}

static size_t mix_map(const void *params, const struct hr_merge_inputs *inputs,
                      uint64_t n, uint64_t passes, uint64_t at, struct hr_record_id *id,
                      uint64_t draw_id, uint64_t *ret_at)
{
    const struct mix *p = params;
    size_t input = 0;

    at = permuted(n, at, id->seed ^ (p->seed >= 0 ? seed_id(p->seed) : draw_id),
                  id->draw_epoch);
    for (; input + 1 < inputs->count; input++) {
        uint64_t part = part_of(p, input, inputs->count), before = times(at, part);

        if (times(at + 1, part) > before) {
            at = before;
            break;
        }
        at -= before;
    }
    id->draw_epoch = (uint32_t)(id->draw_epoch * passes + at / inputs->counts[input]);
    *ret_at = at % inputs->counts[input];
    return input;
}

const struct hr_op hr_op_flow_mix = {
    .name = "flow.mix",
    .summary = "the records of several inputs, interleaved by weights",
    .doc =
        "Each input has its part of any stretch of records, exactly: within a block of "
        "4096 records an input has its share or one record more or less for each input "
        "before it, in random order. Which record comes at which position depends on the "
        "run's seed, the epoch, and `seed` or else the node's name, so a run resumes at "
        "any position, and ranks divide the mix. An input's own records come in its own "
        "order except within a block: shuffle each before it, or the mix after it, which "
        "loses the even spread of the inputs.\n\n"
        "With `until: first` the epoch ends before an input would have to begin again, "
        "so "
        "that the other inputs are not read completely: `first_exhausted` of Hugging "
        "Face's interleave_datasets. With `until: all` every record comes at least once "
        "(`all_exhausted`); shorter inputs are repeated, in another order if they are "
        "shuffled, and random ops draw again. Fields, classes and numbers of records are "
        "as in flow.concat.",
    .version = 1,
    .kind = HR_OP_MERGE,
    .traits = HR_TRAIT_RANDOM,
    .inputs_min = 2,
    .inputs_max = 8,
    HR_PARAMS(mix_params, struct mix),
    .check = mix_check,
    .infer = mix_infer,
    .merge = {.count = mix_count,
              .map = mix_map,
              .passes = mix_passes,
              .draws_by_params = mix_draws_by_params},
};
