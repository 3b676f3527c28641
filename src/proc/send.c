/*
 * proc/send.c - records into the region that the peer reads.
 *
 * One pass over the records: identities and small fields go to their columns, everything
 * else is copied after them, 64-byte aligned, and described.
 */
#include "proc/proc_internal.h"

#include <assert.h>
#include <string.h>

/* Bytes of each record apart from payloads. */
static size_t fixed_bytes(const struct hr_proc_map *map, size_t id_bytes, bool *ret_wide)
{
    size_t bytes = id_bytes;

    *ret_wide = false;
    for (size_t i = 0; i < map->inputs.count; i++) {
        size_t column = map->inputs.lanes[i].bytes;

        bytes += column > 0 ? column : sizeof(struct hr_wire_value);
        *ret_wide = *ret_wide || column == 0;
    }
    return bytes;
}

static size_t payload_bytes(const struct hr_proc_map *map, const struct hr_value *inputs)
{
    size_t bytes = 0;

    for (size_t i = 0; i < map->inputs.count; i++)
        if (map->inputs.lanes[i].bytes == 0)
            bytes += hr__wire_value_bytes(&inputs[i]);
    return bytes;
}

static size_t deepest_id(const struct hr_proc_record *records, size_t count)
{
    size_t most = HR_WIRE_ID_BYTES;

    for (size_t i = 0; i < count; i++) {
        if (records[i].id->depth > 0 && hr__wire_id_bytes(records[i].id) > most)
            most = hr__wire_id_bytes(records[i].id);
    }
    return most;
}

size_t hr__proc_fit(struct hr_proc *proc, const struct hr_proc_record *records,
                    size_t count, size_t *ret_id_bytes, size_t *ret_bytes)
{
    size_t slack = HR_PROC_HEAD + HR_WIRE_ALIGN * (proc->map.inputs.count + 3);
    size_t limit = proc->bytes_max == SIZE_MAX ? SIZE_MAX : proc->bytes_max / 2;
    size_t total = slack, n, id_bytes, fixed;
    bool wide;

    assert(count > 0);
    count = count < HR_PROC_COUNT_MAX ? count : HR_PROC_COUNT_MAX;
    id_bytes = deepest_id(records, count);
    fixed = fixed_bytes(&proc->map, id_bytes, &wide);
    for (n = 0; n < count; n++) {
        size_t bytes = fixed;

        if (wide)
            bytes += payload_bytes(&proc->map, records[n].inputs);

        if (n > 0 && total + bytes > limit)
            break;
        total += bytes;
    }
    *ret_id_bytes = id_bytes;
    *ret_bytes = total;
    return n;
}

static enum hr_err misfit(const struct hr_wire_lane *lane, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_INTERNAL,
                    "field '%s' of a record is not what its schema says",
                    lane->field->name);
}

static inline enum hr_err
put_column(const struct hr_wire_lane *lane, char *to, const struct hr_value *value,
           struct hr_error *reterr)
{
    if (value->kind == HR_VALUE_TENSOR && value->ndim == 0 && value->bytes == 8 &&
        lane->bytes == 8) {
        memcpy(to, value->data, 8);
        return HR_OK;
    }
    if (value->kind != HR_VALUE_TENSOR ||
        (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype) !=
            lane->bytes)
        return misfit(lane, reterr);
    hr__value_copy(value, to);
    return HR_OK;
}

enum hr_err hr__proc_put(struct hr_proc *proc, const struct hr_proc_record *records,
                         size_t count, size_t id_bytes, struct hr_error *reterr)
{
    struct hr_proc_map *map = &proc->map;
    char *base = proc->in.base;
    size_t place;

    hr__proc_map_lay(map, count, id_bytes);
    place = map->inputs.end;
    assert(place <= proc->in.bytes);
    for (size_t i = 0; i < count; i++)
        hr__wire_id_put(records[i].id, base + map->inputs.ids + i * id_bytes, id_bytes);
    for (size_t i = 0; i < count; i++) {
        for (size_t f = 0; f < map->inputs.count; f++) {
            const struct hr_wire_lane *lane = &map->inputs.lanes[f];
            const struct hr_value *value = &records[i].inputs[f];
            char *item = base + lane->at + i * lane->step;

            if (lane->bytes > 0) {
                HR_TRY(put_column(lane, item, value, reterr));
                continue;
            }
            if (value->kind == HR_VALUE_NONE || !hr__wire_describes(value))
                return misfit(lane, reterr);
            hr__wire_value_put(value, base, place, (struct hr_wire_value *)item);
            place += hr__wire_value_bytes(value);
            assert(place <= proc->in.bytes);
        }
    }
    return HR_OK;
}
