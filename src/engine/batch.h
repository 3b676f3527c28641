/*
 * engine/batch.h - batches, and putting records together into one.
 */
#ifndef HR_ENGINE_BATCH_H
#define HR_ENGINE_BATCH_H

#include "engine/program.h"
#include "headrace/engine.h"

/* What hr_batch_field shows; values own their buffers. */
struct hr_batch {
    uint32_t refs; /* atomic */
    int64_t records, epoch;
    size_t bytes;
    size_t field_count;
    const char **names; /* copies behind `values`, so that a batch outlives its graph */
    struct hr_value *values;
};

/* A batch with room for the values of `fields`, all NONE. NULL when out of memory. */
struct hr_batch *hr__batch_create(const struct hr_out_field *fields, size_t count);

/* Memory of a column: `records` rows of the field. */
HR_CHECK enum hr_err
hr__column_get(struct hr_pool *pool, const struct hr_out_field *field, int64_t records,
               struct hr_buffer **ret_buffer);

/* Make `value` the batch form of `records` rows that lie in `column` (reference taken
 * over). */
void hr__column_value(struct hr_value *value, const struct hr_out_field *field,
                      int64_t records, struct hr_buffer *column);

/*
 * Put `records` single values (first, first + stride, ...) of one field together: byte
 * strings become strings with offsets, tensors of one shape are stacked, others padded
 * when the spec says so. The single values stay the caller's. HR_ERR_SHAPE names the
 * field and both shapes.
 */
HR_CHECK enum hr_err
hr__values_stack(struct hr_pool *pool, const struct hr_out_field *field,
                 const struct hr_value *first, size_t stride, int64_t records,
                 const struct hr_batch_spec *spec, struct hr_value *ret_value,
                 struct hr_error *reterr);

#endif
