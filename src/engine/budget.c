/*
 * engine/budget.c - counts what records hold, and divides memory again when sizes grow.
 */
#include "engine/budget.h"

#include <assert.h>
#include <stdio.h>

#include "core/buffer.h"
#include "core/error.h"
#include "engine/engine.h"
#include "engine/run.h"

/* How long a thread may go without checking the bytes of its claim, and how many records
 * all threads together may run meanwhile, at least two each: when records grow at once,
 * every thread may be in the middle of such a step. */
#define STEP_NS 20000
#define STEP_RECORDS 8
#define STEP_LEAST 2

/* Growth by less than an eighth is ignored. */
static bool has_grown(uint64_t seen, uint64_t known)
{
    return seen > known + known / 8;
}

/* Also without the lock: no division changes the budget. */
static bool has_budget(const struct hr_engine *engine)
{
    return engine->plan.memory.budget > 0;
}

void hr__budget_limit_caches(const struct hr_plan *plan, bool least)
{
    for (uint32_t i = 0; i < plan->graph->count; i++) {
        const struct hr_graph_node *n = &plan->graph->nodes[i];

        if (n->op->memory.limit != NULL && n->state != NULL)
            n->op->memory.limit(n->params, n->state,
                                least ? 0 : hr__plan_cache_bytes(plan, i));
    }
}

/* Sequencers ask for room without the lock, while the plan may be divided again. */
static void set_limits(struct hr_engine *engine)
{
    hr__budget_limit_caches(&engine->plan, false);
    if (!has_budget(engine))
        return;
    engine->kept_least = hr__plan_kept_least(&engine->plan);
    if (!engine->pool_shared)
        hr__pool_keep(engine->pool, hr__plan_record_bytes(&engine->plan));
    for (size_t i = 0; i < engine->stage_count; i++)
        atomic_store_explicit(&engine->stages[i].in_bytes_max,
                              engine->plan.stages[i].memory.queue_bytes,
                              memory_order_relaxed);
}

/* Bytes of a buffer that may stay for a part of its values: where records leave in order,
 * those of a thread's slab leave together. A window keeps few of many. */
#define SPARE_BYTES ((size_t)256 << 10)
#define SPARE_OF_WINDOW ((size_t)32 << 10)

static bool has_window(const struct hr_plan *plan)
{
    for (size_t i = 0; i < plan->graph->count; i++) {
        const struct hr_op_sequence *op = &plan->graph->nodes[i].op->sequence;

        if (op->holds != NULL && op->runs == NULL)
            return true;
    }
    return false;
}

void hr__budget_init(struct hr_engine *engine)
{
    set_limits(engine);
    if (!has_budget(engine))
        return;
    engine->owner_spare = has_window(&engine->plan) ? SPARE_OF_WINDOW : SPARE_BYTES;
    for (size_t i = 0; i < engine->stage_count; i++) {
        struct hr_stage *stage = &engine->stages[i];
        const struct hr_program *p = &stage->program;

        for (size_t f = 0; f < p->out_count; f++)
            stage->sizes_vary = stage->sizes_vary || p->out[f].bytes < 0;
        stage->sizes_vary = stage->sizes_vary || p->expand.op != NULL;
        stage->unknown_sizes = stage->sizes_vary && !engine->sizes.stages[i].known;
    }
}

uint32_t hr__budget_admit(const struct hr_stage *stage, uint32_t count)
{
    const struct hr_engine *engine = stage->engine;
    uint64_t limit, each, used, room;

    hr__engine_assert_locked(engine);
    if (!has_budget(engine) || stage->direct)
        return count;
    if (stage->unknown_sizes && stage->seen.records == 0)
        return stage->running > 0 ? 0 : 1; /* the first one is measured alone */
    limit = stage->program.plan->memory.block_bytes;
    each = engine->sizes.stages[stage->number].result;
    used = stage->result_bytes + hr__bytes_times(stage->running, each);
    room = used < limit ? (limit - used) / (each > 0 ? each : 1) : 0;
    if (room == 0 && stage->running == 0 && stage->result_bytes == 0)
        room = 1;
    return count < room ? count : (uint32_t)room;
}

