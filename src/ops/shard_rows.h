/*
 * ops/shard_rows.h - many records of shards at once: hr_op_source.apply_rows of the
 * sources whose records lie one after the other in files.
 *
 * Small records are read into pooled memory that their values then own, so no byte of
 * them is copied before the batch.
 */
#ifndef HR_OPS_SHARD_ROWS_H
#define HR_OPS_SHARD_ROWS_H

#include "ops/shard_source.h"

/* Sets the fields of the context from a record, as apply() does once it has read it. `id`
 * of the context is not set. */
typedef enum hr_err
hr_shard_make_fn(struct hr_op_ctx *ctx, const struct hr_shard_record *record);

/* apply(): reads the record of the context, and sets the fields from it. */
HR_CHECK enum hr_err hr__shard_source_make(struct hr_op_ctx *ctx, hr_shard_make_fn *make);

/* Makes records from the first on, up to one that is large, damaged or cannot be read:
 * apply() deals with that one. Returns how many are made. */
uint32_t hr__shard_source_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows,
                               hr_shard_make_fn *make);

#endif
