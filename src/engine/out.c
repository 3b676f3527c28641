/*
 * engine/out.c - what leaves a stage: batches to the consumer, records and batches to the
 * next stage, and the room for them.
 *
 * Records for the next stage are added to one of its blocks without the lock; the block
 * is published when it is full, or when a thread has nothing else to do for that stage.
 */
#include "engine/budget.h"
#include "engine/sequence.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "op/ragged.h"

void hr__row_clear(struct hr_value *row, size_t count)
{
    for (size_t f = 0; f < count; f++)
        if (row[f].kind != HR_VALUE_NONE)
            hr__value_clear(&row[f]);
}

bool hr__stage_is_final(const struct hr_stage *stage)
{
    return stage->number + 1 == stage->engine->stage_count;
}

void hr__stage_fail(struct hr_stage *stage, enum hr_err code, struct hr_error *error,
                    char **detail)
{
    error->code = code;
    if (error->message[0] == '\0')
        hr__fail(error, code, "%s", hr_err_text(code));
    pthread_mutex_lock(&stage->engine->lock);
    hr__engine_fail(stage->engine, stage->number, error, detail);
    pthread_mutex_unlock(&stage->engine->lock);
}

/* ---- room ---- */

/* Batches that may wait for the consumer; fewer if they turn out larger than planned. */
static size_t batches_allowed(const struct hr_engine *engine)
{
    size_t allowed = engine->plan.memory.batches_ahead;

    return allowed < engine->out_max ? allowed : engine->out_max;
}

bool hr__stage_has_room_locked(const struct hr_stage *stage)
{
    struct hr_engine *engine = stage->engine;

    hr__engine_assert_locked(engine);
    if (hr__stage_is_final(stage))
        return stage->direct || engine->out_count < batches_allowed(engine);
    return hr__budget_has_room(&engine->stages[stage->number + 1]) &&
           (stage->filling != NULL ||
            hr__stage_empty_block(&engine->stages[stage->number + 1]) != NULL);
}

/* Takes an empty block of the next stage to fill. Returns false if there is none. */
static bool get_block(struct hr_stage *stage)
{
    struct hr_engine *engine = stage->engine;
    struct hr_stage *next = &engine->stages[stage->number + 1];
    struct hr_block *block;

    pthread_mutex_lock(&engine->lock);
    block = hr__stage_failed(stage) ? NULL : hr__stage_empty_block(next);
    if (block != NULL) {
        block->state = HR_BLOCK_FILLING;
        block->number = next->blocks_opened++;
        next->live++;
    }
    stage->filling = block;
    pthread_mutex_unlock(&engine->lock);
    if (block == NULL)
        return false;
    assert(block->size == 0 && !next->direct);
    (void)!hr__block_columns(next, block, next->block_size); /* else rows */
    return true;
}

static bool next_has_room(struct hr_stage *stage)
{
    if (!hr__budget_has_room(&stage->engine->stages[stage->number + 1]))
        return false;
    if (stage->filling != NULL)
        return true;
    return get_block(stage);
}

bool hr__stage_has_room(struct hr_stage *stage)
{
    struct hr_engine *engine = stage->engine;

    if ((int)stage->number <=
        atomic_load_explicit(&engine->fail_stage, memory_order_relaxed))
        return false;
    if (!hr__stage_is_final(stage))
        return next_has_room(stage);
    if (stage->room > 0)
        return true;
    pthread_mutex_lock(&engine->lock);
    if (stage->direct)
        stage->room = 1;
    else if (engine->out_count < batches_allowed(engine))
        stage->room = batches_allowed(engine) - engine->out_count;
    pthread_mutex_unlock(&engine->lock);
    return stage->room > 0;
}

/* ---- to the consumer ---- */

