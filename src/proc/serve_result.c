/*
 * proc/serve_result.c - what goes home from the worker process.
 *
 * A result lies in its column, or is described and lies at the next free place of `out`.
 * An input that comes back unchanged is named, not copied. A deferred value is made
 * straight in `out`, or described if the parent edits it further, or if it cannot be made
 * and the parent may not need it.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "proc/serve_internal.h"

enum hr_err hr__serve_room(struct hr_server *server, size_t bytes, size_t *ret_at,
                           struct hr_error *reterr)
{
    size_t at = server->out_at;

    assert(at % HR_WIRE_ALIGN == 0);
    if (bytes > server->out_max || at > server->out_max - bytes) {
        server->full = true;
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "no room for %zu bytes in the memory of the worker process",
                        bytes);
    }
    HR_TRY(hr__shm_map(server->out, at + bytes, true, reterr));
    server->out_at = hr__wire_align(at + bytes);
    *ret_at = at;
    return HR_OK;
}

/* The input that the value is, as it came; -1 for none. */
static int find_input(const struct hr_server *server, const struct hr_value *value)
{
    for (size_t i = 0; i < server->map.inputs.count; i++) {
        const struct hr_value *from = &server->loaded[i];

        if (value->data == from->data && value->data != NULL &&
            value->kind == from->kind && value->dtype == from->dtype &&
            value->ndim == from->ndim && value->bytes == from->bytes &&
            memcmp(value->dims, from->dims, value->ndim * sizeof value->dims[0]) == 0 &&
            (value->kind != HR_VALUE_TENSOR || hr__value_contiguous(value)) &&
            (value->kind != HR_VALUE_RAGGED || value->u.ragged == from->u.ragged))
            return (int)i;
    }
    return -1;
}

/* Makes a deferred value in `out`. */
static enum hr_err make(struct hr_server *server, struct hr_value *value,
                        struct hr_wire_value *ret_wire, struct hr_error *reterr)
{
    size_t bytes =
        (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype);
    size_t at = 0;
    enum hr_err code;

    HR_TRY(hr__serve_room(server, bytes, &at, reterr));
    code = hr__value_force(&server->thread, value, server->out->base + at, reterr);
    if (code != HR_OK) {
        server->out_at = at;
        return code;
    }
    assert(value->kind == HR_VALUE_TENSOR);
    hr__wire_value_head(value, ret_wire);
    ret_wire->place = at;
    ret_wire->bytes = bytes;
    ret_wire->offsets = 0;
    return HR_OK;
}

static enum hr_err copy_out(struct hr_server *server, const struct hr_value *value,
                            struct hr_wire_value *ret_wire, struct hr_error *reterr)
{
    size_t at = 0;

    HR_TRY(hr__serve_room(server, hr__wire_value_bytes(value), &at, reterr));
    hr__wire_value_put(value, server->out->base, at, ret_wire);
    return HR_OK;
}

enum hr_err hr__serve_describe(struct hr_server *server, size_t result,
                               struct hr_value *value, struct hr_serve_place *place,
                               struct hr_wire_value *ret_wire, struct hr_error *reterr)
{
    enum hr_proc_form form = hr__proc_form(&server->program, result);
    int input;

    assert(result < server->map.results.count);
    if (value->kind == HR_VALUE_NONE)
        return hr__fail(reterr, HR_ERR_INTERNAL, "field '%s' was not made",
                        server->map.results.lanes[result].field->name);
    if (value->kind == HR_VALUE_DEFERRED &&
        (form != HR_PROC_DESCRIBED || !hr__wire_describes(value))) {
        enum hr_err code = make(server, value, ret_wire, reterr);

        if (code == HR_OK || server->full || form == HR_PROC_MADE ||
            !hr__value_may_wait(&server->thread, value, code))
            return code;
    }
    if (place->where == HR_SERVE_SCRATCH && value->kind != HR_VALUE_DEFERRED &&
        (input = find_input(server, value)) >= 0)
        *place = (struct hr_serve_place){HR_SERVE_INPUT, (size_t)input};
    if (place->where == HR_SERVE_SCRATCH) {
        HR_TRY(copy_out(server, value, ret_wire, reterr));
        if (value->kind != HR_VALUE_DEFERRED)
            *place = (struct hr_serve_place){HR_SERVE_OUT, (size_t)ret_wire->place};
        return HR_OK;
    }
    hr__wire_value_head(value, ret_wire);
    ret_wire->place = place->at;
    ret_wire->bytes = value->bytes;
    ret_wire->offsets = 0;
    ret_wire->where = place->where == HR_SERVE_INPUT ? HR_WIRE_PASSED : HR_WIRE_HERE;
    return HR_OK;
}

static enum hr_err pack_column(struct hr_server *server, const struct hr_wire_lane *lane,
                               size_t slot, struct hr_error *reterr)
{
    struct hr_value *value = &server->values[slot];
    size_t at = lane->at + server->at * lane->step;

    if ((value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_DEFERRED) ||
        (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype) !=
            lane->bytes)
        return hr__fail(reterr, HR_ERR_INTERNAL, "field '%s' does not match its schema",
                        lane->field->name);
    return hr__value_force(&server->thread, value, server->out->base + at, reterr);
}

static enum hr_err pack_wide(struct hr_server *server, const struct hr_wire_lane *lane,
                             size_t result, struct hr_error *reterr)
{
    size_t slot = server->program.results[result];
    struct hr_wire_value wire; /* clearing it would cost a record 10 ns */

    HR_TRY(hr__serve_describe(server, result, &server->values[slot],
                              &server->places[slot], &wire, reterr));
    memcpy(server->out->base + lane->at + server->at * lane->step, &wire, sizeof wire);
    return HR_OK;
}

enum hr_err hr__serve_pack(struct hr_server *server, struct hr_error *reterr)
{
    assert(!server->map.expand);
    for (size_t r = 0; r < server->map.results.count; r++) {
        const struct hr_wire_lane *lane = &server->map.results.lanes[r];
        size_t slot = server->program.results[r];
        const struct hr_serve_place *place = &server->places[slot];

        if (lane->bytes == 0)
            HR_TRY(pack_wide(server, lane, r, reterr));
        else if (place->where != HR_SERVE_OUT ||
                 place->at != lane->at + server->at * lane->step)
            HR_TRY(pack_column(server, lane, slot, reterr));
    }
    return HR_OK;
}

enum hr_err hr__serve_child_room(struct hr_server *server, uint64_t child,
                                 struct hr_wire_value **ret_row, struct hr_error *reterr)
{
    size_t count = server->map.results.count, need = ((size_t)child + 1) * count;

    if (need > server->child_room) {
        size_t wanted = need > 2 * server->child_room ? need : 2 * server->child_room;
        struct hr_wire_value *more = hr__realloc(server->children, wanted * sizeof *more);

        if (more == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for children");
        server->children = more;
        server->child_room = wanted;
    }
    *ret_row = &server->children[(size_t)child * count];
    return HR_OK;
}

enum hr_err
hr__serve_pack_children(struct hr_server *server, uint64_t children,
                        struct hr_proc_status *status, struct hr_error *reterr)
{
    size_t bytes =
        (size_t)children * server->map.results.count * sizeof *server->children;
    size_t at = 0;

    assert(bytes <= server->child_room * sizeof *server->children);
    HR_TRY(hr__serve_room(server, bytes, &at, reterr));
    if (bytes > 0)
        memcpy(server->out->base + at, server->children, bytes);
    status->place = at;
    status->children = children;
    return HR_OK;
}
