/*
 * fleet/parcel.h - the payload of DATA: for each position a batch, or why there is none.
 *
 * A batch is a record of a block (wire/record.h) that brings its schema; neighbours of
 * one form share a block. Batches of one record that are neighbouring rows of a pack
 * (engine/outputs.h) travel as that pack, or its part. A record that fails ends a run at
 * its place in the order, so the failure travels at that place, as the error that a run
 * without a service would return. docs/formats/parcel.md has the bytes. Batches are read
 * in place: their values keep the payload alive. Where workers make records for steps
 * that the client runs, each position has one record instead.
 */
#ifndef HR_FLEET_PARCEL_H
#define HR_FLEET_PARCEL_H

#include "engine/batch.h"
#include "net/parts.h"
#include "wire/value.h"

#define HR_PARCEL_VERSION 4u
#define HR_PARCEL_ITEMS_MAX 1024u

/* What is at a position: a batch, or if that is NULL an error; neither: a record that
 * failed, which the client makes itself. Borrowed. */
struct hr_parcel_item {
    const struct hr_batch *batch;
    const struct hr_error *error;
    bool is_row; /* the batch of one record that is this row of `batch`: */
    int64_t row;
};

/* A payload in pieces, which own references: what was written, then payloads of a large
 * batch where they lie. */
struct hr_parcel_pieces {
    size_t bytes, count;
    struct hr_net_part parts[HR_SCHEMA_FIELDS_MAX + 1];
};

/* Writes 1 to HR_PARCEL_ITEMS_MAX items. `records`: the schema of records that were
 * delivered as they are (hr_engine_place.bare); NULL: these are batches. HR_ERR_LIMIT if
 * they are larger than a frame, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__parcel_write(const struct hr_parcel_item *items, size_t count,
                 const struct hr_schema *records, struct hr_pool *pool,
                 struct hr_parcel_pieces *ret_pieces, struct hr_error *reterr);
void hr__parcel_drop(struct hr_parcel_pieces *pieces);

/* A payload that was received. Batches outlive it. */
struct hr_parcel;

/* Checks that the payload is of `count` positions. Takes a reference of the buffer.
 * `far`: what follows its bytes and lies elsewhere, kept alive by the buffer; places are
 * not needed. HR_ERR_FORMAT, HR_ERR_UNSUPPORTED, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__parcel_open(struct hr_buffer *buffer, size_t count, const struct hr_wire_far *far,
                size_t far_count, struct hr_parcel **ret_parcel, struct hr_error *reterr);
void hr__parcel_close(struct hr_parcel *parcel);

/* Item `at`: its batch, of `records` records, which the caller owns; or its error.
 * Ascending items are the fastest. HR_ERR_FORMAT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__parcel_get(struct hr_parcel *parcel, size_t at, int64_t records,
                                    struct hr_batch **ret_batch, struct hr_error *reterr);

/* The values of record `at`, of this schema, which own what they need; or *ret_failed,
 * and no values. The errors of what was sent for all, HR_ERR_FORMAT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__parcel_get_record(struct hr_parcel *parcel, size_t at, const struct hr_schema *schema,
                      struct hr_value *values, bool *ret_failed, struct hr_error *reterr);

#endif