static void
push_batch(struct hr_stage *stage, struct hr_batch *batch, struct hr_place *after)
{
    struct hr_engine *engine = stage->engine;
    size_t at;

    batch->bytes = 0;
    for (size_t f = 0; f < batch->field_count; f++) {
        assert(hr__value_is_made(&batch->values[f]));
        batch->bytes += batch->values[f].bytes;
    }
    pthread_mutex_lock(&engine->lock);
    assert(engine->out_count < HR_OUT_MAX);
    at = (engine->out_head + engine->out_count) % HR_OUT_MAX;
    engine->out[at] = batch;
    hr__place_move(&engine->out_place[at], after);
    engine->out_count++;
    hr__budget_output(stage, batch->bytes);
    engine->sequenced_records += (uint64_t)batch->records;
    if (engine->options.records_max > 0 &&
        engine->sequenced_records >= (uint64_t)engine->options.records_max)
        atomic_store(&engine->finished, true);
    if (engine->consumer_waits && engine->out_count >= engine->wake_at)
        pthread_cond_signal(&engine->ready);
    pthread_mutex_unlock(&engine->lock);
    stage->room--;
}

/* Makes a batch of one record. */
static enum hr_err
make_single(struct hr_stage *stage, const char *field, struct hr_value *value,
            struct hr_value *ret_value, struct hr_error *error)
{
    int64_t dims[HR_MAX_DIMS];

    struct hr_buffer *buffer;

    if (value->kind != HR_VALUE_TENSOR)
        return hr__ragged_join(stage->engine->pool, field, value, 1, 1, ret_value, error);
    if (value->ndim == HR_MAX_DIMS)
        return hr__fail(error, HR_ERR_SHAPE,
                        "field '%s' has %d dimensions; a batch would have more than %d",
                        field, value->ndim, HR_MAX_DIMS);
    assert(hr__value_contiguous(value) && value->owner != NULL);
    dims[0] = 1;
    memcpy(dims + 1, value->dims, value->ndim * sizeof *dims);
    if (hr_buffer_is_writable(value->owner)) {
        hr__value_set_tensor(ret_value, (enum hr_dtype)value->dtype, value->ndim + 1,
                             dims, value->data, value->owner);
        value->owner = NULL;
    } else { /* a small piece of a shared buffer */
        enum hr_err code = hr_pool_get(stage->engine->pool, value->bytes, &buffer);

        if (code != HR_OK)
            return hr__fail(error, code, "no memory for field '%s'", field);
        hr__value_copy(value, hr_buffer_data(buffer));
        hr__value_set_tensor(ret_value, (enum hr_dtype)value->dtype, value->ndim + 1,
                             dims, hr_buffer_data(buffer), buffer);
    }
    ret_value->layout = value->layout;
    return HR_OK;
}

/* HR_EVEN_PAD: which records of the batch are not padding. */
static enum hr_err
mark_padding(const struct hr_stage *stage, const struct hr_sequence_record *record,
             struct hr_value *ret_value, struct hr_error *error)
{
    int64_t count = record->records;
    int64_t padding = hr__engine_padding(stage->engine, record->id.position, count);
    struct hr_buffer *buffer;
    bool *valid;

    if (hr_pool_get(stage->engine->pool, (size_t)count, &buffer) != HR_OK)
        return hr__fail(error, HR_ERR_MEMORY, "no memory for field '%s'", HR_PAD_FIELD);
    valid = hr_buffer_data(buffer);
    for (int64_t i = 0; i < count; i++)
        valid[i] = i < count - padding;
    hr__value_set_tensor(ret_value, HR_BOOL, 1, &count, valid, buffer);
    return HR_OK;
}

static enum hr_err make_batch(struct hr_stage *stage, struct hr_sequence_record *record,
                              struct hr_batch **ret_batch, struct hr_error *error)
{
    const struct hr_schema *schema = stage->program.leaving;
    bool pads = stage->engine->options.even == HR_EVEN_PAD;
    bool single = schema->batch_rank == 0 && !stage->engine->bare;
    struct hr_batch *batch = hr__batch_create(schema, pads ? HR_PAD_FIELD : NULL);
    enum hr_err code = HR_OK;

