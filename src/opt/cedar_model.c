/*
 * opt/cedar_model.c - see cedar_model.h.
 */
#include "opt/cedar_model.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define CPUS_MAX (1 << 20)

const char *const hr__cedar_variants[HR_CEDAR_VARIANTS] = {
    [HR_CEDAR_NONE] = "",
    [HR_CEDAR_INPROCESS] = "INPROCESS",
    [HR_CEDAR_MULTIPROCESS] = "MULTIPROCESS",
    [HR_CEDAR_MULTITHREADED] = "MULTITHREADED",
    [HR_CEDAR_SMP] = "SMP",
    [HR_CEDAR_RAY] = "RAY",
    [HR_CEDAR_TF] = "TF",
    [HR_CEDAR_TF_RAY] = "TF_RAY",
    [HR_CEDAR_RAY_DS] = "RAY_DS",
};

/* ---- checks ---- */

/* False for NaN. */
static bool is_amount(double value)
{
    return value >= 0 && value <= 1e18;
}

static enum hr_err
check_pipe(const struct hr_cedar_stats *stats, size_t i, struct hr_error *reterr)
{
    const struct hr_cedar_pipe *pipe = &stats->pipes[i];

    if (!is_amount(pipe->latency_ns) || !is_amount(pipe->bytes_in) ||
        !is_amount(pipe->bytes_out))
        return hr__fail(reterr, HR_ERR_RANGE,
                        "pipe '%s': a number is negative or too large: %g ns, %g bytes "
                        "in, %g bytes out",
                        pipe->name, pipe->latency_ns, pipe->bytes_in, pipe->bytes_out);
    if (i > 0 && !(pipe->bytes_in >= 1e-9))
        return hr__fail(reterr, HR_ERR_RANGE,
                        "pipe '%s' reads no bytes; only the source, the first pipe, may",
                        pipe->name);
    for (size_t v = 0; v < HR_CEDAR_VARIANTS; v++)
        if (!is_amount(pipe->rates[v]))
            return hr__fail(reterr, HR_ERR_RANGE, "pipe '%s': %g samples/s as %s",
                            pipe->name, pipe->rates[v], hr__cedar_variants[v]);
    if (pipe->depends_on >> i != 0)
        return hr__fail(reterr, HR_ERR_RANGE,
                        "pipe '%s' depends on itself or on a later pipe", pipe->name);
    return HR_OK;
}

static enum hr_err check(const struct hr_cedar_stats *stats,
                         const struct hr_cedar_options *options, struct hr_error *reterr)
{
    if (stats->pipe_count == 0 || stats->pipe_count > HR_CEDAR_PIPES_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a pipeline of %zu pipes; 1 to %d",
                        stats->pipe_count, HR_CEDAR_PIPES_MAX);
    for (size_t i = 0; i < stats->pipe_count; i++)
        HR_TRY(check_pipe(stats, i, reterr));
    if (!(stats->rate > 0) || !is_amount(stats->rate) || !is_amount(stats->tf_rate))
        return hr__fail(reterr, HR_ERR_RANGE,
                        "a throughput is none: %g samples/s, fused %g", stats->rate,
                        stats->tf_rate);
    if (!is_amount(options->demand) || options->cpus < 1 || options->cpus > CPUS_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "%g samples/s wanted of %d CPUs; 0 to 1e18 of 1 to %d",
                        options->demand, options->cpus, CPUS_MAX);
    if (options->cache_samples > 0 && !is_amount(stats->disk_read))
        return hr__fail(reterr, HR_ERR_STATE,
                        "a cache needs the disk's speed (disk_info), which the "
                        "statistics do not have");
    return HR_OK;
}

/* ---- the model ---- */

/* All that each pipe depends on, through others too. */
static void reach(const struct hr_cedar_stats *stats, uint64_t *ret_reach)
{
    for (size_t i = 0; i < stats->pipe_count; i++) {
        ret_reach[i] = stats->pipes[i].depends_on;
        for (size_t k = 0; k < i; k++)
            if ((ret_reach[i] >> k & 1) != 0)
                ret_reach[i] |= ret_reach[k];
    }
}

static void take_swaps(struct hr_cedar_model *model)
{
    const struct hr_cedar_pipe *pipes = model->stats->pipes;
    uint64_t swaps[HR_CEDAR_PIPES_MAX] = {0}, reached[HR_CEDAR_PIPES_MAX];

    reach(model->stats, reached);
    for (size_t i = 1; i < model->count; i++)
        for (size_t k = 1; k < i; k++)
            if (!pipes[i].fixed && !pipes[k].fixed && (reached[i] >> k & 1) == 0)
                swaps[i - 1] |= (uint64_t)1 << (k - 1);
    hr__order_from_swaps(model->steps, model->count - 1, swaps);
}

struct hr_order_chain hr__cedar_chain(const struct hr_cedar_model *model)
{
    return (struct hr_order_chain){model->steps, model->count - 1,
                                   model->stats->pipes[0].bytes_out};
}

