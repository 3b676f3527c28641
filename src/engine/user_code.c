/*
 * engine/user_code.c - user code in this thread, called once for all records of a chunk.
 *
 * Its outputs are allocated in their final place: in the batch if the record's place is
 * known, in memory of their own if the record must wait, else in the arena.
 */
#include "engine/run.h"
#include "op/code_call.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"

struct thread_call {
    struct hr_code_call call; /* first */
    struct hr_pass *pass;
    const struct hr_step *step;
    struct hr_op_ctx *ctx;
    struct hr_value *slots; /* row 0's; the next row's are `row_slots` further */
    struct hr_record_id *ids;
    size_t row_slots, row_ids;
    uint32_t at, row;             /* among the chunk's live rows; of the pass */
    struct hr_children *children; /* EXPAND */
    uint64_t children_room;
    char *detail;
};

static struct thread_call *of(struct hr_code_call *call)
{
    return (struct thread_call *)call;
}

static struct hr_value *output_value(struct thread_call *c, size_t at)
{
    if (c->call.kind == HR_OP_EXPAND)
        return &c->children->values[(c->children->count - 1) * c->call.output_count + at];
    return c->ctx->fields[c->call.input_count + at];
}

/* 1 + the stage's result that the output is, or 0. */
static size_t final(const struct thread_call *c, size_t at)
{
    return c->step->finals[c->call.input_count + at];
}

static enum hr_err
find_memory(struct thread_call *c, size_t at, size_t bytes, void **ret_memory,
            struct hr_buffer **ret_owner, struct hr_error *reterr)
{
    *ret_memory =
        final(c, at) > 0 ? hr__pass_place(c->pass, c->row, final(c, at) - 1) : NULL;
    if (*ret_memory != NULL)
        return HR_OK;
    if (c->call.kind == HR_OP_EXPAND || final(c, at) > 0) {
        if (hr__store_memory(c->pass->runner, bytes, ret_memory, ret_owner) == HR_OK)
            return HR_OK;
    } else {
        *ret_memory = hr__arena_alloc(&c->pass->runner->thread.arena, bytes);
        if (*ret_memory != NULL)
            return HR_OK;
    }
    return hr__fail(reterr, HR_ERR_MEMORY, "no memory for %zu bytes of field '%s'", bytes,
                    c->call.output_fields[at]->name);
}

static enum hr_err
room(struct hr_code_call *call, size_t at, enum hr_dtype dtype, int ndim,
     const int64_t *dims, size_t bytes, void **ret_memory, struct hr_error *reterr)
{
    struct hr_value *value = output_value(of(call), at);
    struct hr_buffer *owner = NULL;
    void *memory;

    HR_TRY(find_memory(of(call), at, bytes, &memory, &owner, reterr));
    if (dtype == HR_DTYPE_NONE)
        hr__value_set_bytes(value, memory, bytes, owner);
    else
        hr__value_set_tensor(value, dtype, ndim, dims, memory, owner);
    value->layout = (uint8_t)call->output_fields[at]->layout;
    *ret_memory = memory;
    return HR_OK;
}

static enum hr_err
pass_on(struct hr_code_call *call, size_t at, size_t input, struct hr_error *reterr)
{
    struct hr_runner *runner = of(call)->pass->runner;
    struct hr_value *from = call->inputs[input];

    if (call->kind == HR_OP_EXPAND && from->owner == NULL) { /* children outlive it */
        struct hr_value kept = {0};

        if (hr__store_keep(runner, from, &kept) != HR_OK)
            return hr__fail(reterr, HR_ERR_MEMORY, "no memory for field '%s'",
                            call->output_fields[at]->name);
        *from = kept;
    }
    hr__value_alias(output_value(of(call), at), from);
    return HR_OK;
}

static enum hr_err child(struct hr_code_call *call, struct hr_error *reterr)
{
    struct thread_call *c = of(call);
    struct hr_children *children = c->children;
    size_t outputs = call->output_count;

    if (children->count == c->children_room) {
        uint64_t grown_room = 2 * c->children_room + 4;
        struct hr_value *grown = hr__realloc(
            children->values, (size_t)grown_room * (outputs + 1) * sizeof *grown);

        if (grown == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "no memory for %llu children",
                            (unsigned long long)grown_room);
        children->values = grown;
        c->children_room = grown_room;
    }
    memset(&children->values[children->count * outputs], 0,
           outputs * sizeof *children->values);
    children->count++;
    return HR_OK;
}

static void detail(struct hr_code_call *call, const char *text)
{
    hr__free(of(call)->detail);
    of(call)->detail = hr__strdup(text);
}

static size_t
following(const struct hr_code_call *call, uint64_t *ret_indices, size_t room)
{
    const struct thread_call *c = (const struct thread_call *)call;
    const struct hr_chunk *chunk = c->pass->chunk;
    size_t count = chunk->live_count - c->at;

    assert(c->at < chunk->live_count && chunk->live[c->at] == c->row);
    for (size_t i = 0; i < count && i < room; i++)
        ret_indices[i] =
            hr__pass_ids(c->pass, chunk->live[c->at + i])[c->step->path].index;
    return count;
}

static const struct hr_code_call_class thread_class = {room, pass_on, child, detail,
                                                       following};

/* ---- a chunk ---- */

