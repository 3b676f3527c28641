/*
 * Sequencers: what happens to records in order.
 *
 * A sequencer takes complete blocks of its stage and passes each good record through
 * children, stream ops and batcher to what is behind. It stops where there is no room and
 * goes on there later, so its place is kept in the block (record, child) and in the
 * window. Only the thread that set `sequencing` touches any of this; the lock is taken
 * for queues, counts and failures.
 */
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"

static const struct hr_batch_spec single_spec = {.size = 1};

static bool is_final(const struct hr_stage *stage)
{
    return stage->number + 1 == stage->engine->stage_count;
}

/* Under the lock: may one more record, batch or mark go out? */
static bool has_room(const struct hr_stage *stage)
{
    const struct hr_engine *engine = stage->engine;

    if (is_final(stage))
        return stage->direct || engine->out_count < engine->out_max;
    return stage[1].queue_count < stage[1].queue_room;
}

static bool locked_room(struct hr_stage *stage)
{
    bool room;

    pthread_mutex_lock(&stage->engine->lock);
    room = has_room(stage) && !stage->engine->failed;
    pthread_mutex_unlock(&stage->engine->lock);
    return room;
}

static void fail(struct hr_stage *stage, enum hr_err code, struct hr_error *error)
{
    error->code = code;
    if (error->message[0] == '\0')
        hr__fail(error, code, "%s", hr_err_text(code));
    pthread_mutex_lock(&stage->engine->lock);
    hr__engine_fail(stage->engine, error);
    pthread_mutex_unlock(&stage->engine->lock);
}

/* ---- out of the stage ---- */

/* Behind this record: where a new engine goes on. */
static struct hr_cursor
cursor_behind(const struct hr_stage *stage, const struct hr_cursor *at)
{
    struct hr_cursor cursor = *at;

    if (stage->direct)
        cursor.position++;
    else
        cursor.skip_out[stage->number]++;
    return cursor;
}

static void
push_out(struct hr_stage *stage, struct hr_batch *batch, const struct hr_cursor *behind)
{
    struct hr_engine *engine = stage->engine;
    size_t at;

    batch->bytes = 0;
    for (size_t f = 0; f < batch->field_count; f++)
        batch->bytes += batch->values[f].bytes;
    pthread_mutex_lock(&engine->lock);
    at = (engine->out_head + engine->out_count) % HR_OUT_MAX;
    engine->out[at] = batch;
    engine->out_cursor[at] = *behind;
    engine->out_count++;
    engine->sequenced_records += (uint64_t)batch->records;
    if (engine->options.records_max > 0 &&
        engine->sequenced_records >= (uint64_t)engine->options.records_max)
        engine->finished = true;
    if (engine->consumer_waits)
        pthread_cond_signal(&engine->ready);
    pthread_mutex_unlock(&engine->lock);
}

/* A record or batch (its values are moved), or the end of an epoch when `values` is NULL.
 */
