/*
 * engine/sequence.c - sequencers: what happens to records in order.
 *
 * A sequencer takes complete blocks of its stage and passes each good record through
 * children, stream ops and batcher to what is behind. It stops where there is no room and
 * goes on there later, so its place is kept in the block (record, child) and in the
 * window. Only the thread that set `sequencing` touches any of this; the lock is taken
 * for queues, counts and failures.
 */
#include "engine/sequence.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"

static struct hr_cursor
cursor_of(const struct hr_stage *stage, const struct hr_block *block, uint32_t at,
          uint64_t child)
{
    struct hr_cursor cursor = {0};

    if (stage->number > 0) {
        cursor = block->cursors[at];
    } else {
        cursor.epoch = block->epoch;
        cursor.position = block->first + at;
        cursor.end_position = cursor.position + (block->children == NULL);
        cursor.end_child = block->children == NULL ? 0 : child + 1;
    }
    cursor.uneven |= stage->now.uneven;
    cursor.skip_children[stage->number] = child;
    memcpy(&cursor.ordinals[stage->ordinal_first],
           &stage->now.ordinals[stage->ordinal_first],
           stage->program.stream_count * sizeof cursor.ordinals[0]);
    return cursor;
}

static bool note_bad(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    struct hr_engine *engine = stage->engine;
    bool good =
        block->status[at] == HR_RECORD_GOOD || block->status[at] == HR_RECORD_DROPPED;
    bool fails = engine->options.on_error == HR_ON_ERROR_FAIL;
    struct hr_cursor cursor = cursor_of(stage, block, at, 0);

    if (block->bad[at]->noted) /* and its substitute waits for room */
        return true;
    block->bad[at]->noted = true;
    for (struct hr_bad *bad = block->bad[at]; bad != NULL; bad = bad->next) {
        enum hr_err code = bad->error.code;
        bool fatal = bad->fatal || hr__error_is_fatal(code);

        uint64_t errors = __atomic_add_fetch(&engine->errors, 1, __ATOMIC_RELAXED);

        fails |= fatal;
        hr__ledger_add(&engine->ledger, bad, stage->number, &cursor,
                       fails  ? "failed"
                       : good ? "substituted"
                              : "skipped",
                       fails || errors > engine->errors_max);
        if (fails) {
            hr__stage_fail_with(stage, code, &bad->error, &bad->detail);
            return false;
        }
        if (errors > engine->errors_max) {
            struct hr_error error = bad->error;

            hr__error_prefix(&error,
                             "%llu bad records, more than errors_max allows; the last",
                             (unsigned long long)errors);
            hr__stage_fail_with(stage, HR_ERR_LIMIT, &error, &bad->detail);
            return false;
        }
    }
    if (good)
        __atomic_add_fetch(&engine->substituted, 1, __ATOMIC_RELAXED);
    return true;
}

/* The record's values as a row: moved out of the block, or shown where they lie in
 * columns. */
static void
take_row(struct hr_stage *stage, struct hr_block *block, uint32_t at, uint64_t child)
{
    size_t count;
    const struct hr_out_field *fields = hr__program_results(&stage->program, &count);
    struct hr_value *from = block->children != NULL
                                ? &block->children[at].values[child * count]
                                : &block->rows[at * count];

    for (size_t f = 0; f < count; f++) {
        if (block->columns[f] != NULL) {
            const struct hr_field *field = fields[f].field;
            int64_t dims[HR_MAX_DIMS];

            for (int d = 0; d < field->ndim; d++)
                dims[d] = field->dims[d].size;
            hr__value_set_tensor(&stage->row[f], field->dtype, field->ndim, dims,
                                 (char *)hr_buffer_data(block->columns[f]) +
                                     (size_t)at * (size_t)fields[f].bytes,
                                 NULL);
            stage->row[f].layout = (uint8_t)field->layout;
        } else {
            stage->row[f] = from[f];
            memset(&from[f], 0, sizeof from[f]);
        }
    }
}

static struct hr_record_id
id_of(const struct hr_stage *stage, const struct hr_block *block, uint32_t at,
      uint64_t child)
{
    struct hr_record_id id = block->ids[at];

    if (stage->program.expand.op != NULL)
        hr__record_child(&id, child);
    return id;
}

