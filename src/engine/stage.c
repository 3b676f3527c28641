/*
 * engine/stage.c - a stage's bookkeeping: opens blocks, hands out chunks of them, takes
 * them back.
 */
#include "engine/budget.h"
#include "engine/run.h"
#include "engine/sequence.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"

/* Many rows of many fields are megabytes, which are never touched while all fields are in
 * columns: pages that come zeroed cost nothing then. */
static struct hr_value *rows_alloc(size_t bytes)
{
    return bytes >= HR_PAGES_MIN ? hr__pages_alloc(bytes) : hr__calloc(1, bytes);
}

static void rows_free(struct hr_value *rows, size_t bytes)
{
    if (bytes >= HR_PAGES_MIN)
        hr__pages_free(rows, bytes);
    else
        hr__free(rows);
}

static enum hr_err block_init(struct hr_stage *stage, struct hr_block *block)
{
    struct hr_program *p = &stage->program;
    size_t size = stage->block_size, results;

    hr__program_results(p, &results);
    block->rows_bytes = size * (results + 1) * sizeof *block->rows;
    block->status = hr__calloc(size, sizeof *block->status);
    block->claims = hr__calloc(size, sizeof *block->claims);
    block->result_bytes = hr__calloc(size, sizeof *block->result_bytes);
    block->bad = hr__calloc(size, sizeof(void *));
    block->rows = rows_alloc(block->rows_bytes);
    block->columns = hr__calloc(results + 1, sizeof(void *));
    block->in_columns = hr__calloc(results + 1, sizeof *block->in_columns);
    block->ids = hr__calloc(size, sizeof *block->ids);
    if (block->claims == NULL || block->result_bytes == NULL)
        return HR_ERR_MEMORY;
    if (block->status == NULL || block->bad == NULL || block->rows == NULL ||
        block->columns == NULL || block->in_columns == NULL || block->ids == NULL)
        return HR_ERR_MEMORY;
    if (p->expand.op != NULL) {
        block->children = hr__calloc(size, sizeof *block->children);
        if (block->children == NULL)
            return HR_ERR_MEMORY;
    }
    if (stage->number == 0)
        return HR_OK;
    block->inputs = hr__calloc(size * (p->in_count + 1), sizeof *block->inputs);
    block->records = hr__calloc(size, sizeof *block->records);
    block->places = hr__calloc(size, sizeof *block->places);
    block->input_bytes = hr__calloc(size, sizeof *block->input_bytes);
    return block->inputs != NULL && block->input_bytes != NULL &&
                   block->records != NULL && block->places != NULL
               ? HR_OK
               : HR_ERR_MEMORY;
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
    for (size_t f = 0; f < results; f++) /* field by field: rows are large */
        for (size_t i = 0; !block->in_columns[f] && i < block->size; i++)
            if (block->rows[i * results + f].kind != HR_VALUE_NONE)
                hr__value_clear(&block->rows[i * results + f]);
    for (size_t i = 0; i < block->size; i++) {
        for (size_t f = 0; block->inputs != NULL && f < stage->program.in_count; f++)
            hr__value_clear(&block->inputs[i * stage->program.in_count + f]);
        if (block->children != NULL)
            hr__children_clear(&block->children[i], results);
        if (block->places != NULL)
            hr__place_clear(&block->places[i]);
        bad_destroy(block->bad[i]);
        block->bad[i] = NULL;
    }
    for (size_t f = 0; f < results; f++) {
        hr_buffer_unref(block->columns[f]);
        block->columns[f] = NULL;
        block->in_columns[f] = false;
    }
    memset(block->status, HR_RECORD_OPEN, stage->block_size);
    memset(block->claims, 0, stage->block_size);
    memset(block->result_bytes, 0, stage->block_size * sizeof *block->result_bytes);
    block->ready = block->back = 0;
    block->size = block->claimed = block->done = block->holes = block->at = 0;
    hr__place_clear(&block->end);
    block->child = 0;
    block->last = false;
}