static void
push_down(struct hr_stage *stage, struct hr_value *values, const struct hr_record_id *id,
          const struct hr_cursor *cursor, uint64_t epoch)
{
    struct hr_stage *next = stage + 1;
    struct hr_engine *engine = stage->engine;
    size_t in = next->program.in_count, at;

    pthread_mutex_lock(&engine->lock);
    at = (next->queue_head + next->queue_count) % next->queue_room;
    next->queue[at].epoch = epoch;
    next->queue[at].epoch_end = values == NULL;
    if (values != NULL) {
        next->queue[at].id = *id;
        next->queue[at].cursor = *cursor;
        memcpy(&next->queue_values[at * in], values, in * sizeof *values);
        memset(values, 0, in * sizeof *values);
    }
    next->queue_count++;
    if (engine->idle > 0)
        pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

/* ---- batcher ---- */

/* Turn `records` rows or columns into a batch. Rows are left to the caller to clear. */
static enum hr_err
make_batch(struct hr_stage *stage, const struct hr_out_field *fields, size_t count,
           int64_t records, struct hr_buffer **columns, const struct hr_value *rows,
           const struct hr_batch_spec *spec, struct hr_batch **ret_batch,
           struct hr_error *error)
{
    struct hr_batch *batch = hr__batch_create(fields, count);

    if (batch == NULL)
        return HR_ERR_MEMORY;
    batch->records = records;
    for (size_t f = 0; f < count; f++) {
        enum hr_err code;

        if (columns != NULL && columns[f] != NULL) {
            hr__column_value(&batch->values[f], &fields[f], records, columns[f]);
            columns[f] = NULL;
            continue;
        }
        code = hr__values_stack(stage->engine->pool, &fields[f], &rows[f], count, records,
                                spec, &batch->values[f], error);
        if (code != HR_OK) {
            hr_batch_unref(batch);
            return code;
        }
    }
    *ret_batch = batch;
    return HR_OK;
}

static void clear_row(struct hr_value *row, size_t count)
{
    for (size_t f = 0; f < count; f++)
        hr__value_clear(&row[f]);
}

static bool flush(struct hr_stage *stage)
{
    struct hr_batcher *b = &stage->batcher;
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;
    struct hr_cursor behind;
    size_t count;
    const struct hr_out_field *fields = hr__program_results(&stage->program, &count);
    enum hr_err code = make_batch(stage, fields, count, b->count, b->columns, b->rows,
                                  &stage->program.spec, &batch, &error);

    for (int64_t i = 0; i < b->count; i++)
        clear_row(&b->rows[(size_t)i * count], count);
    b->count = 0;
    if (code != HR_OK) {
        hr__graph_blame(stage->engine->graph, stage->program.plan->batch, &error);
        fail(stage, code, &error);
        return false;
    }
    batch->epoch = (int64_t)b->epoch;
    behind = cursor_behind(stage, &b->last);
    if (is_final(stage)) {
        push_out(stage, batch, &behind);
        return true;
    }
    push_down(stage, batch->values, &b->id, &b->first, b->epoch);
    hr_batch_unref(batch);
    return true;
}

static bool
begin_batch(struct hr_stage *stage, const struct hr_out_field *fields, size_t count)
{
    struct hr_batcher *b = &stage->batcher;

    for (size_t f = 0; f < count; f++) {
        struct hr_error error = {0};
        enum hr_err code;

        if (fields[f].bytes < 0 || b->columns[f] != NULL)
            continue;
        code = hr__column_get(stage->engine->pool, &fields[f], stage->program.spec.size,
                              &b->columns[f]);
        if (code != HR_OK) {
            fail(stage, code, &error);
            return false;
        }
    }
    return true;
}

/* Takes the row's values. */
static bool
add_to_batch(struct hr_stage *stage, struct hr_value *row, const struct hr_record_id *id,
             const struct hr_cursor *cursor, uint64_t epoch)
{
    struct hr_batcher *b = &stage->batcher;
    size_t count;
    const struct hr_out_field *fields = hr__program_results(&stage->program, &count);

    if (b->count == 0) {
        if (!begin_batch(stage, fields, count))
            return false;
        b->first = *cursor;
        b->id = *id;
        b->epoch = epoch;
    }
    for (size_t f = 0; f < count; f++) {
        if (b->columns[f] != NULL) {
            hr__value_copy(&row[f], (char *)hr_buffer_data(b->columns[f]) +
                                        (size_t)b->count * (size_t)fields[f].bytes);
            hr__value_clear(&row[f]);
        } else {
            b->rows[(size_t)b->count * count + f] = row[f];
            memset(&row[f], 0, sizeof row[f]);
        }
    }
    b->last = *cursor;
    b->count++;
    if (b->count == stage->program.spec.size ||
        (is_final(stage) && stage->engine->options.records_max > 0 &&
         stage->engine->sequenced_records + (uint64_t)b->count >=
             (uint64_t)stage->engine->options.records_max))
        return flush(stage);
    return true;
}

/* ---- stream ops ---- */

/* A record leaves the stage. Takes the row's values. */
static bool
leave(struct hr_stage *stage, struct hr_value *row, const struct hr_record_id *id,
      const struct hr_cursor *cursor, uint64_t epoch)
{
    struct hr_engine *engine = stage->engine;
    size_t count;
    const struct hr_out_field *fields = hr__program_results(&stage->program, &count);
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;
    struct hr_cursor behind;
    enum hr_err code;

    if (stage->now.skip_out[stage->number] > 0) {
        stage->now.skip_out[stage->number]--;
        clear_row(row, count);
        return true;
    }
    if (engine->finished) {
        clear_row(row, count);
        return true;
    }
    if (stage->program.batch != NULL)
        return add_to_batch(stage, row, id, cursor, epoch);
    if (!is_final(stage)) {
        push_down(stage, row, id, cursor, epoch);
        return true;
    }
    code = make_batch(stage, fields, count, 1, NULL, row, &single_spec, &batch, &error);
    clear_row(row, count);
    if (code != HR_OK) {
        fail(stage, code, &error);
        return false;
    }
    batch->epoch = (int64_t)epoch;
    behind = cursor_behind(stage, cursor);
    push_out(stage, batch, &behind);
    return true;
}

/* Verdict of stream ops [from, to). */
static enum hr_stream_verdict judge(struct hr_stage *stage, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct hr_order *order = &stage->program.streams[i];
        uint64_t *ordinal = &stage->now.ordinals[stage->ordinal_first + i];
        enum hr_stream_verdict verdict;

        if (order->op->stream_verdict == NULL)
            continue;
        verdict = order->op->stream_verdict(order->params, (*ordinal)++);
        if (verdict != HR_STREAM_KEEP)
            return verdict;
    }
    return HR_STREAM_KEEP;
}

