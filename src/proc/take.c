/*
 * proc/take.c - results out of the region that the peer writes.
 *
 * The peer runs other people's code and may write anything, at any time. So every number
 * is copied before it is checked, used only from the copy, and what it leads to must lie
 * inside the mapping, which no peer can shorten. Shapes come from the declaration or have
 * to fit it. Offsets of ragged values and descriptions of deferred ones are copied, too;
 * the bytes of arrays and strings are not, and may change while they are read.
 */
#include "op/ragged.h"
#include "proc/proc_internal.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

/* A copy that the compiler may not undo by looking again. */
static void copy_in(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    atomic_signal_fence(memory_order_seq_cst);
}

struct taking {
    struct hr_proc *proc;
    struct hr_value *templates; /* of columns */
    struct hr_error *reterr;
    const char *nonsense;
};

static bool nonsense(struct taking *taking, const char *what)
{
    taking->nonsense = what;
    return false;
}

/* ---- values ---- */

static void tensor_of(struct hr_value *value, const struct hr_field *field,
                      const int64_t *dims, void *data)
{
    value->owner = NULL;
    hr__value_set_tensor(value, field->dtype, field->ndim, dims, data, NULL);
    value->layout = (uint8_t)field->layout;
}

/* Offsets of a passed ragged field, from the parent's own input. */
static bool
own_offsets(struct taking *taking, const struct hr_value *from, struct hr_value *to)
{
    const struct hr_ragged *ragged = hr__ragged_copy_splits(from, &taking->proc->arena);

    if (ragged == NULL) {
        hr__fail(taking->reterr, HR_ERR_MEMORY, "out of memory for a worker's results");
        return false;
    }
    to->u.ragged = ragged;
    return true;
}

/* Where input `at` of record `i` lies in `in`. The descriptor there is the parent's own,
 * but the peer may have written to it. */
static bool
input_place(struct taking *taking, size_t i, size_t at, size_t bytes, char **ret_data)
{
    const struct hr_wire_lane *lane = &taking->proc->map.inputs.lanes[at];
    const struct hr_shm *in = &taking->proc->in;
    struct hr_wire_value value;

    if (lane->bytes > 0) {
        *ret_data = in->base + lane->at + i * lane->step;
        return true;
    }
    copy_in(&value, in->base + lane->at + i * lane->step, sizeof value);
    if (!hr__wire_inside(in->bytes, value.place, bytes) ||
        value.place % HR_WIRE_ALIGN != 0)
        return nonsense(taking, "a changed input");
    *ret_data = in->base + value.place;
    return true;
}

static bool
take_passed(struct taking *taking, const struct hr_proc_record *record, size_t i,
            uint64_t at, const struct hr_field *field, struct hr_value *to)
{
    const struct hr_value *from;
    size_t bytes;
    char *data;

    if (at >= taking->proc->map.inputs.count)
        return nonsense(taking, "an input that does not exist");
    from = &record->inputs[at];
    if (from->kind == HR_VALUE_DEFERRED ||
        hr__wire_value_fits(from, field, NULL) != HR_OK)
        return nonsense(taking, "an input of another type or shape than declared");
    bytes = from->bytes;
    if (from->kind == HR_VALUE_TENSOR)
        bytes = (size_t)hr__value_count(from) * hr_dtype_size((enum hr_dtype)from->dtype);
    if (!input_place(taking, i, (size_t)at, bytes, &data))
        return false;
    if (from->kind == HR_VALUE_TENSOR) {
        tensor_of(to, field, from->dims, data);
    } else {
        *to = *from;
        to->owner = NULL;
        to->data = data;
        if (from->kind == HR_VALUE_RAGGED && !own_offsets(taking, from, to))
            return false;
    }
    to->shared = true;
    return true;
}

