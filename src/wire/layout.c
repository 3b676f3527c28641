/*
 * wire/layout.c - lanes of a block, and identities.
 */
#include "wire/layout.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

#define ID_HEAD offsetof(struct hr_wire_id, child)

_Static_assert(ID_HEAD == 36 && sizeof(struct hr_wire_id) == HR_WIRE_ID_BYTES,
               "the format has no padding");
_Static_assert(offsetof(struct hr_record_id, position) == 8 &&
                   offsetof(struct hr_record_id, index) == 16 &&
                   offsetof(struct hr_record_id, epoch) == 24 &&
                   offsetof(struct hr_record_id, draw_epoch) == 28 &&
                   offsetof(struct hr_record_id, depth) == 32 &&
                   offsetof(struct hr_record_id, child) == ID_HEAD,
               "an identity in a block can be read in place");

/* Images have descriptors, however small: they may be described, not made. */
static bool is_column(const struct hr_field *field)
{
    int64_t bytes = hr__field_bytes(field);

    return field->kind == HR_FIELD_TENSOR && !hr__field_may_defer(field) && bytes > 0 &&
           bytes <= HR_WIRE_COLUMN_MAX;
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
    size_t bytes = ID_HEAD + id->depth * sizeof(uint32_t);

    assert(id->depth <= HR_CHILD_DEPTH_MAX);
    return bytes < HR_WIRE_ID_BYTES ? HR_WIRE_ID_BYTES : (bytes + 7) & ~(size_t)7;
}

void hr__wire_id_put_deep(const struct hr_record_id *id, void *to, size_t bytes)
{
    assert(bytes >= hr__wire_id_bytes(id) && bytes <= HR_WIRE_ID_BYTES_MAX);
    memcpy(to, id, ID_HEAD);
    memset((char *)to + ID_HEAD, 0, bytes - ID_HEAD);
    memcpy((char *)to + ID_HEAD, id->child, id->depth * sizeof(uint32_t));
}

bool hr__wire_id_get_deep(const void *from, size_t bytes, struct hr_record_id *ret_id)
{
    if (ret_id->depth > HR_CHILD_DEPTH_MAX ||
        ID_HEAD + ret_id->depth * sizeof(uint32_t) > bytes)
        return false;
    memcpy(ret_id->child, (const char *)from + ID_HEAD, ret_id->depth * sizeof(uint32_t));
    return true;
}
