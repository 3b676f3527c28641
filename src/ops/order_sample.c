/*
 * order.sample - draws records by weights, with or without replacement.
 *
 * With replacement: Walker's alias method in Vose's form: a record and, with some chance,
 * another one in its stead, for two numbers of the stream that belongs to (seed, epoch,
 * position). Nothing is buffered, and any thread can map any position. The table has 8
 * bytes per record; chances are rounded to 2^-32. Random ops treat each draw of a record
 * differently: draw_epoch becomes a hash of the epoch and the position.
 *
 * Without: ops/subset.h, which finds all draws of an epoch together.
 */
#include "codec/npy.h"
#include "core/alloc.h"
#include "core/file.h"
#include "op/op.h"
#include "ops/subset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct sample {
    int64_t count, seed;
    const char *weight, *balance, *weights;
    bool replacement;
};

static const struct hr_param sample_params[] = {
    HR_P_INT(struct sample, count, .fallback = "0", HR_RANGE(0, 1e15), .unit = "records",
             .help = "number of draws in an epoch; 0: as many as there are records"),
    HR_P_BOOL(struct sample, replacement, .fallback = "true",
              .help =
                  "a record may be drawn again; false: each at most once in an epoch"),
    HR_P_STRING(struct sample, weight,
                .help = "the key that holds each record's weight, a number that is "
                        "known before the record is read, such as a column"),
    HR_P_STRING(struct sample, balance,
                .help = "the key whose values are drawn equally often, such as label: a "
                        "record's weight is 1 / the number of records with its value"),
    HR_P_PATH(struct sample, weights, .not_identity = true,
              .help = "a .npy file with one weight per record"),
    HR_P_INT(struct sample, seed, .fallback = "-1", HR_RANGE(-1, 9e15),
             .help = "decides the draws together with the run's seed; -1: the node's "
                     "name does"),
};

struct cell {
    uint32_t keep; /* the chance of the cell's own record, times 2^32 - 1 */
    uint32_t other;
};

struct table {
    uint64_t count;
    int64_t seed;
    struct cell *cells;       /* with replacement */
    struct hr_subset *subset; /* without */
};

static enum hr_err sample_check(const void *params, struct hr_error *error)
{
    const struct sample *p = params;

    if ((p->weight != NULL) + (p->balance != NULL) + (p->weights != NULL) <= 1)
        return HR_OK;
    snprintf(error->param, sizeof error->param, "%s",
             p->weights != NULL ? "weights" : "balance");
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "give one of weight, balance and weights; without any, all records "
                    "are equally likely");
}

static uint64_t sample_count(const void *params, const void *state, uint64_t n)
{
    uint64_t count = (uint64_t)((const struct sample *)params)->count;

    (void)state;
    return n == 0 || count == 0 ? n : count;
}

static enum hr_err sample_infer(struct hr_infer *infer)
{
    if (infer->output->records >= 0)
        infer->output->records =
            (int64_t)sample_count(infer->params, NULL, (uint64_t)infer->output->records);
    return HR_OK;
}

/* ---- weights ---- */

static enum hr_err
check_weight(const char *param, uint64_t at, double weight, struct hr_error *error)
{
    if (weight >= 0 && isfinite(weight))
        return HR_OK;
    snprintf(error->param, sizeof error->param, "%s", param);
    return hr__fail(error, HR_ERR_RANGE,
                    "the weight of record %llu is %g: weights are finite and not "
                    "negative",
                    (unsigned long long)at, weight);
}

static enum hr_err refuse_weight(const struct hr_keys *keys, const char *name,
                                 uint64_t at, enum hr_err code, struct hr_error *error)
{
    snprintf(error->param, sizeof error->param, "weight");
    if (code == HR_ERR_NOT_FOUND)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "record %llu of '%s' has no \"%s\": give it a weight, 0 to leave "
                        "it out",
                        (unsigned long long)at, keys->of, name);
    hr__error_prefix(error,
                     "record %llu of '%s' is damaged, so that its \"%s\" is not known",
                     (unsigned long long)at, keys->of, name);
    return code;
}

static enum hr_err by_key(const struct hr_open *open, double *weights)
{
    const struct sample *p = open->params;
    enum hr_err code = HR_OK;
    struct hr_str key;

