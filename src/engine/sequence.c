/*
 * engine/sequence.c - records in order.
 *
 * A thread takes complete blocks of a stage and passes each good record, or its children,
 * to the stage's sequencers and what follows. If there is no room it stops and resumes
 * later, so its position is kept in the block (record, child) and in the sequencers. Only
 * the thread that set `sequencing` touches any of this; the lock is taken for blocks,
 * counts and failures.
 */
#include "engine/sequence.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"

/* No later record of the epoch has an output. */
static bool epoch_has_ended(const struct hr_stage *stage)
{
    for (size_t k = 0; k < stage->sequencer_count; k++)
        if (stage->sequencers[k].ended)
            return true;
    return false;
}

/* Counts and lists the record's bad attempts, or ends the run with one. Returns false if
 * the record must be resumed later. */
static bool note_bad(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    struct hr_engine *engine = stage->engine;
    bool good =
        block->status[at] == HR_RECORD_GOOD || block->status[at] == HR_RECORD_DROPPED;
    bool fails = engine->options.on_error == HR_ON_ERROR_FAIL;
    struct hr_place source = {.at = block->first + at + 1};
    const struct hr_place *after = stage->number == 0 ? &source : &block->places[at];

    if (block->bad[at]->noted) /* its substitute waits for room */
        return true;
    if (good && hr__rerun_is_past(engine, block->epoch, hr__place_source(after)->at - 1))
        return true; /* before the run resumed */
    if (!hr__stage_is_final(stage) && !stage->next_quiet) {
        stage->waits = true;
        return false;
    }
    if (stage->ended_epoch == block->epoch + 1)
        return true;
    block->bad[at]->noted = true;
    for (struct hr_bad *bad = block->bad[at]; bad != NULL; bad = bad->next) {
        enum hr_err code = bad->error.code;
        bool fatal = bad->fatal || hr__error_is_fatal(code);

        uint64_t errors =
            __atomic_add_fetch(&engine->errors, !bad->outside, __ATOMIC_RELAXED);

        fails |= fatal;
        hr__ledger_add(&engine->ledger, bad, stage->number, block->epoch, after,
                       fails  ? "failed"
                       : good ? "substituted"
                              : "skipped",
                       fails || errors > engine->errors_max);
        if (fails) {
            hr__stage_fail(stage, code, &bad->error, &bad->detail);
            return false;
        }
        if (errors > engine->errors_max) {
            struct hr_error error = bad->error;

            hr__error_prefix(&error,
                             "%llu bad records, more than errors_max allows; the last",
                             (unsigned long long)errors);
            hr__stage_fail(stage, HR_ERR_LIMIT, &error, &bad->detail);
            return false;
        }
    }
    if (good)
        __atomic_add_fetch(&engine->substituted, 1, __ATOMIC_RELAXED);
    return true;
}

/* Whether all results are in columns and go to a sequencer that takes many at once. */
static bool copies_columns(const struct hr_stage *stage)
{
    return stage->sequencer_count > 0 && stage->sequencers[0].op->runs != NULL;
}

/* Sets the record's values that are in columns of the block. */
static void show_columns(struct hr_stage *stage, struct hr_block *block, uint32_t at,
                         struct hr_value *row)
{
    const struct hr_program *p = &stage->program;

    for (size_t f = 0; f < p->out_count; f++) {
        const struct hr_field *field = p->out[f].field;
        struct hr_buffer *column = block->columns[f];
        int64_t dims[HR_MAX_DIMS];

        if (column == NULL)
            continue;
        for (int d = 0; d < field->ndim; d++)
            dims[d] = field->dims[d].size;
        hr__value_set_tensor(&row[f], field->dtype, field->ndim, dims,
                             (char *)hr_buffer_data(column) +
                                 (size_t)at * (size_t)p->out[f].bytes,
                             copies_columns(stage) ? NULL : hr_buffer_ref(column));
        row[f].layout = (uint8_t)field->layout;
    }
}

