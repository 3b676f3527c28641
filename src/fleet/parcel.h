/*
 * fleet/parcel.h - the payload of DATA: for each position a batch, or why there is none.
 *
 * A batch is a block of one record (wire/record.h) that brings its schema. A record that
 * fails ends a run at its place in the order, so the failure travels at that place, as
 * the error that a run without a service would return. docs/formats/parcel.md has the
 * bytes. Batches are read in place: their values keep the payload alive.
 */
#ifndef HR_FLEET_PARCEL_H
#define HR_FLEET_PARCEL_H

#include "engine/batch.h"

#define HR_PARCEL_VERSION 1u
#define HR_PARCEL_ITEMS_MAX 1024u

/* What is at a position: a batch, or if that is NULL an error. Borrowed. */
struct hr_parcel_item {
    const struct hr_batch *batch;
    const struct hr_error *error;
};

/* Writes 1 to HR_PARCEL_ITEMS_MAX items. HR_ERR_LIMIT if they are larger than a frame,
 * HR_ERR_MEMORY. The caller owns the reference. */
HR_CHECK enum hr_err
hr__parcel_write(const struct hr_parcel_item *items, size_t count, struct hr_pool *pool,
                 struct hr_buffer **ret_buffer, struct hr_error *reterr);

/* Checks that the payload is of `count` items. HR_ERR_FORMAT, HR_ERR_UNSUPPORTED. */
HR_CHECK enum hr_err
hr__parcel_check(const struct hr_buffer *buffer, size_t count, struct hr_error *reterr);

/* Item `at` of a payload that was checked: its batch, of `records` records, which the
 * caller owns; or its error. HR_ERR_FORMAT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__parcel_get(struct hr_buffer *buffer, size_t at, int64_t records,
                                    struct hr_batch **ret_batch, struct hr_error *reterr);

#endif
