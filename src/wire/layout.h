/*
 * wire/layout.h - what lies where in a block of records.
 *
 * First the identities, then a column for each field whose items are small and of fixed
 * size, then a row of descriptors per record for all other fields, then payloads.
 * Everything before the payloads follows from the fields and the number of records alone,
 * so both sides compute it and none of it is transmitted.
 */
#ifndef HR_WIRE_LAYOUT_H
#define HR_WIRE_LAYOUT_H

#include "core/error.h"
#include "op/op.h"
#include "wire/value.h"

#define HR_WIRE_COLUMN_MAX 512         /* bytes of an item of a column */
#define HR_WIRE_RECORDS_MAX (1u << 20) /* of a block */

/* The items of one field: item i lies at `at` + i * `step` of the region. */
struct hr_wire_lane {
    const struct hr_field *field;
    size_t bytes; /* of an item of a column; 0: a struct hr_wire_value each */
    size_t at, step;
};

struct hr_wire_layout {
    struct hr_wire_lane *lanes;
    size_t count;
    size_t ids, end; /* of the block laid last; payloads start at `end` */
};

/* Not laid yet. `columns` false: all fields have descriptors. HR_ERR_MEMORY. The fields
 * are borrowed. */
HR_CHECK enum hr_err
hr__wire_layout_init(struct hr_wire_layout *layout, const struct hr_field *const *fields,
                     size_t count, bool columns);
void hr__wire_layout_finish(struct hr_wire_layout *layout);

/* Lays `records` records with identities of `id_bytes` bytes (0: none) out from `at` on,
 * a multiple of HR_WIRE_ALIGN. */
void hr__wire_lay(struct hr_wire_layout *layout, size_t at, size_t records,
                  size_t id_bytes);

/* ---- identities ---- */

/* Bytes of an identity: a multiple of 8, by the depth of its child path. All identities
 * of a block have those of the deepest one. */
#define HR_WIRE_ID_BYTES 40
#define HR_WIRE_ID_BYTES_MAX 72
size_t hr__wire_id_bytes(const struct hr_record_id *id);

/* Write to `to`; `bytes` is at least hr__wire_id_bytes(id). */
void hr__wire_id_put(const struct hr_record_id *id, void *to, size_t bytes);

/* False when it is malformed. */
bool hr__wire_id_get(const void *from, size_t bytes, struct hr_record_id *ret_id);

#endif
