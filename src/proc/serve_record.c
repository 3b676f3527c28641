/*
 * proc/serve_record.c - one record through its steps in the worker process.
 *
 * Outputs of user code that go home are made where the parent will read them: small fixed
 * ones in their column, others at the next free place of `out`. What only a later step
 * reads is scratch. Passing on is a note of where the bytes lie.
 */
#include "proc/serve_internal.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"

static struct hr_serve_step *step_of(struct hr_code_call *call)
{
    return (struct hr_serve_step *)call;
}

/* ---- memory ---- */

static enum hr_err scratch_room(struct hr_server *server, size_t bytes, void **ret_memory,
                                struct hr_error *reterr)
{
    *ret_memory = hr__arena_alloc(&server->thread.arena, bytes > 0 ? bytes : 1);
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

    assert(slot < server->program.slot_count && column <= server->map.results.count);
    if (column != 0) {
        const struct hr_wire_lane *lane = &server->map.results.lanes[column - 1];

        ret_place->where = HR_SERVE_OUT;
        ret_place->at = lane->at + server->at * lane->step;
    } else if (server->results[slot]) {
        ret_place->where = HR_SERVE_OUT;
        HR_TRY(hr__serve_room(server, bytes, &ret_place->at, reterr));
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
    server->places[slot].where = place.where; /* by member: see hr__serve_record */
    server->places[slot].at = place.at;
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

    assert(input < call->input_count && at < call->output_count);
    assert(hr__value_is_made(&server->values[from]));
    (void)reterr;
    server->values[to] = server->values[from];
    server->places[to] = server->places[from];
    return HR_OK;
}

/* A child whose outputs are in their slots. */
static enum hr_err
pack_child(struct hr_server *server, uint64_t child, struct hr_error *reterr)
{
    struct hr_wire_value *row;

    HR_TRY(hr__serve_child_room(server, child, &row, reterr));
    for (size_t r = 0; r < server->map.results.count; r++) {
        size_t slot = server->program.results[r];

        HR_TRY(hr__serve_describe(server, r, &server->values[slot], &server->places[slot],
                                  &row[r], reterr));
    }
    return HR_OK;
}

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

static const char *id_of(const struct hr_server *server, uint32_t at)
{
    assert(at < server->count);
    return server->in->base + server->map.inputs.ids + (size_t)at * server->map.id_bytes;
}

static size_t
following(const struct hr_code_call *call, uint64_t *ret_indices, size_t room)
{
    const struct hr_server *server = ((const struct hr_serve_step *)call)->server;
    size_t count = server->count - server->at;

    for (uint32_t i = 0; i < count && i < room; i++)
        ret_indices[i] = hr__wire_id_at(id_of(server, server->at + i))->index;
    return count;
}

static const struct hr_code_call_class serve_class = {
    .room = room, .pass = pass, .child = child, .detail = detail, .following = following};

/* ---- a failure ---- */

static enum hr_err pack_failure(struct hr_server *server, const struct hr_error *error,
                                struct hr_proc_status *status)
{
    struct hr_proc_failure failure = {
        .error = *error,
        .node = server->thread.failed_node > 0
                    ? server->thread.failed_node - 1
                    : server->program.steps[status->step].number,
    };
    size_t length = server->detail != NULL ? strlen(server->detail) : 0, at = 0;
    char *to;

