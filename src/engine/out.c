/*
 * engine/out.c - what leaves a stage: batches to the consumer, records and batches to the
 * next stage, and whether there is room for them.
 */
#include "engine/sequence.h"

#include <string.h>

#include "core/error.h"

bool hr__stage_is_final(const struct hr_stage *stage)
{
    return stage->number + 1 == stage->engine->stage_count;
}

/* Under the lock: may one more record, batch or mark go out? */
bool hr__stage_has_room_locked(const struct hr_stage *stage)
{
    const struct hr_engine *engine = stage->engine;

    if (hr__stage_is_final(stage))
        return stage->direct || engine->out_count < engine->out_max;
    return stage[1].queue_count < stage[1].queue_room;
}

bool hr__stage_has_room(struct hr_stage *stage)
{
    bool room;

    pthread_mutex_lock(&stage->engine->lock);
    room = hr__stage_has_room_locked(stage) && !hr__stage_failed(stage);
    pthread_mutex_unlock(&stage->engine->lock);
    return room;
}

void hr__stage_fail(struct hr_stage *stage, enum hr_err code, struct hr_error *error)
{
    hr__stage_fail_with(stage, code, error, NULL);
}

void hr__stage_fail_with(struct hr_stage *stage, enum hr_err code, struct hr_error *error,
                         char **detail)
{
    error->code = code;
    if (error->message[0] == '\0')
        hr__fail(error, code, "%s", hr_err_text(code));
    pthread_mutex_lock(&stage->engine->lock);
    hr__engine_fail(stage->engine, stage->number, error, detail);
    pthread_mutex_unlock(&stage->engine->lock);
}

/* Behind this record: where a new engine goes on. */
struct hr_cursor
hr__cursor_behind(const struct hr_stage *stage, const struct hr_cursor *at)
{
    struct hr_cursor cursor = *at;

    if (stage->direct)
        cursor.position++;
    else
        cursor.skip_out[stage->number]++;
    return cursor;
}

void hr__stage_push_batch(struct hr_stage *stage, struct hr_batch *batch,
                          const struct hr_cursor *behind)
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
void hr__stage_push_record(struct hr_stage *stage, struct hr_value *values,
                           const struct hr_record_id *id, const struct hr_cursor *cursor,
                           uint64_t epoch)
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