static void begin_call(struct thread_call *c, struct hr_pass *pass,
                       const struct hr_step *step, size_t at)
{
    const struct hr_code_use *use = step->code;

    memset(c, 0, sizeof *c);
    c->pass = pass;
    c->step = step;
    c->ctx = &pass->runner->ctxs[pass->stage->number][at];
    c->slots = hr__pass_slots(pass, 0);
    c->row_slots = pass->stage->program.slot_count + 1;
    c->ids = hr__pass_ids(pass, 0) + step->path;
    c->row_ids = pass->stage->program.id_count;
    c->call.class = &thread_class;
    c->call.kind = step->op->kind;
    c->call.node = pass->runner->engine->graph->nodes[step->node].name;
    c->call.draw_id = step->draw_id;
    c->call.input_count = use->input_count;
    c->call.output_count = use->output_count;
    c->call.inputs = c->ctx->fields;
    c->call.input_fields = use->input_fields;
    c->call.output_fields = use->output_fields;
}

static void settle(struct thread_call *c, enum hr_err code)
{
    struct hr_pass *pass = c->pass;
    struct hr_runner *runner = pass->runner;
    char *text = c->detail;

    assert(code != HR_OK && *hr__pass_status(pass, c->row) == HR_RECORD_OPEN);
    c->detail = NULL;
    if (code == HR_ERR_END) {
        hr__pass_ended(pass, c->row, c->step->node, HR_RECORD_END);
        memset(&runner->error, 0, sizeof runner->error);
        hr__free(text);
        return;
    }
    if (c->children != NULL)
        hr__children_clear(c->children, c->call.output_count);
    runner->error.node[0] = '\0';
    hr__pass_fail(pass, c->row, c->step->node, text, false);
}

/* As hr__pass_bind, from what does not change between rows. */
static void bind_row(struct thread_call *c)
{
    const uint16_t *fields = c->step->fields;
    struct hr_value *slots = c->slots + c->row * c->row_slots;
    struct hr_op_ctx *ctx = c->ctx;
    size_t count = c->step->field_count;

    ctx->id = c->call.id = c->ids + c->row * c->row_ids;
    for (size_t i = 0; i < count; i++)
        ctx->fields[i] = &slots[fields[i]];
    assert(slots == hr__pass_slots(c->pass, c->row));
}

static void call_row(struct thread_call *c)
{
    struct hr_pass *pass = c->pass;
    struct hr_runner *runner = pass->runner;
    struct hr_charge *charge;
    enum hr_err code;

    bind_row(c);
    if (c->call.kind == HR_OP_EXPAND) {
        c->children = &pass->block->children[pass->at + c->row];
        c->children_room = 0;
    }
    charge = hr__run_charge(runner, c->step->node);
    if (charge != NULL)
        charge->bytes[HR_BYTES_READ] +=
            hr__run_bytes(c->ctx->fields, c->call.input_count);
    hr__runner_in_code(runner, c->step->node, c->call.id->index);
    code = hr__code_run(c->step->code->code, &c->call, &runner->error);
    if (code != HR_OK) {
        settle(c, code);
        return;
    }
    if (c->detail != NULL) {
        hr__free(c->detail);
        c->detail = NULL;
    }
    if (c->call.kind == HR_OP_FILTER && !c->call.keep)
        hr__pass_ended(pass, c->row, c->step->node, HR_RECORD_DROPPED);
    if (charge != NULL && c->call.kind != HR_OP_EXPAND)
        charge->bytes[HR_BYTES_WRITTEN] +=
            hr__run_bytes(c->ctx->fields + c->call.input_count, c->call.output_count);
    if (c->call.kind == HR_OP_EXPAND)
        hr__meter_node(runner, c->step->node)->records_out += c->children->count;
    for (size_t i = 0; i < c->step->clear_count; i++)
        hr__value_clear(&hr__pass_slots(pass, c->row)[c->step->clear[i]]);
}

static void call_rows(struct thread_call *c)
{
    struct hr_pass *pass = c->pass;
    struct hr_runner *runner = pass->runner;
    bool trace = runner->engine->options.trace;
    uint64_t last = trace ? hr__ticks() : 0;

    assert(runner->meter.bucket == c->step->node); /* time is this node's */
    for (; c->at < pass->chunk->live_count && !hr__pass_stopped(pass); c->at++) {
        c->row = pass->chunk->live[c->at];
        hr__pass_time_begin(pass, c->row, c->step->node);
        call_row(c);
        hr__pass_time_end(pass);
        if (trace) {
            uint64_t now = hr__ticks();

            hr__span_record(runner, pass, hr__pass_ids(pass, c->row), c->step->node, last,
                            now);
            last = now;
        }
    }
    hr__runner_out_of_code(runner);
    if (c->at < pass->chunk->live_count)
        hr__pass_give_up(pass, c->step->node);
}

void hr__code_segment(struct hr_pass *pass, const struct hr_segment *segment)
{
    const struct hr_step *step = hr__program_step(&pass->stage->program, segment->from);
    struct hr_code_use *use = (struct hr_code_use *)(uintptr_t)step->code;
    const struct hr_code *code = use->code;
    struct thread_call call;
    void *token = NULL;
    uint64_t queued;
    unsigned was;

    hr__pass_prepare(pass, segment->from, step->before, step->before_count);
    if (pass->chunk->live_count == 0)
        return;
    begin_call(&call, pass, step, segment->from);
    was = hr__meter_begin(pass->runner, step->node);
    queued = hr__ticks();
    if (step->variant == HR_PLAN_INLINE) {
        hr__runner_awaits_code(pass->runner, step->node);
        pthread_mutex_lock(&use->lock);
        hr__runner_out_of_code(pass->runner);
    }
    if (code->enter != NULL)
        token = code->enter(code->user);
    queued = hr__ticks() - queued;
    pass->runner->queued_ticks += queued;
    pass->lost_ticks += queued;
    call_rows(&call);
    if (code->leave != NULL)
        code->leave(code->user, token);
    if (step->variant == HR_PLAN_INLINE)
        pthread_mutex_unlock(&use->lock);
    hr__meter_end(pass->runner, was);
}
