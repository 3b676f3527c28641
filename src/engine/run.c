/*
 * engine/run.c - running records: the hot loop. A record goes through all steps of its
 * stage in one thread. Stages with user code go another way (chunk.c), and share the
 * pieces.
 */
#include "engine/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "op/thread.h"

/* Scratch of small records is given up together: what is in cache stays there. */
#define SCRATCH_KEPT 16384

/* ---- life cycle ---- */

static bool init_stage_rows(struct hr_runner *runner, size_t at)
{
    struct hr_program *p = &runner->engine->stages[at].program;
    size_t steps = p->step_count + 1;
    struct hr_value *slots = hr__calloc(p->slot_count + 1, sizeof *slots);
    struct hr_op_ctx *ctxs = hr__calloc(steps, sizeof *ctxs);

    runner->slots[at] = slots;
    runner->ctxs[at] = ctxs;
    if (slots == NULL || ctxs == NULL)
        return false;
    for (size_t i = 0; i < steps; i++) {
        struct hr_step *step = i < p->step_count ? &p->steps[i] : &p->expand;
        struct hr_op_ctx *ctx = &ctxs[i];

        ctx->params = step->params;
        ctx->state = step->state;
        ctx->node = step->node;
        ctx->thread = &runner->thread;
        ctx->error = &runner->error;
        ctx->id = &runner->ids[step->path];
        ctx->field_count = step->field_count;
        ctx->fields = hr__calloc(step->field_count + 1u, sizeof(void *));
        if (ctx->fields == NULL)
            return false;
        for (size_t k = 0; k < step->field_count; k++)
            ctx->fields[k] = &slots[step->fields[k]];
    }
    return true;
}

enum hr_err
hr__runner_init(struct hr_runner *runner, struct hr_engine *engine, int number)
{
    size_t nodes = engine->graph->count;

    runner->engine = engine;
    runner->number = number;
    hr__arena_init(&runner->thread.arena);
    runner->thread.reader = engine->reader;
    runner->thread.pool = engine->pool;
    runner->slots = hr__calloc(engine->stage_count, sizeof(void *));
    runner->ctxs = hr__calloc(engine->stage_count, sizeof(void *));
    runner->ids =
        hr__calloc(engine->stages[0].program.path_count + 1, sizeof *runner->ids);
    runner->chunks = hr__calloc(2 * engine->stage_count, sizeof *runner->chunks);
    runner->meters = hr__calloc(nodes, sizeof *runner->meters);
    runner->ticks = hr__calloc(nodes, sizeof *runner->ticks);
    HR_TRY(hr__meter_init(&runner->meter, nodes, engine->stage_count));
    if (runner->slots == NULL || runner->ctxs == NULL || runner->ids == NULL ||
        runner->chunks == NULL || runner->meters == NULL || runner->ticks == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < engine->stage_count; i++)
        if (!init_stage_rows(runner, i) || hr__chunk_init(runner, i) != HR_OK)
            return HR_ERR_MEMORY;
    if (engine->options.trace) {
        runner->span_room = 100000;
        runner->spans = hr__malloc(runner->span_room * sizeof *runner->spans);
        if (runner->spans == NULL)
            return HR_ERR_MEMORY;
    }
    return HR_OK;
}

static void finish_stage_rows(struct hr_runner *runner, size_t at)
{
    struct hr_program *p = &runner->engine->stages[at].program;

    for (size_t i = 0; runner->slots[at] != NULL && i < p->slot_count; i++)
        hr__value_clear(&runner->slots[at][i]);
    for (size_t i = 0; runner->ctxs[at] != NULL && i < p->step_count + 1; i++)
        hr__free(runner->ctxs[at][i].fields);
    hr__free(runner->slots[at]);
    hr__free(runner->ctxs[at]);
}