/* The record's values as a row, in place. */
static struct hr_value *
row_of(struct hr_stage *stage, struct hr_block *block, uint32_t at, uint64_t child)
{
    size_t count;
    struct hr_value *row;

    if (block->children != NULL) {
        hr__program_results(&stage->program, &count);
        return &block->children[at].values[child * count];
    }
    row = &block->rows[at * stage->program.out_count];
    show_columns(stage, block, at, row);
    return row;
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

/* Whether this position of the epoch is at or after the source's end. */
static bool
is_past_end(const struct hr_stage *stage, const struct hr_block *block, uint32_t at)
{
    return stage->source_ended == block->epoch + 1 &&
           block->first + at >= stage->source_end;
}

/* The source ended at this position. Blocks of the epoch after it output nothing. If the
 * number of epochs is open, an epoch without any record is the last. */
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

/* Skips children that another world has done. */
static void skip_done(struct hr_stage *stage, struct hr_block *block)
{
    uint64_t done;

    if (stage->program.plan->expand != stage->engine->child_node ||
        block->children == NULL || block->child > 0 || stage->after.mark != NULL ||
        hr__engine_is_done(stage->engine, block->epoch, stage->after.at - 1, &done))
        return;
    block->child = done;
    stage->skip_children -= stage->skip_children < done ? stage->skip_children : done;
}

/* The records that one output of the stage's steps stands for. */
static int64_t records_of(const struct hr_stage *stage, const struct hr_block *block,
                          uint32_t at, const struct hr_value *row)
{
    const struct hr_program *p = &stage->program;

    if (block->children == NULL)
        return block->records == NULL ? 1 : block->records[at];
    if (stage->engine->graph->nodes[p->plan->expand].schema.batch_rank == 0)
        return 1;
    for (size_t f = 0; f < p->child_count; f++)
        if (row[f].kind != HR_VALUE_BYTES && row[f].ndim > 0)
            return row[f].dims[0]; /* every field of a batch begins with its records */
    return 1;
}

/* Notes the places before and after the record that is sequenced next. */
static void enter_record(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    if (stage->number > 0) {
        hr__place_copy(&stage->after, &block->places[at]);
    } else {
        hr__place_clear(&stage->before);
        hr__place_clear(&stage->after);
        stage->before.at = block->first + at;
        stage->after.at = block->first + at + 1;
    }
    stage->after.uneven = stage->after.uneven || stage->uneven;
    stage->children = block->children != NULL ? block->children[at].count : 1;
    stage->child = block->child;
}

static void leave_record(struct hr_stage *stage, struct hr_block *block)
{
    struct hr_place parent = {.mark = stage->parent};

    hr__place_clear(&parent);
    stage->parent = NULL;
    hr__place_copy(&stage->before, &stage->after);
    stage->child = stage->children;
    stage->skip_children = 0;
    block->child = 0;
}

/* Passes on the children of a good record, or the record itself. */
static bool pass_children(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    size_t count;

    hr__program_results(&stage->program, &count);
    while (block->child < stage->children) {
        struct hr_sequence_record record;
        bool ok;

        if (!hr__sequence_drain(stage) || !hr__stage_has_room(stage))
            return false;
        stage->child = block->child + 1;
        if (stage->skip_children > 0) {
            stage->skip_children--;
            block->child++;
            continue;
        }
        record.values = row_of(stage, block, at, block->child);
        record.id = id_of(stage, block, at, block->child);
        record.records = records_of(stage, block, at, record.values);
        ok = hr__sequence_add(stage, 0, &record);
        hr__row_clear(record.values, count);
        if (!ok)
            return false;
        block->child++;
    }
    return hr__sequence_drain(stage);
}

/* Sequences one record of a block with all its children. Returns false if it must be
 * resumed later. */
static bool sequence_record(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    if (stage->source_ended != 0 && is_past_end(stage, block, at))
        return true;
    if (block->status[at] == HR_RECORD_END) {
        end_source(stage, block, at);
        return true;
    }
    if (block->child == 0 && block->bad[at] != NULL && !note_bad(stage, block, at))
        return false;
    if (block->status[at] == HR_RECORD_BAD && block->bad[at] == NULL) {
        struct hr_error error = {0};

        hr__stage_fail(stage, HR_ERR_MEMORY, &error,
                       NULL); /* no memory even for the error */
        return false;
    }
    if (block->status[at] == HR_RECORD_UNRUN)
        return false;
    stage->uneven = stage->uneven || block->status[at] == HR_RECORD_BAD;
    if (block->status[at] != HR_RECORD_GOOD) /* a later stage would not see it, either */
        return true;
    enter_record(stage, block, at);
    skip_done(stage, block);
    if (!pass_children(stage, block, at))
        return false;
    leave_record(stage, block);
    return true;
}

/* Ends the epoch: passes on what the sequencers hold, and notifies the next stage. */
static bool end_epoch(struct hr_stage *stage, struct hr_block *block)
{
    struct hr_place end = {.at = block->first + block->size};

    if (stage->source_ended == block->epoch + 1)
        end.at = stage->source_end;
    if (!epoch_has_ended(stage)) {
        hr__place_copy(&stage->after, stage->number > 0 ? &block->end : &end);
        hr__place_copy(&stage->before, &stage->after);
    }
    return hr__sequence_flush(stage) && hr__emit_epoch_end(stage, block->epoch);
}

/* A direct block without holes is the batch. */
static bool is_whole_batch(const struct hr_stage *stage, const struct hr_block *block)
{
    const struct hr_engine *engine = stage->engine;
    const struct hr_program *p = &stage->program;
    uint64_t limit = (uint64_t)engine->options.records_max;

    return stage->direct && block->at == 0 && block->size > 0 && block->holes == 0 &&
           stage->sequencers[0].op->held_records(stage->sequencers[0].state) == 0 &&
           !(stage->source_ended != 0 && is_past_end(stage, block, 0)) &&
           !(p->runs.drop_last && block->size < stage->block_size) &&
           (limit == 0 || engine->sequenced_records + block->size <= limit);
}

static bool deliver_block(struct hr_stage *stage, struct hr_block *block)
{
    const struct hr_program *p = &stage->program;
    struct hr_sequencer *first = &stage->sequencers[0];
    struct hr_sequence_record record = {
        .values = first->row, .id = block->ids[0], .records = block->size};
    struct hr_error error;
    enum hr_err code;
    bool ok;

    for (uint32_t i = 0; i < block->size; i++)
        if (block->bad[i] != NULL && !note_bad(stage, block, i))
            return false;
    if (!hr__stage_has_room(stage))
        return false;
    hr__error_init(&error);
    code = first->op->join(p->batch->params, stage->engine->pool,
                           &stage->engine->graph->nodes[p->batch->inputs[0]].schema,
                           block->size, block->columns, block->rows, p->out_count,
                           first->row, &error);
    if (code != HR_OK) {
        hr__row_clear(first->row, first->fields);
        return hr__sequence_fail(stage, 0, code, &error);
    }
    enter_record(stage, block, block->size - 1);
    stage->children = stage->child = 1;
    block->at = block->size;
    first->received += block->size;
    first->given++;
    ok = hr__sequence_add(stage, 1, &record);
    hr__row_clear(first->row, first->fields);
    leave_record(stage, block);
    return ok;
}

static bool is_plain(const struct hr_block *block, uint32_t at, uint8_t status)
{
    return block->status[at] == status && block->bad[at] == NULL;
}

/* Sequences records from block->at on without looking at each: dropped ones, and runs of
 * good ones in columns. Returns false if the rest must be resumed later. */
static bool sequence_rows(struct hr_stage *stage, struct hr_block *block, uint32_t end)
{
    const struct hr_program *p = &stage->program;

    while (block->at < end && !epoch_has_ended(stage)) {
        uint32_t count = 0, taken = 0;

        if (is_plain(block, block->at, HR_RECORD_DROPPED)) {
            block->at++;
            continue;
        }
        while (block->at + count < end &&
               is_plain(block, block->at + count, HR_RECORD_GOOD))
            count++;
        if (!hr__sequence_drain(stage))
            return false;
        if (count == 0)
            return true;
        if (!hr__stage_has_room(stage))
            return false;
        for (size_t f = 0; f < p->out_count; f++)
            stage->columns[f] = (char *)hr_buffer_data(block->columns[f]) +
                                (size_t)block->at * (size_t)p->out[f].bytes;
        if (!hr__sequence_add_rows(stage, &block->ids[block->at], count, &taken))
            return false;
        enter_record(stage, block, block->at + taken - 1);
        leave_record(stage, block);
        block->at += taken;
    }
    return hr__sequence_drain(stage);
}

static bool has_columns(const struct hr_stage *stage, const struct hr_block *block)
{
    for (size_t f = 0; f < stage->program.out_count; f++)
        if (block->columns[f] == NULL)
            return false;
    return true;
}

/* Sequences the records before `end`, all of which are done. Returns false if the rest
 * must be resumed later. */
static bool sequence_block(struct hr_stage *stage, struct hr_block *block, uint32_t end)
{
    bool rows;

    if (!hr__sequence_begin(stage, block->epoch) || !hr__sequence_settle(stage))
        return false;
    if (!epoch_has_ended(stage) && is_whole_batch(stage, block) &&
        !deliver_block(stage, block))
        return false;
    rows = stage->columns != NULL && has_columns(stage, block);
    while (block->at < end && !epoch_has_ended(stage)) {
        if (rows && stage->source_ended == 0 && !sequence_rows(stage, block, end))
            return false;
        if (block->at == end || epoch_has_ended(stage))
            break;
        if (!sequence_record(stage, block, block->at))
            return false;
        block->at++;
    }
    if (epoch_has_ended(stage))
        block->at = end;
    return hr__sequence_drain(stage) &&
           (end < block->size || !block->last || end_epoch(stage, block));
}

/* The block to sequence next, or NULL. Under the lock. */
static struct hr_block *next_block(struct hr_stage *stage)
{
    const struct hr_engine *engine = stage->engine;
    struct hr_block *best = NULL, *first = NULL, *block = stage->blocks;

    for (size_t live = stage->live; live > 0; block++) {
        assert(block < stage->blocks + stage->block_count);
        if (block->state == HR_BLOCK_EMPTY)
            continue;
        live--;
        if (block->state == HR_BLOCK_READY &&
            (best == NULL || block->number < best->number))
            best = block;
        if (first == NULL || block->number < first->number)
            first = block;
    }
    /* Records that use up a budget cannot wait for their whole block. */
    if (first != NULL && first->state == HR_BLOCK_OPEN && !stage->direct &&
        engine->plan.memory.budget > 0 && (first->ready > first->at || stage->stalled))
        return first;
    if (best == NULL || best == first)
        return best;
    /* In completion order, except that an epoch ends only after all its blocks. */
    return stage->direct && !stage->engine->plan.ordered && !best->last &&
                   best->epoch == first->epoch
               ? best
               : NULL;
}

/* Whether nothing waits for the outputs before the next record to pass the later stages,
 * or they have. Under the lock. */
static bool may_resume(struct hr_stage *stage)
{
    const struct hr_stage *last = &stage->engine->stages[stage->engine->stage_count - 1];

    for (const struct hr_stage *later = stage + 1; stage->waits && later <= last; later++)
        if (!hr__stage_drained(later))
            return false;
    stage->next_quiet = stage->waits;
    stage->waits = false;
    return true;
}

/* The node that sequencing is charged to unless a sequencer says otherwise. */
static uint32_t last_node(const struct hr_stage *stage)
{
    return hr__plan_stage_end(stage->program.plan);
}

static bool pump_stage(struct hr_stage *stage, struct hr_runner *runner)
{
    struct hr_engine *engine = stage->engine;
    struct hr_block *block = stage->sequencing ? NULL : next_block(stage);
    uint32_t from, end, records;
    struct hr_block *unused;
    unsigned was;
    bool passed, done, counted = stage->result_bytes > 0;

    hr__engine_assert_locked(engine);
    if (block == NULL)
        return false;
    if (!hr__stage_has_room_locked(stage)) {
        engine->lacked_room = true;
        return false;
    }
    if (!may_resume(stage))
        return false;
    end = block->state == HR_BLOCK_READY ? block->size : block->ready;
    from = block->at;
    assert(from <= end && end <= block->size);
    assert(block->state != HR_BLOCK_READY || block->done == block->size);
    stage->sequencing = true;
    stage->sequencer = runner;
    pthread_mutex_unlock(&engine->lock);
    was = hr__meter_begin(runner, last_node(stage));
    passed = sequence_block(stage, block, end);
    records = block->at - from;
    for (; counted && from < block->at; from++)
        stage->released_bytes += block->result_bytes[from];
    done = passed && end == block->size;
    if (done)
        hr__block_clear(stage, block);
    unused = hr__unused_filling(stage);
    hr__sequencers_count(stage);
    hr__meter_end(runner, was);
    pthread_mutex_lock(&engine->lock);
    if (unused != NULL) {
        unused->state = HR_BLOCK_EMPTY;
        stage[1].live--;
    }
    hr__meter_show(&runner->meter);
    stage->sequencing = false;
    stage->sequencer = NULL;
    if (stage->number + 1 == engine->stage_count)
        engine->demand.passed += records;
    if (stage->waits && stage->filling != NULL)
        hr__publish_locked(stage);
    stage->stalled = engine->lacked_room = !passed;
    assert(stage->result_bytes >= stage->released_bytes);
    stage->result_bytes -= stage->released_bytes;
    stage->released_bytes = 0;
    if (done) {
        block->state = HR_BLOCK_EMPTY;
        stage->live--;
    }
    if (engine->idle > 0)
        pthread_cond_broadcast(&engine->work);
    if (engine->consumer_waits && (engine->fail_stage >= 0 || hr__engine_drained(engine)))
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