static void end_early(struct hr_stage *stage, uint64_t epoch)
{
    struct hr_engine *engine = stage->engine;

    stage->ended_epoch = epoch + 1;
    pthread_mutex_lock(&engine->lock);
    if (engine->stages[0].cut < epoch + 1)
        engine->stages[0].cut = epoch + 1;
    pthread_mutex_unlock(&engine->lock);
}

/* Give out what the window holds, as far as there is room. True when it is empty. */
static bool drain(struct hr_stage *stage, uint64_t epoch)
{
    struct hr_window *w = &stage->window;
    const struct hr_order *order =
        w->block > 0 ? &stage->program.streams[w->stream] : NULL;
    uint64_t *number = &stage->now.ordinals[stage->ordinal_first + w->stream];
    size_t count;

    hr__program_results(&stage->program, &count);
    while (w->draining && w->at < w->count) {
        struct hr_record_id key = {.seed = stage->engine->options.seed,
                                   .epoch = (uint32_t)epoch,
                                   .index = *number,
                                   .position = *number};
        struct hr_cursor cursor = w->cursor;
        enum hr_stream_verdict verdict;
        uint64_t from;

        if (!locked_room(stage))
            return false;
        from = *number * w->block;
        from = order->op->order_map(order->params, order->state, from + w->count,
                                    from + w->at, &key, order->node) -
               from;
        verdict = stage->ended_epoch == epoch + 1
                      ? HR_STREAM_DROP
                      : judge(stage, w->stream + 1, stage->program.stream_count);
        if (verdict == HR_STREAM_END)
            end_early(stage, epoch);
        w->at++;
        if (verdict != HR_STREAM_KEEP) {
            clear_row(&w->rows[from * count], count);
            continue;
        }
        cursor.skip_out[stage->number] = w->out++;
        if (!leave(stage, &w->rows[from * count], &w->ids[from], &cursor, epoch))
            return false;
    }
    if (w->draining) {
        w->draining = false;
        w->count = w->at = 0;
        (*number)++;
    }
    return true;
}