uint64_t hr__budget_room(const struct hr_stage *stage, uint32_t count)
{
    const struct hr_engine *engine = stage->engine;

    hr__engine_assert_locked(engine);
    if (!has_budget(engine) || stage->direct || !stage->sizes_vary)
        return UINT64_MAX;
    return hr__bytes_times(count, engine->sizes.stages[stage->number].result);
}

uint32_t hr__budget_step(const struct hr_claim *claim)
{
    int threads = claim->stage->engine->thread_count;
    double ns = claim->record_ns > 1 ? claim->record_ns : 1, step = STEP_NS / ns;
    double most = (double)STEP_RECORDS / (threads > 0 ? threads : 1);

    if (claim->room_bytes == UINT64_MAX)
        return UINT32_MAX;
    step = step < most ? step : most;
    return step > STEP_LEAST ? (uint32_t)step : STEP_LEAST;
}

static uint64_t row_bytes(const struct hr_value *row, size_t count)
{
    uint64_t bytes = 0;

    for (size_t f = 0; f < count; f++)
        bytes += row[f].kind == HR_VALUE_NONE ? 0 : row[f].bytes;
    return bytes;
}

/* What the record's results hold. The largest child is noted in *item_max. */
static uint64_t record_bytes(const struct hr_program *p, const struct hr_block *block,
                             uint32_t at, uint64_t *item_max)
{
    uint64_t bytes = 0;

    if (block->children == NULL)
        return row_bytes(&block->rows[at * p->out_count], p->out_count);
    for (uint64_t c = 0; c < block->children[at].count; c++) {
        uint64_t item =
            row_bytes(&block->children[at].values[c * p->child_count], p->child_count);

        bytes += item + hr__values_bytes(p->child_count);
        *item_max = item > *item_max ? item : *item_max;
    }
    return bytes;
}

bool hr__budget_is_used(const struct hr_claim *claim, uint32_t from, uint32_t until,
                        uint64_t *bytes)
{
    uint64_t item = 0;

    if (claim->room_bytes == UINT64_MAX)
        return false;
    for (uint32_t i = from; i < until; i++)
        *bytes += record_bytes(&claim->stage->program, claim->block, i, &item);
    return has_grown(*bytes, claim->room_bytes);
}

