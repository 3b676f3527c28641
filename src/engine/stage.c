/*
 * A stage's bookkeeping: opening blocks, handing out chunks of them, taking them back.
 */
#include "engine/run.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"

static enum hr_err block_init(struct hr_stage *stage, struct hr_block *block)
{
    struct hr_program *p = &stage->program;
    size_t size = stage->block_size, results;

    hr__program_results(p, &results);
    block->status = hr__calloc(size, sizeof *block->status);
    block->bad = hr__calloc(size, sizeof(void *));
    block->rows = hr__calloc(size * (results + 1), sizeof *block->rows);
    block->columns = hr__calloc(results + 1, sizeof(void *));
    block->ids = hr__calloc(size, sizeof *block->ids);
    if (block->status == NULL || block->bad == NULL || block->rows == NULL ||
        block->columns == NULL || block->ids == NULL)
        return HR_ERR_MEMORY;
    if (p->expand.op != NULL) {
        block->children = hr__calloc(size, sizeof *block->children);
        if (block->children == NULL)
            return HR_ERR_MEMORY;
    }
    if (stage->number == 0)
        return HR_OK;
    block->inputs = hr__calloc(size * (p->in_count + 1), sizeof *block->inputs);
    block->cursors = hr__calloc(size, sizeof *block->cursors);
    return block->inputs != NULL && block->cursors != NULL ? HR_OK : HR_ERR_MEMORY;
}

static void bad_destroy(struct hr_bad *bad)
{
    while (bad != NULL) {
        struct hr_bad *next = bad->next;

        hr__free(bad->detail);
        hr__free(bad);
        bad = next;
    }
}

void hr__children_clear(struct hr_children *children, size_t fields)
{
    for (size_t i = 0; i < children->count * fields; i++)
        hr__value_clear(&children->values[i]);
    hr__free(children->values);
    memset(children, 0, sizeof *children);
}

void hr__block_clear(struct hr_stage *stage, struct hr_block *block)
{
    size_t results;

    if (block->rows == NULL)
        return;
    hr__program_results(&stage->program, &results);
    for (size_t i = 0; i < block->size; i++) {
        for (size_t f = 0; f < results; f++)
            if (block->rows[i * results + f].kind != HR_VALUE_NONE)
                hr__value_clear(&block->rows[i * results + f]);
        for (size_t f = 0; block->inputs != NULL && f < stage->program.in_count; f++)
            hr__value_clear(&block->inputs[i * stage->program.in_count + f]);
        if (block->children != NULL)
            hr__children_clear(&block->children[i], results);
        bad_destroy(block->bad[i]);
        block->bad[i] = NULL;
    }
    for (size_t f = 0; f < results; f++) {
        hr_buffer_unref(block->columns[f]);
        block->columns[f] = NULL;
    }
    memset(block->status, HR_RECORD_OPEN, stage->block_size);
    block->size = block->claimed = block->done = block->holes = block->at = 0;
    block->child = 0;
    block->last = false;
}

static void block_finish(struct hr_stage *stage, struct hr_block *block)
{
    if (block->status != NULL && block->bad != NULL && block->columns != NULL)
        hr__block_clear(stage, block);
    hr__free(block->status);
    hr__free(block->bad);
    hr__free(block->rows);
    hr__free(block->columns);
    hr__free(block->ids);
    hr__free(block->children);
    hr__free(block->inputs);
    hr__free(block->cursors);
}

static enum hr_err init_sequencer(struct hr_stage *stage)
{
    struct hr_program *p = &stage->program;
    struct hr_window *w = &stage->window;
    size_t results;