static bool
take_made(struct taking *taking, const struct hr_wire_value *wire,
          const struct hr_field *field, enum hr_proc_form form, struct hr_value *to)
{
    const struct hr_wire_region region = {
        .base = taking->proc->out.base,
        .bytes = taking->proc->out.bytes,
        .unsteady = true,
        .arena = &taking->proc->arena,
        .nodes = taking->proc->map.nodes,
    };
    enum hr_err code;

    if (wire->kind == HR_VALUE_DEFERRED && form == HR_PROC_MADE)
        return nonsense(taking, "a description where a value was due");
    code = hr__wire_value_get(&region, wire, to, NULL);
    if (code == HR_ERR_MEMORY) {
        hr__fail(taking->reterr, code, "out of memory for a worker's results");
        return false;
    }
    if (code != HR_OK)
        return nonsense(taking, "a result outside of the shared memory, or malformed");
    if (hr__wire_value_fits(to, field, NULL) != HR_OK)
        return nonsense(taking, "a result of another type or shape than declared");
    if (to->layout == HR_LAYOUT_NONE)
        to->layout = (uint8_t)field->layout;
    to->shared = false; /* the parent alone reads it from here on */
    return true;
}

static bool take_value(struct taking *taking, const struct hr_proc_record *record,
                       size_t i, const char *from, size_t result, struct hr_value *to)
{
    const struct hr_field *field = taking->proc->map.results.lanes[result].field;
    struct hr_wire_value wire;

    copy_in(&wire, from, sizeof wire);
    if (wire.where == HR_WIRE_PASSED)
        return take_passed(taking, record, i, wire.place, field, to);
    return take_made(taking, &wire, field, hr__proc_form(taking->proc->program, result),
                     to);
}

/* ---- records ---- */

static struct hr_value *room_for(struct taking *taking, size_t count)
{
    struct hr_value *values =
        hr__arena_alloc(&taking->proc->arena, count * sizeof *values + 1);

    if (values == NULL)
        hr__fail(taking->reterr, HR_ERR_MEMORY, "out of memory for a worker's results");
    return values;
}

static bool take_children(struct taking *taking, struct hr_proc_record *record, size_t i,
                          const struct hr_proc_status *status)
{
    const struct hr_proc_map *map = &taking->proc->map;
    const struct hr_shm *out = &taking->proc->out;
    size_t row = map->results.count * sizeof(struct hr_wire_value), bytes;
    struct hr_value *values;

    if (status->children > UINT32_MAX ||
        __builtin_mul_overflow((size_t)status->children, row, &bytes) ||
        !hr__wire_inside(out->bytes, status->place, bytes) ||
        status->place % HR_WIRE_ALIGN != 0)
        return nonsense(taking, "children outside of the shared memory");
    values = room_for(taking, (size_t)status->children * map->results.count);
    if (values == NULL)
        return false;
    for (size_t c = 0; c < status->children; c++)
        for (size_t r = 0; r < map->results.count; r++) {
            size_t at = c * map->results.count + r;

            if (!take_value(taking, record, i,
                            out->base + status->place + at * sizeof(struct hr_wire_value),
                            r, &values[at]))
                return false;
        }
    record->results = values;
    record->child_count = status->children;
    return true;
}

static bool take_results(struct taking *taking, struct hr_proc_record *record, size_t i)
{
    const struct hr_proc_map *map = &taking->proc->map;
    char *base = taking->proc->out.base;

    for (size_t r = 0; r < map->results.count; r++) {
        const struct hr_wire_lane *lane = &map->results.lanes[r];
        char *item = base + lane->at + i * lane->step;

        if (lane->bytes > 0) {
            record->results[r] = taking->templates[r];
            record->results[r].data = item;
        } else if (!take_value(taking, record, i, item, r, &record->results[r])) {
            return false;
        }
    }
    return true;
}

static void terminate(struct hr_error *error)
{
    error->node[sizeof error->node - 1] = '\0';
    error->op[sizeof error->op - 1] = '\0';
    error->param[sizeof error->param - 1] = '\0';
    error->file[sizeof error->file - 1] = '\0';
    error->message[sizeof error->message - 1] = '\0';
    error->raised[sizeof error->raised - 1] = '\0';
}

