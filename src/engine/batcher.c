/*
 * engine/batcher.c - the batcher of a stage whose records come one by one: fixed shapes
 * are copied into columns as they come, the rest is kept until the batch is full.
 */
#include "engine/sequence.h"

#include <string.h>

/* Turn `records` rows or columns into a batch. Rows are left to the caller to clear. */
enum hr_err hr__batch_make(struct hr_stage *stage, const struct hr_out_field *fields,
                           size_t count, int64_t records, struct hr_buffer **columns,
                           const struct hr_value *rows, const struct hr_batch_spec *spec,
                           struct hr_batch **ret_batch, struct hr_error *error)
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

void hr__row_clear(struct hr_value *row, size_t count)
{
    for (size_t f = 0; f < count; f++)
        hr__value_clear(&row[f]);
}

bool hr__batcher_flush(struct hr_stage *stage)
{
    struct hr_batcher *b = &stage->batcher;
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;
    struct hr_cursor behind;
    size_t count;
    const struct hr_out_field *fields = hr__program_results(&stage->program, &count);
    enum hr_err code = hr__batch_make(stage, fields, count, b->count, b->columns, b->rows,
                                      &stage->program.spec, &batch, &error);

    for (int64_t i = 0; i < b->count; i++)
        hr__row_clear(&b->rows[(size_t)i * count], count);
    b->count = 0;
    if (code != HR_OK) {
        hr__graph_blame(stage->engine->graph, stage->program.plan->batch, &error);
        hr__stage_fail(stage, code, &error);
        return false;
    }
    stage->sequencer->meter.stages[stage->number].batches++;
    batch->epoch = (int64_t)b->epoch;
    behind = hr__cursor_behind(stage, &b->last);
    if (hr__stage_is_final(stage)) {
        hr__stage_push_batch(stage, batch, &behind);
        return true;
    }
    b->first.end_position = b->last.end_position;
    b->first.end_child = b->last.end_child;
    b->first.uneven = b->last.uneven;
    hr__stage_push_record(stage, batch->values, &b->id, &b->first, b->epoch);
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
            hr__stage_fail(stage, code, &error);
            return false;
        }
    }
    return true;
}

/* A record that is not what was inferred would be written over its neighbours. */
static bool check_row(struct hr_stage *stage, struct hr_value *row,
                      const struct hr_out_field *fields, size_t count)
{
    struct hr_error error = {0};

    for (size_t f = 0; f < count; f++) {
        if (stage->batcher.columns[f] == NULL ||
            hr__value_count(&row[f]) *
                    (int64_t)hr_dtype_size((enum hr_dtype)row[f].dtype) ==
                fields[f].bytes)
            continue;
        hr__fail(&error, HR_ERR_INTERNAL, "field '%s' is not what was inferred for it",
                 fields[f].field->name);
        hr__graph_blame(stage->engine->graph, stage->program.plan->batch, &error);
        hr__stage_fail(stage, HR_ERR_INTERNAL, &error);
        hr__row_clear(row, count);
        return false;
    }
    return true;
}

/* Takes the row's values. */
bool hr__batcher_add(struct hr_stage *stage, struct hr_value *row,
                     const struct hr_record_id *id, const struct hr_cursor *cursor,
                     uint64_t epoch)
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
    if (!check_row(stage, row, fields, count))
        return false;
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
    hr__meter_node(stage->sequencer, stage->program.plan->batch)->records_in++;
    b->last = *cursor;
    b->count++;
    if (b->count == stage->program.spec.size ||
        (hr__stage_is_final(stage) && stage->engine->options.records_max > 0 &&
         stage->engine->sequenced_records + (uint64_t)b->count >=
             (uint64_t)stage->engine->options.records_max))
        return hr__batcher_flush(stage);
    return true;
}