/* Positions of the epoch from here on are beyond the source's end. */
static bool
is_behind_end(const struct hr_stage *stage, const struct hr_block *block, uint32_t at)
{
    return stage->source_ended == block->epoch + 1 &&
           block->first + at >= stage->source_end;
}

/* The source has no record here. Blocks of the epoch that were begun behind it give
 * nothing. An epoch without any record is the last where epochs have no number. */
static void end_source(struct hr_stage *stage, const struct hr_block *block, uint32_t at)
{
    struct hr_engine *engine = stage->engine;

    stage->source_ended = block->epoch + 1;
    stage->source_end = block->first + at;
    pthread_mutex_lock(&engine->lock);
    if (stage->cut < block->epoch + 1)
        stage->cut = block->epoch + 1;
    if (engine->options.epochs == 0 && stage->source_end == 0)
        stage->exhausted = true;
    pthread_mutex_unlock(&engine->lock);
}

/* Children that another world had done come no more. */
static void skip_done(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    uint64_t *skip = &stage->now.skip_children[0], done;

    if (stage->number > 0 || block->children == NULL || block->child > 0 ||
        hr__engine_is_done(stage->engine, block->epoch, block->first + at, &done))
        return;
    block->child = done;
    *skip -= *skip < done ? *skip : done;
}

/* One record of a block, all its children. False when it has to be gone on with later. */
static bool sequence_record(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    uint64_t children = block->children != NULL ? block->children[at].count : 1;

    if (stage->source_ended != 0 && is_behind_end(stage, block, at))
        return true;
    if (block->status[at] == HR_RECORD_END) {
        end_source(stage, block, at);
        return true;
    }
    if (block->child == 0 && block->bad[at] != NULL && !note_bad(stage, block, at))
        return false;
    if (block->status[at] == HR_RECORD_BAD && block->bad[at] == NULL) {
        struct hr_error error = {0};

        hr__stage_fail(stage, HR_ERR_MEMORY,
                       &error); /* not even for the error was there memory */
        return false;
    }
    stage->now.uneven |= block->status[at] == HR_RECORD_BAD;
    if (block->status[at] != HR_RECORD_GOOD)
        return block->status[at] != HR_RECORD_UNRUN;
    skip_done(stage, block, at);
    for (; block->child < children; block->child++) {
        struct hr_cursor cursor;
        struct hr_record_id id;

        if (!hr__stream_drain(stage, block->epoch) || !hr__stage_has_room(stage))
            return false;
        if (stage->now.skip_children[stage->number] > 0) {
            stage->now.skip_children[stage->number]--;
            continue;
        }
        cursor = cursor_of(stage, block, at, block->child);
        id = id_of(stage, block, at, block->child);
        take_row(stage, block, at, block->child);
        if (!hr__stream_arrive(stage, stage->row, &id, &cursor, block->epoch))
            return false;
    }
    stage->now.skip_children[stage->number] = 0;
    block->child = 0;
    return true;
}

/* The epoch is over: empty the window, end the last batch, tell the next stage, begin
 * counting anew. */
static bool end_epoch(struct hr_stage *stage, struct hr_block *block)
{
    if (stage->window.count > 0)
        stage->window.draining = true;
    if (!hr__stream_drain(stage, block->epoch) || !hr__stage_has_room(stage))
        return false;
    if (stage->batcher.count > 0 && !stage->program.spec.drop_last &&
        !hr__batcher_flush(stage))
        return false;
    if (stage->batcher.count > 0) {
        size_t count;

        hr__program_results(&stage->program, &count);
        for (int64_t i = 0; i < stage->batcher.count; i++)
            hr__row_clear(&stage->batcher.rows[(size_t)i * count], count);
        stage->batcher.count = 0;
    }
    if (!hr__stage_is_final(stage)) {
        if (!hr__stage_has_room(stage))
            return false;
        hr__stage_push_record(stage, NULL, NULL, NULL, block->epoch);
    }
    memset(&stage->now, 0, sizeof stage->now);
    return true;
}

/* A direct block without holes is the batch. */
static bool is_whole_batch(const struct hr_stage *stage, const struct hr_block *block)
{
    const struct hr_engine *engine = stage->engine;
    uint64_t limit = (uint64_t)engine->options.records_max;

    return stage->direct && block->at == 0 && block->size > 0 && block->holes == 0 &&
           stage->batcher.count == 0 &&
           !(stage->source_ended != 0 && is_behind_end(stage, block, 0)) &&
           !(stage->program.spec.drop_last && block->size < stage->block_size) &&
           (limit == 0 || engine->sequenced_records + block->size <= limit);
}

