/*
 * engine/batch.h - batches, and the columns that records are written to.
 */
#ifndef HR_ENGINE_BATCH_H
#define HR_ENGINE_BATCH_H

#include "engine/program.h"
#include "headrace/engine.h"

/* Read through hr_batch_field; values own their buffers. */
struct hr_batch {
    uint32_t refs; /* atomic */
    int64_t records, epoch;
    size_t bytes;
    size_t field_count;
    struct hr_batch *whole; /* whose row this is; or NULL */
    /* By field, stored after `values`, or those of `whole`: a batch outlives its graph.
     */
    const char **names;
    bool *texts; /* as in struct hr_field_info */
    struct hr_value *values;
};

/* Creates a batch with a value per field of the schema, and for one more field named
 * `more` unless that is NULL; all NONE. Returns NULL when out of memory. */
struct hr_batch *hr__batch_create(const struct hr_schema *schema, const char *more);

/* Creates the batch of one record that is a row of this one, of tensors only. It shares
 * the buffers. NULL when out of memory. */
struct hr_batch *hr__batch_row(struct hr_batch *batch, int64_t row);

/* Rows [from, from + count) of a tensor of records, as a value that owns nothing. */
struct hr_value hr__value_rows(const struct hr_value *value, int64_t from, int64_t count);

/* Allocates a column: `records` rows of the field. */
HR_CHECK enum hr_err
hr__column_get(struct hr_pool *pool, const struct hr_out_field *field, int64_t records,
               struct hr_buffer **ret_buffer);

#endif