void hr__runner_finish(struct hr_runner *runner)
{
    if (runner->engine == NULL)
        return;
    for (size_t i = 0; runner->chunks != NULL && i < runner->engine->stage_count; i++)
        hr__chunk_finish(runner, i);
    hr__free(runner->chunks);
    hr_buffer_unref(runner->slab);
    for (size_t i = 0; i < runner->engine->stage_count; i++)
        if (runner->slots != NULL && runner->ctxs != NULL)
            finish_stage_rows(runner, i);
    hr__thread_objects_destroy(&runner->thread);
    hr__arena_finish(&runner->thread.arena);
    hr__free(runner->slots);
    hr__free(runner->ctxs);
    hr__free(runner->ids);
    hr__meter_finish(&runner->meter);
    hr__free(runner->meters);
    hr__free(runner->ticks);
    hr__free(runner->spans);
    runner->engine = NULL;
}

/* ---- steps ---- */

uint64_t hr__run_bytes(struct hr_value *const *values, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += values[i]->kind == HR_VALUE_NONE ? 0 : values[i]->bytes;
    return bytes;
}

static enum hr_err force_slots(struct hr_runner *runner, struct hr_value *slots,
                               const uint16_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        HR_TRY(hr__value_force(&runner->thread, &slots[list[i]], NULL, &runner->error));
    return HR_OK;
}

/* An op without DEFERS is never given a deferred value and never leaves one. */
static inline bool
has_made_fields(const struct hr_step *step, const struct hr_op_ctx *ctx)
{
    if (step->op->traits & HR_TRAIT_DEFERS)
        return true;
    for (size_t i = 0; i < ctx->field_count; i++)
        if (ctx->fields[i]->kind != HR_VALUE_NONE && !hr__value_is_made(ctx->fields[i]))
            return false;
    return true;
}

static enum hr_err run_step(struct hr_runner *runner, struct hr_value *slots,
                            const struct hr_step *step, struct hr_op_ctx *ctx)
{
    struct hr_node_meter *meter = &runner->meters[step->node];
    bool timed = runner->thread.charge_ticks != NULL;

    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&slots[step->alias[2 * i + 1]], &slots[step->alias[2 * i]]);
    if (step->before_count > 0)
        HR_TRY(force_slots(runner, slots, step->before, step->before_count));
    assert(has_made_fields(step, ctx));
    if (timed) {
        hr__thread_charge(&runner->thread, step->node);
        meter->timed++;
        meter->bytes_in += hr__run_bytes(ctx->fields, ctx->field_count);
    }
    HR_TRY(step->op->apply(ctx));
    if (step->after_count > 0)
        HR_TRY(force_slots(runner, slots, step->after, step->after_count));
    if (timed)
        meter->bytes_out += hr__run_bytes(ctx->fields, ctx->field_count);
    for (size_t i = 0; i < step->clear_count; i++)
        hr__value_clear(&slots[step->clear[i]]);
    return HR_OK;
}

/* The node is named; the graph file is not, since it is not what is wrong. */
void hr__run_blame(struct hr_runner *runner, uint32_t node)
{
    struct hr_error *error = &runner->error;
    bool has_file = error->file[0] != '\0';

    if (error->node[0] == '\0')
        hr__graph_blame(runner->engine->graph, node, error);
    if (!has_file) {
        error->file[0] = '\0';
        error->line = error->column = 0;
    }
    runner->meters[node].errors++;
}

/* Steps [from, to) of the stage. *ret_drop: a filter ended the record. */
static inline enum hr_err
run_steps(struct hr_runner *runner, const struct hr_stage *stage, struct hr_value *slots,
          size_t from, size_t to, bool *ret_drop)
{
    const struct hr_program *p = &stage->program;
    struct hr_op_ctx *ctxs = runner->ctxs[stage->number];
    bool timed = runner->thread.charge_ticks != NULL;

    *ret_drop = false;
    for (size_t i = from; i < to; i++) {
        struct hr_op_ctx *ctx = &ctxs[i];
        const struct hr_step *step = &p->steps[i];
        enum hr_err code;

        runner->meters[step->node].records++;
        if (step->plain && !timed)
            code = step->op->apply(ctx);
        else
            code = run_step(runner, slots, step, ctx);
        assert(code != HR_OK || has_made_fields(step, ctx));
        if (code != HR_OK) {
            runner->error.code = code;
            hr__run_blame(runner, p->steps[i].node);
            return code;
        }
        if (ctx->drop) {
            ctx->drop = false;
            runner->meters[p->steps[i].node].dropped++;
            *ret_drop = true;
            return HR_OK;
        }
    }
    return HR_OK;
}