enum hr_err hr__cedar_model(const struct hr_cedar_stats *stats,
                            const struct hr_cedar_options *options,
                            struct hr_cedar_model *ret_model, struct hr_error *reterr)
{
    struct hr_cedar_model model = {
        .stats = stats, .options = options, .count = stats->pipe_count};
    struct hr_order_chain chain;
    double all = 0;

    HR_TRY(check(stats, options, reterr));
    for (size_t i = 0; i < model.count; i++)
        all += stats->pipes[i].latency_ns;
    if (!(all > 0))
        return hr__fail(reterr, HR_ERR_RANGE,
                        "no pipe takes any time: all latencies are 0");
    for (size_t i = 0; i < model.count; i++) {
        const struct hr_cedar_pipe *pipe = &stats->pipes[i];

        model.parts[i] = pipe->latency_ns / all;
        model.ms[i] = model.parts[i] * (1000 / stats->rate);
        if (i > 0)
            model.steps[i - 1] =
                (struct hr_order_step){.ns = model.ms[i],
                                       .bytes_in = pipe->bytes_in,
                                       .growth = pipe->bytes_out / pipe->bytes_in,
                                       .kept = 1};
    }
    take_swaps(&model);
    chain = hr__cedar_chain(&model);
    HR_TRY(hr__order_check(&chain, reterr));
    *ret_model = model;
    return HR_OK;
}

/* ---- a path ---- */

void hr__cedar_path(const struct hr_cedar_model *model, const uint8_t *order, int cache,
                    struct hr_cedar_path *ret_path)
{
    const struct hr_cedar_pipe *pipes = model->stats->pipes;
    struct hr_cedar_path *path = ret_path;
    double bytes = pipes[0].bytes_out;

    assert(order[0] == 0 && cache < (int)model->count);
    path->order = order;
    path->cache = cache;
    path->total_ms = 0;
    for (size_t i = 0; i < model->count; i++) {
        uint8_t p = order[i];

        path->bytes_in[i] = i > 0 ? bytes : 0;
        path->ms[i] = model->ms[p];
        if (i > 0) {
            path->ms[i] *= bytes / pipes[p].bytes_in;
            bytes *= model->steps[p - 1].growth;
        }
        path->bytes_out[i] = bytes;
        if ((int)i <= cache)
            path->ms[i] = 0;
        path->total_ms += path->ms[i];
    }
    /* The bytes of a sample are those of the written order, as in cedar. */
    if (cache >= 0)
        path->total_ms += 1000 * pipes[order[cache]].bytes_out * model->stats->disk_read;
}

bool hr__cedar_may_cache(const struct hr_cedar_model *model, const uint8_t *order,
                         size_t place)
{
    const struct hr_cedar_pipe *pipes = model->stats->pipes;

    for (size_t i = 0; i <= place; i++)
        if (pipes[order[i]].random)
            return false;
    return (double)model->options->cache_samples * pipes[order[place]].bytes_out <
           model->options->disk_free;
}

/* ---- offloading ---- */

/* Amdahl's law, backwards: what of the pipe's time is left here, by what the whole
 * pipeline gained when it alone moved there. */
static double
part_left(const struct hr_cedar_model *model, uint8_t pipe, enum hr_cedar_variant variant)
{
    double gain = model->stats->pipes[pipe].rates[variant] / model->stats->rate;
    double part = model->parts[pipe];

    /* cedar divides by zero for a pipe that takes no time */
    if (part == 0 || gain * (1 - part) >= 1)
        return 0;
    return (1 / gain - (1 - part)) / part;
}

bool hr__cedar_may_offload(const struct hr_cedar_model *model,
                           const struct hr_cedar_path *path, size_t place,
                           enum hr_cedar_variant variant)
{
    const struct hr_cedar_pipe *pipe = &model->stats->pipes[path->order[place]];

    return place > 0 && (pipe->variants >> variant & 1) != 0 &&
           pipe->rates[variant] > 0 && !pipe->kept;
}

size_t
hr__cedar_run_end(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                  size_t from, enum hr_cedar_variant variant)
{
    size_t end = from;

    while (end < model->count && model->stats->pipes[path->order[end]].fusable &&
           hr__cedar_may_offload(model, path, end, variant)) {
        if (end++ == (size_t)path->cache)
            break;
    }
    return end;
}

double
hr__cedar_left_ms(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                  size_t place, enum hr_cedar_variant variant)
{
    return path->ms[place] * part_left(model, path->order[place], variant);
}

double
hr__cedar_slice_ms(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                   size_t from, size_t to, enum hr_cedar_variant variant)
{
    double ends = path->bytes_in[from] + path->bytes_out[to - 1], all = ends, ms = 0;

    for (size_t i = from; i < to; i++) {
        ms += hr__cedar_left_ms(model, path, i, variant);
        if (i > from)
            all += 2 * path->bytes_in[i];
    }
    return all > 0 ? ms * ends / all : ms;
}
