/*
 * opt/cedar.c - cedar's passes in its sequence: order, cache, drivers, offload.
 */
#include "opt/cedar.h"

#include <math.h>
#include <string.h>

#include "opt/cedar_passes.h"

#define DRIVER_SCALING 0.8   /* what a further driver adds */
#define DRIVER_BYTES 1e8     /* that one process can receive in a second */
#define DRIVER_SAMPLES 100.0 /* slower pipelines may have drivers in any case */
#define CPUS 8

void hr__cedar_options_init(struct hr_cedar_options *options)
{
    *options = (struct hr_cedar_options){.cpus = CPUS,
                                         .reorder = true,
                                         .offload = true,
                                         .fusion = true,
                                         .prefetch = true,
                                         .drivers = true,
                                         .disk_free = HUGE_VAL};
}

/* ---- order and cache ---- */

static enum hr_err
choose_order(const struct hr_cedar_model *model, struct hr_cedar_choice *choice,
             struct hr_cedar_result *result, struct hr_error *reterr)
{
    struct hr_order_chain chain = hr__cedar_chain(model);
    struct hr_cedar_path path;
    struct hr_order order = {.best = false};

    for (size_t i = 0; i < model->count; i++)
        choice->order[i] = (uint8_t)i;
    hr__cedar_path(model, choice->order, -1, &path);
    result->written_ms = path.total_ms;
    HR_TRY(hr__order_count(&chain, &result->orders, reterr));
    result->best = !model->options->reorder;
    if (model->options->reorder) {
        HR_TRY(hr__order_cedar(&chain, &order, reterr));
        for (size_t i = 1; i < model->count; i++)
            choice->order[i] = (uint8_t)(order.steps[i - 1] + 1);
        result->best = order.best;
    }
    hr__cedar_path(model, choice->order, -1, &path);
    result->order_ms = path.total_ms;
    return HR_OK;
}

static void
choose_cache(const struct hr_cedar_model *model, struct hr_cedar_choice *choice)
{
    struct hr_cedar_path path;
    double least;

    choice->cache = -1;
    hr__cedar_path(model, choice->order, -1, &path);
    least = path.total_ms;
    for (size_t i = 0; i < model->count && model->options->cache_samples > 0; i++) {
        if (!hr__cedar_may_cache(model, choice->order, i))
            continue;
        hr__cedar_path(model, choice->order, (int)i, &path);
        if (path.total_ms < least) {
            least = path.total_ms;
            choice->cache = (int)i;
        }
    }
}

/* cedar compares each slice with and without the cache, and drops the cache if that is
 * dearer for one. */
static void
review_cache(const struct hr_cedar_model *model, struct hr_cedar_choice *choice)
{
    struct hr_cedar_places *places = &choice->places;
    struct hr_cedar_path with, without;
    bool keep = true;

    if (choice->cache < 0)
        return;
    hr__cedar_path(model, choice->order, choice->cache, &with);
    hr__cedar_path(model, choice->order, -1, &without);
    for (size_t i = 0; i < places->count; i++) {
        size_t from = places->slices[i].from, to = places->slices[i].to;
        double ms[2] = {with.total_ms, without.total_ms};

        ms[0] += hr__cedar_slice_ms(model, &with, from, to, choice->variant);
        ms[1] += hr__cedar_slice_ms(model, &without, from, to, choice->variant);
        for (size_t k = from; k < to; k++) {
            ms[0] -= with.ms[k];
            ms[1] -= without.ms[k];
        }
        keep = keep && ms[0] <= ms[1];
    }
    if (keep)
        return;
    choice->cache = -1;
    places->ms = without.total_ms;
    for (size_t i = 0; i < places->count; i++) {
        size_t from = places->slices[i].from, to = places->slices[i].to;

        places->ms += hr__cedar_slice_ms(model, &without, from, to, choice->variant);
        for (size_t k = from; k < to; k++)
            places->ms -= without.ms[k];
    }
}

/* ---- drivers ---- */

static int clamp(double value, int least, int most)
{
    return value <= least ? least : value >= most ? most : (int)value;
}

static void
choose_drivers(const struct hr_cedar_model *model, struct hr_cedar_choice *choice)
{
    const struct hr_cedar_options *options = model->options;
    double limit = DRIVER_BYTES * (options->offload ? 0.95 : 0.8), rate;
    struct hr_cedar_path path;

    choice->drivers = 1;
    if (!options->drivers)
        return;
    hr__cedar_path(model, choice->order, choice->cache, &path);
    rate = 1000 / path.total_ms;
    choice->drivers_refused =
        rate * path.bytes_out[model->count - 1] > limit && rate > DRIVER_SAMPLES;
    if (choice->drivers_refused)
        return;
    choice->drivers = options->cpus;
    if (options->demand > 0)
        choice->drivers =
            clamp(ceil(options->demand / (DRIVER_SCALING * rate)), 1, options->cpus);
}