static void block_finish(struct hr_stage *stage, struct hr_block *block)
{
    if (block->status != NULL && block->bad != NULL && block->columns != NULL &&
        block->in_columns != NULL && block->claims != NULL && block->result_bytes != NULL)
        hr__block_clear(stage, block);
    hr__free(block->status);
    hr__free(block->claims);
    hr__free(block->result_bytes);
    hr__free(block->input_bytes);
    hr__free(block->bad);
    rows_free(block->rows, block->rows_bytes);
    hr__free(block->columns);
    hr__free(block->in_columns);
    hr__free(block->ids);
    hr__free(block->children);
    hr__free(block->inputs);
    hr__free(block->records);
    hr__free(block->places);
}

enum hr_err hr__stage_init(struct hr_stage *stage, struct hr_engine *engine,
                           size_t number, struct hr_error *reterr)
{
    stage->engine = engine;
    stage->number = number;
    stage->direct = engine->plan.stages[number].direct;
    HR_TRY(hr__program_init(&stage->program, &engine->plan, number, reterr));
    if (engine->options.uncached)
        hr__program_uncache(&stage->program);
    stage->block_size = stage->program.plan->memory.block_records;
    stage->block_count = stage->program.plan->memory.block_count;
    stage->blocks = hr__calloc(stage->block_count, sizeof *stage->blocks);
    if (stage->blocks == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < stage->block_count; i++)
        if (block_init(stage, &stage->blocks[i]) != HR_OK)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return hr__sequencers_init(stage, reterr);
}

void hr__stage_finish(struct hr_stage *stage)
{
    struct hr_place parent = {.mark = stage->parent};

    if (stage->engine == NULL)
        return;
    for (size_t i = 0; stage->blocks != NULL && i < stage->block_count; i++)
        block_finish(stage, &stage->blocks[i]);
    hr__free(stage->blocks);
    hr__sequencers_finish(stage);
    hr__place_clear(&parent);
    hr__place_clear(&stage->before);
    hr__place_clear(&stage->after);
    hr__program_finish(&stage->program);
}

/* ---- opening blocks ---- */

struct hr_block *hr__stage_empty_block(struct hr_stage *stage)
{
    hr__engine_assert_locked(stage->engine);
    for (size_t i = 0; i < stage->block_count; i++)
        if (stage->blocks[i].state == HR_BLOCK_EMPTY)
            return &stage->blocks[i];
    return NULL;
}

/* In a stage that is not direct, larger records have buffers of their own, since they may
 * be held long after the rest of their block. */
#define COLUMN_ROW_MAX 2048

/* Whether values of the result are stored in a column: not if some may cross a cut as
 * descriptions. */
static bool has_column(const struct hr_stage *stage, const struct hr_out_field *out)
{
    if (out->bytes < 0 || (!stage->direct && out->bytes > COLUMN_ROW_MAX))
        return false;
    return !stage->program.cut || !hr__field_may_defer(out->field);
}

