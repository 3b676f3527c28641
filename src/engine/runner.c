/*
 * engine/runner.c - creates runners: rows for the records of each stage, contexts for the
 * ops, a meter.
 */
#include "engine/run.h"

#include <assert.h>

#include "core/alloc.h"
#include "op/thread.h"

/* ---- rows ---- */

/* Allocates one row if a record goes through all steps at once, else one per record of a
 * chunk. */
static enum hr_err chunk_init(struct hr_chunk *chunk, const struct hr_stage *stage)
{
    const struct hr_program *p = &stage->program;
    size_t nodes = stage->engine->graph->count;
    size_t samples = p->segment_count == 0 ? 1 : HR_SAMPLES_MAX;

    chunk->room = p->segment_count == 0               ? 1
                  : stage->block_size < HR_CHUNK_ROWS ? stage->block_size
                                                      : HR_CHUNK_ROWS;
    chunk->live = hr__calloc(chunk->room, sizeof *chunk->live);
    chunk->ids = hr__calloc(chunk->room * p->id_count, sizeof *chunk->ids);
    chunk->resume = hr__calloc(chunk->room, sizeof *chunk->resume);
    chunk->rows = hr__calloc(chunk->room * (p->slot_count + 1), sizeof *chunk->rows);
    chunk->sample_of = hr__calloc(chunk->room, sizeof *chunk->sample_of);
    chunk->samples[0].charges = hr__calloc(samples * nodes, sizeof(struct hr_charge));
    hr__arena_init(&chunk->arena);
    if (chunk->live == NULL || chunk->ids == NULL || chunk->resume == NULL ||
        chunk->rows == NULL || chunk->sample_of == NULL ||
        chunk->samples[0].charges == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 1; i < samples; i++)
        chunk->samples[i].charges = chunk->samples[0].charges + i * nodes;
    return hr__process_init(chunk, p);
}

static void chunk_finish(struct hr_chunk *chunk, const struct hr_program *p)
{
    for (size_t i = 0; chunk->rows != NULL && i < chunk->room * (p->slot_count + 1); i++)
        hr__value_clear(&chunk->rows[i]);
    hr__process_finish(chunk, p);
    hr__arena_finish(&chunk->arena);
    hr__free(chunk->live);
    hr__free(chunk->ids);
    hr__free(chunk->resume);
    hr__free(chunk->rows);
    hr__free(chunk->sample_of);
    hr__free(chunk->samples[0].charges);
}

static enum hr_err init_chunks(struct hr_runner *runner, const struct hr_stage *stage)
{
    struct hr_chunk *chunks = &runner->chunks[2 * stage->number];

    assert(stage->number < runner->engine->stage_count);
    HR_TRY(chunk_init(&chunks[0], stage));
    if (!stage->program.processes)
        return HR_OK;
    chunks[1].procs = chunks[0].procs;
    chunks[1].channel = 1;
    return chunk_init(&chunks[1], stage);
}

/* ---- contexts ---- */

/* One per step, and one for the expansion, at the first row of the first chunk. */
static enum hr_err init_contexts(struct hr_runner *runner, const struct hr_stage *stage)
{
    const struct hr_program *p = &stage->program;
    const struct hr_chunk *chunk = &runner->chunks[2 * stage->number];
    struct hr_op_ctx *ctxs = hr__calloc(p->step_count + 1, sizeof *ctxs);

    runner->ctxs[stage->number] = ctxs;
    if (ctxs == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < p->step_count + 1; i++) {
        const struct hr_step *step = hr__program_step(p, i);
        struct hr_op_ctx *ctx = &ctxs[i];

        ctx->params = step->params;
        ctx->state = step->state;
        ctx->node = step->node;
        ctx->draw_id = step->draw_id;
        ctx->when = step->when;
        ctx->when_count = step->when_count;
        ctx->thread = &runner->thread;
        ctx->error = &runner->error;
        ctx->id = &chunk->ids[step->path];
        ctx->field_count = step->field_count;
        ctx->fields = hr__calloc(step->field_count + 1u, sizeof(void *));
        if (ctx->fields == NULL)
            return HR_ERR_MEMORY;
        if (step->op != NULL && step->op->placed && p->placed_count > 0) {
            ctx->places = hr__calloc(step->field_count + 1u, sizeof *ctx->places);
            if (ctx->places == NULL)
                return HR_ERR_MEMORY;
        }
        for (size_t k = 0; k < step->field_count; k++)
            ctx->fields[k] = &chunk->rows[step->fields[k]];
    }
    return HR_OK;
}

static void finish_stage(struct hr_runner *runner, const struct hr_stage *stage)
{
    const struct hr_program *p = &stage->program;
    struct hr_op_ctx *ctxs = runner->ctxs != NULL ? runner->ctxs[stage->number] : NULL;

    for (size_t i = 0; runner->chunks != NULL && i < 2; i++)
        chunk_finish(&runner->chunks[2 * stage->number + i], p);
    for (size_t i = 0; ctxs != NULL && i < p->step_count + 1; i++) {
        hr__free(ctxs[i].fields);
        hr__free(ctxs[i].places);
    }
    hr__free(ctxs);
}

/* ---- life ---- */

enum hr_err
hr__runner_init(struct hr_runner *runner, struct hr_engine *engine, int number)
{
    assert(number >= 0 && number <= engine->thread_count);
    runner->engine = engine;
    runner->number = number;
    hr__arena_init(&runner->thread.arena);
    runner->thread.reader = engine->reader;
    runner->thread.pool = engine->pool;
    runner->ctxs = hr__calloc(engine->stage_count, sizeof(void *));
    runner->chunks = hr__calloc(2 * engine->stage_count, sizeof *runner->chunks);
    runner->ahead_ids =
        hr__calloc(engine->stages[0].program.id_count, sizeof *runner->ahead_ids);
    HR_TRY(hr__meter_init(&runner->meter, engine->graph->count, engine->stage_count));
    if (runner->ctxs == NULL || runner->chunks == NULL || runner->ahead_ids == NULL)
        return HR_ERR_MEMORY;
    hr__thread_calibrate(&runner->thread);
    for (size_t i = 0; i < engine->stage_count; i++) {
        HR_TRY(init_chunks(runner, &engine->stages[i]));
        HR_TRY(init_contexts(runner, &engine->stages[i]));
    }
    if (engine->options.trace) {
        runner->span_room = 100000;
        runner->spans = hr__malloc(runner->span_room * sizeof *runner->spans);
        if (runner->spans == NULL)
            return HR_ERR_MEMORY;
        runner->thread.part = hr__span_part;
    }
    return HR_OK;
}

void hr__runner_finish(struct hr_runner *runner)
{
    if (runner->engine == NULL)
        return;
    assert(!runner->inside);
    for (size_t i = 0; i < runner->engine->stage_count; i++)
        finish_stage(runner, &runner->engine->stages[i]);
    hr__free(runner->chunks);
    hr__free(runner->ctxs);
    hr__free(runner->ahead_ids);
    hr_buffer_unref(runner->slab);
    hr__thread_objects_destroy(&runner->thread);
    hr__arena_finish(&runner->thread.arena);
    hr__meter_finish(&runner->meter);
    hr__cpu_watch_close(&runner->watch);
    hr__free(runner->spans);
    runner->engine = NULL;
}