    if (batch == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    batch->records = record->records;
    if (pads)
        code = mark_padding(stage, record, &batch->values[schema->count], error);
    if (!single) {
        memcpy(batch->values, record->values, schema->count * sizeof *record->values);
        memset(record->values, 0, schema->count * sizeof *record->values);
    }
    for (size_t f = 0; code == HR_OK && single && f < schema->count; f++)
        code = make_single(stage, schema->fields[f].name, &record->values[f],
                           &batch->values[f], error);
    if (code != HR_OK) {
        hr_batch_unref(batch);
        return code;
    }
    *ret_batch = batch;
    return HR_OK;
}

static bool
deliver(struct hr_stage *stage, struct hr_sequence_record *record, uint64_t epoch)
{
    struct hr_place after = {0};
    struct hr_error error;
    struct hr_batch *batch = NULL;
    enum hr_err code;

    if (atomic_load_explicit(&stage->engine->finished, memory_order_relaxed)) {
        hr__row_clear(record->values, stage->program.leaving->count);
        return true;
    }
    hr__error_init(&error);
    code = make_batch(stage, record, &batch, &error);
    hr__row_clear(record->values, stage->program.leaving->count);
    if (code != HR_OK) {
        hr__stage_fail(stage, code, &error, NULL);
        return false;
    }
    batch->epoch = (int64_t)epoch;
    if (!hr__sequence_place(stage, stage->sequencer_count, &after)) {
        hr_batch_unref(batch);
        return false;
    }
    push_batch(stage, batch, &after);
    return true;
}

/* ---- to the next stage ---- */

void hr__publish_locked(struct hr_stage *stage)
{
    struct hr_block *block = stage->filling;

    hr__engine_assert_locked(stage->engine);
    assert(block != NULL && block->state == HR_BLOCK_FILLING);
    block->state = block->size == 0 ? HR_BLOCK_READY : HR_BLOCK_OPEN;
    stage->filling = NULL;
    if (stage->engine->idle > 0)
        pthread_cond_signal(&stage->engine->work);
}

struct hr_block *hr__unused_filling(struct hr_stage *stage)
{
    struct hr_block *block = stage->filling;

    if (block == NULL || block->size > 0)
        return NULL;
    hr__block_clear(stage + 1, block);
    stage->filling = NULL;
    return block;
}

static void publish(struct hr_stage *stage)
{
    pthread_mutex_lock(&stage->engine->lock);
    hr__publish_locked(stage);
    pthread_mutex_unlock(&stage->engine->lock);
}

static bool
pass_on(struct hr_stage *stage, struct hr_sequence_record *record, uint64_t epoch)
{
    const struct hr_stage *next = &stage->engine->stages[stage->number + 1];
    struct hr_block *block = stage->filling;
    size_t in = next->program.in_count;
    uint32_t at = block->size;

    assert(block->state == HR_BLOCK_FILLING && at < next->block_size);
    assert(in == stage->program.leaving->count);
    if (!hr__sequence_place(stage, stage->sequencer_count, &block->places[at]))
        return false;
    stage->next_quiet = false;
    block->epoch = epoch;
    block->ids[at] = record->id;
    block->records[at] = record->records;
    block->input_bytes[at] = 0;
    for (size_t f = 0; f < in; f++)
        block->input_bytes[at] +=
            record->values[f].kind == HR_VALUE_NONE ? 0 : record->values[f].bytes;
    atomic_fetch_add(&stage->engine->stages[next->number].in_bytes,
                     block->input_bytes[at]);
    memcpy(&block->inputs[at * in], record->values, in * sizeof *record->values);
    memset(record->values, 0, in * sizeof *record->values);
    block->size++;
    if (block->size == next->block_size)
        publish(stage);
    return true;
}

bool hr__emit(struct hr_stage *stage, struct hr_sequence_record *record, uint64_t epoch)
{
    return hr__stage_is_final(stage) ? deliver(stage, record, epoch)
                                     : pass_on(stage, record, epoch);
}

bool hr__emit_epoch_end(struct hr_stage *stage, uint64_t epoch)
{
    if (hr__stage_is_final(stage))
        return true;
    if (!hr__stage_has_room(stage) ||
        !hr__sequence_place(stage, stage->sequencer_count, &stage->filling->end))
        return false;
    stage->filling->epoch = epoch;
    stage->filling->last = true;
    publish(stage);
    return true;
}