    hr__str_init(&key);
    for (uint64_t i = 0; code == HR_OK && i < open->keys[0]->count; i++) {
        code = open->keys[0]->get(open->keys[0], i, &key, open->error);
        if (code == HR_ERR_NOT_FOUND || code == HR_ERR_FORMAT)
            code = refuse_weight(open->keys[0], p->weight, i, code, open->error);
        if (code != HR_OK)
            break;
        if (hr__double_parse(hr__str_text(&key), key.length, &weights[i])) {
            code = check_weight("weight", i, weights[i], open->error);
            continue;
        }
        snprintf(open->error->param, sizeof open->error->param, "weight");
        code = hr__fail(open->error, HR_ERR_TYPE,
                        "the %s of record %llu is \"%.60s\", not a number", p->weight,
                        (unsigned long long)i, hr__str_text(&key));
    }
    hr__str_finish(&key);
    return code;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static uint64_t first_not_below(const uint64_t *sorted, uint64_t n, uint64_t value)
{
    uint64_t low = 0;

    while (n > 0) {
        uint64_t half = n / 2;

        if (sorted[low + half] < value) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* By hashes of the keys. */
static enum hr_err balance(const struct hr_open *open, double *weights)
{
    uint64_t n = open->keys[0]->count;
    uint64_t *hashes = hr__calloc(2 * n + 1, sizeof *hashes);
    enum hr_err code = HR_OK;
    struct hr_str key;

    if (hashes == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for weights");
    hr__str_init(&key);
    for (uint64_t i = 0; code == HR_OK && i < n; i++) {
        code = open->keys[0]->get(open->keys[0], i, &key, open->error);
        if (code == HR_ERR_NOT_FOUND || code == HR_ERR_FORMAT)
            code = HR_OK; /* known by something all the same */
        if (code == HR_OK)
            hashes[i] = hashes[n + i] = hr__hash64(hr__str_text(&key), key.length, 0);
    }
    hr__str_finish(&key);
    if (code == HR_OK && n > 0)
        qsort(hashes, n, sizeof *hashes, compare);
    for (uint64_t i = 0; code == HR_OK && i < n; i++) {
        uint64_t hash = hashes[n + i], from = first_not_below(hashes, n, hash);
        uint64_t to = hash == UINT64_MAX ? n : first_not_below(hashes, n, hash + 1);

        weights[i] = 1.0 / (double)(to - from);
    }
    hr__free(hashes);
    return code;
}

static enum hr_err convert(const struct hr_npy *npy, const char *from, const char *path,
                           uint64_t n, double *weights, struct hr_error *error)
{
    for (uint64_t i = 0; i < n; i++) {
        union {
            double f64;
            float f32;
            int64_t i64;
            int32_t i32;
            uint8_t u8;
        } one = {0};

        if (!hr__npy_convert(npy, from + i * npy->element_bytes, &one, 1))
            return hr__fail(error, HR_ERR_RANGE, "%s: a weight is too large", path);
        switch (npy->dtype) {
        case HR_F64:
            weights[i] = one.f64;
            break;
        case HR_F32:
            weights[i] = (double)one.f32;
            break;
        case HR_I64:
            weights[i] = (double)one.i64;
            break;
        case HR_I32:
            weights[i] = one.i32;
            break;
        case HR_U8:
            weights[i] = one.u8;
            break;
        default:
            return hr__fail(error, HR_ERR_TYPE,
                            "%s: weights are float64, float32, int64, int32 or uint8",
                            path);
        }
        HR_TRY(check_weight("weights", i, weights[i], error));
    }
    return HR_OK;
}

static enum hr_err
by_file(const char *path, uint64_t n, double *weights, struct hr_error *error)
{
    struct hr_npy npy;
    size_t bytes;
    void *map;
    enum hr_err code;

    snprintf(error->param, sizeof error->param, "weights");
    HR_TRY(hr__file_map(path, &map, &bytes, error));
    code = hr__npy_read(map, bytes, bytes, path, &npy, error);
    if (code == HR_OK && (npy.ndim != 1 || (uint64_t)npy.dims[0] != n))
        code = hr__fail(error, HR_ERR_SHAPE,
                        "%s: there must be one weight for each of the %llu records in "
                        "an array of one dimension; it has %d dimensions, the first of "
                        "%lld",
                        path, (unsigned long long)n, npy.ndim,
                        npy.ndim > 0 ? (long long)npy.dims[0] : 0);
    if (code == HR_OK)
        code = convert(&npy, (const char *)map + npy.start, path, n, weights, error);
    if (code == HR_OK)
        error->param[0] = '\0';
    (void)munmap(map, bytes);
    return code;
}

static enum hr_err find_weights(const struct hr_open *open, double *weights)
{
    const struct sample *p = open->params;

    if (p->weight != NULL)
        return by_key(open, weights);
    if (p->balance != NULL)
        return balance(open, weights);
    if (p->weights != NULL)
        return by_file(p->weights, open->keys[0]->count, weights, open->error);
    for (uint64_t i = 0; i < open->keys[0]->count; i++)
        weights[i] = 1;
    return HR_OK;
}

/* ---- without replacement ---- */

static enum hr_err choose(const struct hr_open *open, struct table *t)
{
    const struct sample *p = open->params;
    bool weighted = p->weight != NULL || p->balance != NULL || p->weights != NULL;
    double *weights = weighted ? hr__calloc(t->count + 1, sizeof *weights) : NULL;
    enum hr_err code = HR_OK;

    if (weighted && weights == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for weights");
    if (weighted)
        code = find_weights(open, weights);
    if (code != HR_OK) {
        hr__free(weights);
        return code;
    }
    code = hr__subset_open(weights, t->count, sample_count(p, NULL, t->count), &t->subset,
                           open->error);
    if (code == HR_ERR_ARGUMENT)
        snprintf(open->error->param, sizeof open->error->param, "count");
    return code;
}

/* ---- the table ---- */

/* Divides by the greatest first, so that no sum is infinite. Turns weights into the mean
 * number of cells that each record fills. */
static bool scale(double *weights, uint64_t n)
{
    double most = 0, sum = 0;

    for (uint64_t i = 0; i < n; i++)
        most = weights[i] > most ? weights[i] : most;
    if (most <= 0)
        return false;
    for (uint64_t i = 0; i < n; i++)
        sum += weights[i] /= most;
    for (uint64_t i = 0; i < n; i++)
        weights[i] = weights[i] / sum * (double)n;
    return true;
}

/* `todo` has n entries: cells to be filled up from the left, those that give from the
 * right. A cell that rounding leaves over keeps its own record, which has a weight. */
static void make_cells(double *fill, uint32_t *todo, uint64_t n, struct cell *cells)
{
    uint64_t low = 0, high = n;

    for (uint64_t i = 0; i < n; i++) {
        cells[i] = (struct cell){UINT32_MAX, (uint32_t)i};
        if (fill[i] < 1)
            todo[low++] = (uint32_t)i;
        else
            todo[--high] = (uint32_t)i;
    }
    while (low > 0 && high < n) {
        uint32_t less = todo[--low], more = todo[high];

        cells[less].keep = (uint32_t)(fill[less] * (double)UINT32_MAX);
        cells[less].other = more;
        fill[more] -= 1 - fill[less];
        if (fill[more] < 1) {
            high++;
            todo[low++] = more;
        }
    }
}

static void sample_close(void *state)
{
    struct table *t = state;

    hr__subset_close(t->subset);
    hr__free(t->cells);
    hr__free(t);
}

static enum hr_err fill(const struct hr_open *open, struct table *t)
{
    uint64_t n = t->count;
    double *weights = hr__calloc(n + 1, sizeof *weights);
    uint32_t *todo = hr__calloc(n + 1, sizeof *todo);
    enum hr_err code = HR_OK;

    t->cells = hr__calloc(n + 1, sizeof *t->cells);
    if (weights == NULL || todo == NULL || t->cells == NULL)
        code = hr__fail(open->error, HR_ERR_MEMORY, "out of memory for weights");
    if (code == HR_OK)
        code = find_weights(open, weights);
    if (code == HR_OK && n > 0 && !scale(weights, n))
        code = hr__fail(open->error, HR_ERR_ARGUMENT,
                        "all weights are 0, so no record can be drawn");
    if (code == HR_OK)
        make_cells(weights, todo, n, t->cells);
    hr__free(weights);
    hr__free(todo);
    return code;
}

static enum hr_err sample_open(const struct hr_open *open, void **ret_state)
{
    const struct sample *p = open->params;
    struct table *t;
    enum hr_err code;

    if (open->keys[0]->count >= UINT32_MAX)
        return hr__fail(open->error, HR_ERR_LIMIT,
                        "fewer than %lu records can be sampled, and these are %llu",
                        (unsigned long)UINT32_MAX,
                        (unsigned long long)open->keys[0]->count);
    t = hr__calloc(1, sizeof *t);
    if (t == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    t->count = open->keys[0]->count;
    t->seed = p->seed;
    code = p->replacement ? fill(open, t) : choose(open, t);
    if (code == HR_OK)
        *ret_state = t;
    else
        sample_close(t);
    return code;
}

static void
sample_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct table *t = state;

    (void)params;
    if (t->cells != NULL)
        hr__hasher_add(hasher, t->cells, t->count * sizeof *t->cells);
    else if (hr__subset_weights(t->subset) != NULL)
        hr__hasher_add(hasher, hr__subset_weights(t->subset), t->count * sizeof(double));
}

/* ---- draws ---- */

static const char *sample_by(const void *params, const char **ret_param)
{
    const struct sample *p = params;

    *ret_param = p->weight != NULL ? "weight" : "balance";
    return p->weight != NULL ? p->weight : p->balance;
}

static bool sample_draws_by_params(const void *params)
{
    return ((const struct sample *)params)->seed >= 0;
}

static bool sample_same(const void *state, const void *other)
{
    const struct table *a = state, *b = other;

    if (a->seed < 0 || a->seed != b->seed || a->count != b->count ||
        (a->cells == NULL) != (b->cells == NULL))
        return false;
    return a->cells != NULL ? memcmp(a->cells, b->cells, a->count * sizeof *a->cells) == 0
                            : hr__subset_same(a->subset, b->subset);
}

/* Takes the place of a node's draw_id. */
static uint64_t seed_id(int64_t seed)
{
    static const char name[] = "order.sample seed";

    return hr__hash64(&seed, sizeof seed, hr__hash64(name, sizeof name, 0));
}

static uint64_t sample_map(const void *params, void *state, uint64_t n, uint64_t at,
                           struct hr_record_id *id, uint64_t draw_id)
{
    const struct sample *p = params;
    const struct table *t = state;
    uint64_t seed = id->seed ^ (p->seed >= 0 ? seed_id(p->seed) : draw_id);
    uint64_t draw[2] = {id->draw_epoch, at}, cell;
    struct hr_rng rng;

    (void)n;
    if (t->subset != NULL)
        return hr__subset_at(t->subset, seed, id->draw_epoch, at);
    hr__rng_init(&rng, seed, id->draw_epoch, at);
    cell = hr__rng_below(&rng, t->count);
    id->draw_epoch = (uint32_t)hr__hash64(draw, sizeof draw, 0) & ~HR_EPOCH_SUBSTITUTE;
    return hr__rng_u32(&rng) < t->cells[cell].keep ? cell : t->cells[cell].other;
}

const struct hr_op hr_op_order_sample = {
    .name = "order.sample",
    .summary = "draw records by weights, with or without replacement",
    .doc =
        "Each of the `count` records of an epoch is drawn from all records, so some come "
        "several times and some not at all, with the chances that their weights give, as "
        "torch's WeightedRandomSampler does with replacement. Random ops after it treat "
        "each draw of a record differently. The draws depend on the run's seed, the "
        "epoch, the position, and `seed` or else the node's name, so a run resumes at "
        "any position, and ranks divide them.\n\n"
        "With `replacement: false`, no record comes twice in an epoch: each draw is one "
        "of "
        "the records that are left, with the chances that their weights give, as "
        "torch.multinomial does it. Without weights this is a random subset, another one "
        "in every epoch, in random order; order.split gives one that stays. The draws of "
        "an epoch are found together, when its first record is read, in 0.1 "
        "to 0.4 us for each record that there is, the more are drawn the longer. It "
        "takes 8 bytes per record if there are weights, "
        "and "
        "32 bytes for each that is drawn. The last four epochs' draws are kept: a "
        "shuffle "
        "of more passes of order.repeat would find them again for every record, and is "
        "not needed, since the draws are in random order. More draws than records with a "
        "weight above 0 are refused.\n\n"
        "Weights need not add up to 1. They come from a `.npy` file (`weights`, in the "
        "order of the records that this op reads), from a key that is known before a "
        "record is read (`weight`), or make the values of a key equally frequent: "
        "`balance: label` draws all classes equally often. As with order.split, a key is "
        "a field that the records have here, of the source or made by steps of what the "
        "source knows. A weight of 0 leaves a record out, and one that is missing or "
        "damaged is refused. The op comes before any shuffle, "
        "which it makes unnecessary, and before filters and batches.",
    .version = 1,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(sample_params, struct sample),
    .check = sample_check,
    .infer = sample_infer,
    .open = sample_open,
    .close = sample_close,
    .identity = sample_identity,
    .order = {.count = sample_count,
              .map = sample_map,
              .by = sample_by,
              .same = sample_same,
              .draws_by_params = sample_draws_by_params},
};