static bool deliver_block(struct hr_stage *stage, struct hr_block *block)
{
    const struct hr_program *p = &stage->program;
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;
    struct hr_cursor behind = {.epoch = block->epoch,
                               .position = block->first + block->size,
                               .end_position = block->first + block->size,
                               .uneven = stage->now.uneven};
    enum hr_err code;

    for (uint32_t i = 0; i < block->size; i++)
        if (block->bad[i] != NULL && !note_bad(stage, block, i))
            return false;
    code = hr__batch_make(stage, p->out, p->out_count, block->size, block->columns,
                          block->rows, &p->spec, &batch, &error);
    if (code != HR_OK) {
        hr__graph_blame(stage->engine->graph, p->plan->batch, &error);
        hr__stage_fail(stage, code, &error);
        return false;
    }
    stage->sequencer->meter.stages[stage->number].batches++;
    batch->epoch = (int64_t)block->epoch;
    block->at = block->size;
    hr__stage_push_batch(stage, batch, &behind);
    return true;
}

/* Take the block on as far as it goes. True when it is done with. */
static bool sequence_block(struct hr_stage *stage, struct hr_block *block)
{
    if (is_whole_batch(stage, block) && !deliver_block(stage, block))
        return false;
    for (; block->at < block->size; block->at++)
        if (!sequence_record(stage, block, block->at))
            return false;
    return !block->last || end_epoch(stage, block);
}

/* Under the lock: the block that the stage's sequencer goes on with. */
static struct hr_block *next_block(struct hr_stage *stage)
{
    struct hr_block *best = NULL, *first = NULL;

    for (size_t i = 0; i < stage->block_count; i++) {
        struct hr_block *block = &stage->blocks[i];

        if (block->state == HR_BLOCK_READY &&
            (best == NULL || block->number < best->number))
            best = block;
        if (block->state != HR_BLOCK_EMPTY &&
            (first == NULL || block->number < first->number))
            first = block;
    }
    if (best == NULL || best == first)
        return best;
    /* As completed: but an epoch ends behind all of its blocks. */
    return stage->direct && !stage->engine->plan.ordered && !best->last &&
                   best->epoch == first->epoch
               ? best
               : NULL;
}

/* The node that the sequencer's time belongs to unless it says otherwise. */
static uint32_t last_node(const struct hr_stage *stage)
{
    const struct hr_plan_stage *plan = stage->program.plan;

    return plan->batch != HR_NO_NODE    ? plan->batch
           : plan->stream_count > 0     ? plan->streams[plan->stream_count - 1]
           : plan->expand != HR_NO_NODE ? plan->expand
                                        : plan->last;
}

static bool pump_stage(struct hr_stage *stage, struct hr_runner *runner)
{
    struct hr_engine *engine = stage->engine;
    struct hr_block *block = stage->sequencing ? NULL : next_block(stage);
    unsigned was;
    bool done;

    hr__engine_assert_locked(engine);
    if (block == NULL || !hr__stage_has_room_locked(stage))
        return false;
    assert(block->state == HR_BLOCK_READY && block->done == block->size);
    stage->sequencing = true;
    stage->sequencer = runner;
    pthread_mutex_unlock(&engine->lock);
    was = hr__meter_begin(runner, last_node(stage));
    done = sequence_block(stage, block);
    if (done)
        hr__block_clear(stage, block);
    hr__meter_end(runner, was);
    pthread_mutex_lock(&engine->lock);
    hr__meter_show(&runner->meter);
    stage->sequencing = false;
    stage->sequencer = NULL;
    if (done) {
        block->state = HR_BLOCK_EMPTY;
        stage->live--;
    }
    if (engine->idle > 0)
        pthread_cond_broadcast(&engine->work);
    if (engine->consumer_waits && (engine->fail_stage >= 0 || stage->live == 0))
        pthread_cond_signal(&engine->ready);
    return true;
}

bool hr__engine_pump(struct hr_engine *engine, struct hr_runner *runner)
{
    for (size_t i = engine->stage_count;
         i-- > 0 && !engine->finished && !hr__stage_failed(&engine->stages[i]);)
        if (pump_stage(&engine->stages[i], runner))
            return true;
    return false;
}