void hr__budget_measure(struct hr_claim *claim, uint64_t scratch)
{
    struct hr_block *block = claim->block;

    if (!has_budget(claim->stage->engine))
        return;
    claim->scratch = scratch;
    for (uint32_t i = claim->at; i < claim->at + claim->count; i++) {
        uint64_t bytes = record_bytes(&claim->stage->program, block, i, &claim->item_max);

        block->result_bytes[i] = bytes;
        claim->result_bytes += bytes;
        if (i == claim->at || bytes > claim->result_max) {
            claim->result_max = bytes;
            claim->largest = i;
        }
    }
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A batch of the largest records that the stage has seen; 0: it joins something else,
 * such as rows that were packed of them. */
static uint64_t batch_of_items(const struct hr_stage *stage)
{
    const struct hr_graph_node *nodes = stage->engine->graph->nodes;
    const struct hr_plan_stage *plan = stage->program.plan;
    uint32_t batch = hr__plan_stage_batch(&stage->engine->plan, plan);

    if (batch == HR_NO_NODE || nodes[batch].op->sequence.runs == NULL)
        return 0;
    for (size_t i = 0; i < plan->sequence_count && plan->sequence[i] != batch; i++)
        if (nodes[plan->sequence[i]].op->kind != HR_OP_ORDER)
            return 0;
    return hr__bytes_times(hr__node_joins(&nodes[batch], NULL), stage->seen.item);
}

/* Raises the known sizes to the largest seen. Returns whether any grew. */
static bool grow_sizes(struct hr_engine *engine)
{
    bool grown = has_grown(hr__plan_kept_least(&engine->plan), engine->kept_least);

    for (size_t i = 0; i < engine->stage_count; i++) {
        const struct hr_stage_sizes *seen = &engine->stages[i].seen;
        struct hr_stage_sizes *known = &engine->sizes.stages[i];
        uint64_t batch = batch_of_items(&engine->stages[i]);

        if (seen->records == 0)
            continue;
        batch = known->batch > 0 && batch > seen->batch ? batch : seen->batch;
        grown = grown || has_grown(seen->result, known->result) ||
                has_grown(seen->item, known->item) ||
                has_grown(seen->scratch, known->scratch) ||
                (known->batch > 0 && has_grown(batch, known->batch));
        if (engine->stages[i].unknown_sizes && known->records == 0)
            grown = true; /* estimates may have been too large, too */
        known->records = seen->records;
        if (grown && !known->known) {
            known->result = seen->result > 0 ? seen->result : 1;
            known->item = seen->item > 0 ? seen->item : 1;
        }
        if (grown) {
            known->result = larger(seen->result, known->result);
            known->item = larger(seen->item, known->item);
            known->scratch = larger(seen->scratch, known->scratch);
            if (known->batch > 0 && batch > 0)
                known->batch = known->known ? larger(batch, known->batch) : batch;
        }
    }
    return grown;
}

static void
blame_record(struct hr_stage *stage, const struct hr_claim *claim, struct hr_error *error)
{
    const struct hr_engine *engine = stage->engine;
    const char *node = engine->graph->nodes[stage->program.plan->last].name;
    struct hr_record_id id = claim->block->ids[claim->largest];
    uint32_t source = hr__path_source(&engine->stages[0].program, 0, &id.index);

    hr__error_prefix(error, "a record is larger than expected");
    snprintf(error->node, sizeof error->node, "%s", node);
    hr__run_locate(engine->graph, source, &id, error);
}

/* Divides the budget again if sizes grew, by a record of the claim or, if that is NULL,
 * by a batch. */
static void revise(struct hr_stage *stage, const struct hr_claim *claim)
{
    struct hr_engine *engine = stage->engine;
    struct hr_error error = {0};
    enum hr_err code;

    if (!grow_sizes(engine))
        return;
    code = hr__plan_divide(&engine->plan, &engine->sizes, engine->options.ahead_bytes,
                           true, &error);
    set_limits(engine);
    if (code == HR_ERR_LIMIT && claim != NULL)
        blame_record(stage, claim, &error);
    if (code == HR_ERR_LIMIT)
        hr__engine_fail(engine, engine->stage_count - 1, &error, NULL);
}

void hr__budget_complete(struct hr_stage *stage, const struct hr_claim *claim)
{
    struct hr_stage_sizes *seen = &stage->seen;
    uint64_t item =
        stage->program.expand.op != NULL ? claim->item_max : claim->result_max;
    uint64_t inputs = 0;

    hr__engine_assert_locked(stage->engine);
    if (!has_budget(stage->engine))
        return;
    stage->result_bytes += claim->result_bytes;
    for (uint32_t i = claim->at; stage->number > 0 && i < claim->at + claim->count; i++)
        inputs += claim->block->input_bytes[i];
    atomic_fetch_sub(&stage->in_bytes, inputs);
    seen->records += claim->count;
    seen->result = claim->result_max > seen->result ? claim->result_max : seen->result;
    seen->item = item > seen->item ? item : seen->item;
    seen->scratch = claim->scratch > seen->scratch ? claim->scratch : seen->scratch;
    revise(stage, claim);
}

/* Without a budget: batches larger than planned are fewer, unless the plan was given. */
static void limit_batches(struct hr_engine *engine, uint64_t bytes)
{
    struct hr_stage_sizes *last;
    struct hr_sizes sizes;
    enum hr_err code;

    if (engine->options.plan != NULL || !has_grown(bytes, engine->plan.memory.batch))
        return;
    hr__sizes_estimate(&engine->plan, NULL, &sizes);
    last = &sizes.stages[engine->stage_count - 1];
    *(last->batch > 0 ? &last->batch : &last->item) = bytes;
    code =
        hr__plan_divide(&engine->plan, &sizes, engine->options.ahead_bytes, true, NULL);
    assert(code == HR_OK);
    (void)code;
}

void hr__budget_output(struct hr_stage *stage, uint64_t bytes)
{
    hr__engine_assert_locked(stage->engine);
    if (bytes <= stage->seen.batch)
        return;
    stage->seen.batch = bytes;
    if (has_budget(stage->engine))
        revise(stage, NULL);
    else
        limit_batches(stage->engine, bytes);
}

bool hr__budget_has_room(const struct hr_stage *stage)
{
    const struct hr_engine *engine = stage->engine;
    uint64_t held = atomic_load_explicit(&stage->in_bytes, memory_order_relaxed);

    return !has_budget(engine) || held == 0 ||
           held < atomic_load_explicit(&stage->in_bytes_max, memory_order_relaxed);
}