static void hold(struct hr_stage *stage, struct hr_value *row,
                 const struct hr_record_id *id, const struct hr_cursor *cursor)
{
    struct hr_window *w = &stage->window;
    size_t count;

    hr__program_results(&stage->program, &count);
    if (w->count == 0) {
        w->cursor = *cursor;
        w->out = 0;
    }
    memcpy(&w->rows[w->count * count], row, count * sizeof *row);
    memset(row, 0, count * sizeof *row);
    w->ids[w->count++] = *id;
    w->draining = w->count == w->block;
}

/* A record arrives at the stage's end. Takes the row's values. */
static bool
arrive(struct hr_stage *stage, struct hr_value *row, const struct hr_record_id *id,
       const struct hr_cursor *cursor, uint64_t epoch)
{
    struct hr_window *w = &stage->window;
    size_t last = w->block > 0 ? w->stream : stage->program.stream_count, count;
    enum hr_stream_verdict verdict;

    hr__program_results(&stage->program, &count);
    verdict = stage->ended_epoch == epoch + 1 ? HR_STREAM_DROP : judge(stage, 0, last);
    if (verdict == HR_STREAM_END)
        end_early(stage, epoch);
    if (verdict != HR_STREAM_KEEP) {
        clear_row(row, count);
        return true;
    }
    if (w->block > 0) {
        hold(stage, row, id, cursor);
        return true;
    }
    return leave(stage, row, id, cursor, epoch);
}

/* ---- blocks ---- */

static bool note_bad(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    struct hr_engine *engine = stage->engine;
    bool good =
        block->status[at] == HR_RECORD_GOOD || block->status[at] == HR_RECORD_DROPPED;
    bool fails = engine->options.on_error == HR_ON_ERROR_FAIL;

    for (struct hr_bad *bad = block->bad[at]; bad != NULL; bad = bad->next) {
        enum hr_err code = bad->error.code;
        bool fatal = code == HR_ERR_MEMORY || code == HR_ERR_INTERNAL ||
                     code == HR_ERR_CANCELLED || code == HR_ERR_STATE;

        uint64_t errors = __atomic_add_fetch(&engine->errors, 1, __ATOMIC_RELAXED);

        hr__ledger_add(engine, bad, block->epoch, block->first + at,
                       fails || fatal ? "failed"
                       : good         ? "substituted"
                                      : "skipped");
        if (fails || fatal) {
            fail(stage, code, &bad->error);
            return false;
        }
        if (errors > engine->errors_max) {
            struct hr_error error = bad->error;

            hr__error_prefix(&error,
                             "%llu bad records, more than errors_max allows; the last",
                             (unsigned long long)errors);
            fail(stage, HR_ERR_LIMIT, &error);
            return false;
        }
    }
    if (block->bad[at] != NULL && good)
        __atomic_add_fetch(&engine->substituted, 1, __ATOMIC_RELAXED);
    return true;
}

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
    }
    cursor.skip_children[stage->number] = child;
    memcpy(&cursor.ordinals[stage->ordinal_first],
           &stage->now.ordinals[stage->ordinal_first],
           stage->program.stream_count * sizeof cursor.ordinals[0]);
    return cursor;
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

/* A child has an identity of its own, made of the parent's and its number. */
static struct hr_record_id
id_of(const struct hr_stage *stage, const struct hr_block *block, uint32_t at,
      uint64_t child)
{
    struct hr_record_id id = block->ids[at];

    if (stage->program.expand.op != NULL) {
        uint64_t parts[2] = {id.index, child};

        id.index = hr__hash64(parts, sizeof parts, 0);
    }
    return id;
}