enum hr_err hr__run_steps(struct hr_runner *runner, const struct hr_stage *stage,
                          struct hr_value *slots, size_t from, size_t to, bool *ret_drop)
{
    return run_steps(runner, stage, slots, from, to, ret_drop);
}

/* ---- a record ---- */

static void clear_slots(struct hr_runner *runner, const struct hr_stage *stage)
{
    struct hr_value *slots = runner->slots[stage->number];

    for (size_t i = 0; i < stage->program.slot_count; i++) {
        if (slots[i].owner != NULL)
            hr__value_clear(&slots[i]);
        slots[i].kind = HR_VALUE_NONE;
    }
    if (runner->thread.arena.used_bytes > SCRATCH_KEPT)
        hr__arena_reset(&runner->thread.arena);
}

static inline enum hr_err
finish(struct hr_runner *runner, struct hr_stage *stage, struct hr_block *block,
       uint32_t at, struct hr_value *slots)
{
    const struct hr_program *p = &stage->program;
    enum hr_err code;

    if (p->batch != NULL)
        hr__thread_charge(&runner->thread,
                          runner->engine->plan.stages[stage->number].batch);
    if (p->expand.op != NULL)
        code = hr__store_children(runner, stage, block, at, slots);
    else
        code = hr__store_results(runner, stage, block, at, slots);
    if (code != HR_OK && runner->error.node[0] == '\0') {
        /* A deferred value failed where it was made: it is its describer's fault. */
        uint32_t node = p->step_count > 0 ? p->steps[p->step_count - 1].group : 0;

        runner->error.code = code;
        hr__run_blame(runner, node);
    }
    return code;
}

enum hr_err hr__run_finish(struct hr_runner *runner, struct hr_stage *stage,
                           struct hr_block *block, uint32_t at, struct hr_value *slots)
{
    return finish(runner, stage, block, at, slots);
}

static enum hr_err run_once(struct hr_runner *runner, struct hr_stage *stage,
                            struct hr_block *block, uint32_t at, bool *ret_drop)
{
    struct hr_value *slots = runner->slots[stage->number];
    enum hr_err code =
        run_steps(runner, stage, slots, 0, stage->program.step_count, ret_drop);

    if (code == HR_OK && !*ret_drop)
        code = finish(runner, stage, block, at, slots);
    clear_slots(runner, stage);
    return code;
}

static inline void
set_positions(struct hr_runner *runner, const struct hr_stage *stage, uint64_t epoch,
              uint64_t position, uint64_t attempt, struct hr_record_id *ids)
{
    const struct hr_program *p = &stage->program;

    for (size_t i = 0; i < p->path_count; i++) {
        struct hr_record_id *id = &ids[i];
        uint64_t n = p->paths[i].n;

        id->seed = runner->engine->options.seed;
        id->epoch = (uint32_t)epoch;
        hr__engine_map(runner->engine, &p->paths[i], epoch, position, attempt, id);
        id->position = (n < HR_COUNT_UNKNOWN ? epoch * n : 0) + position;
        if (attempt > 0)
            id->epoch |= HR_EPOCH_SUBSTITUTE;
    }
}

void hr__run_positions(struct hr_runner *runner, const struct hr_stage *stage,
                       uint64_t epoch, uint64_t position, uint64_t attempt,
                       struct hr_record_id *ids)
{
    set_positions(runner, stage, epoch, position, attempt, ids);
}

