/*
 * proc/serve_record.c - one record through its steps in the worker process.
 *
 * Outputs that go home are made where the parent will read them: small fixed ones in
 * their column, others at the next free place of `out`. What only a later step reads is
 * scratch. Passing on is a note of where the bytes lie.
 */
#include "proc/serve_internal.h"

#include <string.h>

#include "core/alloc.h"

static struct hr_serve_step *step_of(struct hr_code_call *call)
{
    return (struct hr_serve_step *)call;
}

/* ---- memory ---- */

static enum hr_err
out_room(struct hr_server *server, size_t bytes, size_t *ret_at, struct hr_error *reterr)
{
    size_t at = server->out_at;

    if (bytes > server->out_max || at > server->out_max - bytes) {
        server->full = true;
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "no room for %zu bytes in the memory of the worker process",
                        bytes);
    }
    HR_TRY(hr__shm_map(server->out, at + bytes, true, reterr));
    server->out_at = hr__proc_align(at + bytes);
    *ret_at = at;
    return HR_OK;
}

static enum hr_err scratch_room(struct hr_server *server, size_t bytes, void **ret_memory,
                                struct hr_error *reterr)
{
    server->scratch_used = true;
    *ret_memory = hr__arena_alloc(&server->scratch, bytes > 0 ? bytes : 1);
    return *ret_memory != NULL
               ? HR_OK
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory for %zu bytes", bytes);
}

/* ---- what user code asks for ---- */

static enum hr_err
place_output(struct hr_server *server, size_t slot, size_t bytes,
             struct hr_serve_place *ret_place, void **ret_memory, struct hr_error *reterr)
{
    size_t column = server->columns[slot];

    if (column != 0) {
        const struct hr_proc_lane *lane = &server->map.results[column - 1];

        ret_place->where = HR_SERVE_OUT;
        ret_place->at = lane->at + server->at * lane->step;
    } else if (server->results[slot]) {
        ret_place->where = HR_SERVE_OUT;
        HR_TRY(out_room(server, bytes, &ret_place->at, reterr));
    } else {
        ret_place->where = HR_SERVE_SCRATCH;
        return scratch_room(server, bytes, ret_memory, reterr);
    }
    *ret_memory = server->out->base + ret_place->at;
    return HR_OK;
}

static enum hr_err
room(struct hr_code_call *call, size_t at, enum hr_dtype dtype, int ndim,
     const int64_t *dims, size_t bytes, void **ret_memory, struct hr_error *reterr)
{
    struct hr_server *server = step_of(call)->server;
    size_t slot = step_of(call)->step->outputs[at];
    struct hr_value *value = &server->values[slot];
    struct hr_serve_place place = {0};
    void *memory;

    HR_TRY(place_output(server, slot, bytes, &place, &memory, reterr));
    server->places[slot] = place;
    if (dtype == HR_DTYPE_NONE) {
        value->owner = NULL;
        hr__value_set_bytes(value, memory, bytes, NULL);
    } else {
        hr__value_set_tensor(value, dtype, ndim, dims, memory, NULL);
        value->layout = (uint8_t)call->output_fields[at]->layout;
    }
    *ret_memory = memory;
    return HR_OK;
}

static enum hr_err
pass(struct hr_code_call *call, size_t at, size_t input, struct hr_error *reterr)
{
    struct hr_server *server = step_of(call)->server;
    size_t from = step_of(call)->step->inputs[input];
    size_t to = step_of(call)->step->outputs[at];

    (void)reterr;
    server->values[to] = server->values[from];
    server->places[to] = server->places[from];
    return HR_OK;
}

static enum hr_err
pack_child(struct hr_server *server, uint64_t child, struct hr_error *reterr);

static enum hr_err child(struct hr_code_call *call, struct hr_error *reterr)
{
    if (call->child_count == 0)
        return HR_OK;
    return pack_child(step_of(call)->server, call->child_count - 1, reterr);
}

static void detail(struct hr_code_call *call, const char *text)
{
    struct hr_server *server = step_of(call)->server;

    hr__free(server->detail);
    server->detail = hr__strdup(text);
}

static const struct hr_code_call_class serve_class = {
    .room = room, .pass = pass, .child = child, .detail = detail};

/* ---- results ---- */

/* What the parent needs to find a value. Scratch that goes home after all (an
 * intermediate value that a later step passed on) is copied. */
static enum hr_err describe(struct hr_server *server, size_t slot,
                            struct hr_proc_value *wire, struct hr_error *reterr)
{
    const struct hr_value *value = &server->values[slot];
    struct hr_serve_place *place = &server->places[slot];