    hr__program_results(p, &results);
    for (size_t i = 0; i < p->stream_count; i++) {
        const struct hr_op *op = p->streams[i].op;

        if (op->stream_block == NULL ||
            (w->block = op->stream_block(p->streams[i].params)) == 0)
            continue;
        w->stream = i;
        w->rows = hr__calloc(w->block * (results + 1), sizeof *w->rows);
        w->ids = hr__calloc(w->block, sizeof *w->ids);
        if (w->rows == NULL || w->ids == NULL)
            return HR_ERR_MEMORY;
    }
    stage->row = hr__calloc(results + 1, sizeof *stage->row);
    if (stage->row == NULL)
        return HR_ERR_MEMORY;
    if (p->batch != NULL) {
        size_t room = (size_t)p->spec.size * (results + 1);

        stage->batcher.columns = hr__calloc(results + 1, sizeof(void *));
        stage->batcher.rows = hr__calloc(room, sizeof *stage->batcher.rows);
        if (stage->batcher.columns == NULL || stage->batcher.rows == NULL)
            return HR_ERR_MEMORY;
    }
    return HR_OK;
}

static enum hr_err init_queue(struct hr_stage *stage)
{
    if (stage->number == 0)
        return HR_OK;
    stage->queue_room = stage->program.plan->memory.queue_records;
    stage->queue = hr__calloc(stage->queue_room, sizeof *stage->queue);
    stage->queue_values = hr__calloc(stage->queue_room * (stage->program.in_count + 1),
                                     sizeof *stage->queue_values);
    return stage->queue != NULL && stage->queue_values != NULL ? HR_OK : HR_ERR_MEMORY;
}