/* ---- backends ---- */

bool hr__cedar_is_tf(const struct hr_cedar_stats *stats)
{
    bool any = false;

    for (size_t i = 1; i < stats->pipe_count; i++) {
        const struct hr_cedar_pipe *pipe = &stats->pipes[i];

        if (pipe->batches)
            continue;
        if (!pipe->tf || pipe->py_function)
            return false;
        any = true;
    }
    return any;
}

/* With fusion the one that all pipes can share, else the one that gains most. */
static enum hr_cedar_variant remote(const struct hr_cedar_model *model)
{
    static const enum hr_cedar_variant backends[] = {HR_CEDAR_RAY, HR_CEDAR_TF_RAY,
                                                     HR_CEDAR_SMP};
    const struct hr_cedar_stats *stats = model->stats;
    enum hr_cedar_variant best = HR_CEDAR_NONE;
    double most = 0;

    if (model->options->fusion) {
        for (size_t i = 1; i < stats->pipe_count; i++)
            if (stats->pipes[i].tf)
                return HR_CEDAR_TF_RAY;
        return HR_CEDAR_RAY;
    }
    for (size_t b = 0; b < sizeof backends / sizeof backends[0]; b++) {
        double gain = 0;

        for (size_t i = 1; i < stats->pipe_count; i++)
            gain += fmax(0, stats->pipes[i].rates[backends[b]] - stats->rate);
        if (gain > most) {
            most = gain;
            best = backends[b];
        }
    }
    return best;
}

static void
choose_variant(const struct hr_cedar_model *model, struct hr_cedar_choice *choice)
{
    const struct hr_cedar_options *options = model->options;

    choice->variant = HR_CEDAR_NONE;
    if (options->offload)
        choice->variant = remote(model);
    else if (options->fusion && hr__cedar_is_tf(model->stats))
        choice->tf_calls = true;
    else if (options->fusion && choice->drivers_refused)
        choice->variant = HR_CEDAR_SMP;
}

/* ---- TensorFlow's own parallelism ---- */

static void choose_tf(const struct hr_cedar_model *model, struct hr_cedar_choice *choice)
{
    const struct hr_cedar_stats *stats = model->stats;
    double fused_ms = stats->tf_rate > 0 ? 1000 / stats->tf_rate : HUGE_VAL;
    struct hr_cedar_path path;

    if (choice->tf_calls)
        choice->in_source = stats->pipes[0].tf;
    else
        choice->in_source = model->options->fusion && hr__cedar_is_tf(stats) &&
                            stats->pipes[0].tf && choice->drivers_refused &&
                            fused_ms < choice->places.ms;
    if (choice->in_source) {
        choice->cache = -1;
        hr__cedar_path(model, choice->order, -1, &path);
        choice->places =
            (struct hr_cedar_places){.ms = stats->tf_rate > 0 ? fused_ms : path.total_ms};
    }
    if (hr__cedar_is_tf(stats) && choice->places.count == 0) {
        choice->drivers = 1;
        choice->tf_calls = true;
    }
}

enum hr_err
hr__cedar_optimize(const struct hr_cedar_stats *stats,
                   const struct hr_cedar_options *options,
                   struct hr_cedar_result *ret_result, struct hr_error *reterr)
{
    struct hr_cedar_result result = {.cache_after = -1};
    struct hr_cedar_choice choice = {.cache = -1};
    struct hr_cedar_model model;
    struct hr_cedar_path path;

    HR_TRY(hr__cedar_model(stats, options, &model, reterr));
    HR_TRY(choose_order(&model, &choice, &result, reterr));
    choose_cache(&model, &choice);
    choose_drivers(&model, &choice);
    choose_variant(&model, &choice);
    hr__cedar_path(&model, choice.order, choice.cache, &path);
    hr__cedar_place(&model, &path, choice.variant, &choice.places);
    review_cache(&model, &choice);
    if (options->joint)
        hr__cedar_choose(&model, result.orders, &choice, &result.best);
    choose_tf(&model, &choice);
    hr__cedar_stages(&model, &choice, &result);
    memcpy(result.order, choice.order, sizeof result.order);
    result.cache_after = choice.cache;
    result.cost_ms = choice.places.ms;
    result.drivers_refused = choice.drivers_refused;
    result.drivers = choice.drivers;
    result.slices = choice.places.count;
    *ret_result = result;
    return HR_OK;
}
