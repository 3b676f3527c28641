/*
 * opt/cedar_stages.c - what cedar runs for a choice: pipes one by one or fused, with the
 * number of workers and samples in flight that it gives them.
 */
#include <assert.h>
#include <string.h>

#include "opt/cedar_passes.h"

#define ACTORS 32 /* of all slices and drivers */
#define PROCESSES 8
#define IN_FLIGHT_RAY 100
#define IN_FLIGHT_SMP 50
#define SUBMIT_BYTES 2e6 /* of a request to an actor, in and out */
#define SUBMIT_MAX 500

static struct hr_cedar_stage *add(struct hr_cedar_result *result, enum hr_cedar_kind kind,
                                  enum hr_cedar_variant variant)
{
    struct hr_cedar_stage *stage = &result->stages[result->stage_count++];

    assert(result->stage_count <= sizeof result->stages / sizeof result->stages[0]);
    *stage = (struct hr_cedar_stage){.kind = kind, .variant = variant};
    return stage;
}

static void
take_pipes(struct hr_cedar_stage *stage, const uint8_t *order, size_t from, size_t to)
{
    memcpy(stage->pipes + stage->pipe_count, order + from, to - from);
    stage->pipe_count = (uint8_t)(stage->pipe_count + to - from);
}

static int submit_batch(const struct hr_cedar_path *path, size_t from, size_t to)
{
    double bytes = path->bytes_in[from] + path->bytes_out[to - 1];
    double batch = bytes > 0 ? SUBMIT_BYTES / bytes : SUBMIT_MAX;

    return batch < 1 ? 1 : batch > SUBMIT_MAX ? SUBMIT_MAX : (int)batch;
}

static void
set_workers(const struct hr_cedar_choice *choice, const struct hr_cedar_path *path,
            struct hr_cedar_slice slice, struct hr_cedar_stage *stage)
{
    int shares = (int)choice->places.count * choice->drivers;

    if (stage->variant == HR_CEDAR_SMP) {
        stage->workers = PROCESSES / shares > 0 ? PROCESSES / shares : 1;
        stage->in_flight = IN_FLIGHT_SMP;
        return;
    }
    stage->workers = (ACTORS + shares - 1) / shares;
    stage->submit_batch = submit_batch(path, slice.from, slice.to);
    stage->in_flight = 3 * stage->submit_batch * stage->workers;
    if (stage->in_flight < IN_FLIGHT_RAY)
        stage->in_flight = IN_FLIGHT_RAY;
}

/* The end of the run of TensorFlow ops that begins here and are not offloaded. */
static size_t tf_end(const struct hr_cedar_model *model,
                     const struct hr_cedar_choice *choice, size_t from, size_t slice)
{
    const struct hr_cedar_places *places = &choice->places;
    size_t end = from, stop = model->count;

    if (slice < places->count)
        stop = places->slices[slice].from;
    while (end < stop && model->stats->pipes[choice->order[end]].tf)
        if (end++ == (size_t)choice->cache)
            break;
    return end;
}

/* Places that run here: TensorFlow ops in a row are fused. Returns their end. */
static size_t
add_local(const struct hr_cedar_model *model, struct hr_cedar_choice *choice, size_t from,
          size_t slice, struct hr_cedar_result *result)
{
    const struct hr_cedar_pipe *pipe = &model->stats->pipes[choice->order[from]];
    struct hr_cedar_stage *stage =
        add(result, HR_CEDAR_PIPES, pipe->tf ? HR_CEDAR_TF : HR_CEDAR_INPROCESS);
    size_t to = from + 1;

    if (pipe->tf && from > 0 && model->options->fusion)
        to = tf_end(model, choice, from, slice);
    take_pipes(stage, choice->order, from, to);
    if (from == 1 && to == model->count && to - from > 1)
        choice->drivers = 1;
    stage->autotune = pipe->tf && from > 0 && choice->drivers == 1 &&
                      (choice->tf_calls || to - from > 1);
    return to;
}

/* Ray Data runs a pipeline in its source if all other pipes can be fused: all of them
 * here, or all of them in one slice of actors. */
static bool
is_ray_data(const struct hr_cedar_model *model, const struct hr_cedar_choice *choice)
{
    const struct hr_cedar_pipe *pipes = model->stats->pipes;
    const struct hr_cedar_places *places = &choice->places;

    if (!model->options->fusion || choice->cache >= 0 || model->count < 2 ||
        (pipes[0].variants >> HR_CEDAR_RAY_DS & 1) == 0)
        return false;
    if (model->options->offload)
        return choice->variant == HR_CEDAR_RAY && places->count == 1 &&
               places->slices[0].from == 1 && places->slices[0].to == model->count &&
               model->count > 2;
    for (size_t i = 1; i < model->count; i++)
        if (!pipes[i].fusable || pipes[i].tf)
            return false;
    return places->count == 0;
}

void hr__cedar_stages(const struct hr_cedar_model *model, struct hr_cedar_choice *choice,
                      struct hr_cedar_result *result)
{
    const struct hr_cedar_places *places = &choice->places;
    bool ray_data = is_ray_data(model, choice);
    struct hr_cedar_path path;
    size_t slice = 0;

    if (ray_data || choice->in_source) {
        take_pipes(add(result, HR_CEDAR_PIPES, ray_data ? HR_CEDAR_RAY_DS : HR_CEDAR_TF),
                   choice->order, 0, model->count);
        result->stages[0].autotune = !ray_data;
        choice->drivers = 1;
        if (!ray_data && model->options->prefetch)
            add(result, HR_CEDAR_PREFETCH, HR_CEDAR_INPROCESS);
        return;
    }
    hr__cedar_path(model, choice->order, choice->cache, &path);
    for (size_t at = 0; at < model->count;) {
        if (slice < places->count && places->slices[slice].from == at) {
            struct hr_cedar_slice one = places->slices[slice++];
            struct hr_cedar_stage *stage = add(result, HR_CEDAR_PIPES, choice->variant);

            take_pipes(stage, choice->order, one.from, one.to);
            set_workers(choice, &path, one, stage);
            at = one.to;
        } else {
            at = add_local(model, choice, at, slice, result);
        }
        if ((int)at - 1 == choice->cache)
            add(result, HR_CEDAR_CACHE, HR_CEDAR_INPROCESS);
    }
    if (model->options->prefetch)
        add(result, HR_CEDAR_PREFETCH, HR_CEDAR_INPROCESS);
}