enum hr_err
hr__block_columns(struct hr_stage *stage, struct hr_block *block, uint32_t size)
{
    struct hr_program *p = &stage->program;
    enum hr_err code = HR_OK;

    if (p->expand.op != NULL)
        return HR_OK;
    for (size_t f = 0; f < p->out_count && code == HR_OK; f++) {
        if (!has_column(stage, &p->out[f]))
            continue;
        code = hr__column_get(stage->engine->pool, &p->out[f], size, &block->columns[f]);
    }
    for (size_t f = 0; code != HR_OK && f < p->out_count; f++) {
        hr_buffer_unref(block->columns[f]);
        block->columns[f] = NULL;
    }
    for (size_t f = 0; f < p->out_count; f++)
        block->in_columns[f] = block->columns[f] != NULL;
    return code;
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

/* The number of positions of the epoch for this engine. With drop_last, positions after
 * the last full batch are not begun unless they may have to fill holes. */
static uint64_t positions(const struct hr_stage *stage)
{
    const struct hr_engine *engine = stage->engine;
    uint64_t n = stage->epoch_count, whole = (uint64_t)engine->graph->whole;

    if (whole > 0 && engine->options.on_error != HR_ON_ERROR_SKIP &&
        hr__done_is_empty(&engine->done))
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

/* Whether the consumer has just taken a batch and has not released the previous one yet.
 */
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

/* Fails the run once everything before has been sequenced. */
static void end_numbers(struct hr_stage *stage)
{
    struct hr_error error = {0};

    if (stage->live > 0)
        return;
    hr__fail(&error, HR_ERR_LIMIT, "epoch %llu is the last that can be numbered",
             (unsigned long long)stage->epoch - 1);
    hr__engine_fail(stage->engine, stage->number, &error, NULL);
}

/* A budget that was divided again may allow fewer blocks than there are. */
static size_t blocks_allowed(const struct hr_stage *stage)
{
    size_t allowed = stage->program.plan->memory.block_count;

    return allowed < stage->block_count ? allowed : stage->block_count;
}

static struct hr_block *open_positions(struct hr_stage *stage)
{
    struct hr_engine *engine = stage->engine;
    size_t live = stage->live + (stage->direct ? engine->out_count : 0);
    struct hr_block *block = hr__stage_empty_block(stage);
    uint64_t n, left;
    uint32_t size;
    enum hr_err code;

    if (stage->exhausted || block == NULL || live >= blocks_allowed(stage) ||
        too_early(engine))
        return NULL;
    if (stage->epoch >= engine->epochs_max) {
        end_numbers(stage);
        return NULL;
    }
    n = stage->epoch < stage->cut ? stage->position : positions(stage);
    left = n - stage->position;
    size = left < stage->block_size ? (uint32_t)left : stage->block_size;
    if (size > engine->positions_max - stage->positions_opened)
        size = (uint32_t)(engine->positions_max - stage->positions_opened);
    if (size == 0 && left > 0)
        return NULL; /* the run's limit on records needs no more */
    code = hr__block_columns(stage, block, size);
    if (code != HR_OK && stage->direct) { /* other stages do without columns */
        struct hr_error error = {0};

        if (stage->live > 0 || engine->out_count > 0)
            return NULL; /* memory will be released */
        hr__fail(&error, code, "no memory for a batch of %u records", size);
        hr__engine_fail(engine, stage->number, &error, NULL);
        return NULL;
    }
    begin_block(stage, block, stage->epoch, stage->position, size, size == left);
    stage->position += size;
    stage->positions_opened += size;
    if (size == left)
        next_epoch(stage);
    return block;
}

static bool is_unclaimed(const struct hr_block *block)
{
    return block->state == HR_BLOCK_OPEN && block->claimed < block->size;
}

static bool has_back(const struct hr_block *block)
{
    return block->back > 0;
}

/* Its records wait for a thread, or for the sequencer. */
static bool is_under_way(const struct hr_block *block)
{
    return block->state == HR_BLOCK_OPEN || block->state == HR_BLOCK_READY;
}

/* Of those that it is true of; or NULL. */
static struct hr_block *
oldest_block(const struct hr_stage *stage, bool (*is)(const struct hr_block *block))
{
    struct hr_block *oldest = NULL;

    for (size_t i = 0; i < stage->block_count; i++) {
        struct hr_block *block = &stage->blocks[i];

        if (is(block) && (oldest == NULL || block->number < oldest->number))
            oldest = block;
    }
    return oldest;
}

/* The oldest block with records to claim. If there is none, publishes what the stage
 * before has gathered so far, since this thread has nothing else to do. */
static struct hr_block *open_inputs(struct hr_stage *stage)
{
    struct hr_stage *before = stage - 1;
    struct hr_block *oldest = oldest_block(stage, is_unclaimed);

    if (oldest == NULL && !before->sequencing && before->filling != NULL &&
        before->filling->size > 0) {
        oldest = before->filling;
        hr__publish_locked(before);
    }
    return oldest;
}

bool hr__stage_drained(const struct hr_stage *stage)
{
    return stage->live == 0 && !stage->sequencing &&
           (stage->number > 0 || stage->exhausted);
}

/* The size of the next chunk of a block with `left` records. Requests are divided evenly
 * and shrink towards the end, so that all workers finish together. */
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

/* Claims records of the block. */
static void take(struct hr_stage *stage, struct hr_block *block, uint32_t at,
                 uint32_t count, struct hr_claim *ret_claim)
{
    stage->running += count;
    *ret_claim = (struct hr_claim){.stage = stage,
                                   .block = block,
                                   .at = at,
                                   .count = count,
                                   .record_ns = stage->record_ns,
                                   .room_bytes = hr__budget_room(stage, count)};
}

/* Records that a thread has given back come before all others. The sequencer may wait for
 * the first of them, so that one is admitted in any case. */
static bool claim_again(struct hr_stage *stage, struct hr_claim *ret_claim)
{
    struct hr_block *block = oldest_block(stage, has_back);
    const uint8_t *first;
    uint32_t at, count = 0, chunk;

    assert(block != NULL && stage->back >= block->back);
    first = memchr(block->claims, HR_CLAIM_BACK, block->size);
    assert(first != NULL);
    at = (uint32_t)(first - block->claims);
    while (at + count < block->size && first[count] == HR_CLAIM_BACK)
        count++;
    chunk = choose_chunk(stage, count);
    chunk = hr__budget_admit(stage, chunk < count ? chunk : count);
    if (chunk == 0 && (at > block->ready || block != oldest_block(stage, is_under_way)))
        return false;
    chunk = chunk > 0 ? chunk : 1;
    memset(&block->claims[at], HR_CLAIM_NONE, chunk);
    block->back -= chunk;
    stage->back -= chunk;
    take(stage, block, at, chunk, ret_claim);
    return true;
}

static void give_back(struct hr_stage *stage, const struct hr_claim *claim)
{
    struct hr_block *block = claim->block;

    assert(claim->count > 0 && stage->running >= claim->back);
    memset(&block->claims[claim->at + claim->count], HR_CLAIM_BACK, claim->back);
    block->back += claim->back;
    stage->back += claim->back;
    stage->running -= claim->back;
}

bool hr__stage_claim(struct hr_stage *stage, struct hr_claim *ret_claim)
{
    struct hr_block *block = stage->open;
    uint32_t left, chunk;

    hr__engine_assert_locked(stage->engine);
    if (stage->back > 0)
        return claim_again(stage, ret_claim);
    if (block == NULL) {
        block = stage->number == 0 ? open_positions(stage) : open_inputs(stage);
        if (block == NULL)
            return false;
        if (block->state == HR_BLOCK_READY) { /* empty: only marks the end of an epoch */
            *ret_claim = (struct hr_claim){.stage = stage, .block = block};
            return true;
        }
        stage->open = block;
    }
    assert(block->state == HR_BLOCK_OPEN && block->claimed < block->size);
    left = block->size - block->claimed;
    chunk = choose_chunk(stage, left);
    chunk = hr__budget_admit(stage, chunk < left ? chunk : left);
    if (chunk == 0)
        return false;
    take(stage, block, block->claimed, chunk, ret_claim);
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
    uint32_t holes = 0;

    hr__engine_assert_locked(stage->engine);
    if (claim->count == 0)
        return;
    assert(block->state == HR_BLOCK_OPEN && block->done + claim->count <= block->claimed);
    if (claim->back > 0)
        give_back(stage, claim);
    stage->record_ns =
        stage->record_ns == 0 ? each : stage->record_ns * old + each * (1 - old);
    stage->record_bytes =
        stage->record_bytes * old + (double)claim->bytes / claim->count * (1 - old);
    block->done += claim->count;
    for (uint32_t i = claim->at; i < claim->at + claim->count; i++)
        holes += block->status[i] != HR_RECORD_GOOD;
    block->holes += holes;
    if (stage->number == 0)
        stage->positions_opened -= holes;
    if (block->done == block->size) {
        block->state = HR_BLOCK_READY;
    } else {
        memset(&block->claims[claim->at], HR_CLAIM_DONE, claim->count);
        while (block->claims[block->ready] == HR_CLAIM_DONE)
            block->ready++;
    }
    assert(stage->running >= claim->count);
    stage->running -= claim->count;
    hr__budget_complete(stage, claim);
}