    if (length > HR_PROC_DETAIL_MAX) {
        length = HR_PROC_DETAIL_MAX;
        while (length > 0 && ((unsigned char)server->detail[length] & 0xC0) == 0x80)
            length--;
    }
    HR_TRY(hr__serve_room(server, sizeof failure + length, &at, NULL));
    failure.detail_bytes = (uint32_t)length;
    to = server->out->base + at;
    memcpy(to, &failure, sizeof failure);
    if (length > 0)
        memcpy(to + sizeof failure, server->detail, length);
    status->place = at;
    return HR_OK;
}

/* ---- a record ---- */

/* An input that is no item of a column. The parent wrote it, and everything is checked
 * nevertheless. */
static enum hr_err
load_wide(struct hr_server *server, size_t i, const char *item, struct hr_error *reterr)
{
    const struct hr_field *field = server->map.inputs.lanes[i].field;
    const struct hr_wire_region region = {
        .base = server->in->base,
        .bytes = server->in->bytes,
        .arena = &server->thread.arena,
        .nodes = server->program.nodes,
    };
    struct hr_wire_value wire;

    memcpy(&wire, item, sizeof wire);
    HR_TRY(hr__wire_value_get(&region, &wire, &server->values[i], reterr));
    if (server->values[i].layout == HR_LAYOUT_NONE)
        server->values[i].layout = (uint8_t)field->layout;
    return HR_OK;
}

static void set_column(struct hr_server *server, size_t i, void *data)
{
    const struct hr_field *field = server->map.inputs.lanes[i].field;
    int64_t dims[HR_MAX_DIMS];

    for (int d = 0; d < field->ndim; d++) {
        assert(field->dims[d].size >= 0); /* a column's are known */
        dims[d] = field->dims[d].size;
    }
    server->values[i].owner = NULL;
    hr__value_set_tensor(&server->values[i], field->dtype, field->ndim, dims, data, NULL);
    server->values[i].shared = true;
}

/* Ops may have changed anything in the record before, user code nothing. */
static enum hr_err load_inputs(struct hr_server *server, struct hr_error *reterr)
{
    for (size_t i = 0; i < server->map.inputs.count; i++) {
        const struct hr_wire_lane *lane = &server->map.inputs.lanes[i];
        char *item = server->in->base + lane->at + server->at * lane->step;

        if (lane->bytes == 0)
            HR_TRY(load_wide(server, i, item, reterr));
        else if (server->has_ops)
            set_column(server, i, item);
        else
            server->values[i].data = item;
        if (!server->has_ops)
            continue;
        server->loaded[i] = server->values[i];
        server->places[i] = (struct hr_serve_place){
            server->values[i].kind == HR_VALUE_DEFERRED ? HR_SERVE_SCRATCH
                                                        : HR_SERVE_INPUT,
            i};
    }
    return HR_OK;
}

/* User code borrows no slot: what it is given is made. */
static enum hr_err
run_code(struct hr_server *server, struct hr_serve_step *step, struct hr_error *error)
{
    const struct hr_proc_slots *before = &step->step->before;

    if (step->code == NULL)
        return hr__fail(error, HR_ERR_NOT_FOUND,
                        "the worker process knows no code named '%s'", step->step->code);
    for (size_t i = 0; i < before->count; i++) {
        struct hr_value *value = &server->values[before->at[i]];

        if (value->kind != HR_VALUE_DEFERRED)
            continue;
        HR_TRY(hr__value_force(&server->thread, value, NULL, error));
        server->places[before->at[i]] = (struct hr_serve_place){HR_SERVE_SCRATCH, 0};
    }
    step->call.id = server->place_of_id;
    return hr__code_run(step->code, &step->call, error);
}

static enum hr_err run_step(struct hr_server *server, struct hr_serve_step *step,
                            struct hr_proc_status *status, struct hr_error *error)
{
    uint64_t children;
    bool drop = false;

    if (server->thread.charges != NULL)
        hr__thread_charge(&server->thread, step->step->number);
    if (step->op == NULL) {
        HR_TRY(run_code(server, step, error));
        drop = step->call.kind == HR_OP_FILTER && !step->call.keep;
        children = step->call.child_count;
        if (step->call.kind == HR_OP_EXPAND && children > 0)
            HR_TRY(pack_child(server, children - 1, error));
    } else if (step->op->kind == HR_OP_EXPAND) {
        HR_TRY(hr__serve_op_expand(server, step, &children, error));
    } else {
        HR_TRY(hr__serve_op_run(server, step, &drop, error));
    }
    status->drop = drop;
    if (step->step->kind == HR_OP_EXPAND)
        return hr__serve_pack_children(server, children, status, error);
    return HR_OK;
}

static enum hr_err
run_steps(struct hr_server *server, struct hr_proc_status *status, struct hr_error *error)
{
    struct hr_proc_out_head *head = hr__serve_head(server);
    const char *id = id_of(server, server->at);

    /* User code seldom asks for it, and reading costs a cache miss. */
    server->place_of_id = hr__wire_id_at(id);
    if (server->has_ops && !hr__wire_id_get(id, server->map.id_bytes, &server->id))
        return hr__fail(error, HR_ERR_FORMAT, "the identity of a record is malformed");
    HR_TRY(load_inputs(server, error));
    for (size_t s = 0; s < server->program.step_count; s++) {
        status->step = (uint16_t)s;
        if (s > 0)
            atomic_store_explicit(&head->running_step, (unsigned)s, memory_order_relaxed);
        HR_TRY(run_step(server, &server->steps[s], status, error));
        if (status->drop)
            return HR_OK;
    }
    return server->map.expand ? HR_OK : hr__serve_pack(server, error);
}

static inline void clear_error(struct hr_error *error)
{
    if (error->code == HR_OK && error->message[0] == '\0')
        return;
    error->code = HR_OK;
    error->message[0] = error->node[0] = error->op[0] = error->param[0] = error->file[0] =
        '\0';
    error->line = error->column = 0;
    error->record = 0;
}

static void clear_record(struct hr_server *server)
{
    for (size_t i = 0; server->has_ops && i < server->program.slot_count; i++)
        hr__value_clear(&server->values[i]);
    if (server->thread.arena.used_bytes > HR_SCRATCH_KEPT)
        hr__arena_reset(&server->thread.arena);
    if (server->detail != NULL)
        hr__free(server->detail);
    server->detail = NULL;
    server->thread.failed_node = 0;
}

/* Structs that many records write are filled in place, member by member: copying one that
 * was just written loads more bytes than each store wrote, which stalls for 5 ns. */
bool hr__serve_record(struct hr_server *server)
{
    struct hr_proc_status *status =
        (struct hr_proc_status *)(server->out->base + server->map.status) + server->at;
    size_t out_before = server->out_at;
    enum hr_err code;

    assert(server->at < server->count && !server->full);
    status->code = HR_OK;
    status->step = 0;
    status->drop = status->zero = 0;
    status->place = status->children = 0;
    clear_error(&server->error);
    code = run_steps(server, status, &server->error);
    if (code != HR_OK && !server->full) {
        server->out_at = out_before;
        status->code = code;
        server->stopped = code == HR_ERR_CANCELLED;
        code = pack_failure(server, &server->error, status);
    }
    clear_record(server);
    if (server->full || (code != HR_OK && status->code == HR_OK)) {
        server->out_at = out_before;
        return false;
    }
    return true;
}

void hr__serve_begin(struct hr_server *server)
{
    for (size_t i = 0; i < server->map.inputs.count; i++) {
        server->places[i] = (struct hr_serve_place){HR_SERVE_INPUT, i};
        if (server->map.inputs.lanes[i].bytes > 0)
            set_column(server, i, NULL);
    }
}

/* ---- what does not change ---- */

static enum hr_err prepare_code(struct hr_server *server, struct hr_serve_step *step)
{
    const struct hr_proc_step *from = step->step;
    struct hr_value **inputs =
        hr__arena_zalloc(&server->lasting, (from->input_count + 1) * sizeof *inputs);

