/*
 * wire/layout.c - lanes of a block, and identities.
 */
#include "wire/layout.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

struct wire_id {
    uint64_t seed, position, index;
    uint32_t epoch;
    uint32_t depth; /* of the child path, whose numbers follow; 8 bytes each */
};

_Static_assert(sizeof(struct wire_id) == HR_WIRE_ID_BYTES, "the format has no padding");

/* Images have descriptors, however small: they may be described, not made. */
static bool is_column(const struct hr_field *field)
{
    int64_t bytes = hr__field_bytes(field);

    return field->kind == HR_FIELD_TENSOR && field->layout == HR_LAYOUT_NONE &&
           bytes > 0 && bytes <= HR_WIRE_COLUMN_MAX;
}

enum hr_err
hr__wire_layout_init(struct hr_wire_layout *layout, const struct hr_field *const *fields,
                     size_t count, bool columns)
{
    *layout = (struct hr_wire_layout){0};
    layout->lanes = hr__calloc(count + 1, sizeof *layout->lanes);
    if (layout->lanes == NULL)
        return HR_ERR_MEMORY;
    layout->count = count;
    for (size_t i = 0; i < count; i++)
        layout->lanes[i] = (struct hr_wire_lane){
            .field = fields[i],
            .bytes =
                columns && is_column(fields[i]) ? (size_t)hr__field_bytes(fields[i]) : 0};
    return HR_OK;
}

void hr__wire_layout_finish(struct hr_wire_layout *layout)
{
    hr__free(layout->lanes);
    *layout = (struct hr_wire_layout){0};
}

void hr__wire_lay(struct hr_wire_layout *layout, size_t at, size_t records,
                  size_t id_bytes)
{
    size_t wide = 0, rows;

    assert(at % HR_WIRE_ALIGN == 0 && records <= HR_WIRE_RECORDS_MAX);
    layout->ids = at;
    at = hr__wire_align(at + records * id_bytes);
    for (size_t i = 0; i < layout->count; i++) {
        struct hr_wire_lane *lane = &layout->lanes[i];

        if (lane->bytes == 0) {
            wide++;
            continue;
        }
        lane->at = at;
        lane->step = lane->bytes;
        at = hr__wire_align(at + records * lane->bytes);
    }
    rows = at;
    for (size_t i = 0, k = 0; i < layout->count; i++) {
        struct hr_wire_lane *lane = &layout->lanes[i];

        if (lane->bytes > 0)
            continue;
        lane->at = rows + k++ * sizeof(struct hr_wire_value);
        lane->step = wide * sizeof(struct hr_wire_value);
    }
    layout->end = hr__wire_align(rows + records * wide * sizeof(struct hr_wire_value));
}

size_t hr__wire_id_bytes(const struct hr_record_id *id)
{
    (void)id;
    return HR_WIRE_ID_BYTES;
}

void hr__wire_id_put(const struct hr_record_id *id, void *to, size_t bytes)
{
    struct wire_id wire = {id->seed, id->position, id->index, id->epoch, 0};

    assert(bytes >= hr__wire_id_bytes(id));
    memcpy(to, &wire, sizeof wire);
    memset((char *)to + sizeof wire, 0, bytes - sizeof wire);
}

bool hr__wire_id_get(const void *from, size_t bytes, struct hr_record_id *ret_id)
{
    struct wire_id wire;

    if (bytes < sizeof wire)
        return false;
    memcpy(&wire, from, sizeof wire);
    if (wire.depth != 0)
        return false;
    *ret_id = (struct hr_record_id){.seed = wire.seed,
                                    .epoch = wire.epoch,
                                    .index = wire.index,
                                    .position = wire.position};
    return true;
}
