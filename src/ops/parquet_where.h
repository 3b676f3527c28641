/*
 * ops/parquet_where.h - which row groups of Parquet files a condition may hold in.
 *
 * A row group is skipped only if its statistics show that no row of it fulfils the
 * condition and none is a bad record because of a column that the condition reads.
 */
#ifndef HR_OPS_PARQUET_WHERE_H
#define HR_OPS_PARQUET_WHERE_H

#include "ops/column_source.h"

/* What the statistics of a column of a row group say, without the footer's memory. */
struct hr_parquet_bounds {
    struct hr_operand_range range; /* of the values that are there */
    bool has_values;               /* else all are null */
    bool may_be_null;
    bool may_be_large; /* uint64: some may not fit int64 */
    char text[];
};

/* The caller frees it. NULL: out of memory. */
struct hr_parquet_bounds *
hr__parquet_bounds_create(const struct hr_arrow_column *column,
                          const struct hr_parquet_storage *storage,
                          const struct hr_parquet_stats *stats,
                          enum hr_parquet_order order, int64_t values);

/* Removes the row groups in which the source's condition holds nowhere, and sets its
 * records. */
void hr__parquet_where_skip(struct hr_column_source *source);

#endif