/* Where the record lives goes into the error's parts, and into its words unless they name
 * it. */
static void
locate(struct hr_runner *runner, const struct hr_stage *stage, struct hr_bad *bad)
{
    const struct hr_program *p = &stage->program;
    struct hr_error *error = &bad->error;
    const struct hr_graph_node *n;
    size_t length = strlen(error->message);

    if (stage->number > 0 || p->path_count == 0)
        return;
    n = &runner->engine->graph->nodes[p->paths[0].source];
    error->record = (int64_t)bad->index + 1;
    if (error->file[0] == '\0' && n->op->locate != NULL)
        (void)n->op->locate(n->params, n->state, bad->index, error->file,
                            sizeof error->file, &bad->offset);
    if (error->file[0] != '\0' && strstr(error->message, error->file) == NULL)
        snprintf(error->message + length, sizeof error->message - length, " (in %s)",
                 error->file);
    else if (error->file[0] == '\0')
        snprintf(error->message + length, sizeof error->message - length,
                 " (record %llu)", (unsigned long long)bad->index);
}

void hr__run_note_bad(struct hr_runner *runner, struct hr_stage *stage,
                      struct hr_block *block, uint32_t at, const struct hr_record_id *id,
                      char *detail, bool fatal)
{
    struct hr_bad *bad = hr__calloc(1, sizeof *bad), **end = &block->bad[at];

    if (bad == NULL) {
        hr__free(detail);
        memset(&runner->error, 0, sizeof runner->error);
        return;
    }
    bad->error = runner->error;
    bad->index = id->index;
    bad->detail = detail;
    bad->fatal = fatal;
    memset(&runner->error, 0, sizeof runner->error);
    locate(runner, stage, bad);
    while (*end != NULL)
        end = &(*end)->next;
    *end = bad;
}

bool hr__run_may_substitute(const struct hr_stage *stage, const struct hr_bad *last,
                            uint64_t attempt)
{
    const struct hr_engine *engine = stage->engine;

    return engine->options.on_error == HR_ON_ERROR_SUBSTITUTE && stage->number == 0 &&
           last != NULL && !last->fatal && !hr__error_is_fatal(last->error.code) &&
           attempt < engine->errors_max && attempt + 1 < stage->program.paths[0].n &&
           !atomic_load_explicit(&engine->stop, memory_order_relaxed);
}

static void run_record(struct hr_runner *runner, struct hr_stage *stage,
                       struct hr_block *block, uint32_t at)
{
    bool drop = false;

    for (uint64_t attempt = 0;; attempt++) {
        const struct hr_bad *last;
        enum hr_err code;

        if (stage->number == 0) {
            set_positions(runner, stage, block->epoch, block->first + at, attempt,
                          runner->ids);
            block->ids[at] = runner->ids[0];
        } else {
            struct hr_value *in = &block->inputs[at * stage->program.in_count];

            runner->ids[0] = block->ids[at];
            for (size_t f = 0; f < stage->program.in_count; f++)
                runner->slots[stage->number][stage->program.in_slots[f]] = in[f];
            memset(in, 0, stage->program.in_count * sizeof *in);
        }
        code = run_once(runner, stage, block, at, &drop);
        if (code == HR_OK && drop && attempt > 0)
            continue;
        if (code == HR_OK)
            break;
        hr__run_note_bad(runner, stage, block, at, &runner->ids[0], NULL, false);
        for (last = block->bad[at]; last != NULL && last->next != NULL;)
            last = last->next;
        if (!hr__run_may_substitute(stage, last, attempt)) {
            block->status[at] = HR_RECORD_BAD;
            return;
        }
    }
    block->status[at] = drop ? HR_RECORD_DROPPED : HR_RECORD_GOOD;
}

/* ---- timing ---- */

void hr__run_begin_timing(struct hr_runner *runner)
{
    memset(runner->ticks, 0, runner->engine->graph->count * sizeof *runner->ticks);
    runner->thread.charge_ticks = runner->ticks;
    hr__thread_charge(&runner->thread, 0);
    runner->ticks[0] = 0;
}

