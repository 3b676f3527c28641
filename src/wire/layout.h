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

#include <string.h>

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

/* An identity as it lies in a block: what a struct hr_record_id begins with. `child` has
 * as many numbers as there is room for. */
struct hr_wire_id {
    uint64_t seed, position, index;
    uint32_t epoch, draw_epoch, depth;
    uint32_t child[1];
};

/* Of records with a child path: see below. */
void hr__wire_id_put_deep(const struct hr_record_id *id, void *to, size_t bytes);
bool hr__wire_id_get_deep(const void *from, size_t bytes, struct hr_record_id *ret_id);

/* Write to `to`; `bytes` is at least hr__wire_id_bytes(id). */
static inline void hr__wire_id_put(const struct hr_record_id *id, void *to, size_t bytes)
{
    const size_t head = offsetof(struct hr_wire_id, child);

    if (bytes == sizeof(struct hr_wire_id) && id->depth == 0) {
        memcpy(to, id, head);
        memset((char *)to + head, 0, sizeof(struct hr_wire_id) - head);
        return;
    }
    hr__wire_id_put_deep(id, to, bytes);
}

/* The identity in place, unchecked, for a reader that trusts the writer: all up to
 * child[depth - 1]. */
static inline const struct hr_record_id *hr__wire_id_at(const void *from)
{
    return from;
}

/* False when it is malformed. `child` beyond `depth` is left as it was. */
static inline bool
hr__wire_id_get(const void *from, size_t bytes, struct hr_record_id *ret_id)
{
    struct hr_wire_id wire;

    if (bytes < sizeof wire)
        return false;
    memcpy(&wire, from, sizeof wire);
    if (wire.index >= HR_INDEX_MAX || wire.epoch >= HR_DRAW_EPOCHS_MAX)
        return false;
    ret_id->seed = wire.seed;
    ret_id->position = wire.position;
    ret_id->index = wire.index;
    ret_id->epoch = wire.epoch;
    ret_id->draw_epoch = wire.draw_epoch;
    ret_id->depth = wire.depth;
    return wire.depth == 0 || hr__wire_id_get_deep(from, bytes, ret_id);
}

#endif
