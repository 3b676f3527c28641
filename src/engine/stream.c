/*
 * engine/stream.c - stream ops: what an order op does behind a filter, where positions
 * mean nothing. Verdicts by ordinal, and a window that is filled, permuted and emptied;
 * its place is kept, since the stage behind it may have no room.
 */
#include "engine/sequence.h"

#include <string.h>

static const struct hr_batch_spec single_spec = {.size = 1};

/* A batch that went through steps as one record: its values are the batch. Its records
 * are counted by the first field that has any dimension. */
static enum hr_err take_batch(const struct hr_out_field *fields, size_t count,
                              struct hr_value *row, struct hr_batch **ret_batch)
{
    struct hr_batch *batch = hr__batch_create(fields, count);

    if (batch == NULL)
        return HR_ERR_MEMORY;
    batch->records = 1;
    for (size_t f = count; f-- > 0;)
        if (row[f].ndim > 0 && row[f].kind != HR_VALUE_BYTES)
            batch->records = row[f].dims[0];
    memcpy(batch->values, row, count * sizeof *row);
    memset(row, 0, count * sizeof *row);
    *ret_batch = batch;
    return HR_OK;
}

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
        hr__row_clear(row, count);
        return true;
    }
    if (engine->finished) {
        hr__row_clear(row, count);
        return true;
    }
    if (stage->program.batch != NULL)
        return hr__batcher_add(stage, row, id, cursor, epoch);
    if (!hr__stage_is_final(stage)) {
        hr__stage_push_record(stage, row, id, cursor, epoch);
        return true;
    }
    if (stage->engine->graph->nodes[stage->engine->graph->output].schema.batch_rank > 0)
        code = take_batch(fields, count, row, &batch);
    else
        code = hr__batch_make(stage, fields, count, 1, NULL, row, &single_spec, &batch,
                              &error);
    hr__row_clear(row, count);
    if (code != HR_OK) {
        hr__stage_fail(stage, code, &error);
        return false;
    }
    batch->epoch = (int64_t)epoch;
    behind = hr__cursor_behind(stage, cursor);
    hr__stage_push_batch(stage, batch, &behind);
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
bool hr__stream_drain(struct hr_stage *stage, uint64_t epoch)
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
                                   .draw_epoch = (uint32_t)epoch};
        struct hr_cursor cursor = w->cursor;
        enum hr_stream_verdict verdict;
        uint64_t from;

        if (!hr__stage_has_room(stage))
            return false;
        from = *number * w->block;
        from = order->op->order_map(order->params, order->state, from + w->count,
                                    from + w->at, &key, order->draw_id) -
               from;
        verdict = stage->ended_epoch == epoch + 1
                      ? HR_STREAM_DROP
                      : judge(stage, w->stream + 1, stage->program.stream_count);
        if (verdict == HR_STREAM_END)
            end_early(stage, epoch);
        w->at++;
        if (verdict != HR_STREAM_KEEP) {
            hr__row_clear(&w->rows[from * count], count);
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
bool hr__stream_arrive(struct hr_stage *stage, struct hr_value *row,
                       const struct hr_record_id *id, const struct hr_cursor *cursor,
                       uint64_t epoch)
{
    struct hr_window *w = &stage->window;
    size_t last = w->block > 0 ? w->stream : stage->program.stream_count, count;
    enum hr_stream_verdict verdict;

    hr__program_results(&stage->program, &count);
    verdict = stage->ended_epoch == epoch + 1 ? HR_STREAM_DROP : judge(stage, 0, last);
    if (verdict == HR_STREAM_END)
        end_early(stage, epoch);
    if (verdict != HR_STREAM_KEEP) {
        hr__row_clear(row, count);
        return true;
    }
    if (w->block > 0) {
        hold(stage, row, id, cursor);
        return true;
    }
    return leave(stage, row, id, cursor, epoch);
}
