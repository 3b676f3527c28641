/*
 * ops/parquet_units.h - private interface of parquet_*.c: what is made of Parquet files
 * once, and kept.
 */
#ifndef HR_OPS_PARQUET_UNITS_H
#define HR_OPS_PARQUET_UNITS_H

#include "ops/parquet_files.h"

#define HR_PARQUET_KEEP_UNITS 8 /* of each column, whatever cache_bytes is */

/* A unit that can be made; each kind of them has a function. */
struct hr_parquet_make {
    struct hr_parquet_files *files;
    const struct hr_parquet_group *group;
    struct hr_parquet_part *part;
    size_t column;
    struct hr_reader *reader; /* or NULL */
    struct hr_parquet_span *span;
    struct hr_error *error;
};
typedef enum hr_err
hr_parquet_make_fn(struct hr_parquet_make *make, struct hr_buffer **ret_buffer,
                   uint64_t *ret_bytes);

/* What a unit's buffer holds. */
struct hr_parquet_made {
    struct hr_parquet_page page;
    struct hr_buffer *body, *dictionary, *raw; /* that the page shows; or NULL */
};

/* ---- parquet_units.c ---- */

/* A reference to a unit that is in the cache; NULL. files->mutex is held. */
struct hr_buffer *
hr__parquet_unit_find(struct hr_parquet_files *files, struct hr_parquet_unit *unit);
/* Makes a unit that this thread has set busy. */
HR_CHECK enum hr_err
hr__parquet_unit_make(struct hr_parquet_make *make, struct hr_parquet_unit *unit,
                      hr_parquet_make_fn *run, struct hr_buffer **ret_buffer);
/* A reference to the unit, which one thread makes while others wait. */
HR_CHECK enum hr_err
hr__parquet_unit_get(struct hr_parquet_make *make, struct hr_parquet_unit *unit,
                     hr_parquet_make_fn *run, struct hr_buffer **ret_buffer);

/* Where the stored bytes of the part lie. */
void hr__parquet_raw_range(const struct hr_parquet_make *make,
                           struct hr_range *ret_range);
/* The stored bytes of the part, in the map or in *ret_owner. */
HR_CHECK enum hr_err
hr__parquet_raw_get(struct hr_parquet_make *make, const uint8_t **ret_data,
                    struct hr_buffer **ret_owner);

/* ---- parquet_pages.c ---- */

/* Finds the pages of make->part, once. */
HR_CHECK enum hr_err hr__parquet_part_prepare(struct hr_parquet_make *make);
/* The row of the group behind the last one of the span. */
uint64_t hr__parquet_span_end(const struct hr_parquet_part *part,
                              const struct hr_parquet_span *span);
/* Makes the rows of make->span: a buffer with struct hr_parquet_made. */
hr_parquet_make_fn hr__parquet_span_make;

#endif
