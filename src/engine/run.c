/*
 * Running records: the hot loop. A record goes through all steps of its stage in one
 * thread; what it leaves is stored in its block, straight into the batch where the shape
 * is known.
 */
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "op/worker.h"

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
        ctx->worker = &runner->worker;
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
    hr__arena_init(&runner->worker.arena);
    runner->worker.reader = engine->reader;
    runner->worker.pool = engine->pool;
    runner->slots = hr__calloc(engine->stage_count, sizeof(void *));
    runner->ctxs = hr__calloc(engine->stage_count, sizeof(void *));
    runner->ids =
        hr__calloc(engine->stages[0].program.path_count + 1, sizeof *runner->ids);
    runner->meters = hr__calloc(nodes, sizeof *runner->meters);
    runner->ticks = hr__calloc(nodes, sizeof *runner->ticks);
    if (runner->slots == NULL || runner->ctxs == NULL || runner->ids == NULL ||
        runner->meters == NULL || runner->ticks == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < engine->stage_count; i++)
        if (!init_stage_rows(runner, i))
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
    for (size_t i = 0; i < runner->engine->stage_count; i++)
        if (runner->slots != NULL && runner->ctxs != NULL)
            finish_stage_rows(runner, i);
    hr__worker_objects_destroy(&runner->worker);
    hr__arena_finish(&runner->worker.arena);
    hr__free(runner->slots);
    hr__free(runner->ctxs);
    hr__free(runner->ids);
    hr__free(runner->meters);
    hr__free(runner->ticks);
    hr__free(runner->spans);
}

/* ---- steps ---- */

/* Bytes of the fields that a step has bound, for the meter. */
static uint64_t bound_bytes(const struct hr_op_ctx *ctx)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < ctx->field_count; i++)
        bytes += ctx->fields[i]->kind == HR_VALUE_NONE ? 0 : ctx->fields[i]->bytes;
    return bytes;
}

static enum hr_err force_slots(struct hr_runner *runner, struct hr_value *slots,
                               const uint16_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        HR_TRY(hr__value_force(&runner->worker, &slots[list[i]], NULL, &runner->error));
    return HR_OK;
}

static enum hr_err run_step(struct hr_runner *runner, struct hr_value *slots,
                            const struct hr_step *step, struct hr_op_ctx *ctx)
{
    struct hr_meter *meter = &runner->meters[step->node];
    bool timed = runner->worker.charge_ticks != NULL;

    for (size_t i = 0; i < step->share_count; i++)
        hr__value_share(&slots[step->share[2 * i + 1]], &slots[step->share[2 * i]]);
    if (step->before_count > 0)
        HR_TRY(force_slots(runner, slots, step->before, step->before_count));
    if (timed) {
        hr__worker_charge(&runner->worker, step->node);
        meter->timed++;
        meter->bytes_in += bound_bytes(ctx);
    }
    HR_TRY(step->op->apply(ctx));
    if (step->after_count > 0)
        HR_TRY(force_slots(runner, slots, step->after, step->after_count));
    if (timed)
        meter->bytes_out += bound_bytes(ctx);
    for (size_t i = 0; i < step->clear_count; i++)
        hr__value_clear(&slots[step->clear[i]]);
    return HR_OK;
}

/* The node is named; the graph file is not, since it is not what is wrong. */
static void blame(struct hr_runner *runner, uint32_t node)
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