void hr__run_end_timing(struct hr_runner *runner)
{
    hr__thread_charge(&runner->thread, 0);
    runner->thread.charge_ticks = NULL;
    for (size_t i = 0; i < runner->engine->graph->count; i++)
        runner->meters[i].ticks += runner->ticks[i];
}

void hr__run_span(struct hr_runner *runner, const struct hr_stage *stage,
                  uint64_t position, uint64_t begin, uint64_t end)
{
    if (runner->span_count < runner->span_room)
        runner->spans[runner->span_count++] =
            (struct hr_span){begin, end, position, (uint32_t)stage->number};
}

/* Tells the reader what the source will want next, while reads have to wait. */
static void read_ahead(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_engine *engine = runner->engine;
    const struct hr_program *p = &claim->stage->program;
    const struct hr_graph_node *n;
    uint64_t from = claim->block->first + claim->at + claim->count;
    uint64_t to = from + (uint64_t)engine->ahead_depth, next;
    struct hr_range range;

    if (claim->stage->number > 0 || p->path_count != 1)
        return;
    n = &engine->graph->nodes[p->paths[0].source];
    if (n->op->ahead == NULL || !hr__reader_is_cold(engine->reader))
        return;
    to = to < p->paths[0].n ? to : p->paths[0].n;
    next = __atomic_load_n(&engine->ahead_next, __ATOMIC_RELAXED);
    for (uint64_t at = next > from && next <= to ? next : from; at < to; at++) {
        struct hr_record_id id = {.seed = engine->options.seed,
                                  .epoch = (uint32_t)claim->block->epoch};

        hr__engine_map(engine, &p->paths[0], claim->block->epoch, at, 0, &id);
        if (n->op->ahead(n->params, n->state, id.index, &range))
            hr__reader_ahead(engine->reader, &range);
        __atomic_store_n(&engine->ahead_next, at + 1, __ATOMIC_RELAXED);
    }
}

static void run_one_by_one(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_engine *engine = runner->engine;
    bool all = claim->count <= 4;

    for (uint32_t i = claim->at; i < claim->at + claim->count; i++) {
        uint64_t begin = engine->options.trace ? hr__ticks() : 0;
        bool timed = all || i == claim->at;

        if (atomic_load_explicit(&engine->stop, memory_order_relaxed)) {
            memset(&claim->block->status[i], HR_RECORD_UNRUN,
                   claim->at + claim->count - i);
            return;
        }
        if (claim->block->status[i] == HR_RECORD_DROPPED)
            continue; /* another world did it */
        if (timed)
            hr__run_begin_timing(runner);
        run_record(runner, claim->stage, claim->block, i);
        if (timed)
            hr__run_end_timing(runner);
        if (engine->options.trace)
            hr__run_span(runner, claim->stage, claim->block->first + i, begin,
                         hr__ticks());
    }
}

/* What another world did is as if it were filtered out. */
static void drop_done(const struct hr_engine *engine, const struct hr_claim *claim)
{
    struct hr_block *block = claim->block;
    uint64_t children;

    for (uint32_t i = claim->at; i < claim->at + claim->count; i++)
        if (hr__engine_is_done(engine, block->epoch, block->first + i, &children))
            block->status[i] = HR_RECORD_DROPPED;
}

void hr__run_claim(struct hr_runner *runner, struct hr_claim *claim)
{
    if (claim->stage == NULL) {
        hr__chunk_overlap(runner, claim);
        return;
    }
    if (runner->engine->done.count > 0 && claim->stage->number == 0)
        drop_done(runner->engine, claim);
    read_ahead(runner, claim);
    if (claim->stage->program.processes)
        hr__chunk_overlap(runner, claim);
    else if (claim->stage->program.segment_count > 0)
        hr__chunk_claim(runner, claim);
    else
        run_one_by_one(runner, claim);
}