enum hr_err hr__stage_init(struct hr_stage *stage, struct hr_engine *engine,
                           size_t number, struct hr_error *reterr)
{
    stage->engine = engine;
    stage->number = number;
    stage->direct = engine->plan.stages[number].direct;
    HR_TRY(hr__program_init(&stage->program, &engine->plan, number, reterr));
    stage->block_size = stage->program.plan->memory.block_records;
    stage->block_count = stage->program.plan->memory.block_count;
    stage->blocks = hr__calloc(stage->block_count, sizeof *stage->blocks);
    if (stage->blocks == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < stage->block_count; i++)
        if (block_init(stage, &stage->blocks[i]) != HR_OK)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (init_sequencer(stage) != HR_OK || init_queue(stage) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static void clear_rows(struct hr_value *rows, size_t count)
{
    for (size_t i = 0; rows != NULL && i < count; i++)
        hr__value_clear(&rows[i]);
    hr__free(rows);
}

void hr__stage_finish(struct hr_stage *stage)
{
    struct hr_program *p = &stage->program;
    size_t results = 0;

    if (stage->engine == NULL)
        return;
    if (p->plan != NULL)
        hr__program_results(p, &results);
    for (size_t i = 0; stage->blocks != NULL && i < stage->block_count; i++)
        block_finish(stage, &stage->blocks[i]);
    hr__free(stage->blocks);
    clear_rows(stage->window.rows, (size_t)stage->window.block * (results + 1));
    hr__free(stage->window.ids);
    clear_rows(stage->row, results + 1);
    if (stage->batcher.rows != NULL)
        clear_rows(stage->batcher.rows, (size_t)p->spec.size * (results + 1));
    for (size_t f = 0; stage->batcher.columns != NULL && f < results; f++)
        hr_buffer_unref(stage->batcher.columns[f]);
    hr__free(stage->batcher.columns);
    clear_rows(stage->queue_values, stage->queue_room * (p->in_count + 1));
    hr__free(stage->queue);
    hr__program_finish(p);
}

/* ---- opening blocks ---- */

static struct hr_block *empty_block(struct hr_stage *stage)
{
    for (size_t i = 0; i < stage->block_count; i++)
        if (stage->blocks[i].state == HR_BLOCK_EMPTY)
            return &stage->blocks[i];
    return NULL;
}

/* Memory of the columns of a direct block. */
static enum hr_err
get_columns(struct hr_stage *stage, struct hr_block *block, uint32_t size)
{
    struct hr_program *p = &stage->program;

    for (size_t f = 0; f < p->out_count; f++) {
        enum hr_err code;

        if (p->out[f].bytes < 0)
            continue;
        code = hr__column_get(stage->engine->pool, &p->out[f], size, &block->columns[f]);
        if (code == HR_OK)
            continue;
        for (size_t k = 0; k < f; k++) {
            hr_buffer_unref(block->columns[k]);
            block->columns[k] = NULL;
        }
        return code;
    }
    return HR_OK;
}

static struct hr_block *
begin_block(struct hr_stage *stage, struct hr_block *block, uint64_t epoch,
            uint64_t first, uint32_t size, bool last)
{
    block->number = stage->blocks_opened++;
    block->epoch = epoch;
    block->first = first;
    block->size = size;
    block->last = last;
    block->state = size == 0 ? HR_BLOCK_READY : HR_BLOCK_OPEN;
    stage->live++;
    return block;
}

/* The number of positions that the epoch has for this engine. With drop_last the rest is
 * not even begun, unless holes may have to be filled from it. */
static uint64_t positions(const struct hr_stage *stage)
{
    const struct hr_engine *engine = stage->engine;
    uint64_t n = stage->epoch_count, whole = (uint64_t)engine->graph->whole;

    if (whole > 0 && engine->options.on_error != HR_ON_ERROR_SKIP &&
        engine->done.count == 0)
        n -= n % whole;
    return n;
}

static bool more_epochs(const struct hr_stage *stage)
{
    const struct hr_iter_options *o = &stage->engine->options;

    return o->epochs == 0 ||
           stage->epoch < (uint64_t)o->epoch_first + (uint64_t)o->epochs;
}

static void next_epoch(struct hr_stage *stage)
{
    stage->epoch++;
    stage->position = 0;
    stage->epoch_count = hr__engine_positions(stage->engine, stage->epoch);
    if (!more_epochs(stage) || stage->epoch_count == 0)
        stage->exhausted = true;
}

/* The consumer took a batch a moment ago, and the one that it had before is not back. */
static bool too_early(const struct hr_engine *engine)
{
    const struct hr_plan_memory *memory = &engine->plan.memory;
    struct hr_pool_stats pool;

    if (memory->release_wait_ns == 0 || engine->consumer_waits ||
        hr__now_ns() - engine->popped_ns > memory->release_wait_ns)
        return false;
    hr_pool_stats(engine->pool, &pool);
    return pool.idle_bytes < memory->batch;
}

/* Fails the run, once all that precedes has been sequenced. */
static void end_numbers(struct hr_stage *stage)
{
    struct hr_error error = {0};

    if (stage->live > 0)
        return;
    hr__fail(&error, HR_ERR_LIMIT, "epoch %llu is the last that can be numbered",
             (unsigned long long)stage->epoch - 1);
    hr__engine_fail(stage->engine, stage->number, &error, NULL);
}

static struct hr_block *open_positions(struct hr_stage *stage)
{
    struct hr_engine *engine = stage->engine;
    size_t live = stage->live + (stage->direct ? engine->out_count : 0);
    struct hr_block *block = empty_block(stage);
    uint64_t n, left;
    uint32_t size;
    enum hr_err code;

    if (stage->exhausted || block == NULL || live >= stage->block_count ||
        too_early(engine))
        return NULL;
    if (stage->epoch >= engine->epochs_max) {
        end_numbers(stage);
        return NULL;
    }
    n = stage->epoch < stage->cut ? stage->position : positions(stage);
    left = n - stage->position;
    size = left < stage->block_size ? (uint32_t)left : stage->block_size;
    code = stage->direct ? get_columns(stage, block, size) : HR_OK;
    if (code != HR_OK) {
        struct hr_error error = {0};

        if (stage->live > 0 || engine->out_count > 0)
            return NULL; /* memory will come back */
        hr__fail(&error, code, "no memory for a batch of %u records", size);
        hr__engine_fail(engine, stage->number, &error, NULL);
        return NULL;
    }
    begin_block(stage, block, stage->epoch, stage->position, size, size == left);
    stage->position += size;
    if (size == left)
        next_epoch(stage);
    return block;
}

static struct hr_block *open_items(struct hr_stage *stage)
{
    struct hr_block *block = empty_block(stage);
    size_t in = stage->program.in_count;
    uint32_t size = 0;
    bool last = false;

    if (stage->queue_count == 0 || block == NULL)
        return NULL;
    while (stage->queue_count > 0 && size < stage->block_size && !last) {
        struct hr_item *item = &stage->queue[stage->queue_head];
        struct hr_value *values = &stage->queue_values[stage->queue_head * in];

        block->epoch = item->epoch;
        last = item->epoch_end;
        if (!last) {
            block->ids[size] = item->id;
            block->cursors[size] = item->cursor;
            memcpy(&block->inputs[size * in], values, in * sizeof *values);
            memset(values, 0, in * sizeof *values);
            size++;
        }
        stage->queue_head = (stage->queue_head + 1) % stage->queue_room;
        stage->queue_count--;
    }
    return begin_block(stage, block, block->epoch, 0, size, last);
}

bool hr__stage_drained(const struct hr_stage *stage)
{
    return stage->live == 0 && stage->queue_count == 0 && !stage->sequencing &&
           !stage->window.draining && (stage->number > 0 || stage->exhausted);
}

/* Of a block that has `left` records. Requests are shared out evenly, and less and less
 * at a time, so that all workers end at once. */
static uint32_t choose_chunk(const struct hr_stage *stage, uint32_t left)
{
    const struct hr_plan_stage *plan = stage->program.plan;
    double record_ns = stage->record_ns > 1 ? stage->record_ns : 1;
    double want = (double)plan->chunk_ns / record_ns;
    double most = (double)plan->request_ns / record_ns;

    if (want < most) {
        double share = left / (2.0 * (stage->engine->thread_count + 1));

        share = share < most ? share : most;
        want = want > share ? want : share;
    }
    if (plan->chunk_bytes > 0 && want * stage->record_bytes > (double)plan->chunk_bytes)
        want = (double)plan->chunk_bytes / stage->record_bytes;
    if (want > plan->chunk_records)
        want = plan->chunk_records;
    return want < 1 || stage->record_ns == 0 ? 1 : (uint32_t)want;
}

bool hr__stage_claim(struct hr_stage *stage, struct hr_claim *ret_claim)
{
    struct hr_block *block = stage->open;
    uint32_t left, chunk;

    hr__engine_assert_locked(stage->engine);
    if (block == NULL) {
        block = stage->number == 0 ? open_positions(stage) : open_items(stage);
        if (block == NULL)
            return false;
        if (block->state == HR_BLOCK_READY) { /* empty: only the end of an epoch */
            *ret_claim = (struct hr_claim){.stage = stage, .block = block};
            return true;
        }
        stage->open = block;
    }
    assert(block->state == HR_BLOCK_OPEN && block->claimed < block->size);
    left = block->size - block->claimed;
    chunk = choose_chunk(stage, left);
    chunk = chunk < left ? chunk : left;
    *ret_claim = (struct hr_claim){.stage = stage,
                                   .block = block,
                                   .at = block->claimed,
                                   .count = chunk,
                                   .record_ns = stage->record_ns};
    block->claimed += chunk;
    if (block->claimed == block->size)
        stage->open = NULL;
    return true;
}

void hr__stage_complete(struct hr_stage *stage, const struct hr_claim *claim, uint64_t ns)
{
    struct hr_block *block = claim->block;
    double each = claim->count > 0 ? (double)ns / claim->count : 0;
    double old = stage->program.segment_count > 0 ? 0.5 : 0.9;

    hr__engine_assert_locked(stage->engine);
    if (claim->count == 0)
        return;
    assert(block->state == HR_BLOCK_OPEN && block->done + claim->count <= block->claimed);
    stage->record_ns =
        stage->record_ns == 0 ? each : stage->record_ns * old + each * (1 - old);
    stage->record_bytes =
        stage->record_bytes * old + (double)claim->bytes / claim->count * (1 - old);
    block->done += claim->count;
    for (uint32_t i = claim->at; i < claim->at + claim->count; i++)
        block->holes += block->status[i] != HR_RECORD_GOOD;
    if (block->done == block->size)
        block->state = HR_BLOCK_READY;
}