/* One record of a block, all its children. False when it has to be gone on with later. */
static bool sequence_record(struct hr_stage *stage, struct hr_block *block, uint32_t at)
{
    uint64_t children = block->children != NULL ? block->children[at].count : 1;

    if (block->child == 0 && block->bad[at] != NULL && !note_bad(stage, block, at))
        return false;
    if (block->status[at] == HR_RECORD_BAD && block->bad[at] == NULL) {
        struct hr_error error = {0};

        fail(stage, HR_ERR_MEMORY, &error); /* not even for the error was there memory */
        return false;
    }
    if (block->status[at] != HR_RECORD_GOOD)
        return block->status[at] != HR_RECORD_UNRUN;
    for (; block->child < children; block->child++) {
        struct hr_cursor cursor;
        struct hr_record_id id;

        if (!drain(stage, block->epoch) || !locked_room(stage))
            return false;
        if (stage->now.skip_children[stage->number] > 0) {
            stage->now.skip_children[stage->number]--;
            continue;
        }
        cursor = cursor_of(stage, block, at, block->child);
        id = id_of(stage, block, at, block->child);
        take_row(stage, block, at, block->child);
        if (!arrive(stage, stage->row, &id, &cursor, block->epoch))
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
    if (!drain(stage, block->epoch) || !locked_room(stage))
        return false;
    if (stage->batcher.count > 0 && !stage->program.spec.drop_last && !flush(stage))
        return false;
    if (stage->batcher.count > 0) {
        size_t count;

        hr__program_results(&stage->program, &count);
        for (int64_t i = 0; i < stage->batcher.count; i++)
            clear_row(&stage->batcher.rows[(size_t)i * count], count);
        stage->batcher.count = 0;
    }
    if (!is_final(stage)) {
        if (!locked_room(stage))
            return false;
        push_down(stage, NULL, NULL, NULL, block->epoch);
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
           !(stage->program.spec.drop_last && block->size < stage->block_size) &&
           (limit == 0 || engine->sequenced_records + block->size <= limit);
}

static bool deliver_block(struct hr_stage *stage, struct hr_block *block)
{
    const struct hr_program *p = &stage->program;
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;
    struct hr_cursor behind = {.epoch = block->epoch,
                               .position = block->first + block->size};
    enum hr_err code;

    for (uint32_t i = 0; i < block->size; i++)
        if (block->bad[i] != NULL && !note_bad(stage, block, i))
            return false;
    code = make_batch(stage, p->out, p->out_count, block->size, block->columns,
                      block->rows, &p->spec, &batch, &error);
    if (code != HR_OK) {
        hr__graph_blame(stage->engine->graph, p->plan->batch, &error);
        fail(stage, code, &error);
        return false;
    }
    batch->epoch = (int64_t)block->epoch;
    block->at = block->size;
    push_out(stage, batch, &behind);
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
    struct hr_block *best = NULL;

    for (size_t i = 0; i < stage->block_count; i++) {
        struct hr_block *block = &stage->blocks[i];

        if (block->state == HR_BLOCK_READY &&
            (best == NULL || block->number < best->number))
            best = block;
    }
    if (best == NULL)
        return NULL;
    if (best->number == stage->blocks_done ||
        (stage->direct && !stage->engine->plan.ordered))
        return best;
    return NULL;
}

static bool pump_stage(struct hr_stage *stage)
{
    struct hr_engine *engine = stage->engine;
    struct hr_block *block = stage->sequencing ? NULL : next_block(stage);
    bool done;

    if (block == NULL || !has_room(stage))
        return false;
    stage->sequencing = true;
    pthread_mutex_unlock(&engine->lock);
    done = sequence_block(stage, block);
    if (done)
        hr__block_clear(stage, block);
    pthread_mutex_lock(&engine->lock);
    stage->sequencing = false;
    if (done) {
        block->state = HR_BLOCK_EMPTY;
        stage->live--;
        stage->blocks_done++;
    }
    if (engine->idle > 0)
        pthread_cond_broadcast(&engine->work);
    if (engine->consumer_waits && (engine->failed || stage->live == 0))
        pthread_cond_signal(&engine->ready);
    return true;
}

bool hr__engine_pump(struct hr_engine *engine)
{
    for (size_t i = engine->stage_count; i-- > 0 && !engine->failed && !engine->finished;)
        if (pump_stage(&engine->stages[i]))
            return true;
    return false;
}