    if (inputs == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < from->input_count; i++)
        inputs[i] = &server->values[from->inputs[i]];
    step->call = (struct hr_code_call){.class = &serve_class,
                                       .kind = from->kind,
                                       .node = from->node,
                                       .draw_id = from->draw_id,
                                       .input_count = from->input_count,
                                       .output_count = from->output_count,
                                       .inputs = inputs,
                                       .input_fields = from->input_fields,
                                       .output_fields = from->output_fields,
                                       .replaced = server->replaced};
    return HR_OK;
}

/* Results that user code makes and no op touches are made where they are read. */
static void find_results(struct hr_server *server)
{
    const struct hr_proc_program *program = &server->program;

    for (size_t r = 0; r < program->result_count; r++) {
        server->results[program->results[r]] = true;
        if (server->map.results.lanes[r].bytes > 0)
            server->columns[program->results[r]] = r + 1;
    }
    for (size_t s = 0; s < program->step_count; s++)
        for (size_t i = 0; i < program->steps[s].fields.count; i++) {
            server->results[program->steps[s].fields.at[i]] = false;
            server->columns[program->steps[s].fields.at[i]] = 0;
        }
}

static void *zalloc(struct hr_server *server, size_t count, size_t size)
{
    return hr__arena_zalloc(&server->lasting, (count + 1) * size);
}

enum hr_err hr__serve_prepare(struct hr_server *server, struct hr_error *reterr)
{
    size_t slots = server->program.slot_count, steps = server->program.step_count;

    server->values = zalloc(server, slots, sizeof *server->values);
    server->loaded = zalloc(server, slots, sizeof *server->loaded);
    server->places = zalloc(server, slots, sizeof *server->places);
    server->columns = zalloc(server, slots, sizeof *server->columns);
    server->results = zalloc(server, slots, sizeof *server->results);
    server->charges = zalloc(server, server->program.nodes, sizeof *server->charges);
    server->spent = zalloc(server, server->program.nodes, sizeof *server->spent);
    server->costs = zalloc(server, server->program.nodes, sizeof *server->costs);
    server->steps = zalloc(server, steps, sizeof *server->steps);
    if (server->values == NULL || server->loaded == NULL || server->places == NULL ||
        server->columns == NULL || server->results == NULL || server->charges == NULL ||
        server->spent == NULL || server->costs == NULL || server->steps == NULL ||
        hr__proc_map_init(&server->map, &server->program) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory in a worker process");
    find_results(server);
    for (size_t s = 0; s < steps; s++) {
        struct hr_serve_step *step = &server->steps[s];

        step->server = server;
        step->step = &server->program.steps[s];
        if (step->step->op != NULL) {
            server->has_ops = true;
            HR_TRY(hr__serve_op_open(server, step, reterr));
        } else if (prepare_code(server, step) != HR_OK) {
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory in a worker process");
        }
    }
    return HR_OK;
}
