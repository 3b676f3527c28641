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

/* A batch with room for the values of the schema's fields, all NONE. NULL when out of
 * memory. */
struct hr_batch *hr__batch_create(const struct hr_schema *schema);

/* Memory of a column: `records` rows of the field. */
HR_CHECK enum hr_err
hr__column_get(struct hr_pool *pool, const struct hr_out_field *field, int64_t records,
               struct hr_buffer **ret_buffer);

#endif
