/*
 * proc/send.c - records into the region that the peer reads.
 *
 * One pass over the records: ids and small fields go to their columns, everything else
 * is copied behind them, 64-byte aligned, and described.
 */
#include "proc/proc_internal.h"

#include <string.h>

static size_t wide_bytes(const struct hr_value *value)
{
    size_t bytes = value->bytes;

    if (value->kind == HR_VALUE_TENSOR)
        bytes =
            (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype);
    if (value->kind == HR_VALUE_RAGGED)
        bytes = hr__proc_align(bytes) + ((size_t)value->dims[0] + 1) * sizeof(int64_t);
    return hr__proc_align(bytes);
}

static size_t record_bytes(const struct hr_proc_map *map, const struct hr_value *inputs)
{
    size_t bytes = sizeof(struct hr_record_id);

    for (size_t i = 0; i < map->input_count; i++) {
        if (map->inputs[i].bytes > 0)
            bytes += map->inputs[i].bytes;
        else
            bytes += sizeof(struct hr_proc_value) + wide_bytes(&inputs[i]);
    }
    return bytes;
}

size_t hr__proc_fit(struct hr_proc *proc, const struct hr_proc_record *records,
                    size_t count, size_t *ret_bytes)
{
    size_t slack = HR_PROC_HEAD + 64 * (proc->map.input_count + 3), total = slack, n;
    size_t limit = proc->bytes_max == SIZE_MAX ? SIZE_MAX : proc->bytes_max / 2;

    count = count < HR_PROC_COUNT_MAX ? count : HR_PROC_COUNT_MAX;
    for (n = 0; n < count; n++) {
        size_t bytes = record_bytes(&proc->map, records[n].inputs);

        if (n > 0 && total + bytes > limit)
            break;
        total += bytes;
    }
    *ret_bytes = total;
    return n;
}

static enum hr_err misfit(const struct hr_proc_lane *lane, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_INTERNAL,
                    "field '%s' of a record is not what its schema says",
                    lane->field->name);
}

static enum hr_err put_column(const struct hr_proc_lane *lane, char *to,
                              const struct hr_value *value, struct hr_error *reterr)
{
    if (value->kind != HR_VALUE_TENSOR || value->dtype != lane->field->dtype ||
        (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype) !=
            lane->bytes)
        return misfit(lane, reterr);
    if (lane->bytes == 8 && value->ndim == 0)
        memcpy(to, value->data, 8);
    else
        hr__value_copy(value, to);
    return HR_OK;
}

static enum hr_err
put_wide(const struct hr_proc_lane *lane, char *base, size_t place,
         struct hr_proc_value *to, const struct hr_value *value, struct hr_error *reterr)
{
    size_t bytes = value->bytes;

    if (value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_BYTES &&
        value->kind != HR_VALUE_RAGGED)
        return misfit(lane, reterr);
    to->place = place;
    to->where = HR_PROC_MADE;
    to->kind = value->kind;
    to->dtype = value->dtype;
    to->ndim = value->ndim;
    to->strings = value->strings;
    to->offsets = 0;
    memcpy(to->dims, value->dims, value->ndim * sizeof(int64_t));
    if (value->kind == HR_VALUE_TENSOR) {
        bytes =
            (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype);
        hr__value_copy(value, base + place);
    } else if (bytes > 0) {
        memcpy(base + place, value->data, bytes);
    }
    to->bytes = bytes;
    if (value->kind == HR_VALUE_RAGGED) {
        to->offsets = place + hr__proc_align(bytes);
        memcpy(base + to->offsets, value->u.offsets,
               ((size_t)value->dims[0] + 1) * sizeof(int64_t));
    }
    return HR_OK;
}

enum hr_err hr__proc_put(struct hr_proc *proc, const struct hr_proc_record *records,
                         size_t count, struct hr_error *reterr)
{
    struct hr_proc_map *map = &proc->map;
    char *base = proc->in.base;
    size_t place;

    hr__proc_map_lay(map, count);
    place = map->in_end;
    for (size_t i = 0; i < count; i++)
        ((struct hr_record_id *)(base + map->ids))[i] = records[i].id;
    for (size_t i = 0; i < count; i++) {
        for (size_t f = 0; f < map->input_count; f++) {
            const struct hr_proc_lane *lane = &map->inputs[f];
            const struct hr_value *value = &records[i].inputs[f];
            char *item = base + lane->at + i * lane->step;

            if (lane->bytes > 0) {
                HR_TRY(put_column(lane, item, value, reterr));
                continue;
            }
            HR_TRY(
                put_wide(lane, base, place, (struct hr_proc_value *)item, value, reterr));
            place += wide_bytes(value);
        }
    }
    return HR_OK;
}