/* All steps of the stage. *ret_drop: a filter ended the record. */
static enum hr_err
run_steps(struct hr_runner *runner, const struct hr_stage *stage, bool *ret_drop)
{
    const struct hr_program *p = &stage->program;
    struct hr_value *slots = runner->slots[stage->number];
    struct hr_op_ctx *ctxs = runner->ctxs[stage->number];
    bool timed = runner->worker.charge_ticks != NULL;

    *ret_drop = false;
    for (size_t i = 0; i < p->step_count; i++) {
        struct hr_op_ctx *ctx = &ctxs[i];
        const struct hr_step *step = &p->steps[i];
        enum hr_err code;

        runner->meters[step->node].records++;
        if (step->plain && !timed)
            code = step->op->apply(ctx);
        else
            code = run_step(runner, slots, step, ctx);
        if (code != HR_OK) {
            runner->error.code = code;
            blame(runner, p->steps[i].node);
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

/* ---- results ---- */

static enum hr_err store_column(struct hr_runner *runner, struct hr_value *value,
                                const struct hr_out_field *out, char *to)
{
    if (value->kind == HR_VALUE_TENSOR && value->bytes == (size_t)out->bytes &&
        out->bytes == 8 && value->ndim == 0) {
        memcpy(to, value->data, 8);
        return HR_OK;
    }
    if ((value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_DEFERRED) ||
        hr__value_count(value) * (int64_t)hr_dtype_size((enum hr_dtype)value->dtype) !=
            out->bytes)
        return hr__fail(&runner->error, HR_ERR_INTERNAL,
                        "field '%s' is not what was inferred for it", out->field->name);
    return hr__value_force(&runner->worker, value, to, &runner->error);
}

/* Make a value that outlives the record: its bytes in a buffer of its own. */
static enum hr_err
keep_value(struct hr_runner *runner, struct hr_value *value, struct hr_value *ret_value)
{
    struct hr_buffer *buffer = NULL;
    size_t bytes = value->bytes;
    enum hr_err code;

    if (value->owner != NULL &&
        (value->kind == HR_VALUE_BYTES || value->kind == HR_VALUE_RAGGED ||
         hr__value_contiguous(value))) {
        *ret_value = *value;
        value->owner = NULL;
        return HR_OK;
    }
    if (value->kind == HR_VALUE_TENSOR || value->kind == HR_VALUE_DEFERRED)
        bytes =
            (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype);
    code = hr_pool_get(runner->worker.pool, bytes, &buffer);
    if (code != HR_OK)
        return hr__fail(&runner->error, HR_ERR_MEMORY,
                        "no memory for a record of %zu bytes", bytes);
    if (value->kind == HR_VALUE_BYTES) {
        if (bytes > 0)
            memcpy(hr_buffer_data(buffer), value->data, bytes);
        hr__value_set_bytes(ret_value, hr_buffer_data(buffer), bytes, buffer);
        return HR_OK;
    }
    code =
        hr__value_force(&runner->worker, value, hr_buffer_data(buffer), &runner->error);
    if (code != HR_OK) {
        hr_buffer_unref(buffer);
        return code;
    }
    hr__value_set_tensor(ret_value, (enum hr_dtype)value->dtype, value->ndim, value->dims,
                         hr_buffer_data(buffer), buffer);
    ret_value->layout = value->layout;
    return HR_OK;
}

static enum hr_err store_results(struct hr_runner *runner, struct hr_stage *stage,
                                 struct hr_block *block, uint32_t at)
{
    const struct hr_program *p = &stage->program;
    struct hr_value *slots = runner->slots[stage->number];

    for (size_t f = 0; f < p->out_count; f++) {
        struct hr_value *value = &slots[p->out[f].slot];

        if (block->columns[f] != NULL) {
            char *to = (char *)hr_buffer_data(block->columns[f]) +
                       (size_t)at * (size_t)p->out[f].bytes;

            HR_TRY(store_column(runner, value, &p->out[f], to));
        } else {
            HR_TRY(keep_value(runner, value, &block->rows[at * p->out_count + f]));
        }
    }
    return HR_OK;
}

static enum hr_err make_children(struct hr_runner *runner, struct hr_stage *stage,
                                 struct hr_block *block, uint32_t at)
{
    const struct hr_program *p = &stage->program;
    struct hr_op_ctx *ctx = &runner->ctxs[stage->number][p->step_count];
    struct hr_value *slots = runner->slots[stage->number];
    struct hr_children *children = &block->children[at];
    struct hr_value *parents = hr__calloc(p->out_count + 1, sizeof *parents);
    uint64_t count = 0;
    enum hr_err code = parents == NULL ? HR_ERR_MEMORY : HR_OK;

    for (size_t f = 0; code == HR_OK && f < p->out_count; f++)
        code = keep_value(runner, &slots[p->out[f].slot], &parents[f]);
    for (size_t f = 0; code == HR_OK && f < p->out_count; f++)
        slots[p->out[f].slot] = parents[f];
    if (code == HR_OK) {
        runner->meters[p->expand.node].records++;
        code = p->expand.op->expand_count(ctx, &count);
    }
    if (code == HR_OK && count > 0) {
        children->values =
            hr__calloc(count * (p->child_count + 1), sizeof(struct hr_value));
        code = children->values == NULL ? HR_ERR_MEMORY : HR_OK;
    }
    for (uint64_t i = 0; code == HR_OK && i < count; i++) {
        children->count = i + 1;
        code = p->expand.op->expand_child(
            ctx, i, parents, &children->values[i * p->child_count], p->child_count);
    }
    for (size_t f = 0; parents != NULL && f < p->out_count; f++)
        memset(&slots[p->out[f].slot], 0, sizeof(struct hr_value));
    for (size_t f = 0; parents != NULL && f < p->out_count; f++)
        hr__value_clear(&parents[f]);
    hr__free(parents);
    if (code != HR_OK) {
        runner->error.code = code;
        blame(runner, p->expand.node);
    }
    return code;
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
    if (runner->worker.arena.used_bytes > SCRATCH_KEPT)
        hr__arena_reset(&runner->worker.arena);
}

static enum hr_err run_once(struct hr_runner *runner, struct hr_stage *stage,
                            struct hr_block *block, uint32_t at, bool *ret_drop)
{
    const struct hr_program *p = &stage->program;
    enum hr_err code = run_steps(runner, stage, ret_drop);

    if (code == HR_OK && !*ret_drop) {
        if (p->batch != NULL)
            hr__worker_charge(&runner->worker,
                              runner->engine->plan.stages[stage->number].batch);
        if (p->expand.op != NULL)
            code = make_children(runner, stage, block, at);
        else
            code = store_results(runner, stage, block, at);
        if (code != HR_OK && runner->error.node[0] == '\0') {
            /* A deferred value failed where it was made: it is its describer's fault. */
            uint32_t node = p->step_count > 0 ? p->steps[p->step_count - 1].group : 0;

            runner->error.code = code;
            blame(runner, node);
        }
    }
    clear_slots(runner, stage);
    return code;
}

static void set_positions(struct hr_runner *runner, const struct hr_stage *stage,
                          uint64_t epoch, uint64_t position, uint64_t attempt)
{
    const struct hr_program *p = &stage->program;

    for (size_t i = 0; i < p->path_count; i++) {
        struct hr_record_id *id = &runner->ids[i];
        uint64_t n = p->paths[i].n;

        id->seed = runner->engine->options.seed;
        id->epoch = (uint32_t)epoch;
        hr__engine_map(runner->engine, &p->paths[i], epoch,
                       attempt == 0 ? position : (position + attempt) % (n > 0 ? n : 1),
                       id);
        id->position = epoch * n + position;
        if (attempt > 0)
            id->epoch |= 0x80000000u; /* a substitute draws its own numbers */
    }
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

static void note_bad(struct hr_runner *runner, struct hr_stage *stage,
                     struct hr_block *block, uint32_t at)
{
    struct hr_bad *bad = hr__calloc(1, sizeof *bad), **end = &block->bad[at];

    if (bad == NULL)
        return;
    bad->error = runner->error;
    bad->index = runner->ids[0].index;
    locate(runner, stage, bad);
    while (*end != NULL)
        end = &(*end)->next;
    *end = bad;
}

static void run_record(struct hr_runner *runner, struct hr_stage *stage,
                       struct hr_block *block, uint32_t at)
{
    struct hr_engine *engine = runner->engine;
    bool substitute =
        engine->options.on_error == HR_ON_ERROR_SUBSTITUTE && stage->number == 0;
    bool drop = false;

    for (uint64_t attempt = 0;; attempt++) {
        enum hr_err code;

        if (stage->number == 0) {
            set_positions(runner, stage, block->epoch, block->first + at, attempt);
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
        note_bad(runner, stage, block, at);
        memset(&runner->error, 0, sizeof runner->error);
        if (!substitute || hr__error_is_fatal(code) || attempt >= engine->errors_max ||
            attempt + 1 >= stage->program.paths[0].n ||
            atomic_load_explicit(&engine->stop, memory_order_relaxed)) {
            block->status[at] = HR_RECORD_BAD;
            return;
        }
    }
    block->status[at] = drop ? HR_RECORD_DROPPED : HR_RECORD_GOOD;
}

/* ---- timing ---- */

static void begin_timing(struct hr_runner *runner)
{
    memset(runner->ticks, 0, runner->engine->graph->count * sizeof *runner->ticks);
    runner->worker.charge_ticks = runner->ticks;
    hr__worker_charge(&runner->worker, 0);
    runner->ticks[0] = 0;
}

static void end_timing(struct hr_runner *runner)
{
    hr__worker_charge(&runner->worker, 0);
    runner->worker.charge_ticks = NULL;
    for (size_t i = 0; i < runner->engine->graph->count; i++)
        runner->meters[i].ticks += runner->ticks[i];
}

static void note_span(struct hr_runner *runner, const struct hr_claim *claim, uint32_t at,
                      uint64_t begin)
{
    if (runner->span_count < runner->span_room)
        runner->spans[runner->span_count++] = (struct hr_span){
            begin, hr__ticks(), claim->block->first + at, (uint32_t)claim->stage->number};
}

/* Names files ahead of need while the reader finds them cold. */
static void read_ahead(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_engine *engine = runner->engine;
    const struct hr_program *p = &claim->stage->program;
    const struct hr_graph_node *n;
    uint64_t from = claim->block->first + claim->at + claim->count;
    uint64_t to = from + (uint64_t)engine->ahead_depth, next;
    char path[4096];

    if (claim->stage->number > 0 || p->path_count != 1)
        return;
    n = &engine->graph->nodes[p->paths[0].source];
    if (n->op->locate == NULL || !hr__reader_is_cold(engine->reader))
        return;
    to = to < p->paths[0].n ? to : p->paths[0].n;
    next = __atomic_load_n(&engine->ahead_next, __ATOMIC_RELAXED);
    for (uint64_t at = next > from && next <= to ? next : from; at < to; at++) {
        struct hr_record_id id = {.seed = engine->options.seed,
                                  .epoch = (uint32_t)claim->block->epoch};
        uint64_t offset;

        hr__engine_map(engine, &p->paths[0], claim->block->epoch, at, &id);
        if (n->op->locate(n->params, n->state, id.index, path, sizeof path, &offset))
            hr__reader_ahead(engine->reader, claim->block->epoch * p->paths[0].n + at,
                             path);
        __atomic_store_n(&engine->ahead_next, at + 1, __ATOMIC_RELAXED);
    }
}

void hr__run_claim(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_engine *engine = runner->engine;
    bool all = claim->count <= 4;

    read_ahead(runner, claim);
    for (uint32_t i = claim->at; i < claim->at + claim->count; i++) {
        uint64_t begin = engine->options.trace ? hr__ticks() : 0;
        bool timed = all || i == claim->at;

        if (atomic_load_explicit(&engine->stop, memory_order_relaxed)) {
            memset(&claim->block->status[i], HR_RECORD_UNRUN,
                   claim->at + claim->count - i);
            return;
        }
        if (timed)
            begin_timing(runner);
        run_record(runner, claim->stage, claim->block, i);
        if (timed)
            end_timing(runner);
        if (engine->options.trace)
            note_span(runner, claim, i, begin);
    }
}