static bool take_failure(struct taking *taking, struct hr_proc_record *record,
                         const struct hr_proc_status *status)
{
    const struct hr_shm *out = &taking->proc->out;
    struct hr_proc_failure failure;
    char *detail = NULL;

    if (status->code < HR_ERR_DENIED || status->code > 0 ||
        !hr__wire_inside(out->bytes, status->place, sizeof failure))
        return nonsense(taking, "an error without a code");
    copy_in(&failure, out->base + status->place, sizeof failure);
    if (failure.node >= taking->proc->program->nodes)
        return nonsense(taking, "an error of a node that does not exist");
    if (failure.detail_bytes > HR_PROC_DETAIL_MAX ||
        !hr__wire_inside(out->bytes, status->place + sizeof failure,
                         failure.detail_bytes))
        return nonsense(taking, "an error without a code");
    if (failure.detail_bytes > 0)
        detail =
            hr__strndup(out->base + status->place + sizeof failure, failure.detail_bytes);
    terminate(&failure.error);
    failure.error.code = (enum hr_err)status->code;
    record->error = failure.error;
    record->code = failure.error.code;
    record->failed_node = failure.node;
    record->detail = detail;
    return true;
}

static bool take_record(struct taking *taking, struct hr_proc_record *record, size_t i,
                        struct hr_value *results)
{
    const struct hr_proc_map *map = &taking->proc->map;
    struct hr_proc_status status;

    copy_in(&status, taking->proc->out.base + map->status + i * sizeof status,
            sizeof status);
    if (status.step > 0 && status.step >= taking->proc->program->step_count)
        return nonsense(taking, "a step that does not exist");
    record->code = HR_OK;
    record->drop = status.drop != 0;
    record->failed_step = status.step;
    record->results = results;
    record->child_count = 0;
    if (status.code != HR_OK)
        return take_failure(taking, record, &status);
    if (record->drop)
        return true;
    if (map->expand)
        return take_children(taking, record, i, &status);
    return take_results(taking, record, i);
}

static bool make_templates(struct taking *taking)
{
    const struct hr_proc_map *map = &taking->proc->map;

    taking->templates = room_for(taking, map->results.count);
    if (taking->templates == NULL)
        return false;
    memset(taking->templates, 0, map->results.count * sizeof *taking->templates);
    for (size_t r = 0; r < map->results.count; r++) {
        const struct hr_field *field = map->results.lanes[r].field;
        int64_t dims[HR_MAX_DIMS];

        if (map->results.lanes[r].bytes == 0)
            continue;
        for (int d = 0; d < field->ndim; d++) {
            assert(field->dims[d].size >= 0); /* a column's are known */
            dims[d] = field->dims[d].size;
        }
        tensor_of(&taking->templates[r], field, dims, NULL);
    }
    return true;
}

enum hr_err
hr__proc_take(struct hr_proc *proc, struct hr_proc_record *records, size_t done,
              size_t *ret_taken, const char **ret_nonsense, struct hr_error *reterr)
{
    struct taking taking = {.proc = proc, .reterr = reterr};
    size_t each = proc->map.expand ? 0 : proc->map.results.count, i;
    struct hr_value *values;

    assert(proc->map.results.end <= proc->out.bytes);
    if (!make_templates(&taking) || (values = room_for(&taking, done * each)) == NULL)
        return HR_ERR_MEMORY;
    for (i = 0; i < done; i++) {
        if (!take_record(&taking, &records[i], i, values + i * each)) {
            if (taking.nonsense == NULL)
                return HR_ERR_MEMORY;
            break;
        }
        if (records[i].code == HR_ERR_CANCELLED) {
            if (reterr != NULL)
                *reterr = records[i].error;
            return HR_ERR_CANCELLED;
        }
    }
    *ret_taken = i;
    *ret_nonsense = taking.nonsense;
    return HR_OK;
}

enum hr_err hr__proc_keep(struct hr_proc *proc, struct hr_proc_record *records,
                          size_t count, struct hr_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        size_t values = proc->map.results.count;

        if (records[i].code != HR_OK || records[i].drop)
            continue;
        if (proc->map.expand)
            values *= (size_t)records[i].child_count;
        for (size_t r = 0; r < values; r++) {
            struct hr_value *value = &records[i].results[r];
            void *own;

            if (value->kind == HR_VALUE_DEFERRED)
                continue; /* its description is a copy */
            own = hr__arena_alloc(&proc->arena, value->bytes + 1);
            if (own == NULL)
                return hr__fail(reterr, HR_ERR_MEMORY,
                                "out of memory for a worker's results");
            memcpy(own, value->data, value->bytes);
            value->data = own;
        }
    }
    return HR_OK;
}