    if (place->where == HR_SERVE_SCRATCH) {
        size_t at = 0;

        HR_TRY(out_room(server, value->bytes, &at, reterr));
        if (value->bytes > 0)
            memcpy(server->out->base + at, value->data, value->bytes);
        *place = (struct hr_serve_place){HR_SERVE_OUT, at};
    }
    wire->place = place->at;
    wire->bytes = value->bytes;
    wire->offsets = 0;
    wire->where = place->where == HR_SERVE_INPUT ? HR_PROC_PASSED : HR_PROC_MADE;
    wire->kind = value->kind;
    wire->dtype = value->dtype;
    wire->ndim = value->ndim;
    wire->strings = value->strings;
    memcpy(wire->dims, value->dims, value->ndim * sizeof(int64_t));
    return HR_OK;
}

static enum hr_err pack_record(struct hr_server *server, struct hr_error *reterr)
{
    for (size_t r = 0; r < server->map.result_count; r++) {
        const struct hr_proc_lane *lane = &server->map.results[r];
        size_t slot = server->program.results[r];
        size_t at = lane->at + server->at * lane->step;

        if (lane->bytes == 0) {
            struct hr_proc_value wire = {0};

            HR_TRY(describe(server, slot, &wire, reterr));
            memcpy(server->out->base + at, &wire, sizeof wire);
        } else if (server->places[slot].where != HR_SERVE_OUT ||
                   server->places[slot].at != at) {
            memcpy(server->out->base + at, server->values[slot].data, lane->bytes);
        }
    }
    return HR_OK;
}

