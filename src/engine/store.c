/*
 * engine/store.c - stores results: bytes written straight into the batch if the record's
 * place is known, else values that wait in the block, or children.
 */
#include "engine/run.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "op/ragged.h"
#include "op/thread.h"
#include "wire/value.h"

enum hr_err hr__store_column(struct hr_runner *runner, struct hr_value *value,
                             const struct hr_out_field *out, char *to)
{
    if (value->data == to && value->kind == HR_VALUE_TENSOR)
        return HR_OK; /* user code wrote it there */
    if ((value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_DEFERRED) ||
        hr__value_count(value) * (int64_t)hr_dtype_size((enum hr_dtype)value->dtype) !=
            out->bytes)
        return hr__fail(&runner->error, HR_ERR_INTERNAL,
                        "field '%s' does not match its schema", out->field->name);
    return hr__value_force(&runner->thread, value, to, &runner->error);
}

/* Anything larger than a part of a slab gets a buffer of its own. */
#define SLAB_BYTES ((size_t)32 << 10)
#define PIECE_BYTES ((size_t)2 << 10)

static enum hr_err no_room(struct hr_runner *runner, size_t bytes)
{
    return hr__fail(&runner->error, HR_ERR_MEMORY, "no memory for a record of %zu bytes",
                    bytes);
}

enum hr_err hr__store_memory(struct hr_runner *runner, size_t bytes, void **ret_memory,
                             struct hr_buffer **ret_owner)
{
    size_t need = (bytes + 15) & ~(size_t)15;
    struct hr_buffer *buffer;

    if (bytes > PIECE_BYTES) {
        if (hr_pool_get(runner->thread.pool, bytes, &buffer) != HR_OK)
            return no_room(runner, bytes);
        *ret_memory = hr_buffer_data(buffer);
        *ret_owner = buffer;
        return HR_OK;
    }
    if (runner->slab == NULL || runner->slab_used + need > SLAB_BYTES) {
        if (hr_pool_get(runner->thread.pool, SLAB_BYTES, &buffer) != HR_OK)
            return no_room(runner, SLAB_BYTES);
        hr_buffer_unref(runner->slab);
        runner->slab = buffer;
        runner->slab_used = 0;
    }
    *ret_memory = (char *)hr_buffer_data(runner->slab) + runner->slab_used;
    *ret_owner = hr_buffer_ref(runner->slab);
    runner->slab_used += need;
    return HR_OK;
}

static enum hr_err keep_ragged(struct hr_runner *runner, const struct hr_value *value,
                               struct hr_value *ret_value)
{
    struct hr_buffer *owner;
    void *memory;

    HR_TRY(hr__store_memory(runner, hr__ragged_copy_bytes(value), &memory, &owner));
    hr__ragged_copy(value, memory, owner, ret_value);
    return HR_OK;
}

bool hr__store_may_share(const struct hr_runner *runner, const struct hr_value *value)
{
    const char *from = hr_buffer_data(value->owner), *at = value->data;
    size_t bytes = hr_buffer_bytes(value->owner);

    if (runner->engine->plan.memory.budget == 0)
        return true;
    /* memory outside its buffer belongs to something of unknown size */
    return value->bytes == 0 || (at >= from && at < from + bytes &&
                                 bytes <= 2 * value->bytes + runner->engine->owner_spare);
}

/* Whether its owner keeps all of a value: the head of a ragged one that was read from
 * somewhere lies in the arena. */
static bool is_whole(const struct hr_value *value)
{
    const char *from = hr_buffer_data(value->owner), *head;

    if (value->kind == HR_VALUE_BYTES)
        return true;
    if (value->kind != HR_VALUE_RAGGED)
        return hr__value_contiguous(value);
    head = (const char *)value->u.ragged;
    return head >= from && head < from + hr_buffer_bytes(value->owner);
}

enum hr_err hr__store_keep(struct hr_runner *runner, struct hr_value *value,
                           struct hr_value *ret_value)
{
    bool list = value->kind == HR_VALUE_BYTES || value->kind == HR_VALUE_RAGGED;
    struct hr_buffer *owner = NULL;
    size_t bytes = value->bytes;
    enum hr_err code;
    void *memory;

    if (value->owner != NULL && is_whole(value) && hr__store_may_share(runner, value)) {
        *ret_value = *value;
        value->owner = NULL;
        assert(hr__value_is_made(ret_value));
        return HR_OK;
    }
    if (value->kind == HR_VALUE_RAGGED)
        return keep_ragged(runner, value, ret_value);
    if (!list)
        bytes =
            (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype);
    HR_TRY(hr__store_memory(runner, bytes, &memory, &owner));
    if (value->kind == HR_VALUE_BYTES) {
        if (bytes > 0)
            memcpy(memory, value->data, bytes);
        hr__value_set_bytes(ret_value, memory, bytes, owner);
        return HR_OK;
    }
    code = hr__value_force(&runner->thread, value, memory, &runner->error);
    if (code != HR_OK) {
        hr_buffer_unref(owner);
        return code;
    }
    hr__value_set_tensor(ret_value, (enum hr_dtype)value->dtype, value->ndim, value->dims,
                         memory, owner);
    ret_value->layout = value->layout;
    assert(hr__value_is_made(ret_value));
    return HR_OK;
}

static void
count_children(struct hr_runner *runner, const struct hr_program *p,
               const struct hr_value *parents, const struct hr_children *children)
{
    struct hr_charge *charge = hr__run_charge(runner, p->expand.node);

    hr__meter_node(runner, p->expand.node)->records_out += children->count;
    if (charge == NULL)
        return;
    for (size_t f = 0; f < p->out_count; f++)
        charge->bytes[HR_BYTES_READ] += parents[f].bytes;
    for (size_t i = 0; i < children->count * p->child_count; i++)
        charge->bytes[HR_BYTES_WRITTEN] += children->values[i].bytes;
}

