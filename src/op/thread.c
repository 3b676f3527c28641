/*
 * op/thread.c - a thread's private things, as ops reach them.
 *
 * A thread keeps its objects in a list, most recently used first: there are two or three
 * of them.
 */
#include "op/op.h"

#include <assert.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "op/thread.h"

struct hr_thread_object {
    const struct hr_thread_class *class;
    void *object;
    struct hr_thread_object *next;
};

enum hr_err
hr__thread_object(struct hr_thread *thread, const struct hr_thread_class *class,
                  void **ret_object, struct hr_error *reterr)
{
    struct hr_thread_object **at = &thread->objects, *entry;
    enum hr_err code;

    assert(class->create != NULL && class->destroy != NULL);
    while (*at != NULL && (*at)->class != class)
        at = &(*at)->next;
    entry = *at;
    if (entry != NULL) {
        *at = entry->next;
    } else {
        entry = hr__calloc(1, sizeof *entry);
        if (entry == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        entry->class = class;
        code = class->create(&entry->object, reterr);
        if (code != HR_OK) {
            hr__free(entry);
            return code;
        }
    }
    assert(entry->object != NULL);
    entry->next = thread->objects;
    thread->objects = entry;
    *ret_object = entry->object;
    return HR_OK;
}

void hr__thread_objects_destroy(struct hr_thread *thread)
{
    while (thread->objects != NULL) {
        struct hr_thread_object *entry = thread->objects;

        thread->objects = entry->next;
        entry->class->destroy(entry->object);
        hr__free(entry);
    }
}

/* ---- timing ---- */

static uint64_t beyond(uint64_t spent, uint64_t price)
{
    return spent > price ? spent - price : 0;
}

void hr__thread_charge(struct hr_thread *thread, uint32_t node)
{
    struct hr_charge *running;
    uint64_t now;

    if (thread->charges == NULL)
        return;
    running = &thread->charges[thread->charge_node];
    now = hr__ticks();
    running->ticks += beyond(now - thread->charge_since, thread->charge_price);
    if (thread->part != NULL)
        thread->part(thread, thread->charge_node, thread->charge_since, now);
    if (thread->charge_clock) {
        uint64_t cpu_ns = hr__cpu_thread_ns();

        running->cpu_ns +=
            beyond(cpu_ns - thread->charge_cpu_since, thread->charge_cpu_price);
        thread->charge_cpu_since = cpu_ns;
    }
    thread->charge_node = node;
    thread->charge_since = hr__ticks();
}

void hr__thread_timing_begin(struct hr_thread *thread, struct hr_charge *charges,
                             uint32_t node, bool clock)
{
    assert(thread->charges == NULL && charges != NULL);
    thread->charges = charges;
    thread->charge_node = node;
    thread->charge_clock = clock;
    thread->charge_cpu_since = clock ? hr__cpu_thread_ns() : 0;
    thread->charge_since = hr__ticks();
}

void hr__thread_timing_end(struct hr_thread *thread)
{
    assert(thread->charges != NULL);
    hr__thread_charge(thread, thread->charge_node);
    thread->charges = NULL;
}

/* The least of several: what interrupts came between is no part of the price. */
void hr__thread_calibrate(struct hr_thread *thread)
{
    uint64_t ticks = UINT64_MAX, cpu_ns = UINT64_MAX;

    for (int i = 0; i < 16; i++) {
        uint64_t from = hr__ticks(), to = hr__ticks();
        uint64_t cpu_from = hr__cpu_thread_ns(), cpu_to = hr__cpu_thread_ns();

        ticks = to - from < ticks ? to - from : ticks;
        cpu_ns = cpu_to - cpu_from < cpu_ns ? cpu_to - cpu_from : cpu_ns;
    }
    thread->charge_price = ticks;
    thread->charge_cpu_price = cpu_ns;
}

enum hr_err hr__op_alloc(struct hr_op_ctx *ctx, size_t bytes, void **ret_memory)
{
    void *memory = hr__arena_alloc(&ctx->thread->arena, bytes);

    if (memory == NULL)
        return hr__fail(ctx->error, HR_ERR_MEMORY,
                        "out of memory for %zu bytes of a record", bytes);
    *ret_memory = memory;
    return HR_OK;
}

enum hr_err
hr__op_result(struct hr_op_ctx *ctx, size_t field, size_t bytes, void **ret_memory)
{
    assert(field < ctx->field_count);
    if (ctx->places != NULL && ctx->places[field].data != NULL &&
        ctx->places[field].bytes == bytes) {
        *ret_memory = ctx->places[field].data;
        return HR_OK;
    }
    return hr__op_alloc(ctx, bytes, ret_memory);
}