static enum hr_err
pack_child(struct hr_server *server, uint64_t child, struct hr_error *reterr)
{
    size_t count = server->map.result_count, need = ((size_t)child + 1) * count;

    if (need > server->child_room) {
        size_t wanted = need > 2 * server->child_room ? need : 2 * server->child_room;
        struct hr_proc_value *more = hr__realloc(server->children, wanted * sizeof *more);

        if (more == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for children");
        server->children = more;
        server->child_room = wanted;
    }
    for (size_t r = 0; r < count; r++)
        HR_TRY(describe(server, server->program.results[r],
                        &server->children[(size_t)child * count + r], reterr));
    return HR_OK;
}

/* The last child, and all of their descriptors to `out`. */
static enum hr_err pack_children(struct hr_server *server, uint64_t children,
                                 struct hr_proc_status *status, struct hr_error *reterr)
{
    size_t bytes = (size_t)children * server->map.result_count * sizeof *server->children;
    size_t at = 0;

    if (children > 0)
        HR_TRY(pack_child(server, children - 1, reterr));
    HR_TRY(out_room(server, bytes, &at, reterr));
    if (bytes > 0)
        memcpy(server->out->base + at, server->children, bytes);
    status->place = at;
    status->children = children;
    return HR_OK;
}

static enum hr_err pack_failure(struct hr_server *server, const struct hr_error *error,
                                struct hr_proc_status *status)
{
    struct hr_proc_failure failure = {.error = *error};
    size_t length = server->detail != NULL ? strlen(server->detail) : 0, at = 0;
    char *to;

    if (length > HR_PROC_DETAIL_MAX) {
        length = HR_PROC_DETAIL_MAX;
        while (length > 0 && ((unsigned char)server->detail[length] & 0xC0) == 0x80)
            length--;
    }
    HR_TRY(out_room(server, sizeof failure + length, &at, NULL));
    failure.detail_bytes = (uint32_t)length;
    to = server->out->base + at;
    memcpy(to, &failure, sizeof failure);
    if (length > 0)
        memcpy(to + sizeof failure, server->detail, length);
    status->place = at;
    return HR_OK;
}

/* ---- a record ---- */

static void load_inputs(struct hr_server *server)
{
    char *base = server->in->base;

    for (size_t i = 0; i < server->map.input_count; i++) {
        const struct hr_proc_lane *lane = &server->map.inputs[i];
        char *item = base + lane->at + server->at * lane->step;
        struct hr_value *value = &server->values[i];
        struct hr_proc_value *wire = (struct hr_proc_value *)item;

        if (lane->bytes > 0) {
            value->data = item;
            continue;
        }
        value->owner = NULL;
        if (wire->kind == HR_VALUE_TENSOR) {
            hr__value_set_tensor(value, (enum hr_dtype)wire->dtype, wire->ndim,
                                 wire->dims, base + wire->place, NULL);
        } else {
            hr__value_set_bytes(value, base + wire->place, wire->bytes, NULL);
            value->kind = wire->kind;
            value->dtype = wire->dtype;
            value->ndim = wire->ndim;
            value->strings = wire->strings;
            value->dims[0] = wire->dims[0];
            if (wire->kind == HR_VALUE_RAGGED)
                value->u.offsets = (const int64_t *)(base + wire->offsets);
        }
        value->shared = true;
        value->layout = (uint8_t)lane->field->layout;
    }
}

static enum hr_err
run_steps(struct hr_server *server, struct hr_proc_status *status, struct hr_error *error)
{
    struct hr_proc_out_head *head = hr__serve_head(server);
    const struct hr_record_id *id =
        (const struct hr_record_id *)(server->in->base + server->map.ids) + server->at;

    for (size_t s = 0; s < server->program.step_count; s++) {
        struct hr_serve_step *step = &server->steps[s];

        status->step = (uint16_t)s;
        if (s > 0)
            atomic_store_explicit(&head->running_step, (unsigned)s, memory_order_relaxed);
        if (step->code == NULL)
            return hr__fail(error, HR_ERR_NOT_FOUND,
                            "the worker process knows no code named '%s'",
                            step->step->code);
        step->call.id = id;
        HR_TRY(hr__code_run(step->code, &step->call, error));
        if (step->call.kind == HR_OP_FILTER && !step->call.keep) {
            status->drop = 1;
            return HR_OK;
        }
        if (step->call.kind == HR_OP_EXPAND)
            return pack_children(server, step->call.child_count, status, error);
    }
    return pack_record(server, error);
}

bool hr__serve_record(struct hr_server *server)
{
    struct hr_proc_status status = {0};
    size_t out_before = server->out_at;
    struct hr_error error;
    enum hr_err code;

    error.code = HR_OK;
    error.message[0] = error.node[0] = error.op[0] = error.param[0] = error.file[0] =
        '\0';
    error.line = error.column = 0;
    error.record = 0;
    load_inputs(server);
    code = run_steps(server, &status, &error);
    if (server->scratch_used) {
        hr__arena_reset(&server->scratch);
        server->scratch_used = false;
    }
    if (code != HR_OK && !server->full) {
        server->out_at = out_before;
        status.code = code;
        server->stopped = code == HR_ERR_CANCELLED;
        code = pack_failure(server, &error, &status);
    }
    hr__free(server->detail);
    server->detail = NULL;
    if (server->full || (code != HR_OK && status.code == HR_OK)) {
        server->out_at = out_before;
        return false;
    }
    memcpy(server->out->base + server->map.status + server->at * sizeof status, &status,
           sizeof status);
    return true;
}

void hr__serve_begin(struct hr_server *server)
{
    for (size_t i = 0; i < server->map.input_count; i++) {
        const struct hr_field *field = server->map.inputs[i].field;
        int64_t dims[HR_MAX_DIMS];

        server->places[i] = (struct hr_serve_place){HR_SERVE_INPUT, i};
        if (server->map.inputs[i].bytes == 0)
            continue;
        for (int d = 0; d < field->ndim; d++)
            dims[d] = field->dims[d].size;
        server->values[i].owner = NULL;
        hr__value_set_tensor(&server->values[i], field->dtype, field->ndim, dims, NULL,
                             NULL);
        server->values[i].shared = true;
        server->values[i].layout = (uint8_t)field->layout;
    }
}

/* ---- what does not change ---- */

static enum hr_err prepare_step(struct hr_server *server, size_t at)
{
    const struct hr_proc_step *from = &server->program.steps[at];
    struct hr_serve_step *step = &server->steps[at];
    struct hr_value **inputs =
        hr__arena_zalloc(&server->lasting, (from->input_count + 1) * sizeof *inputs);
    const char **names =
        hr__arena_zalloc(&server->lasting, (from->input_count + 1) * sizeof *names);

    if (inputs == NULL || names == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < from->input_count; i++) {
        inputs[i] = &server->values[from->inputs[i]];
        names[i] = hr__proc_slot_field(&server->program, from->inputs[i])->name;
    }
    step->server = server;
    step->step = from;
    step->call = (struct hr_code_call){.class = &serve_class,
                                       .kind = from->kind,
                                       .node = from->node,
                                       .draw_id = from->draw_id,
                                       .input_count = from->input_count,
                                       .output_count = from->output_count,
                                       .inputs = inputs,
                                       .input_names = names,
                                       .output_fields = from->output_fields};
    return HR_OK;
}

enum hr_err hr__serve_prepare(struct hr_server *server)
{
    size_t slots = server->program.slot_count + 1;
    struct hr_arena *arena = &server->lasting;

    server->values = hr__arena_zalloc(arena, slots * sizeof *server->values);
    server->places = hr__arena_zalloc(arena, slots * sizeof *server->places);
    server->columns = hr__arena_zalloc(arena, slots * sizeof *server->columns);
    server->results = hr__arena_zalloc(arena, slots * sizeof *server->results);
    server->steps =
        hr__arena_zalloc(arena, (server->program.step_count + 1) * sizeof *server->steps);
    if (server->values == NULL || server->places == NULL || server->columns == NULL ||
        server->results == NULL || server->steps == NULL)
        return HR_ERR_MEMORY;
    HR_TRY(hr__proc_map_init(&server->map, &server->program));
    for (size_t r = 0; r < server->program.result_count; r++) {
        server->results[server->program.results[r]] = true;
        if (server->map.results[r].bytes > 0)
            server->columns[server->program.results[r]] = r + 1;
    }
    for (size_t s = 0; s < server->program.step_count; s++)
        HR_TRY(prepare_step(server, s));
    return HR_OK;
}