/* The header precedes the payload in one pooled buffer; payloads are aligned. */
#define PAYLOAD_AT (hr__wire_align(sizeof(struct hr_wire_value)))

static enum hr_err store_description(struct hr_runner *runner, struct hr_value *value,
                                     struct hr_value *ret_value)
{
    struct hr_wire_value head;
    struct hr_buffer *owner;
    size_t bytes;

    assert(value->kind == HR_VALUE_DEFERRED);
    if (!hr__wire_describes(value))
        return hr__fail(&runner->error, HR_ERR_INTERNAL,
                        "a value of class %s cannot cross a cut as a description",
                        value->u.lazy->class->name);
    bytes = PAYLOAD_AT + hr__wire_value_bytes(value);
    if (hr_pool_get(runner->thread.pool, bytes, &owner) != HR_OK)
        return no_room(runner, bytes);
    hr__wire_value_put(value, hr_buffer_data(owner), PAYLOAD_AT, &head);
    memcpy(hr_buffer_data(owner), &head, sizeof head);
    hr__value_set_bytes(ret_value, hr_buffer_data(owner), bytes, owner);
    return HR_OK;
}

enum hr_err hr__store_at_cut(struct hr_runner *runner, const struct hr_program *p,
                             struct hr_value *value, struct hr_value *ret_value)
{
    enum hr_err code = HR_OK;

    assert(p->cut);
    if (value->kind != HR_VALUE_DEFERRED)
        return hr__store_keep(runner, value, ret_value);
    if (!p->plan->describes) {
        code = hr__store_keep(runner, value, ret_value);
        if (code == HR_OK || !hr__value_may_wait(&runner->thread, value, code))
            return code;
        memset(&runner->error, 0, sizeof runner->error);
    }
    return store_description(runner, value, ret_value);
}

enum hr_err hr__store_described(struct hr_runner *runner, const struct hr_value *kept,
                                struct hr_value *ret_value)
{
    const struct hr_wire_region region = {
        .base = kept->data,
        .bytes = kept->bytes,
        .arena = &runner->thread.arena,
        .nodes = (uint32_t)runner->engine->graph->count,
    };
    struct hr_wire_value head;

    assert(kept->bytes >= PAYLOAD_AT);
    memcpy(&head, kept->data, sizeof head);
    return hr__wire_value_get(&region, &head, ret_value, &runner->error);
}

/* Gives the child's values the layouts of the schema, since they may show a parent's
 * bytes as something else, and copies what the op left in the arena, or in memory that is
 * not its parent's: children outlive both. */
static enum hr_err
keep_child(struct hr_runner *runner, const struct hr_program *p, struct hr_value *child)
{
    for (size_t f = 0; f < p->child_count; f++) {
        struct hr_value kept = {0};

        child[f].layout = (uint8_t)p->children[f].field->layout;
        if (child[f].owner != NULL)
            continue;
        if (child[f].kind == HR_VALUE_NONE)
            return hr__fail(&runner->error, HR_ERR_INTERNAL,
                            "field '%s' of a child was not made",
                            p->children[f].field->name);
        HR_TRY(hr__store_keep(runner, &child[f], &kept));
        child[f] = kept;
    }
    return HR_OK;
}

enum hr_err
hr__store_children(struct hr_runner *runner, struct hr_stage *stage,
                   struct hr_block *block, uint32_t at, struct hr_value *slots)
{
    const struct hr_program *p = &stage->program;
    struct hr_op_ctx *ctx = &runner->ctxs[stage->number][p->step_count];
    struct hr_children *children = &block->children[at];
    struct hr_value *parents = hr__calloc(p->out_count + 1, sizeof *parents);
    uint64_t count = 0;
    enum hr_err code = parents == NULL ? HR_ERR_MEMORY : HR_OK;

    for (size_t f = 0; code == HR_OK && f < p->out_count; f++)
        code = hr__store_keep(runner, &slots[p->out[f].slot], &parents[f]);
    for (size_t f = 0; code == HR_OK && f < p->out_count; f++)
        slots[p->out[f].slot] = parents[f];
    hr__thread_charge(&runner->thread, p->expand.node);
    if (code == HR_OK)
        code = p->expand.op->expand.count(ctx, &count);
    if (code == HR_OK && count > UINT32_MAX)
        code = hr__fail(&runner->error, HR_ERR_LIMIT,
                        "a record can have at most 2^32 - 1 children, not %llu",
                        (unsigned long long)count);
    if (code == HR_OK && count > 0) {
        children->values =
            hr__calloc(count * (p->child_count + 1), sizeof(struct hr_value));
        code = children->values == NULL ? HR_ERR_MEMORY : HR_OK;
    }
    for (uint64_t i = 0; code == HR_OK && i < count; i++) {
        struct hr_value *child = &children->values[i * p->child_count];

        children->count = i + 1;
        code = p->expand.op->expand.child(ctx, i, parents, child, p->child_count);
        if (code == HR_OK)
            code = keep_child(runner, p, child);
    }
    if (code == HR_OK)
        count_children(runner, p, parents, children);
    for (size_t f = 0; parents != NULL && f < p->out_count; f++)
        memset(&slots[p->out[f].slot], 0, sizeof(struct hr_value));
    for (size_t f = 0; parents != NULL && f < p->out_count; f++)
        hr__value_clear(&parents[f]);
    hr__free(parents);
    if (code != HR_OK) {
        runner->error.code = code;
        hr__children_clear(children, p->child_count);
        hr__run_blame(runner, p->expand.node);
    }
    return code;
}
